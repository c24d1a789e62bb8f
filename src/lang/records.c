/* SPDX-License-Identifier: BSD-2-Clause */
/* The streams of paths, hops, events and values: their columns, out of fields.def. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "lang/plan.h"

static const struct {
	const char *name;
	uint32_t size;
	enum pl_record_kind kind;
	uint32_t ts_at, present_at;
} records[] = {
	[PL_QUERY_PATHS - PL_FLAT_MAX] = { "paths", sizeof(struct pl_query_path), PL_KIND_PATH,
		offsetof(struct pl_path, ts_ns), offsetof(struct pl_path, present) },
	[PL_QUERY_HOPS - PL_FLAT_MAX] = { "hops", sizeof(struct pl_query_hop), PL_KIND_HOP,
		offsetof(struct pl_hop, ts_ns), offsetof(struct pl_hop, present) },
	[PL_QUERY_EVENTS - PL_FLAT_MAX] = { "events", sizeof(struct pl_event), PL_KIND_EVENT,
		offsetof(struct pl_event, ts_ns), offsetof(struct pl_event, present) },
	[PL_QUERY_VALUES - PL_FLAT_MAX] = { "values", sizeof(struct pl_value), PL_KIND_VALUE,
		offsetof(struct pl_value, ts_ns), offsetof(struct pl_value, present) },
};

/* Bytes 36 to 39 of a path with a version: there is one. The other fields of a path are there then. */
#define OF_A_PATH    0xff000000u
#define OF_A_PATH_AT 36
_Static_assert(offsetof(struct pl_path, record_version) == OF_A_PATH_AT + 3, "");
_Static_assert(sizeof(struct pl_query_path) % 8 == 0, "records are 8-byte aligned");

const char *pl_query_stream_name(unsigned int stream)
{
	return stream < PL_FLAT_MAX ? pl_flat((enum pl_flat_kind)stream)->stream
				    : records[stream - PL_FLAT_MAX].name;
}

uint32_t pl_query_stream_size(unsigned int stream)
{
	return stream < PL_FLAT_MAX ? pl_flat((enum pl_flat_kind)stream)->size
				    : records[stream - PL_FLAT_MAX].size;
}

unsigned int pl_query_find_stream(const char *name)
{
	unsigned int stream = 0;

	while (stream < PL_QUERY_STREAMS && strcasecmp(pl_query_stream_name(stream), name) != 0)
		stream++;
	return stream;
}

/* ---- words ---- */

bool pl_query_form_has_words(enum pl_form form)
{
	return pl_form_word(form, 0) != NULL || pl_form_word(form, 1) != NULL;
}

static bool has_words(enum pl_form form)
{
	return form == PL_FORM_HEX64 || form == PL_FORM_TEXT || pl_query_form_has_words(form);
}

bool pl_query_has_records(const char *stream)
{
	return stream != NULL && pl_query_find_stream(stream) >= PL_FLAT_MAX &&
	       pl_query_find_stream(stream) < PL_QUERY_STREAMS;
}

static bool is_word_column(const char *name)
{
	for (int kind = PL_KIND_PATH; kind < PL_KIND_MAX; kind++) {
		size_t n;
		const struct pl_field *fields = pl_fields((enum pl_record_kind)kind, &n);

		for (size_t i = 0; i < n; i++) {
			if (strcmp(fields[i].name, name) == 0 && has_words(fields[i].form))
				return true;
		}
	}
	return strcmp(name, "report_id") == 0 || strncmp(name, "flags.", 6) == 0;
}

bool pl_query_has_words(const char *column)
{
	const char *point = strchr(column, '.');

	return is_word_column(column) || (point != NULL && is_word_column(point + 1));
}

bool pl_query_column_has_words(const struct pl_query_column *column)
{
	return column->type == PL_QUERY_UNSIGNED && has_words(column->form);
}

const char *pl_query_value_word(const struct pl_query_column *column,
	const struct pl_query_value *value, char ret_text[PL_QUERY_WORD_MAX])
{
	if (value->absent || !pl_query_column_has_words(column))
		return NULL;
	if (column->form != PL_FORM_HEX64)
		return value->u <= UINT8_MAX ? pl_form_word(column->form, (unsigned int)value->u)
					     : NULL;
	snprintf(ret_text, PL_QUERY_WORD_MAX, "%016llx", (unsigned long long)value->u);
	return ret_text;
}

void pl_query_value_put(struct pl_buf *out, const struct pl_query_value *value)
{
	char addr[PL_ADDR_TEXT_MAX];

	switch (value->type) {
	case PL_QUERY_UNSIGNED:
		pl_buf_u64(out, value->u);
		break;
	case PL_QUERY_SIGNED:
		pl_buf_printf(out, "%" PRId64, value->i);
		break;
	case PL_QUERY_DOUBLE:
		pl_buf_double(out, value->d);
		break;
	case PL_QUERY_ADDR:
		pl_buf_add(out, addr, pl_format_addr(addr, &value->addr));
		break;
	case PL_QUERY_BOOL:
		pl_buf_str(out, value->b ? "yes" : "no");
		break;
	case PL_QUERY_TEXT:
		pl_buf_str(out, value->text);
		break;
	case PL_QUERY_LIST:
	case PL_QUERY_TYPE_MAX:
		break;
	}
}

/* ---- columns ---- */

/* Times of nodes' clocks and lengths of time are plain numbers; "ns" says: since the Unix epoch. */
static const char *unit_of(const struct pl_field *field)
{
	return strcmp(field->unit, "ns") == 0 && strcmp(field->name, "ts_ns") != 0 ? ""
										   : field->unit;
}

/* Returns the size of a text field: the longest text and its zero, at most the rest of the record. */
static uint8_t text_width(const struct pl_field *field)
{
	const size_t left = sizeof(struct pl_event) - field->offset;

	return (uint8_t)(left < PL_TEXT_TOLD + 1 ? left : PL_TEXT_TOLD + 1);
}
_Static_assert(sizeof(struct pl_event) == sizeof(struct pl_value), "both have texts");

/* Adds a field of a record that stands `base` bytes into the fed record; `present_at` from its
 * beginning. */
static void add(struct schema *s, const struct pl_field *field, uint32_t base, uint32_t present_at)
{
	const bool text = field->form == PL_FORM_TEXT;

	s->columns[s->n++] = (struct column){
		.name = field->name,
		.unit = unit_of(field),
		.offset = base + field->offset,
		.width = text ? text_width(field) : pl_field_width(field),
		.type = text                          ? PL_QUERY_TEXT
			: field->form == PL_FORM_ADDR ? PL_QUERY_ADDR
			: field->form == PL_FORM_S64  ? PL_QUERY_SIGNED
						      : PL_QUERY_UNSIGNED,
		.absent = -1,
		.form = field->form,
		.present = field->present,
		.present_at = base + present_at,
		.mask = UINT64_MAX,
	};
}

/* Bytes are no values of the language. */
static bool is_column(const struct pl_field *field)
{
	return field->name[0] != '\0' && field->form != PL_FORM_BYTES;
}

static void add_fields(struct schema *s, enum pl_record_kind kind, uint32_t present_at)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);

	for (size_t i = 0; i < n; i++) {
		if (is_column(&fields[i]))
			add(s, &fields[i], 0, present_at);
	}
}

static bool add_flags(struct lexer *lx, struct schema *s, uint32_t base, bool of_hop)
{
	const char *flag;

	for (unsigned int bit = 0; (flag = pl_path_flag_name(bit)) != NULL; bit++) {
		char name[NAME_MAX_LEN];
		struct column *c = &s->columns[s->n];

		snprintf(name, sizeof(name), "flags.%s", flag);
		*c = (struct column){
			.name = pl_query_new_text(lx, name, strlen(name)),
			.unit = "",
			.offset = base + offsetof(struct pl_path, flags),
			.width = 2,
			.type = PL_QUERY_BOOL,
			.absent = -1,
			.of_path = of_hop,
			.present = of_hop ? OF_A_PATH : 0,
			.present_at = base + OF_A_PATH_AT,
			.mask = UINT64_C(1) << bit,
			.is = UINT64_C(1) << bit,
			.or_is = UINT64_C(1) << bit,
		};
		if (c->name == NULL)
			return false;
		s->n++;
	}
	return true;
}

/* Adds to a hop the columns of its path whose names the hop does not have. */
static void add_path_of_hop(struct schema *s)
{
	const uint32_t base = offsetof(struct pl_query_hop, path);
	size_t n;
	const struct pl_field *fields = pl_fields(PL_KIND_PATH, &n);

	for (size_t i = 0; i < n; i++) {
		struct column *c = &s->columns[s->n];

		if (!is_column(&fields[i]) || pl_query_find_column(s, fields[i].name, NULL) != NULL)
			continue;
		add(s, &fields[i], base, offsetof(struct pl_path, present));
		c->of_path = true;
		if (c->present == 0) {
			c->present = OF_A_PATH;
			c->present_at = base + OF_A_PATH_AT;
		}
	}
}

/* Columns that only a hop has, beside its numbers; "*" has the first. */
static const struct pl_field of_hop[] = {
	{ .name = "ts_ns",
		.unit = "ns",
		.offset = offsetof(struct pl_hop, ts_ns),
		.form = PL_FORM_U64 },
	{ .name = "report_id",
		.unit = "",
		.offset = offsetof(struct pl_hop, report_id),
		.form = PL_FORM_HEX64 },
	{ .name = "path_id",
		.unit = "",
		.offset = offsetof(struct pl_hop, path_id),
		.form = PL_FORM_HEX64,
		.present = PL_HOP_HAS_path_id },
};

static bool make(struct lexer *lx, struct schema *ret)
{
	size_t n = 0;

	for (int kind = 0; kind < PL_KIND_MAX; kind++) {
		size_t some;

		(void)pl_fields((enum pl_record_kind)kind, &some);
		n += some;
	}
	n += 16 + sizeof(of_hop) / sizeof(of_hop[0]) + 1; /* flags have 16 bits */
	ret->columns = pl_query_new(lx, n * sizeof(*ret->columns));
	return ret->columns != NULL;
}

bool pl_query_record_schema(struct lexer *lx, unsigned int stream, struct schema *ret)
{
	const enum pl_record_kind kind = records[stream - PL_FLAT_MAX].kind;
	const uint32_t present_at = records[stream - PL_FLAT_MAX].present_at;
	const struct pl_field ts = { .name = "ts",
		.unit = "ns",
		.offset = records[stream - PL_FLAT_MAX].ts_at,
		.form = PL_FORM_U64 };

	if (!make(lx, ret))
		return false;
	ret->size = pl_query_stream_size(stream);
	if (kind == PL_KIND_HOP)
		add(ret, &of_hop[0], 0, present_at);
	add_fields(ret, kind, present_at);
	ret->n_plain = ret->n;
	add(ret, &ts, 0, present_at);
	if (kind == PL_KIND_PATH)
		return add_flags(lx, ret, 0, false);
	if (kind == PL_KIND_EVENT || kind == PL_KIND_VALUE)
		return true;
	for (size_t i = 1; i < sizeof(of_hop) / sizeof(of_hop[0]); i++)
		add(ret, &of_hop[i], 0, present_at);
	add_path_of_hop(ret);
	return add_flags(lx, ret, offsetof(struct pl_query_hop, path), true);
}

bool pl_query_hop_schema(struct lexer *lx, struct schema *ret)
{
	if (!make(lx, ret))
		return false;
	ret->size = sizeof(struct pl_hop);
	add_fields(ret, PL_KIND_HOP, offsetof(struct pl_hop, present));
	ret->n_plain = ret->n;
	return true;
}
