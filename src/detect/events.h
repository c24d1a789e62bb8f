/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events out of record batches: the user-space host of the steps in core/detect_steps.h. One
 * detector per worker; it shares nothing, reads no clock and allocates nothing after pl_detect_new.
 * The kernel program runs the same steps, so both come to the same events.
 *
 *   path_change   once; a flow's complete path has another path_id than its last one. Paths that
 *                 are partial, intermediate, of dropped packets or of copies conclude nothing, nor
 *                 do modes that report node by node.
 *   loop          once; a node stands twice in one path. value: hops from the first time to the
 *                 second.
 *   hop_latency, queue_depth (of node, port, queue), tx_util (node, port), buffer_depth (node,
 *   buffer),
 *   link_latency (node, ingress port, node before, its port): as a level, and as steps.
 *   flow_latency  likewise, of a flow: the sum of its hops' latencies, where the whole path gave
 *                 them.
 *     level       begin when the value is above the threshold, or above the baseline by the
 *                 relative one, for begin_hold_ns; end when it was at or below the lower bound for
 *                 end_hold_ns, or the key was not seen for idle_ns. value: at begin the one that
 *                 crossed, at end the largest.
 *     steps       once; the value moved far enough from the last one reported (old_value).
 *   anomaly       begin and end as a level, of the distance between the value and its baseline,
 *                 in mean deviations. value: at begin the value, at end the largest distance.
 *   packet_drop   once; value is the number of packets of (node, reason) in drop reports since
 *                 the last such event; a summary (Host-INT) reports several.
 *   packet_loss   of a flow that is numbered at its source: begin when a number is missing although
 *                 the exporter's reports are all there, end when none more was for loss_hold_ns.
 *                 value: packets lost since the begin.
 *   reordering    likewise, of numbers that come after a later one.
 *   report_loss   of an exporter: begin when a number is missing, end when none more was for
 *                 loss_hold_ns. value: reports lost since the begin.
 *   microburst    once; a queue was above the threshold, for no longer than max_ns. value: the
 *                 largest depth; then its culprits (value: packets brought) and victims (value:
 *                 largest hop latency).
 *   flow_start    once; flow_end once, value the packets reported on.
 *   node_silent   begin when a known node was in no report for node_silent_ns; end when it is
 *                 in one again.
 *   keepalive     once per interval for every flow that goes on.
 *
 * The baseline and mean deviation of a key are learned: the mean, and the mean distance from it, of
 * each window of time move them by 2^-shift; they are used once learn.windows windows have passed.
 * A value that lasts becomes the baseline.
 *
 * Reports flagged UNPROVEN change nothing and cause no event.
 *
 * Every kind but report_loss, flow_start, flow_end and keepalive is limited per key: at most
 * `burst` events at once and one per interval after. Events that the limit held back are counted; a
 * begin that was held back has no end.
 *
 * Time: now_ns is monotonic and drives the rules; ts_ns (since the Unix epoch) only stamps events.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/detect_state.h"
#include "decode/decode.h"
#include "record/path_book.h"
#include "record/record.h"

/* Batch that takes events. The owner sets cap and the array once; flush, when given, must empty it.
 * Without flush, or when flush leaves it full, further events are dropped and counted
 * (events_dropped). */
struct pl_event_batch {
	struct pl_event *events;
	uint32_t n, cap;
	void (*flush)(struct pl_event_batch *batch, void *arg);
	void *flush_arg;
};

int pl_event_batch_init(struct pl_event_batch *batch, uint32_t cap); /* returns 0 or -ENOMEM */
void pl_event_batch_done(struct pl_event_batch *batch);

/* Rules for a quantity that is watched. */
struct pl_detect_level {
	bool on;                /* watched as a level, by threshold or relative */
	uint64_t threshold;     /* begins above it; 0: no absolute threshold */
	uint64_t low;           /* ends at or below it; 0: half of the threshold */
	uint32_t relative;      /* begins this many per cent above the baseline; 0: off */
	uint32_t relative_min;  /* and above this value */
	uint64_t begin_hold_ns; /* time above before it begins; 0: at once */
	uint64_t end_hold_ns;   /* time below before it ends; 0: 1 s */
	bool step_first;        /* a key's first value is an event */
	uint32_t step;          /* a change by more than this is an event; 0: off */
	uint32_t step_relative; /* an event at a larger change, per cent of the last; 0: off */
	uint32_t step_bits;     /* an event at a change above this many lowest bits; 0: off */
	bool anomaly;
	uint32_t anomaly_min;       /* distances up to this are no anomaly */
	uint64_t limit_interval_ns; /* 0: the one of all kinds */
	uint32_t limit_burst;       /* 0: the one of all kinds */
};

struct pl_detect_options {
	bool path_change, report_loss, packet_drop, loop, flow_start, flow_end;
	bool packet_loss, reordering; /* by the numbers of the flows themselves */
	struct pl_detect_level queue_depth, hop_latency, link_latency, tx_util, buffer_depth,
		flow_latency;
	struct {
		bool on;
		uint32_t threshold; /* queue depth */
		uint64_t max_ns;    /* 0: 10 ms */
		uint32_t flows;     /* culprits and victims that are reported; at most
				 * PL_CORE_BURST_FLOWS each */
	} microburst;
	struct {
		uint64_t window_ns;  /* 0: 1 s */
		uint32_t windows;    /* 0: 30; windows before a baseline is used */
		uint32_t shift;      /* 0: 5; a window moves it by 2^-shift */
		uint32_t deviations; /* 0: 6; an anomaly is off the mean by more deviations than
				      * this */
		uint64_t begin_hold_ns, end_hold_ns; /* hold times of anomalies; end 0: 100 ms */
	} learn;
	uint64_t node_silent_ns; /* 0: off */
	uint64_t keepalive_ns;   /* 0: off */
	uint32_t max_flows;  /* 0: 131072; rounded up to a power of two of eights, as the others */
	uint32_t max_queues; /* 0: 4096; (node, port, queue) */
	uint32_t max_links;  /* 0: 4096; also of ports and buffers together */
	uint32_t max_drops;  /* 0: 1024; (node, reason) */
	uint32_t max_exporters; /* 0: 4096 */
	uint32_t max_numbered; /* 0: an eighth of max_flows; flows whose own numbers are followed */
	uint64_t flow_idle_ns; /* 0: 60 s; a flow not seen for longer starts again */
	uint64_t idle_ns;      /* 0: 5 s; a raised level whose key is not seen ends */
	uint64_t forget_ns;    /* 0: 10 min; a queue, port or link not seen is removed */
	uint64_t loss_hold_ns; /* 0: 10 s; a loss is over when nothing more was lost for so long */
	uint64_t limit_interval_ns; /* 0: 1 s, per key */
	uint32_t limit_burst;       /* 0: 5, per key */
	uint32_t sequence_gap_max;  /* 0: 65536; for tables that count sequence numbers */
	bool prove;      /* those tables count reports only of proven exporters (core/sequence.h) */
	bool numbers;    /* the tables count sequence numbers: the packet path has no decoder */
	bool aggregates; /* sums and histograms beside the state */
	/* Units of occupancies: for these nodes thresholds are in bytes. */
	struct pl_core_units units;
};

struct pl_detect;

/* Counters of flows that are numbered at their source (detect/flow_numbers.h). */
struct pl_flow_number_counters {
	uint64_t packets;         /* packets with a number */
	uint64_t lost, reordered; /* certain cases */
	/* lost or reordered, or their reports were: no event, and not in the two above */
	uint64_t unsure;
	uint64_t duplicates, restarts;
	uint64_t flows;     /* flows that are followed now */
	uint64_t full;      /* packets of flows without room: an eighth of max_flows */
	uint64_t displaced; /* flows that were evicted for others */
};

/* Default options: the event kinds that are on are those that a healthy network has none of
 * (rules.c has the thresholds and hold times). */
void pl_detect_defaults(struct pl_detect_options *ret);

/* Makes a detector. Returns 0; -ENOMEM; -EINVAL for low above threshold, a table above 2^26, burst
 * above 10^6, interval above 1 h, a unit above PL_CORE_UNIT_BYTES, or units whose nodes are in no
 * order. */
int pl_detect_new(struct pl_detect **ret, const struct pl_detect_options *options);
/* Makes a detector over existing tables: those of one receive queue of the kernel program, which
 * updates them in turns with the detector (core/turn.h). The detector reads them, processes
 * escalated reports (pl_detect_batch), follows changes of the rules, and is ticked by their owner
 * (detect/kernel_detect.h), who also watches nodes and exporters: neither pl_detect_tick nor
 * pl_detect_exporter is called. Its counters are those of user space only, so pl_detect_flows and
 * pl_detect_raised mean nothing. rules are those of the program, with their secret and masks;
 * sets[t] is the first set of table t. Returns 0, -ENOMEM, or -EINVAL as pl_detect_new. */
int pl_detect_over(struct pl_detect **ret, const struct pl_detect_options *options,
	const struct pl_core_rules *rules, void *const sets[PL_CORE_T_MAX]);
uint64_t pl_detect_over_memory(void);
/* Sets a random secret, and the masks of tables with these entries, in rules: for owners of such
 * tables. */
void pl_detect_geometry(struct pl_core_rules *rules, const uint32_t entries[PL_CORE_T_MAX]);

void pl_detect_free(struct pl_detect *det);
uint64_t pl_detect_memory(const struct pl_detect_options *options);

void pl_detect_batch(struct pl_detect *det, const struct pl_record_batch *batch, uint64_t now_ns,
	struct pl_event_batch *out);

/* Reads one exporter's sequence state; the caller does so for each exporter of pl_decode_exporter,
 * about once a second. */
void pl_detect_exporter(struct pl_detect *det, const struct pl_exporter *exporter, uint64_t now_ns,
	uint64_t ts_ns, struct pl_event_batch *out);
/* Called after all of them: exporters that were not among them are not followed any more. Their
 * present events end; then others have the room. */
void pl_detect_exporters_over(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);
/* Does both for all exporters of a decoder; on the decoding thread. */
void pl_detect_exporters(struct pl_detect *det, const struct pl_decode *decode, uint64_t now_ns,
	uint64_t ts_ns, struct pl_event_batch *out);

/* Called for a new detector on a decoder that has counted before: what its exporters have lost
 * until now is no event. */
void pl_detect_adopt(struct pl_detect *det, const struct pl_decode *decode, uint64_t now_ns,
	uint64_t ts_ns, struct pl_event_batch *out);

/* Ends events that are over without a further report, reports drops held back, frees idle cells.
 * About every 100 ms to 1 s. */
void pl_detect_tick(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);

/* Live counters: read them on the detecting thread. raised less ended are the levels raised now; of
 * each table made less aged less evicted are its entries. */
const struct pl_core_counters *pl_detect_counters(const struct pl_detect *det);

/* Number of entries in a table now, counted. */
uint64_t pl_detect_present(const struct pl_detect *det, unsigned int table);

/* Follows the numbers of the flows: for a detector that sees all reports of its exporters; after
 * pl_detect_batch, and about once a second after pl_detect_exporters. */
void pl_detect_numbers(struct pl_detect *det, const struct pl_record_batch *batch, uint64_t now_ns);
/* Sets, before pl_detect_exporters, the number of packets since the start for which this machine
 * had no room. Missing numbers of flows may be those of such packets. counted: some of them are
 * reports whose numbers are nevertheless in their exporters' accounts. */
void pl_detect_unseen(struct pl_detect *det, uint64_t packets, bool counted);
void pl_detect_numbers_tick(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);
const struct pl_flow_number_counters *pl_detect_number_counters(const struct pl_detect *det);

/* Nodes of a complete path that the tables follow (options.aggregates); false when the path is not
 * among them. */
bool pl_detect_route(const struct pl_detect *det, uint64_t path_id, struct pl_path_nodes *ret);

/* Sequence spaces that the tables count (options.numbers); start with *pos = 0, false at the
 * end. */
bool pl_detect_sequence(const struct pl_detect *det, uint64_t *pos, struct pl_exporter *ret);
/* Adds the accounts of all proven exporters in the tables; those of removed ones are among the
 * counters. */
void pl_detect_add_accounts(const struct pl_detect *det, struct pl_core_accounts *to);

/* Returns the present numbers of known flows and of raised levels. */
uint64_t pl_detect_flows(const struct pl_detect *det);
uint64_t pl_detect_raised(const struct pl_detect *det);

/* Changes the rules from here on, and keeps the state. Returns 0, or -EINVAL as pl_detect_new or
 * when the sizes of tables differ. Levels whose rule is off now end. */
int pl_detect_change(struct pl_detect *det, const struct pl_detect_options *options,
	uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);
/* Ends all that has begun: levels, anomalies, losses, silent nodes. For a detector that is
 * replaced, or whose source is removed; it detects nothing afterwards. */
void pl_detect_end(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);
/* Checks whether such a change is possible, and computes its rules. */
int pl_detect_check_change(const struct pl_detect *det, const struct pl_detect_options *options,
	struct pl_core_rules *ret);

/* Computes the rules that follow from options, for the kernel program; the owner of the tables sets
 * secret and mask. Returns 0, or -EINVAL as pl_detect_new. */
int pl_detect_rules(struct pl_core_rules *ret, const struct pl_detect_options *options);
/* Number of entries of each table by the options. */
void pl_detect_entries(const struct pl_detect_options *options, uint32_t ret[PL_CORE_T_MAX]);

/* State of a flow in the tables. */
struct pl_flow_seen {
	struct pl_flow_key key;
	uint64_t path_id; /* 0: not known */
	uint64_t packets, bytes, first_ns, last_ns;
	bool numbered; /* the flow's own numbers are followed; according to them: */
	uint64_t lost, reordered;
	uint64_t hash; /* internal to detect/ */
};

/* Writes the n flows with the most packets to ret, the most first, chosen from the table and the
 * `have` that ret has already; returns how many there are then. Reads the whole table. */
uint32_t pl_detect_top_flows(
	const struct pl_detect *det, struct pl_flow_seen *ret, uint32_t n, uint32_t have);
