/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the tables of ClickHouse for records. */
#include "record/clickhouse.h"

#include <string.h>

static const char *type_of(const struct pl_field *field)
{
	switch (field->form) {
	case PL_FORM_ADDR:
		return "IPv6";
	case PL_FORM_U16:
	case PL_FORM_DROP_REASON:
		return "UInt16";
	case PL_FORM_U32:
		return "UInt32";
	case PL_FORM_U64:
		/* All fields in nanoseconds are times. */
		return strcmp(field->unit, "ns") == 0 ? "DateTime64(9, 'UTC')" : "UInt64";
	case PL_FORM_HEX64:
		return "UInt64";
	case PL_FORM_S64:
		return "Int64";
	case PL_FORM_TEXT:
		return field->text_bytes == 16 ? "FixedString(16)" : "FixedString(40)";
	default:
		return "UInt8"; /* numbers and words of a byte */
	}
}

static void put_escaped(struct pl_buf *out, const char *text, char mark)
{
	for (; *text != '\0'; text++) {
		if (*text == mark || *text == '\\')
			pl_buf_chr(out, '\\');
		pl_buf_chr(out, *text);
	}
}

static void put_text(struct pl_buf *out, const char *text)
{
	pl_buf_chr(out, '\'');
	put_escaped(out, text, '\'');
	pl_buf_chr(out, '\'');
}

static void put_name(struct pl_buf *out, const char *table, const char *suffix)
{
	pl_buf_chr(out, '`');
	put_escaped(out, table, '`');
	pl_buf_str(out, suffix);
	pl_buf_chr(out, '`');
}

void pl_clickhouse_put_stored(struct pl_buf *out, const struct pl_field *field)
{
	pl_buf_str(out, field->present != 0 ? "raw_" : "");
	pl_buf_str(out, field->name);
}

/* RowBinary has a fixed place for every value: one that may be absent is a column of its own, made
 * of the stored one and the bits of present fields. */
static void put_optional(struct pl_buf *out, const struct pl_flat *flat)
{
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		const struct pl_field *field = &flat->fields[i];

		if (field->present == 0)
			continue;
		pl_buf_printf(out,
			",\n    %s Nullable(%s) ALIAS if(bitAnd(has, %u) != 0, raw_%s, NULL) COMMENT ",
			field->name, type_of(field), field->present, field->name);
		put_text(out, field->help);
	}
}

/* Columns of the message that a row came in: its place in the topic, and its headers. */
static const struct {
	const char *name, *type, *made_of, *help;
} of_message[] = {
#define HEADER(name) "_headers.value[indexOf(_headers.name, '" name "')]"
	{ "kafka_partition", "UInt64", "_partition",
		"partition of the message that the row came in" },
	{ "kafka_offset", "UInt64", "_offset", "offset of that message" },
	{ "message_records", "UInt32", "reinterpretAsUInt32(" HEADER("n") ")",
		"rows of that message" },
	{ "message_exporter", "UInt32", "reinterpretAsUInt32(" HEADER("x") ")",
		"exporter that wrote it" },
	{ "message_sequence", "UInt64", "reinterpretAsUInt64(" HEADER("s") ")",
		"number of the message at its exporter, from 0 on at each start" },
};
#define N_OF_MESSAGE (sizeof(of_message) / sizeof(of_message[0]))

static void put_of_message(struct pl_buf *out)
{
	for (size_t i = 0; i < N_OF_MESSAGE; i++) {
		pl_buf_printf(out, ",\n    %s %s COMMENT ", of_message[i].name, of_message[i].type);
		put_text(out, of_message[i].help);
	}
}

static void put_columns(struct pl_buf *out, const struct pl_flat *flat)
{
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		const struct pl_field *field = &flat->fields[i];

		pl_buf_str(out, i > 0 ? ",\n    " : "    ");
		pl_clickhouse_put_stored(out, field);
		pl_buf_printf(out, " %s COMMENT ", type_of(field));
		put_text(out, field->help);
	}
}

static void begin_table(struct pl_buf *out, const char *table, const char *suffix)
{
	pl_buf_str(out, "CREATE TABLE IF NOT EXISTS ");
	put_name(out, table, suffix);
	pl_buf_str(out, "\n(\n");
}

/* Rows of the message's format only: a reader of RowBinary ignores the format. */
static void put_view(struct pl_buf *out, const struct pl_flat *flat, const char *table)
{
	pl_buf_str(out, "CREATE MATERIALIZED VIEW IF NOT EXISTS ");
	put_name(out, table, "_from_topic");
	pl_buf_str(out, " TO ");
	put_name(out, table, "");
	pl_buf_str(out, " AS\nSELECT ");
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		pl_buf_str(out, i > 0 ? ", " : "");
		pl_clickhouse_put_stored(out, &flat->fields[i]);
	}
	for (size_t i = 0; i < N_OF_MESSAGE; i++)
		pl_buf_printf(out, ",\n    %s AS %s", of_message[i].made_of, of_message[i].name);
	pl_buf_str(out, "\nFROM ");
	put_name(out, table, "_topic");
	pl_buf_printf(out, "\nWHERE " HEADER("f") " = '%s/%d';\n", flat->name, PL_FLAT_VERSION);
}

static void put_topic(struct pl_buf *out, const struct pl_flat *flat, const char *table,
	const struct pl_clickhouse_topic *topic)
{
	begin_table(out, table, "_topic");
	put_columns(out, flat);
	pl_buf_str(out, "\n)\nENGINE = Kafka\nSETTINGS kafka_broker_list = ");
	put_text(out, topic->brokers);
	pl_buf_str(out, ", kafka_topic_list = ");
	put_text(out, topic->name);
	pl_buf_str(out, ",\n    kafka_group_name = ");
	put_text(out, topic->group);
	pl_buf_str(out, ", kafka_format = 'RowBinary';\n\n");
	put_view(out, flat, table);
}

void pl_clickhouse_tables(struct pl_buf *out, enum pl_flat_kind kind, const char *table,
	const struct pl_clickhouse_topic *topic)
{
	const struct pl_flat *flat = pl_flat(kind);
	const char *time = flat->fields[0].name;

	pl_buf_printf(out, "-- %s/%d: a row is %u bytes of RowBinary.\n", flat->name,
		PL_FLAT_VERSION, flat->size);
	begin_table(out, table, "");
	put_columns(out, flat);
	if (topic != NULL)
		put_of_message(out);
	put_optional(out, flat);
	pl_buf_printf(out,
		"\n)\nENGINE = MergeTree\nPARTITION BY toDate(%s)\nORDER BY %s\n" PL_CLICKHOUSE_ONCE,
		time, time);
	if (topic != NULL) {
		pl_buf_chr(out, '\n');
		put_topic(out, flat, table, topic);
	}
}

static void put_sized(struct pl_buf *out, const char *prefix, const char *text)
{
	const size_t len = strlen(prefix) + strlen(text);

	/* Below 128, so that the length is a byte of a LEB128 number. */
	pl_buf_chr(out, (char)len);
	pl_buf_str(out, prefix);
	pl_buf_str(out, text);
}

void pl_clickhouse_header(struct pl_buf *out, enum pl_flat_kind kind)
{
	const struct pl_flat *flat = pl_flat(kind);

	pl_buf_chr(out, (char)flat->n_fields);
	for (uint32_t i = 0; i < flat->n_fields; i++)
		put_sized(out, flat->fields[i].present != 0 ? "raw_" : "", flat->fields[i].name);
	for (uint32_t i = 0; i < flat->n_fields; i++)
		put_sized(out, "", type_of(&flat->fields[i]));
}
