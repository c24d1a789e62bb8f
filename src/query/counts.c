/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds counts of packets to groups: the kernel's tap counted them by key (lang/push_counts.h). */
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
