/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds files of records of folders to the sources of a question: the truth of a network has its
 * accounts in files beside its history, and naming the folder names them too. */
#pragma once

#include <stddef.h>

#include "lang/lang.h"

/* The sources; begins as zeros. */
struct pl_query_folder {
	char **files;
	size_t n_files;
	const char *
		*sources; /* the given ones and the files; `files` are owned, other texts are not */
	size_t n;
};

/* Makes the list of sources: the given ones, and behind them the files in folders of kinds that the
 * question reads. A folder of which nothing else is read is left out. Returns 0 or an exit code;
 * prints errors. */
int pl_query_folder_open(struct pl_query_folder *ret, const struct pl_query *query,
	const char *const *sources, size_t n);
void pl_query_folder_done(struct pl_query_folder *f);
