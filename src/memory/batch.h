/* SPDX-License-Identifier: BSD-2-Clause */
/* A batch of keys goes in groups: what a group touches is on its way to the cache before the first
 * of it is touched. */
#pragma once

#include "base/prefetch.h"

#define PL_GROUP 32u /* keys */

/* Where the group ends that begins at `from`, of n keys. */
static inline unsigned int pl_group_end(unsigned int from, unsigned int n)
{
	return n - from < PL_GROUP ? n : from + PL_GROUP;
}
