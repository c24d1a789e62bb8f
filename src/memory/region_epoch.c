/* SPDX-License-Identifier: BSD-2-Clause */
/* Epochs: which half holds which, the next one begun, old ones copied to files of their own. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/region_internal.h"
#include "memory/words.h"

static uint8_t *half_of(const struct pl_region *g, uint64_t epoch)
{
	const uint64_t at = g->info.data_offset + (epoch % g->info.halves) * g->info.half_stride;

	assert(at + g->info.store_bytes <= g->map_bytes);
	return g->map + at;
}

static void publish(struct pl_region *g, uint64_t epoch, unsigned int flags)
{
	__atomic_store_n(&g->state->epochs, epoch << 2 | flags, __ATOMIC_RELEASE);
	/* The flags are seen before any later store. */
	pl_words_release();
}

static void empty(struct pl_region *g, uint64_t epoch)
{
	uint64_t *w = (void *)half_of(g, epoch);

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
	publish(g, epochs >> 2, 0);
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
	return pl_region_has_epoch(g, epoch) ? half_of(g, epoch) : NULL;
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
	publish(g, epoch, 0);
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
		publish(g, epoch + 1, EPOCH_EMPTYING);
		empty(g, epoch + 1);
		publish(g, epoch + 1, 0);
		return 0;
	}
	if (atomic_load_explicit(&g->prepared, memory_order_acquire) != epoch + 1 &&
		pl_region_prepare_epoch(g, diag) < 0)
		return -EACCES;
	publish(g, epoch + 1, EPOCH_BOTH);
	return 0;
}

/* ---- spilled epochs ---- */

static int sync_folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash == NULL   ? strdup(".")
		       : slash == path ? strdup("/")
				       : strndup(path, (size_t)(slash - path));
	int fd, r;

	if (folder == NULL)
		return -ENOMEM;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	if (fd < 0)
		return -errno;
	/* Some file systems have nothing to sync there. */
	r = fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
	close(fd);
	return r;
}

static int copy_epoch(
	const struct pl_region *g, uint64_t epoch, const char *path, struct pl_diag *diag)
{
	struct pl_region *copy;
	int r = pl_region_create(&copy, path, &g->info.params, NULL, diag);

	if (r < 0)
		return r;
	pl_words_load(half_of(copy, 0), half_of(g, epoch), g->info.store_bytes);
	publish(copy, epoch, 0);
	if (!pl_region_has_epoch(g, epoch)) {
		pl_diag_set(diag, "the epoch was emptied while it was copied");
		r = -ENOENT;
	}
	if (r == 0) {
		r = pl_region_close(copy);
		if (r < 0)
			pl_diag_set(diag, "cannot write the epoch: %s", strerror(-r));
	} else {
		(void)pl_region_close(copy);
	}
	if (r < 0)
		unlink(path);
	return r;
}

/* `flags`: of renameat2, when it is whole. */
static int copy_to(const struct pl_region *g, uint64_t epoch, const char *path, unsigned int flags,
	struct pl_diag *diag)
{
	static atomic_uint copies;
	char *part;
	int r;

	if (!pl_region_has_epoch(g, epoch)) {
		pl_diag_set(diag, "the epoch is not in the region");
		return -ENOENT;
	}
	/* The name is of this copy alone: another process may copy to the same path meanwhile. */
	if (asprintf(&part, "%s.%ld-%u.part", path, (long)getpid(), atomic_fetch_add(&copies, 1)) <
		0)
		return -ENOMEM;
	/* A file that a killed process of the same number left. */
	unlink(part);
	r = copy_epoch(g, epoch, part, diag);
	if (r == 0 && renameat2(AT_FDCWD, part, AT_FDCWD, path, flags) < 0) {
		r = -errno;
		pl_diag_set(diag, "%s: %s", path, strerror(errno));
		unlink(part);
	}
	free(part);
	return r < 0 ? r : sync_folder_of(path);
}

int pl_region_spill(
	const struct pl_region *g, uint64_t epoch, const char *path, struct pl_diag *diag)
{
	return copy_to(g, epoch, path, RENAME_NOREPLACE, diag);
}

int pl_region_save(const struct pl_region *g, const char *path, struct pl_diag *diag)
{
	return copy_to(g, pl_region_epoch(g), path, 0, diag);
}
