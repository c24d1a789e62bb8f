/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads records from the lists of regions, merged by their times. */
#include "ask/query_region.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ask/query_file.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "memory/append.h"
#include "memory/region.h"

#define ROOM 64 /* records of each list that are read ahead */

/* A list, and records of it that were read but not yet given. */
struct source {
	struct pl_append_reader reader;
	uint64_t end; /* the head when reading began */
	uint32_t at, n;
	_Alignas(8) uint8_t records[ROOM * PL_FLAT_BYTES_MAX];
};

/* A region, of which all lists are read. */
struct reading {
	const char *path;
	struct pl_region *region;
	struct pl_append lists;
	enum pl_flat_kind kind;
	uint32_t size;
	struct source *sources;
};

static uint64_t time_at(const struct reading *r, const struct source *s, uint32_t at)
{
	return pl_flat_time(r->kind, s->records + (size_t)at * r->size);
}

static bool fill(struct source *s)
{
	const uint64_t left = s->end > s->reader.cursor ? s->end - s->reader.cursor : 0;

	if (s->at < s->n)
		return true;
	s->at = 0;
	s->n = (uint32_t)pl_append_read(&s->reader, s->records, NULL, left < ROOM ? left : ROOM);
	return s->n > 0;
}

/* Returns the list of all regions whose next record is the oldest, and its region; NULL: there is
 * none. *ret_until: time of the next record of the others. */
static struct source *oldest(
	const struct reading *all, size_t n, const struct reading **ret_of, uint64_t *ret_until)
{
	struct source *best = NULL;
	uint64_t least = UINT64_MAX;

	*ret_until = UINT64_MAX;
	for (size_t k = 0; k < n; k++) {
		for (uint32_t i = 0; i < all[k].lists.lists; i++) {
			struct source *s = &all[k].sources[i];
			uint64_t ts;

			if (!fill(s))
				continue;
			ts = time_at(&all[k], s, s->at);
			if (best != NULL && ts >= least) {
				*ret_until = ts < *ret_until ? ts : *ret_until;
				continue;
			}
			*ret_until = best != NULL ? least : *ret_until;
			best = s;
			least = ts;
			*ret_of = &all[k];
		}
	}
	return best;
}

static void read_lists(const struct reading *all, size_t n, const struct pl_query_region *to)
{
	const struct reading *r = NULL;
	struct source *s;
	uint64_t until;

	while (!to->full(to->arg) && (s = oldest(all, n, &r, &until)) != NULL) {
		uint32_t some = 1;

		while (s->at + some < s->n && time_at(r, s, s->at + some) < until)
			some++;
		to->feed(to->arg, r->kind, s->records + (size_t)s->at * r->size, some);
		s->at += some;
	}
}

/* Reports lost entries: the answer lacks them. */
static void tell_lost(const struct reading *r)
{
	uint64_t overrun = 0, damaged = 0;

	for (uint32_t i = 0; i < r->lists.lists; i++) {
		overrun += r->sources[i].reader.overrun;
		damaged += r->sources[i].reader.damaged;
	}
	if (overrun > 0)
		pl_complain("%s: %" PRIu64 " records were overwritten while they were read",
			r->path, overrun);
	if (damaged > 0)
		pl_complain("%s: %" PRIu64 " records are damaged and left out", r->path, damaged);
}

/* Begins to read the lists of an open region. Returns 0, or prints the error and returns an exit
 * code. */
static int begin(struct reading *r, const struct pl_query_region *to)
{
	const struct pl_store_params *p = pl_region_params(r->region);
	struct pl_region_info info;

	r->kind = (enum pl_flat_kind)(p->content - PL_CONTENT_FLAT);
	if (p->primitive != PL_APPEND || p->content < PL_CONTENT_FLAT ||
		p->append.entry_bytes != pl_content_bytes(p->content))
		return pl_fail(PL_EXIT_USAGE,
			"%s has no records of packets, flows or DNS messages (pathline region info)",
			r->path);
	if (!to->reads(to->arg, r->kind)) {
		pl_query_complain_unread(r->path, r->kind, to->reads, to->arg);
		return PL_EXIT_USAGE;
	}
	pl_region_get_info(r->region, &info);
	to->clocks(to->arg, info.clocks);
	r->size = pl_flat(r->kind)->size;
	if (pl_append_init(&r->lists, p, pl_region_store(r->region, pl_region_epoch(r->region))) <
		0)
		return PL_EXIT_FAILED;
	r->sources =
		aligned_alloc(64, ((size_t)r->lists.lists * sizeof(*r->sources) + 63) / 64 * 64);
	if (r->sources == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	for (uint32_t i = 0; i < r->lists.lists; i++) {
		struct source *s = &r->sources[i];

		s->at = s->n = 0;
		s->end = pl_append_head(&r->lists, i);
		pl_append_reader_init(
			&s->reader, &r->lists, i, pl_append_oldest_of(&r->lists, s->end));
	}
	return 0;
}

static int open_region(struct reading *r, const char *path, const struct pl_query_region *to)
{
	struct pl_diag diag = { .text = "" };
	int e;

	r->path = path;
	e = pl_region_open(&r->region, path, PL_REGION_READ, NULL, &diag);
	if (e == 0)
		return begin(r, to);
	r->region = NULL;
	pl_complain("%s", diag.text[0] != '\0' ? diag.text : strerror(-e));
	return e == -ENOENT || e == -EACCES ? PL_EXIT_UNAVAILABLE : PL_EXIT_FAILED;
}

int pl_query_read_regions(const char *const *sources, size_t n, const struct pl_query_region *to)
{
	struct reading *all = calloc(n, sizeof(*all));
	int code = 0;

	if (all == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	for (size_t k = 0; k < n && code == 0; k++)
		code = open_region(&all[k], sources[k] + strlen(PL_QUERY_REGION), to);
	if (code == 0)
		read_lists(all, n, to);
	for (size_t k = 0; k < n; k++) {
		if (code == 0)
			tell_lost(&all[k]);
		free(all[k].sources);
		if (all[k].region != NULL)
			(void)pl_region_close(all[k].region);
	}
	free(all);
	return code;
}
