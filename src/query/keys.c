/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the keys of rows: of groups, distinct values and pairs. */
#include <string.h>

#include "query/run.h"

bool pl_query_key_is_plain(const struct node *node, uint32_t width)
{
	const struct column *c = node->column;

	return node->op == N_COLUMN && c->width == width && c->absent < 0 && c->present == 0 &&
	       c->shift == 0 && c->mask == UINT64_MAX && c->type != PL_QUERY_BOOL;
}

#define COPY_LOOP(bytes)                                                                           \
	for (uint32_t k = 0; k < rows->n; k++)                                                     \
	memcpy(to + (size_t)k * stride, row_at(rows, k) + from, bytes)

static void copy_column(
	uint8_t *to, uint32_t stride, const struct rows *rows, uint32_t from, uint8_t width)
{
	switch (width) {
	case 1:
		COPY_LOOP(1);
		break;
	case 2:
		COPY_LOOP(2);
		break;
	case 4:
		COPY_LOOP(4);
		break;
	case 8:
		COPY_LOOP(8);
		break;
	default:
		COPY_LOOP(16);
		break;
	}
}

bool pl_query_keys_copy(struct pl_query_run *run, const struct node *node, uint8_t width,
	uint32_t offset, uint32_t stride, const struct rows *rows)
{
	if (!pl_query_key_is_plain(node, width))
		return false;
	copy_column(run->keys + offset, stride, rows, node->column->offset, width);
	return true;
}

/* Writes the value into the key; an absent value is a bit in the key's first word. */
static void put_key(
	uint8_t *key, const struct key *to, uint32_t number, const struct vector *v, uint32_t k)
{
	uint64_t value = to->node->type == PL_QUERY_BOOL ? v->b[k] : v->u[k];
	uint32_t absent;

	if (v->some_absent && v->absent[k]) {
		memset(key + to->offset, 0, to->width);
		memcpy(&absent, key + 4, 4);
		absent |= 1u << number;
		memcpy(key + 4, &absent, 4);
		return;
	}
	if (to->node->type == PL_QUERY_DOUBLE && v->d[k] == 0)
		value = 0; /* -0 equals 0 */
	if (to->width == 16)
		memcpy(key + to->offset, &v->a[k], 16);
	else
		memcpy(key + to->offset, &value, to->width);
}

void pl_query_keys_make(struct pl_query_run *run, const struct key *of, uint32_t n, uint32_t stride,
	const struct rows *rows, const uint32_t *slots)
{
	uint8_t *keys = run->keys;
	uint32_t end = 8;

	for (uint32_t i = 0; i < n; i++)
		end += of[i].width;
	/* Bytes behind the last key are part of the last word. */
	for (uint32_t k = 0; end < stride && k < rows->n; k++)
		memset(keys + (size_t)k * stride + stride - 8, 0, 8);
	for (uint32_t k = 0; k < rows->n; k++) {
		uint64_t head = slots != NULL ? slots[k] : 0;

		memcpy(keys + (size_t)k * stride, &head, 8);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct key *key = &of[i];

		if (pl_query_keys_copy(run, key->node, key->width, key->offset, stride, rows))
			continue;
		pl_query_eval(&run->eval, key->node, rows, 0);
		for (uint32_t k = 0; k < rows->n; k++)
			put_key(keys + (size_t)k * stride, key, i, &run->eval.vectors[0], k);
	}
}
