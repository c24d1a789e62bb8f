/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a region to disk. */
#include <errno.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "memory/region_internal.h"

int region_sync_part(const struct pl_region *g, uint64_t begin, uint64_t bytes)
{
	return msync(g->map + begin, bytes, MS_SYNC) < 0 ? -errno : 0;
}

int region_synced(struct pl_region *g, int r)
{
	if (r < 0)
		__atomic_fetch_add(&g->state->sync_failures, 1, __ATOMIC_RELAXED);
	else
		__atomic_store_n(&g->state->synced_ns, pl_clock_real_ns(), __ATOMIC_RELAXED);
	return r;
}

int pl_region_sync(struct pl_region *g)
{
	return g->writer ? region_synced(g, region_sync_part(g, 0, g->map_bytes)) : -EACCES;
}
