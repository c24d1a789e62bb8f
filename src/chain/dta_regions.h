/* SPDX-License-Identifier: BSD-2-Clause */
/* The regions of a chain: which there are, whether they are what its file says, and those that are
 * missing made. */
#pragma once

#include "base/json.h"
#include "chain/dta_conf.h"

#define PL_DTA_PATH_BYTES 512

struct pl_dta_regions {
	const struct pl_dta_conf *conf;
	const struct pl_dta_conf_collector *collectors;
	unsigned int n_stores, n;
	char (*paths)[PL_DTA_PATH_BYTES];                      /* [collector * n_stores + store] */
	struct pl_store_params params[PL_DTA_CONF_STORES_MAX]; /* once they were compared */
};

/* Names them, FOLDER/COLLECTOR-STORE.plr; touches no file. Negative errno with diag. */
int pl_dta_regions_init(struct pl_dta_regions *r, const struct pl_dta_conf *conf,
	const struct pl_dta_conf_collector *collectors, unsigned int n_collectors,
	const char *folder, struct pl_diag *diag);
void pl_dta_regions_done(struct pl_dta_regions *r);

typedef void pl_dta_difference_fn(void *arg, const char *text);

/*
 * Says of each region that is there, and of the files of its epochs, in what it is not what the
 * file says; what cannot be read is a difference, too. What the file does not say (the seed when it
 * is 0, batches, seals) all collectors have as the first region that is there. Returns how many
 * differences there are.
 */
unsigned int pl_dta_regions_compare(struct pl_dta_regions *r, pl_dta_difference_fn *say, void *arg);

/* Whether there is a file of this one. */
bool pl_dta_regions_made(const struct pl_dta_regions *r, unsigned int region);

/* Compares and writes into an object that is open: `differences`, their texts, and `regions` with
 * collector, store, file and whether it is made. Returns how many differences there are. Of no
 * regions (all zeros) both are empty. */
unsigned int pl_dta_regions_json(struct pl_dta_regions *r, struct pl_json *json);

/* Makes those that are missing; after they were compared. */
int pl_dta_regions_make(const struct pl_dta_regions *r, struct pl_diag *diag);

/* The file of an epoch that ended, as the collector calls it. */
void pl_dta_regions_epoch(const struct pl_dta_regions *r, unsigned int region, uint64_t epoch,
	char ret[PL_DTA_PATH_BYTES + 32]);
