/* SPDX-License-Identifier: BSD-2-Clause */
/* Words for numbers of packets and flows that are numbers in the record: protocols and flags of
 * TCP. Several flags are one text: tcp_flags = 'syn|ack'. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lang/plan.h"

struct word {
	const char *name;
	uint64_t value;
};

/* IANA, Assigned Internet Protocol Numbers */
static const struct word protocols[] = { { "icmp", 1 }, { "igmp", 2 }, { "tcp", 6 }, { "udp", 17 },
	{ "gre", 47 }, { "esp", 50 }, { "ah", 51 }, { "icmp6", 58 }, { "ospf", 89 },
	{ "sctp", 132 } };

/* RFC 9293 3.1 */
static const struct word flags[] = { { "fin", 1 }, { "syn", 2 }, { "rst", 4 }, { "psh", 8 },
	{ "ack", 16 }, { "urg", 32 }, { "ece", 64 }, { "cwr", 128 } };

#define WORDS_MAX 16

static const struct word *words_of(const struct column *column, uint32_t *ret_n, bool *ret_several)
{
	*ret_several = strcmp(column->name, "tcp_flags") == 0;
	*ret_n = sizeof(flags) / sizeof(flags[0]);
	if (*ret_several)
		return flags;
	*ret_n = sizeof(protocols) / sizeof(protocols[0]);
	return strcmp(column->name, "proto") == 0 || strcmp(column->name, "flow.proto") == 0
		       ? protocols
		       : NULL;
}

static const struct word *find(const struct word *words, uint32_t n, const char *text, size_t len)
{
	for (uint32_t i = 0; i < n; i++) {
		if (strlen(words[i].name) == len && strncasecmp(words[i].name, text, len) == 0)
			return &words[i];
	}
	return NULL;
}

static void no_word(struct checker *c, const struct ast *ast, const struct column *column,
	const struct word *words, uint32_t n)
{
	const char *names[WORDS_MAX];
	char list[128] = "", hint[NAME_MAX_LEN + 32];
	size_t used = 0;

	for (uint32_t i = 0; i < n; i++) {
		names[i] = words[i].name;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
			i == 0 ? "" : ", ", words[i].name);
	}
	pl_query_did_you_mean(hint, sizeof(hint), ast->name, names, n);
	pl_query_check_error(c, ast->at, "%s cannot be \"%s\"%s%s", column->name, ast->name,
		hint[0] != '\0' ? hint : "; it is a number or one of ",
		hint[0] != '\0' ? "" : list);
}

/* Finds the column with which a text is compared: x = 'text', x & 3 = 'text'. */
static const struct column *column_beside(const struct node *with)
{
	if (with != NULL && with->op == N_BIT_AND)
		with = with->a;
	return with != NULL && with->op == N_COLUMN && with->type == PL_QUERY_UNSIGNED
		       ? with->column
		       : NULL;
}

bool pl_query_is_column(const struct checker *c, const struct ast *ast)
{
	return ast->kind == A_NAME && pl_query_find_column(c->schema, ast->name, NULL) != NULL;
}

bool pl_query_check_word(
	struct checker *c, const struct ast *ast, const struct node *with, const struct node **ret)
{
	const struct column *column = column_beside(with);
	const struct word *words, *word;
	uint32_t n = 0;
	bool several;
	uint64_t value = 0;

	*ret = NULL;
	if (column == NULL || (ast->kind != A_NAME && ast->kind != A_TEXT))
		return false;
	words = words_of(column, &n, &several);
	if (words == NULL || pl_query_is_digit(ast->name[0]))
		return false;
	for (const char *at = ast->name;; at++) {
		const size_t len = several ? strcspn(at, "|") : strlen(at);

		word = find(words, n, at, len);
		if (word == NULL && pl_query_is_column(c, ast))
			return false;
		if (word == NULL) {
			no_word(c, ast, column, words, n);
			return true;
		}
		value |= word->value;
		at += len;
		if (*at == '\0')
			break;
	}
	*ret = pl_query_constant(c, PL_QUERY_UNSIGNED, value, ast->at);
	return true;
}
