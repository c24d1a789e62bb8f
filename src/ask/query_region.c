/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads records from a region's lists, merged by their times. */
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

struct reading {
	struct pl_append lists;
	enum pl_flat_kind kind;
	uint32_t size;
	struct source *sources;
};

static uint64_t time_at(const struct reading *r, const struct source *s)
{
	return pl_flat_time(r->kind, s->records + (size_t)s->at * r->size);
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

/* Returns the list whose next record is the oldest; NULL: there is none. */
static struct source *oldest(const struct reading *r)
{
	struct source *best = NULL;

	for (uint32_t i = 0; i < r->lists.lists; i++) {
		struct source *s = &r->sources[i];

		if (fill(s) && (best == NULL || time_at(r, s) < time_at(r, best)))
			best = s;
	}
	return best;
}

static void read_lists(struct reading *r, const struct pl_query_region *to)
{
	struct source *s;

	while (!to->full(to->arg) && (s = oldest(r)) != NULL) {
		const uint32_t n = r->lists.lists == 1 ? s->n - s->at : 1;

		to->feed(to->arg, r->kind, s->records + (size_t)s->at * r->size, n);
		s->at += n;
	}
}

/* Reports lost entries: the answer lacks them. */
static void tell_lost(const struct reading *r, const char *path)
{
	uint64_t overrun = 0, damaged = 0;

	for (uint32_t i = 0; i < r->lists.lists; i++) {
		overrun += r->sources[i].reader.overrun;
		damaged += r->sources[i].reader.damaged;
	}
	if (overrun > 0)
		pl_complain("%s: %" PRIu64 " records were overwritten while they were read", path,
			overrun);
	if (damaged > 0)
		pl_complain("%s: %" PRIu64 " records are damaged and left out", path, damaged);
}

static int read_region(
	const char *path, const struct pl_region *region, const struct pl_query_region *to)
{
	const struct pl_store_params *p = pl_region_params(region);
	struct pl_region_info info;
	struct reading r = { .kind = (enum pl_flat_kind)(p->content - PL_CONTENT_FLAT) };

	if (p->primitive != PL_APPEND || p->content < PL_CONTENT_FLAT ||
		p->append.entry_bytes != pl_content_bytes(p->content)) {
		pl_complain(
			"%s has no records of packets, flows or DNS messages (pathline region info)",
			path);
		return PL_EXIT_USAGE;
	}
	if (!to->reads(to->arg, r.kind)) {
		pl_query_complain_unread(path, r.kind, to->reads, to->arg);
		return PL_EXIT_USAGE;
	}
	pl_region_get_info(region, &info);
	to->clocks(to->arg, info.clocks);
	r.size = pl_flat(r.kind)->size;
	if (pl_append_init(&r.lists, p, pl_region_store(region, pl_region_epoch(region))) < 0)
		return PL_EXIT_FAILED;
	r.sources = aligned_alloc(64, ((size_t)r.lists.lists * sizeof(*r.sources) + 63) / 64 * 64);
	if (r.sources == NULL) {
		pl_complain("out of memory");
		return PL_EXIT_FAILED;
	}
	for (uint32_t i = 0; i < r.lists.lists; i++) {
		struct source *s = &r.sources[i];

		s->at = s->n = 0;
		s->end = pl_append_head(&r.lists, i);
		pl_append_reader_init(
			&s->reader, &r.lists, i, pl_append_oldest_of(&r.lists, s->end));
	}
	read_lists(&r, to);
	tell_lost(&r, path);
	free(r.sources);
	return 0;
}

int pl_query_read_region(const char *path, const struct pl_query_region *to)
{
	struct pl_diag diag = { .text = "" };
	struct pl_region *region;
	int r = pl_region_open(&region, path, PL_REGION_READ, NULL, &diag);
	int code;

	if (r < 0) {
		pl_complain("%s", diag.text[0] != '\0' ? diag.text : strerror(-r));
		return r == -ENOENT || r == -EACCES ? PL_EXIT_UNAVAILABLE : PL_EXIT_FAILED;
	}
	code = read_region(path, region, to);
	(void)pl_region_close(region);
	return code;
}
