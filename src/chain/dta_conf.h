/* SPDX-License-Identifier: BSD-2-Clause */
/* A chain from generators to regions, as pathline dta up reads it from a file. Everything is owned
 * by the structure. */
#pragma once

#include "base/conf.h"
#include "memory/store.h"

#define PL_DTA_CONF_STORES_MAX    16
#define PL_DTA_CONF_REPORTERS_MAX 4
#define PL_DTA_CONF_ALLOW_MAX     64

struct pl_dta_conf_store {
	char *name;
	unsigned int primitive;  /* index: enum pl_primitive less one */
	unsigned int hash, kind; /* indices: pathline, dta; count-min, hyperloglog */
	uint64_t slots, value_bytes, copies, lists, rows, hops, cell_bytes;
	/* its generator */
	uint64_t reports;   /* 0: none */
	uint64_t reporters; /* of a sketch: so many generators, of `reports` each */
	double rate;
};

struct pl_dta_conf_collector {
	char *name, *interface, *listen, *netns;
	struct pl_conf_list allow; /* char *: prefixes that may write */
};

struct pl_dta_conf {
	char *folder;
	bool lab;
	uint64_t seed;                    /* 0: drawn */
	uint64_t restarts;                /* of each collector that ends by itself */
	uint64_t epoch_ns;                /* of collectors' stores; 0: they have one epoch */
	struct pl_conf_list stores;       /* struct pl_dta_conf_store */
	struct pl_conf_list collectors;   /* struct pl_dta_conf_collector; none in a lab */
	char *listen, *interface, *netns; /* the translator's */
	unsigned int service;             /* 0: uc, 1: rc */
	uint64_t dscp;                    /* of the translator's frames */
	bool ecn;
	struct pl_conf_list options; /* char *: more arguments of translate */
};

extern const struct pl_conf_row pl_dta_conf_rows[];

/* Checks what rows cannot say. -EINVAL with diag. */
int pl_dta_conf_check(const struct pl_dta_conf *c, struct pl_diag *diag);

/* Whether its regions have epochs, and so two halves. */
bool pl_dta_conf_turns(const struct pl_dta_conf *c, const struct pl_dta_conf_store *s);

/* The store's parameters. */
void pl_dta_conf_params(const struct pl_dta_conf *c, const struct pl_dta_conf_store *s,
	struct pl_store_params *ret);

/* How many deliver each sketch; 0: there is none. */
uint64_t pl_dta_conf_reporters(const struct pl_dta_conf *c);

/* The chain that pathline dta demo shows: a laboratory with a store of each primitive. */
extern const char pl_dta_conf_demo[];
