/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends DTA reports made of records, and accounts for their entries. */
#include "export/dta_out.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Unsettled entries are in a ring, each with the number behind its last report. */
struct dta_out {
	struct pl_export export;
	struct pl_dta_to *to;
	struct pl_dta_map map;
	uint64_t *ends;
	uint64_t first, next; /* entries ever removed from the ring, and ever put in */
	uint64_t marked;      /* `next` at the last mark */
	uint32_t cap;
	uint64_t lost, to_lose; /* reports lost so far; of them, not charged to an entry yet */
	uint64_t bytes, errors;
};

_Static_assert(offsetof(struct dta_out, export) == 0, "a driver begins with the common part");

static struct dta_out *self(struct pl_export *e)
{
	return (struct dta_out *)e;
}

/* ---- accounts ---- */

/* Charges each lost report to one entry: possibly too many entries, never too few. */
static void settle_one(struct dta_out *o)
{
	struct pl_export_stats *s = &o->export.stats;

	if (o->to_lose > 0) {
		o->to_lose--;
		pl_count(&s->dropped[PL_EXPORT_IO], 1);
	} else {
		pl_count(&s->delivered, 1);
	}
	o->first++;
}

static void settle(struct dta_out *o, uint64_t now_ns)
{
	struct pl_export_stats *s = &o->export.stats;
	struct pl_dta_to_state state;

	o->to->ops->state(o->to, now_ns, &state);
	o->to_lose += state.lost - o->lost;
	o->lost = state.lost;
	while (o->first < o->next && o->ends[o->first % o->cap] <= state.settled)
		settle_one(o);
	if (o->first == o->next)
		o->to_lose = 0;
	pl_count(&s->bytes, state.bytes - o->bytes);
	pl_count(&s->errors, state.errors - o->errors);
	o->bytes = state.bytes;
	o->errors = state.errors;
	atomic_store_explicit(&s->last_error, state.error, memory_order_relaxed);
	atomic_store_explicit(&s->queued, o->next - o->first, memory_order_relaxed);
}

/* ---- entries ---- */

struct tally {
	uint32_t put, missing, range;
	int error;
};

static void put_record(struct dta_out *o, const struct pl_pack_record *record, uint64_t now_ns,
	struct tally *tally)
{
	struct pl_dta_report report;
	enum pl_dta_map_answer answer = pl_dta_map_report(&o->map, record, &report);

	if (tally->error < 0)
		return;
	if (answer != PL_DTA_MAP_MADE) {
		tally->missing += answer == PL_DTA_MAP_MISSING;
		tally->range += answer == PL_DTA_MAP_RANGE;
		return;
	}
	tally->error = o->to->ops->put(o->to, now_ns, &report);
	if (tally->error < 0)
		return;
	o->to->taken++;
	tally->put++;
}

static void end_entry(struct dta_out *o, const struct tally *tally, uint64_t now_ns)
{
	struct pl_export_stats *s = &o->export.stats;

	pl_count(&s->accepted, 1);
	if (tally->error < 0) {
		pl_count(&s->dropped[tally->error == -EAGAIN ? PL_EXPORT_MEMORY
				     : tally->error == -EIO  ? PL_EXPORT_IO
							     : PL_EXPORT_REJECTED],
			1);
		return;
	}
	if (tally->put == 0) {
		pl_count(&s->dropped[tally->range > 0 ? PL_EXPORT_FORMAT : PL_EXPORT_EMPTY], 1);
		return;
	}
	pl_count(&s->incomplete, tally->missing + tally->range);
	if (o->next - o->first == o->cap) {
		o->to->ops->flush(o->to, now_ns);
		settle(o, now_ns);
	}
	/* Each entry has an unsettled report, at most `cap` in all: settle freed a place. */
	assert(o->next - o->first < o->cap);
	o->ends[o->next++ % o->cap] = o->to->taken;
}

/* Returns true when all hops of the path can be postcards; some alone are no path. */
static bool may_be_path(struct dta_out *o, const struct pl_path *path, const struct pl_hop *hops,
	struct tally *tally)
{
	if (o->map.o.op != PL_DTA_POSTCARD)
		return true;
	if ((path->flags & PL_FLAG_PARTIAL) != 0)
		return false;
	for (unsigned int i = 0; i < path->hop_count; i++) {
		const struct pl_pack_record record = { &hops[i], path };
		struct pl_dta_report report;
		enum pl_dta_map_answer answer = pl_dta_map_report(&o->map, &record, &report);

		tally->range += answer == PL_DTA_MAP_RANGE;
		if (answer != PL_DTA_MAP_MADE || hops[i].index != i)
			return false;
	}
	return true;
}

/* Counts records of a kind that the map does not use. */
static void count_others(struct dta_out *o, uint32_t n)
{
	pl_count(&o->export.stats.accepted, n);
	pl_count(&o->export.stats.dropped[PL_EXPORT_EMPTY], n);
}

static void put_path(
	struct dta_out *o, const struct pl_path *path, const struct pl_hop *hops, uint64_t now_ns)
{
	struct tally tally = { 0 };

	if (o->map.o.record == PL_KIND_PATH) {
		put_record(o, &(struct pl_pack_record){ path, path }, now_ns, &tally);
	} else if (may_be_path(o, path, hops, &tally)) {
		for (unsigned int i = 0; i < path->hop_count; i++)
			put_record(o, &(struct pl_pack_record){ &hops[i], path }, now_ns, &tally);
	}
	end_entry(o, &tally, now_ns);
}

static void write_paths(struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	struct dta_out *o = self(e);

	if (o->map.o.record == PL_KIND_EVENT)
		count_others(o, batch->n_paths);
	for (uint32_t i = 0; o->map.o.record != PL_KIND_EVENT && i < batch->n_paths; i++)
		put_path(o, &batch->paths[i], &batch->hops[batch->first_hop[i]], now_ns);
	settle(o, now_ns);
}

static void write_events(
	struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	struct dta_out *o = self(e);

	if (o->map.o.record != PL_KIND_EVENT)
		count_others(o, n);
	for (uint32_t i = 0; o->map.o.record == PL_KIND_EVENT && i < n; i++) {
		struct tally tally = { 0 };

		put_record(o, &(struct pl_pack_record){ &events[i], NULL }, now_ns, &tally);
		end_entry(o, &tally, now_ns);
	}
	settle(o, now_ns);
}

/* ---- operations ---- */

static void flush(struct pl_export *e, uint64_t now_ns, bool all)
{
	struct dta_out *o = self(e);

	(void)all;
	o->to->ops->flush(o->to, now_ns);
	settle(o, now_ns);
}

static void mark(struct pl_export *e)
{
	self(e)->marked = self(e)->next;
}

static bool settled(struct pl_export *e)
{
	return self(e)->first >= self(e)->marked;
}

/* There is no reopen: neither a region nor a socket is opened again by name. */
static void words(struct pl_export *e, struct pl_export_words *ret)
{
	struct dta_out *o = self(e);

	ret->trouble[0] = ret->refusal[0] = '\0';
	o->to->ops->words(o->to, ret);
}

static void close_out(struct pl_export *e)
{
	struct dta_out *o = self(e);

	o->to->ops->close(o->to);
	free(o->ends);
	free(o);
}

static const struct pl_export_ops ops = {
	.name = "dta",
	.write_paths = write_paths,
	.write_events = write_events,
	.flush = flush,
	.mark = mark,
	.settled = settled,
	.words = words,
	.close = close_out,
};

int pl_dta_out_open(struct pl_export **ret, const struct pl_dta_map_options *options,
	struct pl_dta_to *to, struct pl_diag *diag)
{
	struct dta_out *o = calloc(1, sizeof(*o));
	int r = -ENOMEM;

	if (o == NULL) {
		to->ops->close(to);
		return -ENOMEM;
	}
	o->export.ops = &ops;
	o->to = to;
	o->cap = to->window;
	o->ends = calloc(o->cap, sizeof(*o->ends));
	if (o->ends != NULL)
		r = pl_dta_map_init(&o->map, options, diag);
	if (r < 0) {
		close_out(&o->export);
		return r;
	}
	*ret = &o->export;
	return 0;
}
