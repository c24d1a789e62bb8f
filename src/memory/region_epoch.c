/* SPDX-License-Identifier: BSD-2-Clause */
/* Epochs: which half holds which, and the next one begun. */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include "memory/region_internal.h"
#include "memory/words.h"

uint8_t *region_half(const struct pl_region *g, uint64_t epoch)
{
	const uint64_t at = g->info.data_offset + (epoch % g->info.halves) * g->info.half_stride;

	assert(at + g->info.store_bytes <= g->map_bytes);
	return g->map + at;
}

void region_publish(struct pl_region *g, uint64_t epoch, unsigned int flags)
{
	__atomic_store_n(&g->state->epochs, epoch << 2 | flags, __ATOMIC_RELEASE);
	/* The flags are seen before any later store. */
	pl_words_release();
}

static void empty(struct pl_region *g, uint64_t epoch)
{
	uint64_t *w = (void *)region_half(g, epoch);

	assert(g->writer);
	for (uint64_t i = 0; i < g->info.store_bytes / 8; i++)
		__atomic_store_n(&w[i], 0, __ATOMIC_RELAXED);
}

void region_finish_emptying(struct pl_region *g)
{
	uint64_t epochs = region_epochs(g);

	if ((epochs & EPOCH_EMPTYING) == 0)
		return;
	empty(g, epochs >> 2);
	region_publish(g, epochs >> 2, 0);
}

uint64_t pl_region_epoch(const struct pl_region *g)
{
	return region_epochs(g) >> 2;
}

bool pl_region_has_epoch(const struct pl_region *g, uint64_t epoch)
{
	uint64_t epochs, now;

	/* After reading: the copies that were taken before stand before this look. */
	pl_words_acquire();
	epochs = region_epochs(g);
	now = epochs >> 2;
	if (epoch == now)
		return (epochs & EPOCH_EMPTYING) == 0;
	return g->info.halves == 2 && (epochs & EPOCH_BOTH) != 0 && epoch + 1 == now;
}

void *pl_region_store(const struct pl_region *g, uint64_t epoch)
{
	return pl_region_has_epoch(g, epoch) ? region_half(g, epoch) : NULL;
}

int pl_region_prepare_epoch(struct pl_region *g, struct pl_diag *diag)
{
	const uint64_t epoch = pl_region_epoch(g);

	if (!g->writer || g->info.halves != 2) {
		pl_diag_set(diag, g->writer ? "the region has one half"
					    : "the region is not open for writing");
		return g->writer ? -EINVAL : -EACCES;
	}
	/* The old epoch is gone for readers before the first of its bytes is. */
	region_publish(g, epoch, 0);
	empty(g, epoch + 1);
	atomic_store_explicit(&g->prepared, epoch + 1, memory_order_release);
	return 0;
}

int pl_region_next_epoch(struct pl_region *g, struct pl_diag *diag)
{
	uint64_t epoch = pl_region_epoch(g);

	if (!g->writer) {
		pl_diag_set(diag, "the region is not open for writing");
		return -EACCES;
	}
	if (g->info.halves == 1) {
		region_publish(g, epoch + 1, EPOCH_EMPTYING);
		empty(g, epoch + 1);
		region_publish(g, epoch + 1, 0);
		return 0;
	}
	if (atomic_load_explicit(&g->prepared, memory_order_acquire) != epoch + 1 &&
		pl_region_prepare_epoch(g, diag) < 0)
		return -EACCES;
	region_publish(g, epoch + 1, EPOCH_BOTH);
	return 0;
}
