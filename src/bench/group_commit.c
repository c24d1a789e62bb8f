/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Appending to two lists in files, one of which goes to disk every 10 ms.
 *
 *   flat-out        by the wall's clock: the disk has its part in it
 *   flat-out-cpu    the writer's processor time: faults on pages that were written to disk
 *   4M-a-second     the same at the responder's rate, 256 MB/s in pieces of a millisecond
 *   disk            flat out, against write() and fdatasync() of as many bytes: what the disk takes
 *                   at all
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "bench/bench.h"
#include "memory/append.h"
#include "memory/region.h"

#define AT_ONCE     16u
#define ENTRY       64u
#define ROUND       64u /* batches between two looks at the clock */
#define PACE_NS     1000000u
#define PACED       4000u       /* entries in that time */
#define DISK_PIECE  (16u << 20) /* written between two fdatasync(): some 10 ms */
#define COMMIT_NS   10000000u
#define PATH_FORMAT "/var/tmp/pathline-bench-%ld-%u"

struct commit_bench {
	struct pl_region *region[2];
	struct pl_append append[2];
	uint8_t entries[AT_ONCE * ENTRY];
	uint64_t bytes;
	bool cpu;       /* the writer's time counts, not the wall's */
	uint32_t rate;  /* entries in PACE_NS; 0: flat out */
	uint8_t *piece; /* for the disk */
	int fd;
};

static uint64_t now_ns(const struct commit_bench *b)
{
	return b->cpu ? pl_clock_cpu_ns() : pl_clock_mono_ns();
}

/* Sleeps until `due` entries were to be written by now. */
static void keep_pace(const struct commit_bench *b, uint64_t start_ns, uint64_t written)
{
	const uint64_t due_ns = start_ns + written * PACE_NS / b->rate;
	const struct timespec t = pl_clock_timespec(due_ns);

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static int append_to(
	struct commit_bench *b, unsigned int which, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const uint64_t begin = pl_clock_mono_ns();
	uint64_t start = now_ns(b);
	uint32_t piece = 0;

	do {
		for (unsigned int i = 0; i < ROUND; i++)
			pl_append_put(&b->append[which], 0, b->entries, AT_ONCE);
		ret->items += (uint64_t)ROUND * AT_ONCE;
		piece += ROUND * AT_ONCE;
		if (b->rate == 0 || piece < b->rate)
			continue;
		/* Only the writing counts. */
		ret->ns += now_ns(b) - start;
		keep_pace(b, begin, ret->items);
		start = now_ns(b);
		piece = 0;
	} while (pl_clock_mono_ns() - begin < budget_ns);
	ret->ns += now_ns(b) - start;
	return 0;
}

static int append_lazily(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return append_to(arg, 0, budget_ns, ret);
}

static int append_committed(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return append_to(arg, 1, budget_ns, ret);
}

/* Items are entries of the lists: their bytes with the seal. */
static int write_to_disk(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct commit_bench *b = arg;
	const uint64_t start = pl_clock_mono_ns(), pieces = b->bytes / DISK_PIECE;
	uint64_t n = 0;

	do {
		const off_t at = (off_t)(n++ % pieces * DISK_PIECE);

		if (pwrite(b->fd, b->piece, DISK_PIECE, at) != DISK_PIECE || fdatasync(b->fd) < 0) {
			int r = errno != 0 ? -errno : -EIO;

			pl_complain("benchmark group-commit: the disk: %s", strerror(-r));
			return r;
		}
		ret->items += DISK_PIECE / b->append[0].entry_stride;
		ret->ns = pl_clock_mono_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static int open_list_file(struct commit_bench *b, unsigned int i)
{
	struct pl_region_options options = { .populate = true, .sync_ns = i == 1 ? COMMIT_NS : 0 };
	struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.append = { b->bytes / 72 / 64 * 64, 1, ENTRY, 64, 1 } };
	struct pl_diag diag = { .text = "" };
	char path[64];
	int r;

	snprintf(path, sizeof(path), PATH_FORMAT, (long)getpid(), i);
	r = pl_region_create(&b->region[i], path, &params, &options, &diag);
	if (r < 0)
		pl_complain("%s", diag.text);
	else
		(void)unlink(path); /* open is enough */
	return r < 0 ? r : pl_append_init(&b->append[i], &params, pl_region_store(b->region[i], 0));
}

static int open_disk_file(struct commit_bench *b)
{
	char path[64];
	int r = 0;

	snprintf(path, sizeof(path), PATH_FORMAT, (long)getpid(), 2u);
	b->piece = malloc(DISK_PIECE);
	b->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (b->fd < 0 || b->piece == NULL) {
		r = b->fd < 0 ? -errno : -ENOMEM;
	} else {
		(void)unlink(path);
		memset(b->piece, 1, DISK_PIECE);
		r = -posix_fallocate(b->fd, 0, (off_t)b->bytes);
	}
	if (r < 0)
		pl_complain("benchmark group-commit: %s", strerror(-r));
	return r;
}

static int compare(struct pl_bench_ctx *ctx, struct commit_bench *b)
{
	static const struct {
		const char *name;
		bool cpu, disk;
		uint32_t rate;
	} cases[] = {
		{ "group-commit/append-64-bytes-10ms-flat-out", false, false, 0 },
		{ "group-commit/append-64-bytes-10ms-flat-out-cpu", true, false, 0 },
		{ "group-commit/append-64-bytes-10ms-4M-a-second", true, false, PACED },
		{ "group-commit/append-64-bytes-10ms-disk", false, true, 0 },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pl_bench_case c = { .name = cases[i].name,
			.ceiling_name = cases[i].disk ? "write and fdatasync"
						      : "the same file left to the kernel",
			.subject = append_committed,
			.ceiling = cases[i].disk ? write_to_disk : append_lazily,
			.arg = b };

		b->cpu = cases[i].cpu;
		b->rate = cases[i].rate;
		r = pl_bench_compare(ctx, &c);
	}
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	/* A quarter: all files have to fit on the disk and in memory. */
	static struct commit_bench b = { .fd = -1 };
	int r;

	b.bytes = pl_bench_size_bytes(ctx, UINT64_C(1) << 30) / 4;
	if (b.bytes < DISK_PIECE)
		b.bytes = DISK_PIECE;
	r = open_disk_file(&b);
	for (unsigned int i = 0; r == 0 && i < 2; i++)
		r = open_list_file(&b, i);
	if (r == 0)
		r = compare(ctx, &b);
	for (unsigned int i = 0; i < 2; i++) {
		(void)pl_region_close(b.region[i]);
		b.region[i] = NULL;
	}
	if (b.fd >= 0)
		close(b.fd);
	free(b.piece);
	return r;
}

const struct pl_bench pl_bench_group_commit = {
	.name = "group-commit",
	.summary =
		"appending to a file that goes to disk every 10 ms, against one left to the kernel",
	.run = run,
};
