/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tap as a service: packets, or records of packets from elsewhere (tmpkt/1), become records and
 * go to outputs; through the flow cache, when asked for, as records of flows.
 */
#pragma once

#include "base/stats.h"
#include "flow/state.h"
#include "netio/link.h"
#include "netio/port.h"
#include "runtime/runtime.h"
#include "service/tap_listening.h"
#include "tap/drops.h"
#include "tap/kernel.h"
#include "tap/receiver.h"
#include "tap/tap.h"
#include "tapout/tap_out.h"

#define PL_TAP_PORTS_MAX      64
#define PL_TAP_OUTS_MAX       8
#define PL_TAP_KERNELS_MAX    16
#define PL_TAP_DROPS_MAX      8
#define PL_TAP_PLACES_MAX     64

#define PL_TAP_BATCHES_A_TURN 16 /* of each source */

/* Where records are printed; its functions are called between two turns. */
struct pl_tap_print {
	void (*records)(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n);
	void (*turned)(void *arg); /* behind the records of a turn */
	bool (*full)(void *arg);   /* no more are wanted */
	void *arg;
	/* NULL, or told ten times a second or less where all sources are taps in the kernel: every
	 * packet before that time, since the epoch, has its record, if it gets one. */
	void (*passed)(void *arg, uint64_t ts_ns);
	/* Of a tap with a plan of counts: packets that have no record. Counts and records of before a
	 * time that `passed` tells are given before it is told. */
	pl_tap_count_sink *counts;
	/* Whether packets are counted from now on: then times are told by `passed` alone. */
	void (*counting)(void *arg, bool on);
};

struct pl_tap_options {
	const char *const *
		sources; /* packet:, afxdp:, xdp:, tc:, capture files; udp://: tmpkt/1 (tap/source.h: of interfaces too) */
	size_t n_sources;
	const char *const *to; /* outputs (tap_out.h) */
	size_t n_to;
	struct pl_tap_print print; /* records NULL: nothing is printed */
	struct pl_tap_rules rules;
	/* What taps in the kernel count instead of making records of it, of which all sources are
	 * such; NULL: nothing. */
	const struct pl_tap_count_plan *plan;
	const char
		*filter; /* an expression of pcap-filter(7): the others are left out; NULL: none */
	const char *rules_file; /* more of them, read again by a reload; NULL: none */
	uint16_t point; /* observation point; of several interfaces see service/tap_places.h */
	bool inner;
	uint64_t vxlan_ports; /* a word of them (wire/tunnel_ports.h) */
	uint32_t exporter;
	/* What is made: bits 1 << PL_FLAT_PKT96, PL_FLAT_FLOW288, PL_FLAT_DNS64, and PL_FLAT_DROP168
	 * of drops:; of records that others made also other kinds. Outputs get
	 * records of the kind `out`, what is printed is of all. */
	uint32_t kinds;
	enum pl_flat_kind out;
	struct pl_flow_config flow;
	const char *flow_state; /* file in which the flows outlive the process; NULL: they do not */
	double rate;            /* of a capture file, records per second at most; 0: no limit */
	/* Other services have the same loop: it never waits, and neither the end of a capture file
	 * nor a broken source ends it. */
	bool shared;
	/* Before outputs are brought to their end, when the sources are drained; NULL: nothing. */
	void (*draining)(void *arg);
	void *draining_arg;
	/* Of several capture files, and no other sources, the one is read that is behind the others by
	 * its packets' times. */
	bool in_time;
};

/* An interface that packets are seen at (service/tap_places.h). */
struct pl_tap_place {
	size_t source;          /* of the options */
	char name[IF_NAMESIZE]; /* its last one */
	int ifindex;            /* as it was told last, 0 before */
};

struct pl_tap_service {
	const struct pl_tap_options *o;
	struct pl_tap tap;
	struct pl_tmpkt_receiver *receiver;
	struct pl_flow_cache *flows;        /* NULL: they are not asked for */
	struct pl_flow_state *state;        /* its file; NULL: none */
	uint64_t state_boot_ns;             /* when it was opened, by CLOCK_BOOTTIME */
	bool state_begun, state_cut;        /* what it held goes on; another process cut it */
	struct pl_tap_listening *listening; /* NULL: not known, or not asked */
	struct pl_tap_listening_stats listening_stats;
	uint64_t newest_ns; /* of the records' times, and when it came */
	uint64_t newest_mono_ns;
	uint64_t passed_ns; /* as print.passed was told last */
	uint64_t expire_ns; /* when flows that are over are looked for, monotonic */
	struct pl_port *ports[PL_TAP_PORTS_MAX];
	size_t port_sources[PL_TAP_PORTS_MAX]; /* of the options, whose each port is */
	bool datagrams[PL_TAP_PORTS_MAX];      /* of tmpkt/1, not packets */
	bool ended[PL_TAP_PORTS_MAX];          /* a file that was read to its end */
	unsigned int n_ports, n_ended;
	unsigned int from;                                 /* the port whose packets are at work */
	struct pl_batch *waiting;                          /* in_time: of each port */
	uint64_t reached_ns[PL_TAP_PORTS_MAX];             /* likewise: no packet before it comes */
	bool filled;                                       /* likewise: the first ones were there */
	_Atomic unsigned int n_broken;                     /* of those that ended, shared: broken */
	struct pl_tap_kernel *kernels[PL_TAP_KERNELS_MAX]; /* taps in the kernel */
	size_t kernel_sources[PL_TAP_KERNELS_MAX];         /* likewise */
	struct pl_tap_drops *drops[PL_TAP_DROPS_MAX];      /* drops of the kernel */
	uint64_t kernel_records;                           /* that came from both */
	unsigned int n_kernels, n_drops;
	bool counting;             /* by the plan of counts */
	bool counts_lost;          /* the last of them could not be read */
	uint64_t count_ns;         /* when counts are read next, monotonic */
	struct pl_tap_stats shown; /* with the kernel's, when they were asked for last */
	bool live;                 /* a source is no file */
	uint16_t point;            /* observation point in force, the first one of several */
	struct pl_tap_place places[PL_TAP_PLACES_MAX];
	unsigned int n_places;
	uint64_t netns; /* they are in this network namespace */
	struct pl_tap_out *outs[PL_TAP_OUTS_MAX];
	unsigned int n_outs;
	uint32_t clocks;          /* bits of the kinds that times were of so far */
	enum pl_clock_kind clock; /* that outputs were told last */
	uint64_t records;
#define PL_STAT PL_STAT_MEMBER
#include "service/tap_stats.def"
#undef PL_STAT
	uint64_t begun_ns, due_ns;
	/* Of its conditions: the next look, what outputs had lost at the last one, and when one of
	 * them lost more. */
	uint64_t conditions_ns, lost[PL_TAP_OUTS_MAX], lost_ns[PL_TAP_OUTS_MAX];
	struct pl_condition_board conditions;
	bool began;
	struct pl_batch packets;
	struct pl_pkt96 made[PL_BATCH_MAX];
	struct pl_dns64 dns[PL_BATCH_MAX];
	struct pl_drop168 dropped[PL_TAP_DROPS_BATCH];
};

extern const struct pl_service_ops pl_tap_service_ops;

/* Whether a tap can read packets from there, without touching the system. counts: it is a question's,
 * which may have packets counted by key. -EINVAL with diag. */
int pl_tap_source_check(const char *uri, bool inner, bool dns, bool counts, struct pl_diag *diag);

/* What is made from now on, between two turns: what was asked for before stays. -ENOMEM with
 * diag. */
int pl_tap_service_want(struct pl_tap_service *t, uint32_t kinds, struct pl_diag *diag);
/* Records that were made of those it has, to outputs and as printed, between two turns. */
void pl_tap_service_give(
	struct pl_tap_service *t, enum pl_flat_kind kind, const void *records, uint32_t n);
/* Records of packets: given, and put through the flow cache, between two turns or within one. */
void pl_tap_service_packets(struct pl_tap_service *t, const struct pl_pkt96 *records, uint32_t n);
/* The clock of the records that follow, told to outputs when it changes. */
void pl_tap_service_clock(struct pl_tap_service *t, enum pl_clock_kind clock);
/* The sink of the flow cache. */
pl_flow_sink pl_tap_service_take_flows;
/* Whether no more records are wanted. */
bool pl_tap_service_enough(const struct pl_tap_service *t);
/* Other rules and observation point, between two turns. */
void pl_tap_service_rules(
	struct pl_tap_service *t, const struct pl_tap_rules *rules, uint16_t point);
/* What is wrong with it, between two turns or within one. */
void pl_tap_service_conditions(
	struct pl_tap_service *t, const char *name, uint64_t now_ns, struct pl_conditions *ret);
/* The same onto the board of a tap that is a process by itself, now and then. */
void pl_tap_service_look(struct pl_tap_service *t, uint64_t now_ns);
/* Whether every output got every record that it was given, and every count was read. */
bool pl_tap_complete(const struct pl_tap_service *t);
void pl_tap_service_close(struct pl_tap_service *t);
