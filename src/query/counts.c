/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds counts of packets to groups: the kernel's tap counted them by key (lang/push_counts.h). */
#include <errno.h>
#include <stddef.h>

#include "core/tap_counts.h"
#include "query/run.h"

static const struct pl_tap_count_value *value_of(
	const struct pl_query_run *run, const struct rows *rows, uint32_t k)
{
	return &run->counts[rows->sel != NULL ? rows->sel[k] : k].value;
}

static uint64_t sum_of(const struct agg *agg, const struct pl_tap_count_value *value)
{
	return agg->args[0]->column->offset == offsetof(struct pl_pkt96, wire_len)
		       ? value->wire_bytes
		       : value->pay_bytes;
}

bool pl_query_counts_add(
	const struct pl_query_run *run, const struct agg *agg, const struct rows *rows)
{
	const enum agg_kind kind = agg->kind;

	if (kind != AGG_COUNT && kind != AGG_SUM && kind != AGG_AVG)
		return false;
	for (uint32_t k = 0; k < rows->n; k++) {
		const struct pl_tap_count_value *value = value_of(run, rows, k);
		void *acc = run->accs[k] + agg->offset;

		if (kind == AGG_COUNT) {
			*(uint64_t *)acc += value->packets;
		} else {
			((struct acc_sum *)acc)->sum += sum_of(agg, value);
			((struct acc_sum *)acc)->n += value->packets;
		}
	}
	return true;
}

uint64_t pl_query_counts_packets(
	const struct pl_query_run *run, const struct rows *rows, uint32_t k)
{
	return run->counts != NULL ? value_of(run, rows, k)->packets : 1;
}

uint64_t pl_query_counts_first(const struct pl_query_run *run, const struct rows *rows, uint32_t k)
{
	return value_of(run, rows, k)->first_ns;
}

/* Selects counts that have a window: their numbers go to run->sel, their slots to run->slots. */
static uint32_t assign(struct pl_query_run *run, const struct pl_tap_count *counts, uint32_t n)
{
	struct pl_query_stats *stats = &run->stats;
	uint32_t kept = 0;

	for (uint32_t k = 0; k < n; k++) {
		const uint64_t ts = counts[k].record.ts_ns, packets = counts[k].value.packets;
		uint32_t slot;

		stats->counted += packets;
		if (run->windows.spec.kind != W_NONE && ts > (uint64_t)run->windows.latest) {
			stats->ahead += packets;
			continue;
		}
		slot = pl_query_windows_slot(&run->windows, (int64_t)ts);
		stats->late += slot == SLOT_LATE ? packets : 0;
		if (slot == SLOT_LATE && pl_query_windows_resumed(&run->windows, (int64_t)ts))
			run->late_told += packets;
		stats->windows_refused += slot == SLOT_FULL ? packets : 0;
		if (slot == SLOT_FULL)
			lacks_room(&run->eval, (int64_t)ts);
		if (slot >= SLOT_FULL)
			continue;
		run->sel[kept] = (uint16_t)k;
		run->ts[kept] = ts;
		run->slots[kept++] = slot;
	}
	return kept;
}

static void feed(struct pl_query_run *run, const struct pl_tap_count *counts, uint32_t n)
{
	struct rows rows = { (const uint8_t *)counts, sizeof(*counts), 0, run->sel };

	rows.n = assign(run, counts, n);
	if (rows.n == 0)
		return;
	run->counts = counts;
	run->one_slot = false;
	pl_query_groups_add(run, &run->stages[0], &rows, run->slots);
	run->counts = NULL;
	note_absent(run);
}

int pl_query_feed_counts(struct pl_query_run *run, const struct pl_tap_count *counts, uint32_t n)
{
	const struct stage *stage = run->query->stages[0];

	if (run->finished || run->query->n_stages != 1 || stage->n_sources > 0 || !stage->grouped ||
		stage->n_folds > 0 || run->windows.spec.kind == W_SESSION)
		return -EINVAL;
	for (uint32_t at = 0; at < n; at += PL_QUERY_BATCH)
		feed(run, counts + at, n - at < PL_QUERY_BATCH ? n - at : PL_QUERY_BATCH);
	return 0;
}

void pl_query_told(struct pl_query_run *run, bool on)
{
	run->told = on;
	run->windows.idle_ns = on ? UINT64_MAX : run->config.idle_ns;
}
