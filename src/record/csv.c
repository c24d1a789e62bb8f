/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes records as CSV. */
#include "record/path_book.h"
#include "record/put.h"
#include "record/table.h"

static void add_header(struct pl_buf *buf, enum pl_record_kind kind, const char *prefix)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);
	const char *flag;

	for (size_t i = 0; i < n; i++) {
		if (fields[i].name[0] == '\0')
			continue;
		if (fields[i].form == PL_FORM_FLAGS) {
			for (unsigned int bit = 0; (flag = pl_path_flag_name(bit)) != NULL; bit++)
				pl_buf_printf(buf, "%s%s.%s,", prefix, fields[i].name, flag);
			continue;
		}
		pl_buf_str(buf, prefix);
		pl_buf_str(buf, fields[i].name);
		pl_buf_chr(buf, ',');
	}
}

/* Adds each value with a comma behind it. */
static void add_row(
	struct pl_buf *buf, enum pl_record_kind kind, const void *record, uint32_t present)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);
	char value[PUT_LONG_MAX];

	for (size_t i = 0; i < n; i++) {
		const struct pl_field *f = &fields[i];

		if (f->name[0] == '\0')
			continue;
		if (f->form == PL_FORM_FLAGS) {
			for (unsigned int bit = 0; pl_path_flag_name(bit) != NULL; bit++)
				pl_buf_str(
					buf, put_load(f, record) >> bit & 1 ? "true," : "false,");
			continue;
		}
		if (put_has(f, record, present))
			pl_buf_add(
				buf, value, (size_t)(put_value(value, f, record, false) - value));
		pl_buf_chr(buf, ',');
	}
}

/* The columns of a hop where there is none. */
static void add_no_hop(struct pl_buf *buf)
{
	size_t n;
	const struct pl_field *fields = pl_fields(PL_KIND_HOP, &n);

	for (size_t i = 0; i < n; i++) {
		if (fields[i].name[0] != '\0')
			pl_buf_chr(buf, ',');
	}
}

static void end_row(struct pl_buf *buf)
{
	if (!buf->failed)
		buf->data[buf->len - 1] = '\n';
}

void pl_path_csv_header(struct pl_buf *buf)
{
	add_header(buf, PL_KIND_PATH, "");
	add_header(buf, PL_KIND_HOP, "hops.");
	end_row(buf);
}

void pl_path_csv(
	struct pl_buf *buf, const struct pl_path *path, const struct pl_hop *hops, size_t n)
{
	size_t row = buf->len, path_len;

	add_row(buf, PL_KIND_PATH, path, path->present);
	path_len = buf->len - row;
	if (n == 0)
		add_no_hop(buf);
	for (size_t i = 0; i < n; i++) {
		if (i > 0) {
			char *again = pl_buf_reserve(buf, path_len);

			end_row(buf);
			if (again == NULL)
				return;
			memcpy(again, buf->data + row, path_len);
			pl_buf_advance(buf, path_len);
		}
		add_row(buf, PL_KIND_HOP, &hops[i], hops[i].present);
	}
	end_row(buf);
}

void pl_hop_csv_header(struct pl_buf *buf)
{
	pl_buf_str(buf, "ts_ns,report_id,path_id,");
	add_header(buf, PL_KIND_HOP, "");
	end_row(buf);
}

void pl_hop_csv(struct pl_buf *buf, const struct pl_hop *hop)
{
	pl_buf_u64(buf, hop->ts_ns);
	pl_buf_chr(buf, ',');
	pl_buf_hex64(buf, hop->report_id);
	pl_buf_chr(buf, ',');
	if ((hop->present & PL_HOP_HAS_path_id) != 0)
		pl_buf_hex64(buf, hop->path_id);
	pl_buf_chr(buf, ',');
	add_row(buf, PL_KIND_HOP, hop, hop->present);
	end_row(buf);
}

void pl_event_csv_header(struct pl_buf *buf)
{
	add_header(buf, PL_KIND_EVENT, "");
	pl_buf_str(buf, "path_nodes,old_path_nodes\n");
}

void pl_event_csv(struct pl_buf *buf, const struct pl_event *event)
{
	char nodes[PL_PATH_NODES_TEXT];
	struct pl_path_nodes now, old;
	bool paths = pl_event_paths(event, &now, &old);

	add_row(buf, PL_KIND_EVENT, event, event->present);
	if (paths)
		pl_buf_add(buf, nodes, pl_path_nodes_text(nodes, &now));
	pl_buf_chr(buf, ',');
	if (paths)
		pl_buf_add(buf, nodes, pl_path_nodes_text(nodes, &old));
	pl_buf_chr(buf, '\n');
}

void pl_value_csv_header(struct pl_buf *buf)
{
	add_header(buf, PL_KIND_VALUE, "");
	end_row(buf);
}

void pl_value_csv(struct pl_buf *buf, const struct pl_value *value)
{
	add_row(buf, PL_KIND_VALUE, value, value->present);
	end_row(buf);
}
