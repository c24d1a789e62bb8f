/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A marking domain that is watched while it is in use: block records of its points come in, results
 * are summed by segment and block, and what a network should not have begins and ends as an event.
 * An engine without socket and clock. Times are of UTC, since the Unix epoch.
 *
 *   segment_loss   more of a block's packets were lost than loss_above says. Value: packets lost in
 *                  the block, at the end all while it lasted; the flow that lost most.
 *   segment_delay  a flow's delay was above delay_above_ns. Value: the largest.
 *   segment_clock  clocks are not as they were said to be (alarms clock-domain, clock-fault,
 *                  clock-stepped).
 *   mark_conflict  packets had the bit before they were marked (alarm bit-in-use).
 *   point_missing  a point reported nothing of a block that others reported. Value, at the end:
 *                  blocks.
 *
 * An event ends when end_after blocks in a row gave no reason for it. A block that cannot be judged
 * neither begins nor ends one.
 */
#pragma once

#include "base/addr.h"
#include "mark/network.h"
#include "record/record.h"

#define PL_MARK_ALARM_KINDS 13
/* Blocks that may be open at a time: those that are waited for, and those that clocks are ahead. */
#define PL_MARK_WINDOWS     32u
#define PL_MARK_WAIT_MOST   16u /* blocks of waiting, at most */

struct pl_mark_domain_config {
	const char *name;                      /* kept */
	const struct pl_mark_network *network; /* kept */
	uint8_t method;
	uint64_t period_ns, clock_ns, wait_ns; /* as those of the correlator */
	uint32_t blocks_max;
	double loss_above;       /* per cent of a block's packets; 100: never */
	uint64_t delay_above_ns; /* 0: never */
	uint32_t end_after;
	const struct pl_prefix *allow; /* addresses that records may come from; none: any. Kept */
	uint32_t n_allow;
	void (*event)(void *arg, const struct pl_event *event);
	/* Each result as it is told; NULL: nobody wants them. */
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

/* Something that begins and ends. */
struct pl_mark_level {
	bool raised;
	uint32_t good; /* blocks in a row without a reason */
	uint64_t begun_ns, value;
};

/* A segment's block, over its flows. */
struct pl_mark_sum {
	uint64_t window; /* of which it is; 0: none */
	uint64_t block;
	uint32_t flows, counted;
	uint64_t sent, received, lost, surplus;
	uint32_t delays, jitters;
	int64_t delay_sum_ns, delay_least_ns, delay_most_ns;
	uint64_t jitter_sum_ns; /* of amounts */
	uint32_t alarms;
	uint64_t worst_lost; /* of one flow: */
	struct pl_mark_flow lossy, slow;
};

struct pl_mark_segment_state {
	char name[96];
	struct pl_text40 key; /* DOMAIN/name, cut as names are */
	struct pl_mark_segment_book book;
	uint64_t alarms[PL_MARK_ALARM_KINDS]; /* results that had each */
	struct pl_mark_sum last;              /* the newest block that is over */
	struct pl_mark_level loss, delay, clock, conflict;
	struct pl_mark_sum open[PL_MARK_WINDOWS];
};

struct pl_mark_point_state {
	char name[PL_MARK_POINT_NAME_MAX + 1];
	struct pl_text40 key; /* DOMAIN/name */
	uint32_t number;
	uint64_t records, newest_block, heard_ns; /* 0: it never reported */
	uint64_t missed;                          /* blocks */
	struct pl_mark_level missing;
	uint64_t windows[PL_MARK_WINDOWS]; /* those it reported in */
};

struct pl_mark_domain;

/* -EINVAL with diag, -ENOMEM. */
int pl_mark_domain_new(struct pl_mark_domain **ret, const struct pl_mark_domain_config *config,
	struct pl_diag *diag);
void pl_mark_domain_free(struct pl_mark_domain *d);
uint64_t pl_mark_domain_memory(const struct pl_mark_domain_config *config);
/* The clocks' error, the bounds of events and the senders become those of another configuration; all
 * else stays, whatever it says. */
void pl_mark_domain_change(struct pl_mark_domain *d, const struct pl_mark_domain_config *config);

/* Records of a sender, at that time; the address of all zeros: they came by no network, and `allow` says
 * nothing of them. torn: others of it, before these, are known to be lost; n may be
 * 0. */
void pl_mark_domain_take(struct pl_mark_domain *d, const struct pl_addr *sender,
	const struct pl_mark128 *records, uint32_t n, bool torn, uint64_t now_ns);
/* What is over by that time is told and judged. */
void pl_mark_domain_turn(struct pl_mark_domain *d, uint64_t now_ns);
/* Blocks that are not over are told as they are, and judged by nobody: no more records come. */
void pl_mark_domain_finish(struct pl_mark_domain *d);
/* When the next turn has something to do; UINT64_MAX: after the next record. */
uint64_t pl_mark_domain_due_ns(const struct pl_mark_domain *d);

const struct pl_mark_domain_stats *pl_mark_domain_stats(const struct pl_mark_domain *d);
const struct pl_mark_correlator_stats *pl_mark_domain_correlated(const struct pl_mark_domain *d);
const struct pl_mark_segment_state *pl_mark_domain_segments(
	const struct pl_mark_domain *d, uint32_t *ret_n);
const struct pl_mark_point_state *pl_mark_domain_points(
	const struct pl_mark_domain *d, uint32_t *ret_n);
