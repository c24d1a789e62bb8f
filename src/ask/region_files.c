/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives regions of this machine to a lookup as its stores. */
#include "ask/region_lookup.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "dta/translator.h"

struct files {
	const struct pl_region_args *args;
	const char *paths[PL_COLLECTORS_MAX];
	struct pl_region *regions[PL_COLLECTORS_MAX];
};

static int open_file(
	void *arg, unsigned int i, struct pl_store_source *ret, struct pl_store_params *ret_params)
{
	struct pl_diag diag = { .text = "" };
	struct files *f = arg;
	void *base;

	if (f->regions[i] == NULL &&
		pl_region_open(&f->regions[i], f->paths[i], PL_REGION_READ, NULL, &diag) < 0)
		return pl_fail(PL_EXIT_FAILED, "%s", diag.text);
	base = pl_region_store_of(f->regions[i], f->args);
	if (base == NULL)
		return PL_EXIT_NOTHING;
	*ret = (struct pl_store_source){ pl_store_read_mapped, base };
	*ret_params = *pl_region_params(f->regions[i]);
	return 0;
}

int pl_region_lookup(struct pl_region *g, const char *path, const struct pl_region_args *args,
	const char *const *keys, size_t n)
{
	struct files f = { .args = args, .paths = { path }, .regions = { g } };
	const struct pl_lookup_at at = { .n = 1 + (unsigned int)args->collectors.n,
		.every = true,
		.names = f.paths,
		.open = open_file,
		.arg = &f };
	int code;

	if (args->collectors.n >= PL_COLLECTORS_MAX)
		return pl_fail(
			PL_EXIT_USAGE, "--collector: more than %u collectors", PL_COLLECTORS_MAX);
	for (unsigned int i = 1; i < at.n; i++)
		f.paths[i] = args->collectors.items[i - 1];
	code = pl_lookup_keys(&at, args, keys, n);
	for (unsigned int i = 1; i < at.n; i++)
		(void)pl_region_close(f.regions[i]);
	return code;
}
