/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins the marks of all workers at an output to the one mark of its driver. */
#include "pipeline/output_state.h"

void pl_tap_mark(struct pl_tap *tap)
{
	const uint64_t at = pl_counter_read(&pl_export_queue_stats(tap->queue)->accepted);
	const uint64_t last = atomic_load_explicit(&tap->marked, memory_order_relaxed);

	/* Nothing came since the last mark, so a server that is down, as of an output of series,
	 * does not matter. */
	if (at == atomic_load_explicit(&tap->marked_at, memory_order_relaxed) &&
		last == atomic_load_explicit(&tap->settled, memory_order_acquire))
		return;
	atomic_store_explicit(&tap->marked_at, at, memory_order_relaxed);
	/* Pairs with the acquire in join_marks, which sees this mark or a later one. */
	atomic_store_explicit(&tap->marked, last + 1, memory_order_release);
}

int pl_tap_settled(const struct pl_tap *tap)
{
	/* Must be read first: the thread's last values are valid only after it has ended. */
	const int end = atomic_load_explicit(&tap->output->end, memory_order_acquire);

	if (end == PL_OUTPUT_ENDED_WELL ||
		atomic_load_explicit(&tap->settled, memory_order_acquire) ==
			atomic_load_explicit(&tap->marked, memory_order_relaxed))
		return 1;
	return end == PL_OUTPUT_RUNS ? 0 : -1;
}

/* Joins workers' marks to the driver's next one, if all entries before them were taken. Returns
 * whether there is any. */
static bool join_marks(struct pl_output *o)
{
	bool any = false;

	for (struct pl_tap *t = o->taps; t != NULL; t = t->next) {
		/* Pairs with the release in pl_tap_mark. */
		const uint64_t mark = atomic_load_explicit(&t->marked, memory_order_acquire);

		if (mark == t->joined ||
			pl_counter_read(&pl_export_queue_stats(t->queue)->taken) <
				atomic_load_explicit(&t->marked_at, memory_order_relaxed))
			continue;
		t->joined = mark;
		any = true;
	}
	return any;
}

static bool marks_settled(struct pl_output *o)
{
	if (!pl_export_settled(o->export))
		return false;
	for (struct pl_tap *t = o->taps; t != NULL; t = t->next)
		atomic_store_explicit(&t->settled, t->joined, memory_order_release);
	return true;
}

void pl_output_turn_marks(struct pl_output *o)
{
	o->marking = o->marking && !marks_settled(o);
	if (o->marking || !join_marks(o))
		return;
	pl_export_mark(o->export);
	o->marking = !marks_settled(o);
}

/* Entries still in the driver, and those it gave up for want of time, are lost with the process,
 * even if they are counted. */
void pl_output_end_marks(struct pl_output *o)
{
	const struct pl_export_stats *s = &o->export->stats;
	bool rest = atomic_load_explicit(&s->queued, memory_order_relaxed) > 0 ||
		    pl_counter_read(&s->dropped[PL_EXPORT_CLOSED]) > 0;

	for (const struct pl_tap *t = o->taps; t != NULL; t = t->next)
		rest = rest || pl_export_queue_waiting(t->queue) > 0;
	atomic_store_explicit(&o->end, rest ? PL_OUTPUT_ENDED_WITH_REST : PL_OUTPUT_ENDED_WELL,
		memory_order_release);
}
