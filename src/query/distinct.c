/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of distinct values. All sets of one aggregate share a table, whose keys are the number of
 * the group's entry and the values; behind its key an entry has a link to the next one of its set,
 * by which sets are walked and dropped. */
#include <string.h>

#include "base/prefetch.h"
#include "query/run.h"

static struct table *table_of(const struct stage_run *s, const struct agg *agg)
{
	return &s->groups.distinct[agg - s->stage->aggs];
}

static struct acc_distinct *acc_of(const struct stage_run *s, const struct agg *agg, uint32_t entry)
{
	return (struct acc_distinct *)(void *)(table_at(&s->groups.table, entry) +
					       s->groups.acc_offset + agg->offset);
}

int pl_query_distinct_init(struct pl_query_run *run, struct stage_run *s, uint32_t i)
{
	const struct agg *agg = &s->stage->aggs[i];
	uint32_t key_bytes = 8;
	int r;

	for (uint32_t a = 0; a < agg->n_args; a++)
		key_bytes += cell_width(agg->args[a]->type);
	r = pl_query_table_init(&s->groups.distinct[i], run->config.max_distinct, key_bytes,
		key_bytes + (uint32_t)sizeof(struct link), run->config.seed);
	run->bytes += pl_query_table_bytes(&s->groups.distinct[i]);
	return r;
}

static struct link *link_at(const struct table *t, uint32_t value)
{
	return (struct link *)(void *)(table_at(t, value) + t->key_bytes);
}

/* Adds a value to the set of a group, when it is not there. */
static void enter(struct pl_query_run *run, struct stage_run *s, const struct agg *agg,
	uint32_t value, uint32_t entry)
{
	const struct table *t = table_of(s, agg);
	struct acc_distinct *acc = acc_of(s, agg, entry);
	struct link *link;
	uint32_t slot;

	if (value == TABLE_NONE) {
		memcpy(&slot, table_at(&s->groups.table, entry), sizeof(slot));
		if (run->windows.spec.kind == W_SESSION)
			session_of(s, entry)->incomplete = 1;
		else if (s->stage->n_sources == 0 && slot < run->windows.max)
			run->windows.panes[slot].incomplete = true;
		run->row.incomplete = true;
		run->stats.distinct_refused++;
		return;
	}
	link = link_at(t, value);
	if (link->linked)
		return;
	link->linked = 1;
	link->next = acc->head;
	acc->head = value + 1;
	acc->n++;
}

/* Copies an argument into the keys. Returns true when values of it are absent; these are marked. */
static bool put_argument(struct pl_query_run *run, const struct node *arg, uint32_t at,
	uint32_t stride, const struct rows *rows, uint8_t left_out[PL_QUERY_BATCH])
{
	const struct vector *v = &run->eval.vectors[0];
	uint8_t *to = run->keys + at;

	if (pl_query_keys_copy(run, arg, cell_width(arg->type), at, stride, rows))
		return false;
	pl_query_eval(&run->eval, arg, rows, 0);
	for (uint32_t k = 0; k < rows->n; k++, to += stride) {
		uint64_t value = arg->type == PL_QUERY_BOOL ? v->b[k] : v->u[k];

		if (arg->type == PL_QUERY_DOUBLE && v->d[k] == 0)
			value = 0;
		if (arg->type == PL_QUERY_ADDR)
			memcpy(to, &v->a[k], 16);
		else
			memcpy(to, &value, 8);
	}
	for (uint32_t k = 0; v->some_absent && k < rows->n; k++)
		left_out[k] |= v->absent[k];
	return v->some_absent;
}

/* Removes keys and entries that are left out. Returns the number of those that stay. */
static uint32_t close_up(uint8_t *keys, uint32_t stride, const uint8_t *left_out,
	const uint32_t *entries, uint32_t n, uint32_t *ret_of)
{
	uint32_t kept = 0;

	for (uint32_t k = 0; k < n; k++) {
		if (left_out[k])
			continue;
		if (kept < k)
			memcpy(keys + (size_t)kept * stride, keys + (size_t)k * stride, stride);
		ret_of[kept++] = entries[k];
	}
	return kept;
}

void pl_query_distinct_add(struct pl_query_run *run, struct stage_run *s, const struct agg *agg,
	const struct rows *rows, const uint32_t *entries)
{
	struct table *t = table_of(s, agg);
	uint32_t values[PL_QUERY_BATCH], of[PL_QUERY_BATCH], at = 8, n = rows->n;
	uint8_t left_out[PL_QUERY_BATCH] = { 0 };
	bool some_absent = false;

	for (uint32_t k = 0; k < n; k++) {
		uint64_t head = entries[k];

		memcpy(run->keys + (size_t)k * t->key_bytes, &head, 8);
	}
	for (uint32_t a = 0; a < agg->n_args; a++) {
		some_absent |= put_argument(run, agg->args[a], at, t->key_bytes, rows, left_out);
		at += cell_width(agg->args[a]->type);
	}
	if (some_absent) {
		n = close_up(run->keys, t->key_bytes, left_out, entries, n, of);
		entries = of;
	}
	pl_query_table_add(t, run->keys, n, values);
	for (uint32_t k = 0; k < n; k++) {
		/* Most values are there already. */
		if (values[k] == TABLE_NONE || !link_at(t, values[k])->linked)
			enter(run, s, agg, values[k], entries[k]);
	}
}

void pl_query_distinct_merge(struct pl_query_run *run, struct stage_run *s, const struct agg *agg,
	uint32_t from, uint32_t into)
{
	struct table *t = table_of(s, agg);
	uint32_t next = acc_of(s, agg, from)->head;

	while (next != 0) {
		const uint8_t *key = table_at(t, next - 1);
		uint64_t head = into;
		struct link link;
		uint32_t value;

		memcpy(&link, key + t->key_bytes, sizeof(link));
		memcpy(run->keys, key, t->key_bytes);
		memcpy(run->keys, &head, 8);
		pl_query_table_add(t, run->keys, 1, &value);
		enter(run, s, agg, value, into);
		next = link.next;
	}
}

void pl_query_distinct_enter(struct pl_query_run *run, struct stage_run *s, const struct agg *agg,
	uint32_t entry, const uint8_t *values)
{
	struct table *t = table_of(s, agg);
	uint64_t head = entry;
	uint32_t value;

	memcpy(run->keys, &head, 8);
	memcpy(run->keys + 8, values, t->key_bytes - 8);
	pl_query_table_add(t, run->keys, 1, &value);
	enter(run, s, agg, value, entry);
}

uint32_t pl_query_distinct_first(const struct stage_run *s, const struct agg *agg, uint32_t entry)
{
	return acc_of(s, agg, entry)->head;
}

const uint8_t *pl_query_distinct_walk(
	const struct stage_run *s, const struct agg *agg, uint32_t *at)
{
	const struct table *t = table_of(s, agg);
	const uint8_t *key = table_at(t, *at - 1);
	struct link link;

	memcpy(&link, key + t->key_bytes, sizeof(link));
	*at = link.next;
	return key + 8;
}

void pl_query_distinct_drop(
	struct stage_run *s, const struct agg *agg, const uint32_t *entries, uint32_t n)
{
	struct table *t = table_of(s, agg);
	uint32_t values[DROP_AT_ONCE], some = 0;

	for (uint32_t k = 0; k < n; k++) {
		const uint32_t first = acc_of(s, agg, entries[k])->head;

		if (first != 0)
			pl_prefetch_write(table_at(t, first - 1));
	}
	for (uint32_t k = 0; k < n; k++) {
		struct acc_distinct *acc = acc_of(s, agg, entries[k]);

		for (uint32_t next = acc->head; next != 0;
			next = link_at(t, values[some++])->next) {
			if (some == DROP_AT_ONCE) {
				pl_query_table_remove_all(t, values, some);
				some = 0;
			}
			values[some] = next - 1;
		}
		acc->head = 0;
	}
	pl_query_table_remove_all(t, values, some);
}
