/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints rows in the form asked for. */
#include "show/row_out.h"

#include <string.h>

#include "base/complain.h"
#include "base/json.h"
#include "base/opt.h"
#include "show/stdout.h"

#define WRITE_AT ((size_t)64 * 1024)

void pl_row_out_init(
	struct pl_row_out *out, const char *form, const struct pl_column *columns, unsigned int n)
{
	*out = (struct pl_row_out){ .columns = columns, .n = n };
	pl_buf_init(&out->buf);
	out->form = (enum pl_out_form)pl_opt_place(pl_out_forms, form);
}

/* Writes a row in aligned columns, the last one without blanks behind it. */
static void aligned(struct pl_row_out *out, const char *const *values)
{
	bool wide = out->form == PL_OUT_WIDE;
	const char *sep = "";

	for (unsigned int i = 0; i < out->n; i++) {
		const struct pl_column *c = &out->columns[i];
		const char *v = values == NULL ? c->name : values[i] != NULL ? values[i] : "-";
		bool last = i + 1 == out->n;

		if (c->wide && !wide)
			continue;
		pl_buf_printf(&out->buf, "%s%*s", sep, last && c->width < 0 ? 0 : c->width, v);
		sep = "  ";
	}
	while (out->buf.len > 0 && out->buf.data[out->buf.len - 1] == ' ')
		out->buf.data[--out->buf.len] = '\0';
	pl_buf_chr(&out->buf, '\n');
}

static void csv_field(struct pl_buf *buf, const char *v)
{
	if (strpbrk(v, ",\"\n\r") == NULL) {
		pl_buf_str(buf, v);
		return;
	}
	pl_buf_chr(buf, '"');
	for (; *v != '\0'; v++) {
		if (*v == '"')
			pl_buf_chr(buf, '"');
		pl_buf_chr(buf, *v);
	}
	pl_buf_chr(buf, '"');
}

static void csv(struct pl_row_out *out, const char *const *values)
{
	for (unsigned int i = 0; i < out->n; i++) {
		const char *v = values == NULL ? out->columns[i].name : values[i];

		if (i > 0)
			pl_buf_chr(&out->buf, ',');
		csv_field(&out->buf, v != NULL ? v : "");
	}
	pl_buf_chr(&out->buf, '\n');
}

static void json(struct pl_row_out *out, const char *const *values)
{
	struct pl_json j;

	pl_json_init(&j, &out->buf);
	pl_json_object(&j);
	for (unsigned int i = 0; i < out->n; i++) {
		if (values[i] == NULL)
			continue;
		pl_json_key(&j, out->columns[i].name);
		if (out->columns[i].number)
			pl_json_raw(&j, values[i], strlen(values[i]));
		else if (out->columns[i].flag)
			pl_json_bool(&j, strcmp(values[i], "yes") == 0);
		else
			pl_json_str(&j, values[i]);
	}
	pl_json_object_end(&j);
}

static void text(struct pl_row_out *out, const char *const *values)
{
	const char *sep = "";

	for (unsigned int i = 0; i < out->n; i++) {
		if (values[i] == NULL)
			continue;
		pl_buf_printf(&out->buf, "%s%s=%s", sep, out->columns[i].name, values[i]);
		sep = " ";
	}
	pl_buf_chr(&out->buf, '\n');
}

static void begin(struct pl_row_out *out)
{
	if (out->form == PL_OUT_TABLE || out->form == PL_OUT_WIDE)
		aligned(out, NULL);
	else if (out->form == PL_OUT_CSV)
		csv(out, NULL);
	else if (out->form == PL_OUT_JSON)
		pl_buf_chr(&out->buf, '[');
}

void pl_row_out_add(struct pl_row_out *out, const char *const *values)
{
	if (out->rows == 0)
		begin(out);
	switch (out->form) {
	case PL_OUT_TABLE:
	case PL_OUT_WIDE:
		aligned(out, values);
		break;
	case PL_OUT_CSV:
		csv(out, values);
		break;
	case PL_OUT_JSON:
		pl_buf_str(&out->buf, out->rows > 0 ? ",\n" : "\n");
		json(out, values);
		break;
	case PL_OUT_JSONL:
		json(out, values);
		pl_buf_chr(&out->buf, '\n');
		break;
	case PL_OUT_TEXT:
		text(out, values);
		break;
	}
	out->rows++;
	if (out->buf.len >= WRITE_AT || out->buf.failed)
		pl_row_out_write(out);
}

void pl_row_out_write(struct pl_row_out *out)
{
	pl_stdout_flush(&out->buf, &out->gone, &out->error);
}

bool pl_row_out_end(struct pl_row_out *out)
{
	if (out->rows == 0)
		begin(out);
	if (out->form == PL_OUT_JSON)
		pl_buf_str(&out->buf, out->rows > 0 ? "\n]\n" : "]\n");
	pl_stdout_flush(&out->buf, &out->gone, &out->error);
	pl_buf_done(&out->buf);
	if (out->error != 0)
		pl_complain("standard output: %s", strerror(-out->error));
	return out->error == 0;
}
