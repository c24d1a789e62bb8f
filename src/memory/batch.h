/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups of a batch of keys: the memory that a group touches is prefetched before its first key is
 * handled. */
#pragma once

#include "base/prefetch.h"

#define PL_GROUP 32u /* keys */

/* End of the group that begins at `from`, of n keys. */
static inline unsigned int pl_group_end(unsigned int from, unsigned int n)
{
	return n - from < PL_GROUP ? n : from + PL_GROUP;
}
