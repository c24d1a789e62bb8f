/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a region for pathline region: lookups, dumps, and checks that entries are whole. Each
 * returns an exit code. */
#pragma once

#include "base/opt.h"
#include "memory/region.h"
#include "show/record_out.h"

struct pl_region_args {
	const char *form;     /* one of pl_out_forms */
	const char *key_form; /* one of pl_key_forms */
	const char *epoch;    /* a number, or NULL: the present one */
	const char *command;  /* for error messages: "region lookup" */
	const char *nodes;    /* "1-100,205": the values that hops can have, or NULL */
	uint64_t threshold, list, from, count;
	struct pl_opt_list collectors; /* regions of other collectors, in the translator's order */
	bool all;                      /* over the network: other collectors are asked too */
	uint64_t store;                /* its number in the translator */
};

/* Choices for PL_OPT_CHOICE; contents in the order of enum pl_content. */
extern const char *const pl_key_forms[], *const pl_region_contents[];

/* Returns the store of the epoch in the options; NULL after printing the error. */
void *pl_region_store_of(const struct pl_region *region, const struct pl_region_args *args);

/* Prints an error for a sketch of which not all columns are complete. */
struct pl_sketch;
void pl_region_tell_whole(const struct pl_sketch *s, uint64_t complete);

/* Look up keys in a region, which was opened by this path, and those of --collector; or at the
 * collectors of a roce:// URI. With a single key "-", keys are read from standard input, one a
 * line. */
int pl_region_lookup(struct pl_region *region, const char *path, const struct pl_region_args *args,
	const char *const *keys, size_t n);
int pl_region_lookup_remote(
	const char *uri, const struct pl_region_args *args, const char *const *keys, size_t n);
/* Prints facts about a region; `path`: the name it was opened by. */
int pl_region_describe(const struct pl_region *region, const char *path, const char *form);
int pl_region_dump(const struct pl_region *region, const struct pl_region_args *args);
int pl_region_verify(const struct pl_region *region, const struct pl_region_args *args);
