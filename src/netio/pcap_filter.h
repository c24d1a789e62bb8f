/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filter expressions of tcpdump and Wireshark's capture filters (pcap-filter(7)), such as
 * "udp port 6000 and host 10.0.0.1": libpcap compiles them, and its interpreter runs them over the
 * frames of a batch. An expression is compiled for each kind of link whose frames come, when they do,
 * because the headers stand at other places there.
 *
 * An expression sees the bytes that were captured: what it asks for beyond them does not match.
 */
#pragma once

#include <stdint.h>

#include "base/diag.h"
#include "wire/packet.h"

/* libpcap's time grows with the square of an expression and more: 200 addresses take a second. */
#define PL_PCAP_FILTER_MAX 4096

struct pl_pcap_filter;

/* -EINVAL with diag: libpcap does not understand it. Names of hosts and services are looked up
 * here. */
int pl_pcap_filter_new(struct pl_pcap_filter **ret, const char *expression, struct pl_diag *diag);
/* Says that the source has no frames that a filter could be asked of. -EINVAL. */
int pl_pcap_filter_refuse(const char *uri, struct pl_diag *diag);
void pl_pcap_filter_free(struct pl_pcap_filter *filter); /* NULL is allowed */

/* The packets that match move to the front of the batch, in their order. Returns how many these are;
 * -ENOMEM, -EINVAL with diag: there is one whose kind of link the expression cannot be asked of. */
int pl_pcap_filter_batch(
	struct pl_pcap_filter *filter, struct pl_batch *batch, uint32_t n, struct pl_diag *diag);
