/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests: a translator of one store, with its operations and NACKs recorded. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "dta/translator.h"

#define OPS 4096
#define MS  UINT64_C(1000000)

static struct pl_op ops[OPS];
static uint8_t written[OPS][1024]; /* the bytes of their writes */
static size_t n_ops;
static uint8_t nack[64];
static size_t nack_bytes, n_nacks;
static uint16_t nack_to;
static size_t ops_before_nack; /* operations before the last NACK */

static void keep(void *arg, const struct pl_op *given, size_t n)
{
	(void)arg;
	for (size_t i = 0; i < n && n_ops < OPS; i++, n_ops++) {
		ops[n_ops] = given[i];
		if (given[i].kind == PL_OP_WRITE && given[i].bytes <= sizeof(written[0])) {
			memcpy(written[n_ops], given[i].data, given[i].bytes);
			ops[n_ops].data = written[n_ops];
		}
	}
}

static void keep_nack(void *arg, const struct pl_addr *to, uint16_t port, const void *p, size_t n)
{
	(void)arg;
	(void)to;
	n_nacks++;
	ops_before_nack = n_ops;
	nack_to = port;
	nack_bytes = n;
	memcpy(nack, p, n < sizeof(nack) ? n : sizeof(nack));
}

/* Makes a translator with one store; `config` has everything else. */
__attribute__((unused)) static struct pl_translator *make_with(
	const struct pl_dta_store *store, struct pl_translator_config config)
{
	const struct pl_op_sink sink = { .ops = keep, .nack = keep_nack };
	struct pl_diag diag = { .text = "" };
	struct pl_translator *t;

	config.stores = store;
	config.n_stores = 1;
	n_ops = n_nacks = 0;
	ok(pl_translator_new(&t, &config, &sink, &diag) == 0, "%s", diag.text);
	if (t == NULL)
		exit(1);
	return t;
}

static const struct pl_addr from = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1 } };

__attribute__((unused)) static void send_bytes(
	struct pl_translator *t, uint64_t now, const void *p, size_t n)
{
	pl_translator_push(t, now, &from, 777, p, n);
	pl_translator_done(t);
}

__attribute__((unused)) static void send_report(
	struct pl_translator *t, uint64_t now, const struct pl_dta_report *r)
{
	uint8_t out[2048];
	struct pl_build b = pl_build(out, sizeof(out));

	ok(pl_dta_put(&b, r) == 0, "a report of primitive %d can be written", r->op);
	send_bytes(t, now, out, b.len);
}

/* Checks the accounts of translator.h. */
__attribute__((unused)) static void closed(const struct pl_translator *t, const char *what)
{
	const struct pl_translator_counters *c = pl_translator_counters(t);
	struct pl_translator_held held = pl_translator_held(t);
	uint64_t sum = c->accepted + c->duplicates;

	for (int i = 0; i < PL_DTA_VERDICT_MAX; i++)
		sum += c->faults[i];
	for (int i = 0; i < PL_REFUSED_MAX; i++)
		sum += c->refused[i];
	eq(c->reports, sum, "%s: every report is accounted for", what);
	eq(c->entries, c->entries_published + held.entries, "%s: entries", what);
	eq(c->by_primitive[PL_COUNTERS], c->increments_merged + held.increments, "%s: increments",
		what);
	eq(c->by_primitive[PL_POSTCARDS],
		c->postcards_written + c->postcards_left_out + c->postcards_repeated +
			held.postcards,
		"%s: postcards", what);
}

#define PUBLISHED_KEY_WRITE                                                                        \
	{                                                                                          \
		.params = {                                                                        \
			.primitive = PL_KEY_WRITE,                                                 \
			.hash = PL_HASH_DTA,                                                       \
			.key_write = { .slots = 256, .value_bytes = 4, .copies = 4 }               \
		}                                                                                  \
	}
