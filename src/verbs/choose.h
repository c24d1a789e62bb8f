/* SPDX-License-Identifier: BSD-2-Clause */
/* Choice of the port's address for peers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

/* An entry of a port's table of addresses. */
struct verbs_gid {
	uint32_t index;
	bool roce2;
	struct pl_addr addr;
};

/* Chooses RoCEv2 with an IPv4 address, else with a routable IPv6 one, else with any. Returns the
 * position in `gids`, the first of its kind; -1: none. */
int verbs_gid_choose(const struct verbs_gid *gids, unsigned int n);

/* Finds the address after a change of the port's table, or for the first time (`home` NULL): the
 * position of `home`, the address that was chosen first, wherever it is now; else of the entry with
 * this index, or, when `index` is negative, of the best one. -1: none. */
int verbs_gid_find(
	const struct verbs_gid *gids, unsigned int n, const struct verbs_gid *home, int index);
