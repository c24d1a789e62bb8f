/* SPDX-License-Identifier: BSD-2-Clause */
/* A collector's reader of messages, by their own templates, which shares nothing with libfixbuf.
 * For the tests of this folder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"

enum { TEMPLATES = 512, FIELDS = 64, RECORDS = 4096 };

struct field {
	uint32_t pen;
	uint16_t id, len;
	uint64_t value;
	uint8_t bytes[16];
};

struct template
{
	uint16_t id, n;
	struct field fields[FIELDS];
};

struct row {
	uint16_t template, n;
	struct field fields[FIELDS];
};

static struct collected {
	struct template templates[TEMPLATES];
	unsigned int n_templates, template_sets;
	struct row rows[RECORDS]; /* flows and accounts */
	unsigned int n, messages, flows_told, longest;
	uint32_t sequence, domain, export_s; /* from the last message */
	uint32_t next;                       /* sequence expected in the next message */
	unsigned int wrong_sequence, malformed;
	unsigned int split, flow_rows; /* messages that do not end with a whole number of flows */
} got;

static uint64_t number(const uint8_t *p, unsigned int n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

static struct template *template_of(uint16_t id)
{
	for (unsigned int i = 0; i < got.n_templates; i++) {
		if (got.templates[i].id == id)
			return &got.templates[i];
	}
	if (got.n_templates == TEMPLATES)
		abort();
	got.templates[got.n_templates].id = id;
	return &got.templates[got.n_templates++];
}

static void read_templates(const uint8_t *p, const uint8_t *end, bool options)
{
	got.template_sets++;
	while (end - p >= 4) {
		struct template *t = template_of((uint16_t)number(p, 2));

		t->n = (uint16_t)number(p + 2, 2);
		p += options ? 6 : 4;
		if (t->n > FIELDS)
			abort();
		for (unsigned int i = 0; i < t->n; i++) {
			struct field *f = &t->fields[i];

			f->id = (uint16_t)number(p, 2) & 0x7fff;
			f->len = (uint16_t)number(p + 2, 2);
			f->pen = (p[0] & 0x80) != 0 ? (uint32_t)number(p + 4, 4) : 0;
			p += (p[0] & 0x80) != 0 ? 8 : 4;
		}
	}
}

static void read_rows(uint16_t id, const uint8_t *p, const uint8_t *end)
{
	const struct template *t = template_of(id);
	ptrdiff_t bytes = 0;

	for (unsigned int i = 0; i < t->n; i++)
		bytes += t->fields[i].len;
	got.malformed += t->n == 0; /* no template came before */
	while (bytes > 0 && end - p >= bytes) {
		struct row *row = &got.rows[got.n++ % RECORDS];

		row->template = id;
		row->n = t->n;
		for (unsigned int i = 0; i < t->n; i++) {
			row->fields[i] = t->fields[i];
			if (t->fields[i].len <= 8)
				row->fields[i].value = number(p, t->fields[i].len);
			else
				memcpy(row->fields[i].bytes, p, 16);
			p += t->fields[i].len;
		}
		got.next++;
		got.flow_rows += t->n > 8; /* the account has fewer fields */
	}
}

static void take(void *arg, const uint8_t *m, uint32_t bytes, uint32_t flows)
{
	const unsigned int before = got.flow_rows;

	got.messages++;
	got.flows_told += flows;
	got.malformed += number(m, 2) != 10 || number(m + 2, 2) != bytes;
	got.export_s = (uint32_t)number(m + 4, 4);
	got.sequence = (uint32_t)number(m + 8, 4);
	got.domain = (uint32_t)number(m + 12, 4);
	got.wrong_sequence += got.sequence != got.next;
	got.longest = bytes > got.longest ? bytes : got.longest;
	for (uint32_t at = 16; at + 4 <= bytes;) {
		const uint16_t id = (uint16_t)number(m + at, 2),
			       len = (uint16_t)number(m + at + 2, 2);

		if (len < 4 || at + len > bytes) {
			got.malformed++;
			return;
		}
		if (id == 2 || id == 3)
			read_templates(m + at + 4, m + at + len, id == 3);
		else
			read_rows(id, m + at + 4, m + at + len);
		at += len;
	}
	(void)arg;
	got.split += got.flow_rows - before != flows && got.flow_rows - before != 2 * flows;
}

static const struct field none; /* an element that is absent */

static const struct field *find(const struct row *row, uint32_t pen, uint16_t id)
{
	for (unsigned int i = 0; i < row->n; i++) {
		if (row->fields[i].pen == pen && row->fields[i].id == id)
			return &row->fields[i];
	}
	return &none;
}

static bool has(const struct row *row, uint32_t pen, uint16_t id)
{
	return find(row, pen, id) != &none;
}

static void value(const struct row *row, uint32_t pen, uint16_t id, uint64_t want, const char *name)
{
	const struct field *f = find(row, pen, id);

	if (ok(f != &none, "%s is there", name))
		eq(f->value, want, "%s", name);
}
