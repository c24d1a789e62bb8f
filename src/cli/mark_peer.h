/* SPDX-License-Identifier: BSD-2-Clause */
/* Two hosts that measure the network between them: what is known once a command has the other's name. */
#pragma once

#include <net/if.h>
#include <stdbool.h>

#include "base/addr.h"
#include "cli/mark_args.h"

struct pl_mark_peer {
	bool is; /* the command was given one */
	struct pl_addr host;
	uint16_t port; /* of UDP, where the marker's records arrive */
	char dev[IF_NAMESIZE];
	char rules[2][80], uri[80];
};

/* The host of `mark --to HOST` or `meter --from HOST`, if there is one; interface, rule, point,
 * method and output that were not given come into *a, whose strings are then the peer's. 0, or an exit
 * code; complains. */
int pl_mark_peer_fill(struct pl_mark_peer *ret, struct pl_mark_args *a, enum pl_hostmark_role role);

/* Runs the meter, whose options *o are those of the structure, and prints how its counts and those of
 * the peer differ. An exit code; complains. */
int pl_mark_peer_compare(const struct pl_mark_peer *peer, struct pl_mark_host *h,
	struct pl_mark_host_options *o, const struct pl_mark_args *a, const char *form);
