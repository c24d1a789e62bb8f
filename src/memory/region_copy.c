/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies epochs of a region to files of their own. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static int copy_epoch(
	const struct pl_region *g, uint64_t epoch, const char *path, struct pl_diag *diag)
{
	struct pl_region *copy;
	int r = pl_region_create(&copy, path, &g->info.params, NULL, diag);

	if (r < 0)
		return r;
	pl_words_load(region_half(copy, 0), region_half(g, epoch), g->info.store_bytes);
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
