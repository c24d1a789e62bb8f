/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of a port's addresses peers should know us by. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

/* What is known of an entry of a port's table of addresses. */
struct verbs_gid {
	uint32_t index;
	bool roce2;
	struct pl_addr addr;
};

/* RoCEv2 with an IPv4 address, else with an IPv6 one that routers carry, else with any. The
 * position in `gids`, the first of its kind; -1: none. */
int verbs_gid_choose(const struct verbs_gid *gids, unsigned int n);

/* Where a port's table was changed, or is looked at for the first time (`home` NULL): the position
 * of `home`, the address that was chosen first, wherever it is now; else of the entry with this
 * index, or, where `index` is negative, of the best one. -1: none. */
int verbs_gid_find(
	const struct verbs_gid *gids, unsigned int n, const struct verbs_gid *home, int index);
