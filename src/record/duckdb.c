/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the views of DuckDB for records. */
#include "record/duckdb.h"

#include "record/quoted.h"

static void put_name(struct pl_buf *out, const char *name)
{
	pl_put_quoted(out, name, '"');
}

static bool has_words(const struct pl_field *field)
{
	return pl_form_of_flat_words(field->form);
}

static const char *type_of(const struct pl_field *field)
{
	if (field->form == PL_FORM_ADDR || field->form == PL_FORM_TEXT)
		return "VARCHAR";
	return field->form == PL_FORM_HEX64 || has_words(field) ? "JSON" : "BIGINT";
}

/* The list of a form's words, from the number 0 on, which may be none. */
static void put_words(struct pl_buf *out, enum pl_form form)
{
	const char *word;

	pl_buf_chr(out, '[');
	for (uint32_t v = 0; (word = pl_form_word(form, v)) != NULL || v == 0; v++) {
		pl_buf_str(out, v > 0 ? ", " : "");
		pl_put_quoted(out, word != NULL ? word : "", '\'');
	}
	pl_buf_chr(out, ']');
}

/* A text is turned into its number. */
static void put_column(struct pl_buf *out, const struct pl_field *field)
{
	const bool hash = field->form == PL_FORM_HEX64;

	if (!hash && !has_words(field)) {
		put_name(out, field->name);
		return;
	}
	pl_buf_str(out, "CASE json_type(");
	put_name(out, field->name);
	pl_buf_str(out, ") WHEN 'VARCHAR' THEN ");
	pl_buf_str(out, hash ? "CAST('0x' || (" : "list_position(");
	if (!hash)
		put_words(out, field->form);
	pl_buf_str(out, hash ? "" : ", ");
	put_name(out, field->name);
	pl_buf_str(out, hash ? "->>'$') AS UBIGINT) ELSE CAST(" : "->>'$') - 1 ELSE CAST(");
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
	pl_put_doubled(out, table, '\'');
	pl_buf_str(out, ".jsonl', format = 'newline_delimited', columns = {");
	for (uint32_t i = 0; i < flat->n_fields; i++) {
		pl_buf_str(out, i > 0 ? ", " : "");
		put_name(out, flat->fields[i].name);
		pl_buf_printf(out, ": '%s'", type_of(&flat->fields[i]));
	}
	pl_buf_str(out, "});\n");
}
