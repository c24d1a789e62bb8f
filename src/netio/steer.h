/* SPDX-License-Identifier: BSD-2-Clause */
/* Which socket of a group (SO_REUSEPORT) a datagram reaches, by its source address, as a classic
 * BPF program. */
#pragma once

#include <linux/filter.h>
#include <stdint.h>

#include "base/addr.h"

#define PL_STEER_CODE_MAX 4096 /* the kernel's limit */

/* A sender with a socket of its own. */
struct pl_steer_sender {
	struct pl_prefix who; /* an address, or an IPv6 network of 64 bits */
	uint32_t share; /* only datagrams of this share: addresses of a network belong to many */
	uint32_t socket;
};

/* Sockets are numbered by their place in the group. */
struct pl_steer {
	const uint32_t *sockets; /* of each share */
	uint32_t shares;         /* at least 1; a hash of the source address chooses among them */
	const struct pl_steer_sender
		*senders; /* the first that fits counts, addresses before networks */
	uint32_t n_senders;
};

/* Returns the program's length; -E2BIG when it would not fit. No load of it can fail on a
 * datagram. */
int pl_steer_cbpf(const struct pl_steer *steer, struct sock_filter *dst, uint32_t cap);
