/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the text of a query from its name and parameters. */
#include "lang/builtin.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "lang/lang.h"

static const struct pl_query_builtin builtins[] = {
#define PL_PARAM(name, value, help)                                                                \
	{                                                                                          \
		name, value, help                                                                  \
	}
#define PL_QUERY(name, help, text, ...) { #name, help, text, { __VA_ARGS__ } },
#include "lang/builtins.def"
#undef PL_QUERY
#undef PL_PARAM
};

#define N_BUILTINS (sizeof(builtins) / sizeof(builtins[0]))
#define WORD_MAX   64

uint32_t pl_query_builtins(const struct pl_query_builtin **ret)
{
	*ret = builtins;
	return N_BUILTINS;
}

struct reader {
	const char *text;
	size_t pos;
	struct pl_diag *diag;
};

#define fail(r, at, ...) (pl_diag_at((r)->diag, 1, (unsigned int)(at) + 1, __VA_ARGS__), -EINVAL)

static void skip_blanks(struct reader *r)
{
	r->pos += strspn(r->text + r->pos, " \t\r\n");
}

static bool is_duration(const char *text)
{
	uint64_t v;

	return strspn(text, "0123456789") < strlen(text) && pl_parse_duration(text, &v) == 0;
}

static bool is_number(const char *text)
{
	uint64_t v;
	double d;

	return pl_parse_u64(text, &v) == 0 || pl_parse_double(text, &d) == 0 || is_duration(text);
}

/* A value is of the kind that the parameter's own has: a duration, a number, or the word of EMIT. */
static int check_value(
	struct reader *r, size_t at, const struct pl_query_param *param, const char *value)
{
	if (is_duration(param->value) && !is_duration(value))
		return fail(r, at, "%s is a duration such as %s, not \"%s\"", param->name,
			param->value, value);
	if (!is_number(param->value) && strcmp(value, "first") != 0 && strcmp(value, "final") != 0)
		return fail(r, at, "%s is first or final, not \"%s\"", param->name, value);
	if (is_number(param->value) && !is_number(value))
		return fail(r, at, "%s is a number such as %s, not \"%s\"", param->name,
			param->value, value);
	return 0;
}

/* Takes letters, digits and characters of durations and addresses: one token of the query, for any
 * value. */
static int take_word(struct reader *r, const char *what, char word[WORD_MAX])
{
	size_t n;

	skip_blanks(r);
	n = strspn(r->text + r->pos,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:");
	if (n == 0)
		return fail(r, r->pos, "expected %s", what);
	if (n >= WORD_MAX)
		return fail(r, r->pos, "%s of more than %d characters", what, WORD_MAX - 1);
	memcpy(word, r->text + r->pos, n);
	word[n] = '\0';
	r->pos += n;
	skip_blanks(r);
	return 0;
}

static bool take_sign(struct reader *r, char c)
{
	if (r->text[r->pos] != c)
		return false;
	r->pos++;
	skip_blanks(r);
	return true;
}

static int unknown(struct reader *r, size_t at, const char *what, const char *word,
	const char *const *names, size_t n, int error)
{
	pl_diag_at(r->diag, 1, (unsigned int)at + 1, "no %s \"%s\"", what, word);
	pl_diag_nearest(r->diag, '"', word, names, n);
	return error;
}

static int find_builtin(struct reader *r, const struct pl_query_builtin **ret)
{
	const char *names[N_BUILTINS];
	char word[WORD_MAX];
	size_t at;
	int e;

	skip_blanks(r);
	at = r->pos;
	e = take_word(r, "the name of a query", word);
	if (e < 0) /* the name is missing: no query by name */
		return r->text[at] != '\0' ? -ENOENT : e;
	for (size_t i = 0; i < N_BUILTINS; i++) {
		names[i] = builtins[i].name;
		if (strcmp(names[i], word) == 0) {
			*ret = &builtins[i];
			return 0;
		}
	}
	return unknown(r, at, "query", word, names, N_BUILTINS, -ENOENT);
}

static int take_param(struct reader *r, const struct pl_query_builtin *b,
	char values[PL_QUERY_PARAMS_MAX][WORD_MAX])
{
	const char *names[PL_QUERY_PARAMS_MAX];
	size_t at = r->pos, n = 0;
	char word[WORD_MAX];
	int e = take_word(r, "the name of a parameter", word);

	if (e < 0)
		return e;
	for (; n < PL_QUERY_PARAMS_MAX && b->params[n].name != NULL; n++) {
		names[n] = b->params[n].name;
		if (strcmp(names[n], word) != 0)
			continue;
		if (!take_sign(r, '='))
			return fail(r, r->pos, "expected \"=\" and the value of %s", word);
		if (values[n][0] != '\0')
			return fail(r, at, "%s is given twice", word);
		at = r->pos;
		e = take_word(r, "a value", values[n]);
		return e < 0 ? e : check_value(r, at, &b->params[n], values[n]);
	}
	return unknown(r, at, "parameter", word, names, n, -EINVAL);
}

static void put_text(struct pl_buf *out, const struct pl_query_builtin *b,
	char values[PL_QUERY_PARAMS_MAX][WORD_MAX])
{
	const char *p = b->text;

	while (*p != '\0') {
		size_t plain = strcspn(p, "$"), n;

		pl_buf_add(out, p, plain);
		p += plain;
		if (*p != '$')
			break;
		n = strspn(++p, "abcdefghijklmnopqrstuvwxyz");
		for (size_t i = 0; i < PL_QUERY_PARAMS_MAX && b->params[i].name != NULL; i++) {
			if (strlen(b->params[i].name) == n && memcmp(b->params[i].name, p, n) == 0)
				pl_buf_str(
					out, values[i][0] != '\0' ? values[i] : b->params[i].value);
		}
		p += n;
	}
}

int pl_query_builtin_text(struct pl_buf *out, const char *call, struct pl_diag *diag)
{
	char values[PL_QUERY_PARAMS_MAX][WORD_MAX] = { { 0 } };
	struct reader r = { .text = call, .diag = diag };
	const struct pl_query_builtin *b = NULL;
	int e;

	r.pos = (size_t)(pl_query_behind_explain(call) - call);
	e = find_builtin(&r, &b);

	if (e == 0 && take_sign(&r, '(') && !take_sign(&r, ')')) {
		do
			e = take_param(&r, b, values);
		while (e == 0 && take_sign(&r, ','));
		if (e == 0 && !take_sign(&r, ')'))
			e = fail(&r, r.pos, "expected a comma or \")\"");
	}
	if (e == 0)
		(void)take_sign(&r, ';');
	if (e == 0 && r.text[r.pos] != '\0')
		e = fail(&r, r.pos, "expected parameters in parentheses, or the end");
	if (e < 0)
		return e;
	pl_buf_str(out, pl_query_behind_explain(call) != call ? "EXPLAIN " : "");
	put_text(out, b, values);
	if (!out->failed)
		return 0;
	pl_diag_set(diag, "out of memory");
	return -ENOMEM;
}
