/* SPDX-License-Identifier: BSD-2-Clause */
/* A chain from generators to regions, as pathline dta up reads it from a file. Everything is owned by the structure. */
#pragma once

#include "base/conf.h"
#include "memory/store.h"

struct pl_dta_conf_store {
	char *name;
	unsigned int primitive; /* index; pl_dta_conf_primitive */
	uint64_t slots, value_bytes, copies, lists, rows, hops;
	/* its generator */
	uint64_t reports; /* 0: none */
	double rate;
};

struct pl_dta_conf_collector {
	char *name, *interface, *listen, *netns;
};

struct pl_dta_conf {
	char *folder;
	bool lab;
	uint64_t seed;                    /* 0: drawn */
	struct pl_conf_list stores;       /* struct pl_dta_conf_store */
	struct pl_conf_list collectors;   /* struct pl_dta_conf_collector; none in a lab */
	char *listen, *interface, *netns; /* the translator's */
	unsigned int service;             /* 0: uc, 1: rc */
	struct pl_conf_list options;      /* char *: more arguments of translate */
};

extern const struct pl_conf_row pl_dta_conf_rows[];

/* Checks what rows cannot say. -EINVAL with diag. */
int pl_dta_conf_check(const struct pl_dta_conf *c, struct pl_diag *diag);

/* The store's parameters. */
void pl_dta_conf_params(const struct pl_dta_conf *c, const struct pl_dta_conf_store *s,
	struct pl_store_params *ret);

/* The chain that pathline dta demo shows: a laboratory with a store of each primitive. */
extern const char pl_dta_conf_demo[];
