/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads new entries and changes of a region. */
#include "base/stats.h"
#include "base/text.h"
#include "pipeline/region_input_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/postcards.h"
#include "memory/sketch.h"

enum {
	/* Limits of one step, with PL_REGION_STEP_ENTRIES: it takes less than a millisecond. */
	STEP_LISTS = 4096,
	STEP_SLOTS = 16384,
};
/* Longest interruption of a writer within one slot. */
#define SETTLE_NS UINT64_C(20000000)
/* Between checks of the file. */
#define LOOK_NS   UINT64_C(1000000000)
/* Default of aggregate.slot. */
#define SLOT_NS   UINT64_C(15000000000)

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_region_input_stats, __VA_ARGS__)
#include "pipeline/region_input_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_region_input_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

const char *pl_region_drop_name(enum pl_region_drop cause)
{
	static const char *const names[PL_REGION_DROP_MAX] = { "overrun", "damaged", "repeated",
		"keyed", "invalid" };

	return names[cause];
}

static char *copy_of(const char *text, bool *good)
{
	char *copy = text != NULL ? strdup(text) : NULL;

	*good = *good && (text == NULL || copy != NULL);
	return copy;
}

int pl_region_input_new(struct pl_region_input **ret, const struct pl_config_region *config)
{
	struct pl_region_input *in = calloc(1, sizeof(*in));
	bool good = true;

	if (in == NULL)
		return -ENOMEM;
	in->config = *config;
	memset(&in->config.alert, 0, sizeof(in->config.alert)); /* rules are set later */
	in->config.name = copy_of(config->name, &good);
	in->config.path = copy_of(config->path, &good);
	in->config.value.name = copy_of(config->value.name, &good);
	if (!good) {
		pl_region_input_free(in);
		return -ENOMEM;
	}
	snprintf(in->stats.name, sizeof(in->stats.name), "%s", config->name);
	in->stats.writer = config->writer;
	in->slot_ns = SLOT_NS;
	*ret = in;
	return 0;
}

void pl_region_input_set_slot(struct pl_region_input *in, uint64_t slot_ns)
{
	if (slot_ns == in->slot_ns)
		return;
	in->slot_ns = slot_ns;
	in->max = (struct pl_region_max){ .slot = 0 };
}

void pl_region_input_set_alerts(struct pl_region_input *in, struct pl_region_alerts **alerts,
	const struct pl_region_alert_rules *rules)
{
	if (in->alerts != NULL) {
		pl_region_alerts_set(in->alerts, rules);
		return;
	}
	in->alerts = *alerts;
	*alerts = NULL;
	if (in->alerts != NULL && in->stats.primitive != 0)
		pl_region_alerts_primitive(in->alerts, in->stats.primitive);
}

void pl_region_input_set_keys(struct pl_region_input *in, const struct pl_key_names *keys)
{
	in->keys = keys;
}

void pl_region_input_end(struct pl_region_input *in, const struct pl_region_room *room)
{
	const struct pl_region_alert_out out = { room->events, room->told, room->now_ns,
		room->ts_ns };

	if (in->alerts != NULL)
		pl_region_alerts_end(in->alerts, &out);
}

/* Forgets what was read: cursors, and contents of slots. */
static void forget(struct pl_region_input *in)
{
	free(in->lists);
	in->lists = NULL;
	if (in->alerts != NULL)
		pl_region_alerts_turn(in->alerts, false);
	if (in->scans)
		pl_scan_done(&in->scan);
	in->scans = false;
	in->id = 0;
}

static void close_region(struct pl_region_input *in)
{
	(void)pl_region_close(in->region);
	in->region = NULL;
	in->walking = in->finishing = false;
}

void pl_region_input_free(struct pl_region_input *in)
{
	if (in == NULL)
		return;
	close_region(in);
	forget(in);
	pl_region_alerts_free(in->alerts);
	free(in->config.name);
	free(in->config.path);
	free(in->config.value.name);
	free(in);
}

bool pl_region_input_is(const struct pl_region_input *in, const struct pl_config_region *c)
{
	const struct pl_config_region *i = &in->config;

	return pl_text_same(i->name, c->name) && pl_text_same(i->path, c->path) &&
	       pl_text_same(i->value.name, c->value.name) && i->writer == c->writer &&
	       i->read.every_ns == c->read.every_ns && i->read.tell == c->read.tell &&
	       i->read.from == c->read.from && i->value.format == c->value.format &&
	       i->value.at == c->value.at;
}

const struct pl_region_input_stats *pl_region_input_stats(const struct pl_region_input *in)
{
	return &in->stats;
}

uint64_t pl_region_input_due_ns(const struct pl_region_input *in)
{
	uint64_t due = in->walking || in->region == NULL ? in->look_ns : in->due_ns;

	if (in->scans && in->scan.n_waiting > 0 && in->settle_ns < due)
		due = in->settle_ns;
	return due < in->look_ns ? due : in->look_ns;
}

void pl_region_input_wake(struct pl_region_input *in)
{
	if (in->params.primitive == PL_APPEND)
		in->due_ns = 0;
}

/* ---- the file ---- */

static void *store_of(const struct pl_region_input *in)
{
	return pl_region_store(in->region, in->epoch);
}

/* Sets cursors to the head, or the oldest entry; in a file that appeared later to 0, so that
 * entries already overwritten are counted. */
static int begin_lists(struct pl_region_input *in, bool first)
{
	int r = pl_append_init(&in->append, &in->params, store_of(in));

	if (r == 0 && in->lists == NULL)
		in->lists = calloc(in->append.lists, sizeof(*in->lists));
	if (r < 0 || in->lists == NULL)
		return r < 0 ? r : -ENOMEM;
	for (uint32_t i = 0; i < in->append.lists; i++) {
		uint64_t from = 0;

		if (first)
			from = in->config.read.from == 0 ? pl_append_head(&in->append, i)
							 : pl_append_oldest(&in->append, i);
		in->stats.skipped += from;
		pl_append_reader_init(&in->lists[i], &in->append, i, from);
	}
	in->stats.slots = in->append.slots * in->append.lists;
	return 0;
}

static int begin_scan(struct pl_region_input *in, bool first)
{
	const bool quiet = first && in->config.read.from == 0;
	struct pl_scan_found found;
	uint64_t all = UINT64_MAX;
	int r = pl_scan_init(&in->scan, &in->params, store_of(in), quiet);

	if (r < 0)
		return r;
	in->scans = true;
	in->stats.slots = in->scan.n;
	/* Walk it once now: only later changes are new. */
	if (quiet) {
		pl_scan_begin(&in->scan);
		(void)pl_scan_next(&in->scan, &all, &found, in->bytes);
	}
	return 0;
}

static void begin_sketch(struct pl_region_input *in, bool first)
{
	struct pl_sketch s;

	(void)pl_sketch_init(&s, &in->params, store_of(in));
	in->columns = first && in->config.read.from == 0 ? pl_sketch_completed(&s) : 0;
	in->stats.slots = s.columns;
}

static int begin(struct pl_region_input *in, bool first)
{
	switch (in->params.primitive) {
	case PL_APPEND:
		return begin_lists(in, first);
	case PL_SKETCH:
		begin_sketch(in, first);
		return 0;
	default:
		return begin_scan(in, first);
	}
}

/* Continues after the same region was mapped again. */
static void go_on(struct pl_region_input *in)
{
	if (in->params.primitive == PL_APPEND)
		(void)pl_append_init(&in->append, &in->params, store_of(in));
	else if (in->scans)
		pl_scan_rebase(&in->scan, store_of(in), false);
}

static void say_trouble(struct pl_region_input *in, const char *words)
{
	in->stats.readable = false;
	snprintf(in->stats.trouble, sizeof(in->stats.trouble), "%.191s", words);
}

/* Checks that the store fits the configuration. */
static int check(const struct pl_region_input *in, struct pl_diag *diag)
{
	const char *wrong = in->alerts != NULL && pl_region_alerts_on(in->alerts)
				    ? pl_region_alert_fault(&in->config, &in->params)
				    : NULL;

	if (wrong == NULL)
		return pl_region_check_value(&in->config, &in->params, diag);
	return pl_diag_fail(diag, -EINVAL, "alert %s", wrong);
}

void pl_region_input_open(struct pl_region_input *in, bool first)
{
	struct pl_diag diag = { .text = "" };
	struct pl_region_info info = { .id = 0 };
	uint64_t epoch;
	int r;

	(void)pl_region_guard();
	r = pl_region_open(&in->region, in->config.path, PL_REGION_READ, NULL, &diag);
	if (r < 0)
		in->region = NULL;
	if (r == 0) {
		in->params = *pl_region_params(in->region);
		pl_region_get_info(in->region, &info);
		epoch = pl_region_epoch(in->region);
		r = check(in, &diag);
	}
	if (r == 0 && in->id == info.id && in->epoch == epoch) {
		go_on(in);
	} else if (r == 0) {
		forget(in);
		in->epoch = epoch;
		r = begin(in, first);
	}
	if (r < 0) {
		close_region(in);
		say_trouble(in, diag.text[0] != '\0' ? diag.text : strerror(-r));
		return;
	}
	in->id = info.id;
	in->stats.primitive = in->params.primitive;
	if (in->alerts != NULL)
		pl_region_alerts_primitive(in->alerts, in->params.primitive);
	in->away = false;
	in->stats.readable = true;
	in->stats.trouble[0] = '\0';
	in->stats.opened++;
	in->due_ns = 0;
}

static void lose(struct pl_region_input *in, const char *words)
{
	char text[160];

	snprintf(text, sizeof(text), "%.120s %s", in->config.path, words);
	close_region(in);
	in->stats.lost++;
	say_trouble(in, text);
}

/* Checks the name of a file with a writer in this process, which keeps its open file: that is read
 * on, but readers of the name find another file, or none. */
static void look_at_own_name(struct pl_region_input *in)
{
	const bool away = !pl_region_is_at(in->region, in->config.path);
	char text[160];

	if (away && !in->away) {
		in->stats.lost++;
		snprintf(text, sizeof(text),
			"%.80s was removed or made anew; its writer goes on in the file that was there",
			in->config.path);
		say_trouble(in, text);
	} else if (!away && in->away) {
		in->stats.readable = true;
		in->stats.trouble[0] = '\0';
	}
	in->away = away;
}

/* Checks every second whether the file is still in place; if not, looks for another. */
static void look_at_file(struct pl_region_input *in, const struct pl_region_room *room)
{
	if (in->region != NULL && pl_region_is_cut(in->region))
		lose(in, "was truncated");
	else if (in->region != NULL && in->config.writer != PL_WRITER_OTHER)
		look_at_own_name(in);
	else if (in->region != NULL && !in->walking &&
		 !pl_region_is_at(in->region, in->config.path))
		lose(in, "was removed or made anew");
	if (in->region == NULL && !room->final)
		pl_region_input_open(in, false);
}

/* ---- lists ---- */

/* Reads up to `most` entries of a list. Returns the number read. */
static uint32_t read_list(
	struct pl_region_input *in, uint32_t list, uint32_t most, const struct pl_region_room *room)
{
	struct pl_append_reader *r = &in->lists[list];
	const uint64_t overrun = r->overrun, damaged = r->damaged;
	const uint32_t fit = PL_REGION_READ_BYTES / in->append.entry_bytes;
	const size_t n = pl_append_read(r, in->bytes, in->numbers, most < fit ? most : fit);

	for (size_t i = 0; i < n; i++)
		pl_region_take_bytes(in, room, in->bytes + i * in->append.entry_bytes,
			in->append.entry_bytes, in->numbers[i], list);
	in->stats.dropped[PL_REGION_OVERRUN] += r->overrun - overrun;
	in->stats.dropped[PL_REGION_DAMAGED] += r->damaged - damaged;
	pl_region_found(in, room, n + (r->overrun - overrun) + (r->damaged - damaged));
	return (uint32_t)n;
}

/* Reads from one list after the other until a whole round has nothing: a list that is written as
 * fast as it is read delays no other. Returns true when the walk is over. */
static bool step_lists(struct pl_region_input *in, const struct pl_region_room *room)
{
	uint32_t left = PL_REGION_STEP_ENTRIES;

	for (unsigned int i = 0; i < STEP_LISTS && left > 0; i++) {
		const uint64_t before = in->lists[in->list_at].cursor;

		left -= read_list(in, in->list_at, left, room);
		in->quiet_lists = in->lists[in->list_at].cursor == before ? in->quiet_lists + 1 : 0;
		in->list_at = in->list_at + 1 == in->append.lists ? 0 : in->list_at + 1;
		if (in->quiet_lists >= in->append.lists)
			return true;
	}
	return false;
}

/* ---- slots, cells, chunks ---- */

static void take_found(struct pl_region_input *in, const struct pl_region_room *room,
	const struct pl_scan_found *f)
{
	if (in->params.primitive == PL_COUNTERS)
		pl_region_take_cell(in, room, f);
	else
		pl_region_take_bytes(in, room, in->bytes, f->bytes, f->number, UINT32_MAX);
}

static bool step_scan(struct pl_region_input *in, const struct pl_region_room *room)
{
	struct pl_scan *s = &in->scan;
	uint64_t budget = STEP_SLOTS, before = s->changed;
	const bool waited = s->n_waiting > 0;
	struct pl_scan_found f;

	if (waited && room->now_ns < in->settle_ns && !room->final)
		return false;
	while (s->n_waiting > 0 && pl_scan_settle(s, &f, in->bytes))
		take_found(in, room, &f);
	while (pl_scan_next(s, &budget, &f, in->bytes))
		take_found(in, room, &f);
	if (s->n_waiting > 0)
		in->settle_ns = room->now_ns + SETTLE_NS;
	pl_region_found(in, room, s->changed - before);
	in->stats.dropped[PL_REGION_REPEATED] += s->repeated;
	in->stats.dropped[PL_REGION_KEYED] += s->keyed;
	in->stats.unsettled += s->unsettled;
	in->stats.increase += s->increase;
	s->repeated = s->keyed = s->unsettled = s->increase = 0;
	in->stats.in_use = s->in_use;
	return pl_scan_over(s) && s->n_waiting == 0;
}

/* ---- sketches ---- */

static void look_at_sketch(struct pl_region_input *in, const struct pl_region_room *room)
{
	struct pl_sketch s;
	struct pl_value v;
	double sum = 0, error;

	(void)pl_sketch_init(&s, &in->params, store_of(in));
	in->stats.in_use = pl_sketch_completed(&s);
	if (in->stats.in_use == in->columns)
		return;
	in->columns = in->stats.in_use;
	if (pl_sketch_cardinality(&s, &sum, &error) < 0)
		sum = pl_sketch_total(&s);
	pl_region_value(&v, &in->config, NULL, s.cell_bytes);
	v.number = in->columns;
	v.value = sum < 1.8e19 ? (uint64_t)(sum + 0.5) : UINT64_MAX;
	v.present |= PL_VALUE_HAS_value;
	pl_region_note(in, room, &v, &(const struct pl_region_spot){ .place = 0 });
	pl_region_found(in, room, 1);
	pl_region_tell(in, room, &v);
}

/* ---- walks ---- */

/* Moves on to the present epoch: all that it contains is new. */
static void follow_epoch(struct pl_region_input *in)
{
	in->epoch = pl_region_epoch(in->region);
	in->finishing = false;
	if (in->alerts != NULL && in->params.primitive != PL_APPEND)
		pl_region_alerts_turn(in->alerts, in->params.primitive == PL_COUNTERS);
	if (in->params.primitive == PL_APPEND)
		(void)begin_lists(in, false);
	else if (in->params.primitive == PL_SKETCH)
		in->columns = 0;
	else
		pl_scan_rebase(&in->scan, store_of(in), true);
}

static void begin_walk(struct pl_region_input *in, const struct pl_region_room *room)
{
	if (pl_region_epoch(in->region) != in->epoch) {
		/* The end of the old epoch is read first, if that is still there. */
		if (!in->finishing && pl_region_has_epoch(in->region, in->epoch) &&
			pl_region_store(in->region, in->epoch) != NULL)
			in->finishing = true;
		else
			follow_epoch(in);
	}
	in->walking = true;
	in->quiet_lists = 0;
	in->due_ns = room->now_ns + in->config.read.every_ns;
	if (in->scans)
		pl_scan_begin(&in->scan);
}

static void end_walk(struct pl_region_input *in, const struct pl_region_room *room)
{
	in->walking = false;
	pl_region_show_max(in, room->now_ns);
	pl_region_watch(in, room, true);
	if (in->finishing)
		in->due_ns = 0;
	else
		in->final_over = room->final && in->final_begun;
}

static bool step_walk(struct pl_region_input *in, const struct pl_region_room *room)
{
	switch (in->params.primitive) {
	case PL_APPEND:
		return step_lists(in, room);
	case PL_SKETCH:
		look_at_sketch(in, room);
		return true;
	default:
		return step_scan(in, room);
	}
}

bool pl_region_input_step(struct pl_region_input *in, const struct pl_region_room *room)
{
	pl_region_show_max(in, room->now_ns);
	if (room->now_ns >= in->look_ns) {
		look_at_file(in, room);
		in->look_ns = room->now_ns + LOOK_NS;
	}
	if (in->region == NULL)
		pl_region_watch(in, room, false);
	if (in->region == NULL || in->final_over)
		return false;
	if (!in->walking) {
		if (room->now_ns < in->due_ns && !room->final)
			return false;
		begin_walk(in, room);
		in->final_begun = room->final;
	}
	if (step_walk(in, room)) {
		end_walk(in, room);
	} else if (in->params.primitive == PL_APPEND && room->now_ns >= in->due_ns) {
		/* Lists that are written all the time never end a walk. */
		pl_region_show_max(in, room->now_ns);
		pl_region_watch(in, room, true);
		in->due_ns = room->now_ns + in->config.read.every_ns;
	}
	if (room->final)
		return !in->final_over;
	return in->walking && !(in->scans && in->scan.n_waiting > 0);
}
