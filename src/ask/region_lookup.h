/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys asked of a store, wherever it is: at one collector or several, as files of this machine or
 * over the network. */
#pragma once

#include "ask/region_read.h"
#include "memory/query.h"
#include "show/row_out.h"

#define PL_LOOKUP_COLUMNS 7 /* the most that a lookup has at one collector */

/* One store that is asked. */
struct pl_lookup {
	const struct pl_region_args *args;
	const struct pl_value_set *nodes; /* its table NULL: none were given */
	struct pl_query q;
	char text[PL_LOOKUP_COLUMNS][2 * PL_ENTRY_MAX + 1]; /* one for each column */
};

/* The answers of a primitive. */
struct pl_looker {
	const struct pl_column *columns;
	unsigned int n;
	/* Fills the values of its columns but the first. 1: the key is there; 0: it is not;
	 * negative errno of the source with diag. */
	int (*look)(struct pl_lookup *l, const void *key, size_t key_bytes, const char **values,
		struct pl_diag *diag);
	/* A key as pl_query_fetch takes it. */
	uint64_t (*hash)(const struct pl_lookup *l, const void *key, size_t key_bytes);
	/* A collector that was down has its keys at the next one. Entries of the same number in
	 * other lists are others. */
	bool goes_on;
};

extern const struct pl_looker pl_lookers[]; /* by enum pl_primitive */

/* A HyperLogLog knows no keys, only how many there are: prints that. 1: it is whole; 0; negative
 * errno with diag, -EPIPE told already. */
int pl_lookup_cardinality(struct pl_lookup *l, struct pl_diag *diag);

/* Checks that the options suit the store: 0, or an exit code after complaining. */
int pl_lookup_check(const struct pl_store_params *params, const struct pl_region_args *args);

/* The same store at n collectors, in the translator's order. */
struct pl_lookup_at {
	unsigned int n;
	/* The others are asked too where the collector of a key has no answer. */
	bool every;
	const char *const *names; /* of the collectors: files, or addresses */
	/* Over the network: collectors are opened when they are needed, and named in answers. */
	bool remote;
	/* Opens the store of a collector that is asked for the first time. 0, or an exit code after
	 * complaining: it is not asked again. */
	int (*open)(void *arg, unsigned int i, struct pl_store_source *ret,
		struct pl_store_params *ret_params);
	/* After all keys: checks that the answers of a collector were of one epoch. 0, or an exit
	 * code after complaining. NULL: nothing is to be asked. */
	int (*unchanged)(void *arg, unsigned int i);
	void *arg;
};

/* The exit code for an error of a source, or of opening one. */
int pl_lookup_exit(int error);

/* Looks the keys up and prints the answers; an exit code. */
int pl_lookup_keys(const struct pl_lookup_at *at, const struct pl_region_args *args,
	const char *const *keys, size_t n);
