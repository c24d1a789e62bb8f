/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The match-action engine of a node: ports, tables in two stages, counters, meters, registers,
 * groups. Engine without sockets, clock and queues:
 *
 *   received ─▶ ingress: parse, tables, port chosen ─▶ out() ─▶ queues of the caller
 *   dequeued ─▶ egress: tables ─▶ out() ─▶ sent by the caller
 *
 * A packet of ingress has in_port and in_ns set, one of egress out_ns and what its queue knows of
 * it. Packets belong to the pipeline while it runs; they are given to out(), freed as dropped with
 * the cause counted, or kept by an action (consumed). At every time, for each stage,
 *
 *   in + made = out + sum of dropped + consumed
 *
 * in packets, where made are copies and packets that actions emitted. One thread.
 *
 * Entries change by pl_dp_pipeline_change, all of a set or none, between two batches.
 */
#pragma once

#include "base/buf.h"
#include "base/diag.h"
#include "dataplane/conf.h"
#include "dataplane/extern.h"
#include "dataplane/marking/marking.h"
#include "dataplane/packet.h"

struct pl_dp_books {
	uint64_t in, made, out, consumed, dropped[PL_DP_DROP_MAX];
};

struct pl_dp_pipeline_ops {
	/* The packet is the caller's, with out_port and queue set. stage: the one that it left. */
	void (*out)(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage);
	/* A packet is going to be freed, pkt->drop says why. NULL: nobody is told. */
	void (*dropped)(void *arg, const struct pl_dp_packet *pkt, enum pl_dp_stage stage);
	/* A packet is going to be freed, to which the node has answered. NULL: nobody is told. */
	void (*answered)(void *arg, const struct pl_dp_packet *pkt);
	/* A block record of a measurement point (dataplane/marking/marking.h). NULL: nobody is told. */
	void (*block)(void *arg, const struct pl_mark128 *record);
	/* What the node's clock is known to be when blocks are read: in step, and its error
	 * (UINT64_MAX: not known). NULL: it is right, and the error is that of the guard band. */
	void (*clock)(void *arg, bool *ret_synced, uint64_t *ret_error_ns);
	void *arg;
};

struct pl_dp_pipeline_options {
	const char *name;
	uint32_t node_id;
	struct pl_dp_pool *pool; /* of copies and of packets that actions emit */
	struct pl_dp_pipeline_ops ops;
	/* Of hashes on which it depends what actions do, where that must be the same in every run;
	 * 0: a random one of the process. */
	uint64_t seed;
	/* Actions beside those of externs.def, NULL at the end; NULL: none. They stay. */
	const struct pl_dp_extern *const *externs;
};

/* -EINVAL, -ENOMEM. */
int pl_dp_pipeline_new(struct pl_dp_pipeline **ret, const struct pl_dp_pipeline_options *options);
void pl_dp_pipeline_free(struct pl_dp_pipeline *p);

/* ---- its parts, before the first entry that names them. -EINVAL with diag, -ENOMEM ---- */

int pl_dp_pipeline_port(struct pl_dp_pipeline *p, unsigned int number, uint64_t mac, uint32_t mtu,
	struct pl_diag *diag);
/* An address at which the port answers (dataplane/own.h), and the ICMP errors per second for what
 * came in by it; without one it says nothing for itself. */
int pl_dp_pipeline_address(
	struct pl_dp_pipeline *p, unsigned int port, const char *address, struct pl_diag *diag);
void pl_dp_pipeline_icmp(struct pl_dp_pipeline *p, unsigned int port, uint32_t per_second);
int pl_dp_pipeline_counter(
	struct pl_dp_pipeline *p, const char *name, uint32_t size, struct pl_diag *diag);
int pl_dp_pipeline_register(
	struct pl_dp_pipeline *p, const char *name, uint32_t size, struct pl_diag *diag);

/* Bits per second, and bytes. peak_bps 0: one rate (RFC 2697), where peak_burst is the excess
 * burst; else two (RFC 2698). */
struct pl_dp_meter_cfg {
	uint64_t rate_bps, burst, peak_bps, peak_burst;
};
int pl_dp_pipeline_meter(struct pl_dp_pipeline *p, const char *name, uint32_t size,
	const struct pl_dp_meter_cfg *cfg, struct pl_diag *diag);
int pl_dp_pipeline_group(struct pl_dp_pipeline *p, const char *name, struct pl_diag *diag);
bool pl_dp_pipeline_has_group(const struct pl_dp_pipeline *p, const char *name);
int pl_dp_pipeline_member(
	struct pl_dp_pipeline *p, const char *group, const char *actions, struct pl_diag *diag);

/* key: n texts "FIELD KIND". On failure *ret_bad is the one that is wrong. */
int pl_dp_pipeline_table(struct pl_dp_pipeline *p, const char *name, enum pl_dp_stage stage,
	uint32_t size, const char *const *key, size_t n, size_t *ret_bad, struct pl_diag *diag);
int pl_dp_pipeline_miss(
	struct pl_dp_pipeline *p, const char *table, const char *actions, struct pl_diag *diag);

/* ---- entries ---- */

enum pl_dp_change_kind {
	PL_DP_ADD,    /* there is none that matches the same with the same priority */
	PL_DP_SET,    /* add, or replace the actions of the one there is */
	PL_DP_DELETE, /* the text needs no actions */
	PL_DP_CLEAR,  /* all entries of the table; no text */
};

struct pl_dp_change {
	enum pl_dp_change_kind kind;
	const char *table, *entry; /* "FIELD=VALUE… -> ACTION; …" */
};

/* All or, when one is refused, none: then *ret_bad is its index and diag says why. -EINVAL,
 * -ENOENT, -EEXIST, -ENOSPC, -ENOMEM. Never within a batch. */
int pl_dp_pipeline_change(struct pl_dp_pipeline *p, const struct pl_dp_change *changes, size_t n,
	size_t *ret_bad, struct pl_diag *diag);

/* A new pipeline in place of an old one, between two batches: takes over its accounts, which ports
 * are up, what cells of the same name hold and entries that match the same have counted, and frees
 * it. Filters of actions begin anew. */
void pl_dp_pipeline_inherit(struct pl_dp_pipeline *p, struct pl_dp_pipeline *old);

/* ---- alternate marking ---- */

/* Its points, once the ports are there. -EINVAL with diag: there are settings already, or as
 * pl_dp_marking_new; -ENOMEM. */
int pl_dp_pipeline_marking(
	struct pl_dp_pipeline *p, const struct pl_dp_marking_cfg *cfg, struct pl_diag *diag);
/* NULL: it has none. */
struct pl_dp_marking *pl_dp_pipeline_points(const struct pl_dp_pipeline *p);

/* ---- time ---- */

/* When something is to be done without a packet, by the node's clock; UINT64_MAX: nothing, 0: now. */
uint64_t pl_dp_pipeline_due(const struct pl_dp_pipeline *p);
/* Does what is due by then. Between two batches. */
void pl_dp_pipeline_turn(struct pl_dp_pipeline *p, uint64_t now_ns);

/* ---- packets ---- */

void pl_dp_pipeline_ingress(struct pl_dp_pipeline *p, struct pl_dp_packet *const *pkts, size_t n);
void pl_dp_pipeline_egress(struct pl_dp_pipeline *p, struct pl_dp_packet *const *pkts, size_t n);
/* For what drops packets of the node outside of the tables (a queue): pkt->drop is set; books it as
 * in and dropped at egress, tells it as any drop, and frees it. */
void pl_dp_pipeline_dropped(struct pl_dp_pipeline *p, struct pl_dp_packet *pkt, uint64_t now_ns);

/* For actions. Sends a new packet, the pipeline's then, out by a port; it passes no table. In egress
 * it goes to out() as a packet of ingress does, because it has not been queued. */
void pl_dp_emit(const struct pl_dp_call *call, struct pl_dp_packet *pkt, unsigned int port);
uint32_t pl_dp_pipeline_node_id(const struct pl_dp_pipeline *p);
uint64_t pl_dp_pipeline_seed(const struct pl_dp_pipeline *p);
struct pl_dp_pool *pl_dp_pipeline_pool(const struct pl_dp_pipeline *p);
/* False: there is no such port. */
bool pl_dp_pipeline_port_of(
	const struct pl_dp_pipeline *p, unsigned int number, uint64_t *ret_mac, uint32_t *ret_mtu);

/* A port that is down takes no packet: cause port. Ports are up at first. */
void pl_dp_pipeline_port_up(struct pl_dp_pipeline *p, unsigned int number, bool up);
/* The interface of the port has another address now. */
void pl_dp_pipeline_mac(struct pl_dp_pipeline *p, unsigned int number, uint64_t mac);

/* ---- reading ---- */

const struct pl_dp_books *pl_dp_pipeline_books(
	const struct pl_dp_pipeline *p, enum pl_dp_stage stage);

/* Calls for every entry of a table with its text and what it matched, best first is not promised.
 * -ENOENT with diag. */
int pl_dp_pipeline_dump(const struct pl_dp_pipeline *p, const char *table,
	void (*each)(void *arg, const char *entry, uint64_t packets, uint64_t bytes), void *arg,
	struct pl_diag *diag);
/* Of each table: its name, stage, entries, and lookups that hit and missed. */
void pl_dp_pipeline_tables(const struct pl_dp_pipeline *p,
	void (*each)(void *arg, const char *name, enum pl_dp_stage stage, size_t entries,
		uint64_t hits, uint64_t misses),
	void *arg);
/* Cells of all counters, meters or registers, or of the one with this name. A cell of a counter has
 * packets and bytes, of a meter packets that were green, yellow and red, of a register its value.
 * -ENOENT with diag. */
enum pl_dp_cells { PL_DP_COUNTERS, PL_DP_METERS, PL_DP_REGISTERS };
int pl_dp_pipeline_cells(const struct pl_dp_pipeline *p, enum pl_dp_cells kind, const char *name,
	void (*each)(void *arg, const char *name, uint32_t index, const uint64_t values[3]),
	void *arg, struct pl_diag *diag);
