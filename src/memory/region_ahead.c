/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel write-protects pages that go to disk, one by one and with an interrupt for the
 * writer's processor each, and the next store to such a page waits for a fault. For lists the
 * places of the next stores are known. So between two writes to disk the part of a list that was
 * filled meanwhile is taken out of this process's page table, at once, and pages ahead of its head
 * are made writable, four times as many as were filled; the pages ahead are not written to disk:
 * nothing in them is published. Everything else in the file is. */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "memory/append.h"
#include "memory/region_internal.h"

#define LISTS_MAX   64u          /* most lists; a region of more goes to disk whole */
#define LEAST_BYTES (64u << 10u) /* a list that grew by less is skipped: its faults are few */

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

struct list_ahead {
	uint64_t head;  /* head at the last write to disk */
	uint64_t ready; /* entries from head to here were made writable; not above head: none */
};

struct region_ahead {
	struct pl_append append;
	uint64_t at; /* offset of the store in the file */
	struct list_ahead lists[];
};

/* Part of the file, whole pages. */
struct part {
	uint64_t begin, end;
};

/* True where a write to a clean page costs no fault. */
static bool is_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

int region_ahead_new(struct pl_region *g)
{
	const struct pl_store_params *params = &g->info.params;
	struct region_ahead *ahead;
	uint8_t *store;

	if (params->primitive != PL_APPEND || params->append.lists > LISTS_MAX ||
		g->info.halves != 1 || is_memory(g->fd))
		return 0;
	ahead = calloc(1, sizeof(*ahead) + params->append.lists * sizeof(ahead->lists[0]));
	if (ahead == NULL)
		return -ENOMEM;
	store = pl_region_store(g, pl_region_epoch(g));
	if (store == NULL || pl_append_init(&ahead->append, params, store) < 0) {
		free(ahead);
		return -EINVAL;
	}
	ahead->at = (uint64_t)(store - g->map);
	for (uint32_t i = 0; i < ahead->append.lists; i++)
		ahead->lists[i].head = pl_append_head(&ahead->append, i);
	g->commit.ahead = ahead;
	return 0;
}

/* The parts that entries `first` to `first + n` take, in the file's order: of pages that they fill,
 * or that they touch. */
static unsigned int parts_of(const struct pl_region *g, uint32_t list, uint64_t first, uint64_t n,
	bool touched, struct part ret[2])
{
	const struct region_ahead *ahead = g->commit.ahead;
	const uint64_t page = g->page_bytes;
	struct pl_extent run[2];
	unsigned int runs = pl_append_place(&ahead->append, list, first, n, run), parts = 0;

	while (runs-- > 0) {
		const uint64_t begin = ahead->at + run[runs].offset, end = begin + run[runs].bytes;
		struct part p = { begin / page * page, (end + page - 1) / page * page };

		if (!touched)
			p = (struct part){ (begin + page - 1) / page * page, end / page * page };
		if (p.begin < p.end)
			ret[parts++] = p;
	}
	return parts;
}

/* Advice: where the kernel does not take it, the writer has its faults. */
static void advise(const struct pl_region *g, uint32_t list, uint64_t first, uint64_t n, int advice)
{
	struct part parts[2];
	unsigned int k = parts_of(g, list, first, n, advice == MADV_POPULATE_WRITE, parts);

	while (k-- > 0) {
		const uint64_t end = parts[k].end < g->map_bytes ? parts[k].end : g->map_bytes;

		(void)madvise(g->map + parts[k].begin, end - parts[k].begin, advice);
	}
}

/* Moves on to the list's present head. */
static void move_on(const struct pl_region *g, uint32_t list)
{
	const struct pl_append *a = &g->commit.ahead->append;
	struct list_ahead *l = &g->commit.ahead->lists[list];
	const uint64_t head = pl_append_head(a, list), most = a->slots / 4;
	uint64_t grown = head > l->head ? head - l->head : 0, to;

	l->head = head;
	if (grown < LEAST_BYTES / a->entry_stride || most <= a->batch_max) {
		l->ready = head;
		return;
	}
	to = head + (4 * grown < most ? 4 * grown : most);
	if (l->ready < head)
		l->ready = head;
	if (to > l->ready) {
		advise(g, list, l->ready, to - l->ready, MADV_POPULATE_WRITE);
		l->ready = to;
	}
	grown = grown < 2 * most ? grown : 2 * most;
	advise(g, list, head - grown, grown, MADV_DONTNEED);
}

/* Parts made writable ahead, behind the entries that the writer may have written: at most batch_max
 * behind the head. */
static unsigned int unpublished(const struct pl_region *g, uint32_t list, struct part ret[2])
{
	const struct list_ahead *l = &g->commit.ahead->lists[list];
	const uint64_t from = l->head + g->commit.ahead->append.batch_max;

	return l->ready > from ? parts_of(g, list, from, l->ready - from, false, ret) : 0;
}

int region_ahead_sync(struct pl_region *g)
{
	const uint32_t lists = g->commit.ahead->append.lists;
	uint64_t at = 0;
	int r = 0;

	for (uint32_t i = 0; i < lists; i++)
		move_on(g, i);
	for (uint32_t i = 0; i < lists; i++) {
		struct part holes[2];
		const unsigned int n = unpublished(g, i, holes);

		for (unsigned int k = 0; k < n; k++) {
			if (holes[k].begin > at && r == 0)
				r = region_sync_part(g, at, holes[k].begin - at);
			at = holes[k].end;
		}
	}
	if (r == 0)
		r = region_sync_part(g, at, g->map_bytes - at);
	return region_synced(g, r);
}

void region_ahead_free(struct pl_region *g)
{
	free(g->commit.ahead);
	g->commit.ahead = NULL;
}
