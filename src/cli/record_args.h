/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of the commands that print records. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/opt.h"
#include "show/record_out.h"

struct pl_record_args {
	const char *form, *where;
	uint64_t count;
	bool stats;
};

/* Rows for an option table; a is a struct pl_record_args of static storage. */
#define PL_RECORD_ARGS_FORM(a)                                                                     \
	{ PL_OPT_CHOICE, 'o', "output", &(a).form, "FORM",                                         \
		"format (default table); json is one array, jsonl an object per line, csv a row "  \
		"per hop, text for diff",                                                          \
		pl_out_forms },                                                                    \
	{                                                                                          \
		PL_OPT_COUNT, 'n', "count", &(a).count, "COUNT", "stop after this many records",   \
			NULL                                                                       \
	}
#define PL_RECORD_ARGS_WHICH(a)                                                                    \
	{ PL_OPT_ONCE, 0, "where", &(a).where, "EXPR",                                             \
		"only records that match the expression, such as "                                 \
		"\"hops.queue_depth > 100 and flow.dport == 443\"",                                \
		NULL },                                                                            \
	{                                                                                          \
		PL_OPT_FLAG, 0, "stats", &(a).stats, NULL,                                         \
			"end with the counters: an object on standard output with -o json and "    \
			"jsonl, else text on standard error",                                      \
			NULL                                                                       \
	}
