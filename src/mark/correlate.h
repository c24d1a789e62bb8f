/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns block records of several measurement points into loss and delay between them (RFC 9341 3,
 * RFC 9342 for segments with several ends). The engine has no socket and no clock: records come in
 * any order, twice or not at all; the caller passes the time.
 *
 * The results of a flow's block are made when every point of the segments has reported it, or at
 * its deadline; points that did not are named, and segments that lack them have no numbers. A
 * record without packets means that the point saw none; a missing record means nothing, unless
 * `absent`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "mark/record.h"

/* Contents of a result: bits of pl_mark_result.has. */
enum {
	PL_MARK_HAS_LOSS = 1,  /* sent, received, loss */
	PL_MARK_HAS_DELAY = 2, /* delay_ns of the pulse */
	PL_MARK_HAS_MEAN = 4,  /* mean_ns: nothing was lost between the two */
	PL_MARK_HAS_FIRST = 8, /* first_ns: nothing was lost, no packet was beyond the guard band */
	PL_MARK_HAS_JITTER = 16, /* jitter_ns: delay_ns less the previous block's (RFC 3393) */
};

/* Alarms: PL_MARK_ALARM(bit, id, "name", "help"). */
#define PL_MARK_ALARMS(X)                                                                              \
	X(0, MISSING, "missing", "a point did not report the block: no numbers")                       \
	X(1, CLOCK_DOMAIN, "clock-domain",                                                             \
		"TAI offsets of the points differ: their clocks are seconds apart, no numbers")        \
	X(2, SETTINGS, "settings", "points differ in method, period, --bit or --by: no numbers")       \
	X(3, NEGATIVE, "negative-loss",                                                                \
		"more arrived than was sent: duplicates, or a wrong block")                            \
	X(4, BEYOND, "beyond-guard",                                                                   \
		"packets were early or late by more than the guard band: numbers are not vouched for") \
	X(5, PULSES, "pulses", "a point saw no pulse, or several: no delay")                           \
	X(6, CLOCK_FAULT, "clock-fault",                                                               \
		"a delay below the clocks' error, or clocks that are whole periods apart")             \
	X(7, PARTIAL, "partial", "a point did not see the whole block")                                \
	X(8, NO_ROOM, "no-room", "a point had no room for some flows")                                 \
	X(9, STEPPED, "clock-stepped", "a clock was set while the block lasted")                       \
	X(10, UNSYNCED, "clock-unsynced", "a kernel does not call its clock synchronised")             \
	X(11, IN_USE, "bit-in-use",                                                                    \
		"at the marker packets have the bit otherwise than the time says: others use it, "     \
		"or period or clock are wrong")                                                        \
	X(12, LATE_CHANGE, "late-change",                                                              \
		"a point without times changed its block too late: no numbers")

enum {
#define PL_MARK_ALARM_BIT(bit, id, name, help) PL_MARK_ALARM_##id = 1 << (bit),
	PL_MARK_ALARMS(PL_MARK_ALARM_BIT)
#undef PL_MARK_ALARM_BIT
};

/* Name and help of an alarm; NULL behind the last. */
const char *pl_mark_alarm_name(unsigned int bit);
const char *pl_mark_alarm_help(unsigned int bit);

struct pl_mark_result {
	struct pl_mark_flow flow;
	uint64_t block, period_ns;
	uint8_t method;
	uint32_t segment;    /* number in the configuration */
	uint32_t tai_offset; /* TAI offset of the first point that reported */
	uint32_t has, alarms;
	uint64_t sent, received;
	int64_t loss; /* negative: more arrived than was sent */
	bool unsent;  /* no point where packets go in has a record of the flow's block */
	int64_t delay_ns, mean_ns, first_ns, jitter_ns;
	/* Pulse marking: packets are counted from this block's pulse on. */
	uint64_t since;
	uint64_t deadline_ns;    /* time until which records were awaited, at least */
	uint64_t clock_error_ns; /* sum of all points' errors; UINT64_MAX: not known */
	uint64_t late, early;    /* packets at the receiving points */
	uint32_t pulses_sent, pulses_received;
	const uint32_t *missing; /* points of the segment that did not report; valid in the call */
	uint32_t n_missing;
};

/* Returns true when all packets of a known block were counted; only such results go into sums. When
 * more pulses of multiplexed marking were received than sent, one is a duplicate or from another
 * block. */
static inline bool pl_mark_result_is_sound(const struct pl_mark_result *r)
{
	return (r->has & PL_MARK_HAS_LOSS) != 0 &&
	       (r->alarms & (PL_MARK_ALARM_PARTIAL | PL_MARK_ALARM_NO_ROOM | PL_MARK_ALARM_STEPPED |
				    PL_MARK_ALARM_BEYOND | PL_MARK_ALARM_CLOCK_FAULT)) == 0 &&
	       (r->method != PL_MARK_MULTIPLEXED || r->pulses_received <= r->pulses_sent);
}

/* A segment: packets go in at some points and come out at others; a path's link has one of each. */
struct pl_mark_segment {
	const uint32_t *from, *to; /* points */
	uint32_t n_from, n_to;
};

/* Makes a record of the result; `s` is its segment. Counts of late and early packets, points and
 * pulses that do not fit become their largest value. */
void pl_mark_segment_record(
	struct pl_seg192 *ret, const struct pl_mark_result *r, const struct pl_mark_segment *s);

struct pl_mark_correlator_config {
	const struct pl_mark_segment *segments; /* copied */
	uint32_t n_segments;
	uint32_t blocks_max; /* most blocks of flows at a time; 0: 65536 */
	uint64_t clock_ns;   /* largest difference of clocks; 0: by the points' records */
	/* Records of a block are awaited until meters read it (pl_mark_read_at()), and this
	 * long. */
	uint64_t patience_ns;
	/* Times are UTC: a block ends by its first record's TAI offset. Otherwise times are of the
	 * points' clocks. */
	bool utc;
	/* Records come when their blocks are read: those with a later deadline are left out, and the
	 * clock of a point whose record comes more than half a period early is ahead (clock-fault).
	 * 0: records may come at any time. */
	uint64_t ahead_ns;
	bool shares; /* room is shared by senders (pl_mark_correlate_from) */
	/* A point that reported a block and the next one, but not the flow, saw no packet of it. A
	 * block without some point's record waits one period longer, for that point's next
	 * block. */
	bool absent;
	void (*result)(void *arg, const struct pl_mark_result *result);
	void *arg;
};

struct pl_mark_correlator_stats {
#define PL_STAT PL_STAT_MEMBER
#include "mark/correlate_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_mark_correlator_stats_list;

struct pl_mark_correlator;

/* Makes a correlator. Returns 0, -EINVAL with diag, or -ENOMEM. */
int pl_mark_correlator_new(struct pl_mark_correlator **ret,
	const struct pl_mark_correlator_config *config, struct pl_diag *diag);
void pl_mark_correlator_free(struct pl_mark_correlator *c);

/* Takes a record from anywhere. It may complete its block, whose results are given before this
 * returns. */
void pl_mark_correlate(struct pl_mark_correlator *c, const struct pl_mark128 *record);
/* Takes a record of this sender, for correlators with `shares`: when all places are taken, a
 * finished block makes room, or one of a sender that holds more than this one would. Otherwise the
 * record is left out. So no flood pushes out the records of others. */
void pl_mark_correlate_from(struct pl_mark_correlator *c, const struct pl_addr *sender,
	const struct pl_mark128 *record);
/* Notes that some records of the point, about this block, are lost: nothing is concluded from
 * absent records of flows. */
void pl_mark_correlate_torn(struct pl_mark_correlator *c, uint32_t point, uint64_t block);
/* Notes that records of the sender are lost, of unknown points: for its present blocks, and the
 * next block of each of its points, nothing is concluded from absent records. */
void pl_mark_correlate_gap(struct pl_mark_correlator *c, const struct pl_addr *sender);
/* Sets the time back to time_ns: gives the results of all blocks, drops them, and begins with
 * none. */
void pl_mark_correlator_begin_anew(struct pl_mark_correlator *c, uint64_t time_ns);
/* Changes clock_ns, for results to come. */
void pl_mark_correlator_set_clock(struct pl_mark_correlator *c, uint64_t clock_ns);
/* Number of blocks that wait one period longer (absent). */
uint32_t pl_mark_correlator_postponed(const struct pl_mark_correlator *c);
/* Returns the most memory of a correlator with n_points points, in bytes. */
uint64_t pl_mark_correlator_memory(
	const struct pl_mark_correlator_config *config, uint32_t n_points);

/* Gives the results of blocks whose deadline is before that time (of the points' clock, TAI, or
 * UTC), as they are. UINT64_MAX: of all. */
void pl_mark_correlate_until(struct pl_mark_correlator *c, uint64_t time_ns);

const struct pl_mark_correlator_stats *pl_mark_correlator_stats(const struct pl_mark_correlator *c);
