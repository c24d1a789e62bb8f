/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads block records of a region with a cursor for each list. */
#include "marks/region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define LOOK_NS UINT64_C(1000000000)
#define SOME    256u
#define ROUNDS  16u

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_marks_region_stats, __VA_ARGS__)
#include "marks/region_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_marks_region_list = { rows, sizeof(rows) / sizeof(rows[0]) };

static int fits(
	const struct pl_marks_region *r, const struct pl_store_params *p, struct pl_diag *diag)
{
	if (p->primitive == PL_APPEND && p->append.entry_bytes == sizeof(struct pl_mark128) &&
		(p->content == PL_CONTENT_BYTES || p->content == PL_CONTENT_FLAT + PL_FLAT_MARK128))
		return 0;
	return pl_diag_fail(
		diag, -EINVAL, "%s: it has no lists of block records (mark128)", r->path);
}

static int begin_lists(struct pl_marks_region *r, bool first)
{
	free(r->lists);
	r->lists = calloc(r->append.lists, sizeof(*r->lists));
	if (r->lists == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->append.lists; i++)
		pl_append_reader_init(
			&r->lists[i], &r->append, i, first ? pl_append_head(&r->append, i) : 0);
	return 0;
}

/* Opens the region; the cursors keep their positions when it is the same region. */
static int open_region(struct pl_marks_region *r, bool first, struct pl_diag *diag)
{
	struct pl_region_info info;
	uint64_t epoch;
	int e;

	(void)pl_region_guard();
	e = pl_region_open(&r->region, r->path, PL_REGION_READ, NULL, diag);
	if (e < 0) {
		r->region = NULL;
		return e;
	}
	e = fits(r, pl_region_params(r->region), diag);
	epoch = pl_region_epoch(r->region);
	pl_region_get_info(r->region, &info);
	if (e == 0)
		e = pl_append_init(
			&r->append, pl_region_params(r->region), pl_region_store(r->region, epoch));
	if (e == 0 && (r->lists == NULL || r->id != info.id || r->epoch != epoch))
		e = begin_lists(r, first);
	if (e < 0) {
		(void)pl_region_close(r->region);
		r->region = NULL;
		return e;
	}
	r->id = info.id;
	r->epoch = epoch;
	return 0;
}

/* Returns true when the path has another file, or the file was cut. */
static bool lost(const struct pl_marks_region *r)
{
	return pl_region_is_cut(r->region) || !pl_region_is_at(r->region, r->path);
}

static void look(struct pl_marks_region *r, bool first, struct pl_marks_region_stats *stats)
{
	struct pl_diag diag = { .text = "" };
	int e = 0;

	stats->losses += r->region != NULL && lost(r);
	if (r->region != NULL && (lost(r) || pl_region_epoch(r->region) != r->epoch)) {
		(void)pl_region_close(r->region);
		r->region = NULL;
	}
	if (r->region == NULL)
		e = open_region(r, first, &diag);
	if (e < 0 && !r->told)
		pl_warn("marks", "%s: cannot be read, and is looked for: %s", r->path,
			diag.text[0] != '\0' ? diag.text : strerror(-e));
	r->told = e < 0;
}

static bool read_list(struct pl_append_reader *list, struct pl_marks_region_stats *stats,
	pl_marks_region_sink *sink, void *arg)
{
	struct pl_mark128 records[SOME];

	for (unsigned int i = 0; i < ROUNDS; i++) {
		const uint64_t overrun = list->overrun, damaged = list->damaged;
		const size_t n = pl_append_read(list, records, NULL, SOME);

		stats->overrun += list->overrun - overrun;
		stats->damaged += list->damaged - damaged;
		stats->records += n;
		if (n > 0 || list->overrun != overrun || list->damaged != damaged)
			sink(arg, records, (uint32_t)n,
				list->overrun != overrun || list->damaged != damaged);
		if (n < SOME)
			return false;
	}
	return true;
}

bool pl_marks_region_turn(struct pl_marks_region *r, uint64_t now_ns, bool first,
	struct pl_marks_region_stats *stats, pl_marks_region_sink *sink, void *arg)
{
	bool more = false;

	if (first || now_ns - r->look_ns >= LOOK_NS) {
		look(r, first, stats);
		r->look_ns = now_ns;
	}
	stats->unreadable += r->region == NULL;
	for (uint32_t i = 0; r->region != NULL && i < r->append.lists; i++)
		more |= read_list(&r->lists[i], stats, sink, arg);
	return more;
}

void pl_marks_region_close(struct pl_marks_region *r)
{
	(void)pl_region_close(r->region);
	free(r->lists);
	r->region = NULL;
	r->lists = NULL;
}
