/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a translator knows of the reporters that it hears: which number each sends next, and what it
 * may still send. A reporter is an address, a port and a form of header. The table is bounded. When
 * it is full, a reporter makes room for another that has been silent for long, or was heard once
 * only, or is of a source (base/shares.h) that has more of them than the other's: one host with
 * many ports takes nothing from others.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bucket.h"
#include "base/shares.h"
#include "wire/dta.h"

/*
 * Streams begin with number 0: one that is first heard with a number below this lost its beginning.
 * Any other was heard by somebody before, or by nobody: its reporter is asked for what it still
 * has, and it is taken up where that begins, or where it is when no answer comes. Of 8-bit numbers
 * nobody knows how old they are: they are taken up where they are.
 */
#define PL_SEQ_BEGIN    128u
#define PL_SEQ_BACK     (1u << 19) /* so far back is asked for, at most */
/*
 * A reporter that began anew on the same port is told from repeats: by a 32-bit number further than
 * the window from the expected one; by one of the first numbers after a pause, when nothing is
 * under way any more; and by so many datagrams in a row that only go on from one another, behind
 * the expected number. What was asked for by a NACK in the last ten seconds, and what follows it,
 * is sent again because of that, and no new beginning.
 */
#define PL_SEQ_WINDOW   (1 << 20)
#define PL_SEQ_PAUSE_NS UINT64_C(2000000000)
#define PL_SEQ_RUN      16u
#define PL_SEQ_NACK_NS  UINT64_C(10000000000)

struct pl_sender {
	/* The key: without padding. */
	struct pl_addr addr;
	uint16_t port;
	uint8_t form; /* enum pl_dta_form */
	uint8_t zero[5];

	uint32_t share; /* whose it is */
	bool again;     /* it was heard more than once */
	bool numbered;  /* `expected` means something */
	bool gap;       /* something is missing */
	bool joining;   /* what is there before `joined`, its first number, is asked for */
	bool nacked;    /* ever; then nack_ns means something */
	uint32_t expected;
	uint32_t joined;
	uint32_t tries;   /* NACKs for the present gap */
	uint32_t lost;    /* reports that were given up since it began */
	uint32_t refused; /* that were refused for good since it began */
	uint64_t nack_ns;
	uint32_t nack_low; /* the least number asked for since NACKs stopped for PL_SEQ_NACK_NS */
	/* numbers behind the expected one that follow each other */
	uint32_t run_first, run_next, run; /* datagrams */
	uint64_t run_datagram;             /* the last one */
	uint64_t seen_ns;
	uint64_t pause_ns; /* before the present report */
	struct pl_bucket bucket;
};

struct pl_senders {
	struct pl_cells table; /* struct pl_sender */
	struct pl_shares shares;
	uint32_t hand;
	uint64_t idle_ns, now_ns;
	double rate, burst;
	uint64_t seed;
	uint64_t displaced; /* that made room and were not silent for long */
};

/* For n reporters. -ENOMEM. */
int pl_senders_init(struct pl_senders *s, uint32_t n, uint64_t idle_ns, double rate, double burst);
void pl_senders_done(struct pl_senders *s);

/* The reporter, new ones entered; NULL when there is no room for it. */
struct pl_sender *pl_senders_find(struct pl_senders *s, const struct pl_addr *addr, uint16_t port,
	enum pl_dta_form form, uint64_t now_ns);

enum pl_seq {
	PL_SEQ_NEXT,
	PL_SEQ_GAP,       /* numbers before it are missing */
	PL_SEQ_DUPLICATE, /* was there before, or was given up */
};

struct pl_seq_seen {
	uint32_t missing; /* PL_SEQ_GAP */
	bool restarted;   /* the reporter began anew */
	bool taken_up;    /* the stream is taken up with this number, which is not its first */
};

/* What a number is; datagrams have rising numbers. `asks`: NACKs are sent. Changes nothing but what
 * a stream's beginning, or one begun anew, expects. */
enum pl_seq pl_sender_look(struct pl_sender *s, uint32_t seq, uint64_t datagram, uint64_t now_ns,
	bool asks, struct pl_seq_seen *ret);

/* A NACK leaves for what is expected. */
void pl_sender_nacked(struct pl_sender *s, uint64_t now_ns);

/* The number was taken: the next one is expected. */
static inline void pl_sender_take(struct pl_sender *s, uint32_t seq)
{
	s->expected = s->form == PL_DTA_TRACKING ? (uint8_t)(seq + 1) : seq + 1;
	s->joining = false;
	s->gap = false;
	s->tries = 0;
}
