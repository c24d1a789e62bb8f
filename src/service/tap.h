/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tap as a service: it makes records of packets, or takes records from elsewhere (tmpkt/1), and
 * sends them to outputs; through the flow cache, if configured, as flow records.
 */
#pragma once

#include "base/stats.h"
#include "flow/state.h"
#include "netio/floods.h"
#include "netio/link.h"
#include "netio/port.h"
#include "runtime/runtime.h"
#include "service/tap_listening.h"
#include "tap/drops.h"
#include "tap/kernel.h"
#include "tap/receiver.h"
#include "tap/tap.h"
#include "tapout/tap_out.h"

#define PL_TAP_PORTS_MAX        64
#define PL_TAP_OUTS_MAX         8
#define PL_TAP_KERNELS_MAX      16
#define PL_TAP_DROPS_MAX        8
#define PL_TAP_PLACES_MAX       64

#define PL_TAP_EXPORTERS_LISTED 256 /* as metrics.max_exporters by default */

#define PL_TAP_BATCHES_A_TURN   16 /* batches of each source in a turn */

/* Consumer of records in this process; its functions are called between two turns. */
struct pl_tap_print {
	void (*records)(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n);
	void (*turned)(void *arg); /* called after the records of a turn */
	bool (*full)(void *arg);   /* returns true when no more records are wanted */
	void *arg;
	/* NULL, or called up to ten times a second when all sources are taps in the kernel: every
	 * packet before ts_ns, since the epoch, has its record, if it gets one. */
	void (*passed)(void *arg, uint64_t ts_ns);
	/* Takes counts of packets that have no record, of a tap with a plan of counts. Counts and
	 * records of the time before ts_ns are given before `passed` is called with it. */
	pl_tap_count_sink *counts;
	/* Called with whether packets are counted from now on; if so, only `passed` gives the
	 * time. */
	void (*counting)(void *arg, bool on);
};

struct pl_tap_options {
	const char *const *
		sources; /* packet:, afxdp:, xdp:, tc:, capture files; udp://: tmpkt/1 (tap/source.h: of interfaces too) */
	size_t n_sources;
	const char *const *to; /* outputs (tap_out.h) */
	size_t n_to;
	struct pl_tap_print print; /* records NULL: none */
	struct pl_tap_rules rules;
	/* Plan of what taps in the kernel count instead of making records, if all sources are such
	 * taps; NULL: none. */
	const struct pl_tap_count_plan *plan;
	const char
		*filter; /* an expression of pcap-filter(7) that packets must match; NULL: none */
	const char *rules_file; /* file of more rules, read again by a reload; NULL: none */
	uint16_t point; /* observation point; for several interfaces see service/tap_places.h */
	bool inner;
	uint64_t vxlan_ports; /* bit set of ports (wire/tunnel_ports.h) */
	uint32_t exporter;
	bool prove; /* records received count once their exporter is proven (tap/receiver.h) */
	uint32_t max_exporters; /* exporters of tmpkt/1 that accounts list separately */
	/* Kinds of records to make: bits 1 << PL_FLAT_PKT96, PL_FLAT_FLOW288, PL_FLAT_DNS64, and
	 * PL_FLAT_DROP168 of drops:; other kinds too, for records received. Outputs get the kind
	 * `out`, `print` gets all. */
	uint32_t kinds;
	enum pl_flat_kind out;
	struct pl_flow_config flow;
	const char *flow_state; /* file in which flows outlive the process; NULL: none */
	double rate;            /* of a capture file, most records per second; 0: no limit */
	/* Other services share the loop: the tap never waits, and neither the end of a capture file
	 * nor a broken source ends the loop. */
	bool shared;
	/* Called after the sources were drained, before the outputs are finished; NULL: unused. */
	void (*draining)(void *arg);
	void *draining_arg;
	/* For capture files as the only sources: read the file whose next packet is the oldest. */
	bool in_time;
};

/* An interface whose packets are seen (service/tap_places.h). */
struct pl_tap_place {
	size_t source;          /* index in the options */
	char name[IF_NAMESIZE]; /* its latest name */
	int ifindex;            /* its latest number; 0: unknown */
};

/* The exporter that last sent a packet of a flow under an observation point; both as hashes. */
struct pl_tap_seen {
	uint64_t flow, exporter;
};

#define PL_TAP_SEEN 4096

struct pl_tap_service {
	const struct pl_tap_options *o;
	struct pl_tap tap;
	struct pl_tmpkt_receiver *receiver;
	struct pl_flow_cache *flows;        /* NULL: not asked for */
	struct pl_flow_config flow_config;  /* of `flows` */
	struct pl_flow_state *state;        /* file of the flows; NULL: none */
	uint64_t state_boot_ns;             /* when the state was opened, by CLOCK_BOOTTIME */
	uint64_t state_mono_ns;             /* likewise, by CLOCK_MONOTONIC */
	bool state_begun, state_cut;        /* its flows were resumed; another process cut it */
	struct pl_tap_listening *listening; /* NULL: unknown, or not needed */
	struct pl_tap_listening_stats listening_stats;
	struct pl_tap_seen seen[PL_TAP_SEEN];
	uint64_t passed_ns; /* last time given to print.passed */
	uint64_t expire_ns; /* time of the next expiry of flows, monotonic */
	struct pl_port *ports[PL_TAP_PORTS_MAX];
	size_t port_sources[PL_TAP_PORTS_MAX]; /* the source of each port, in the options */
	bool datagrams[PL_TAP_PORTS_MAX];      /* the port gets tmpkt/1, not packets */
	bool receiving;                        /* records at work come from such a port */
	bool ended[PL_TAP_PORTS_MAX];          /* the port's file was read to its end */
	bool has_lanes[PL_TAP_PORTS_MAX];      /* the port has descriptors behind all others */
	struct pl_floods_told floods_told[PL_TAP_PORTS_MAX];
	uint64_t floods_ns; /* time of the next check for floods, monotonic */
	unsigned int n_ports, n_ended;
	unsigned int from;                                 /* the port being read */
	struct pl_batch *waiting;                          /* in_time: next batch of each port */
	uint64_t reached_ns[PL_TAP_PORTS_MAX];             /* likewise: no packet before it comes */
	bool filled;                                       /* likewise: all had their first batch */
	_Atomic unsigned int n_broken;                     /* shared: number of broken ports */
	struct pl_tap_kernel *kernels[PL_TAP_KERNELS_MAX]; /* taps in the kernel */
	size_t kernel_sources[PL_TAP_KERNELS_MAX];         /* the source of each, in the options */
	struct pl_tap_drops *drops[PL_TAP_DROPS_MAX];      /* drops of the kernel */
	uint64_t kernel_records;                           /* records received from both */
	unsigned int n_kernels, n_drops;
	bool counting;             /* packets are counted, by the plan */
	bool counts_lost;          /* the last counts could not be read */
	uint64_t count_ns;         /* time to read counts next, monotonic */
	struct pl_tap_stats shown; /* sum with the kernel's counters, of the last request */
	bool live;                 /* no source is a file */
	bool whole;                /* sockets copy whole packets, because a rule has contains= */
	uint32_t told_unread; /* 1 + the link type of which it was said last that it is not read */
	uint16_t point;       /* observation point in use; of several, the first */
	struct pl_tap_place places[PL_TAP_PLACES_MAX];
	unsigned int n_places;
	uint64_t netns; /* network namespace of the places */
	struct pl_tap_out *outs[PL_TAP_OUTS_MAX];
	unsigned int n_outs;
	uint32_t clocks;          /* bits: kinds of clocks of all times so far */
	enum pl_clock_kind clock; /* clock that was given to outputs last */
	uint64_t records;
#define PL_STAT PL_STAT_MEMBER
#include "service/tap_stats.def"
#undef PL_STAT
	uint64_t begun_ns, due_ns;
	/* For conditions: time of the next check; records lost by each output at the last check; and
	 * time at which more were lost. */
	uint64_t conditions_ns, lost[PL_TAP_OUTS_MAX], lost_ns[PL_TAP_OUTS_MAX];
	struct pl_condition_board conditions;
	bool began;
	struct pl_batch packets;
	struct pl_pkt96 made[PL_BATCH_MAX];
	struct pl_dns64 dns[PL_BATCH_MAX];
	struct pl_drop168 dropped[PL_TAP_DROPS_BATCH];
};

extern const struct pl_service_ops pl_tap_service_ops;

/* Checks, without system calls, that a tap can read packets from the URI. counts: a query reads it,
 * which may have packets counted by key. Returns -EINVAL with diag. */
int pl_tap_source_check(const char *uri, bool inner, bool dns, bool counts, struct pl_diag *diag);

/* Adds kinds of records to make, between two turns; kinds that were added before stay. Returns
 * -ENOMEM with diag. */
int pl_tap_service_want(struct pl_tap_service *t, uint32_t kinds, struct pl_diag *diag);
/* Returns whether records of this kind are asked for. */
bool pl_tap_asked_for(const struct pl_tap_service *t, enum pl_flat_kind kind);
/* Sends records made from this tap's records to outputs and `print`, between two turns. */
void pl_tap_service_give(
	struct pl_tap_service *t, enum pl_flat_kind kind, const void *records, uint32_t n);
/* Sends records of packets to outputs and the flow cache, between two turns or within one. */
void pl_tap_service_packets(struct pl_tap_service *t, const struct pl_pkt96 *records, uint32_t n);
/* Sets the clock of the following records, and passes a change on to the outputs. */
void pl_tap_service_clock(struct pl_tap_service *t, enum pl_clock_kind clock);
/* The sink of the flow cache. */
pl_flow_sink pl_tap_service_take_flows;
/* Returns whether no more records are wanted. */
bool pl_tap_service_enough(const struct pl_tap_service *t);
/* Returns 0, or -EINVAL with diag: a source cannot check a condition of these rules, or its socket
 * was opened without what they need. */
int pl_tap_service_rules_fit(
	const struct pl_tap_service *t, const struct pl_tap_rules *rules, struct pl_diag *diag);
/* Sets rules and observation point, between two turns. */
void pl_tap_service_rules(
	struct pl_tap_service *t, const struct pl_tap_rules *rules, uint16_t point);
/* Adds the tap's conditions, between two turns or within one. */
void pl_tap_service_conditions(
	struct pl_tap_service *t, const char *name, uint64_t now_ns, struct pl_conditions *ret);
/* Puts the conditions on the board of a tap that is a process of its own, from time to time. */
void pl_tap_service_look(struct pl_tap_service *t, uint64_t now_ns);
/* Returns whether outputs took all records they were given, and all counts were read. */
bool pl_tap_complete(const struct pl_tap_service *t);
void pl_tap_service_close(struct pl_tap_service *t);
