/* SPDX-License-Identifier: BSD-2-Clause */
/* Templates by the values that they have. */
#include "ipfix/sets.h"

#include <errno.h>
#include <fixbuf/public.h>
#include <stdlib.h>

/* Internal templates have all values of a record. Those of collectors have the ids behind them. */
enum { ID_FIRST = 256, ID_LAST = 65535 };

static int type_of(const struct pl_ipfix_own *e)
{
	if (e->is_signed)
		return FB_INT_64;
	return e->bytes == 1   ? FB_UINT_8
	       : e->bytes == 2 ? FB_UINT_16
	       : e->bytes == 4 ? FB_UINT_32
			       : FB_UINT_64;
}

static void add_own_elements(struct pl_ipfix_sets *x, uint32_t pen)
{
	for (size_t i = 0; i < x->schema->n_own; i++) {
		const struct pl_ipfix_own *e = &x->schema->own[i];

		if (e->id != 0)
			pl_ipfix_own_element(&x->m, pen, e->name, e->id, type_of(e));
	}
}

static void make_session(struct pl_ipfix_sets *x)
{
	static const uint32_t all = UINT32_MAX;

	pl_ipfix_session(&x->m);
	for (unsigned int i = 0; i < x->schema->n_kinds; i++)
		(void)pl_ipfix_template(
			&x->m, x->schema->kinds[i], (uint16_t)(ID_FIRST + i), all, true, 0, 0);
	pl_ipfix_open(&x->m);
}

void pl_ipfix_sets_begin(struct pl_ipfix_sets *x)
{
	x->n = 0;
	x->next_id = (uint16_t)(ID_FIRST + x->schema->n_kinds);
	x->m.sequence = 0;
	make_session(x);
}

int pl_ipfix_sets_new(struct pl_ipfix_sets **ret, const struct pl_ipfix_schema *schema,
	const struct pl_ipfix_sets_options *options)
{
	struct pl_ipfix_sets *x = calloc(1, sizeof(*x));

	if (x == NULL)
		return -ENOMEM;
	x->schema = schema;
	x->unit = options->time;
	x->time = schema->times[options->time];
	x->m.domain = options->domain;
	x->m.send = options->send;
	x->m.arg = options->arg;
	add_own_elements(x, options->pen);
	pl_ipfix_sets_begin(x);
	*ret = x;
	return 0;
}

void pl_ipfix_sets_free(struct pl_ipfix_sets *x)
{
	if (x == NULL)
		return;
	pl_ipfix_message_done(&x->m);
	free(x);
}

static void step_id(struct pl_ipfix_sets *x)
{
	x->next_id =
		x->next_id < ID_LAST ? x->next_id + 1 : (uint16_t)(ID_FIRST + x->schema->n_kinds);
}

/* The next number that no template has; there are more numbers than templates. */
static uint16_t new_id(struct pl_ipfix_sets *x)
{
	for (unsigned int i = 0; i < x->n; i++) {
		if (x->sets[i].id != x->next_id)
			continue;
		step_id(x);
		i = UINT32_MAX; /* again from the first */
	}
	return x->next_id;
}

struct pl_ipfix_set *pl_ipfix_set_of(struct pl_ipfix_sets *x, uint8_t kind, uint32_t flags)
{
	struct pl_ipfix_set *s = x->sets;

	for (; s < x->sets + x->n; s++) {
		if (s->flags == flags && s->kind == kind)
			return s;
	}
	if (x->n == PL_IPFIX_SETS_MAX)
		return NULL;
	*s = (struct pl_ipfix_set){ .flags = flags,
		.id = new_id(x),
		.bytes = (uint16_t)pl_ipfix_bytes(x->schema->kinds[kind], flags),
		.kind = kind };
	x->n++;
	step_id(x);
	return s;
}

void pl_ipfix_set_announce(struct pl_ipfix_sets *x, struct pl_ipfix_set *s, uint32_t export_s)
{
	if (s->sent)
		return;
	(void)pl_ipfix_template(
		&x->m, x->schema->kinds[s->kind], s->id, s->flags, false, 0, export_s);
	s->sent = true;
}

void pl_ipfix_set_put(struct pl_ipfix_sets *x, struct pl_ipfix_set *s, const void *record,
	size_t bytes, uint32_t export_s)
{
	pl_ipfix_append(&x->m, (uint16_t)(ID_FIRST + s->kind), s->id, record, bytes, export_s);
	x->m.used += s->bytes;
	s->used = true;
}

void pl_ipfix_sets_renew(struct pl_ipfix_sets *x, uint32_t export_s)
{
	unsigned int kept = 0;

	pl_ipfix_send(&x->m, export_s);
	for (unsigned int i = 0; i < x->n; i++) {
		struct pl_ipfix_set s = x->sets[i];

		if (!s.used)
			continue;
		s.sent = s.used = false;
		x->sets[kept++] = s;
	}
	x->n = kept;
	make_session(x);
}

void pl_ipfix_sets_flush(struct pl_ipfix_sets *x, uint32_t export_s)
{
	pl_ipfix_send(&x->m, export_s);
}

uint32_t pl_ipfix_sets_waiting(const struct pl_ipfix_sets *x)
{
	return x->m.entries;
}
