/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recursive descent over the text, emitting steps. The program has one truth value and no stack: a
 * test sets it, `not` turns it, and and/or skip the right-hand side when the left has decided. That
 * suffices because an expression in parentheses also leaves its value there. The steps of `any hop
 * (X)` are a program of their own within it, run once for each hop.
 */
#include "record/where_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN_END UINT32_MAX

/* ---- the grammar ---- */

static int emit(struct parser *p, const struct step *s)
{
	struct pl_where *w = p->where;

	if (w->n == w->cap) {
		size_t cap = w->cap == 0 ? 8 : w->cap * 2;
		struct step *grown = reallocarray(w->steps, cap, sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		w->steps = grown;
		w->cap = cap;
	}
	w->steps[w->n++] = *s;
	return 0;
}

static int parse_comparison(
	struct parser *p, struct step *s, const struct name *name, const char *text)
{
	bool is_addr = name->field->form == PL_FORM_ADDR;
	size_t at = p->token.at;
	int r;

	if (pl_where_token_is(p, "in")) {
		if (!is_addr)
			return fail_at(p, at, "\"in\" needs an address, and %s is not one", text);
		s->compare = IN;
	} else if (p->token.kind == T_COMPARE) {
		s->compare = (uint8_t)p->token.compare;
		if (s->compare != EQ && s->compare != NE && !pl_where_is_ordered(name->field))
			return fail_at(p, at, "%s has no order: compare it with ==%s or !=", text,
				is_addr ? ", in" : "");
	} else if (name->mask != 0) {
		s->compare = FLAG;
		s->value = true;
		return 0;
	} else {
		return fail_at(p, at, "expected a comparison (== != < <= > >= in) behind %s", text);
	}
	r = pl_where_next(p);
	return r < 0 ? r : pl_where_take_value(p, s, text);
}

/* Parses exists(FIELD) and missing(FIELD), behind the word. */
static int parse_presence(struct parser *p, struct name *name)
{
	char text[VALUE_MAX];
	size_t at;
	int r;

	if (p->token.kind != T_OPEN)
		return fail_at(p, p->token.at, "expected \"(\" and a field name");
	r = pl_where_next(p);
	if (r == 0)
		r = pl_where_take_name(p, name, text, &at);
	if (r < 0)
		return r;
	if (p->token.kind != T_CLOSE)
		return fail_at(p, p->token.at, "expected \")\" behind the field name");
	return pl_where_next(p);
}

static int parse_or(struct parser *p);

/* The expression between the parentheses at the token. */
static int parse_group(struct parser *p)
{
	size_t open_at = p->token.at;
	int r;

	if (++p->depth > PL_WHERE_DEPTH_MAX)
		return fail_at(p, open_at, "more than %d parentheses within each other",
			PL_WHERE_DEPTH_MAX);
	r = pl_where_next(p);
	if (r == 0)
		r = parse_or(p);
	if (r < 0)
		return r;
	if (p->token.kind != T_CLOSE)
		return fail_at(p, p->token.at,
			"expected and, or, or the \")\" for the \"(\" in column %zu", open_at + 1);
	p->depth--;
	return pl_where_next(p);
}

/* Parses any hop (X), all hops (X), behind the first word, which stood at `at`. */
static int parse_each_hop(struct parser *p, size_t at, bool all)
{
	const size_t here = p->where->n;
	int r;

	if (p->fields != NULL)
		return fail_at(p, at, "these records have no hops");
	if (p->in_hop)
		return fail_at(p, at, "a hop has no hops of its own");
	r = pl_where_next(p);
	if (r == 0 && p->token.kind != T_OPEN)
		r = fail_at(p, p->token.at, "expected \"(\" and tests of one hop");
	if (r == 0)
		r = emit(p, &(struct step){ .op = OP_EACH_HOP, .of_hops = true, .all = all });
	if (r < 0)
		return r;
	p->in_hop = true;
	r = parse_group(p);
	p->in_hop = false;
	p->where->steps[here].target = (uint32_t)p->where->n;
	return r;
}

static int parse_test(struct parser *p)
{
	struct step s = { .op = OP_TEST };
	struct name name = { 0 };
	char text[VALUE_MAX];
	size_t all_at = p->token.at, at;
	int r = 0;

	s.all = pl_where_token_is(p, "all");
	if (s.all || pl_where_token_is(p, "any")) {
		r = pl_where_next(p);
		if (r == 0 && pl_where_token_is(p, s.all ? "hops" : "hop"))
			return parse_each_hop(p, all_at, s.all);
		if (r == 0 && !s.all)
			r = fail_at(p, p->token.at,
				"expected \"hop\" and tests in parentheses: any hop (node == 5)");
		if (r == 0 && p->token.kind == T_OPEN)
			r = fail_at(p, p->token.at,
				"expected a field name; several tests: all hops (node == 1)");
		if (r == 0 && p->in_hop)
			r = fail_at(p, all_at, "the parentheses test one hop only");
	}
	if (r == 0 && (pl_where_token_is(p, "exists") || pl_where_token_is(p, "missing"))) {
		s.compare = pl_where_token_is(p, "exists") ? EXISTS : MISSING;
		r = pl_where_next(p);
		if (r == 0)
			r = parse_presence(p, &name);
		s.field = name.field;
	} else if (r == 0) {
		r = pl_where_take_name(p, &name, text, &at);
		s.field = name.field;
		s.mask = name.mask;
		if (r == 0)
			r = parse_comparison(p, &s, &name, text);
	}
	if (r == 0 && s.all && !name.of_hops)
		r = fail_at(p, all_at, "\"all\" needs a field of the hops");
	s.of_hops = name.of_hops;
	if (r == 0)
		r = emit(p, &s);
	if (r < 0)
		free(s.text);
	return r;
}

static int parse_operand(struct parser *p)
{
	bool negated = false;
	int r = 0;

	for (; r == 0 && pl_where_token_is(p, "not"); r = pl_where_next(p))
		negated = !negated;
	if (r == 0)
		r = p->token.kind == T_OPEN ? parse_group(p) : parse_test(p);
	if (r == 0 && negated)
		r = emit(p, &(struct step){ .op = OP_NOT });
	return r;
}

/* Parses operands joined by the same word: the skip behind each goes to the end of all of them. */
static int parse_joined(
	struct parser *p, const char *word, enum op skip, int (*operand)(struct parser *))
{
	uint32_t previous = CHAIN_END;
	int r = operand(p);

	while (r == 0 && pl_where_token_is(p, word)) {
		uint32_t here = (uint32_t)p->where->n;

		r = emit(p, &(struct step){ .op = skip, .target = previous });
		previous = here;
		if (r == 0)
			r = pl_where_next(p);
		if (r == 0)
			r = operand(p);
	}
	/* Until here the skips formed a chain through their targets. */
	while (r == 0 && previous != CHAIN_END) {
		struct step *s = &p->where->steps[previous];

		previous = s->target;
		s->target = (uint32_t)p->where->n;
	}
	return r;
}

static int parse_and(struct parser *p)
{
	return parse_joined(p, "and", OP_SKIP_IF_FALSE, parse_operand);
}

static int parse_or(struct parser *p)
{
	return parse_joined(p, "or", OP_SKIP_IF_TRUE, parse_and);
}

static int parse(struct parser *p)
{
	int r;

	if (p->len > PL_WHERE_TEXT_MAX)
		return fail_at(
			p, PL_WHERE_TEXT_MAX, "longer than %d characters", PL_WHERE_TEXT_MAX);
	r = pl_where_next(p);
	if (r == 0 && p->token.kind == T_END)
		return fail_at(p, p->token.at, "the expression is empty");
	if (r == 0)
		r = parse_or(p);
	if (r == 0 && p->token.kind == T_CLOSE)
		return fail_at(p, p->token.at, "a \")\" without a \"(\"");
	if (r == 0 && p->token.kind != T_END)
		return fail_at(p, p->token.at, "expected and, or, or the end");
	return r;
}

int pl_where_new_over(struct pl_where **ret, const struct pl_field *fields, size_t n,
	const char *text, struct pl_diag *diag)
{
	struct parser p = {
		.text = text, .len = strlen(text), .fields = fields, .n_fields = n, .diag = diag
	};
	int r = -ENOMEM;

	p.where = calloc(1, sizeof(*p.where));
	if (p.where != NULL)
		r = parse(&p);
	if (r < 0) {
		if (r == -ENOMEM)
			pl_diag_set(diag, "out of memory");
		pl_where_free(p.where);
		return r;
	}
	*ret = p.where;
	return 0;
}

int pl_where_new(struct pl_where **ret, const char *text, struct pl_diag *diag)
{
	return pl_where_new_over(ret, NULL, 0, text, diag);
}
