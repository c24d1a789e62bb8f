/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A JSON writer (RFC 8259) over pl_buf. It places commas and quotes; the caller keeps the nesting
 * right (asserted). 64-bit integers are written with all their digits, never through a double.
 * Strings are escaped; bytes that are not UTF-8 become U+FFFD, so the output is always valid JSON.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define PL_JSON_DEPTH_MAX 16

struct pl_json {
	struct pl_buf *buf;
	uint8_t depth;
	bool first[PL_JSON_DEPTH_MAX]; /* no comma yet at this depth */
	bool after_key;
};

void pl_json_init(struct pl_json *json, struct pl_buf *buf);
void pl_json_object(struct pl_json *json);
void pl_json_object_end(struct pl_json *json);
void pl_json_array(struct pl_json *json);
void pl_json_array_end(struct pl_json *json);
void pl_json_key(struct pl_json *json, const char *key);
void pl_json_str(struct pl_json *json, const char *value);
void pl_json_strn(struct pl_json *json, const char *value, size_t len);
void pl_json_u64(struct pl_json *json, uint64_t value);
/* Write a member of the open object: key and value. */
void pl_json_text(struct pl_json *json, const char *key, const char *value);
void pl_json_number(struct pl_json *json, const char *key, uint64_t value);
void pl_json_i64(struct pl_json *json, int64_t value);
void pl_json_bool(struct pl_json *json, bool value);
void pl_json_null(struct pl_json *json);
void pl_json_raw(struct pl_json *json, const char *value, size_t len); /* one JSON value as text */
void pl_json_double(struct pl_json *json, double value); /* NaN and infinities become null */
