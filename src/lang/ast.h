/* SPDX-License-Identifier: BSD-2-Clause */
/* Syntax tree of a query: parse.c and pipe.c make it of the text, and check.c makes a plan of it.
 * All of it lies in the query's arena. */
#pragma once

#include "lang/arena.h"
#include "lang/lex.h"

enum ast_kind {
	A_NUMBER, /* also a duration, in ns */
	A_REAL,
	A_BOOL,
	A_ADDR,
	A_PREFIX,
	A_NAME,
	A_TEXT, /* in quotes, or a word with signs in it: name */
	A_CALL, /* name(list), name(*), name(distinct list) */
	A_NEG,
	A_NOT,
	A_BINARY,   /* a op b */
	A_IN,       /* a in (list) */
	A_EACH_HOP, /* any hop (a); all hops (a), all a: star */
};

struct ast {
	enum ast_kind kind;
	enum token_kind op; /* BINARY: the operator or word */
	bool star, distinct;
	uint8_t bits; /* PREFIX */
	uint32_t at;  /* offset in the text */
	struct ast *a, *b;
	struct ast *list, *next;
	const char *name;
	union {
		uint64_t u;
		double d;
		struct pl_addr addr;
	};
};

struct ast_item {
	struct ast_item *next;
	struct ast *expr;
	const char *name; /* name behind AS; or NULL */
	uint32_t at;
};

enum window_kind { W_NONE, W_TUMBLE, W_HOP, W_SESSION };

struct ast_window {
	enum window_kind kind;
	uint64_t size_ns, step_ns; /* SESSION: both are the gap */
	uint32_t at;
};

enum join_kind { J_FIRST, J_INNER, J_LEFT, J_ANTI, J_ZIP /* has no ON */ };

struct ast_select;

struct ast_source {
	struct ast_source *next; /* next source, joined to those before */
	const char *stream;      /* name of a stream, or of a WITH; NULL: a sub-query */
	struct ast_select *sub;
	const char *alias;
	enum join_kind join;
	struct ast *on;     /* names, or equations of two names */
	uint64_t within_ns; /* join of records: largest distance of their times; 0: not given */
	uint32_t within_at;
	struct ast_window window;
	uint32_t at;
};

struct ast_select {
	struct ast_item *items;
	bool star, distinct;
	uint32_t star_at, distinct_at;
	struct ast_source *from;
	struct ast *where, *group, *having;
	const char *order;
	uint32_t order_at;
	bool descending, has_limit, emit_first, emit_told;
	uint64_t limit;
	uint32_t emit_at, at;
};

struct ast_with {
	struct ast_with *next;
	const char *name;
	struct ast_select *select;
	uint32_t at;
};

/* A fold: variables with their first values, and the steps of each record. */
struct ast_fold {
	struct ast_fold *next;
	const char *name;
	struct ast_item *states; /* name = first value */
	struct ast_item *steps;  /* name = expression; without a name: EMIT [WHEN expression] */
	struct ast_item *end;    /* steps when the window closes */
	uint32_t at;
	bool used;
};

struct ast_query {
	struct ast_fold *folds;
	struct ast_with *with;
	struct ast_select *select;
};

#define QUERY_DEPTH_MAX 32 /* most parentheses and sub-queries within each other */

/* parse.c */
const char *pl_query_take_name(struct lexer *lx, const char *what);
struct ast *pl_query_parse_expr(struct lexer *lx);
int pl_query_parse_list(struct lexer *lx, struct ast **ret);
/* clauses.c, shared with pipe.c. */
int pl_query_parse_items(struct lexer *lx, struct ast_item **ret);
/* Parses (query), in either form. */
struct ast_select *pl_query_parse_nested(struct lexer *lx);
/* Parses AS name, if it is there; and ON keys [WITHIN 100ms]. */
void pl_query_parse_alias(struct lexer *lx, struct ast_source *source);
void pl_query_parse_on(struct lexer *lx, struct ast_source *source);
/* Parses [INNER | LEFT | ANTI] JOIN, if it is there. */
bool pl_query_parse_join(struct lexer *lx, enum join_kind *ret);
int pl_query_parse_duration(struct lexer *lx, uint64_t *ret);
/* Parses the step of a window whose length is known; the window becomes HOP. */
int pl_query_parse_step(struct lexer *lx, struct ast_window *window);
/* True for the word of a window: tumble, hop, session. */
bool pl_query_is_window(const char *name);
void pl_query_parse_order(struct lexer *lx, struct ast_select *select);
void pl_query_parse_limit(struct lexer *lx, struct ast_select *select);
void pl_query_parse_emit(struct lexer *lx, struct ast_select *select);

/* parse_fold.c: parses all FOLD name (…) STEP { … } [END { … }]. */
void pl_query_parse_folds(struct lexer *lx, struct ast_fold **tail);

/* records.c. pl_query_has_records: true when the stream of this name has records with words and
 * ids. pl_query_has_words: true when the values of the column, with or without a source or "hops."
 * before it, are words or ids. */
bool pl_query_has_records(const char *stream);
bool pl_query_has_words(const char *column);

/* pipe.c */
bool pl_query_is_pipe(const struct lexer *lx);
/* Parses all steps that follow. */
struct ast_select *pl_query_parse_pipe(struct lexer *lx);

/* Parses the whole text. Returns 0, -EINVAL with the lexer's diag, or -ENOMEM. */
int pl_query_parse_text(struct lexer *lx, struct ast_query *ret);
