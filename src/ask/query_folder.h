/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of records that a folder has, as the truth of a network has its books beside its history: who
 * names the folder as a source of a question has named them too. */
#pragma once

#include <stddef.h>

#include "lang/lang.h"

/* Begins as zero, owned by the caller. */
struct pl_query_folder {
	char **files;
	size_t n_files;
	const char *
		*sources; /* those given, and the files; none of the texts are owned but files */
	size_t n;
};

/* Sources with the files of folders among them, of kinds that the question reads, behind them; a
 * folder of which nothing else is read gives way to its files. 0 or an exit code, complains. */
int pl_query_folder_open(struct pl_query_folder *ret, const struct pl_query *query,
	const char *const *sources, size_t n);
void pl_query_folder_done(struct pl_query_folder *f);
