/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accounts of a chain's parts put together, from what each printed (--stats). Where one ends
 * the next begins:
 *
 *   generated   = received + kernel_drops                    datagrams, of one report each
 *   received    = accepted + duplicates + unreadable + refused
 *   operations  = done + lost + full + down + outside        writes and additions of the translator
 *   done        = executed + lost on the wire                by the collectors; on UC nobody knows
 *               of a lost frame
 *
 * A frame for which a collector's socket had no room, because the collector did not come to read
 * it, is lost on the wire like any other; how many there were the collector's kernel knows
 * (collector_drops). Of reliable ones they were sent again.
 *
 * Executed may be more than done where connections ended: what was executed and not acknowledged
 * any more is lost to the translator.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/json.h"

struct pl_dta_account {
	bool have_generated;
	uint64_t generated;
	uint64_t datagrams, kernel_drops, not_udp;
	uint64_t reports, accepted, duplicates, unreadable, refused, held;
	uint64_t operations, done, lost, full, down, outside, repeated, connections;
	uint64_t executed, collector_drops; /* by collectors, by their kernels */
	bool closed;                        /* every line above holds */
};

/* Adds a part's words. -EBADMSG with diag: they are no account. */
int pl_dta_account_translator(struct pl_dta_account *a, const char *json, struct pl_diag *diag);
int pl_dta_account_collector(struct pl_dta_account *a, const char *json, struct pl_diag *diag);
/* "100 packets (100 reports, …": its line on standard error. What it says goes to *ret_made; 0: no
 * such line. */
void pl_dta_account_generator(struct pl_dta_account *a, const char *line, uint64_t *ret_made);

void pl_dta_account_close(struct pl_dta_account *a);
void pl_dta_account_text(
	const struct pl_dta_account *a, struct pl_buf *out); /* a table, in lines */
void pl_dta_account_json(const struct pl_dta_account *a, struct pl_json *json);
