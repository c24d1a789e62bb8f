/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recursive descent over the text, emitting steps. The program has one truth value and no stack: a test sets
 * it, `not` turns it, and and/or skip the right-hand side when the left has decided. That suffices because
 * whatever stands between parentheses ends with its value in the same place. The steps of `any hop (X)` are a program of
 * their own within it, run once for each hop.
 */
#include "record/where.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "record/put.h"

#define VALUE_MAX 128 /* characters of one value */
#define CHAIN_END UINT32_MAX

enum op {
	OP_TEST,
	OP_NOT,
	OP_SKIP_IF_FALSE,
	OP_SKIP_IF_TRUE,
	OP_EACH_HOP, /* the steps up to the target are of one hop: some hop, or every one */
};

enum compare { EQ, NE, LT, LE, GT, GE, IN, EXISTS, MISSING, FLAG };

struct step {
	uint8_t op;          /* enum op */
	uint8_t compare;     /* TEST: enum compare */
	bool of_hops, all;   /* TEST, EACH_HOP: over the hops; of every hop instead of any */
	uint8_t prefix_bits; /* IN */
	uint16_t mask;       /* FLAG */
	uint32_t target;     /* SKIP, EACH_HOP: step to go on with */
	const struct pl_field *field;
	uint64_t value; /* S64: two's complement */
	struct pl_addr addr;
	char *text; /* TEXT; heap */
};

struct pl_where {
	size_t n, cap;
	struct step *steps;
};

enum token_kind { T_END, T_WORD, T_STRING, T_COMPARE, T_OPEN, T_CLOSE };

struct token {
	enum token_kind kind;
	enum compare compare;
	size_t at, len; /* in the text; a string without its quotes */
};

struct parser {
	const char *text;
	size_t len, pos;
	struct token token; /* the one to be looked at next */
	unsigned int depth;
	bool in_hop;                   /* within any hop (…) or all hops (…) */
	const struct pl_field *fields; /* of a flat record, n_fields; NULL: paths and hops */
	size_t n_fields;
	struct pl_where *where;
	struct pl_diag *diag;
};

/* What a name in the text stands for. */
struct name {
	const struct pl_field *field;
	bool of_hops;
	uint16_t mask; /* a flag */
};

#define fail_at(p, at, ...) (pl_diag_at((p)->diag, 1, (unsigned int)(at) + 1, __VA_ARGS__), -EINVAL)

/* ---- text to tokens ---- */

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("_.:/+-[]", c) != NULL);
}

static int next_compare(struct parser *p)
{
	static const struct {
		char text[3];
		enum compare compare;
	} list[] = { { "==", EQ }, { "!=", NE }, { "<=", LE }, { ">=", GE }, { "<", LT },
		{ ">", GT } };
	static const struct {
		char text[3];
		const char *instead;
	} foreign[] = { { "=", "==" }, { "&&", "and" }, { "||", "or" }, { "&", "and" },
		{ "|", "or" }, { "!", "not" } };

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		size_t len = strlen(list[i].text);

		if (strncmp(p->text + p->pos, list[i].text, len) == 0) {
			p->token.kind = T_COMPARE;
			p->token.compare = list[i].compare;
			p->token.len = len;
			p->pos += len;
			return 0;
		}
	}
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		if (strncmp(p->text + p->pos, foreign[i].text, strlen(foreign[i].text)) == 0)
			return fail_at(p, p->pos, "\"%s\" is written \"%s\" here", foreign[i].text,
				foreign[i].instead);
	}
	if (p->text[p->pos] > ' ' && p->text[p->pos] < 0x7f)
		return fail_at(p, p->pos, "unexpected \"%c\"", p->text[p->pos]);
	return fail_at(p, p->pos, "unexpected byte 0x%02x", (unsigned char)p->text[p->pos]);
}

static int next(struct parser *p)
{
	const char *end;
	char c;

	while (p->pos < p->len && strchr(" \t\r\n", p->text[p->pos]) != NULL)
		p->pos++;
	p->token.at = p->pos;
	p->token.len = 1;
	if (p->pos == p->len) {
		p->token.kind = T_END;
		p->token.len = 0;
		return 0;
	}
	c = p->text[p->pos];
	if (c == '(' || c == ')') {
		p->token.kind = c == '(' ? T_OPEN : T_CLOSE;
		p->pos++;
		return 0;
	}
	if (c == '"' || c == '\'') {
		end = memchr(p->text + p->pos + 1, c, p->len - p->pos - 1);
		if (end == NULL)
			return fail_at(p, p->pos, "the quote is not closed");
		p->token.kind = T_STRING;
		p->token.at = p->pos + 1;
		p->token.len = (size_t)(end - p->text) - p->token.at;
		p->pos = (size_t)(end - p->text) + 1;
		return 0;
	}
	if (!is_word_char(c))
		return next_compare(p);
	while (p->pos < p->len && is_word_char(p->text[p->pos]))
		p->pos++;
	p->token.kind = T_WORD;
	p->token.len = p->pos - p->token.at;
	return 0;
}

static bool token_is(const struct parser *p, const char *word)
{
	return p->token.kind == T_WORD && p->token.len == strlen(word) &&
	       memcmp(p->text + p->token.at, word, p->token.len) == 0;
}

/* ---- names ---- */

static bool find_in(
	const struct pl_field *fields, size_t n, const char *name, bool of_hops, struct name *ret)
{
	for (size_t i = 0; i < n; i++) {
		if (fields[i].name[0] != '\0' && strcmp(fields[i].name, name) == 0) {
			*ret = (struct name){ .field = &fields[i], .of_hops = of_hops };
			return true;
		}
	}
	return false;
}

static bool find_field(enum pl_record_kind kind, const char *name, struct name *ret)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);

	return find_in(fields, n, name, kind == PL_KIND_HOP, ret);
}

static bool find_name(const struct parser *p, const char *text, struct name *ret)
{
	const char *flag;

	if (p->fields != NULL)
		return find_in(p->fields, p->n_fields, text, false, ret);
	if (p->in_hop) {
		if (strncmp(text, "hops.", 5) == 0)
			text += 5;
		if (!find_field(PL_KIND_HOP, text, ret))
			return false;
		ret->of_hops = false; /* the record is the hop */
		return true;
	}
	if (strncmp(text, "hops.", 5) == 0)
		return find_field(PL_KIND_HOP, text + 5, ret);
	if (strncmp(text, "flags.", 6) != 0)
		return find_field(PL_KIND_PATH, text, ret);
	for (unsigned int bit = 0; (flag = pl_path_flag_name(bit)) != NULL; bit++) {
		if (strcmp(flag, text + 6) == 0 && find_field(PL_KIND_PATH, "flags", ret)) {
			ret->mask = (uint16_t)(1u << bit);
			return true;
		}
	}
	return false;
}

#define NAMES_MAX    128
#define NAME_MAX_LEN 48

/* Every name there is, to find the nearest. */
static size_t list_names(const struct parser *p, char names[NAMES_MAX][NAME_MAX_LEN])
{
	size_t count = 0, n;
	const char *flag;

	for (size_t i = 0; i < p->n_fields && count < NAMES_MAX; i++) {
		if (p->fields[i].name[0] != '\0')
			snprintf(names[count++], NAME_MAX_LEN, "%s", p->fields[i].name);
	}
	if (p->fields != NULL)
		return count;
	for (int kind = p->in_hop ? PL_KIND_HOP : PL_KIND_PATH; kind <= PL_KIND_HOP; kind++) {
		const struct pl_field *fields = pl_fields((enum pl_record_kind)kind, &n);

		for (size_t i = 0; i < n && count < NAMES_MAX; i++) {
			if (fields[i].name[0] == '\0' || fields[i].form == PL_FORM_FLAGS)
				continue;
			snprintf(names[count++], NAME_MAX_LEN, "%s%s",
				kind == PL_KIND_HOP && !p->in_hop ? "hops." : "", fields[i].name);
		}
	}
	if (p->in_hop)
		return count;
	for (unsigned int bit = 0; (flag = pl_path_flag_name(bit)) != NULL && count < NAMES_MAX;
		bit++)
		snprintf(names[count++], NAME_MAX_LEN, "flags.%s", flag);
	return count;
}

static int fail_unknown(struct parser *p, size_t at, const char *text)
{
	static const char *const prefixes[] = { "hops.", "flow.", "flags." };
	char names[NAMES_MAX][NAME_MAX_LEN];
	const char *list[NAMES_MAX], *nearest;
	char full[VALUE_MAX + 8];
	struct name name;
	size_t n;

	if (p->in_hop) {
		p->in_hop = false;
		if (find_name(p, text, &name))
			return fail_at(p, at,
				"\"%s\" is of the path, not of a hop: test it outside of the parentheses",
				text);
		p->in_hop = true;
	}
	for (size_t i = 0; !p->in_hop && i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		snprintf(full, sizeof(full), "%s%s", prefixes[i], text);
		if (find_name(p, full, &name))
			return fail_at(
				p, at, "unknown field \"%s\", did you mean \"%s\"?", text, full);
	}
	n = list_names(p, names);
	for (size_t i = 0; i < n; i++)
		list[i] = names[i];
	nearest = pl_nearest(text, list, n);
	if (nearest != NULL)
		return fail_at(p, at, "unknown field \"%s\", did you mean \"%s\"?", text, nearest);
	if (p->fields != NULL)
		return fail_at(p, at, "unknown field \"%s\"", text);
	return fail_at(p, at, "unknown field \"%s\"; \"pathline help fields\" lists them", text);
}

/* The token's text, terminated. */
static int take_text(struct parser *p, const char *what, char ret[VALUE_MAX], size_t *ret_at)
{
	*ret_at = p->token.at;
	if (p->token.kind != T_WORD && p->token.kind != T_STRING) {
		if (p->token.kind == T_END)
			return fail_at(
				p, p->token.at, "expected %s, but the expression ends", what);
		return fail_at(p, p->token.at, "expected %s", what);
	}
	if (p->token.len >= VALUE_MAX)
		return fail_at(p, p->token.at, "longer than any name or value");
	memcpy(ret, p->text + p->token.at, p->token.len);
	ret[p->token.len] = '\0';
	if (strlen(ret) != p->token.len)
		return fail_at(p, p->token.at, "a NUL in the text");
	return next(p);
}

static int take_name(struct parser *p, struct name *ret, char text[VALUE_MAX], size_t *ret_at)
{
	static const char *const keywords[] = { "and", "or", "in" };
	int r;

	if (p->token.kind == T_STRING)
		return fail_at(
			p, p->token.at, "expected a field name, which is written without quotes");
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		if (token_is(p, keywords[i]))
			return fail_at(
				p, p->token.at, "expected a field name before \"%s\"", keywords[i]);
	}
	r = take_text(p, "a field name", text, ret_at);
	if (r < 0)
		return r;
	if (!find_name(p, text, ret))
		return fail_unknown(p, *ret_at, text);
	if (ret->field->form == PL_FORM_FLAGS && ret->mask == 0)
		return fail_at(p, *ret_at, "flags is a set; name one, as in flags.dropped");
	return 0;
}

/* ---- values ---- */

static unsigned int number_bits(const struct pl_field *field)
{
	switch (field->form) {
	case PL_FORM_U8:
		return 8;
	case PL_FORM_U16:
		return 16;
	case PL_FORM_U32:
		return 32;
	case PL_FORM_U64:
	case PL_FORM_S64:
		return 64;
	default:
		return 0;
	}
}

static int number_value(
	struct parser *p, struct step *s, const char *text, size_t at, const char *name)
{
	bool is_signed = s->field->form == PL_FORM_S64, negative = text[0] == '-';
	bool is_time = strcmp(s->field->unit, "ns") == 0;
	unsigned int bits = number_bits(s->field);
	uint64_t v, max = is_signed ? (uint64_t)INT64_MAX + negative : UINT64_MAX >> (64 - bits);
	int r;

	if (negative && !is_signed)
		return fail_at(p, at, "%s is never negative", name);
	r = pl_parse_u64(text + negative, &v);
	if (r == -EINVAL && is_time)
		r = pl_parse_duration(text + negative, &v);
	if (r == -EINVAL)
		return fail_at(p, at, "\"%s\" is not a number%s", text,
			is_time ? " or a time such as 50us" : "");
	if (r == -ERANGE || v > max)
		return fail_at(p, at, "%s holds at most %s%llu", name, negative ? "-" : "",
			(unsigned long long)max);
	s->value = negative ? -v : v;
	return 0;
}

static int hex_value(struct parser *p, struct step *s, const char *text, size_t at)
{
	const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
	size_t n = strlen(digits);

	if (n == 0 || n > 16 || strspn(digits, "0123456789abcdefABCDEF") != n)
		return fail_at(p, at, "\"%s\" is not an id of up to 16 hexadecimal digits", text);
	s->value = strtoull(digits, NULL, 16);
	return 0;
}

static int addr_value(struct parser *p, struct step *s, const char *text, size_t at)
{
	unsigned int bits;

	if (s->compare == IN) {
		if (pl_parse_prefix(text, &s->addr, &bits) < 0)
			return fail_at(p, at, "\"%s\" is not a prefix such as 10.0.0.0/8", text);
		s->prefix_bits = (uint8_t)bits;
		return 0;
	}
	if (pl_parse_addr(text, &s->addr) == 0)
		return 0;
	if (pl_parse_prefix(text, &s->addr, &bits) == 0)
		return fail_at(p, at, "a prefix is compared with \"in\"");
	return fail_at(p, at, "\"%s\" is not an address", text);
}

static int bool_value(struct parser *p, struct step *s, const char *text, size_t at)
{
	bool v;

	if (pl_parse_bool(text, &v) < 0)
		return fail_at(p, at, "\"%s\" is neither true nor false", text);
	s->value = v == (s->compare == EQ);
	s->compare = FLAG;
	return 0;
}

static int word_value(
	struct parser *p, struct step *s, const char *text, size_t at, const char *name)
{
	enum pl_form form = (enum pl_form)s->field->form;
	const char *word;
	char list[256] = "";
	size_t used = 0;

	for (unsigned int v = 0; (word = pl_form_word(form, v)) != NULL; v++) {
		if (strcmp(word, text) == 0) {
			s->value = v;
			return 0;
		}
		used += (size_t)snprintf(
			list + used, sizeof(list) - used, "%s%s", v == 0 ? "" : ", ", word);
	}
	return fail_at(p, at, "%s is never \"%s\"; it is one of %s", name, text, list);
}

static int text_value(struct step *s, const char *text)
{
	s->text = strdup(text);
	return s->text != NULL ? 0 : -ENOMEM;
}

/* Whether the form has an order (words have none, save the versions). */
static bool is_ordered(const struct pl_field *field)
{
	return number_bits(field) != 0 || field->form == PL_FORM_REPORT_VERSION ||
	       field->form == PL_FORM_INT_VERSION;
}

/* The value behind the comparison that is in *s. */
static int take_value(struct parser *p, struct step *s, const char *name)
{
	char text[VALUE_MAX];
	size_t at;
	int r = take_text(p, "a value", text, &at);

	if (r < 0)
		return r;
	if (number_bits(s->field) != 0)
		return number_value(p, s, text, at, name);
	if (s->field->form == PL_FORM_HEX64)
		return hex_value(p, s, text, at);
	if (s->field->form == PL_FORM_ADDR)
		return addr_value(p, s, text, at);
	if (s->field->form == PL_FORM_FLAGS)
		return bool_value(p, s, text, at);
	if (s->field->form == PL_FORM_TEXT)
		return text_value(s, text);
	return word_value(p, s, text, at, name);
}

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

	if (token_is(p, "in")) {
		if (!is_addr)
			return fail_at(p, at, "\"in\" takes an address, and %s is none", text);
		s->compare = IN;
	} else if (p->token.kind == T_COMPARE) {
		s->compare = (uint8_t)p->token.compare;
		if (s->compare != EQ && s->compare != NE && !is_ordered(name->field))
			return fail_at(p, at, "%s has no order: compare it with ==%s or !=", text,
				is_addr ? ", in" : "");
	} else if (name->mask != 0) {
		s->compare = FLAG;
		s->value = true;
		return 0;
	} else {
		return fail_at(p, at, "expected a comparison (== != < <= > >= in) behind %s", text);
	}
	r = next(p);
	return r < 0 ? r : take_value(p, s, text);
}

/* exists(FIELD) and missing(FIELD), behind the word. */
static int parse_presence(struct parser *p, struct name *name)
{
	char text[VALUE_MAX];
	size_t at;
	int r;

	if (p->token.kind != T_OPEN)
		return fail_at(p, p->token.at, "expected \"(\" and a field name");
	r = next(p);
	if (r == 0)
		r = take_name(p, name, text, &at);
	if (r < 0)
		return r;
	if (p->token.kind != T_CLOSE)
		return fail_at(p, p->token.at, "expected \")\" behind the field name");
	return next(p);
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
	r = next(p);
	if (r == 0)
		r = parse_or(p);
	if (r < 0)
		return r;
	if (p->token.kind != T_CLOSE)
		return fail_at(p, p->token.at,
			"expected and, or, or the \")\" for the \"(\" in column %zu", open_at + 1);
	p->depth--;
	return next(p);
}

/* any hop (X), all hops (X), behind the first word, which stood at `at`. */
static int parse_each_hop(struct parser *p, size_t at, bool all)
{
	const size_t here = p->where->n;
	int r;

	if (p->fields != NULL)
		return fail_at(p, at, "these records have no hops");
	if (p->in_hop)
		return fail_at(p, at, "a hop has no hops of its own");
	r = next(p);
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

	s.all = token_is(p, "all");
	if (s.all || token_is(p, "any")) {
		r = next(p);
		if (r == 0 && token_is(p, s.all ? "hops" : "hop"))
			return parse_each_hop(p, all_at, s.all);
		if (r == 0 && !s.all)
			r = fail_at(p, p->token.at,
				"expected \"hop\" and tests in parentheses: any hop (node == 5)");
		if (r == 0 && p->token.kind == T_OPEN)
			r = fail_at(p, p->token.at,
				"expected a field name; several tests: all hops (node == 1)");
		if (r == 0 && p->in_hop)
			r = fail_at(p, all_at, "within the parentheses there is one hop only");
	}
	if (r == 0 && (token_is(p, "exists") || token_is(p, "missing"))) {
		s.compare = token_is(p, "exists") ? EXISTS : MISSING;
		r = next(p);
		if (r == 0)
			r = parse_presence(p, &name);
		s.field = name.field;
	} else if (r == 0) {
		r = take_name(p, &name, text, &at);
		s.field = name.field;
		s.mask = name.mask;
		if (r == 0)
			r = parse_comparison(p, &s, &name, text);
	}
	if (r == 0 && s.all && !name.of_hops)
		r = fail_at(p, all_at, "\"all\" goes with a field of the hops");
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

	for (; r == 0 && token_is(p, "not"); r = next(p))
		negated = !negated;
	if (r == 0)
		r = p->token.kind == T_OPEN ? parse_group(p) : parse_test(p);
	if (r == 0 && negated)
		r = emit(p, &(struct step){ .op = OP_NOT });
	return r;
}

/* Operands joined by one word: the skip behind each goes to the end of them all. */
static int parse_joined(
	struct parser *p, const char *word, enum op skip, int (*operand)(struct parser *))
{
	uint32_t previous = CHAIN_END;
	int r = operand(p);

	while (r == 0 && token_is(p, word)) {
		uint32_t here = (uint32_t)p->where->n;

		r = emit(p, &(struct step){ .op = skip, .target = previous });
		previous = here;
		if (r == 0)
			r = next(p);
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
	r = next(p);
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

void pl_where_free(struct pl_where *where)
{
	if (where == NULL)
		return;
	for (size_t i = 0; i < where->n; i++)
		free(where->steps[i].text);
	free(where->steps);
	free(where);
}

/* ---- matching ---- */

static bool in_prefix(const struct pl_addr *addr, const struct pl_addr *prefix, unsigned int bits)
{
	unsigned int whole = bits / 8, left = bits % 8;

	if (memcmp(addr->b, prefix->b, whole) != 0)
		return false;
	return left == 0 || ((addr->b[whole] ^ prefix->b[whole]) >> (8 - left)) == 0;
}

static bool holds(enum compare compare, bool less, bool equal)
{
	switch (compare) {
	case EQ:
		return equal;
	case NE:
		return !equal;
	case LT:
		return less;
	case LE:
		return less || equal;
	case GT:
		return !less && !equal;
	case GE:
		return !less;
	default:
		return false;
	}
}

static bool satisfies(const struct step *s, const void *record, uint32_t present)
{
	bool has = put_has(s->field, present);
	const struct pl_addr *addr;
	uint64_t v;

	if (s->compare == EXISTS)
		return has;
	if (s->compare == MISSING)
		return !has;
	if (!has)
		return false;
	if (s->field->form == PL_FORM_ADDR) {
		addr = (const struct pl_addr *)((const uint8_t *)record + s->field->offset);
		if (s->compare == IN)
			return in_prefix(addr, &s->addr, s->prefix_bits);
		return pl_addr_equal(addr, &s->addr) == (s->compare == EQ);
	}
	if (s->field->form == PL_FORM_TEXT)
		return (strcmp((const char *)record + s->field->offset, s->text) == 0) ==
		       (s->compare == EQ);
	v = put_load(s->field, record);
	if (s->compare == FLAG)
		return ((v & s->mask) != 0) == (s->value != 0);
	if (s->field->form == PL_FORM_S64)
		return holds(
			(enum compare)s->compare, (int64_t)v < (int64_t)s->value, v == s->value);
	return holds((enum compare)s->compare, v < s->value, v == s->value);
}

static bool test(const struct step *s, const void *record, uint32_t present,
	const struct pl_hop *hops, size_t n)
{
	if (!s->of_hops)
		return satisfies(s, record, present);
	for (size_t i = 0; i < n; i++) {
		if (satisfies(s, &hops[i], hops[i].present) != s->all)
			return !s->all;
	}
	return s->all && n > 0;
}

static bool each_hop(const struct pl_where *where, size_t from, const struct step *s,
	const struct pl_hop *hops, size_t n);

/* The steps [from, to) of a path and its hops, or (hops NULL, n 0) of a flat record, which a hop is too. */
static bool run(const struct pl_where *where, size_t from, size_t to, const void *record,
	uint32_t present, const struct pl_hop *hops, size_t n)
{
	bool truth = false;

	for (size_t i = from; i < to;) {
		const struct step *s = &where->steps[i];

		i++;
		switch ((enum op)s->op) {
		case OP_TEST:
			truth = test(s, record, present, hops, n);
			break;
		case OP_NOT:
			truth = !truth;
			break;
		case OP_SKIP_IF_FALSE:
			i = truth ? i : s->target;
			break;
		case OP_SKIP_IF_TRUE:
			i = truth ? s->target : i;
			break;
		case OP_EACH_HOP:
			truth = each_hop(where, i, s, hops, n);
			i = s->target;
			break;
		}
	}
	return truth;
}

static bool each_hop(const struct pl_where *where, size_t from, const struct step *s,
	const struct pl_hop *hops, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (run(where, from, s->target, &hops[i], hops[i].present, NULL, 0) != s->all)
			return !s->all;
	}
	return s->all && n > 0;
}

bool pl_where_match(const struct pl_where *where, const struct pl_path *path,
	const struct pl_hop *hops, size_t n)
{
	return run(where, 0, where->n, path, path->present, hops, n);
}

bool pl_where_match_row(const struct pl_where *where, const void *row, uint32_t present)
{
	return run(where, 0, where->n, row, present, NULL, 0);
}

const char *pl_where_help(void)
{
	return "Filter expressions (--where) say which records are wanted.\n"
	       "\n"
	       "  FIELD == VALUE         also != < <= > >=; words, addresses and ids: == and != only\n"
	       "  FIELD in PREFIX        addresses: flow.src in 10.0.0.0/8\n"
	       "  flags.NAME             the flag is set\n"
	       "  exists(FIELD)          the record has a value; missing(FIELD): it has none\n"
	       "  any hop (X)            one hop satisfies all of X, whose names are those of a hop\n"
	       "  all hops (X)           every hop satisfies X\n"
	       "  all TEST               every hop satisfies a test of a hops. field\n"
	       "  not X, X and Y, X or Y not binds tightest, then and, then or; parentheses group\n"
	       "\n"
	       "FIELD is a name from \"pathline help fields\". A test of a hops. field is true when any\n"
	       "hop satisfies it, each test with a hop of its own: hops.node == 5 and hops.queue_depth > 50\n"
	       "is true when some hop is node 5 and some hop, perhaps another one, has a deep queue. One and\n"
	       "the same hop is any hop (node == 5 and queue_depth > 50). VALUE is a number (123, 0x7b, -5), a time for fields in ns (50us, 1.5ms,\n"
	       "or plain ns), a word (md, 2.0, geant), an address, or hexadecimal digits for an id.\n"
	       "Quotes around a value are allowed.\n"
	       "\n"
	       "A missing value satisfies no comparison, not even !=; it satisfies not (FIELD == VALUE).\n"
	       "A path without hops satisfies no test of a hops. field, with all or all hops neither.\n"
	       "\n"
	       "  hops.queue_depth > 100 and flow.dport == 443\n"
	       "  any hop (node == 5 and queue_depth > 50) and flow.dport == 443\n"
	       "  flags.dropped or all hops.hop_latency_ns > 50us\n"
	       "  flow.src in 10.0.0.0/8 and not (mode == md or missing(flow.vlan))\n";
}
