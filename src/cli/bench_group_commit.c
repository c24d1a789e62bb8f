/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Appending to two lists in files, one of which goes to disk every 10 ms. By the wall's clock: what is lost is time spent
 * waiting for pages that are being written.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "memory/append.h"
#include "memory/region.h"

#define ROUND 64u /* batches between two looks at the clock */

struct commit_bench {
	struct pl_region *region[2];
	struct pl_append append[2];
	uint8_t entries[16 * 64];
	char path[2][64];
};

static int append_to_file(const struct pl_append *a, const uint8_t *entries, uint64_t budget_ns,
	struct pl_bench_sample *ret)
{
	uint64_t start = pl_clock_mono_ns();

	do {
		for (unsigned int i = 0; i < ROUND; i++)
			pl_append_put(a, 0, entries, 16);
		ret->items += (uint64_t)ROUND * 16;
		ret->ns = pl_clock_mono_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static int append_lazily(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct commit_bench *b = arg;

	return append_to_file(&b->append[0], b->entries, budget_ns, ret);
}

static int append_committed(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct commit_bench *b = arg;

	return append_to_file(&b->append[1], b->entries, budget_ns, ret);
}

static int open_list_file(struct commit_bench *b, unsigned int i, uint64_t bytes)
{
	struct pl_region_options options = { .populate = true, .sync_ns = i == 1 ? 10000000 : 0 };
	struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.append = { bytes / 72 / 64 * 64, 1, 64, 64, 1 } };
	struct pl_diag diag = { .text = "" };
	int r;

	snprintf(b->path[i], sizeof(b->path[i]), "/var/tmp/pathline-bench-%ld-%u.region",
		(long)getpid(), i);
	r = pl_region_create(&b->region[i], b->path[i], &params, &options, &diag);
	if (r < 0)
		pl_complain("%s", diag.text);
	else
		(void)unlink(b->path[i]); /* open is enough */
	return r < 0 ? r : pl_append_init(&b->append[i], &params, pl_region_store(b->region[i], 0));
}

static int run(struct pl_bench_ctx *ctx)
{
	static struct commit_bench b;
	struct pl_bench_case c = { .name = "group-commit/append-64-bytes-10ms",
		.ceiling_name = "the same file left to the kernel",
		.subject = append_committed,
		.ceiling = append_lazily,
		.arg = &b };
	/* A quarter: both files have to fit on the disk and in memory. */
	uint64_t bytes = pl_bench_size_bytes(ctx, UINT64_C(1) << 30) / 4;
	int r = open_list_file(&b, 0, bytes);

	if (r == 0)
		r = open_list_file(&b, 1, bytes);
	if (r == 0)
		r = pl_bench_compare(ctx, &c);
	for (unsigned int i = 0; i < 2; i++) {
		(void)pl_region_close(b.region[i]);
		b.region[i] = NULL;
	}
	return r;
}

const struct pl_bench pl_bench_group_commit = {
	.name = "group-commit",
	.summary =
		"appending to a file that goes to disk every 10 ms, against one left to the kernel",
	.run = run,
};
