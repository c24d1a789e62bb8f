/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies epochs of a region to files of their own. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/append.h"
#include "memory/region_internal.h"
#include "memory/words.h"

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

#define RUN    1024u /* entries copied before the head is read again */
#define ROUNDS 4u    /* most rounds of a list that are copied for a writer who stays ahead */

static void copy_entries(const struct pl_append *to, const struct pl_append *from, uint32_t list,
	uint64_t first, uint64_t n)
{
	struct pl_extent part[2];
	const unsigned int parts = pl_append_place(from, list, first, n, part);

	for (unsigned int i = 0; i < parts; i++)
		pl_words32_load(
			to->base + part[i].offset, from->base + part[i].offset, part[i].bytes);
}

/* Empties the entries [first, end), which a writer that was faster than the copy overwrote. */
static void clear_entries(const struct pl_append *a, uint32_t list, uint64_t first, uint64_t end)
{
	struct pl_extent part[2];
	unsigned int parts = first < end ? pl_append_place(a, list, first, end - first, part) : 0;

	while (parts-- > 0)
		memset(a->base + part[parts].offset, 0, part[parts].bytes);
}

/*
 * Copies a list whose entries do not contain their numbers: it is copied as it is, then what was
 * written meanwhile, until the copy has the head. Entries from `whole` on are those of their
 * numbers; entries that were overwritten before they were copied are below the oldest of that head.
 */
static void copy_list(const struct pl_append *to, const struct pl_append *from, uint32_t list)
{
	const uint64_t begin = pl_append_head(from, list), at = list * from->list_stride;
	uint64_t whole = 0, next = begin, copied = 0, head, n;

	pl_words_load(to->base + at, from->base + at, from->list_stride);
	while (true) {
		pl_words_acquire();
		head = pl_append_head(from, list);
		if (pl_append_oldest_of(from, head) > whole)
			whole = pl_append_oldest_of(from, head);
		if (next >= head || copied >= ROUNDS * from->slots)
			break;
		next = next > whole ? next : whole;
		n = head - next < RUN ? head - next : RUN;
		n = n < from->slots ? n : from->slots;
		copy_entries(to, from, list, next, n);
		next += n;
		copied += n;
	}
	whole = whole < next ? whole : next;
	clear_entries(to, list, pl_append_oldest_of(to, next), whole);
	pl_append_publish(to, list, next);
}

/* Copies an epoch's store. Stores whose entries prove themselves are copied as they are. */
static void copy_store(struct pl_region *copy, const struct pl_region *g, uint64_t epoch)
{
	struct pl_append from, to;

	if (pl_append_init(&from, &g->info.params, region_half(g, epoch)) < 0 || from.sealed) {
		pl_words_load(region_half(copy, 0), region_half(g, epoch), g->info.store_bytes);
		return;
	}
	to = from;
	to.base = region_half(copy, 0);
	for (uint32_t list = 0; list < from.lists; list++)
		copy_list(&to, &from, list);
}

static int copy_epoch(
	const struct pl_region *g, uint64_t epoch, const char *path, struct pl_diag *diag)
{
	struct pl_region *copy;
	int r = pl_region_create(&copy, path, &g->info.params, NULL, diag);

	if (r < 0)
		return r;
	copy_store(copy, g, epoch);
	region_publish(copy, epoch, 0);
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
