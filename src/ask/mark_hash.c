/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares packets that a hash chose. A packet of a block at one point may be in the block before
 * or behind it at another point, and has no mark that shows which. So the samples of a block are
 * searched in three blocks, with the largest number of hash bits of all of them: then each point
 * has kept every chosen packet, and one that is not found was lost, or took longer than a period.
 */
#include "ask/mark_hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/mark_capture.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/num.h"
#include "show/row_cells.h"
#include "show/row_out.h"

/* ---- rows ---- */

#define COLUMN_LIST(COLUMN)                                                                        \
	COLUMN(TS, "ts_ns", 19, true, true, false)                                                 \
	COLUMN(BLOCK, "block", 10, true, false, false)                                             \
	COLUMN(SRC, "src", -15, false, false, false)                                               \
	COLUMN(SPORT, "sport", 5, true, false, false)                                              \
	COLUMN(DST, "dst", -15, false, false, false)                                               \
	COLUMN(DPORT, "dport", 5, true, false, false)                                              \
	COLUMN(PROTO, "proto", 5, true, true, false)                                               \
	COLUMN(FROM, "from", -8, false, false, false)                                              \
	COLUMN(TO, "to", -8, false, false, false)                                                  \
	COLUMN(BITS, "bits", 4, true, false, false)                                                \
	COLUMN(SAMPLED, "sampled", 7, true, false, false)                                          \
	COLUMN(MATCHED, "matched", 7, true, false, false)                                          \
	COLUMN(LOST, "lost", 6, true, false, false)                                                \
	COLUMN(DOUBLES, "doubles", 7, true, true, false)                                           \
	COLUMN(LEAST, "least_ns", 9, true, false, false)                                           \
	COLUMN(MEAN, "mean_ns", 9, true, false, false)                                             \
	COLUMN(MEDIAN, "median_ns", 9, true, true, false)                                          \
	COLUMN(MOST, "most_ns", 9, true, false, false)                                             \
	COLUMN(ALARMS, "alarms", -8, false, false, false)

PL_COLUMNS(COLUMN_LIST);

struct comparing {
	const struct pl_mark_hash_question *q;
	struct pl_row_out out;
	struct pl_mark_chooser chooser;
	struct {
		uint64_t sampled, matched, lost;
	} totals[PL_MARK_SEGMENTS_MAX / 2];
};

struct row {
	struct pl_row_cells cells;
	struct pl_buf from, to;
};

static void put_delays(struct row *row, const struct pl_mark_chosen *c)
{
	if (c->matched.matched == 0)
		return;
	pl_row_cells_s64(&row->cells, LEAST, c->least_ns);
	pl_row_cells_s64(&row->cells, MEAN, c->mean_ns);
	pl_row_cells_s64(&row->cells, MEDIAN, c->median_ns);
	pl_row_cells_s64(&row->cells, MOST, c->most_ns);
}

static void print_row(struct comparing *c, uint32_t segment, const struct pl_mark_hashes_key *set,
	const struct pl_mark_chosen *chosen, bool partial)
{
	const struct pl_mark_matched *m = &chosen->matched;
	const struct pl_mark_hash_question *q = c->q;
	const struct pl_mark_segment *s = &q->segments[segment];
	struct row row = { .cells = { .values = { NULL } } };

	c->totals[segment].sampled += m->sampled;
	c->totals[segment].matched += m->matched;
	c->totals[segment].lost += m->lost;
	pl_buf_init(&row.from);
	pl_buf_init(&row.to);
	pl_row_cells_s64(&row.cells, TS,
		(int64_t)(set->block * q->period_ns - q->tai_offset * UINT64_C(1000000000)));
	pl_row_cells_s64(&row.cells, BLOCK, (int64_t)set->block);
	pl_row_cells_addr(&row.cells, SRC, &set->flow.src);
	pl_row_cells_addr(&row.cells, DST, &set->flow.dst);
	pl_row_cells_s64(&row.cells, SPORT, set->flow.sport);
	pl_row_cells_s64(&row.cells, DPORT, set->flow.dport);
	pl_row_cells_s64(&row.cells, PROTO, set->flow.proto);
	pl_mark_names_put(&row.from, q->captures, s->from, s->n_from);
	pl_mark_names_put(&row.to, q->captures, s->to, s->n_to);
	row.cells.values[FROM] = row.from.data;
	row.cells.values[TO] = row.to.data;
	pl_row_cells_s64(&row.cells, BITS, m->bits);
	pl_row_cells_s64(&row.cells, SAMPLED, m->sampled);
	pl_row_cells_s64(&row.cells, MATCHED, m->matched);
	/* No loss is known for a block that a capture has only a part of. */
	if (!partial)
		pl_row_cells_s64(&row.cells, LOST, m->lost);
	pl_row_cells_s64(&row.cells, DOUBLES, m->doubles);
	put_delays(&row, chosen);
	if (partial)
		row.cells.values[ALARMS] = "partial";
	pl_row_out_add(&c->out, row.cells.values);
	pl_row_out_write(&c->out);
	pl_buf_done(&row.from);
	pl_buf_done(&row.to);
}

/* ---- comparison ---- */

static bool compare_set(struct comparing *c, uint32_t segment, const struct pl_mark_hashes_key *set)
{
	const struct pl_mark_segment *s = &c->q->segments[segment];
	struct pl_mark_chosen chosen;

	if (!pl_mark_choose(&c->chooser, &chosen, c->q->captures, s, set, 1))
		return false;
	/* Packets of the block may come in the next one, so that must be there, too. */
	print_row(c, segment, set, &chosen,
		!pl_mark_captures_cover(c->q->captures, s->from, s->n_from, set->block) ||
			!pl_mark_captures_cover(c->q->captures, s->to, s->n_to, set->block) ||
			!pl_mark_captures_cover(c->q->captures, s->to, s->n_to, set->block + 1));
	return true;
}

static int compare_sets(const void *left, const void *right)
{
	const struct pl_mark_hashes_key *a = left, *b = right;

	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	return memcmp(&a->flow, &b->flow, sizeof(a->flow));
}

/* Compares each flow and block that a point at the segment's beginning has, once. */
static bool compare_segment(struct comparing *c, uint32_t segment)
{
	const struct pl_mark_segment *s = &c->q->segments[segment];
	struct pl_mark_hashes_key *sets;
	size_t n = 0;
	bool good = true;

	for (uint32_t i = 0; i < s->n_from; i++)
		n += pl_mark_hashes_count(c->q->captures[s->from[i] - 1].hashes);
	sets = calloc(n + 1, sizeof(*sets));
	if (sets == NULL)
		return false;
	n = 0;
	for (uint32_t i = 0; i < s->n_from; i++) {
		const struct pl_mark_hashes *h = c->q->captures[s->from[i] - 1].hashes;

		for (uint32_t k = 0; k < pl_mark_hashes_count(h); k++)
			sets[n++] = pl_mark_hashes_key(h, k);
	}
	qsort(sets, n, sizeof(*sets), compare_sets);
	for (size_t i = 0; i < n && good && !pl_row_out_full(&c->out); i++) {
		if (i == 0 || compare_sets(&sets[i - 1], &sets[i]) != 0)
			good = compare_set(c, segment, &sets[i]);
	}
	free(sets);
	return good;
}

static void tell(const struct comparing *c)
{
	struct pl_buf names;

	for (uint32_t i = 0; i < c->q->n_segments; i++) {
		const struct pl_mark_segment *s = &c->q->segments[i];

		pl_buf_init(&names);
		pl_mark_names_put(&names, c->q->captures, s->from, s->n_from);
		pl_buf_str(&names, " to ");
		pl_mark_names_put(&names, c->q->captures, s->to, s->n_to);
		fprintf(stderr,
			"%s: of %" PRIu64 " chosen packets %" PRIu64 " came and %" PRIu64
			" were not found\n",
			names.data != NULL ? names.data : "", c->totals[i].sampled,
			c->totals[i].matched, c->totals[i].lost);
		pl_buf_done(&names);
	}
}

int pl_mark_hash_print(const struct pl_mark_hash_question *q)
{
	struct comparing *c = calloc(1, sizeof(*c));
	bool good = c != NULL;
	uint64_t sampled = 0;

	if (good) {
		c->q = q;
		pl_row_out_init(&c->out, q->form, columns, COLUMNS);
		for (uint32_t i = 0; i < q->n_segments && good; i++) {
			good = compare_segment(c, i);
			sampled += c->totals[i].sampled;
		}
	}
	if (!good)
		pl_complain("out of memory for the samples");
	if (c != NULL && c->q != NULL) {
		good = pl_row_out_end(&c->out) && good;
		tell(c);
	}
	if (c != NULL)
		pl_mark_chooser_done(&c->chooser);
	free(c);
	return !good ? PL_EXIT_FAILED : sampled == 0 ? PL_EXIT_NOTHING : PL_EXIT_OK;
}
