/* SPDX-License-Identifier: BSD-2-Clause */
/* Lexer: the text of a query as tokens. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/diag.h"
#include "lang/arena.h"

enum token_kind {
	T_END,
	T_NAME,   /* a name or a word of the language; with points: a.b */
	T_NUMBER, /* u; also durations, in ns */
	T_REAL,   /* d */
	T_ADDR,   /* addr */
	T_PREFIX, /* addr, bits */
	T_TEXT,   /* name: the text in quotes */
	T_OPEN,
	T_CLOSE,
	T_OPEN_BRACE,
	T_CLOSE_BRACE,
	T_COMMA,
	T_PIPE, /* | */
	T_AMP,
	T_PLUS,
	T_MINUS,
	T_STAR,
	T_SLASH,
	T_PERCENT,
	T_EQ,
	T_NE,
	T_LT,
	T_LE,
	T_GT,
	T_GE,
	T_AND, /* in expressions only: the lexer gives names */
	T_OR,
};

#define NAME_MAX_LEN 64 /* with the NUL */

struct token {
	enum token_kind kind;
	uint32_t at, len;
	bool duration;
	uint8_t bits;
	char name[NAME_MAX_LEN];
	union {
		uint64_t u;
		double d;
		struct pl_addr addr;
	};
};

struct lexer {
	const char *text;
	uint32_t len, pos;
	struct token token; /* next token */
	unsigned int depth;
	int error;    /* sticky: -EINVAL or -ENOMEM */
	bool records; /* the query reads paths, hops, events or values, where some columns are words
		       * or ids */
	bool pipe;    /* the text is in the pipe form: "|" before the name of a step ends a step */
	const char *into; /* output that INTO names; NULL: none */
	bool explain;     /* the text begins with EXPLAIN */
	struct arena *arena;
	struct pl_diag *diag;
};

static inline bool pl_query_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool pl_query_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

const char *pl_query_operator(enum token_kind kind);
/* Reads the next token. Errors are sticky: the token is T_END then, and everything after it
 * fails. */
int pl_query_next(struct lexer *lx);
/* True when the token is this word of the language: lower case in `word`, either case in the
 * text. */
bool pl_query_is(const struct lexer *lx, const char *word);
/* Takes the word, or the token, if it is next. */
bool pl_query_take(struct lexer *lx, const char *word);
bool pl_query_take_kind(struct lexer *lx, enum token_kind kind);
/* Reads a token beside a column of words or ids, as pl_query_next does, except that 2.0, host-int,
 * 12ab are one T_TEXT. */
int pl_query_next_word(struct lexer *lx);
/* Takes INTO 'text', of any length: the text goes to lx->into, and the next token follows. False
 * when the token is not INTO. */
bool pl_query_take_into(struct lexer *lx);
/* True when this word follows the token. */
bool pl_query_follows(const struct lexer *lx, const char *word);
bool pl_query_name_follows(const struct lexer *lx);

/* words.c */
/* The place behind blanks. */
uint32_t pl_query_behind_blanks(const struct lexer *lx, uint32_t at);
/* True when the token is the "|" in front of a step of the pipe form, or of a misspelt step. */
bool pl_query_at_step(const struct lexer *lx);
/* Fails at a place of the text, unless it has failed before. Returns the error. */
int pl_query_fail(struct lexer *lx, uint32_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Fails with "expected WHAT, not …" at the token, with the nearest word of the language. */
int pl_query_expected(struct lexer *lx, const char *what);
/* Allocates zeroed memory in the arena, and copies the first n bytes of a text into it. NULL: there
 * is no memory, which is reported. */
void *pl_query_new(struct lexer *lx, size_t size);
char *pl_query_new_text(struct lexer *lx, const char *text, size_t n);
