/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a command out of the rows of a configuration. */
#include "base/conf_opt.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_in(const char *const *words, const char *word)
{
	while (*words != NULL && strcmp(*words, word) != 0)
		words++;
	return *words != NULL;
}

static void make_name(struct pl_conf_opt *x, const char *key)
{
	snprintf(x->name, sizeof(x->name), "%s", x->row->option != NULL ? x->row->option : key);
	for (char *p = x->name; *p != '\0'; p++) {
		if (*p == '_' || *p == '.')
			*p = '-';
	}
}

/* The help of a row is a sentence, that of an option begins small and has no full stop. A default of
 * 0 is what the sentence explains. */
static void make_help(struct pl_conf_opt *x)
{
	const struct pl_conf_row *row = x->row;
	size_t n = strlen(row->help);

	assert(n > 1 && n + 64 < sizeof(x->help));
	memcpy(x->help, row->help, n + 1);
	if (!isupper((unsigned char)x->help[1]))
		x->help[0] = (char)tolower((unsigned char)x->help[0]);
	if (x->help[n - 1] == '.')
		x->help[--n] = '\0';
	if (row->type == PL_CONF_STRINGS)
		snprintf(x->help + n, sizeof(x->help) - n, "; may be repeated");
	else if (row->type != PL_CONF_BOOL && row->def != NULL && row->def[0] != '0')
		snprintf(x->help + n, sizeof(x->help) - n, " (default %s)", row->def);
}

static const char *placeholder(const struct pl_conf_row *row)
{
	if (row->value != NULL)
		return row->value;
	switch (row->type) {
	case PL_CONF_U64:
	case PL_CONF_DOUBLE:
		return "NUMBER";
	case PL_CONF_RATE:
		return "RATE";
	case PL_CONF_SIZE:
		return "SIZE";
	case PL_CONF_DURATION:
		return "TIME";
	case PL_CONF_CHOICE:
		return "WORD";
	default:
		return "TEXT";
	}
}

static struct pl_opt make_option(struct pl_conf_opt *x)
{
	struct pl_opt opt = { .type = PL_OPT_STRING,
		.name = x->name,
		.target = &x->text,
		.value = placeholder(x->row),
		.help = x->help };

	if (x->row->type == PL_CONF_BOOL) {
		opt.type = PL_OPT_FLAG;
		opt.target = &x->flag;
		opt.value = NULL;
	} else if (x->row->type == PL_CONF_STRINGS) {
		opt.type = PL_OPT_LIST;
		opt.target = &x->words;
	} else if (x->row->type == PL_CONF_CHOICE) {
		opt.type = PL_OPT_CHOICE;
		opt.choices = x->row->choices;
	}
	return opt;
}

const struct pl_opt *pl_conf_opts(struct pl_conf_opts *o, const struct pl_conf_row *rows,
	const char *prefix, const char *const *without, const struct pl_opt *more)
{
	const size_t len = strlen(prefix);
	unsigned int n = 0;

	memset(o, 0, sizeof(*o));
	for (const struct pl_conf_row *row = rows; row->key != NULL; row++) {
		struct pl_conf_opt *x = &o->given[o->n];

		if (strncmp(row->key, prefix, len) != 0 || is_in(without, row->key))
			continue;
		assert(o->n < PL_CONF_OPTS_MAX && row->type != PL_CONF_LIST &&
			row->type != PL_CONF_PAIRS);
		x->row = row;
		make_name(x, row->key + len);
		make_help(x);
		o->table[n++] = make_option(x);
		o->n++;
	}
	do {
		assert(n < PL_CONF_OPTS_MAX);
		o->table[n++] = *more;
	} while (more++->type != PL_OPT_END);
	return o->table;
}

int pl_conf_opts_set(const struct pl_conf_opts *o, void *conf, struct pl_diag *diag)
{
	static const char *const yes = "true";
	char name[40];
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < o->n; i++) {
		const struct pl_conf_opt *x = &o->given[i];
		const char *const *words = x->flag ? &yes : &x->text;
		size_t n = x->flag || x->text != NULL;

		if (x->words.n > 0) {
			words = x->words.items;
			n = x->words.n;
		}
		snprintf(name, sizeof(name), "--%s", x->name);
		if (n > 0)
			r = pl_conf_set(x->row, name, words, n, conf, diag);
	}
	return r;
}

void pl_conf_opts_done(struct pl_conf_opts *o)
{
	for (unsigned int i = 0; i < o->n; i++)
		pl_opt_list_done(&o->given[i].words);
}
