/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sketch-merge: each reporter delivers the columns of an epoch in ascending order; they are merged
 * in our own memory, and a column is written when every reporter has delivered it. The number of
 * complete columns is written behind the columns; zero when an epoch begins. A repeat is recognized
 * by the reporter's next column: sums would count it twice.
 *
 * Epochs follow each other: one that is more than EPOCHS_AHEAD ahead of the present one, or behind
 * it, is another count, or an error. It is taken when nothing was merged for as long as an epoch
 * may last; so one bad report delays the sketch for no longer.
 *
 * A reporter is known by address and port, anew in each epoch, so that one that restarts has its
 * place in the next. Places have shares: once a source (pl_addr_source) has one, it gets a further
 * one only as long as the sources of the epoch before find theirs. A reporter's columns cannot be
 * taken out of sums, so a place that is taken stays until the epoch ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dta/translator_state.h"

#define COLUMNS_PER_WRITE_MAX 64u
#define EPOCHS_AHEAD          16

static uint64_t column_bytes(const struct sketch_state *k)
{
	return (uint64_t)k->merged.rows * k->merged.cell_bytes;
}

static int sketch_init(struct pl_translator *t, struct store *s, struct pl_diag *diag)
{
	struct sketch_state *k = &s->sketch;
	uint32_t *width = &s->config.columns_per_write, most;
	uint64_t bytes;
	int r = pl_store_bytes(&s->config.params, &bytes, NULL);

	if (r == 0)
		r = pl_sketch_init(&k->merged, &s->config.params, NULL);
	if (r < 0)
		return r;
	k->collector = -1;
	if (s->config.reporters == 0)
		s->config.reporters = 1;
	most = (uint32_t)(PL_DTA_WRITE_BYTES_MAX / column_bytes(k));
	if (*width == 0)
		*width = most < COLUMNS_PER_WRITE_MAX ? most : COLUMNS_PER_WRITE_MAX;
	if (s->config.reporters > PL_SKETCH_REPORTERS_MAX || *width > most) {
		pl_diag_set(diag, "a sketch has at most %u reporters, and %u columns per write",
			PL_SKETCH_REPORTERS_MAX, most);
		return -EINVAL;
	}
	t->memory += bytes;
	k->merged.base = aligned_alloc(64, bytes);
	k->cells = pl_translator_alloc(t, 1, UINT16_MAX);
	if (k->merged.base == NULL || k->cells == NULL)
		return -ENOMEM;
	memset(k->merged.base, 0, bytes);
	return 0;
}

static void sketch_done(struct store *s)
{
	free(s->sketch.merged.base);
	free(s->sketch.cells);
}

/* Finds the reporter's place; n_reporters when it has none yet. */
static uint32_t find_reporter(const struct sketch_state *k, const struct intake *in)
{
	uint32_t i = 0;

	while (i < k->n_reporters && (k->reporters[i].port != in->from_port ||
					     !pl_addr_equal(&k->reporters[i].addr, in->from)))
		i++;
	return i;
}

static struct sketch_source *find_source(
	struct sketch_source *sources, uint32_t n, const struct pl_addr *source)
{
	for (uint32_t i = 0; i < n; i++) {
		if (pl_addr_equal(&sources[i].source, source))
			return &sources[i];
	}
	return NULL;
}

static uint32_t held_by(const struct sketch_state *k, const struct pl_addr *source)
{
	for (uint32_t i = 0; i < k->n_heard; i++) {
		if (pl_addr_equal(&k->heard[i].source, source))
			return k->heard[i].held;
	}
	return 0;
}

/* Number of places that a source of the epoch before may count on: as many as it had, or an equal
 * share when it had more or asked for more. */
static uint32_t due_to(const struct store *s, const struct sketch_source *x)
{
	const uint32_t fair = s->config.reporters / s->sketch.n_known;
	const uint32_t even = fair > 0 ? fair : 1;

	return x->refused || x->held > even ? even : x->held;
}

/* Returns true when the source of a new reporter may have one of the free places. */
static bool has_share(const struct store *s, const struct pl_addr *source)
{
	const struct sketch_state *k = &s->sketch;
	const uint32_t held = held_by(k, source);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < k->n_known; i++) {
		const uint32_t due = due_to(s, &k->known[i]);
		const uint32_t has = held_by(k, &k->known[i].source);

		if (pl_addr_equal(&k->known[i].source, source)) {
			if (held < due)
				return true;
		} else if (has < due) {
			kept += due - has;
		}
	}
	return held == 0 || k->n_reporters + kept < s->config.reporters;
}

/* Finds the source's account of this epoch; NULL when there are too many sources. */
static struct sketch_source *hear(struct sketch_state *k, const struct pl_addr *from)
{
	const struct pl_addr source = pl_addr_source(from);
	struct sketch_source *x = find_source(k->heard, k->n_heard, &source);

	if (x == NULL && k->n_heard < PL_SKETCH_REPORTERS_MAX) {
		x = &k->heard[k->n_heard++];
		*x = (struct sketch_source){ .source = source };
	}
	return x;
}

void pl_translate_sketch_refused(struct store *s, const struct intake *in)
{
	struct sketch_source *x = hear(&s->sketch, in->from);

	if (x != NULL)
		x->refused = true;
}

static bool is_new_epoch(const struct sketch_state *k, uint32_t epoch)
{
	int32_t ahead = (int32_t)(epoch - k->epoch);

	return !k->begun || ahead > 0 || ahead < -EPOCHS_AHEAD;
}

static bool is_far(const struct store *s, const struct intake *in)
{
	const struct sketch_state *k = &s->sketch;
	int32_t ahead = (int32_t)(in->report->epoch - k->epoch);

	return k->begun && (ahead > EPOCHS_AHEAD || ahead < -EPOCHS_AHEAD) &&
	       in->now_ns - k->heard_ns < s->config.flush_ns;
}

static int sketch_check(const struct store *s, struct intake *in)
{
	const struct sketch_state *k = &s->sketch;
	const struct pl_dta_report *r = in->report;
	uint64_t n = r->data_bytes / column_bytes(k), next = 0;
	struct pl_addr source;
	uint32_t i;

	if (r->copies > 1)
		return PL_REFUSED_COUNT_OF_COPIES;
	if (r->data_bytes > UINT16_MAX || r->data_bytes % column_bytes(k) != 0 ||
		r->first_column > k->merged.columns || n > k->merged.columns - r->first_column)
		return PL_REFUSED_COLUMNS;
	if (!pl_sketch_plausible(&k->merged, r->data, r->data_bytes))
		return PL_REFUSED_REGISTER;
	in->spread = 0;
	if (is_far(s, in))
		return PL_REFUSED_EPOCH_FAR;
	if (!is_new_epoch(k, r->epoch)) {
		if (r->epoch != k->epoch || (k->over && k->complete < k->merged.columns))
			return PL_REFUSED_EPOCH;
		i = find_reporter(k, in);
		source = pl_addr_source(in->from);
		if (i == s->config.reporters || (i == k->n_reporters && !has_share(s, &source)))
			return PL_REFUSED_SKETCH_REPORTERS;
		next = i < k->n_reporters ? k->reporters[i].next : 0;
	}
	return r->first_column > next ? (int)PL_REFUSED_COLUMN_GAP : TAKEN;
}

/* Writes the number of complete columns. */
static void write_completed(struct pl_translator *t, struct store *s, bool last)
{
	struct sketch_state *k = &s->sketch;
	uint8_t *word = pl_translator_room(t, 8);
	struct pl_op *op;

	memcpy(word, &k->written, 8);
	op = pl_translator_write(t, s, k->collector, 0, word, 8);
	if (last)
		pl_translator_wake(t, op, pl_op_imm(PL_SKETCH, k->epoch));
}

/* Writes complete columns that fill a write; with `all` also those that do not. */
static void write_columns(struct pl_translator *t, struct store *s, bool all)
{
	struct sketch_state *k = &s->sketch;
	uint32_t width = s->config.columns_per_write;
	uint64_t before;
	int collector = pl_translator_choose(t, s, 0);

	if (collector < 0)
		return;
	if (collector != k->collector) {
		k->collector = collector;
		k->written = 0;
		write_completed(t, s, false);
	}
	before = k->written;
	while (k->complete - k->written >= width || (all && k->complete > k->written)) {
		uint64_t n = k->complete - k->written < width ? k->complete - k->written : width;
		struct pl_extent place = pl_sketch_place(&k->merged, k->written, n);

		pl_translator_write(t, s, collector, place.offset, k->merged.base + place.offset,
			(uint32_t)place.bytes);
		k->written += n;
		t->count.columns_written += n;
	}
	if (k->written > before)
		write_completed(t, s, k->written == k->merged.columns);
}

/* Ends an epoch: writes its complete columns, takes no more. */
static void end_epoch(struct pl_translator *t, struct store *s)
{
	struct sketch_state *k = &s->sketch;

	if (!k->begun || k->over)
		return;
	write_columns(t, s, true);
	k->over = true;
	if (k->complete == k->merged.columns)
		t->count.epochs_complete++;
	else
		t->count.epochs_incomplete++;
}

static void begin_epoch(struct pl_translator *t, struct store *s, const struct intake *in)
{
	struct sketch_state *k = &s->sketch;
	struct pl_extent all = pl_sketch_place(&k->merged, 0, k->merged.columns);

	end_epoch(t, s);
	/* The sink must get the old columns before they are overwritten. */
	pl_translator_deliver(t);
	memset(k->merged.base + all.offset, 0, all.bytes);
	k->begun = true;
	k->over = false;
	k->epoch = in->report->epoch;
	k->since_ns = in->now_ns;
	k->complete = 0;
	k->written = 0;
	k->n_reporters = 0;
	memcpy(k->known, k->heard, sizeof(k->known));
	k->n_known = k->n_heard;
	k->n_heard = 0;
	k->collector = pl_translator_choose(t, s, 0);
	write_completed(t, s, false);
}

/* Converts cells from network order to the store's, which is little-endian. */
static void turn_cells(const struct sketch_state *k, const uint8_t *from, size_t bytes)
{
	uint8_t *to = k->cells;
	uint32_t width = k->merged.cell_bytes;

	for (size_t at = 0; at < bytes; at += width) {
		for (uint32_t i = 0; i < width; i++)
			to[at + i] = from[at + width - 1 - i];
	}
}

static void find_complete(struct store *s)
{
	struct sketch_state *k = &s->sketch;
	uint64_t least = k->merged.columns;

	for (uint32_t i = 0; i < k->n_reporters; i++) {
		if (k->reporters[i].next < least)
			least = k->reporters[i].next;
	}
	k->complete = k->n_reporters == s->config.reporters ? least : 0;
}

static bool sketch_take(struct pl_translator *t, struct store *s, const struct intake *in)
{
	struct sketch_state *k = &s->sketch;
	const struct pl_dta_report *r = in->report;
	uint64_t n = r->data_bytes / column_bytes(k), known;
	struct sketch_reporter *reporter;
	struct sketch_source *source;
	uint32_t i;

	if (is_new_epoch(k, r->epoch))
		begin_epoch(t, s, in);
	i = find_reporter(k, in);
	reporter = &k->reporters[i];
	if (i == k->n_reporters) {
		*reporter = (struct sketch_reporter){ *in->from, in->from_port, 0 };
		k->n_reporters++;
		source = hear(k, in->from);
		if (source != NULL)
			source->held++;
	}
	/* columns of the report that were merged before */
	known = reporter->next - r->first_column;
	if (known >= n)
		return false;
	turn_cells(k, r->data + known * column_bytes(k), (n - known) * column_bytes(k));
	/* sketch_check made sure that they are within the sketch, and plausible. */
	(void)pl_sketch_merge(&k->merged, reporter->next, n - known, k->cells);
	reporter->next += n - known;
	k->heard_ns = in->now_ns;
	t->count.columns_merged += n - known;
	find_complete(s);
	if (k->complete == k->merged.columns)
		end_epoch(t, s);
	else
		write_columns(t, s, r->immediate);
	return true;
}

static uint64_t sketch_due(const struct store *s)
{
	const struct sketch_state *k = &s->sketch;

	if (!k->begun || k->over)
		return UINT64_MAX;
	return k->since_ns > UINT64_MAX - s->config.flush_ns ? UINT64_MAX
							     : k->since_ns + s->config.flush_ns;
}

static void sketch_tick(struct pl_translator *t, struct store *s, uint64_t now_ns, bool all)
{
	const struct sketch_state *k = &s->sketch;

	if (k->begun && (all || k->collector != pl_translator_choose(t, s, 0)))
		write_columns(t, s, all || k->over);
	if (sketch_due(s) <= now_ns)
		end_epoch(t, s);
}

const struct primitive pl_translate_sketch = {
	.init = sketch_init,
	.done = sketch_done,
	.check = sketch_check,
	.take = sketch_take,
	.tick = sketch_tick,
	.due = sketch_due,
};
