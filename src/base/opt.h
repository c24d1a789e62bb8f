/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command-line options as data. A subcommand owns one table; from it come the parser, the help
 * text, the manual's option list and shell completion. Long options take "--name value" and
 * "--name=value"; a unique prefix is not enough (scripts must not break when an option is added).
 * "--" ends options, "-" is an operand.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

enum pl_opt_type {
	PL_OPT_END,      /* ends a table */
	PL_OPT_HEADING,  /* help: a heading for the rows that follow */
	PL_OPT_FLAG,     /* bool *, no value */
	PL_OPT_STRING,   /* const char ** */
	PL_OPT_ONCE,     /* as the type before, but NULL before it is given; giving it twice is
			  * refused */
	PL_OPT_U64,      /* uint64_t * */
	PL_OPT_COUNT,    /* the same, 1 or more: 0 is left for "not given" */
	PL_OPT_SIZE,     /* uint64_t *, bytes: 64MiB */
	PL_OPT_DURATION, /* uint64_t *, ns: 250us */
	PL_OPT_RATE,     /* double *, per second: 10k */
	PL_OPT_DOUBLE,   /* double * */
	PL_OPT_CHOICE,   /* const char **, one of `choices` */
	PL_OPT_LIST,     /* struct pl_opt_list *, may be repeated */
};

struct pl_opt_list {
	const char **items; /* heap array of borrowed strings; pl_opt_list_done frees the array */
	size_t n;
};

struct pl_opt {
	enum pl_opt_type type;
	char short_name;            /* 0 = none */
	const char *name;           /* long name; for HEADING the heading */
	void *target;               /* by the type */
	const char *value;          /* placeholder in the help: "FILE" */
	const char *help;           /* one sentence, lower case, no full stop */
	const char *const *choices; /* CHOICE: NULL-terminated */
};

/*
 * Parses argv[1..argc-1] into the targets and gathers the operands, in order, into ret_operands (a
 * list to be freed with pl_opt_list_done). "-h"/"--help" are understood without a row: returns 1.
 * Returns 0, or -EINVAL with a diag that names the option and, for an unknown one, the nearest
 * known option.
 */
int pl_opt_parse(const struct pl_opt *table, int argc, char **argv,
	struct pl_opt_list *ret_operands, struct pl_diag *diag);
void pl_opt_list_done(struct pl_opt_list *list);

/* Returns the index of a word in a list that ends with NULL; if the word is not in it, the index of
 * the NULL. */
unsigned int pl_opt_place(const char *const *words, const char *word);

/* Value of a number option that was not given; no user would give this value. */
#define PL_OPT_NOT_GIVEN (UINT64_MAX - UINT64_C(0x6e6f7467))

struct pl_buf;
/* Writes the "options" part of a help page, wrapped to 80 columns. */
void pl_opt_help(const struct pl_opt *table, struct pl_buf *out);
/* Writes a row of such a list about something else: its name and its text, wrapped alike. */
void pl_opt_help_row(const char *name, const char *text, struct pl_buf *out);
