/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generated telemetry: a model of a network (gen/topology.h) carries flows, and the telemetry of
 * its nodes about them is encoded as reports or as the instrumented packets themselves. No sockets
 * and no clock: time is the model's, it starts at start_ns and advances by 1/rate per report. The
 * same configuration with the same seed gives the same bytes.
 *
 *   struct pl_gen_cfg cfg = { .rate = 10000, .seed = 1 };
 *   pl_gen_new(&gen, &cfg, &diag);
 *   while (pl_gen_next(gen, UINT64_MAX, batch) > 0)
 *           …;
 *   pl_gen_free(gen);
 *
 * After pl_gen_new nothing allocates. A generator belongs to one thread. The packets of a batch
 * belong to the generator and live until the next pl_gen_next.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "gen/dist.h"
#include "wire/int.h"
#include "wire/ioam.h"
#include "wire/layers.h"
#include "wire/packet.h"
#include "wire/verdict.h"

/* Report specification. In every enumeration 0 means "best match for the other settings". */
enum pl_gen_report {
	PL_GEN_REPORT_AUTO,
	PL_GEN_REPORT_NONE,
	PL_GEN_REPORT_V05,
	PL_GEN_REPORT_V10,
	PL_GEN_REPORT_V20
};
enum pl_gen_version { PL_GEN_INT_AUTO, PL_GEN_INT_V05, PL_GEN_INT_V10, PL_GEN_INT_V21 };
enum pl_gen_mode { PL_GEN_MODE_AUTO, PL_GEN_MD, PL_GEN_MX, PL_GEN_XD };
enum pl_gen_carrier {
	PL_GEN_CARRIER_AUTO,
	PL_GEN_UDP,
	PL_GEN_TCP,
	PL_GEN_GRE,
	PL_GEN_GPE,
	PL_GEN_GENEVE
};
/* First header of a report's inner packet, or of an instrumented packet. */
enum pl_gen_inner {
	PL_GEN_INNER_AUTO,
	PL_GEN_ETHERNET,
	PL_GEN_VLAN,
	PL_GEN_QINQ,
	PL_GEN_MPLS, /* two labels */
	PL_GEN_VXLAN,
	PL_GEN_IP
};
/* Transport of the original packets. */
enum pl_gen_proto { PL_GEN_PROTO_AUTO, PL_GEN_PROTO_TCP, PL_GEN_PROTO_UDP, PL_GEN_PROTO_ICMP };
/* Place of an INT-MD sink's metadata: in the report's header (in versions that have a place for
 * them), on top of the stack, or both. */
enum pl_gen_sink { PL_GEN_SINK_AUTO, PL_GEN_SINK_STACK, PL_GEN_SINK_HEADER, PL_GEN_SINK_BOTH };
/* Announcement of INT in a packet. */
enum pl_gen_announce {
	PL_GEN_ANNOUNCE_AUTO,
	PL_GEN_ANNOUNCE_DSCP,
	PL_GEN_ANNOUNCE_PORT,
	PL_GEN_ANNOUNCE_MARKER
};

/* IOAM options of IPv6 packets, in any combination; see gen/ioam_gen.h. */
enum {
	PL_GEN_IOAM_TRACE = 0x01,       /* pre-allocated trace */
	PL_GEN_IOAM_INCREMENTAL = 0x02, /* incremental trace */
	PL_GEN_IOAM_E2E = 0x04,
	PL_GEN_IOAM_POT = 0x08,
	PL_GEN_IOAM_DEX = 0x10,
};
/* Time format of the nodes of the namespace. */
enum pl_gen_ioam_time { PL_GEN_IOAM_POSIX, PL_GEN_IOAM_PTP, PL_GEN_IOAM_NTP };
#define PL_GEN_SNAPSHOT_MAX 16 /* words */

struct pl_gen_ioam {
	uint8_t options; /* PL_GEN_IOAM_*; 0: INT is generated */
	/* options in Destination Options; the others are in Hop-by-Hop */
	uint8_t destination;
	/* 24 bits, also for direct export; 0: id, ports, time, delay, queue */
	uint32_t trace_type;
	uint16_t ns;
	/* nodes that the trace has room for (with the longest snapshot); 0: 8, or as many as fit */
	uint8_t nodes;
	uint8_t snapshot_words;
	uint8_t flags; /* PL_IOAM_OVERFLOW, PL_IOAM_LOOPBACK, PL_IOAM_ACTIVE */
	enum pl_gen_ioam_time time;
	bool seq_64; /* edge to edge: with the 64-bit sequence number */
};

/* Streams of INTCollector's own generator in place of the model; see gen/replay.h. */
enum pl_gen_replay {
	PL_GEN_REPLAY_NONE,
	PL_GEN_REPLAY_INTCOLLECTOR_1,
	PL_GEN_REPLAY_INTCOLLECTOR_2,
	PL_GEN_REPLAY_INTCOLLECTOR_3,
	PL_GEN_REPLAY_INTCOLLECTOR_4,
	PL_GEN_REPLAY_INTCOLLECTOR_5,
	PL_GEN_REPLAY_INTCOLLECTOR_6,
	PL_GEN_REPLAY_INTCOLLECTOR_7,
	PL_GEN_REPLAY_INTCOLLECTOR_8,
	PL_GEN_REPLAY_MAX,
};

enum pl_gen_event_kind {
	PL_GEN_EVENT_PATH,    /* a link fails and comes back */
	PL_GEN_EVENT_QUEUE,   /* a queue fills and drains */
	PL_GEN_EVENT_LOSS,    /* reports are lost */
	PL_GEN_EVENT_DROP,    /* a node drops packets and reports it */
	PL_GEN_EVENT_RESTART, /* a node's report sequence starts again at 0 */
	PL_GEN_EVENT_KIND_MAX,
};

/* An event at a time. node and link ends are node ids; 0: chosen on the path of flow 0. */
struct pl_gen_event {
	enum pl_gen_event_kind kind;
	uint64_t at_ns, duration_ns; /* after the start; duration 0: without end */
	uint64_t every_ns;           /* interval of repeats; 0: once */
	uint32_t node, link_a, link_b;
	uint32_t port;  /* QUEUE: egress port; 0: port of flow 0 at the node */
	int32_t queue;  /* QUEUE: -1: every queue of the port */
	double value;   /* QUEUE: largest depth; LOSS, DROP: ratio of reports, packets */
	uint8_t reason; /* DROP */
};

#define PL_GEN_EVENTS_MAX   32
#define PL_GEN_HOPS_MAX     64
#define PL_GEN_FLOWS_MAX    (1u << 20)
#define PL_GEN_REPORTS_MAX  16 /* individual reports per datagram */
#define PL_GEN_MALFORMS_MAX 128
#define PL_GEN_PACKET_MAX   9216 /* bytes */

/* Kinds of damage from gen/malform.h, each for a ratio of the packets; 0: an equal part of the
 * rest. */
struct pl_gen_malform {
	const struct pl_malform *kind;
	double ratio;
};

struct pl_gen_cfg {
	uint64_t seed;
	/* the network */
	const char *topology;   /* as gen/topology.h; NULL: leaf-spine:4x2 */
	uint32_t flows;         /* 0: 100 */
	struct pl_dist latency; /* hop latency in ns; default exp:2us */
	struct pl_dist link;    /* link latency in ns; default const:1us */
	struct pl_dist queue;   /* queue depth; default exp:20 */
	struct pl_dist util;    /* egress utilization; default uniform:0,100 */
	/* largest offset of a node's clock, in either direction */
	uint64_t clock_offset_ns;
	double missing; /* ratio of values that are not available (all ones) */
	double drop;    /* ratio of packets dropped on the way, and reported as dropped */
	/* transport of reports */
	double rate;                     /* reports per second; 0: 1000 */
	uint64_t start_ns;               /* model time of the first packet; 0: 1700000000 s */
	uint64_t count;                  /* datagrams (or packets) in all; 0: without end */
	uint64_t duration_ns;            /* model time in all; 0: without end */
	double loss, duplicate, reorder; /* ratios of reports */
	uint32_t first_seq;              /* of every exporter */
	uint32_t queue_report; /* queue depth above which a node reports the queue; 0: never */
	struct pl_gen_event events[PL_GEN_EVENTS_MAX];
	unsigned int n_events;
	/* format */
	enum pl_gen_report report;
	enum pl_gen_version version;
	enum pl_gen_mode mode;
	enum pl_gen_carrier carrier;
	enum pl_dialect dialect;
	enum pl_gen_inner inner;
	enum pl_gen_sink sink;
	enum pl_gen_announce announce;
	enum pl_gen_proto proto; /* INT over TCP or UDP: the carrier */
	/* instruction bitmap; 0: ids, ports, latency, queue, both times, utilization */
	uint16_t bitmap;
	uint8_t npt;          /* v2.1 over TCP/UDP: next protocol type 0, 1, 2 */
	uint8_t ds_words;     /* v2.1: domain-specific words per hop */
	uint8_t source_words; /* v2.1: words in the source's block only */
	uint16_t ds_id;
	uint8_t max_hops; /* hop limit set by the source; 0: as many as the length byte allows */
	/* report 2.0: a transit node with this many hops in the stack reports and empties it, as
	 * for the MTU (I); 0: never */
	uint8_t flush_hops;
	bool destination_shim; /* a destination-type INT header before the hop-by-hop one */
	uint8_t gpe_chain;     /* VXLAN-GPE: number of further INT shims behind the first */
	bool inner_tlv; /* report 2.0: inner contents are TLVs, one of a domain and the packet */
	uint8_t reports_per_datagram; /* report 2.0; 0: 1 */
	uint8_t outer_ip, inner_ip;   /* 4 or 6; 0: 4 */
	/* words of IPv4 options, or IPv6 Hop-by-Hop padding, in original packets */
	uint8_t ip_options;
	double fragments;    /* ratio of original packets without INT that are later fragments */
	uint8_t tcp_options; /* words of TCP options in the instrumented packet */
	bool tcp_before_options; /* INT directly behind the first 20 bytes of TCP */
	bool instrumented;       /* the report's own packet carries INT too (frames only) */
	uint8_t dscp;            /* announces INT; 0: 0x17 */
	uint64_t marker;         /* announces INT; 0: 0xaaaaaaaabbbbbbbb */
	uint16_t int_port;       /* announces INT; 0: 33122 */
	uint16_t gre_ethertype;  /* announces INT in GRE; 0: 0x88b5 (local experiments, IEEE 802) */
	uint16_t payload;        /* bytes of original payload kept; 0: 16 */
	uint8_t hw_id;           /* of every exporter, 6 bits */
	/* destination of reports, in frames; 0: 10.255.255.254, fd00:ff::fffe */
	struct pl_addr collector;
	uint16_t report_port; /* 0: 32766 */
	enum pl_gen_replay replay;
	uint8_t replay_hops;    /* hops when the test leaves them open; 0: the test's maximum */
	uint32_t replay_events; /* test 4: events per second at 1 Mpps; 0: 20 */
	struct pl_gen_malform malform[PL_GEN_MALFORMS_MAX];
	unsigned int n_malform;
	struct pl_gen_ioam ioam; /* in place of INT */
	/* packets to the caller */
	bool udp;     /* UDP payloads (PL_LINK_UDP), as from one socket, in place of frames */
	bool general; /* encode every packet in full (gen/template.h): same bytes, but slower */
	bool truth;   /* keep the truth about the batch: pl_gen_truth */
};

struct pl_gen;

/* Returns -EINVAL with diag for settings that exclude each other, -ENOMEM. */
int pl_gen_new(struct pl_gen **ret, const struct pl_gen_cfg *cfg, struct pl_diag *diag);
void pl_gen_free(struct pl_gen *gen);

/*
 * Makes the next packets with a model time below until_ns, at most PL_BATCH_MAX. Returns their
 * number; 0 when none is due yet (or all of 65536 due ones were lost); -ENODATA when count or
 * duration have been reached.
 */
int pl_gen_next(struct pl_gen *gen, uint64_t until_ns, struct pl_batch *ret);

/* Model time of the next packet; UINT64_MAX at the end. */
uint64_t pl_gen_due_ns(const struct pl_gen *gen);

/* Sets the model's clock: the next packet is due at now_ns. For a live sender that was delayed; the
 * packets between are skipped. */
void pl_gen_skip_to(struct pl_gen *gen, uint64_t now_ns);

struct pl_gen_counters {
	uint64_t packets, bytes, reports;               /* given to the caller */
	uint64_t lost, duplicated, reordered, restarts; /* counts of the changes made to reports */
	uint64_t dropped, queue_reports, flushes, summaries, malformed;
	uint64_t patched;  /* made from a template */
	uint64_t unrouted; /* packets not sent because their flow has no path */
};
const struct pl_gen_counters *pl_gen_counters(const struct pl_gen *gen);

/* True contents of a report of the last batch. Values are as the wire can carry them. */
enum pl_gen_truth_form { PL_GEN_TRUTH_REPORT, PL_GEN_TRUTH_PACKET, PL_GEN_TRUTH_SUMMARY };

struct pl_gen_truth {
	enum pl_gen_truth_form form;
	struct pl_flow flow;           /* the original packet */
	uint32_t flow_index, flow_seq; /* SUMMARY: flow_seq is the first missing number */
	/* SUMMARY: hops are the two ends of the flow, with the ports between them */
	uint32_t lost_count;
	uint32_t seq;
	uint32_t node; /* reporting node's id; 0 in instrumented packets */
	bool dropped, congested, tracked, intermediate, duplicate;
	uint8_t drop_reason;
	const struct pl_malform *malform; /* damage to the packet, or NULL */
	unsigned int n_hops;              /* source first */
	struct pl_int_hop hops[PL_GEN_HOPS_MAX];
	unsigned int n_nodes; /* of an IOAM trace, source first */
	struct pl_ioam_node nodes[PL_IOAM_NODES_MAX];
};

/* Number of reports in packet `packet` of the last batch, and one of them. cfg.truth must have been
 * set. */
unsigned int pl_gen_truth_reports(const struct pl_gen *gen, unsigned int packet);
const struct pl_gen_truth *pl_gen_truth(
	const struct pl_gen *gen, unsigned int packet, unsigned int report);

/* The configuration with every default filled in. Valid while gen lives. */
const struct pl_gen_cfg *pl_gen_cfg(const struct pl_gen *gen);
