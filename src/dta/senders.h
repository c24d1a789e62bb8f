/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a translator knows of the reporters that it hears: which number each sends next, and what it may still send. A
 * reporter is an address, a port and a form of header. The table is bounded; a reporter makes room for another when it
 * has been silent for long.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/bucket.h"
#include "wire/dta.h"

/* Streams begin with number 0: one that is first heard with a number below this lost its beginning, any other is taken
 * up where it is. */
#define PL_SEQ_BEGIN  128u
/* A 32-bit number further from the expected one is of a reporter that began anew. */
#define PL_SEQ_WINDOW (1 << 20)

struct pl_sender {
	struct pl_addr addr;
	uint16_t port;
	uint8_t form; /* enum pl_dta_form */
	bool used;
	bool numbered; /* `expected` means something */
	bool gap;      /* something is missing */
	bool nacked;   /* ever; then nack_ns means something */
	uint32_t expected;
	uint32_t tries; /* NACKs for the present gap */
	uint64_t nack_ns;
	uint64_t seen_ns;
	struct pl_bucket bucket;
};

struct pl_senders {
	struct pl_sender *table;
	uint32_t sets; /* of eight */
	uint64_t idle_ns;
	double rate, burst;
	uint64_t seed;
};

/* For at least n reporters. -ENOMEM. */
int pl_senders_init(struct pl_senders *s, uint32_t n, uint64_t idle_ns, double rate, double burst);
void pl_senders_done(struct pl_senders *s);

/* The reporter, new ones entered; NULL when there is no room for it. */
struct pl_sender *pl_senders_find(struct pl_senders *s, const struct pl_addr *addr, uint16_t port,
	enum pl_dta_form form, uint64_t now_ns);

enum pl_seq {
	PL_SEQ_NEXT,
	PL_SEQ_GAP,       /* numbers before it are missing: *ret_missing */
	PL_SEQ_DUPLICATE, /* was there before, or was given up */
};

/* What a number is. Changes nothing but what a stream's beginning, or one begun anew, expects. */
enum pl_seq pl_sender_look(struct pl_sender *s, uint32_t seq, uint32_t *ret_missing);

/* The number was taken: the next one is expected. */
static inline void pl_sender_take(struct pl_sender *s, uint32_t seq)
{
	s->expected = s->form == PL_DTA_TRACKING ? (uint8_t)(seq + 1) : seq + 1;
	s->gap = false;
	s->tries = 0;
}
