/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filter expressions of tcpdump and Wireshark's capture filters (pcap-filter(7)), such as "udp port
 * 6000 and host 10.0.0.1": libpcap compiles them, and its interpreter runs them over the frames of
 * a batch. An expression is compiled for each link type when its first frame comes, because the
 * offsets of headers differ.
 *
 * An expression sees the captured bytes only: a condition on bytes beyond them does not match.
 */
#pragma once

#include <stdint.h>

#include "base/diag.h"
#include "wire/packet.h"

/* libpcap's time to compile grows at least with the square of the length: 200 addresses take a
 * second. */
#define PL_PCAP_FILTER_MAX 4096

struct pl_pcap_filter;

/* Compiles an expression. -EINVAL with diag when libpcap rejects it. Names of hosts and services
 * are resolved here. */
int pl_pcap_filter_new(struct pl_pcap_filter **ret, const char *expression, struct pl_diag *diag);
/* Sets diag: the source has no frames to filter. Returns -EINVAL. */
int pl_pcap_filter_refuse(const char *uri, struct pl_diag *diag);
void pl_pcap_filter_free(struct pl_pcap_filter *filter); /* NULL is allowed */

/* Moves the matching packets to the front of the batch, in their order. Returns their number;
 * -ENOMEM; -EINVAL with diag for a packet whose link type the expression does not fit. */
int pl_pcap_filter_batch(
	struct pl_pcap_filter *filter, struct pl_batch *batch, uint32_t n, struct pl_diag *diag);
