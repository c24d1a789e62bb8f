/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins the accounts of a chain's parts, as each part printed them (--stats). The output of one
 * part is the input of the next:
 *
 *   generated   = received + kernel_drops                    datagrams, of one report each
 *   received    = accepted + duplicates + unreadable + refused
 *   operations  = done + lost + full + down + outside        writes and additions of the translator
 *   done        = executed + lost on the wire                by the collectors; on UC a lost
 *               frame is not noticed
 *
 * A frame for which a collector's socket had no room, because the collector did not read it in
 * time, is lost on the wire like any other; the collector's kernel counts such frames
 * (collector_drops). Reliable connections sent them again.
 *
 * Executed may be more than done when connections ended: the translator counts an operation as lost
 * that was executed but not acknowledged any more.
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
	uint64_t executed, collector_drops; /* counted by collectors; by their kernels */
	bool closed;                        /* every line above holds */
};

/* Adds the account that a part printed. Returns -EBADMSG with diag when the text is not an
 * account. */
int pl_dta_account_translator(struct pl_dta_account *a, const char *json, struct pl_diag *diag);
int pl_dta_account_collector(struct pl_dta_account *a, const char *json, struct pl_diag *diag);
/* Adds the generator's line on standard error, "100 packets (100 reports, …". The number of reports
 * goes to *ret_made; 0: no such line. */
void pl_dta_account_generator(struct pl_dta_account *a, const char *line, uint64_t *ret_made);

void pl_dta_account_close(struct pl_dta_account *a);
void pl_dta_account_text(
	const struct pl_dta_account *a, struct pl_buf *out); /* a table, in lines */
void pl_dta_account_json(const struct pl_dta_account *a, struct pl_json *json);
