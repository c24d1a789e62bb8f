/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Option rows that several subcommands have, so that one thing has one wording, and what was given made into values. The
 * targets of rows are of static storage.
 */
#pragma once

#include <stddef.h>

#include "base/addr.h"
#include "base/opt.h"

/* In the order of enum pl_dta_form. */
extern const char *const pl_arg_dta_forms[];
extern const char *const pl_arg_text_or_json[];

/* Of a command that serves until it is told to end; duration is a uint64_t, stats a bool. */
#define PL_ARGS_SERVING(duration, stats)                                                           \
	{ PL_OPT_DURATION, 0, "duration", &(duration), "TIME", "stop after this long", NULL },     \
	{                                                                                          \
		PL_OPT_FLAG, 0, "stats", &(stats), NULL,                                           \
			"end with all counters as a JSON object on standard output", NULL          \
	}

/* text is a const char *. */
#define PL_ARGS_TEXT_OR_JSON(text)                                                                 \
	{                                                                                          \
		PL_OPT_CHOICE, 'o', "output", &(text), "FORMAT", "how to print it",                \
			pl_arg_text_or_json                                                        \
	}

/* The place of a word in a list that ends with NULL: that of the NULL when it is not there. */
unsigned int pl_arg_place(const char *const *words, const char *word);

/* What --allow was given, into at most max prefixes. 0, or an exit code; complains. */
int pl_arg_prefixes(const struct pl_opt_list *allow, struct pl_prefix *ret, unsigned int max);
