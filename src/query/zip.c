/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of two stages that come from the same record (the zip of Marple, SIGCOMM 2017). Both stages
 * read the same batch, and mark their rows with the number of the record in it; so the rows of a
 * record are paired at the end of the batch, and no row waits longer.
 */
#include <string.h>

#include "query/origin.h"

void pl_query_zip_init(struct pl_query_run *run, struct stage_run *s)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct stage_run *side = &run->stages[s->stage->zip->sides[i]->number];

		side->zip_of = s;
		/* A record makes one row, or one for each EMIT of a step. */
		side->zipped = (struct row_list){ .max = PL_QUERY_BATCH * FOLD_STEPS_MAX,
			.size = (uint32_t)sizeof(struct zip_head) + side->stage->out.size };
	}
}

static struct zip_head head_of(const struct row_list *list, uint32_t k)
{
	struct zip_head head = { UINT32_MAX, 0 };

	if (k < list->n)
		memcpy(&head, list->data + (size_t)k * list->size, sizeof(head));
	return head;
}

/* Makes a row of two; the time of their record is behind the columns. */
static void make_row(const struct stage *stage, uint8_t *to, const uint8_t *left,
	const uint8_t *right, const uint8_t *record)
{
	const struct stage *a = stage->zip->sides[0], *b = stage->zip->sides[1];
	const size_t left_bytes = (size_t)a->out.n * CELL_BYTES;
	uint64_t head, other;

	memcpy(&head, left, sizeof(head));
	memcpy(&other, right, sizeof(other));
	head |= other << a->out.n;
	memcpy(to, &head, sizeof(head));
	row_set_origin(to, pl_query_origin_join(row_origin(left), row_origin(right)));
	memcpy(to + ROW_HEAD, left + ROW_HEAD, left_bytes);
	memcpy(to + ROW_HEAD + left_bytes, right + ROW_HEAD, (size_t)b->out.n * CELL_BYTES);
	memcpy(to + stage->time->offset, record + a->time->offset, sizeof(uint64_t));
}

/* Gives the pairs of a left row with the right rows from number b up to b_end, all of one
 * record. */
static void give_row(struct pl_query_run *run, struct stage_run *s, const uint8_t *records,
	struct zip_head of, const uint8_t *left, uint32_t b, uint32_t b_end)
{
	const struct stage *stage = s->stage, *side = stage->zip->sides[0];
	const struct row_list *right = &run->stages[stage->zip->sides[1]->number].zipped;
	const size_t skip = sizeof(struct zip_head);
	uint8_t row[ROW_HEAD + PL_QUERY_COLUMNS_MAX * CELL_BYTES + sizeof(uint64_t)];

	for (; b < b_end; b++) {
		make_row(stage, row, left + skip, right->data + (size_t)b * right->size + skip,
			records + (size_t)of.record * side->input.size);
		run->pairs_incomplete = of.incomplete || head_of(right, b).incomplete;
		pl_query_scan(run, s, row, 1);
		run->pairs_incomplete = false;
	}
}

void pl_query_zip_give(struct pl_query_run *run, struct stage_run *s, const uint8_t *records)
{
	struct row_list *left = &run->stages[s->stage->zip->sides[0]->number].zipped;
	struct row_list *right = &run->stages[s->stage->zip->sides[1]->number].zipped;
	uint32_t b = 0, b_end = 0;

	for (uint32_t a = 0; a < left->n; a++) {
		const struct zip_head of = head_of(left, a);

		while (b < right->n && head_of(right, b).record < of.record)
			b++;
		b_end = b_end < b ? b : b_end;
		while (b_end < right->n && head_of(right, b_end).record == of.record)
			b_end++;
		give_row(run, s, records, of, left->data + (size_t)a * left->size, b, b_end);
	}
	left->n = right->n = 0;
}
