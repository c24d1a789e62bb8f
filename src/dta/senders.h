/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State of the reporters of a translator: the next number of each, and its quota. A reporter is an
 * address, a port and a form of header. The table is bounded. When it is full, a new reporter takes
 * the place of one that has been silent for long, or was seen only once, or is of a source
 * (base/shares.h) that has more reporters than the new one's: one host with many ports takes
 * nothing from others.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bucket.h"
#include "base/shares.h"
#include "wire/dta.h"

/*
 * Streams begin with number 0: a reporter first seen with a number below this lost its beginning. A
 * reporter first seen with another number was known to an earlier process, or to none: it is asked
 * for the reports that it still has, and its stream is taken up where those begin, or at the
 * present number when no answer comes. The age of 8-bit numbers is unknown: such streams are taken
 * up at the present number.
 */
#define PL_SEQ_BEGIN    128u
#define PL_SEQ_BACK     (1u << 19) /* largest distance back that is asked for */
/*
 * Three signs show that a reporter was restarted on the same port, and that its datagrams are no
 * repeats: a 32-bit number further than the window from the expected one; one of the first numbers
 * after a pause, when no datagram can be in flight any more; and PL_SEQ_RUN datagrams in a row with
 * consecutive numbers behind the expected one. Numbers that a NACK requested in the last ten
 * seconds, and those that follow them, were sent again for that NACK, and are no such sign.
 */
#define PL_SEQ_WINDOW   (1 << 20)
#define PL_SEQ_PAUSE_NS UINT64_C(2000000000)
#define PL_SEQ_RUN      16u
#define PL_SEQ_NACK_NS  UINT64_C(10000000000)

struct pl_sender {
	/* The key, without padding. */
	struct pl_addr addr;
	uint16_t port;
	uint8_t form; /* enum pl_dta_form */
	uint8_t zero[5];

	uint32_t share; /* share of its source */
	bool again;     /* it was seen more than once */
	bool numbered;  /* `expected` is valid */
	bool gap;       /* reports are missing */
	bool joining;   /* reports before `joined`, the first number seen, are asked for */
	bool nacked;    /* a NACK was sent; nack_ns is valid then */
	uint32_t expected;
	uint32_t joined;
	uint32_t tries;   /* NACKs for the present gap */
	uint32_t lost;    /* reports given up since the reporter began */
	uint32_t refused; /* reports refused for good since the reporter began */
	uint64_t nack_ns;
	uint32_t nack_low; /* the least number asked for since NACKs paused for PL_SEQ_NACK_NS */
	/* numbers behind the expected one that follow each other */
	uint32_t run_first, run_next, run; /* datagrams */
	uint64_t run_datagram;             /* the last one of them */
	uint64_t seen_ns;
	uint64_t pause_ns; /* before the present report */
	struct pl_bucket bucket;
};

struct pl_senders {
	struct pl_cells table; /* of struct pl_sender */
	struct pl_shares shares;
	uint32_t hand;
	uint64_t idle_ns, now_ns;
	double rate, burst;
	uint64_t seed;
	uint64_t displaced; /* reporters that were evicted for others although they had not been
			     * silent for long */
};

/* Makes a table for n reporters. Returns -ENOMEM. */
int pl_senders_init(struct pl_senders *s, uint32_t n, uint64_t idle_ns, double rate, double burst);
void pl_senders_done(struct pl_senders *s);

/* Finds or adds a reporter; NULL when there is no room for it. */
struct pl_sender *pl_senders_find(struct pl_senders *s, const struct pl_addr *addr, uint16_t port,
	enum pl_dta_form form, uint64_t now_ns);

enum pl_seq {
	PL_SEQ_NEXT,
	PL_SEQ_GAP,       /* numbers before it are missing */
	PL_SEQ_DUPLICATE, /* seen before, or given up */
};

struct pl_seq_seen {
	uint32_t missing; /* PL_SEQ_GAP: reports missing */
	bool restarted;   /* the reporter started again */
	bool taken_up;    /* the stream is taken up at this number, which is not its first */
};

/* Classifies a number; datagrams have rising numbers. `asks`: NACKs are sent. Changes only the
 * expected number of a stream that begins, or starts again. */
enum pl_seq pl_sender_look(struct pl_sender *s, uint32_t seq, uint64_t datagram, uint64_t now_ns,
	bool asks, struct pl_seq_seen *ret);

/* Notes that a NACK for the expected number was sent. */
void pl_sender_nacked(struct pl_sender *s, uint64_t now_ns);

/* Notes that the number was taken: the next one is expected. */
static inline void pl_sender_take(struct pl_sender *s, uint32_t seq)
{
	s->expected = s->form == PL_DTA_TRACKING ? (uint8_t)(seq + 1) : seq + 1;
	s->joining = false;
	s->gap = false;
	s->tries = 0;
}
