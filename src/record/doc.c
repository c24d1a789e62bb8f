/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the manual's list of fields from the table of all record forms. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "record/packet.h"
#include "record/record.h"

static const char *const type_words[PL_FORM_MAX] = {
	[PL_FORM_U8] = "8-bit number",
	[PL_FORM_U16] = "16-bit number",
	[PL_FORM_U32] = "32-bit number",
	[PL_FORM_U64] = "64-bit number",
	[PL_FORM_S64] = "64-bit number, signed",
	[PL_FORM_ADDR] = "address",
	[PL_FORM_HEX64] = "16 hex digits",
	[PL_FORM_FLAGS] = "booleans",
	[PL_FORM_TEXT] = "text",
	[PL_FORM_BYTES] = "hex digits",
};

/* "word: md, mx, …" for enumerated forms. */
static void add_type(struct pl_buf *out, const struct pl_field *field)
{
	const char *word, *sep = "";

	if (type_words[field->form] != NULL) {
		pl_buf_str(out, type_words[field->form]);
		return;
	}
	/* Some forms are numbered from 1 on. */
	for (unsigned int v = 0; v <= 1 || word != NULL; v++) {
		word = pl_form_word((enum pl_form)field->form, v);
		if (word == NULL)
			continue;
		pl_buf_printf(out, "%s%s", sep, word);
		sep = ", ";
	}
}

static void add_row(struct pl_buf *out, bool markdown, const char *prefix, const char *name,
	const char *unit, const char *always, const struct pl_field *field, const char *help)
{
	if (markdown) {
		pl_buf_printf(out, "| `%s%s` | ", prefix, name);
		if (field != NULL)
			add_type(out, field);
		else
			pl_buf_str(out, "true, false");
		pl_buf_printf(out, " | %s | %s | %s |\n", unit, always, help);
		return;
	}
	pl_buf_printf(out, "  %s%-*s ", prefix, (int)(24 - strlen(prefix)), name);
	if (field != NULL)
		add_type(out, field);
	else
		pl_buf_str(out, "true, false");
	if (unit[0] != '\0')
		pl_buf_printf(out, ", %s", unit);
	pl_buf_printf(out, "\n      %s%s\n", help, always[0] != '\0' ? "" : " (may be absent)");
}

static void add_title(struct pl_buf *out, bool markdown, const char *title)
{
	if (markdown)
		pl_buf_printf(out,
			"\n## %s\n\n| name | value | unit | always | meaning |\n"
			"|---|---|---|---|---|\n",
			title);
	else
		pl_buf_printf(out, "\n%s:\n", title);
}

static void add_kind(struct pl_buf *out, bool markdown, enum pl_record_kind kind, const char *title,
	const char *prefix)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);
	const char *flag;

	add_title(out, markdown, title);
	for (size_t i = 0; i < n; i++) {
		const char *always = fields[i].present == 0 && !fields[i].time ? "yes" : "";

		if (fields[i].name[0] == '\0')
			continue;
		if (fields[i].form != PL_FORM_FLAGS) {
			add_row(out, markdown, prefix, fields[i].name, fields[i].unit, always,
				&fields[i], fields[i].help);
			continue;
		}
		for (unsigned int bit = 0; (flag = pl_path_flag_name(bit)) != NULL; bit++)
			add_row(out, markdown, "flags.", flag, "", always, NULL,
				pl_path_flag_help(bit));
	}
}

/* Adds the fields of a kind; of one that begins like another, only those behind it. */
static void add_flat(struct pl_buf *out, bool markdown, enum pl_flat_kind kind)
{
	const struct pl_flat *flat = pl_flat(kind);
	const struct pl_flat *begins =
		pl_flat(kind == PL_FLAT_DROP168 ? PL_FLAT_PKT96 : pl_flat_short(kind));
	const uint32_t first = begins != flat ? begins->n_fields : 0;
	char title[192];

	snprintf(title, sizeof(title), "%s: %s, %u bytes%s%s", flat->name, flat->help, flat->size,
		first > 0 ? "; behind the fields of " : "", first > 0 ? begins->name : "");
	add_title(out, markdown, title);
	for (uint32_t i = first; i < flat->n_fields; i++)
		add_row(out, markdown, "", flat->fields[i].name, flat->fields[i].unit,
			flat->fields[i].present == 0 ? "yes" : "", &flat->fields[i],
			flat->fields[i].help);
}

void pl_fields_doc(struct pl_buf *out, bool markdown)
{
	if (markdown)
		pl_buf_str(out, "# Fields of the records\n\n");
	pl_buf_str(out,
		"The keys of -o json and jsonl, the columns of -o csv and the names in --where. A dotted\n"
		"name is a member of an object in JSON. An absent value has no key in JSON and an empty\n"
		"field in CSV; it is never written as 0. 64-bit numbers are written with all digits: read\n"
		"them with a parser that keeps them (jq before 1.7 and JavaScript do not).\n"
		"\n"
		"-o jsonl is one object per line, -o json one array of the same objects; a path's hops\n"
		"are in its \"hops\". -o csv has a header and one row per hop, the path's columns repeated;\n"
		"a path without hops is one row. Nothing in it needs quotes. -o text is for comparing by\n"
		"eye or diff: NAME=VALUE pairs, one record per line, hops indented by a tab. -o table and\n"
		"wide are for people and may change; in these, flags are letters: D dropped, Q congested,\n"
		"F tracked, P partial, C copy, I intermediate, N instrumented.\n"
		"\n"
		"Names and their meaning stay; new ones may be added.\n");
	add_kind(out, markdown, PL_KIND_PATH, "path: one report", "");
	add_kind(out, markdown, PL_KIND_HOP,
		"hop: one node of the path (in JSON: members of hops[])", "hops.");
	add_kind(out, markdown, PL_KIND_EVENT, "event: a change that detection reported", "");
	add_kind(out, markdown, PL_KIND_VALUE,
		"value: a new entry, or a changed value, of telemetry memory", "");
	for (int kind = 0; kind < PL_FLAT_MAX; kind++)
		add_flat(out, markdown, (enum pl_flat_kind)kind);
}
