/* SPDX-License-Identifier: BSD-2-Clause */
/* What pathline region reads out of a region: lookups, dumps, and what is whole. Each returns an
 * exit code. */
#pragma once

#include "base/opt.h"
#include "cli/record_out.h"
#include "memory/region.h"

struct pl_region_args {
	const char *form;     /* one of pl_out_forms */
	const char *key_form; /* one of pl_key_forms */
	const char *epoch;    /* a number, or NULL: the present one */
	const char *command;  /* for complaints: "region lookup" */
	const char *nodes;    /* "1-100,205": the values that hops can have, or NULL */
	uint64_t threshold, list, from, count;
	struct pl_opt_list collectors; /* regions of the others, in the translator's order */
	bool all;                      /* over the network: the others are asked too */
	uint64_t store;                /* its number in the translator */
};

extern const char *const pl_key_forms[]; /* for PL_OPT_CHOICE */

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
			"ask the others too, as of files",                                                       \
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

/* The store of the epoch that was asked for; NULL after complaining. */
void *pl_region_store_of(const struct pl_region *region, const struct pl_region_args *args);

/* Complains of a sketch of which not all columns are complete. */
struct pl_sketch;
void pl_region_tell_whole(const struct pl_sketch *s, uint64_t complete);

/* Of a region, which was opened by this path, and those of --collector; or at the collectors of a
 * roce:// URI. A single key "-": keys are read from standard input, one a line. */
int pl_region_lookup(struct pl_region *region, const char *path, const struct pl_region_args *args,
	const char *const *keys, size_t n);
int pl_region_lookup_remote(
	const char *uri, const struct pl_region_args *args, const char *const *keys, size_t n);
int pl_region_dump(const struct pl_region *region, const struct pl_region_args *args);
int pl_region_verify(const struct pl_region *region, const struct pl_region_args *args);
