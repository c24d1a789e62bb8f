/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes rows as JSON, and orders them. */
#include "record/rows.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "record/path_book.h"
#include "record/put.h"

#define NS_PER_S 1000000000u

size_t pl_time_text(char dst[PL_TIME_TEXT_MAX], uint64_t ts_ns)
{
	time_t s = (time_t)(ts_ns / NS_PER_S);
	struct tm tm;

	/* 2^64 ns end in 2554: every one has a date. */
	gmtime_r(&s, &tm);
	return (size_t)snprintf(dst, PL_TIME_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%09uZ",
		tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		(unsigned int)(ts_ns % NS_PER_S));
}

static void number_text(struct pl_json *json, uint64_t v)
{
	char text[24];

	pl_json_strn(json, text, (size_t)(put_u64(text, v) - text));
}

static void time_text(struct pl_json *json, uint64_t ts_ns)
{
	char text[PL_TIME_TEXT_MAX];

	pl_json_strn(json, text, pl_time_text(text, ts_ns));
}

void pl_json_time(struct pl_json *json, uint64_t ts_ns)
{
	pl_json_key(json, "time");
	time_text(json, ts_ns);
	pl_json_key(json, "time_ns");
	number_text(json, ts_ns);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

/* True for a clock's reading. Times of the collector are since the epoch, those of nodes are
 * not. */
static bool is_clock(const struct pl_field *f)
{
	return f->form == PL_FORM_U64 && ends_with(f->name, "ts_ns");
}

static bool is_node_clock(const char *name)
{
	return strncmp(name, "ingress_", 8) == 0 || strncmp(name, "egress_", 7) == 0;
}

static void clock_members(struct pl_json *json, const char *name, uint64_t v)
{
	char key[48];

	if (!is_node_clock(name)) {
		snprintf(key, sizeof(key), "%.*stime", (int)(strlen(name) - 5), name);
		pl_json_key(json, key);
		time_text(json, v);
	}
	pl_json_key(json, name);
	number_text(json, v);
}

static void flags_object(struct pl_json *json, unsigned int flags)
{
	const char *name;

	pl_json_object(json);
	for (unsigned int bit = 0; (name = pl_path_flag_name(bit)) != NULL; bit++) {
		pl_json_key(json, name);
		pl_json_bool(json, (flags >> bit & 1) != 0);
	}
	pl_json_object_end(json);
}

static void value(struct pl_json *json, const struct pl_field *f, const void *row)
{
	char text[PUT_LONG_MAX];

	switch (f->form) {
	case PL_FORM_U8:
	case PL_FORM_U16:
	case PL_FORM_U32:
	case PL_FORM_U64:
		pl_json_u64(json, put_load(f, row));
		break;
	case PL_FORM_S64:
		pl_json_i64(json, (int64_t)put_load(f, row));
		break;
	case PL_FORM_FLAGS:
		flags_object(json, (unsigned int)put_load(f, row));
		break;
	case PL_FORM_TEXT:
		pl_json_str(json, (const char *)row + f->offset);
		break;
	default:
		/* A word without a name is its number, as in the files. */
		if (f->form != PL_FORM_ADDR && f->form != PL_FORM_HEX64 &&
			f->form != PL_FORM_BYTES &&
			pl_form_word((enum pl_form)f->form, (unsigned int)put_load(f, row)) == NULL)
			pl_json_u64(json, put_load(f, row));
		else
			pl_json_strn(json, text, (size_t)(put_value(text, f, row, false) - text));
		break;
	}
}

void pl_row_json(struct pl_json *json, const struct pl_field *fields, size_t n, const void *row,
	uint32_t present)
{
	char object[48] = ""; /* the open inner object */

	for (size_t i = 0; i < n; i++) {
		const struct pl_field *f = &fields[i];
		const char *dot = strchr(f->name, '.'), *key = f->name;
		size_t len = dot != NULL ? (size_t)(dot - f->name) : 0;

		if (f->name[0] == '\0' || !put_has(f, row, present))
			continue;
		if (strlen(object) != len || strncmp(object, f->name, len) != 0) {
			if (object[0] != '\0')
				pl_json_object_end(json);
			snprintf(object, sizeof(object), "%.*s", (int)len, f->name);
			if (len > 0) {
				pl_json_key(json, object);
				pl_json_object(json);
			}
		}
		if (dot != NULL)
			key = dot + 1;
		if (is_clock(f)) {
			clock_members(json, key, put_load(f, row));
			continue;
		}
		pl_json_key(json, key);
		value(json, f, row);
	}
	if (object[0] != '\0')
		pl_json_object_end(json);
}

static void record_members(
	struct pl_json *json, enum pl_record_kind kind, const void *record, uint32_t present)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);

	pl_row_json(json, fields, n, record, present);
}

static void kind_member(struct pl_json *json, enum pl_record_kind kind)
{
	pl_json_text(json, "kind", pl_record_kind_name(kind));
}

void pl_path_api(
	struct pl_json *json, const struct pl_path *path, const struct pl_hop *hops, size_t n)
{
	pl_json_object(json);
	kind_member(json, PL_KIND_PATH);
	record_members(json, PL_KIND_PATH, path, path->present);
	pl_json_key(json, "hops");
	pl_json_array(json);
	for (size_t i = 0; i < n; i++) {
		pl_json_object(json);
		record_members(json, PL_KIND_HOP, &hops[i], hops[i].present);
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
	pl_json_object_end(json);
}

static void nodes_members(struct pl_json *json, const char *key, const char *hops_key,
	const struct pl_path_nodes *nodes)
{
	pl_json_key(json, key);
	if (nodes->hops == 0) {
		pl_json_null(json);
		return;
	}
	pl_json_array(json);
	for (unsigned int i = 0; i < nodes->n; i++)
		pl_json_u64(json, nodes->node[i]);
	pl_json_array_end(json);
	pl_json_number(json, hops_key, nodes->hops);
}

void pl_event_api(struct pl_json *json, const struct pl_event *event)
{
	struct pl_path_nodes now, old;

	pl_json_object(json);
	kind_member(json, PL_KIND_EVENT);
	record_members(json, PL_KIND_EVENT, event, event->present);
	if (pl_event_paths(event, &now, &old)) {
		nodes_members(json, "path_nodes", "path_hops", &now);
		nodes_members(json, "old_path_nodes", "old_path_hops", &old);
	}
	pl_json_object_end(json);
}

void pl_value_api(struct pl_json *json, const struct pl_value *value)
{
	pl_json_object(json);
	kind_member(json, PL_KIND_VALUE);
	record_members(json, PL_KIND_VALUE, value, value->present);
	pl_json_object_end(json);
}

const struct pl_field *pl_row_field(const struct pl_field *fields, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (fields[i].name[0] != '\0' && strcmp(fields[i].name, name) == 0)
			return &fields[i];
	}
	return NULL;
}

int pl_row_compare(const struct pl_field *f, const void *a, uint32_t present_a, const void *b,
	uint32_t present_b)
{
	bool has_a = put_has(f, a, present_a), has_b = put_has(f, b, present_b);
	uint64_t x, y;

	if (!has_a || !has_b)
		return has_a - has_b;
	if (f->form == PL_FORM_TEXT)
		return strcmp((const char *)a + f->offset, (const char *)b + f->offset);
	if (f->form == PL_FORM_ADDR)
		return memcmp((const char *)a + f->offset, (const char *)b + f->offset,
			sizeof(struct pl_addr));
	x = put_load(f, a);
	y = put_load(f, b);
	if (f->form == PL_FORM_S64) {
		/* The order is the same, moved above zero. */
		x ^= (uint64_t)1 << 63;
		y ^= (uint64_t)1 << 63;
	}
	return (x > y) - (x < y);
}
