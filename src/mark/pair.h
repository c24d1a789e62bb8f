/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mkpair/1, the protocol between the marker of one host and the meter of another, in datagrams. The
 * marker sends records of blocks, each datagram with its terms of marking; the meter answers each
 * one, with its own terms. So both know when their terms do not match, and datagrams without an
 * answer are sent again. docs/protocols/mkpair.md has the bytes. Engines without socket and clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stats.h"
#include "record/packet.h"

#define PL_MARK_PAIR_HEADER_BYTES 56u
/* Most records of a datagram, so that its packet fits the least MTU of IPv6 links (1280 bytes). */
#define PL_MARK_PAIR_RECORDS      9u
#define PL_MARK_PAIR_BYTES                                                                         \
	(PL_MARK_PAIR_HEADER_BYTES + PL_MARK_PAIR_RECORDS * sizeof(struct pl_mark128))

/* Terms that both must share; numbers as in struct pl_mark_setup (mark/packet.h). */
struct pl_mark_terms {
	uint64_t period_ns;
	uint64_t rules; /* hash of the configured rules; 0: none */
	uint32_t colour, second;
	uint8_t method, by, place, versions;
};

struct pl_mark_setup;
struct pl_mark_terms pl_mark_terms_of(const struct pl_mark_setup *setup, uint64_t rules);

/* Returns bits of mark_flags (PL_MARK_TERMS_MASK) for the place of the mark and the parts of a
 * flow. One in 63 other terms has the same bits, but no two that are common. */
uint16_t pl_mark_terms_flags(const struct pl_mark_terms *terms);

/* True when counts by both terms are of the same blocks and flows. Both places of the option count
 * as equal, because meters look in both. Rules are not compared. */
bool pl_mark_terms_fit(const struct pl_mark_terms *a, const struct pl_mark_terms *b);

#define PL_MARK_TERMS_TEXT_MAX 112
/* Writes the terms as options of a command: "--method double --bit dscp:0 --bit dscp:1 --by flow
 * --period 1s". */
void pl_mark_terms_format(char dst[PL_MARK_TERMS_TEXT_MAX], const struct pl_mark_terms *terms);

enum pl_mark_pair_what { PL_MARK_PAIR_RECORDS_OF = 1, PL_MARK_PAIR_ANSWER = 2 };

struct pl_mark_pair {
	uint8_t what; /* enum pl_mark_pair_what */
	uint16_t count;
	uint32_t run;    /* random number that a marker draws when it begins */
	uint32_t seq;    /* number of the datagram in the run */
	uint32_t oldest; /* marker: datagrams before this are not sent again */
	struct pl_mark_terms terms;
};

/* Parses a datagram; *ret_records points into data, at any alignment. False when it is no datagram
 * of mkpair/1. */
bool pl_mark_pair_parse(
	struct pl_mark_pair *ret, const uint8_t **ret_records, const void *data, size_t len);
void pl_mark_pair_put(uint8_t dst[PL_MARK_PAIR_HEADER_BYTES], const struct pl_mark_pair *header);

/* ---- the marker's side ---- */

struct pl_mark_sender_stats {
#define PL_STAT PL_STAT_MEMBER
#include "mark/pair_sender_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_mark_sender_stats_list;

struct pl_mark_sender_config {
	uint32_t run;
	uint32_t kept_max; /* most datagrams without an answer at a time */
	struct pl_mark_terms terms;
	/* Sends a datagram; false when it was not sent. */
	bool (*send)(void *arg, const void *datagram, size_t len);
	void *arg;
};

struct pl_mark_sender;

/* Makes a sender. Returns 0 or -ENOMEM. */
int pl_mark_sender_new(struct pl_mark_sender **ret, const struct pl_mark_sender_config *config);
void pl_mark_sender_free(struct pl_mark_sender *s); /* NULL is allowed */

void pl_mark_sender_put(
	struct pl_mark_sender *s, const struct pl_mark128 *records, uint32_t n, uint64_t now_ns);
/* Sends the records that wait for a full datagram. hello: if none wait, sends an empty datagram, to
 * tell the terms. */
void pl_mark_sender_flush(struct pl_mark_sender *s, bool hello, uint64_t now_ns);
/* Sends datagrams again that had no answer for an eighth of the period, and gives up those older
 * than a period. Returns the time of the next call; UINT64_MAX when no datagram lacks an answer. */
uint64_t pl_mark_sender_turn(struct pl_mark_sender *s, uint64_t now_ns);
/* Sends all datagrams without an answer again, at once. */
void pl_mark_sender_again(struct pl_mark_sender *s, uint64_t now_ns);
/* Takes an answer to a datagram of this run; *ret_terms: the meter's terms. False when data is no
 * such answer. */
bool pl_mark_sender_answered(
	struct pl_mark_sender *s, const void *data, size_t len, struct pl_mark_terms *ret_terms);
uint32_t pl_mark_sender_open(const struct pl_mark_sender *s); /* datagrams without an answer */
const struct pl_mark_sender_stats *pl_mark_sender_stats(const struct pl_mark_sender *s);

/* ---- the meter's side ---- */

#define PL_MARK_HEARD_WINDOW   8192u /* number of datagrams that are tracked individually */
/* Most flows: beyond it the datagrams of a block could not all be tracked individually. */
#define PL_MARK_PAIR_FLOWS_MAX (PL_MARK_HEARD_WINDOW * PL_MARK_PAIR_RECORDS)

struct pl_mark_heard_stats {
#define PL_STAT PL_STAT_MEMBER
#include "mark/pair_heard_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_mark_heard_stats_list;

/* Account of the datagrams received from one marker; zero: none yet. */
struct pl_mark_heard {
	bool any;
	uint32_t run, base,
		top; /* all datagrams before base are received or lost; none from top on has come */
	uint64_t bits[PL_MARK_HEARD_WINDOW / 64];
	struct pl_mark_heard_stats stats;
};

/* Takes a datagram of records. False when its records were received before. *ret_torn: an earlier
 * datagram has not come or, because the run is new, may not have come. */
bool pl_mark_heard(struct pl_mark_heard *h, const struct pl_mark_pair *header, bool *ret_torn);
