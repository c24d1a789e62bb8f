/* SPDX-License-Identifier: BSD-2-Clause */
/* Feeds records and the time to a run. */
#include "query/run.h"

#include <errno.h>
#include <string.h>

#include "core/tap_counts.h"
#include "query/texts.h"

#define SHORTER_BYTES 16384 /* room for records that are shortened at once */

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_query_stats, __VA_ARGS__)
#include "query/stats.def"
#undef PL_STAT
};

const struct pl_stats pl_query_stats_list = { stat_rows, sizeof(stat_rows) / sizeof(stat_rows[0]) };

/* Returns true when something waits for time to pass. */
static bool has_time(const struct pl_query_run *run)
{
	return run->windows.spec.kind != W_NONE || run->query->within_ns > 0;
}

/* Returns true when the time is older than the time that pairs or windows have reached. */
static bool is_past(const struct pl_query_run *run, int64_t ts)
{
	return run->n_paired > 0 ? ts < pl_query_pairs_watermark(run->paired[0])
				 : pl_query_windows_past(&run->windows, ts);
}

static void restart(struct pl_query_run *run)
{
	pl_query_run_until(run, INT64_MAX);
	pl_query_windows_restart(&run->windows);
	run->eval.losses.n = 0;
	for (uint32_t i = 0; i < run->n_paired; i++)
		pl_query_pairs_restart(run->paired[i], run->windows.watermark);
	run->stats.restarts++;
}

static void note(struct pl_query_run *run, unsigned int kind, uint32_t partition, int64_t greatest)
{
	const bool late = run->config.restarts && is_past(run, greatest);

	if (pl_query_windows_note(&run->windows, kind, partition, greatest, late))
		restart(run);
}

/* Notes the greatest allowed time of a batch, and counts records too far ahead. */
static void note_times(struct pl_query_run *run, const struct stage *stage, unsigned int kind,
	const uint8_t *records, uint32_t n, uint32_t partition)
{
	const uint64_t latest = (uint64_t)run->windows.latest;
	const uint32_t size = stage->input.size;
	uint64_t greatest = 0, ts;
	uint32_t good = 0, ahead = 0;

	for (uint32_t k = 0; k < n; k++) {
		memcpy(&ts, records + (size_t)k * size + stage->time->offset, sizeof(ts));
		good += ts <= latest;
		ahead += ts > latest && ts <= PL_QUERY_TIME_MAX;
		ts = ts > latest ? 0 : ts;
		greatest = ts > greatest ? ts : greatest;
	}
	run->stats.ahead += ahead;
	if (good > 0 && !run->told)
		note(run, kind, partition, (int64_t)greatest);
}

/* Begins a batch. Sessions and records that wait for partners hold texts as long as they last, which
 * no pane tells. */
static void begin_texts(struct pl_query_run *run)
{
	const bool by_pane = run->windows.spec.kind != W_SESSION && run->query->within_ns == 0;

	run->windows.batch = pl_query_texts_next(
		run->eval.texts, by_pane ? pl_query_windows_oldest(&run->windows) : 0);
}

static void feed_batch(struct pl_query_run *run, unsigned int kind, const uint8_t *records,
	uint32_t n, uint32_t partition)
{
	const struct stage *of = NULL;

	if (run->eval.texts != NULL)
		begin_texts(run);
	for (uint32_t i = 0; i < run->query->n_stages; i++) {
		struct stage_run *s = &run->stages[i];

		if (s->stage->n_sources > 0 || s->stage->kind != kind)
			continue;
		of = s->stage;
		if (s->pairs_of != NULL)
			pl_query_pairs_add(run, s, records, n);
		else
			pl_query_scan(run, s, records, n);
	}
	for (uint32_t i = 0; i < run->query->n_stages; i++) {
		const struct zip *zip = run->query->stages[i]->zip;

		if (zip != NULL && zip->sides[0]->kind == kind)
			pl_query_zip_give(run, &run->stages[i], records);
	}
	run->stats.records += n;
	note_absent(run);
	if (!has_time(run) || of == NULL)
		return;
	note_times(run, of, kind, records, n, partition);
	pl_query_run_until(run, pl_query_windows_goal(&run->windows));
}

int pl_query_feed(struct pl_query_run *run, unsigned int kind, const void *records, uint32_t n,
	uint32_t partition)
{
	const uint32_t size = pl_query_stream_size(kind);

	if (partition >= run->config.partitions || run->finished)
		return -EINVAL;
	if (!pl_query_reads(run->query, kind))
		return 0;
	for (uint32_t at = 0; at < n; at += PL_QUERY_BATCH)
		feed_batch(run, kind, (const uint8_t *)records + (size_t)at * size,
			n - at < PL_QUERY_BATCH ? n - at : PL_QUERY_BATCH, partition);
	return 0;
}

int pl_query_feed_flat(struct pl_query_run *run, enum pl_flat_kind kind, const void *records,
	uint32_t n, uint32_t partition)
{
	const enum pl_flat_kind begins = pl_flat_short(kind);
	const uint32_t size = pl_flat(begins)->size;
	_Alignas(8) uint8_t shorter[SHORTER_BYTES];
	int r = pl_query_feed(run, kind, records, n, partition);

	if (begins == kind || !pl_query_reads(run->query, begins))
		return r;
	for (uint32_t done = 0; r == 0 && done < n;) {
		uint32_t some = 0;

		while (some < sizeof(shorter) / size && done < n)
			memcpy(shorter + (size_t)some++ * size,
				(const uint8_t *)records + (size_t)done++ * pl_flat(kind)->size,
				size);
		r = pl_query_feed(run, begins, shorter, some, partition);
	}
	return r;
}

static int feed_hops(
	struct pl_query_run *run, const struct pl_record_batch *batch, uint32_t partition)
{
	struct pl_query_hop hops[64];
	uint32_t n = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < batch->n_paths; i++) {
		for (uint32_t k = 0; r == 0 && k < batch->paths[i].hop_count; k++) {
			hops[n].hop = batch->hops[batch->first_hop[i] + k];
			hops[n++].path = batch->paths[i];
			if (n < sizeof(hops) / sizeof(hops[0]))
				continue;
			r = pl_query_feed(run, PL_QUERY_HOPS, hops, n, partition);
			n = 0;
		}
	}
	return r == 0 ? pl_query_feed(run, PL_QUERY_HOPS, hops, n, partition) : r;
}

int pl_query_feed_reports(
	struct pl_query_run *run, const struct pl_record_batch *batch, uint32_t partition)
{
	struct pl_query_path paths[128];
	int r = 0;

	for (uint32_t done = 0; r == 0 && done < batch->n_paths;) {
		uint32_t n = 0;

		for (; n < sizeof(paths) / sizeof(paths[0]) && done < batch->n_paths; n++, done++)
			paths[n] = (struct pl_query_path){ batch->paths[done],
				batch->hops + batch->first_hop[done],
				batch->paths[done].hop_count };
		r = pl_query_feed(run, PL_QUERY_PATHS, paths, n, partition);
	}
	if (r == 0 && pl_query_reads(run->query, PL_QUERY_HOPS))
		r = feed_hops(run, batch, partition);
	return r;
}

int pl_query_feed_counts(struct pl_query_run *run, const struct pl_tap_count *counts, uint32_t n)
{
	const struct stage *stage = run->query->stages[0];

	if (run->finished || run->query->n_stages != 1 || stage->n_sources > 0 || !stage->grouped ||
		stage->n_folds > 0 || run->windows.spec.kind == W_SESSION)
		return -EINVAL;
	for (uint32_t at = 0; at < n; at += PL_QUERY_BATCH)
		pl_query_scan_counts(
			run, counts + at, n - at < PL_QUERY_BATCH ? n - at : PL_QUERY_BATCH);
	return 0;
}

void pl_query_told(struct pl_query_run *run, bool on)
{
	run->told = on;
	run->windows.idle_ns = on ? UINT64_MAX : run->config.idle_ns;
}

void pl_query_clock(struct pl_query_run *run, uint64_t real_ns)
{
	uint64_t latest;

	if (__builtin_add_overflow(real_ns, run->config.ahead_ns, &latest) ||
		latest > PL_QUERY_TIME_MAX)
		latest = PL_QUERY_TIME_MAX;
	run->windows.latest = (int64_t)latest;
}

int pl_query_passed(struct pl_query_run *run, unsigned int kind, uint64_t ts_ns, uint32_t partition)
{
	if (partition >= run->config.partitions || run->finished)
		return -EINVAL;
	if (!pl_query_reads(run->query, kind) || !has_time(run) ||
		ts_ns > (uint64_t)run->windows.latest)
		return 0;
	note(run, kind, partition, (int64_t)ts_ns);
	pl_query_run_until(run, pl_query_windows_goal(&run->windows));
	note_absent(run);
	return 0;
}

int pl_query_ended(struct pl_query_run *run, unsigned int kind, uint32_t partition)
{
	if (partition >= run->config.partitions || run->finished)
		return -EINVAL;
	if (!pl_query_reads(run->query, kind))
		return 0;
	pl_query_windows_ended(&run->windows, kind, partition);
	if (has_time(run))
		pl_query_run_until(run, pl_query_windows_goal(&run->windows));
	note_absent(run);
	return 0;
}

int pl_query_behind(struct pl_query_run *run, unsigned int kind, uint32_t partition, bool behind)
{
	if (partition >= run->config.partitions || run->finished)
		return -EINVAL;
	if (pl_query_reads(run->query, kind))
		pl_query_windows_behind(&run->windows, kind, partition, behind);
	return 0;
}

void pl_query_advance(struct pl_query_run *run, uint64_t now_ns)
{
	pl_query_windows_tell(&run->windows, now_ns);
	if (!run->finished && has_time(run))
		pl_query_run_until(run, pl_query_windows_goal(&run->windows));
	note_absent(run);
}

void pl_query_finish(struct pl_query_run *run)
{
	if (!run->finished)
		pl_query_run_until(run, INT64_MAX);
	run->finished = true;
	note_absent(run);
}

int pl_query_take_records(struct pl_query_run *run, pl_query_record_sink *sink)
{
	const struct stage *stage = run->stages[0].stage;

	if (run->query->n_stages != 1 || stage->grouped || stage->n_sources > 0 ||
		stage->pairs != NULL)
		return -EINVAL;
	run->records = sink;
	return 0;
}

uint64_t pl_query_went_back(const struct pl_query_run *run)
{
	return pl_query_windows_went_back(&run->windows);
}

bool pl_query_lacks_texts(const struct pl_query_run *run)
{
	return run->eval.texts != NULL && pl_query_texts_full(run->eval.texts);
}

const struct pl_query_stats *pl_query_run_stats(const struct pl_query_run *run)
{
	return &run->stats;
}
