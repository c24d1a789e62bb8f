/* SPDX-License-Identifier: BSD-2-Clause */
/* Interprets bytes of a region: numbers as configured, or records of pathline, which are untrusted
 * until every enumerated field was checked. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/region_input.h"

/* Bytes of a number, by enum pl_value_format; 0: no number. */
static const uint8_t widths[] = { 0, 1, 2, 2, 4, 4, 8, 8, 0 };

static uint32_t bytes_of(const struct pl_store_params *p)
{
	return p->primitive == PL_KEY_WRITE ? p->key_write.value_bytes
	       : p->primitive == PL_APPEND  ? p->append.entry_bytes
					    : 0;
}

int pl_region_check_value(
	const struct pl_config_region *c, const struct pl_store_params *p, struct pl_diag *diag)
{
	const uint32_t n = bytes_of(p), width = widths[c->value.format];

	if (c->value.format == PL_VALUE_HEX)
		return 0;
	if (n == 0)
		pl_diag_set(diag, "value.format is for key-write and append, and this region is %s",
			pl_primitive_name(p->primitive));
	else if (c->value.format == PL_VALUE_RECORD &&
		 (p->content == PL_CONTENT_BYTES || p->content >= PL_CONTENT_FLAT ||
			 n < sizeof(struct pl_path)))
		pl_diag_set(diag,
			"value.format is record, but the region was not made for records (region create --content)");
	else if (width > 0 && c->value.at + width > n)
		pl_diag_set(diag, "value.at is %llu, but there are %u bytes",
			(unsigned long long)c->value.at, n);
	else
		return 0;
	return -EINVAL;
}

const char *pl_region_alert_fault(const struct pl_config_region *c, const struct pl_store_params *p)
{
	if (p->primitive == PL_POSTCARDS)
		return "of a postcards region, which has no values";
	if (c->value.format == PL_VALUE_HEX && bytes_of(p) > 0)
		return "of a region of bytes: value.format must say which number is in them, such as u32be";
	return NULL;
}

bool pl_region_number(const struct pl_config_region *c, const uint8_t *bytes, uint64_t *ret_number)
{
	const uint8_t width = widths[c->value.format];
	const bool big = c->value.format == PL_VALUE_U16BE || c->value.format == PL_VALUE_U32BE ||
			 c->value.format == PL_VALUE_U64BE;
	uint64_t v = 0;

	for (uint8_t i = 0; i < width; i++)
		v = v << 8 | bytes[c->value.at + (big ? i : width - 1u - i)];
	*ret_number = v;
	return width > 0;
}

void pl_region_value(
	struct pl_value *ret, const struct pl_config_region *c, const uint8_t *bytes, uint32_t n)
{
	*ret = (struct pl_value){ .record_version = PL_RECORD_VERSION, .length = n };
	snprintf(ret->region.c, sizeof(ret->region.c), "%s", c->name);
	if (c->value.name != NULL) {
		snprintf(ret->name.c, sizeof(ret->name.c), "%s", c->value.name);
		ret->present |= PL_VALUE_HAS_name;
	}
	if (bytes == NULL)
		return;
	if (pl_region_number(c, bytes, &ret->value))
		ret->present |= PL_VALUE_HAS_value;
	/* When the number fills the whole value, the bytes are left out. */
	if (widths[c->value.format] == n)
		return;
	ret->bytes.n = (uint8_t)(n < PL_BYTES_TOLD ? n : PL_BYTES_TOLD);
	memcpy(ret->bytes.b, bytes, ret->bytes.n);
	ret->present |= PL_VALUE_HAS_bytes;
}

/* ---- records ---- */

/* Returns whether a text field ends within its bytes and has plain characters only; such fields
 * have at least 16 bytes. */
static bool good_text(const char *text)
{
	unsigned int n = 0;

	while (n < PL_TEXT_TOLD && pl_text_plain(text[n]))
		n++;
	return text[n] == '\0';
}

static bool good_words(enum pl_record_kind kind, const void *record, uint32_t present)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);

	for (size_t i = 0; i < n; i++) {
		const struct pl_field *f = &fields[i];
		const uint8_t word = *((const uint8_t *)record + f->offset);

		if (f->present != 0 && (present & f->present) == 0)
			continue;
		if (f->form == PL_FORM_TEXT && !good_text((const char *)record + f->offset))
			return false;
		if (pl_form_word((enum pl_form)f->form, 0) != NULL &&
			pl_form_word((enum pl_form)f->form, word) == NULL)
			return false;
	}
	return true;
}

static void put_path(
	const struct pl_region_room *room, const struct pl_path *path, const struct pl_hop *hop)
{
	struct pl_record_batch *b = room->paths;

	if (b->n_paths == b->cap_paths || b->n_hops == b->cap_hops)
		b->flush(b, b->flush_arg);
	b->paths[b->n_paths] = *path;
	b->paths[b->n_paths].hop_count = hop != NULL;
	b->paths[b->n_paths].flags |= PL_FLAG_PARTIAL;
	b->first_hop[b->n_paths] = b->n_hops;
	b->pkt[b->n_paths++] = 0;
	if (hop != NULL)
		b->hops[b->n_hops++] = *hop;
}

/* Takes a path without its hops, which are elsewhere, as a partial one. */
static bool take_path(const struct pl_region_room *room, const uint8_t *bytes)
{
	struct pl_path path;

	memcpy(&path, bytes, sizeof(path));
	if (path.record_version != PL_RECORD_VERSION ||
		!good_words(PL_KIND_PATH, &path, path.present))
		return false;
	put_path(room, &path, NULL);
	return true;
}

/* Takes a hop without its path, as a path of this hop alone. */
static bool take_hop(const struct pl_region_room *room, const uint8_t *bytes)
{
	struct pl_path path = { .record_version = PL_RECORD_VERSION, .mode = PL_MODE_XD };
	struct pl_hop hop;

	memcpy(&hop, bytes, sizeof(hop));
	if (hop.record_version != PL_RECORD_VERSION || !good_words(PL_KIND_HOP, &hop, hop.present))
		return false;
	path.ts_ns = hop.ts_ns;
	path.report_id = hop.report_id;
	if ((hop.present & PL_HOP_HAS_path_id) != 0) {
		path.path_id = hop.path_id;
		path.present |= PL_PATH_HAS_path_id;
	}
	put_path(room, &path, &hop);
	return true;
}

static bool take_event(const struct pl_region_room *room, const uint8_t *bytes)
{
	struct pl_event_batch *b = room->events;
	struct pl_event event;

	memcpy(&event, bytes, sizeof(event));
	if (event.record_version != PL_RECORD_VERSION ||
		!good_words(PL_KIND_EVENT, &event, event.present))
		return false;
	if (b->n == b->cap)
		b->flush(b, b->flush_arg);
	b->events[b->n++] = event;
	return true;
}

bool pl_region_record(
	const uint8_t *bytes, enum pl_content content, const struct pl_region_room *room)
{
	switch (content) {
	case PL_CONTENT_PATH:
		return take_path(room, bytes);
	case PL_CONTENT_HOP:
		return take_hop(room, bytes);
	case PL_CONTENT_EVENT:
		return take_event(room, bytes);
	default:
		return false;
	}
}
