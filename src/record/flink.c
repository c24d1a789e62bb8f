/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the tables of Flink SQL for records. */
#include "record/flink.h"

#include "record/quoted.h"

/* True for a text; in JSON hashes are digits and reasons are words. */
static bool is_text(const struct pl_field *field, bool json)
{
	return field->form == PL_FORM_ADDR || field->form == PL_FORM_TEXT ||
	       (json && (field->form == PL_FORM_HEX64 || pl_form_of_flat_words(field->form)));
}

static void put_option(struct pl_buf *out, const char *name, const char *value)
{
	pl_buf_str(out, ",\n    ");
	pl_put_quoted(out, name, '\'');
	pl_buf_str(out, " = ");
	pl_put_quoted(out, value, '\'');
}

static void put_widths(struct pl_buf *out, const struct pl_flat *flat)
{
	pl_buf_str(out, ",\n    'pathline.widths' = '");
	for (uint32_t i = 0; i < flat->n_fields; i++)
		pl_buf_printf(out, "%s%s%u", i > 0 ? " " : "",
			flat->fields[i].form == PL_FORM_TEXT ? "t" : "",
			pl_field_width(&flat->fields[i]));
	pl_buf_chr(out, '\'');
}

/* RowBinary has a fixed place for every value: one that may be absent is made of the stored column
 * and its presence bit. In JSON it has no key. */
static void put_optional(struct pl_buf *out, const struct pl_flat *flat)
{
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		const struct pl_field *field = &flat->fields[i];

		if (field->present == 0)
			continue;
		pl_buf_printf(out,
			"    `%s` AS CASE WHEN MOD(`has` / %u, 2) = 1 THEN `raw_%s` END COMMENT ",
			field->name, field->present, field->name);
		pl_put_quoted(out, field->help, '\'');
		pl_buf_str(out, ",\n");
	}
}

void pl_flink_table(struct pl_buf *out, enum pl_flat_kind kind, const char *table,
	const struct pl_flink_topic *topic)
{
	const struct pl_flat *flat = pl_flat(kind);
	const bool flows = pl_flat_short(kind) == PL_FLAT_FLOW128;

	pl_buf_printf(out, "-- %s/%d, %s.\nCREATE TABLE ", flat->name, PL_FLAT_VERSION,
		topic->json ? "one record as JSON for each message"
			    : "RowBinary by the format 'pathline' (PathlineFormatFactory.java)");
	pl_put_quoted(out, table, '`');
	pl_buf_str(out, " (\n");
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		const struct pl_field *field = &flat->fields[i];

		pl_buf_printf(out, "    `%s%s` %s COMMENT ",
			field->present != 0 && !topic->json ? "raw_" : "", field->name,
			is_text(field, topic->json) ? "STRING" : "BIGINT");
		pl_put_quoted(out, field->help, '\'');
		pl_buf_str(out, ",\n");
	}
	if (!topic->json)
		put_optional(out, flat);
	pl_buf_printf(out,
		"    `rowtime` AS TO_TIMESTAMP_LTZ(`%s` / 1000000, 3),\n"
		"    WATERMARK FOR `rowtime` AS `rowtime` - INTERVAL '0 00:00:%s' DAY TO SECOND(3)\n"
		") WITH (\n    'connector' = 'kafka'",
		flows ? "last_ts" : "ts_ns", flows ? "25.000" : "00.200");
	put_option(out, "topic", topic->name);
	put_option(out, "properties.bootstrap.servers", topic->brokers);
	put_option(out, "properties.group.id", topic->group);
	put_option(out, "scan.startup.mode", "earliest-offset");
	put_option(out, "format", topic->json ? "json" : "pathline");
	if (!topic->json)
		put_widths(out, flat);
	pl_buf_str(out, "\n);\n");
}
