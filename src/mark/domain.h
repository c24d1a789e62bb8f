/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watch of a marking domain in use: block records of its points come in, results are summed by
 * segment and block, and faults of the network begin and end as events. An engine without socket
 * and clock. Times are of UTC, since the Unix epoch.
 *
 *   segment_loss   more of a block's packets were lost than loss_above allows. Value: packets lost
 *                  in the block, at the end all while it lasted. Flow: the one that lost most.
 *   segment_delay  a flow's delay was above delay_above_ns. Value: the largest delay.
 *   segment_clock  clocks differ from the configuration (alarms clock-domain, clock-fault,
 *                  clock-stepped, late-change), or clocks and delays by more than the guard band
 *                  (beyond-guard).
 *   mark_conflict  packets had the bit before they were marked (alarm bit-in-use).
 *   point_missing  a point reported nothing of a block that others reported. Value: missed
 *                  blocks, 1 at the beginning.
 *
 * An event ends when end_after blocks in a row gave no reason for it. A block that cannot be judged
 * neither begins nor ends one.
 */
#pragma once

#include "base/addr.h"
#include "mark/network.h"
#include "record/record.h"

#define PL_MARK_ALARM_KINDS 13
/* Blocks of which a point's lag is taken. */
#define PL_MARK_LAG_BLOCKS  8u
/* Most blocks open at a time: those that are waited for, and those by which clocks may be ahead. */
#define PL_MARK_WINDOWS     32u
#define PL_MARK_WAIT_MOST   16u /* most blocks that are waited for */

struct pl_mark_domain_config {
	const char *name;                      /* kept */
	const struct pl_mark_network *network; /* kept */
	uint8_t method;
	uint64_t period_ns, clock_ns, wait_ns; /* as in the correlator's configuration */
	uint32_t blocks_max;
	double loss_above;       /* per cent of a block's packets; 100: never */
	uint64_t delay_above_ns; /* 0: never */
	uint32_t end_after;
	const struct pl_prefix *allow; /* addresses that may send records; none: any. Kept */
	uint32_t n_allow;
	void (*event)(void *arg, const struct pl_event *event);
	/* Takes each result; may be NULL. */
	void (*result)(void *arg, const struct pl_mark_result *result);
	void *arg;
};

struct pl_mark_domain_stats {
#define PL_STAT PL_STAT_MEMBER
#include "mark/domain_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_mark_domain_stats_list;

struct pl_mark_segment_book {
#define PL_STAT PL_STAT_MEMBER
#include "mark/segment_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_mark_segment_book_list;

/* State of an event that begins and ends. */
struct pl_mark_level {
	bool raised;
	uint32_t good; /* blocks in a row without a reason */
	uint64_t begun_ns, value;
};

/* Sum of a segment's block, over its flows. */
struct pl_mark_sum {
	uint64_t window; /* window of the block; 0: none */
	uint64_t block;
	uint32_t flows, counted;
	uint64_t sent, received, lost, surplus;
	uint32_t delays, jitters;
	int64_t delay_sum_ns, delay_least_ns, delay_most_ns;
	uint64_t jitter_sum_ns; /* sum of absolute values */
	uint32_t alarms;
	uint64_t worst_lost; /* loss of the flow that lost most: */
	struct pl_mark_flow lossy, slow;
};

struct pl_mark_segment_state {
	char name[96];
	struct pl_text40 key; /* DOMAIN/name, cut as other names */
	struct pl_mark_segment_book book;
	uint64_t alarms[PL_MARK_ALARM_KINDS]; /* results with each alarm */
	struct pl_mark_sum last;              /* newest block that is over */
	struct pl_mark_level loss, delay, clock, conflict;
	struct pl_mark_sum open[PL_MARK_WINDOWS];
};

struct pl_mark_point_state {
	char name[PL_MARK_POINT_NAME_MAX + 1];
	struct pl_text40 key; /* DOMAIN/name */
	uint32_t number;
	uint64_t records, newest_block, heard_ns; /* heard_ns: time of the last record; 0: none */
	uint64_t missed;                          /* missed blocks */
	uint64_t late;                            /* records that came too late */
	/* The least delay between the reading of a block and the arrival of its records: of eight
	 * blocks, and of the blocks since then. */
	uint64_t lag_ns, lag_least_ns;
	uint32_t lag_blocks;
	struct pl_mark_level missing;
	uint64_t windows[PL_MARK_WINDOWS]; /* windows in which it reported */
};

struct pl_mark_domain;

/* Makes a domain. Returns 0, -EINVAL with diag, or -ENOMEM. */
int pl_mark_domain_new(struct pl_mark_domain **ret, const struct pl_mark_domain_config *config,
	struct pl_diag *diag);
void pl_mark_domain_free(struct pl_mark_domain *d);
uint64_t pl_mark_domain_memory(const struct pl_mark_domain_config *config);
/* Takes clock error, bounds of events and allowed senders from another configuration; all else
 * stays as it is. */
void pl_mark_domain_change(struct pl_mark_domain *d, const struct pl_mark_domain_config *config);

/* Takes records that a sender sent, at time now_ns. An address of all zeros means records that did
 * not come over a network; `allow` does not apply to these. torn: earlier records of the sender are
 * known to be lost; n may be 0. */
void pl_mark_domain_take(struct pl_mark_domain *d, const struct pl_addr *sender,
	const struct pl_mark128 *records, uint32_t n, bool torn, uint64_t now_ns);
/* Gives the results of blocks that are over by that time, and judges them. */
void pl_mark_domain_turn(struct pl_mark_domain *d, uint64_t now_ns);
/* Gives the results of the other blocks as they are, without judging them: no more records come. */
void pl_mark_domain_finish(struct pl_mark_domain *d);
/* Returns the time of the next turn with work; UINT64_MAX: none before the next record. */
uint64_t pl_mark_domain_due_ns(const struct pl_mark_domain *d);

const struct pl_mark_domain_stats *pl_mark_domain_stats(const struct pl_mark_domain *d);
const struct pl_mark_correlator_stats *pl_mark_domain_correlated(const struct pl_mark_domain *d);
const struct pl_mark_segment_state *pl_mark_domain_segments(
	const struct pl_mark_domain *d, uint32_t *ret_n);
const struct pl_mark_point_state *pl_mark_domain_points(
	const struct pl_mark_domain *d, uint32_t *ret_n);

/* lag.c. Notes how long after the reading of its block a record comes; before newest_block is set. */
void pl_mark_note_lag(struct pl_mark_point_state *p, uint64_t block, uint64_t lag_ns);
/* True when all records of a point come one and a half periods or more after their blocks are read: its
 * clock may be behind by whole periods, so that its numbers are of other blocks. */
bool pl_mark_is_behind(const struct pl_mark_point_state *p, uint64_t period_ns);
