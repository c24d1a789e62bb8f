/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes groups of a window as bytes, and reads them. */
#include "query/partial.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "query/origin.h"
#include "query/serial.h"

#define MAGIC       0x50514c50u /* "PLQP" */
#define INCOMPLETE  1u
#define MORE        0x8000u /* bit of the number of points: there are others */
#define ORIGIN_MOST (8u + 2u + 2u * PL_QUERY_EXP_MAX)
#define SET_PART    4096 /* largest number of values of a distinct set in one entry of a group */
#define SET_LEAST   16   /* least number of them, when there are as many */

struct head {
	uint32_t magic;
	uint16_t version, stage;
	uint64_t plan;
	int64_t start, end;
	uint32_t flags, groups;
	uint64_t late;
};

uint64_t pl_query_plan_hash(const struct pl_query *query)
{
	struct pl_buf plan;
	uint64_t hash;

	pl_buf_init(&plan);
	pl_query_explain(query, &plan);
	hash = pl_hash(plan.data, plan.len, PL_QUERY_PARTIAL_VERSION);
	pl_buf_done(&plan);
	return hash;
}

/* ---- groups out ---- */

struct giving {
	struct pl_query_run *run;
	const struct stage_run *s;
	struct pl_buf out;
	struct head head;
	uint32_t next[PL_QUERY_COLUMNS_MAX]; /* next value of each distinct set; + 1 */
	uint32_t set_part, entry_most;       /* values of a set in an entry, bytes of an entry */
	bool told_lost;                      /* a piece said that groups are lost */
};

void pl_query_partial_limit(struct pl_query_run *run, uint32_t bytes)
{
	run->piece_max = bytes;
}

static void begin(struct giving *g)
{
	const struct pl_query_run *run = g->run;

	g->head = (struct head){ .magic = MAGIC,
		.version = PL_QUERY_PARTIAL_VERSION,
		.stage = (uint16_t)g->s->stage->number,
		.plan = run->plan,
		.start = run->row.start_ns,
		.end = run->row.end_ns };
	pl_buf_reset(&g->out);
	pl_buf_add(&g->out, &g->head, sizeof(g->head));
}

/* Without memory the groups of the piece are lost. A piece without groups, which needs no memory,
 * reports the loss, as do the pieces behind it. */
static void give(struct giving *g)
{
	const bool lost = g->out.failed;

	if (lost) {
		g->run->stats.groups_refused += g->head.groups;
		g->head.groups = 0;
		g->run->row.incomplete = true;
		if (g->told_lost)
			return;
		g->told_lost = true;
	}
	g->head.flags = g->run->row.incomplete ? INCOMPLETE : 0;
	/* Only one of the pieces reports the late records. */
	g->head.late = late_since(g->run);
	g->run->late_told = g->run->stats.late;
	if (!lost)
		memcpy(g->out.data, &g->head, sizeof(g->head));
	g->run->partial(g->run->partial_arg, g->head.start, g->head.end,
		lost ? (const void *)&g->head : g->out.data, lost ? sizeof(g->head) : g->out.len);
}

static uint32_t set_width(const struct agg *agg)
{
	uint32_t n = 0;

	for (uint32_t a = 0; a < agg->n_args; a++)
		n += cell_width(agg->args[a]->type);
	return n;
}

/* Bytes of an entry without values of sets; *ret_set_bytes is the size of one value of each set. */
static uint32_t entry_bytes(const struct stage *stage, uint32_t *ret_set_bytes)
{
	uint32_t sum = 4 + ORIGIN_MOST;

	*ret_set_bytes = 0;
	for (uint32_t i = 0; i < stage->n_keys; i++)
		sum += stage->keys[i].width;
	for (uint32_t i = 0; i < stage->n_aggs; i++) {
		const struct agg *agg = &stage->aggs[i];

		if (agg->kind == AGG_COUNT_DISTINCT) {
			*ret_set_bytes += set_width(agg);
			sum += 4;
		} else {
			sum += pl_query_serial_most(agg);
		}
	}
	return sum;
}

uint32_t pl_query_partial_least(const struct pl_query *query)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < query->n_stages; i++) {
		const struct stage *stage = query->stages[i];
		uint32_t set_bytes, bytes;

		if (stage->n_sources > 0 || !stage->grouped)
			continue;
		bytes = entry_bytes(stage, &set_bytes);
		bytes += SET_LEAST * set_bytes;
		most = bytes > most ? bytes : most;
	}
	return (uint32_t)sizeof(struct head) + most;
}

/* Plans the room of sets: the part of a piece that other values of an entry leave. */
static void plan_entries(struct giving *g)
{
	uint32_t set_bytes, left = g->run->piece_max - (uint32_t)sizeof(g->head);

	g->entry_most = entry_bytes(g->s->stage, &set_bytes);
	g->set_part = SET_PART;
	if (set_bytes > 0) {
		left = left > g->entry_most ? (left - g->entry_most) / set_bytes : 0;
		g->set_part = left < SET_LEAST ? SET_LEAST : left < SET_PART ? left : SET_PART;
	}
	g->entry_most += g->set_part * set_bytes;
}

/* Writes up to set_part of the remaining values. */
static void put_set(struct giving *g, const struct agg *agg, uint32_t *next)
{
	const size_t at = g->out.len;
	uint32_t n = 0;

	pl_buf_add(&g->out, &n, sizeof(n));
	while (*next != 0 && n < g->set_part) {
		const uint8_t *values = pl_query_distinct_walk(g->s, agg, next);

		pl_buf_add(&g->out, values, set_width(agg));
		n++;
	}
	if (!g->out.failed)
		memcpy(g->out.data + at, &n, sizeof(n));
}

/* Writes the earliest time, and the points in the order of their numbers. */
static void put_origin(struct giving *g, uint32_t entry)
{
	const struct row_origin o = pl_query_origin_of(g->run, g->s, entry);
	struct pl_query_row row;
	uint8_t head[ROW_HEAD] = { 0 };
	uint16_t n;

	row_set_origin(head, o);
	pl_query_origin_tell(g->run, &row, head);
	n = (uint16_t)(row.n_exp | (row.exp_more ? MORE : 0));
	pl_buf_add(&g->out, &o.first_ns, sizeof(o.first_ns));
	pl_buf_add(&g->out, &n, sizeof(n));
	pl_buf_add(&g->out, row.exp, row.n_exp * sizeof(row.exp[0]));
}

/* Writes a group, or more of its sets. Returns true when there is still more. */
static bool put_group(struct giving *g, uint32_t entry, const uint8_t *accs)
{
	const struct stage *stage = g->s->stage;
	const uint8_t *key = table_at(&g->s->groups.table, entry);
	bool more = false;

	pl_buf_add(&g->out, key + 4, 4);
	for (uint32_t i = 0; i < stage->n_keys; i++)
		pl_buf_add(&g->out, key + stage->keys[i].offset, stage->keys[i].width);
	put_origin(g, entry);
	for (uint32_t i = 0; i < stage->n_aggs; i++) {
		const struct agg *agg = &stage->aggs[i];

		if (agg->kind == AGG_COUNT_DISTINCT)
			put_set(g, agg, &g->next[i]);
		else
			pl_query_serial_put(&g->out, agg, accs + agg->offset);
		more = more || g->next[i] != 0;
	}
	g->head.groups++;
	return more;
}

/* Gives the piece when another entry may not fit. */
static void make_room(struct giving *g)
{
	if (!g->out.failed &&
		(g->head.groups == 0 || g->out.len + g->entry_most <= g->run->piece_max))
		return;
	give(g);
	begin(g);
}

static void give_group(struct giving *g, uint32_t entry)
{
	const struct stage *stage = g->s->stage;
	const uint8_t *accs = table_at(&g->s->groups.table, entry) + g->s->groups.acc_offset;

	memset(g->next, 0, sizeof(g->next));
	for (uint32_t i = 0; i < stage->n_aggs; i++) {
		if (stage->aggs[i].kind == AGG_COUNT_DISTINCT)
			g->next[i] = pl_query_distinct_first(g->s, &stage->aggs[i], entry);
	}
	make_room(g);
	while (put_group(g, entry, accs)) {
		memset(g->run->acc, 0, stage->acc_bytes);
		accs = g->run->acc;
		give(g);
		begin(g);
	}
}

static void give_groups(struct pl_query_run *run, const struct stage_run *s, uint32_t first)
{
	struct giving g = { .run = run, .s = s };

	pl_buf_init(&g.out);
	plan_entries(&g);
	begin(&g);
	for (uint32_t at = first; at != 0; at = pl_query_groups_next(s, at))
		give_group(&g, at - 1);
	if (g.head.groups > 0 || (first == 0 && run->row.incomplete))
		give(&g);
	pl_buf_done(&g.out);
}

void pl_query_partial_from(struct pl_query_run *run, pl_query_partial_sink *sink, void *arg)
{
	run->partial = sink;
	run->partial_arg = arg;
	run->give_partial = give_groups;
	run->plan = pl_query_plan_hash(run->query);
	run->piece_max = PL_QUERY_PARTIAL_PIECE;
}

/* ---- bytes in ---- */

static bool get_head(
	const struct pl_query *query, uint64_t plan, struct pl_cursor *in, struct head *ret)
{
	const uint8_t *p = pl_cursor_take(in, sizeof(*ret));

	if (p == NULL)
		return false;
	memcpy(ret, p, sizeof(*ret));
	return ret->magic == MAGIC && ret->version == PL_QUERY_PARTIAL_VERSION &&
	       ret->plan == plan && ret->stage < query->n_stages &&
	       query->stages[ret->stage]->n_sources == 0 && query->stages[ret->stage]->grouped &&
	       ret->flags <= INCOMPLETE && ret->start < ret->end && ret->end >= 0 &&
	       (uint64_t)ret->end - (uint64_t)ret->start == query->window.size_ns &&
	       ret->start % (int64_t)query->window.step_ns == 0;
}

int pl_query_partial_check(const struct pl_query *query, const void *data, size_t len,
	int64_t *ret_start, int64_t *ret_end)
{
	struct pl_cursor in = pl_cursor(data, len);
	struct head head;

	if (!get_head(query, pl_query_plan_hash(query), &in, &head))
		return -EBADMSG;
	*ret_start = head.start;
	*ret_end = head.end;
	return 0;
}

static bool key_is_good(const struct key *key, bool absent, const uint8_t *value)
{
	uint8_t bytes[16] = { 0 };

	memcpy(bytes, value, key->width);
	if (absent) {
		for (uint32_t i = 0; i < key->width; i++) {
			if (bytes[i] != 0)
				return false;
		}
	}
	return pl_query_serial_value(key->node->type, bytes);
}

static bool get_key(struct pl_query_run *run, const struct stage *stage, struct pl_cursor *in)
{
	const uint32_t slot = run->windows.max; /* slot of joined panes */
	const uint8_t *p = pl_cursor_take(in, 4);
	uint32_t absent;

	if (p == NULL)
		return false;
	memcpy(&absent, p, sizeof(absent));
	if (stage->n_keys < 32 && absent >> stage->n_keys != 0)
		return false;
	memset(run->keys, 0, stage->key_bytes);
	memcpy(run->keys, &slot, sizeof(slot));
	memcpy(run->keys + 4, &absent, sizeof(absent));
	for (uint32_t i = 0; i < stage->n_keys; i++) {
		p = pl_cursor_take(in, stage->keys[i].width);
		if (p == NULL || !key_is_good(&stage->keys[i], absent >> i & 1, p))
			return false;
		memcpy(run->keys + stage->keys[i].offset, p, stage->keys[i].width);
	}
	return true;
}

static bool set_is_good(const struct agg *agg, const uint8_t *values)
{
	for (uint32_t a = 0; a < agg->n_args; a++) {
		if (!pl_query_serial_value(agg->args[a]->type, values))
			return false;
		values += cell_width(agg->args[a]->type);
	}
	return true;
}

/* Reads a set and adds its values to the entry; TABLE_NONE: only checks them. */
static bool get_set(struct pl_query_run *run, struct stage_run *s, const struct agg *agg,
	struct pl_cursor *in, uint32_t entry)
{
	const uint8_t *p = pl_cursor_take(in, 4);
	uint32_t n;

	if (p == NULL)
		return false;
	memcpy(&n, p, sizeof(n));
	for (uint32_t i = 0; i < n; i++) {
		p = pl_cursor_take(in, set_width(agg));
		if (p == NULL || !set_is_good(agg, p))
			return false;
		if (entry != TABLE_NONE)
			pl_query_distinct_enter(run, s, agg, entry, p);
	}
	return true;
}

/* Reads an origin. take: its points get bits of the run; else they are only checked. */
static bool get_origin(
	struct pl_query_run *run, struct pl_cursor *in, bool take, struct row_origin *ret)
{
	const uint8_t *p = pl_cursor_take(in, 8);
	int32_t before = -1;
	uint16_t n, point;

	*ret = (struct row_origin){ .first_ns = PL_QUERY_NO_TIME };
	if (p == NULL)
		return false;
	memcpy(&ret->first_ns, p, 8);
	p = pl_cursor_take(in, 2);
	if (p == NULL)
		return false;
	memcpy(&n, p, sizeof(n));
	if ((n & MORE) != 0)
		ret->exp = PL_QUERY_EXP_OTHERS;
	n &= (uint16_t)~MORE;
	for (uint16_t i = 0; i < n; i++) {
		p = n <= PL_QUERY_EXP_MAX ? pl_cursor_take(in, 2) : NULL;
		if (p == NULL)
			return false;
		memcpy(&point, p, sizeof(point));
		if (point > PL_OBS_POINT_MASK || point <= before)
			return false;
		before = point;
		if (take)
			ret->exp |= pl_query_origin_bit(run, point);
	}
	return true;
}

/* Reads a group. take: it is added; else it is only checked. */
static bool get_group(
	struct pl_query_run *run, struct stage_run *s, struct pl_cursor *in, bool take)
{
	const struct stage *stage = s->stage;
	uint32_t entry = TABLE_NONE;
	struct row_origin origin;
	uint8_t *into = NULL;

	if (!get_key(run, stage, in) || !get_origin(run, in, take, &origin))
		return false;
	if (take)
		entry = pl_query_groups_enter(run, s, run->windows.max);
	if (entry != TABLE_NONE)
		pl_query_origin_put(run, s, entry, origin);
	if (entry != TABLE_NONE)
		into = table_at(&s->groups.table, entry) + s->groups.acc_offset;
	memset(run->acc, 0, stage->acc_bytes);
	for (uint32_t i = 0; i < stage->n_aggs; i++) {
		const struct agg *agg = &stage->aggs[i];

		if (agg->kind == AGG_COUNT_DISTINCT) {
			if (!get_set(run, s, agg, in, entry))
				return false;
			continue;
		}
		if (!pl_query_serial_get(in, agg, run->acc + agg->offset))
			return false;
		if (into == NULL)
			continue;
		if (pl_query_serial_overflows(agg, into, run->acc))
			run->row.incomplete = true;
		else
			pl_query_agg_merge(agg, into, run->acc);
	}
	return true;
}

static bool get_groups(
	struct pl_query_run *run, struct stage_run *s, struct pl_cursor in, uint32_t n, bool take)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!get_group(run, s, &in, take))
			return false;
	}
	return pl_cursor_left(&in) == 0;
}

int pl_query_partial_add(struct pl_query_run *run, const void *data, size_t len)
{
	struct pl_cursor in = pl_cursor(data, len);
	struct stage_run *s;
	struct head head;

	if (run->plan == 0)
		run->plan = pl_query_plan_hash(run->query);
	if (!get_head(run->query, run->plan, &in, &head))
		return -EBADMSG;
	s = &run->stages[head.stage];
	if (!get_groups(run, s, in, head.groups, false))
		return -EBADMSG;
	(void)get_groups(run, s, in, head.groups, true);
	run->merged_incomplete =
		run->merged_incomplete || run->row.incomplete || (head.flags & INCOMPLETE) != 0;
	run->row.incomplete = false;
	run->merged_late += head.late;
	return 0;
}

void pl_query_partial_close(
	struct pl_query_run *run, int64_t start_ns, int64_t end_ns, bool incomplete)
{
	run->row = (struct pl_query_row){ .windowed = true,
		.final = true,
		.incomplete = incomplete || run->merged_incomplete,
		.late = run->merged_late,
		.start_ns = start_ns,
		.end_ns = end_ns };
	run->merged_incomplete = false;
	run->merged_late = 0;
	pl_query_run_stages(run, true);
	run->stats.windows++;
	note_absent(run);
}

/* ---- places ---- */

void pl_query_run_at(struct pl_query_run *run, uint64_t position)
{
	run->windows.position = position;
}

bool pl_query_run_oldest(const struct pl_query_run *run, uint64_t *ret)
{
	uint64_t least = UINT64_MAX;
	uint32_t left = run->windows.n_open;
	bool some = left > 0;

	for (uint32_t i = 0; i < run->windows.max && left > 0; i++) {
		const struct pane *pane = &run->windows.panes[i];

		if (!pane->open)
			continue;
		least = pane->position < least ? pane->position : least;
		left--;
	}
	for (uint32_t i = 0; i < run->n_paired; i++) {
		uint64_t of_pairs;

		if (!pl_query_pairs_oldest(run->paired[i], &of_pairs))
			continue;
		least = of_pairs < least ? of_pairs : least;
		some = true;
	}
	*ret = least;
	return some;
}

int64_t pl_query_run_done(const struct pl_query_run *run)
{
	int64_t least = INT64_MAX;

	if (run->query->within_ns == 0 || run->windows.spec.kind != W_NONE)
		return run->windows.watermark;
	for (uint32_t i = 0; i < run->n_paired; i++) {
		if (pl_query_pairs_watermark(run->paired[i]) < least)
			least = pl_query_pairs_watermark(run->paired[i]);
	}
	return least;
}

int64_t pl_query_run_watermark(const struct pl_query_run *run)
{
	return run->windows.watermark;
}

void pl_query_run_resume(struct pl_query_run *run, int64_t done)
{
	const bool pairs = run->query->within_ns > 0 && run->windows.spec.kind == W_NONE;

	if (!pairs)
		run->windows.watermark = run->windows.resumed = done;
	for (uint32_t i = 0; pairs && i < run->n_paired; i++)
		pl_query_pairs_resume(run->paired[i], done);
}

/* Closes pairs of waiting records first: they open windows. */
static void close_pairs(struct pl_query_run *run)
{
	int64_t last = INT64_MIN;

	for (uint32_t i = 0; i < run->n_paired; i++) {
		if (pl_query_pairs_last(run->paired[i]) > last)
			last = pl_query_pairs_last(run->paired[i]);
	}
	if (last > INT64_MIN)
		pl_query_run_until(run, last + (int64_t)run->query->within_ns + 1);
}

void pl_query_run_close_open(struct pl_query_run *run)
{
	int64_t end;

	close_pairs(run);
	end = pl_query_windows_last_end(&run->windows);
	if (end > INT64_MIN)
		pl_query_run_until(run, end + (int64_t)run->query->within_ns);
}
