/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder for the files of a unit test, in memory where possible: tests sync thousands of files. */
#pragma once

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char pl_test_folder[64];

/* Makes the folder; false: there is no place for it. */
static inline bool pl_test_folder_make(void)
{
	snprintf(pl_test_folder, sizeof(pl_test_folder), "%s/pathline-test-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	return mkdtemp(pl_test_folder) != NULL;
}

static inline int pl_test_remove_one(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Removes a folder with all that is in it. */
static inline void pl_test_remove(const char *path)
{
	(void)nftw(path, pl_test_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Path in the folder at which there is nothing; it is valid until the next call. */
static inline const char *pl_test_fresh(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", pl_test_folder, name);
	pl_test_remove(path);
	return path;
}
