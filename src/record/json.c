/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One loop over a table of members. The table is fields.def with everything precomputed that does
 * not depend on the record: which fields are shown, their keys as JSON text, where an inner object
 * begins, and the largest size of the whole, so that a record is written without a check per value.
 */
#include "record/json.h"

#include <assert.h>
#include <pthread.h>

#include "record/community_id.h"
#include "record/path_book.h"
#include "record/put.h"

#define MEMBERS_MAX 72
#define KEY_MAX     32 /* most bytes, with quotes and colon; asserted when the table is made */

struct member {
	const struct pl_field *field;
	char key[KEY_MAX]; /* "\"src\":" */
	uint8_t key_len;
	uint8_t object; /* 0: the record itself, else index into struct form's objects */
};

struct form {
	struct member members[MEMBERS_MAX];
	unsigned int n;
	char objects[4][KEY_MAX]; /* 1…: "\"flow\":{" */
	size_t max;               /* bytes of the longest record */
};

static struct form path_form, path_hop_form, hop_form, event_form, value_form;
static struct form flat_forms[PL_FLAT_MAX];
static pthread_once_t made = PTHREAD_ONCE_INIT;

/* Most bytes of {"dropped":false,…}. */
static size_t flags_max(void)
{
	const char *name;
	size_t max = 2;

	for (unsigned int bit = 0; (name = pl_path_flag_name(bit)) != NULL; bit++)
		max += strlen(name) + strlen("\"\":false,");
	return max;
}

static unsigned int object_index(struct form *form, const char *name, size_t len)
{
	char open[KEY_MAX];

	assert(len + 5 <= KEY_MAX);
	*put_str(put_bytes(put_str(open, "\""), name, len), "\":{") = '\0';
	for (unsigned int i = 1; i < sizeof(form->objects) / sizeof(form->objects[0]); i++) {
		if (form->objects[i][0] == '\0') {
			memcpy(form->objects[i], open, strlen(open) + 1);
			form->max += strlen(open) + 2;
		}
		if (strcmp(form->objects[i], open) == 0)
			return i;
	}
	assert(false && "more inner objects than the table holds");
	return 0;
}

static void add_member(struct form *form, const struct pl_field *field, const char *name)
{
	struct member *m = &form->members[form->n++];
	const char *dot = strchr(name, '.');

	assert(form->n <= MEMBERS_MAX && strlen(name) + 4 <= KEY_MAX);
	m->field = field;
	if (dot != NULL) {
		m->object = (uint8_t)object_index(form, name, (size_t)(dot - name));
		name = dot + 1;
	}
	m->key_len = (uint8_t)(put_str(put_str(put_str(m->key, "\""), name), "\":") - m->key);
	form->max += m->key_len + 1 +
		     (field->form == PL_FORM_FLAGS         ? flags_max()
			     : field->form >= PL_FORM_TEXT ? (size_t)PUT_LONG_MAX
							   : (size_t)PUT_VALUE_MAX);
}

static void make_form(struct form *form, enum pl_record_kind kind)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);

	form->max += 64; /* braces, "kind", "hops" */
	for (size_t i = 0; i < n; i++) {
		if (fields[i].name[0] != '\0')
			add_member(form, &fields[i], fields[i].name);
	}
}

static void make_flat_forms(void)
{
	for (int kind = 0; kind < PL_FLAT_MAX; kind++) {
		const struct pl_flat *flat = pl_flat((enum pl_flat_kind)kind);

		flat_forms[kind].max += 64 + PL_COMMUNITY_ID_MAX; /* braces, "community_id" */
		for (uint32_t i = 0; i < flat->n_fields; i++)
			add_member(&flat_forms[kind], &flat->fields[i], flat->fields[i].name);
	}
}

/* A hop on its own begins with time and path, which a hop within its path need not repeat. */
static void make_hop_form(void)
{
	static const struct {
		uint16_t offset;
		const char *name;
	} framing[] = {
		{ offsetof(struct pl_hop, ts_ns), "ts_ns" },
		{ offsetof(struct pl_hop, report_id), "report_id" },
		{ offsetof(struct pl_hop, path_id), "path_id" },
	};
	size_t n;
	const struct pl_field *fields = pl_fields(PL_KIND_HOP, &n);

	for (size_t f = 0; f < sizeof(framing) / sizeof(framing[0]); f++) {
		for (size_t i = 0; i < n; i++) {
			if (fields[i].offset == framing[f].offset)
				add_member(&hop_form, &fields[i], framing[f].name);
		}
	}
	make_form(&hop_form, PL_KIND_HOP);
}

static void make_forms(void)
{
	make_form(&path_form, PL_KIND_PATH);
	make_form(&path_hop_form, PL_KIND_HOP);
	make_hop_form();
	make_form(&event_form, PL_KIND_EVENT);
	make_form(&value_form, PL_KIND_VALUE);
	make_flat_forms();
}

static char *put_flags(char *p, unsigned int flags)
{
	/* Copied whole: a fixed length is a store or two, a variable one a call. */
	static const struct {
		char text[2][24];
		uint8_t len, bit;
	} members[] = {
#define PL_PATH_FLAG(bit, id, name, help)                                                          \
	{ { "\"" name "\":false,", "\"" name "\":true," }, sizeof("\"" name "\":true,") - 1, bit },
#include "record/fields.def"
	};

	*p++ = '{';
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		unsigned int set = flags >> members[i].bit & 1;

		memcpy(p, members[i].text[set], sizeof(members[i].text[set]));
		p += members[i].len + !set;
	}
	p[-1] = '}';
	return p;
}

/* The record's members, each with a comma behind it. */
static char *put_members(char *p, const struct form *form, const void *record, uint32_t present)
{
	unsigned int object = 0;

	for (unsigned int i = 0; i < form->n; i++) {
		const struct member *m = &form->members[i];

		if (!put_has(m->field, record, present))
			continue;
		if (m->object != object) {
			if (object != 0) {
				p[-1] = '}';
				*p++ = ',';
			}
			object = m->object;
			if (object != 0)
				p = put_str(p, form->objects[object]);
		}
		memcpy(p, m->key, sizeof(m->key)); /* all of it, for its fixed length */
		p += m->key_len;
		if (m->field->form == PL_FORM_FLAGS)
			p = put_flags(p, (unsigned int)put_load(m->field, record));
		else
			p = put_value(p, m->field, record, true);
		*p++ = ',';
	}
	if (object != 0) {
		p[-1] = '}';
		*p++ = ',';
	}
	return p;
}

static const struct form *ready(const struct form *form)
{
	pthread_once(&made, make_forms);
	return form;
}

size_t pl_path_json_max(size_t n)
{
	return ready(&path_form)->max + n * path_hop_form.max;
}

void pl_path_json(
	struct pl_buf *buf, const struct pl_path *path, const struct pl_hop *hops, size_t n)
{
	char *start = pl_buf_reserve(buf, pl_path_json_max(n));
	char *p = start;

	if (start == NULL)
		return;
	p = put_str(p, "{\"kind\":\"path\",");
	p = put_members(p, &path_form, path, path->present);
	p = put_str(p, "\"hops\":[");
	for (size_t i = 0; i < n; i++) {
		*p++ = '{';
		p = put_members(p, &path_hop_form, &hops[i], hops[i].present);
		p[-1] = '}'; /* in place of the last comma: index is always there */
		*p++ = ',';
	}
	if (n > 0)
		p--;
	p = put_str(p, "]}");
	pl_buf_advance(buf, (size_t)(p - start));
}

void pl_hop_json(struct pl_buf *buf, const struct pl_hop *hop)
{
	char *start = pl_buf_reserve(buf, ready(&hop_form)->max);
	char *p = start;

	if (start == NULL)
		return;
	p = put_str(p, "{\"kind\":\"hop\",");
	p = put_members(p, &hop_form, hop, hop->present);
	p[-1] = '}';
	pl_buf_advance(buf, (size_t)(p - start));
}

/* The nodes of both paths of a path change, with their keys. */
#define NODES_MAX ((size_t)2 * (PL_PATH_NODES_TEXT + 64))

static char *put_nodes(char *p, const char *key, const struct pl_path_nodes *nodes)
{
	p = put_str(put_str(put_str(p, ",\""), key), "_nodes\":");
	if (nodes->hops == 0)
		return put_str(p, "null");
	*p++ = '[';
	for (unsigned int i = 0; i < nodes->n; i++) {
		if (i > 0)
			*p++ = ',';
		p = put_u64(p, nodes->node[i]);
	}
	p = put_str(put_str(put_str(p, "],\""), key), "_hops\":");
	return put_u64(p, nodes->hops);
}

size_t pl_event_json_max(void)
{
	return ready(&event_form)->max + NODES_MAX;
}

void pl_event_json(struct pl_buf *buf, const struct pl_event *event)
{
	const struct form *form = ready(&event_form);
	char *start = pl_buf_reserve(buf, pl_event_json_max());
	char *p = start;
	struct pl_path_nodes now, old;

	if (start == NULL)
		return;
	p = put_str(p, "{\"kind\":\"event\",");
	p = put_members(p, form, event, event->present) - 1;
	if (pl_event_paths(event, &now, &old))
		p = put_nodes(put_nodes(p, "path", &now), "old_path", &old);
	*p++ = '}';
	pl_buf_advance(buf, (size_t)(p - start));
}

size_t pl_value_json_max(void)
{
	return ready(&value_form)->max;
}

void pl_value_json(struct pl_buf *buf, const struct pl_value *value)
{
	char *start = pl_buf_reserve(buf, pl_value_json_max());
	char *p = start;

	if (start == NULL)
		return;
	p = put_str(p, "{\"kind\":\"value\",");
	p = put_members(p, &value_form, value, value->present);
	p[-1] = '}';
	pl_buf_advance(buf, (size_t)(p - start));
}

size_t pl_flat_json_max(enum pl_flat_kind kind)
{
	return ready(&flat_forms[kind])->max;
}

void pl_flat_json(struct pl_buf *buf, enum pl_flat_kind kind, const void *record)
{
	const struct form *form = ready(&flat_forms[kind]);
	char *start = pl_buf_reserve(buf, form->max);
	char *p = start;

	if (start == NULL)
		return;
	*p++ = '{';
	p = put_members(p, form, record, pl_flat_present(pl_flat(kind), record));
	p[-1] = '}';
	pl_buf_advance(buf, (size_t)(p - start));
}
