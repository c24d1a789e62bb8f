/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks up keys in a store at one collector or several, in files of this machine or over the
 * network. */
#pragma once

#include "ask/region_read.h"
#include "memory/query.h"
#include "show/row_out.h"

#define PL_LOOKUP_COLUMNS 7 /* most columns of a lookup at one collector */

/* A store that is asked. */
struct pl_lookup {
	const struct pl_region_args *args;
	const struct pl_value_set *nodes; /* its table is NULL without nodes */
	struct pl_query q;
	char text[PL_LOOKUP_COLUMNS][2 * PL_ENTRY_MAX + 1]; /* one for each column */
};

/* The answers of a primitive. */
struct pl_looker {
	const struct pl_column *columns;
	unsigned int n;
	/* Fills the values of its columns but the first. Returns 1 when the key is present, 0 when
	 * not, negative errno of the source with diag. */
	int (*look)(struct pl_lookup *l, const void *key, size_t key_bytes, const char **values,
		struct pl_diag *diag);
	/* Returns a key's hash, as pl_query_fetch takes it. */
	uint64_t (*hash)(const struct pl_lookup *l, const void *key, size_t key_bytes);
	/* The keys of a collector that was down are at the next one, so the lookup goes on there.
	 * False for lists: entries of the same number at other collectors are others. */
	bool goes_on;
};

extern const struct pl_looker pl_lookers[]; /* by enum pl_primitive */

/* Prints the number of keys of a HyperLogLog, which has no keys. Returns 1 when it is whole, else
 * 0; negative errno with diag, but -EPIPE was reported already. */
int pl_lookup_cardinality(struct pl_lookup *l, struct pl_diag *diag);

/* Checks that the options suit the store. Returns 0, or prints the error and returns an exit
 * code. */
int pl_lookup_check(const struct pl_store_params *params, const struct pl_region_args *args);

/* A store at n collectors, in the translator's order. */
struct pl_lookup_at {
	unsigned int n;
	/* Other collectors are asked too when the collector of a key has no answer. */
	bool every;
	const char *const *names; /* files or addresses of the collectors */
	/* Over the network: collectors are opened when needed, and named in answers. */
	bool remote;
	/* Opens the store of a collector at its first use. Returns 0, or an exit code after
	 * printing the error; the collector is then not used again. */
	int (*open)(void *arg, unsigned int i, struct pl_store_source *ret,
		struct pl_store_params *ret_params);
	/* After all keys, checks that a collector's answers were of one epoch. Returns 0, or prints
	 * the error and returns an exit code. NULL: nothing to check. */
	int (*unchanged)(void *arg, unsigned int i);
	void *arg;
};

/* Returns the exit code for an error of a source, or of opening one. */
int pl_lookup_exit(int error);

/* Looks the keys up and prints the answers. Returns an exit code. */
int pl_lookup_keys(const struct pl_lookup_at *at, const struct pl_region_args *args,
	const char *const *keys, size_t n);
