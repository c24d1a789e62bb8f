/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Present state of the network, computed from record batches: cells per queue, per egress port, per
 * link and per path. Each worker owns one aggregate and shares it with no thread; at a quiet point
 * it copies it into a second one (pl_aggregate_copy) that readers merge from. Tables are sized
 * once. A key that no longer fits goes into the table's overflow cell and is counted; a key that
 * was idle for idle_ns is removed, so that parts removed from the network disappear from the page
 * too. A cell belongs to the source (base/shares.h) whose report named it first. When a table is
 * full, a new key replaces a cell of a source with more cells, whose counts move into the overflow
 * cell: no sender keeps others out of the tables. The value that caused the replacement itself is
 * counted in the overflow cell.
 *
 * Reports flagged COPY (clones, probes) move the gauges, because their queue values are valid, but
 * neither counts nor histograms. Of reports flagged UNPROVEN only the number is counted. Hops
 * without a node id belong to no cell; they are counted.
 *
 * No function here reads a clock: pl_aggregate_tick gets the time (monotonic, nanoseconds). Bounds
 * on a page: at most max_queues + max_ports + max_links + max_paths cells and four overflow cells.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "core/detect_core.h"
#include "decode/decode.h"
#include "detect/exemplar.h"
#include "record/record.h"

struct pl_aggregate_options {
	uint32_t max_queues; /* 0: 4096; at most 2^20, as the others */
	uint32_t max_ports;  /* 0: 4096 */
	uint32_t max_links;  /* 0: 4096 */
	uint32_t max_paths;  /* 0: 4096 */
	uint64_t idle_ns;    /* 0: 5 min; UINT64_MAX: never remove */
	uint64_t slot_ns;    /* 0: 15 s; length of the fixed slots that maxima are kept for */
};

/* Maximum of the current slot and of the one before it. Slots are fixed in time and reading resets
 * nothing: any number of scrapers that come at least once per slot each see every maximum. */
struct pl_slot_max {
	uint64_t slot;
	uint32_t current, previous;
	bool has_current, has_previous;
};

/* Optional parts of a key. */
#define PL_KEY_HAS_PORT    1 /* egress port of a queue, a port, or node a of a link */
#define PL_KEY_HAS_QUEUE   2
#define PL_KEY_HAS_INGRESS 4 /* ingress port of node b */

/* Owner of a cell. */
struct pl_agg_owner {
	struct pl_addr source; /* unspecified: packets that carry telemetry themselves */
	uint32_t share, zero;
};

struct pl_queue_key {
	uint64_t node;
	uint32_t port;
	uint16_t queue;
	uint16_t has;
};

struct pl_link_key {
	uint64_t a, b;           /* node ids */
	uint32_t a_port, b_port; /* egress of a, ingress of b */
	uint64_t has;
};

struct pl_path_key {
	uint64_t path_id;
	uint64_t zero;
};

/* Jitter of one series of delays: of several workers, that of the one with the last report. */
struct pl_agg_jitter {
	struct pl_core_jitter at;
	uint64_t ts_ns; /* arrival of the last report; 0: none */
};

/* Jitter in ns; false before there were two delays. */
bool pl_agg_jitter(const struct pl_agg_jitter *j, const struct pl_hist *delays, double *ret_ns);
/* Distance above the smallest delay within which this share of the delays stays, in ns (RFC 5481,
 * PDV), by the bounds of the histogram's buckets; false when there is no delay, or the distance is
 * beyond the bounds. */
bool pl_agg_variation(const struct pl_hist *delays, double share, uint64_t *ret_ns);

struct pl_agg_queue {
	struct pl_queue_key key;
	uint64_t seen_ns;    /* tick time of the last report */
	uint64_t packets;    /* reported packets, without copies */
	uint64_t last_ts_ns; /* arrival of the report that gave last_depth */
	uint32_t last_depth;
	bool has_depth;
	struct pl_slot_max depth_max;
	struct pl_exemplar_gate depth_gate, latency_gate;
	struct pl_hist depth;
	struct pl_hist latency; /* hop latency, ns */
	struct pl_agg_jitter jitter;
	struct pl_exemplars depth_exemplars, latency_exemplars;
	struct pl_agg_owner owner;
};

struct pl_agg_port {
	struct pl_queue_key key; /* queue not used */
	uint64_t seen_ns;
	uint64_t packets;
	uint64_t last_ts_ns;
	uint32_t last_util;
	bool has_util;
	struct pl_slot_max util_max;
	struct pl_agg_owner owner;
};

struct pl_agg_link {
	struct pl_link_key key;
	uint64_t seen_ns;
	uint64_t reports;
	uint64_t clock[PL_CLOCK_MAX]; /* reports by the state of the two clocks */
	struct pl_exemplar_gate latency_gate;
	struct pl_hist latency; /* latency of the PL_CLOCK_OK reports, ns */
	struct pl_agg_jitter jitter;
	struct pl_exemplars latency_exemplars;
	struct pl_agg_owner owner;
};

struct pl_agg_path {
	struct pl_path_key key;
	uint64_t seen_ns;
	uint64_t reports;
	uint64_t last_ts_ns; /* arrival of the last report */
	struct pl_exemplar_gate latency_gate;
	uint8_t hop_count; /* hops of the path; steps holds the first PL_PATH_STEPS_MAX */
	struct pl_path_step steps[PL_PATH_STEPS_MAX];
	struct pl_hist latency; /* sum of hop latencies, if every hop had one, ns */
	struct pl_exemplars latency_exemplars;
	struct pl_agg_owner owner;
};

enum pl_agg_table { PL_AGG_QUEUES, PL_AGG_PORTS, PL_AGG_LINKS, PL_AGG_PATHS, PL_AGG_TABLE_MAX };

struct pl_agg_totals {
	uint64_t unproven; /* reports of exporters that are not proven: counted nowhere else */
	uint64_t reports;  /* all reports, copies included */
	uint64_t copies;
	uint64_t hops;
	uint64_t reports_without_path;        /* copies, partial, dropped or without a path id */
	uint64_t hops_without_node;           /* hops that belong to no cell */
	uint64_t overflow[PL_AGG_TABLE_MAX];  /* entries that went into the overflow cell */
	uint64_t aged[PL_AGG_TABLE_MAX];      /* cells removed for idleness */
	uint64_t displaced[PL_AGG_TABLE_MAX]; /* cells that were evicted for another source */
};

struct pl_aggregate;

/* Makes an empty aggregate. Returns 0, -ENOMEM, or -EINVAL for a limit above 2^20. */
int pl_aggregate_new(struct pl_aggregate **ret, const struct pl_aggregate_options *options);
void pl_aggregate_free(struct pl_aggregate *agg);

/* Size of an aggregate with these options, in bytes. */
uint64_t pl_aggregate_memory(const struct pl_aggregate_options *options);

void pl_aggregate_batch(struct pl_aggregate *agg, const struct pl_record_batch *batch);

/* Sets the time and removes idle cells, a part of the tables per call (all of them within 16
 * calls). Call about once a second. */
void pl_aggregate_tick(struct pl_aggregate *agg, uint64_t now_ns);

/* Makes dst equal to src; both of the same options (asserted). Cost: the cells in use. */
void pl_aggregate_copy(struct pl_aggregate *dst, const struct pl_aggregate *src);
/* Empties the aggregate; options and time stay. */
void pl_aggregate_reset(struct pl_aggregate *agg);
/* Adds `from` to `into`, which may have other options: cells that do not fit go into its overflow
 * cells. */
void pl_aggregate_merge(struct pl_aggregate *into, const struct pl_aggregate *from);
/* So that a sum of several aggregates does not fall when one of them has not seen a key for long
 * that others still see. expire: removes cells from a sum that no part has seen for idle_ns.
 * note_seen: notes in the copy of a part when any part saw each of its keys last. heed: takes these
 * notes over into the part, whose own cells then stay as long as those of the others. */
void pl_aggregate_expire(struct pl_aggregate *sum);
void pl_aggregate_note_seen(struct pl_aggregate *copy, const struct pl_aggregate *sum);
void pl_aggregate_heed(struct pl_aggregate *agg, const struct pl_aggregate *copy);
/* Adds one cell of a table (struct pl_agg_queue, …_port, …_link, …_path), with its source, as a
 * merge does. In the overflow cell it counts as many readings as it has packets or reports. */
void pl_aggregate_add(struct pl_aggregate *agg, enum pl_agg_table table, const void *cell);

/*
 * Iteration: start with *pos = 0, NULL at the end. Order is arbitrary but the same for an unchanged
 * aggregate. The pointer is valid until the aggregate next changes.
 */
const struct pl_agg_queue *pl_aggregate_queue(const struct pl_aggregate *agg, uint32_t *pos);
const struct pl_agg_port *pl_aggregate_port(const struct pl_aggregate *agg, uint32_t *pos);
const struct pl_agg_link *pl_aggregate_link(const struct pl_aggregate *agg, uint32_t *pos);
const struct pl_agg_path *pl_aggregate_path(const struct pl_aggregate *agg, uint32_t *pos);

/* Cell of `table` with the key at `key` (in the form with which cells begin); NULL when there is
 * none. */
const void *pl_aggregate_find(
	const struct pl_aggregate *agg, enum pl_agg_table table, const void *key);

/* Overflow cells; all zero while nothing overflowed. Their keys mean nothing. */
const struct pl_agg_queue *pl_aggregate_queue_overflow(const struct pl_aggregate *agg);
const struct pl_agg_port *pl_aggregate_port_overflow(const struct pl_aggregate *agg);
const struct pl_agg_link *pl_aggregate_link_overflow(const struct pl_aggregate *agg);
const struct pl_agg_path *pl_aggregate_path_overflow(const struct pl_aggregate *agg);

/* Cells in use and their limit. */
uint32_t pl_aggregate_count(const struct pl_aggregate *agg, enum pl_agg_table table);
uint32_t pl_aggregate_limit(const struct pl_aggregate *agg, enum pl_agg_table table);
const struct pl_agg_totals *pl_aggregate_totals(const struct pl_aggregate *agg);
const char *pl_agg_table_name(enum pl_agg_table table); /* "queues", "ports", "links", "paths" */

/* Maximum over the current slot and the one before it; false when neither has a value. */
bool pl_aggregate_max(const struct pl_aggregate *agg, const struct pl_slot_max *max, uint32_t *ret);
/* Number of the current slot, for pl_exemplar_show. */
uint64_t pl_aggregate_slot(const struct pl_aggregate *agg);
