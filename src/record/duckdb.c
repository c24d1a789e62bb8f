/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the views of DuckDB for records. */
#include "record/duckdb.h"

#include <string.h>

static void put_quoted(struct pl_buf *out, const char *text, char mark)
{
	for (; *text != '\0'; text++) {
		if (*text == mark)
			pl_buf_chr(out, mark);
		pl_buf_chr(out, *text);
	}
}

static void put_name(struct pl_buf *out, const char *name)
{
	pl_buf_chr(out, '"');
	put_quoted(out, name, '"');
	pl_buf_chr(out, '"');
}

/* Words of a form in the order of their numbers, from 1 on. */
static const char *words_of(enum pl_form form)
{
	switch (form) {
	case PL_FORM_FLOW_END:
#define PL_FLOW_END_REASON(number, id, name, help) "'" name "', "
		return
#include "record/fields.def"
			"";
#undef PL_FLOW_END_REASON
	case PL_FORM_MARK_METHOD:
#define PL_MARK_METHOD(number, id, name, help) "'" name "', "
		return
#include "record/fields.def"
			"";
#undef PL_MARK_METHOD
	default:
		return NULL;
	}
}

static const char *type_of(const struct pl_field *field)
{
	if (field->form == PL_FORM_ADDR)
		return "VARCHAR";
	return field->form == PL_FORM_HEX64 || words_of(field->form) != NULL ? "JSON" : "BIGINT";
}

/* A text is turned into its number. */
static void put_column(struct pl_buf *out, const struct pl_field *field)
{
	const char *words = words_of(field->form);
	const bool hash = field->form == PL_FORM_HEX64;

	if (!hash && words == NULL) {
		put_name(out, field->name);
		return;
	}
	pl_buf_str(out, "CASE json_type(");
	put_name(out, field->name);
	pl_buf_str(out, ") WHEN 'VARCHAR' THEN ");
	if (hash)
		pl_buf_str(out, "CAST('0x' || (");
	else
		pl_buf_printf(out, "list_position([%.*s], ", (int)strlen(words) - 2, words);
	put_name(out, field->name);
	pl_buf_str(out, hash ? "->>'$') AS UBIGINT) ELSE CAST(" : "->>'$') ELSE CAST(");
	put_name(out, field->name);
	pl_buf_str(out, hash ? " AS UBIGINT) END AS " : " AS BIGINT) END AS ");
	put_name(out, field->name);
}

void pl_duckdb_view(struct pl_buf *out, enum pl_flat_kind kind, const char *table)
{
	const struct pl_flat *flat = pl_flat(kind);

	pl_buf_printf(out, "-- %s/%d, one record as JSON in each line of the file.\n", flat->name,
		PL_FLAT_VERSION);
	pl_buf_str(out, "CREATE OR REPLACE VIEW ");
	put_name(out, table);
	pl_buf_str(out, " AS SELECT\n");
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		pl_buf_str(out, "    ");
		put_column(out, &flat->fields[i]);
		pl_buf_printf(
			out, "%s -- %s\n", i + 1 < flat->n_fields ? "," : "", flat->fields[i].help);
	}
	pl_buf_str(out, "FROM read_json('");
	put_quoted(out, table, '\'');
	pl_buf_str(out, ".jsonl', format = 'newline_delimited', columns = {");
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		pl_buf_str(out, i > 0 ? ", " : "");
		put_name(out, flat->fields[i].name);
		pl_buf_printf(out, ": '%s'", type_of(&flat->fields[i]));
	}
	pl_buf_str(out, "});\n");
}
