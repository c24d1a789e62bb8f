/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/record_out.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "record/json.h"
#include "record/table.h"
#include "record/text.h"

#define WRITE_AT (64 * 1024)

const char *const pl_out_forms[] = {
	[PL_OUT_TABLE] = "table",
	[PL_OUT_WIDE] = "wide",
	[PL_OUT_JSON] = "json",
	[PL_OUT_JSONL] = "jsonl",
	[PL_OUT_CSV] = "csv",
	[PL_OUT_TEXT] = "text",
	NULL,
};

/* The expression with a mark under the character at fault. */
static void complain_where(const char *text, const struct pl_diag *diag)
{
	if (diag->column == 0) {
		pl_complain("--where: %s", diag->text);
		return;
	}
	pl_complain("--where, column %u: %s\n  %s\n  %*s^", diag->column, diag->text, text,
		(int)diag->column - 1, "");
}

int pl_record_out_init(
	struct pl_record_out *out, const char *form, const char *where, uint64_t limit)
{
	struct pl_diag diag = { 0 };

	memset(out, 0, sizeof(*out));
	pl_buf_init(&out->buf);
	for (int i = 0; pl_out_forms[i] != NULL; i++) {
		if (strcmp(form, pl_out_forms[i]) == 0)
			out->form = (enum pl_out_form)i;
	}
	out->lines = out->form == PL_OUT_JSONL;
	out->limit = limit;
	if (where != NULL && pl_where_new(&out->where, where, &diag) < 0) {
		complain_where(where, &diag);
		return PL_EXIT_USAGE;
	}
	return 0;
}

void pl_record_out_done(struct pl_record_out *out)
{
	pl_where_free(out->where);
	pl_buf_done(&out->buf);
}

void pl_record_out_write(struct pl_record_out *out)
{
	size_t done = 0;

	if (out->buf.failed && out->error == 0)
		out->error = -ENOMEM;
	while (done < out->buf.len && !out->gone && out->error == 0) {
		ssize_t r = write(STDOUT_FILENO, out->buf.data + done, out->buf.len - done);

		if (r >= 0)
			done += (size_t)r;
		else if (errno == EPIPE)
			out->gone = true;
		else if (errno != EINTR)
			out->error = -errno;
	}
	pl_buf_reset(&out->buf);
}

static void begin(struct pl_record_out *out)
{
	if (out->begun)
		return;
	out->begun = true;
	switch (out->form) {
	case PL_OUT_TABLE:
	case PL_OUT_WIDE:
		pl_path_table_header(&out->buf, out->form == PL_OUT_WIDE);
		break;
	case PL_OUT_CSV:
		pl_path_csv_header(&out->buf);
		break;
	case PL_OUT_JSON:
		if (!out->lines)
			pl_buf_str(&out->buf, "[");
		break;
	case PL_OUT_JSONL:
	case PL_OUT_TEXT:
		break;
	}
}

static void add(struct pl_record_out *out, const struct pl_path *path, const struct pl_hop *hops)
{
	struct pl_buf *buf = &out->buf;
	size_t n = path->hop_count;

	switch (out->form) {
	case PL_OUT_TABLE:
	case PL_OUT_WIDE:
		pl_path_table(buf, path, hops, n, out->form == PL_OUT_WIDE);
		break;
	case PL_OUT_JSON:
	case PL_OUT_JSONL:
		if (!out->lines)
			pl_buf_str(buf, out->printed > 0 ? ",\n" : "\n");
		pl_path_json(buf, path, hops, n);
		if (out->lines)
			pl_buf_chr(buf, '\n');
		break;
	case PL_OUT_CSV:
		pl_path_csv(buf, path, hops, n);
		break;
	case PL_OUT_TEXT:
		pl_path_text(buf, path, hops, n);
		break;
	}
}

bool pl_record_out_full(const struct pl_record_out *out)
{
	return out->gone || out->error != 0 || (out->limit != 0 && out->printed >= out->limit);
}

void pl_record_out_flush_batch(struct pl_record_batch *batch, void *arg)
{
	struct pl_record_out *out = arg;

	for (uint32_t i = 0; i < batch->n_paths && !pl_record_out_full(out); i++) {
		const struct pl_path *path = &batch->paths[i];
		const struct pl_hop *hops = batch->hops + batch->first_hop[i];

		if (out->where != NULL && !pl_where_match(out->where, path, hops, path->hop_count))
			continue;
		begin(out);
		add(out, path, hops);
		out->printed++;
		if (out->buf.len >= WRITE_AT || out->buf.failed)
			pl_record_out_write(out);
	}
	pl_record_batch_clear(batch);
}

void pl_record_out_end(struct pl_record_out *out)
{
	begin(out);
	if (out->form == PL_OUT_JSON && !out->lines)
		pl_buf_str(&out->buf, out->printed > 0 ? "\n]\n" : "]\n");
	pl_record_out_write(out);
}

bool pl_record_out_good(const struct pl_record_out *out)
{
	if (out->error == 0)
		return true;
	pl_complain("standard output: %s", strerror(-out->error));
	return false;
}
