/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records and rows of tables in the form of the HTTP API, and the order of rows. A row is any
 * structure that a table of struct pl_field describes (names, offsets, forms, presence), as
 * fields.def describes records.
 *
 * The API's readers include browsers, whose numbers are exact only up to 2^53: a time in
 * nanoseconds is a decimal string, and one since the Unix epoch ("ts_ns", "last_ts_ns") has its RFC
 * 3339 form beside it ("time", "last_time"). All else is as in the files (record/json.h). Any
 * thread may call.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "record/record.h"

/* Writes "2026-11-21T09:55:06.123456789Z", terminated; returns the length. */
#define PL_TIME_TEXT_MAX 40
size_t pl_time_text(char dst[PL_TIME_TEXT_MAX], uint64_t ts_ns);

/* Writes "time" and "time_ns" into the open object. */
void pl_json_time(struct pl_json *json, uint64_t ts_ns);

/* Writes the row's members into the open object; an absent value has none. */
void pl_row_json(struct pl_json *json, const struct pl_field *fields, size_t n, const void *row,
	uint32_t present);

/* Write {"kind":"path",…,"hops":[…]}, {"kind":"event",…} and {"kind":"value",…}. */
void pl_path_api(
	struct pl_json *json, const struct pl_path *path, const struct pl_hop *hops, size_t n);
void pl_event_api(struct pl_json *json, const struct pl_event *event);
void pl_value_api(struct pl_json *json, const struct pl_value *value);

/* Finds a field by its name; NULL when there is none. */
const struct pl_field *pl_row_field(const struct pl_field *fields, size_t n, const char *name);

/* Returns a value below, equal to or above 0 as a comes before b in ascending order; a missing
 * value comes before every other. */
int pl_row_compare(const struct pl_field *field, const void *a, uint32_t present_a, const void *b,
	uint32_t present_b);
