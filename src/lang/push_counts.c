/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans of counts: the columns to count by, and the reasons against counting. */
#include "lang/push_counts.h"

#include <stddef.h>
#include <string.h>

#include "lang/plan.h"
#include "lang/push.h"

#define PANE_LEAST   UINT64_C(10000000) /* shortest window, ns */
#define COLUMNS_MOST 32                 /* most columns that are named */

/* The key of the counts, while it is gathered from the plan. */
struct found {
	bool pkt64;
	uint64_t words[sizeof(struct pl_pkt96) / 8]; /* masks over the record */
	const char *names[COLUMNS_MOST];
	uint32_t n_names;
	const char *why; /* NULL: nothing forbids it */
};

/* True for a field that differs from packet to packet: there would be as many keys as packets. */
static bool is_of_each_packet(uint32_t offset)
{
	switch (offset) {
	case offsetof(struct pl_pkt96, ts_ns):
	case offsetof(struct pl_pkt96, tcp_seq):
	case offsetof(struct pl_pkt96, tcp_ack):
	case offsetof(struct pl_pkt96, tcp_win):
	case offsetof(struct pl_pkt96, tsval):
	case offsetof(struct pl_pkt96, tsecr):
	case offsetof(struct pl_pkt96, record_seq):
	case offsetof(struct pl_pkt96, ip_id):
		return true;
	default:
		return false;
	}
}

static void name_column(struct found *f, const char *name)
{
	for (uint32_t i = 0; i < f->n_names; i++) {
		if (strcmp(f->names[i], name) == 0)
			return;
	}
	if (f->n_names < COLUMNS_MOST)
		f->names[f->n_names++] = name;
}

static void add_column(struct found *f, const struct column *c)
{
	const uint32_t at = c->offset, shift = at % 8 * 8;
	const uint64_t bits = c->width < 8 ? (UINT64_C(1) << c->width * 8) - 1 : UINT64_MAX;

	if (is_of_each_packet(at)) {
		f->why = "a column of its keys or values has another value in each packet";
	} else if (f->pkt64 && at >= sizeof(struct pl_pkt64)) {
		f->why = "record=pkt64 leaves out a column that it reads";
	} else if (c->absent >= 0 || c->present != 0 ||
		   (c->width == 16 ? at % 8 != 0 : at % 8 + c->width > 8)) {
		f->why = "a column of its keys or values is not a part of one word";
	} else if (c->width == 16) {
		f->words[at / 8] = f->words[at / 8 + 1] = UINT64_MAX;
	} else {
		f->words[at / 8] |= ((c->mask << c->shift) & bits) << shift;
	}
	name_column(f, c->name != NULL ? c->name : "?");
}

static void add_node(struct found *f, const struct node *node)
{
	if (node == NULL)
		return;
	if (node->column != NULL)
		add_column(f, node->column);
	add_node(f, node->a);
	add_node(f, node->b);
	add_node(f, node->c);
}

/* A column of packets that the kernel sums up. */
static bool is_length(const struct node *node)
{
	return node->op == N_COLUMN && node->column->width == 2 && node->column->shift == 0 &&
	       node->column->mask == UINT64_MAX &&
	       (node->column->offset == offsetof(struct pl_pkt96, wire_len) ||
		       node->column->offset == offsetof(struct pl_pkt96, pay_len));
}

static void add_agg(struct found *f, const struct agg *agg)
{
	switch (agg->kind) {
	case AGG_COUNT:
		if (agg->n_args > 0 &&
			(agg->args[0]->op != N_COLUMN || agg->args[0]->column->id_of != 0))
			f->why = "count of an expression, which may be absent, needs the records";
		break;
	case AGG_SUM:
	case AGG_AVG:
		if (!is_length(agg->args[0]))
			f->why = "the kernel sums up wire_len and pay_len, and nothing else";
		break;
	case AGG_MIN:
	case AGG_MAX:
	case AGG_BIT_OR:
	case AGG_COUNT_DISTINCT:
	case AGG_APPROX_DISTINCT:
		for (uint32_t i = 0; i < agg->n_args; i++)
			add_node(f, agg->args[i]);
		break;
	default:
		f->why = "one of its aggregates needs the records, or their order";
	}
}

/* Part of the plan that forbids counting, whatever the columns are; NULL: none. */
static const char *forbids(const struct pl_query *query)
{
	const struct stage *stage = query->stages[0];

	if (query->n_stages != 1 || stage->n_sources > 0 || stage->pairs != NULL ||
		stage->zip != NULL)
		return "it has several steps";
	if (stage->kind != PL_FLAT_PKT64 && stage->kind != PL_FLAT_PKT96)
		return "it does not read packets";
	if (!stage->grouped)
		return "a row is of one packet";
	if (stage->n_folds > 0)
		return "a fold needs the records in their order";
	if (stage->emit_first)
		return "EMIT FIRST gives rows before a window ends";
	if (stage->has_limit && stage->order < 0)
		return "LIMIT without ORDER BY takes the groups that came first";
	if (query->window.kind == W_SESSION)
		return "a session ends by the times of its records";
	if (query->window.kind != W_NONE && pl_query_windows_pane(&query->window) < PANE_LEAST)
		return "its windows, or the longest time that divides them all, are shorter than 10 ms";
	return NULL;
}

static struct found find(const struct pl_query *query, bool pkt64)
{
	const struct stage *stage = query->stages[0];
	struct found f = { .pkt64 = pkt64 };

	for (uint32_t i = 0; i < stage->n_keys; i++)
		add_node(&f, stage->keys[i].node);
	for (uint32_t i = 0; i < stage->n_aggs; i++)
		add_agg(&f, &stage->aggs[i]);
	return f;
}

static const char *put_words(const struct found *f, struct pl_tap_count_plan *ret)
{
	for (uint32_t i = 0; i < sizeof(f->words) / sizeof(f->words[0]); i++) {
		if (f->words[i] == 0)
			continue;
		if (ret->n == PL_TAP_COUNT_WORDS)
			return "its columns are too many for a key";
		ret->at[ret->n] = i * 8;
		ret->mask[ret->n++] = f->words[i];
	}
	return NULL;
}

const char *pl_query_push_counts(
	const struct pl_query *query, bool pkt64, struct pl_tap_count_plan *ret)
{
	const char *why = forbids(query);
	struct pl_query_push push;
	struct found f;

	*ret = (struct pl_tap_count_plan){ .on = 1 };
	if (why != NULL)
		return why;
	pl_query_push(query, pkt64, &push);
	if (!push.exact)
		return "rules do not say its filter whole";
	f = find(query, pkt64);
	if (f.why != NULL)
		return f.why;
	if (query->window.kind != W_NONE)
		ret->pane_ns = pl_query_windows_pane(&query->window);
	return put_words(&f, ret);
}

void pl_query_push_counts_text(const struct pl_query *query, struct pl_buf *out)
{
	const struct found f = find(query, false);

	for (uint32_t i = 0; i < f.n_names; i++)
		pl_buf_printf(out, "%s%s", i > 0 ? ", " : "", f.names[i]);
	if (f.n_names == 0)
		pl_buf_str(out, "nothing");
}
