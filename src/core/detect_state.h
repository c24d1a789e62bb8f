/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * State of detection in memory: the same bytes in a heap region of user space and in the array maps
 * of the kernel program, which user space maps. Every table is an array of sets of eight ways; a
 * set is one line of way words, one of owners, and eight entries that begin with their key.
 * detect_table.h finds and makes entries, detect_steps.h updates them, detect/tables_tick.c ends
 * and ages them.
 *
 * A way word: tag in the upper half (0: free, PL_CORE_TAG_BUSY: being filled), in the lower half
 * the time when the key was last seen, in units of 2^20 ns, modulo 2^32 (52 days; idle entries are
 * gone long before).
 *
 * An entry's owner is the source of the report that made it (pl_core_source). When a set is full
 * and no entry is idle, a new key replaces an entry of the owner with most entries in the set
 * (pl_core_take), so that one source does not take a table from all others. In the table of
 * exporters an entry that is not followed is replaced before one that is, whatever their owners:
 * core/detect_exporters.h.
 *
 * Writers: on the heap one thread. In the kernel program, the tables of a receive queue are updated
 * by the holder of the turn (core/turn.h): by the program for a report, by user space for escalated
 * reports and for ticks. So each key has one state, and each event of it is made once. Readers
 * (pages, harvests) read without a turn: they see whole aligned words, and compare an entry's way
 * with its value before. A harvest takes a maximum by an exchange of its word.
 */
#pragma once

#include "core/detect_core.h"
#include "core/detect_types.h"
#include "core/sequence.h"

#define PL_CORE_WAYS     8
#define PL_CORE_TAG_BUSY 2 /* real tags are odd */

/* Tables: PL_CORE_TABLE(name: struct pl_core_<name>, "what it holds"). */
#define PL_CORE_TABLES(TABLE)                                                                      \
	TABLE(place, "queues: node, egress port, queue id")                                        \
	TABLE(gauge, "egress ports and buffers of nodes")                                          \
	TABLE(link, "links between nodes")                                                         \
	TABLE(flow, "flows")                                                                       \
	TABLE(drop, "drops: node, reason")                                                         \
	TABLE(exporter, "sequence spaces of reports")                                              \
	TABLE(route, "paths")                                                                      \
	TABLE(burst, "queues above the microburst threshold now")                                  \
	TABLE(delay, "flows whose path latency is watched")

enum {
#define TABLE(name, help) PL_CORE_T_##name,
	PL_CORE_TABLES(TABLE)
#undef TABLE
		PL_CORE_T_MAX
};

/* --- quantities ------------------------------------------------------------------------------- */

enum pl_core_quantity_id {
	PL_CORE_Q_HOP_LATENCY, /* hop latency and queue depth are of a place */
	PL_CORE_Q_QUEUE_DEPTH,
	PL_CORE_Q_TX_UTIL, /* utilisation and buffer depth are of a gauge */
	PL_CORE_Q_BUFFER_DEPTH,
	PL_CORE_Q_LINK_LATENCY, /* of a link */
	PL_CORE_Q_FLOW_LATENCY, /* of a delay */
	PL_CORE_Q_MAX,
};

/* Band of values: one with (uint32_t)(v - lo) < span causes no event. span 0: every value is looked
 * at. */
struct pl_core_band {
	uint32_t lo, span;
};

struct pl_core_quantity {
	/* sums since the entry was made; harvests and baselines are differences of them */
	uint64_t n, sum;
	uint64_t dev_sum;       /* sum of the distances from the mean */
	uint64_t window_end_ns; /* end of the baseline's window; 0: no value yet */
	uint32_t mean, dev;     /* baseline; in use from learn_windows windows on */
	uint32_t last, max;     /* max: a harvest sets it to 0 */
	uint32_t windows;       /* windows learned so far, saturating */
	uint32_t told;          /* last reported value, of steps */
	uint32_t told_known;
	/* bytes of a unit, if its values are an occupancy with a known unit; 0: they are reported
	 * as they are */
	uint32_t unit_bytes;
	struct pl_core_level level, odd; /* odd: level of the distance from the mean */
	uint64_t level_due_ns, odd_due_ns, step_due_ns;
	uint64_t n_mark, sum_mark, dev_mark; /* values at the window's begin */
	uint64_t mean_256, dev_256;          /* baseline in 256ths */
};

#define PL_CORE_HIST 33 /* bucket 0: up to 1; i: above 2^(i-1), up to 2^i */

struct pl_core_hist {
	uint64_t count[PL_CORE_HIST];
	uint64_t sum; /* sum of the counted values: copies are not counted */
};

/* --- entries ---------------------------------------------------------------------------------- */

struct pl_core_place_key {
	uint64_t node;
	uint32_t port;
	uint16_t queue;
	uint16_t has; /* PL_CORE_HAS_* */
};
#define PL_CORE_HAS_PORT   1
#define PL_CORE_HAS_QUEUE  2
#define PL_CORE_HAS_BEFORE 4 /* link: the egress port at its sender */
#define PL_CORE_HAS_BUFFER 8 /* gauge: port is a buffer id */

struct pl_core_place {
	struct pl_core_place_key key;
	struct pl_core_band band[2]; /* hop latency, queue depth */
	uint64_t packets;            /* reported packets, without copies */
	uint64_t burst_since_ns;     /* time since which it is above the microburst threshold; 0: it
				      * is not */
	uint64_t burst_due_ns, loop_due_ns;
	struct pl_core_quantity q[2];
	struct pl_core_hist hist[2];
	uint64_t told_ns;             /* time at which the entry was made */
	struct pl_core_jitter jitter; /* jitter of the hop latencies in hist[0] */
	uint64_t spare;
};

struct pl_core_gauge {
	struct pl_core_place_key key;
	struct pl_core_band band;
	uint64_t packets;
	uint64_t spare[4];
	struct pl_core_quantity q;
};

struct pl_core_link_key {
	uint64_t node, peer;
	uint32_t ingress_port, peer_port;
	uint64_t has;
};

struct pl_core_link {
	struct pl_core_link_key key;
	struct pl_core_band band;
	uint64_t packets;
	struct pl_core_jitter jitter;
	struct pl_core_quantity q;
	struct pl_core_hist hist;
	uint64_t clock[PL_CLOCK_MAX]; /* reports by the state of the two clocks */
	uint64_t spare2[2];
};

struct pl_core_flow {
	struct pl_flow_key key;
	uint64_t path_id; /* last complete path; 0: none known */
	uint64_t packets; /* reported packets, without copies */
	uint64_t bytes;   /* bytes of packets with a known size */
	uint64_t first_ns, last_ns;
	uint64_t path_due_ns;
	uint64_t told_ns; /* time of the start, or of the last keepalive event */
	uint32_t started; /* its start was an event */
	uint32_t nodes;   /* with `ports`: known parts of that path (core/path_known.h) */
	/* Print of the stack that gave path_id, if no node is in it twice (core/detect_fast.h); 0:
	 * none. Only the fast path uses it: results of the slow path do not depend on it. */
	uint64_t print;
	uint64_t ports;
};

/* Path latency of a flow: the sum of its hops' latencies. Kept only if that is watched. */
struct pl_core_delay {
	struct pl_flow_key key;
	struct pl_core_band band;
	uint64_t spare;
	struct pl_core_quantity q;
};

struct pl_core_drop_key {
	uint64_t node;
	uint64_t reason; /* has_node << 16 | has_reason << 8 | reason */
};

struct pl_core_drop {
	struct pl_core_drop_key key;
	uint64_t reports; /* dropped packets in all, by reports */
	uint64_t told;    /* dropped packets that events reported */
	uint64_t due_ns;
	uint64_t spare[3];
};

struct pl_core_exporter_key {
	struct pl_addr addr;
	uint64_t node;
	uint64_t hw_id;
};

/* Reported loss of an exporter, and its state when the tick last looked. Only ticks write it. */
struct pl_core_loss {
	uint64_t reports;            /* reports at the last check, called "then" below */
	uint64_t lost;               /* lost then, without gaps that may still be filled */
	uint64_t before;             /* lost before the present loss */
	uint64_t begun_ns, grown_ns; /* times of the present loss */
	uint32_t highest;            /* highest number then */
	uint32_t open;               /* a loss goes on */
};

struct pl_core_exporter {
	struct pl_core_exporter_key key;
	struct pl_sequence seq;
	struct pl_core_loss loss;
	uint64_t first_ts_ns, last_ts_ns;
	uint8_t report_version;
	/* Set by user space only: the program could not read some numbers of the exporter, so user
	 * space counts all of them from now on (detect/numbers.h). */
	uint8_t above;
	/* 1: its losses are events, and only an owner with fewer ways of the set can take its
	 * place */
	uint8_t followed;
	uint8_t zero[5];
	uint64_t above_ts_ns; /* the program's ts_ns when above was set */
};

#define PL_CORE_ROUTE_NODES 16

/* A complete path, for the web pages; only if aggregates are kept. */
struct pl_core_route {
	uint64_t path_id;
	uint64_t zero;
	uint64_t packets;
	uint64_t latency_n, latency_sum; /* of reports in which each hop has a latency */
	uint32_t latency_max, hop_count;
	uint64_t spare[2];
	struct pl_core_hist hist;
	uint64_t node[PL_CORE_ROUTE_NODES]; /* first nodes, source first */
	uint64_t spare2[6];
};

#define PL_CORE_BURST_FLOWS 8

struct pl_core_burst_flow {
	struct pl_flow_key key;
	uint64_t packets;  /* upper bound of the packets (space saving, Metwally et al. 2005) */
	uint32_t delay_ns; /* largest delay */
	uint32_t known;
};

/* A burst, kept until the tick has reported it. */
struct pl_core_burst {
	struct pl_core_place_key key;
	uint64_t since_ns, packets, bytes;
	uint64_t ended_ns, ended_ts_ns; /* 0: it goes on */
	uint32_t max;
	uint32_t unit_bytes; /* unit of max, as in struct pl_core_quantity */
	struct pl_core_burst_flow top[PL_CORE_BURST_FLOWS];     /* flows that brought most */
	struct pl_core_burst_flow delayed[PL_CORE_BURST_FLOWS]; /* flows that were delayed most */
};

/* --- sets ------------------------------------------------------------------------------------- */

#define TABLE(name, help)                                                                          \
	struct pl_core_##name##_set {                                                              \
		uint64_t way[PL_CORE_WAYS];                                                        \
		uint64_t owner[PL_CORE_WAYS];                                                      \
		struct pl_core_##name e[PL_CORE_WAYS];                                             \
	};                                                                                         \
	_Static_assert(sizeof(struct pl_core_##name) % 64 == 0, "whole cache lines");
PL_CORE_TABLES(TABLE)
#undef TABLE

_Static_assert(sizeof(struct pl_core_quantity) == 192, "three cache lines");
_Static_assert(
	offsetof(struct pl_core_place, q) == 64, "what every hop needs is in the first line");
_Static_assert(sizeof(struct pl_core_flow) == 128, "two cache lines");

/* --- rules ------------------------------------------------------------------------------------ */

#define PL_CORE_NO_THRESHOLD UINT32_MAX

struct pl_core_quantity_rule {
	struct pl_core_level_rule level; /* threshold PL_CORE_NO_THRESHOLD: none */
	/* level of an anomaly: its hold times; threshold is the least distance that counts */
	struct pl_core_level_rule odd;
	uint32_t relative;  /* begins above the mean plus this part of it, in 65536ths; 0: off */
	uint32_t odd_times; /* begins above this multiple of the deviation, in 16ths; 0: off */
	uint32_t step;      /* a change by more than this is an event; 0: off */
	/* part of the last reported value, in 65536ths: a larger change is an event; 0: off */
	uint32_t step_relative;
	uint8_t step_shift;    /* number of lowest bits whose change is no event; 0: off */
	uint8_t step_first;    /* a key's first value is an event, too */
	uint8_t on;            /* any of the above, or a microburst threshold */
	uint8_t learn;         /* one of them needs a baseline */
	uint32_t relative_min; /* but not below this, whatever the mean is */
};

/* Units of occupancy (docs/decisions/0021). A node writes occupancies in a unit of its own; values
 * and baselines in the tables keep it. Thresholds are in bytes if the unit is known: they are
 * divided by it, rounded down, for v * unit_bytes > t is v > t / unit_bytes. */
#define PL_CORE_UNITS      64
#define PL_CORE_UNIT_BYTES 65536 /* largest: a value of 32 bits times it is far from 64 bits */

struct pl_core_unit {
	uint64_t first, last;               /* nodes */
	uint32_t queue_bytes, buffer_bytes; /* bytes of a unit; 1: values are bytes; 0: unknown */
};

/* Units of nodes: the first entry that covers a node applies. */
struct pl_core_units {
	uint32_t n, zero;
	struct pl_core_unit of[PL_CORE_UNITS];
};

#define PL_CORE_SECRETS 48

/* Values that follow from secret and rules, computed once by pl_fast_prepare (core/report_fast.h):
 * while all are zero, the fast path is not taken. In a key with IPv4 addresses every other half of
 * a word is known. */
struct pl_core_prepared {
	uint64_t turned[7];            /* secrets with their halves exchanged */
	uint64_t low2, low4;           /* secret 2 and 4, with the known half of an address */
	uint64_t exporter_v4, flow_v4; /* words that are known */
	uint32_t fast;                 /* 1: the rules permit the fast path */
	uint32_t keeps;                /* not 0: reports on the fast path add to sums */
};

/* Rules of detection. They are replaced at run time as a whole; then every band must be emptied
 * (pl_tables_unband), so that the new rules judge the next value of each key. Geometry (secret,
 * mask) belongs to the tables and stays. */
struct pl_core_rules {
	uint64_t secret[PL_CORE_SECRETS]; /* random: keys come from the network */
	uint32_t mask[PL_CORE_T_MAX];     /* sets of each table less one; they are a power of two */
	struct pl_core_quantity_rule q[PL_CORE_Q_MAX];
	struct pl_core_limit_rule limit[PL_EVENT_KIND_MAX]; /* per key */
	uint64_t flow_idle_ns;                              /* a flow not seen for longer is over */
	uint64_t idle_ns;      /* a raised level not seen for longer ends */
	uint64_t forget_ns;    /* any other entry not seen for longer is removed */
	uint64_t loss_hold_ns; /* a loss is over when nothing more was lost for so long */
	uint64_t node_silent_ns;
	uint64_t keepalive_ns; /* 0: never */
	uint64_t burst_max_ns; /* longer build-ups are no microbursts */
	uint64_t learn_window_ns;
	uint32_t burst_threshold; /* queue depth; PL_CORE_NO_THRESHOLD: no microbursts */
	uint32_t learn_windows;   /* windows until a baseline is used */
	uint32_t learn_shift;     /* a window moves it by 2^-learn_shift of the difference */
	uint32_t burst_flows;     /* culprits and victims to report, PL_CORE_BURST_FLOWS each at
				   * most */
	uint32_t on;              /* 1 << PL_EVENT_x of the kinds without a quantity */
	uint32_t flags;           /* PL_CORE_KEEP_*, PL_CORE_PROVE */
	uint32_t sequence_gap_max;
	uint32_t watch; /* 1 << PL_CORE_Q_x of quantities that are on, or kept */
	struct pl_core_prepared prepared;
	struct pl_core_units units;
};
#define PL_CORE_KEEP_AGGREGATES 1
#define PL_CORE_PROVE           4 /* reports count once their exporter is proven */
#define PL_CORE_KEEP_PLACES     2 /* every hop gets a place: nodes are watched */

/* --- counters --------------------------------------------------------------------------------- */

/* Sums over accounts of proven exporters (core/sequence.h); lost: skipped less recovered. */
struct pl_core_accounts {
	uint64_t skipped, recovered, reordered, duplicates, restarts;
};

/* Counters of each side that writes; readers add them up. */
struct pl_core_counters {
	uint64_t events[PL_EVENT_KIND_MAX];
	uint64_t limited[PL_EVENT_KIND_MAX]; /* events held back by the limit per key */
	uint64_t events_dropped;             /* events without room */
	uint64_t reports, hops;
	uint64_t raised, ended;       /* levels that began and ended, reported or not */
	uint64_t made[PL_CORE_T_MAX]; /* entries made */
	uint64_t aged[PL_CORE_T_MAX]; /* entries removed because idle */
	uint64_t evicted
		[PL_CORE_T_MAX];      /* entries replaced while not idle: the table is too small */
	uint64_t full[PL_CORE_T_MAX]; /* keys without a place: no way could be taken */
	uint64_t nodes_full;          /* nodes not watched for silence, for lack of room */
	uint64_t unproven;  /* reports of exporters that are not proven, counted nowhere else */
	uint64_t untracked; /* reports of proven exporters that are not followed: no room */
	uint64_t displaced; /* followed exporters that were evicted for others */
	struct pl_core_accounts accounts; /* those whose entries were removed */
};

/* Nodes of the present report, to find loops. One per side. */
#ifndef PL_CORE_TRAIL
#define PL_CORE_TRAIL 256 /* a power of two; loops within this many first hops are found */
#endif

struct pl_core_trail {
	uint64_t seen; /* one bit per node met, by a hash */
	uint64_t told; /* 1: a loop was found; only the first of a report is an event */
	uint64_t node[PL_CORE_TRAIL];
};
