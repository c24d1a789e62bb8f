/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet that a point chose in a block may have been in the block before or behind it at another
 * point: there is no mark that says which. So the samples of a block are looked for in three, of all
 * of which the largest number of bits counts: then each point has kept every packet that is chosen,
 * and one that is not found was lost, or took longer than a period.
 */
#include "ask/mark_hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/mark_capture.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/hash.h"
#include "base/num.h"
#include "mark/select.h"
#include "show/row_cells.h"
#include "show/row_out.h"

#define SETS_MAX (UINT32_C(1) << 20) /* flows' blocks of a point */
#define PLACES   (2 * SETS_MAX)

struct set {
	struct pl_mark_flow flow;
	uint64_t block;
	uint32_t capacity; /* of its samples, which are on the heap */
	struct pl_mark_samples samples;
};

struct pl_mark_hashes {
	uint32_t room, n, capacity;
	uint64_t seed;
	struct set *sets;
	uint32_t *places; /* hash table: place in sets and 1; 0: empty */
};

/* ---- what a point chose ---- */

struct pl_mark_hashes *pl_mark_hashes_new(uint32_t room)
{
	struct pl_mark_hashes *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->room = room;
	h->seed = pl_hash_seed();
	h->places = calloc(PLACES, sizeof(*h->places));
	if (h->places != NULL)
		return h;
	free(h);
	return NULL;
}

void pl_mark_hashes_free(struct pl_mark_hashes *h)
{
	if (h == NULL)
		return;
	for (uint32_t i = 0; i < h->n; i++)
		free(h->sets[i].samples.samples);
	free(h->sets);
	free(h->places);
	free(h);
}

/* Where it is, or would be. The table is never full. */
static uint32_t *place_of(
	const struct pl_mark_hashes *h, const struct pl_mark_flow *flow, uint64_t block)
{
	uint32_t i = (uint32_t)pl_hash_mix(pl_hash(flow, sizeof(*flow), h->seed), block) % PLACES;

	while (h->places[i] != 0) {
		const struct set *s = &h->sets[h->places[i] - 1];

		if (s->block == block && memcmp(&s->flow, flow, sizeof(*flow)) == 0)
			break;
		i = (i + 1) % PLACES;
	}
	return &h->places[i];
}

static const struct set *find(
	const struct pl_mark_hashes *h, const struct pl_mark_flow *flow, uint64_t block)
{
	const uint32_t place = *place_of(h, flow, block);

	return place != 0 ? &h->sets[place - 1] : NULL;
}

static struct set *add_set(
	struct pl_mark_hashes *h, const struct pl_mark_flow *flow, uint64_t block, uint32_t *place)
{
	if (h->n == SETS_MAX)
		return NULL;
	if (h->n == h->capacity) {
		const uint32_t capacity = h->capacity == 0 ? 256 : 2 * h->capacity;
		struct set *more = realloc(h->sets, capacity * sizeof(*more));

		if (more == NULL)
			return NULL;
		h->sets = more;
		h->capacity = capacity;
	}
	h->sets[h->n] = (struct set){ .flow = *flow, .block = block };
	pl_mark_samples_init(&h->sets[h->n].samples, NULL, h->room);
	*place = ++h->n;
	return &h->sets[h->n - 1];
}

bool pl_mark_hashes_add(struct pl_mark_hashes *h, const struct pl_mark_flow *flow, uint64_t block,
	uint32_t hash, uint64_t time_ns)
{
	uint32_t *place = place_of(h, flow, block);
	struct set *s = *place != 0 ? &h->sets[*place - 1] : add_set(h, flow, block, place);

	if (s == NULL)
		return false;
	if (s->samples.n == s->capacity && s->capacity < h->room) {
		const uint32_t capacity = s->capacity == 0 ? 8 : 2 * s->capacity;
		struct pl_mark_sample *more = realloc(s->samples.samples, capacity * sizeof(*more));

		if (more == NULL)
			return false;
		s->samples.samples = more;
		s->capacity = capacity;
	}
	pl_mark_samples_add(&s->samples, hash, time_ns);
	return true;
}

/* ---- rows ---- */

enum column {
	TS,
	BLOCK,
	SRC,
	SPORT,
	DST,
	DPORT,
	PROTO,
	FROM,
	TO,
	BITS,
	SAMPLED,
	MATCHED,
	LOST,
	DOUBLES,
	LEAST,
	MEAN,
	MEDIAN,
	MOST,
	ALARMS,
	COLUMNS,
};

_Static_assert(COLUMNS <= PL_ROW_CELLS_MAX, "a row has room for its columns");

static const struct pl_column columns[COLUMNS] = {
	[TS] = { "ts_ns", 19, true, true, false },
	[BLOCK] = { "block", 10, true, false, false },
	[SRC] = { "src", -15, false, false, false },
	[SPORT] = { "sport", 5, true, false, false },
	[DST] = { "dst", -15, false, false, false },
	[DPORT] = { "dport", 5, true, false, false },
	[PROTO] = { "proto", 5, true, true, false },
	[FROM] = { "from", -8, false, false, false },
	[TO] = { "to", -8, false, false, false },
	[BITS] = { "bits", 4, true, false, false },
	[SAMPLED] = { "sampled", 7, true, false, false },
	[MATCHED] = { "matched", 7, true, false, false },
	[LOST] = { "lost", 6, true, false, false },
	[DOUBLES] = { "doubles", 7, true, true, false },
	[LEAST] = { "least_ns", 9, true, false, false },
	[MEAN] = { "mean_ns", 9, true, false, false },
	[MEDIAN] = { "median_ns", 9, true, true, false },
	[MOST] = { "most_ns", 9, true, false, false },
	[ALARMS] = { "alarms", -8, false, false, false },
};

struct comparing {
	const struct pl_mark_hash_question *q;
	struct pl_row_out out;
	struct pl_mark_samples from, to; /* of one comparison */
	size_t room;                     /* of both, and of delays */
	int64_t *delays;
	struct {
		uint64_t sampled, matched, lost;
	} totals[PL_MARK_LINKS_MAX + 1];
};

struct row {
	struct pl_row_cells cells;
	struct pl_buf from, to;
};

static void put_names(struct pl_buf *out, const struct pl_mark_hash_question *q,
	const uint32_t *points, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		pl_buf_printf(out, "%s%s", i > 0 ? "+" : "", q->captures[points[i] - 1].name);
}

static void put_delays(struct row *row, const int64_t *ns, uint32_t n)
{
	__int128 sum = 0;

	if (n == 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		sum += ns[i];
	pl_row_cells_s64(&row->cells, LEAST, ns[0]);
	pl_row_cells_s64(&row->cells, MEAN, (int64_t)(sum / n));
	pl_row_cells_s64(&row->cells, MEDIAN, ns[(n - 1) / 2]);
	pl_row_cells_s64(&row->cells, MOST, ns[n - 1]);
}

static void print_row(struct comparing *c, uint32_t segment, const struct set *set,
	const struct pl_mark_matched *m, bool partial)
{
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
	put_names(&row.from, q, s->from, s->n_from);
	put_names(&row.to, q, s->to, s->n_to);
	row.cells.values[FROM] = row.from.data;
	row.cells.values[TO] = row.to.data;
	pl_row_cells_s64(&row.cells, BITS, m->bits);
	pl_row_cells_s64(&row.cells, SAMPLED, m->sampled);
	pl_row_cells_s64(&row.cells, MATCHED, m->matched);
	/* Of a block that a capture has a part of nothing is known to be lost. */
	if (!partial)
		pl_row_cells_s64(&row.cells, LOST, m->lost);
	pl_row_cells_s64(&row.cells, DOUBLES, m->doubles);
	put_delays(&row, c->delays, m->matched);
	if (partial)
		row.cells.values[ALARMS] = "partial";
	pl_row_out_add(&c->out, row.cells.values);
	pl_row_out_write(&c->out);
	pl_buf_done(&row.from);
	pl_buf_done(&row.to);
}

/* ---- comparison ---- */

static bool grow(void **array, size_t bytes)
{
	void *more = realloc(*array, bytes);

	if (more == NULL)
		return false;
	*array = more;
	return true;
}

static bool make_room(struct comparing *c, size_t n)
{
	const size_t bytes = n * sizeof(struct pl_mark_sample);
	void *from = c->from.samples, *to = c->to.samples, *delays = c->delays;
	bool grown;

	if (n <= c->room)
		return true;
	grown = grow(&from, bytes) && grow(&to, bytes) && grow(&delays, n * sizeof(*c->delays));
	c->from.samples = from;
	c->to.samples = to;
	c->delays = delays;
	if (grown)
		c->room = n;
	return grown;
}

static bool gather(struct comparing *c, struct pl_mark_samples *to, const struct set *set)
{
	if (set == NULL || set->samples.n == 0) {
		to->bits =
			set != NULL && set->samples.bits > to->bits ? set->samples.bits : to->bits;
		return true;
	}
	if (!make_room(c, (size_t)to->n + set->samples.n))
		return false;
	memcpy(&to->samples[to->n], set->samples.samples,
		set->samples.n * sizeof(*set->samples.samples));
	to->n += set->samples.n;
	to->bits = set->samples.bits > to->bits ? set->samples.bits : to->bits;
	return true;
}

static bool compare_set(struct comparing *c, uint32_t segment, const struct set *set)
{
	const struct pl_mark_segment *s = &c->q->segments[segment];
	struct pl_mark_matched m;
	bool partial = false, good = true;

	c->from.n = c->to.n = c->from.bits = c->to.bits = 0;
	for (uint32_t i = 0; i < s->n_from && good; i++) {
		const struct pl_mark_capture *at = &c->q->captures[s->from[i] - 1];

		good = gather(c, &c->from, find(at->hashes, &set->flow, set->block));
		partial |= !pl_mark_capture_covers(at, set->block);
	}
	for (uint32_t i = 0; i < s->n_to && good; i++) {
		const struct pl_mark_capture *at = &c->q->captures[s->to[i] - 1];

		for (uint64_t k = set->block - 1; k <= set->block + 1 && good; k++)
			good = gather(c, &c->to, find(at->hashes, &set->flow, k));
		partial |= !pl_mark_capture_covers(at, set->block);
	}
	if (!good)
		return false;
	pl_mark_samples_match(&m, c->delays, &c->from, &c->to);
	print_row(c, segment, set, &m, partial);
	return true;
}

static int compare_sets(const void *left, const void *right)
{
	const struct set *const *a = left, *const *b = right;

	if ((*a)->block != (*b)->block)
		return (*a)->block < (*b)->block ? -1 : 1;
	return memcmp(&(*a)->flow, &(*b)->flow, sizeof((*a)->flow));
}

/* Each flow and block that a point of the segment's beginning has, once. */
static bool compare_segment(struct comparing *c, uint32_t segment)
{
	const struct pl_mark_segment *s = &c->q->segments[segment];
	const struct set **sets;
	size_t n = 0;
	bool good = true;

	for (uint32_t i = 0; i < s->n_from; i++)
		n += c->q->captures[s->from[i] - 1].hashes->n;
	sets = calloc(n + 1, sizeof(const void *));
	if (sets == NULL)
		return false;
	n = 0;
	for (uint32_t i = 0; i < s->n_from; i++) {
		const struct pl_mark_hashes *h = c->q->captures[s->from[i] - 1].hashes;

		for (uint32_t k = 0; k < h->n; k++)
			sets[n++] = &h->sets[k];
	}
	qsort(sets, n, sizeof(const void *), compare_sets);
	for (size_t i = 0; i < n && good && !pl_row_out_full(&c->out); i++) {
		if (i == 0 || compare_sets(&sets[i - 1], &sets[i]) != 0)
			good = compare_set(c, segment, sets[i]);
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
		put_names(&names, c->q, s->from, s->n_from);
		pl_buf_str(&names, " to ");
		put_names(&names, c->q, s->to, s->n_to);
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
	bool good = c != NULL && make_room(c, 256);
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
	if (c != NULL) {
		free(c->from.samples);
		free(c->to.samples);
		free(c->delays);
	}
	free(c);
	return !good ? PL_EXIT_FAILED : sampled == 0 ? PL_EXIT_NOTHING : PL_EXIT_OK;
}
