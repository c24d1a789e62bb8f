/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a filter expression, for where.c (matching), where_terms.c (tokens, names, values) and
 * where_parse.c (the grammar). */
#pragma once

#include <errno.h>

#include "record/put.h"
#include "record/where.h"

#define VALUE_MAX 128 /* most characters of a value */

enum op {
	OP_TEST,
	OP_NOT,
	OP_SKIP_IF_FALSE,
	OP_SKIP_IF_TRUE,
	OP_EACH_HOP, /* the steps up to the target are of one hop: of some hop, or of every one */
};

enum compare { EQ, NE, LT, LE, GT, GE, IN, EXISTS, MISSING, FLAG };

struct step {
	uint8_t op;          /* enum op */
	uint8_t compare;     /* TEST: enum compare */
	bool of_hops, all;   /* TEST, EACH_HOP: over the hops; every hop instead of any */
	uint8_t prefix_bits; /* IN */
	uint16_t mask;       /* FLAG */
	uint32_t target;     /* SKIP, EACH_HOP: number of the next step */
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
	size_t at, len; /* place in the text; of a string without its quotes */
};

struct parser {
	const char *text;
	size_t len, pos;
	struct token token; /* next token */
	unsigned int depth;
	bool in_hop;                   /* within any hop (…) or all hops (…) */
	const struct pl_field *fields; /* fields of a flat record, n_fields; NULL: paths and hops */
	size_t n_fields;
	struct pl_where *where;
	struct pl_diag *diag;
};

/* Meaning of a name in the text. */
struct name {
	const struct pl_field *field;
	bool of_hops;
	uint16_t mask; /* mask of a flag */
};

#define fail_at(p, at, ...) (pl_diag_at((p)->diag, 1, (unsigned int)(at) + 1, __VA_ARGS__), -EINVAL)

/* ---- where_terms.c ---- */

int pl_where_next(struct parser *p);
bool pl_where_token_is(const struct parser *p, const char *word);
int pl_where_take_name(struct parser *p, struct name *ret, char text[VALUE_MAX], size_t *ret_at);
/* True when the form has an order (words have none, except the versions). */
bool pl_where_is_ordered(const struct pl_field *field);
/* Takes the value behind the comparison in *s. */
int pl_where_take_value(struct parser *p, struct step *s, const char *name);
