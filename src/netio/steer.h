/* SPDX-License-Identifier: BSD-2-Clause */
/* A classic BPF program that chooses the socket of a group (SO_REUSEPORT) by a datagram's source
 * address. */
#pragma once

#include <linux/filter.h>
#include <stdint.h>

#include "base/addr.h"

#define PL_STEER_CODE_MAX 4096 /* the kernel's limit */

/* A sender with a socket of its own. */
struct pl_steer_sender {
	struct pl_prefix who; /* an address, or an IPv6 network of 64 bits */
	uint32_t share; /* datagrams of this share only: a network has addresses in many shares */
	uint32_t socket;
};

/* Sockets are numbered by their place in the group. */
struct pl_steer {
	const uint32_t *sockets; /* socket of each share */
	uint32_t shares;         /* at least 1; a hash of the source address chooses among them */
	const struct pl_steer_sender
		*senders; /* the first match counts, addresses before networks */
	uint32_t n_senders;
};

/* Writes the program. Returns its length; -E2BIG when it does not fit. No load in it can fail on a
 * datagram. */
int pl_steer_cbpf(const struct pl_steer *steer, struct sock_filter *dst, uint32_t cap);
