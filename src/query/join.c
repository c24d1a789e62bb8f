/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins rows of sub-queries of one window by equal keys. An absent key equals no other. */
#include <stdlib.h>
#include <string.h>

#include "query/origin.h"

int pl_query_join_init(struct pl_query_run *run, struct stage_run *s)
{
	const uint32_t max = run->config.max_groups;

	for (uint32_t i = 1; i < s->stage->n_sources; i++) {
		const struct join *join = &s->stage->sources[i];
		const uint32_t key_bytes = 8 + join->n_keys * CELL_BYTES;

		s->joined[i] = (struct row_list){ .max = max, .size = join->out.size };
		s->join_next[i] = calloc(max, sizeof(*s->join_next[i]));
		if (s->join_next[i] == NULL || pl_query_table_init(&s->join[i], max, key_bytes,
						       key_bytes + 8, run->config.seed) < 0)
			return -ENOMEM;
		run->bytes += pl_query_table_bytes(&s->join[i]) + (uint64_t)max * 4;
	}
	return 0;
}

void pl_query_join_done(struct stage_run *s)
{
	for (uint32_t i = 1; i < s->stage->n_sources; i++) {
		pl_query_table_done(&s->join[i]);
		free(s->join_next[i]);
		free(s->joined[i].data);
	}
}

/* Makes the key of a row. Returns false when one of its columns is absent. */
static bool make_key(const struct join *join, bool left, const uint8_t *row, uint8_t *key)
{
	uint64_t head;

	memcpy(&head, row, sizeof(head));
	memset(key, 0, 8);
	for (uint32_t i = 0; i < join->n_keys; i++) {
		const struct column *c = left ? join->keys[i].left : join->keys[i].right;

		if (head >> c->absent & 1)
			return false;
		memcpy(key + 8 + (size_t)i * CELL_BYTES, row + c->offset, CELL_BYTES);
	}
	return true;
}

/* Builds the table: for each key the first row, + 1; further rows follow in join_next. */
static void build(struct pl_query_run *run, struct stage_run *s, uint32_t i)
{
	const struct row_list *right = &run->stages[s->stage->sources[i].stage->number].out;
	struct table *t = &s->join[i];

	for (uint32_t k = right->n; k-- > 0;) {
		uint32_t entry, first;
		uint8_t *to;

		s->join_next[i][k] = 0;
		if (!make_key(&s->stage->sources[i], false, right->data + (size_t)k * right->size,
			    run->keys))
			continue;
		pl_query_table_add(t, run->keys, 1, &entry); /* there is room: rows are groups */
		if (entry == TABLE_NONE)
			continue;
		to = table_at(t, entry) + t->key_bytes;
		memcpy(&first, to, sizeof(first));
		s->join_next[i][k] = first;
		first = k + 1;
		memcpy(to, &first, sizeof(first));
	}
}

static void clear(struct pl_query_run *run, struct stage_run *s, uint32_t i)
{
	const struct row_list *right = &run->stages[s->stage->sources[i].stage->number].out;
	struct table *t = &s->join[i];

	for (uint32_t k = 0; k < right->n && t->live > 0; k++) {
		uint32_t entry;

		if (!make_key(&s->stage->sources[i], false, right->data + (size_t)k * right->size,
			    run->keys))
			continue;
		entry = pl_query_table_find(t, run->keys);
		if (entry != TABLE_NONE)
			pl_query_table_remove(t, entry);
	}
}

/* Gives a joined row; `right` NULL: its columns are absent. */
static void give(struct pl_query_run *run, struct stage_run *s, uint32_t i, const uint8_t *left,
	uint32_t left_n, const uint8_t *right)
{
	const struct join *join = &s->stage->sources[i];
	uint32_t right_n = join->kind == J_ANTI ? 0 : join->stage->out.n;
	uint8_t row[ROW_HEAD + PL_QUERY_COLUMNS_MAX * CELL_BYTES] = { 0 };
	uint64_t head, other = ((uint64_t)1 << right_n) - 1;

	memcpy(&head, left, sizeof(head));
	if (right != NULL)
		memcpy(&other, right, sizeof(other));
	head |= other << left_n;
	memcpy(row, &head, sizeof(head));
	row_set_origin(row, right != NULL
				    ? pl_query_origin_join(row_origin(left), row_origin(right))
				    : row_origin(left));
	memcpy(row + ROW_HEAD, left + ROW_HEAD, (size_t)left_n * CELL_BYTES);
	if (right != NULL)
		memcpy(row + ROW_HEAD + (size_t)left_n * CELL_BYTES, right + ROW_HEAD,
			(size_t)right_n * CELL_BYTES);
	pl_query_rows_add(run, &s->joined[i], row, 1);
}

static void probe(struct pl_query_run *run, struct stage_run *s, uint32_t i,
	const struct row_list *left, uint32_t left_n)
{
	const struct join *join = &s->stage->sources[i];
	const struct row_list *right = &run->stages[join->stage->number].out;
	const struct table *t = &s->join[i];

	for (uint32_t k = 0; k < left->n; k++) {
		const uint8_t *row = left->data + (size_t)k * left->size;
		uint32_t entry = TABLE_NONE, at = 0;

		if (make_key(join, true, row, run->keys))
			entry = pl_query_table_find(t, run->keys);
		if (entry != TABLE_NONE)
			memcpy(&at, table_at(t, entry) + t->key_bytes, sizeof(at));
		if (at == 0 && join->kind != J_INNER)
			give(run, s, i, row, left_n, NULL);
		for (; at != 0 && join->kind != J_ANTI; at = s->join_next[i][at - 1])
			give(run, s, i, row, left_n, right->data + (size_t)(at - 1) * right->size);
	}
}

const struct row_list *pl_query_join_rows(struct pl_query_run *run, struct stage_run *s)
{
	const struct stage *stage = s->stage;
	const struct row_list *left = &run->stages[stage->sources[0].stage->number].out;

	for (uint32_t i = 1; i < stage->n_sources; i++) {
		s->joined[i].n = 0;
		build(run, s, i);
		probe(run, s, i, left, stage->sources[i - 1].out.n);
		clear(run, s, i);
		left = &s->joined[i];
	}
	return left;
}
