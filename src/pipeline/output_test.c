/* SPDX-License-Identifier: BSD-2-Clause */
/* Marks of a worker at an output: settled when its driver has settled the entries before them. */
#include "pipeline/output.h"

#include <stdlib.h>

#include "base/test.h"

/* A driver that settles when it is told to. */
static struct {
	struct pl_export export;
	_Atomic bool settles;
	_Atomic unsigned int asked; /* calls of `settled` */
	uint64_t marked;            /* entries before its mark */
} script;

static void write_paths(struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	(void)now_ns;
	pl_count(&e->stats.accepted, batch->n_paths);
}

static void write_events(
	struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	(void)events;
	(void)now_ns;
	pl_count(&e->stats.accepted, n);
	atomic_fetch_add(&e->stats.queued, n);
}

static void mark(struct pl_export *e)
{
	script.marked = pl_counter_read(&e->stats.accepted);
}

static bool settled(struct pl_export *e)
{
	if (atomic_load(&script.settles))
		atomic_store(&e->stats.queued, 0);
	atomic_fetch_add(&script.asked, 1);
	return atomic_load(&e->stats.queued) == 0;
}

static void no_close(struct pl_export *e)
{
	(void)e;
}

static const struct pl_export_ops ops = { .name = "script",
	.write_paths = write_paths,
	.write_events = write_events,
	.mark = mark,
	.settled = settled,
	.close = no_close };

static struct pl_output *begin(bool settles)
{
	const struct pl_output_options options = {
		.name = "script", .queue_records = 4096, .events = true
	};
	struct pl_output *o = NULL;

	script.export = (struct pl_export){ .ops = &ops };
	script.settles = settles;
	script.asked = 0;
	if (pl_output_new(&o, &options, &script.export, NULL) < 0 || pl_output_start(o, false) < 0)
		abort();
	return o;
}

static struct pl_tap *tap_of(struct pl_output *o)
{
	struct pl_tap *t = NULL;

	if (pl_tap_new(&t, o) < 0)
		abort();
	return t;
}

static void put(struct pl_tap *t, uint32_t n)
{
	static const struct pl_event events[300];

	pl_tap_events(t, events, n);
}

/* Returns whether the driver was asked a few more times. */
static bool goes_on(void)
{
	const unsigned int asked = atomic_load(&script.asked);

	return eventually(atomic_load(&script.asked) > asked + 3);
}

static void test_marks(void)
{
	struct pl_output *o = begin(false);
	struct pl_tap *t = tap_of(o), *other = tap_of(o);

	eq(pl_tap_settled(t), 1, "without a mark nothing waits");
	put(t, 300);
	pl_tap_mark(t);
	ok(goes_on(), "the driver is asked");
	eq(pl_tap_settled(t), 0, "and what it has not settled is not");
	eq(script.marked, 300, "its mark stands behind all that was put");
	put(other, 10);
	pl_tap_mark(other);
	put(t, 50);
	pl_tap_mark(t);
	ok(goes_on(), "more marks come");
	eq(script.marked, 300, "they wait for the first one");
	atomic_store(&script.settles, true);
	ok(eventually(pl_tap_settled(t) == 1 && pl_tap_settled(other) == 1),
		"then all are settled");
	eq(script.marked, 360, "with one mark for two workers");
	eq(pl_output_stop(o, 0), 0, "nothing is left");
	pl_tap_mark(t);
	eq(pl_tap_settled(t), 1, "after a good end everything is settled");
	pl_output_free(o);
}

/* An output of series only delays no worker: it has none of its entries. */
static void test_nothing_put(void)
{
	struct pl_output *o = begin(false);
	struct pl_tap *t = tap_of(o);

	atomic_store(&script.export.stats.queued, 7);
	pl_tap_mark(t);
	eq(pl_tap_settled(t), 1, "of what was not put nothing waits");
	put(t, 1);
	pl_tap_mark(t);
	eq(pl_tap_settled(t), 0, "and then it does");
	atomic_store(&script.settles, true);
	ok(eventually(pl_tap_settled(t) == 1), "until it is settled");
	pl_output_stop(o, 0);
	pl_output_free(o);
}

static void test_end(void)
{
	struct pl_output *o = begin(false);
	struct pl_tap *t = tap_of(o);

	put(t, 5);
	pl_tap_mark(t);
	eq(pl_output_stop(o, 1), 5, "the end comes too early");
	eq(pl_tap_settled(t), -1, "what is left then never settles");
	pl_output_free(o);
	o = begin(true);
	t = tap_of(o);
	put(t, 5);
	pl_tap_mark(t);
	ok(eventually(pl_tap_settled(t) == 1), "settled");
	pl_count(&script.export.stats.dropped[PL_EXPORT_CLOSED], 1);
	pl_output_stop(o, 0);
	eq(pl_tap_settled(t), 1, "stays so");
	put(t, 1);
	pl_tap_mark(t);
	eq(pl_tap_settled(t), -1, "but after an end that gave entries up no other mark is");
	pl_output_free(o);
}

int main(void)
{
	test_marks();
	test_nothing_put();
	test_end();
	return pl_test_done();
}
