/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes records as text that tests compare. */
#include "record/text.h"

#include "record/path_book.h"
#include "record/put.h"

void pl_path_flags_text(struct pl_buf *buf, unsigned int flags, const char *none)
{
	const char *name, *sep = "";

	for (unsigned int bit = 0; (name = pl_path_flag_name(bit)) != NULL; bit++) {
		if ((flags >> bit & 1) == 0)
			continue;
		pl_buf_str(buf, sep);
		pl_buf_str(buf, name);
		sep = ",";
	}
	if (sep[0] == '\0')
		pl_buf_str(buf, none);
}

static void add_record(
	struct pl_buf *buf, enum pl_record_kind kind, const void *record, uint32_t present)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);
	char value[PUT_LONG_MAX];

	pl_buf_str(buf, pl_record_kind_name(kind));
	for (size_t i = 0; i < n; i++) {
		if (fields[i].name[0] == '\0' || !put_has(&fields[i], record, present))
			continue;
		pl_buf_chr(buf, ' ');
		pl_buf_str(buf, fields[i].name);
		pl_buf_chr(buf, '=');
		if (fields[i].form == PL_FORM_FLAGS)
			pl_path_flags_text(buf, (unsigned int)put_load(&fields[i], record), "none");
		else
			pl_buf_add(buf, value,
				(size_t)(put_value(value, &fields[i], record, false) - value));
	}
}

void pl_path_text(
	struct pl_buf *buf, const struct pl_path *path, const struct pl_hop *hops, size_t n)
{
	add_record(buf, PL_KIND_PATH, path, path->present);
	pl_buf_chr(buf, '\n');
	for (size_t i = 0; i < n; i++) {
		pl_buf_chr(buf, '\t');
		pl_hop_text(buf, &hops[i]);
	}
}

void pl_hop_text(struct pl_buf *buf, const struct pl_hop *hop)
{
	add_record(buf, PL_KIND_HOP, hop, hop->present);
	pl_buf_chr(buf, '\n');
}

void pl_event_text(struct pl_buf *buf, const struct pl_event *event)
{
	char nodes[PL_PATH_NODES_TEXT];
	struct pl_path_nodes now, old;

	add_record(buf, PL_KIND_EVENT, event, event->present);
	if (pl_event_paths(event, &now, &old)) {
		pl_buf_str(buf, " path_nodes=");
		pl_buf_add(buf, nodes, pl_path_nodes_text(nodes, &now));
		pl_buf_str(buf, " old_path_nodes=");
		pl_buf_add(buf, nodes, pl_path_nodes_text(nodes, &old));
	}
	pl_buf_chr(buf, '\n');
}

void pl_value_text(struct pl_buf *buf, const struct pl_value *value)
{
	add_record(buf, PL_KIND_VALUE, value, value->present);
	pl_buf_chr(buf, '\n');
}
