/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds files of records in folders that are sources of a question. */
#include "ask/query_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/query_file.h"
#include "ask/query_records.h"
#include "base/complain.h"
#include "base/exit_code.h"

static bool reads_flat(const struct pl_query *query)
{
	for (unsigned int stream = 0; stream < PL_FLAT_MAX; stream++) {
		if (pl_query_reads(query, stream))
			return true;
	}
	return false;
}

static bool is_wanted(const struct pl_query *query, const char *name)
{
	const enum pl_flat_kind kind = pl_query_file_kind(name);

	return name[0] != '.' && kind != PL_FLAT_MAX && pl_query_reads(query, kind);
}

static int add_file(struct pl_query_folder *f, const char *folder, const char *name)
{
	char **more = realloc(f->files, (f->n_files + 1) * sizeof(char *));

	if (more == NULL)
		return -ENOMEM;
	f->files = more;
	if (asprintf(&f->files[f->n_files], "%s/%s", folder, name) < 0)
		return -ENOMEM;
	f->n_files++;
	return 0;
}

/* Adds the folder's files that the question reads. *ret_found: there are some; a path that is no
 * folder has none. */
static int search(struct pl_query_folder *f, const struct pl_query *query, const char *folder,
	bool *ret_found)
{
	struct dirent **names = NULL;
	int n = scandir(folder, &names, NULL, alphasort), r = 0;

	*ret_found = false;
	if (n < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (int i = 0; i < n; i++) {
		if (r == 0 && is_wanted(query, names[i]->d_name)) {
			r = add_file(f, folder, names[i]->d_name);
			*ret_found = true;
		}
		free(names[i]);
	}
	free(names);
	return r;
}

static int gather(struct pl_query_folder *f, const struct pl_query *query,
	const char *const *sources, size_t n)
{
	const bool records = pl_query_reads_records(query);
	const char **all = calloc(n + 1, sizeof(*all));
	int r = all == NULL ? -ENOMEM : 0;

	f->sources = all;
	for (size_t i = 0; i < n && r == 0; i++) {
		bool found = false;

		if (reads_flat(query))
			r = search(f, query, sources[i], &found);
		if (records || !found)
			f->sources[f->n++] = sources[i];
	}
	all = r == 0 ? realloc(f->sources, (f->n + f->n_files + 1) * sizeof(*all)) : NULL;
	if (all == NULL)
		return -ENOMEM;
	f->sources = all;
	for (size_t i = 0; i < f->n_files; i++)
		f->sources[f->n++] = f->files[i];
	return 0;
}

int pl_query_folder_open(struct pl_query_folder *ret, const struct pl_query *query,
	const char *const *sources, size_t n)
{
	if (gather(ret, query, sources, n) == 0)
		return 0;
	return pl_fail(PL_EXIT_FAILED, "out of memory");
}

void pl_query_folder_done(struct pl_query_folder *f)
{
	for (size_t i = 0; i < f->n_files; i++)
		free(f->files[i]);
	free(f->files);
	free(f->sources);
}
