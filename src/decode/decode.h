/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets to records. One `struct pl_decode` per worker: it owns the exporters' sequence state, the
 * table of interned paths and the counters. Decoding a packet is a pure function of its bytes, the
 * options, and (for losses, never for values) the sequence state. After pl_decode_new nothing
 * allocates; the caller owns the batches.
 *
 * One thread calls pl_decode_batch; any thread may read counters at any time; the iteration over
 * exporters and paths belongs to the decoding thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/counter.h"
#include "base/stats.h"
#include "record/record.h"
#include "wire/int.h"
#include "wire/packet.h"
#include "wire/verdict.h"

enum pl_time_unit { PL_UNIT_NS, PL_UNIT_US };
enum pl_tcp_placement { PL_TCP_AUTO, PL_TCP_BEFORE_OPTIONS, PL_TCP_AFTER_OPTIONS };
enum pl_embedded { PL_EMBEDDED_AUTO, PL_EMBEDDED_ANNOUNCED, PL_EMBEDDED_NEVER };

/* Known properties of one exporter, or of all (bits 0). Zero: to be found out, with the standard
 * ports. */
struct pl_profile {
	struct pl_addr prefix;
	unsigned int prefix_bits; /* length of the prefix, of 128 */
	int report_version;       /* 0: by the version nibble; else 1 + enum pl_report_version */
	struct pl_int_hints hints;
	uint8_t tcp_placement;  /* enum pl_tcp_placement */
	uint8_t timestamp_unit; /* enum pl_time_unit of hop timestamps */
	uint8_t latency_unit;   /* enum pl_time_unit of hop latencies */
	uint8_t embedded;       /* INT in inner packets: AUTO also validates where F permits it */
	bool dscp_set;          /* INT announced by (dscp & dscp_mask) == dscp_value */
	uint8_t dscp_value, dscp_mask;
	uint16_t int_port; /* INT announced by this UDP destination port; 0 = none */
	bool marker_set;   /* INT announced by this 64-bit probe marker */
	uint64_t marker;
	/* Set by pl_decode_new. usual: the profile changes nothing that the fast path needs;
	 * layout_key: its part of the keys of layouts. */
	bool usual;
	uint64_t layout_key;
};

/* Format of seconds and fraction of a namespace's nodes (RFC 9197 5). Linux sends POSIX. */
enum pl_ioam_time {
	PL_IOAM_TIME_POSIX, /* since 1970; microseconds */
	PL_IOAM_TIME_PTP,   /* since 1970, by the PTP timescale; nanoseconds */
	PL_IOAM_TIME_NTP,   /* since 1900; 2^-32 s */
};

struct pl_ioam_namespace {
	uint16_t ns;
	uint8_t time; /* enum pl_ioam_time */
};

/* Parses "123=ptp": a namespace and posix, ptp or ntp, as in options and configurations. Returns 0
 * or -EINVAL. */
int pl_ioam_namespace_parse(struct pl_ioam_namespace *ret, const char *text);

#define PL_IOAM_NAMESPACES_MAX 16

struct pl_core_numbered; /* core/detect_types.h */

struct pl_decode_options {
	uint16_t report_ports[16]; /* UDP destination ports of reports; default 32766, 54321 */
	unsigned int n_report_ports;
	const struct pl_profile *profiles; /* copied; the longest matching prefix wins */
	unsigned int n_profiles;
	uint32_t max_exporters; /* (address, node, hw id) sequence spaces; default 4096 */
	/* a new exporter may replace one not seen for longer; default 10 min */
	uint64_t exporter_idle_ns;
	/* an exporter counts once two of its numbers fit each other (core/sequence.h); its earlier
	 * reports are flagged unproven */
	bool prove_exporters;
	uint32_t max_paths; /* interned paths; default 65536 */
	/* a larger jump forward is a restart, not a loss; default 65536 */
	uint32_t sequence_gap_max;
	/* plausibility limit of hop and link latency; default 2 s, at most 4.29 s */
	uint64_t latency_max_ns;
	/* GRE protocol type that announces INT (unassigned); 0 = none */
	uint16_t gre_int_ethertype;
	uint16_t geneve_int_class; /* default 0x0103 */
	/* UDP ports of VXLAN (wire/tunnel_ports.h); default 4789, 8472 */
	uint64_t vxlan_ports;
	/* time format of namespaces; those not listed have POSIX */
	struct pl_ioam_namespace ioam_namespaces[PL_IOAM_NAMESPACES_MAX];
	unsigned int n_ioam_namespaces;
	bool any_port; /* PL_LINK_UDP packets are reports whatever their port */
	/* NULL: the decoder counts sequence numbers. Otherwise this is called, on the decoding
	 * thread, for each datagram whose number can be read, and the decoder has no exporters. It
	 * returns true when the exporter is proven. */
	bool (*number)(void *arg, const struct pl_core_numbered *n, uint64_t ts_ns);
	void *number_arg;
	bool partial;   /* others get the rest of the reports: gaps in numbers mean nothing */
	uint8_t worker; /* part of report ids */
};

struct pl_decode;

int pl_decode_new(struct pl_decode **ret, const struct pl_decode_options *options);
void pl_decode_free(struct pl_decode *d);

/* Returns the size of a decoder with these options, in bytes, as the manual's memory formula
 * computes it. */
uint64_t pl_decode_memory(const struct pl_decode_options *options);

/* Decodes the whole batch into out, flushing out when it fills; the caller flushes the
 * remainder. */
void pl_decode_batch(struct pl_decode *d, const struct pl_batch *in, struct pl_record_batch *out);
/* As pl_decode, for packets that were counted elsewhere: only the counters of the table of paths
 * change. */
void pl_decode_copies(struct pl_decode *d, const struct pl_batch *in, struct pl_record_batch *out);

/* Outcome of a packet of the last batch; valid until the next. notes are PL_NOTE_BIT sets. */
struct pl_outcome {
	uint8_t verdict;  /* enum pl_verdict */
	uint16_t reports; /* reports in the packet */
	uint64_t notes;
};
const struct pl_outcome *pl_decode_outcomes(const struct pl_decode *d);

/* Counters since pl_decode_new. packets = sum of verdicts at every batch boundary. */
struct pl_decode_counters {
#define PL_STAT(kind, member, ...) struct pl_counter member;
#include "decode/counters.def"
#undef PL_STAT
	struct pl_counter verdicts[PL_V_MAX];
	struct pl_counter notes[PL_N_MAX];
};
const struct pl_decode_counters *pl_decode_counters(const struct pl_decode *d);

/* One sequence space: reports of (address, node, hw id). */
struct pl_exporter {
	struct pl_addr addr;
	uint64_t node;
	uint8_t hw_id;
	uint8_t report_version; /* version of the last report */
	bool unsequenced;       /* constant sequence number: losses are unknown */
	bool shared;            /* several senders use this identity: losses are unknown */
	bool late;              /* there was no room for it at first: its losses began before */
				/* lost = skipped - recovered; these two never fall */
#define PL_STAT PL_STAT_MEMBER
#include "decode/exporter_counts.def"
#undef PL_STAT
	uint64_t first_ts_ns, last_ts_ns;
	uint64_t seen[2]; /* bit i of both, lower first: last_seq - i was counted */
	uint32_t last_seq;
	uint32_t span; /* valid bits of seen */
};

extern const struct pl_stats pl_exporter_stats;

/* Sets the counts of an exporter from its sequence (core/sequence.h). */
struct pl_sequence;
void pl_exporter_count(struct pl_exporter *x, const struct pl_sequence *seq);

/* Iterates over followed exporters: start with *pos = 0, false at the end. They come in the order
 * of appearance as long as none had to make room. */
bool pl_decode_exporter(const struct pl_decode *d, uint32_t *pos, struct pl_exporter *ret);

/* An interned path: its hops as (node, ingress, egress), source first. */
struct pl_path_step {
	uint64_t node;
	uint32_t ingress_port, egress_port;
};
#define PL_PATH_STEPS_MAX                                                                          \
	16 /* most steps kept of an interned path; all hops of longer ones are in its id */
struct pl_path_info {
	uint64_t path_id;
	uint8_t hop_count; /* hops of the path; steps holds the first PL_PATH_STEPS_MAX */
	struct pl_path_step steps[PL_PATH_STEPS_MAX];
	uint64_t reports, last_ts_ns;
};
bool pl_decode_path(const struct pl_decode *d, uint32_t i, struct pl_path_info *ret);
/* Finds a path by its id; false when it was never interned. */
bool pl_decode_path_find(const struct pl_decode *d, uint64_t path_id, struct pl_path_info *ret);
