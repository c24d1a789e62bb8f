/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists written to disk around what is ahead of their heads: by the kernel's word on which pages of
 * the file are dirty. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/test.h"
#include "memory/append.h"
#include "memory/region_internal.h"

#ifndef SYS_cachestat /* Linux 6.5 */
#define SYS_cachestat 451
#endif

#define PAGE  4096u
#define LISTS 3u
#define ENTRY 64u
#define BATCH 16u

struct range {
	uint64_t at, bytes;
};

struct cached {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

static char path[] = "/var/tmp/pathline-ahead-XXXXXX";
static struct pl_region *g;
static struct pl_append append;

static struct pl_store_params params_of(uint64_t slots, uint64_t lists)
{
	return (struct pl_store_params){ .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.append = { slots, lists, ENTRY, BATCH, 1 } };
}

/* Dirty pages of a part of the file; -1: the kernel does not tell. */
static int64_t dirty(uint64_t at, uint64_t bytes)
{
	struct range range = { at / PAGE * PAGE, (at % PAGE + bytes + PAGE - 1) / PAGE * PAGE };
	struct cached c = { 0 };

	return syscall(SYS_cachestat, pl_region_fd(g), &range, &c, 0) < 0
		       ? -1
		       : (int64_t)(c.dirty + c.writeback);
}

/* Counts the dirty pages of entries `first` to `first + n` and of the head. */
static int64_t dirty_entries(uint32_t list, uint64_t first, uint64_t n)
{
	const uint64_t store = (uint64_t)(append.base - g->map);
	struct pl_extent part[2];
	unsigned int parts = pl_append_place(&append, list, first, n, part);
	int64_t sum = dirty(store + pl_append_head_place(&append, list).offset, 8);

	while (parts-- > 0)
		sum += dirty(store + part[parts].offset, part[parts].bytes);
	return sum;
}

static bool create(uint64_t slots, uint64_t lists)
{
	const struct pl_store_params params = params_of(slots, lists);
	/* The thread sleeps: turns are the test's. */
	const struct pl_region_options options = { .populate = true,
		.sync_ns = UINT64_C(3600000000000) };
	struct pl_diag diag = { .text = "" };

	(void)unlink(path);
	return ok(pl_region_create(&g, path, &params, &options, &diag) == 0, "created%s",
		       diag.text) &&
	       ok(pl_append_init(&append, &params, pl_region_store(g, 0)) == 0, "a list");
}

static long faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_minflt;
}

static void put(uint32_t list, uint64_t n)
{
	static const uint8_t entries[BATCH * ENTRY] = { 1 };

	for (; n > 0; n -= BATCH)
		pl_append_put(&append, list, entries, BATCH);
}

/* Round the ring several times, one list faster than the other and one hardly at all. */
static void growing(void)
{
	const uint64_t slots = 60000, steps[LISTS] = { 4000, 1600, 16 };
	int64_t ahead = 0, behind = 0;
	long faulted = 0, pages = 0;

	if (!create(slots, LISTS))
		return;
	for (int turn = 0; turn < 120; turn++) {
		const long before = faults();

		for (uint32_t i = 0; i < LISTS; i++) {
			put(i, steps[i]);
			pages += (long)(steps[i] * append.entry_stride / PAGE);
		}
		if (turn > 20) /* each list's every page was written to disk by then */
			faulted += faults() - before;
		else
			pages = 0;
		if (region_ahead_sync(g) < 0)
			break;
		for (uint32_t i = 0; i < LISTS; i++) {
			const uint64_t head = pl_append_head(&append, i);

			behind += dirty_entries(i, head > slots / 2 ? head - slots / 2 : 0,
				head > slots / 2 ? slots / 2 : head);
			if (i < 2)
				ahead += dirty_entries(i, head + 200, steps[i] - 200);
		}
	}
	eq(g->state->sync_failures, 0, "no failure");
	ok(g->state->synced_ns != 0, "said when");
	eq((uint64_t)behind, 0, "what is published is on disk");
	ok(ahead > 1000, "what is ahead is ready: %ld pages", (long)ahead);
	ok(faulted < pages / 5, "the writer had %ld faults on %ld pages", faulted, pages);
	/* Lists that stand still: nothing is ahead of them any more. */
	eq(region_ahead_sync(g), 0, "a turn without anything new");
	eq((uint64_t)dirty(PAGE, g->map_bytes - PAGE), 0, "all of the file is on disk");
	eq(pl_region_close(g), 0, "closed");
}

static void published_from_elsewhere(void)
{
	if (!create(60000, 1))
		return;
	/* Entries without a head, as a peer writes them, and a head that goes back. */
	put(0, 8000);
	eq(region_ahead_sync(g), 0, "a turn");
	pl_append_publish(&append, 0, 100);
	memset(append.base + append.list_stride / 2, 7, 50 * PAGE);
	eq(region_ahead_sync(g), 0, "another");
	eq((uint64_t)dirty(PAGE, g->map_bytes - PAGE), 0, "all of the file is on disk");
	eq(pl_region_close(g), 0, "closed");
}

static void of_no_use(void)
{
	const struct pl_region_options options = { .sync_ns = UINT64_C(3600000000000) };
	struct pl_store_params params = params_of(1008, 65);
	char memory[64];

	(void)unlink(path);
	eq(pl_region_create(&g, path, &params, &options, NULL), 0, "too many lists");
	ok(g->commit.ahead == NULL, "the file goes to disk whole");
	eq(pl_region_close(g), 0, "closed");
	params = params_of(1008, 1);
	(void)snprintf(memory, sizeof(memory), "/dev/shm/pathline-ahead-%d", (int)getpid());
	eq(pl_region_create(&g, memory, &params, &options, NULL), 0, "memory");
	ok(g->commit.ahead == NULL, "no event there");
	eq(pl_region_close(g), 0, "closed");
	(void)unlink(memory);
}

int main(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		abort();
	close(fd);
	if (create(1008, 1)) {
		const bool possible = g->commit.ahead != NULL && dirty(0, PAGE) >= 0;

		eq(pl_region_close(g), 0, "closed");
		if (possible) {
			growing();
			published_from_elsewhere();
		} else {
			printf("ok %u - what is on its way to disk # SKIP /var/tmp on a disk and cachestat() of Linux 6.5 are needed\n",
				++pl_test_run);
		}
		of_no_use();
	}
	(void)unlink(path);
	return pl_test_done();
}
