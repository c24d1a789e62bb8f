/* SPDX-License-Identifier: BSD-2-Clause */
/* The translator's output into collectors' memory over RoCE: state of translate_roce.c and
 * translate_roce_account.c. */
#pragma once

#include "chain/translate_out.h"
#include "remote/dialer.h"
#include "remote/roce_uri.h"

struct pl_roce_out {
	struct pl_roce_uri uri;
	const char *dev;
	const char *const *servers, *const *stores; /* from the URI */
	unsigned int collectors, n_stores;
	bool reliable, unreliable, by_cm, no_ecn;
	uint64_t queue, window, dscp;

	struct pl_nic *nic;
	struct pl_uplink *uplink;
	struct pl_dialer *dialer;
	struct pl_store_params params[PL_DTA_STORES_MAX];
	uint8_t *memory; /* for frames */
	struct pl_frames frames;
	struct pl_batch answers;
	/* state of each collector as last passed to the translator, and as last reported to the
	 * user */
	enum pl_collector_state told[PL_COLLECTORS_MAX];
	bool stalled[PL_COLLECTORS_MAX], up[PL_COLLECTORS_MAX], complained[PL_COLLECTORS_MAX];
	uint64_t unreadable; /* errors of the interface */
	/* frames not sent at the last check, and time of the last increase */
	uint64_t unsent, unsent_ns;
};

/* As `account` of struct pl_translate_out. */
void pl_roce_out_account(void *arg, const struct pl_account *a);
/* Writes its families, without samples. */
void pl_roce_out_describe(const struct pl_account *a);
