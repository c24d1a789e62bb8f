/* SPDX-License-Identifier: BSD-2-Clause */
/* A UDP socket with one peer, for reporters: what is sent goes to it, and only what it sends is
 * received. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/diag.h"

/* The descriptor, which does not block and is the caller's. address: the same as text, for what
 * diag says. Negative errno with diag. */
int pl_udp_peer_open(
	const struct pl_addr *addr, uint16_t port, const char *address, struct pl_diag *diag);

/* A datagram. A full socket is waited for, 1 ms at a time, three times at most. Negative errno: it was not
 * sent. */
int pl_udp_peer_send(int fd, const void *bytes, size_t n);
