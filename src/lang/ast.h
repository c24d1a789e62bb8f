/* SPDX-License-Identifier: BSD-2-Clause */
/* A query as it is written: what parse.c and pipe.c make of the text, and check.c makes a plan of.
 * Everything lies in the query's arena. */
#pragma once

#include "lang/arena.h"
#include "lang/lex.h"

enum ast_kind {
	A_NUMBER, /* also durations, in ns */
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
	uint8_t kind; /* enum ast_kind */
	uint8_t op;   /* BINARY: enum token_kind, the operator or the word */
	bool star, distinct;
	uint8_t bits; /* PREFIX */
	uint32_t at;  /* in the text */
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
	const char *name; /* behind AS; NULL */
	uint32_t at;
};

enum window_kind { W_NONE, W_TUMBLE, W_HOP, W_SESSION };

struct ast_window {
	enum window_kind kind;
	uint64_t size_ns, step_ns; /* SESSION: both are the gap */
	uint32_t at;
};

enum join_kind { J_FIRST, J_INNER, J_LEFT, J_ANTI, J_ZIP /* without ON */ };

struct ast_select;

struct ast_source {
	struct ast_source *next; /* joined to what stands before */
	const char *stream;      /* or, where it names one, a WITH; NULL: a sub-query */
	struct ast_select *sub;
	const char *alias;
	enum join_kind join;
	struct ast *on;     /* names, or equations of two names */
	uint64_t within_ns; /* of records: how far apart their times may be; 0: not told */
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

/* A fold: variables with their first values, and what each record does to them. */
struct ast_fold {
	struct ast_fold *next;
	const char *name;
	struct ast_item *states; /* name = first value */
	struct ast_item *steps;  /* name = expression; without a name: EMIT [WHEN expression] */
	struct ast_item *end;    /* the same, when the window closes */
	uint32_t at;
	bool used;
};

struct ast_query {
	struct ast_fold *folds;
	struct ast_with *with;
	struct ast_select *select;
};

#define QUERY_DEPTH_MAX 32 /* parentheses and sub-queries within each other */

/* parse.c */
const char *pl_query_take_name(struct lexer *lx, const char *what);
struct ast *pl_query_parse_expr(struct lexer *lx);
int pl_query_parse_list(struct lexer *lx, struct ast **ret);
/* clauses.c: what pipe.c shares. */
int pl_query_parse_items(struct lexer *lx, struct ast_item **ret);
/* (query), in either form */
struct ast_select *pl_query_parse_nested(struct lexer *lx);
/* AS name, when it is there; ON keys [WITHIN 100ms] */
void pl_query_parse_alias(struct lexer *lx, struct ast_source *source);
void pl_query_parse_on(struct lexer *lx, struct ast_source *source);
int pl_query_parse_duration(struct lexer *lx, uint64_t *ret);
/* The step of a window whose length is there, which becomes HOP. */
int pl_query_parse_step(struct lexer *lx, struct ast_window *window);
int pl_query_parse_window(struct lexer *lx, struct ast_window *ret);
void pl_query_parse_order(struct lexer *lx, struct ast_select *select);
void pl_query_parse_limit(struct lexer *lx, struct ast_select *select);
void pl_query_parse_emit(struct lexer *lx, struct ast_select *select);

/* parse_fold.c: FOLD name (…) STEP { … } [END { … }], as many as there are. */
void pl_query_parse_folds(struct lexer *lx, struct ast_fold **tail);

/* records.c: of a stream, by name, whether it has records with words and ids; of a column, with a
 * source or "hops." before it perhaps, whether its values are such. */
bool pl_query_has_records(const char *stream);
bool pl_query_has_words(const char *column);

/* pipe.c */
bool pl_query_is_pipe(const struct lexer *lx);
/* As far as there are steps. */
struct ast_select *pl_query_parse_pipe(struct lexer *lx);

/* The whole text. -EINVAL with the lexer's diag, -ENOMEM. */
int pl_query_parse_text(struct lexer *lx, struct ast_query *ret);
