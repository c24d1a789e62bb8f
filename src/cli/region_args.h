/* SPDX-License-Identifier: BSD-2-Clause */
/* Option rows of the commands that read regions. */
#pragma once

#include "ask/region_read.h"
#include "base/opt.h"
#include "show/record_out.h"

/* Rows for an option table; a is a struct pl_region_args of static storage. */
#define PL_REGION_ARGS_FORM(a)                                                                     \
	{                                                                                          \
		PL_OPT_CHOICE, 'o', "output", &(a).form, "FORM",                                   \
			"form (default table); json is one array, jsonl an object per line",       \
			pl_out_forms                                                               \
	}
#define PL_REGION_ARGS_ASK(a)                                                                                    \
	{ PL_OPT_CHOICE, 0, "key-form", &(a).key_form, "FORM",                                                   \
		"form of the keys (default text); u32 and u64 are numbers, "                                     \
		"least significant byte first, be32 most significant first; with --hash dta u32 "                \
		"and be32 are one number",                                                                       \
		pl_key_forms },                                                                                  \
		{ PL_OPT_U64, 0, "threshold", &(a).threshold, "VOTES",                                           \
			"key-write: copies that must agree (default 1)", NULL },                                 \
		{ PL_OPT_STRING, 0, "epoch", &(a).epoch, "NUMBER",                                               \
			"read this epoch (default the present one)", NULL },                                     \
		{ PL_OPT_FLAG, 0, "all", &(a).all, NULL,                                                         \
			"with several collectors over the network: where the collector of a key has no answer, " \
			"ask the others too, as it does for files",                                              \
			NULL },                                                                                  \
	{                                                                                                        \
		PL_OPT_STRING, 0, "nodes", &(a).nodes, "LIST",                                                   \
			"postcards: nodes that paths can have, such as 1-100,205", NULL                          \
	}
#define PL_REGION_ARGS_KEYS(a)                                                                                    \
	PL_REGION_ARGS_ASK(a),                                                                                    \
		{ PL_OPT_LIST, 0, "collector", &(a).collectors, "FILE",                                           \
			"region of the same store at the next collector, in the order of the translator; may be " \
			"repeated. Each key is looked up at the collector that has it",                           \
			NULL },                                                                                   \
	{                                                                                                         \
		PL_OPT_U64, 0, "store", &(a).store, "NUMBER",                                                     \
			"with several collectors: number of the store at the translator (default 0)",             \
			NULL                                                                                      \
	}
