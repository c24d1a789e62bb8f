/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole chain from generators to regions: its parts are processes of this program, started,
 * looked after, stopped and checked. SIGTERM and SIGINT stop it, SIGUSR1 asks every part how it is,
 * SIGUSR2 begins an epoch. It keeps its rights, since it goes on starting parts that need them; each
 * part gives up its own.
 */
#pragma once

#include "dta/account.h"
#include "chain/dta_check.h"
#include "chain/dta_conf.h"
#include "chain/dta_lab.h"
#include "chain/dta_process.h"
#include "chain/dta_regions.h"
#include "chain/dta_status.h"
#include "dta/translator.h"
#include "runtime/say.h"

#define PL_CHAIN_STORES_MAX PL_DTA_CONF_STORES_MAX
#define PL_CHAIN_PARTS_MAX  (PL_COLLECTORS_MAX + 1 + PL_CHAIN_STORES_MAX * PL_DTA_CONF_REPORTERS_MAX)

struct pl_chain_options {
	const char *file; /* the chain, as YAML; NULL: the demonstration's */
	uint64_t duration_ns, status_ns;
	bool quiet; /* what the parts say is not passed on */
	bool keep;  /* the regions of a folder that was made for this run */
	bool json;
	struct pl_print print; /* status, accounts, what is found */
};

struct pl_chain {
	const struct pl_chain_options *o;
	struct pl_dta_conf conf;
	struct pl_dta_lab lab;
	int netns[PL_COLLECTORS_MAX], translator_netns;
	struct pl_dta_conf_collector lab_collector;
	char *lab_allow;
	const char *interface; /* the translator's */
	const struct pl_dta_conf_collector *collectors;
	const struct pl_dta_conf_store *stores;
	unsigned int n_collectors, n_stores;
	char folder[PL_DTA_PATH_BYTES];
	bool made_folder;
	struct pl_dta_regions regions;
	bool differ; /* those that were there, from the file */
	/* collectors, the translator, generators */
	struct pl_dta_process parts[PL_CHAIN_PARTS_MAX];
	unsigned int n_parts;
	struct pl_dta_checked checked[PL_CHAIN_STORES_MAX];
	uint64_t made[PL_CHAIN_STORES_MAX]; /* by each store's generator */
	struct pl_dta_account account;
};

/* Reads the file; *ret is zeroed, the options stay until pl_chain_free. Negative errno with
 * diag. */
int pl_chain_load(
	struct pl_chain *ret, const struct pl_chain_options *options, struct pl_diag *diag);
/* Runs it to its end, and asks the regions for what was generated. Negative errno with diag;
 * `differ` when regions are not what the file says. */
int pl_chain_run(struct pl_chain *c, struct pl_diag *diag);
/* What running would find: nothing is made or started. */
int pl_chain_check(struct pl_chain *c, struct pl_diag *diag);
/* After it ran: what came of it is printed. Whether no answer was wrong and all accounts close. */
bool pl_chain_report(const struct pl_chain *c);
/* Ends what still runs, and removes what was made for this run. The structure is the caller's. */
void pl_chain_done(struct pl_chain *c);

/* ---- chain_report.c ---- */

/* Says in what the regions are not what the file says; how many differences there are. */
unsigned int pl_chain_say_differences(struct pl_chain *c);
/* The same, printed with the list of regions. */
unsigned int pl_chain_print_regions(struct pl_chain *c);
