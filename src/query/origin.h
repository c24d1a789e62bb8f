/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Origins of groups and rows: the earliest time of the records, and their observation points. A run
 * numbers the points as they come, so a set of points is a word; the 29th and later ones share a
 * bit. Most runs have records of one point, and then groups store no points: their set is empty.
 */
#pragma once

#include "query/run.h"

/* Bit that points without a bit of their own share. */
#define PL_QUERY_EXP_OTHERS (1u << PL_QUERY_EXP_MAX)

/* Called once the stage of the run is known. */
void pl_query_origins_init(struct stage_run *s);
/* Bit of a point, which is at most PL_OBS_POINT_MASK. */
uint32_t pl_query_origin_bit(struct pl_query_run *run, uint16_t point);
/* Bit of the point of a record of the stage's stream; 0: no point. */
uint32_t pl_query_origin_bit_of(
	struct pl_query_run *run, const struct stage_run *s, const uint8_t *record);

/* Returns true when all records so far, with these, are of one point, or of a stream without
 * points: groups then store no points. */
bool pl_query_origins_alike(
	struct pl_query_run *run, const struct stage_run *s, const struct rows *rows);
/* Adds record k of the rows, with this time, to the origin of its group. */
void pl_query_origin_add(struct pl_query_run *run, struct stage_run *s, const struct rows *rows,
	uint32_t k, uint64_t ts, uint32_t entry);
void pl_query_origins_add(struct pl_query_run *run, struct stage_run *s, const struct rows *rows,
	const uint64_t *ts, const uint32_t *entries);
/* Adds the origin of one group to that of another. */
void pl_query_origin_unite(
	struct pl_query_run *run, struct stage_run *s, uint32_t from, uint32_t into);
void pl_query_origin_put(
	const struct pl_query_run *run, struct stage_run *s, uint32_t into, struct row_origin o);
struct row_origin pl_query_origin_of(
	const struct pl_query_run *run, const struct stage_run *s, uint32_t entry);

/* Copies origins from rows with a head to the rows made of them, `size` bytes apart. */
void pl_query_origins_copy(const struct rows *rows, uint8_t *to, uint32_t size);
/* Makes origins from records of the stage's stream. */
void pl_query_origins_of_records(struct pl_query_run *run, const struct stage_run *s,
	const struct rows *rows, uint8_t *to, uint32_t size);
struct row_origin pl_query_origin_join(struct row_origin a, struct row_origin b);
/* Fills in the origin of the row for the sink. */
void pl_query_origin_tell(struct pl_query_run *run, struct pl_query_row *row, const uint8_t *data);
