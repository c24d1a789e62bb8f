/* SPDX-License-Identifier: BSD-2-Clause */
/* Two hosts that measure the network between them: settings that follow from the peer's name. */
#pragma once

#include <net/if.h>
#include <stdbool.h>

#include "base/num.h"
#include "cli/mark_args.h"
#include "marks/to.h"

struct pl_mark_peer {
	bool is; /* the command was given one */
	struct pl_addr host;
	uint16_t port; /* of UDP, where the marker's records arrive */
	char name[PL_ADDR_TEXT_MAX];
	char dev[IF_NAMESIZE]; /* of a link-local address as it was given, else of the route */
	char rules[2][80];
};

/* The host of `mark --to HOST` or `meter --from HOST`, if there is one; interface, rule, point and
 * method that were not given come into *a, whose strings are then the peer's, and the host is no
 * output any more. Returns 0, or prints the error and returns an exit code. */
int pl_mark_peer_fill(struct pl_mark_peer *ret, struct pl_mark_args *a, enum pl_hostmark_role role);

/* Sets *ret: what a marker with these options sends to the peer, which must outlive it. */
void pl_mark_peer_send(const struct pl_mark_peer *peer, struct pl_mark_to *ret,
	const struct pl_mark_args *a, const struct pl_mark_host_options *o);

/* Runs the meter, whose options *o are those of the structure, and prints how its counts and those
 * of the peer differ. Returns an exit code; prints errors. */
int pl_mark_peer_compare(const struct pl_mark_peer *peer, struct pl_mark_host *h,
	struct pl_mark_host_options *o, const struct pl_mark_args *a, const char *form);
