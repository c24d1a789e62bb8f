/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pipeline, the match-action engine of a node: ports, tables in two stages, counters, meters,
 * registers, groups. Engine without sockets, clock and queues:
 *
 *   received ─▶ ingress: parse, tables, port chosen ─▶ out() ─▶ queues of the caller
 *   dequeued ─▶ egress: tables ─▶ out() ─▶ sent by the caller
 *
 * Packets for ingress have in_port and in_ns set, those for egress out_ns and the metadata of their
 * queue. The pipeline owns packets while it runs; each is passed to out(), dropped (freed, with the
 * cause counted), or consumed (kept by an action). At every time, for each stage,
 *
 *   in + made = out + sum of dropped + consumed
 *
 * in packets, where `made` counts copies and packets that actions emitted. One thread.
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

struct pl_dp_account {
	uint64_t in, made, out, consumed, dropped[PL_DP_DROP_MAX];
};

struct pl_dp_pipeline_ops {
	/* Takes over a packet with out_port and queue set. stage: the one that it left. */
	void (*out)(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage);
	/* Called before a dropped packet is freed; pkt->drop is the reason. NULL: not called. */
	void (*dropped)(void *arg, const struct pl_dp_packet *pkt, enum pl_dp_stage stage);
	/* Called before a packet that the node answered is freed. NULL: not called. */
	void (*answered)(void *arg, const struct pl_dp_packet *pkt);
	/* Called with a block record of a measurement point (dataplane/marking/marking.h). NULL:
	 * not called. */
	void (*block)(void *arg, const struct pl_mark128 *record);
	/* Returns the state of the node's clock when blocks are read: whether it is synchronized,
	 * and its error (UINT64_MAX: unknown). NULL: synchronized, with the error of the guard
	 * band. */
	void (*clock)(void *arg, bool *ret_synced, uint64_t *ret_error_ns);
	void *arg;
};

struct pl_dp_pipeline_options {
	const char *name;
	uint32_t node_id;
	struct pl_dp_pool *pool; /* for copies and packets that actions emit */
	struct pl_dp_pipeline_ops ops;
	/* Seed of hashes that influence actions, where every run must do the same; 0: a random
	 * one. */
	uint64_t seed;
	/* Actions beside those of externs.def, NULL at the end; or NULL. Not copied. */
	const struct pl_dp_extern *const *externs;
};

/* Creates an empty pipeline. -EINVAL, -ENOMEM. */
int pl_dp_pipeline_new(struct pl_dp_pipeline **ret, const struct pl_dp_pipeline_options *options);
void pl_dp_pipeline_free(struct pl_dp_pipeline *p);

/* ---- its parts, before the first entry that names them. -EINVAL with diag, -ENOMEM ---- */

int pl_dp_pipeline_port(struct pl_dp_pipeline *p, unsigned int number, uint64_t mac, uint32_t mtu,
	struct pl_diag *diag);
/* Add an address at which the port answers (dataplane/own.h), and set the ICMP errors per second
 * for packets received by a port. Without any address the node sends nothing itself. */
int pl_dp_pipeline_address(
	struct pl_dp_pipeline *p, unsigned int port, const char *address, struct pl_diag *diag);
void pl_dp_pipeline_icmp(struct pl_dp_pipeline *p, unsigned int port, uint32_t per_second);
int pl_dp_pipeline_counter(
	struct pl_dp_pipeline *p, const char *name, uint32_t size, struct pl_diag *diag);
int pl_dp_pipeline_register(
	struct pl_dp_pipeline *p, const char *name, uint32_t size, struct pl_diag *diag);

/* Rates in bits per second, bursts in bytes. peak_bps 0: one rate (RFC 2697), where peak_burst is
 * the excess burst; else two (RFC 2698). */
struct pl_dp_meter_cfg {
	uint64_t rate_bps, burst, peak_bps, peak_burst;
};
int pl_dp_pipeline_meter(struct pl_dp_pipeline *p, const char *name, uint32_t size,
	const struct pl_dp_meter_cfg *cfg, struct pl_diag *diag);
int pl_dp_pipeline_group(struct pl_dp_pipeline *p, const char *name, struct pl_diag *diag);
bool pl_dp_pipeline_has_group(const struct pl_dp_pipeline *p, const char *name);
int pl_dp_pipeline_member(
	struct pl_dp_pipeline *p, const char *group, const char *actions, struct pl_diag *diag);

/* Adds a table. key: n texts "FIELD KIND". On failure *ret_bad is the index of the wrong one;
 * n: none of them is wrong. */
int pl_dp_pipeline_table(struct pl_dp_pipeline *p, const char *name, enum pl_dp_stage stage,
	uint32_t size, const char *const *key, size_t n, size_t *ret_bad, struct pl_diag *diag);
int pl_dp_pipeline_miss(
	struct pl_dp_pipeline *p, const char *table, const char *actions, struct pl_diag *diag);

/* ---- entries ---- */

enum pl_dp_change_kind {
	PL_DP_ADD,    /* add; there must be no entry with the same match and priority */
	PL_DP_SET,    /* add, or replace the actions of an existing entry */
	PL_DP_DELETE, /* delete; the text needs no actions */
	PL_DP_CLEAR,  /* delete all entries of the table; no text */
};

struct pl_dp_change {
	enum pl_dp_change_kind kind;
	const char *table, *entry; /* "FIELD=VALUE… -> ACTION; …" */
};

/* Makes all changes, or none when one is refused: *ret_bad is its index and diag the reason.
 * -EINVAL, -ENOENT, -EEXIST, -ENOSPC, -ENOMEM. Not to be called within a batch. */
int pl_dp_pipeline_change(struct pl_dp_pipeline *p, const struct pl_dp_change *changes, size_t n,
	size_t *ret_bad, struct pl_diag *diag);

/* Replaces an old pipeline by a new one, between two batches: takes over its accounts, which ports
 * are up, the cells of the same name and the counts of equal entries, and frees it. Filters of
 * actions start empty. */
void pl_dp_pipeline_inherit(struct pl_dp_pipeline *p, struct pl_dp_pipeline *old);

/* ---- alternate marking ---- */

/* Sets up alternate marking, after the ports. -EINVAL with diag: it is set up already, or as
 * pl_dp_marking_new; -ENOMEM. */
int pl_dp_pipeline_marking(
	struct pl_dp_pipeline *p, const struct pl_dp_marking_cfg *cfg, struct pl_diag *diag);
/* Returns the measurement points, or NULL. */
struct pl_dp_marking *pl_dp_pipeline_points(const struct pl_dp_pipeline *p);

/* ---- time ---- */

/* Returns when to call pl_dp_pipeline_turn, by the node's clock; UINT64_MAX: never, 0: now. */
uint64_t pl_dp_pipeline_due(const struct pl_dp_pipeline *p);
/* Does the work that is due at now_ns. To be called between two batches. */
void pl_dp_pipeline_turn(struct pl_dp_pipeline *p, uint64_t now_ns);

/* ---- packets ---- */

void pl_dp_pipeline_ingress(struct pl_dp_pipeline *p, struct pl_dp_packet *const *pkts, size_t n);
void pl_dp_pipeline_egress(struct pl_dp_pipeline *p, struct pl_dp_packet *const *pkts, size_t n);
/* Drops a packet outside of the tables (a queue does); pkt->drop is set. Counts it as in and
 * dropped at egress, reports it as any drop, and frees it. */
void pl_dp_pipeline_dropped(struct pl_dp_pipeline *p, struct pl_dp_packet *pkt, uint64_t now_ns);

/* For actions: sends a new packet, which becomes the pipeline's, out by a port, past the ingress
 * tables and through a queue like any other: also from egress it is passed to out() as a packet of
 * ingress. The packet is parsed here, and gets the port's MAC address and the node's mark. */
void pl_dp_emit(const struct pl_dp_call *call, struct pl_dp_packet *pkt, uint16_t port);
uint32_t pl_dp_pipeline_node_id(const struct pl_dp_pipeline *p);

/* Sets a port up or down; packets to a port that is down are dropped with cause port. Ports are up
 * at first. */
void pl_dp_pipeline_port_up(struct pl_dp_pipeline *p, unsigned int number, bool up);
/* Changes the MAC address of a port. */
void pl_dp_pipeline_mac(struct pl_dp_pipeline *p, unsigned int number, uint64_t mac);

/* ---- reading ---- */

const struct pl_dp_account *pl_dp_pipeline_account(
	const struct pl_dp_pipeline *p, enum pl_dp_stage stage);

/* Calls each() for every entry of a table, in the order of adding, with its text and counters.
 * -ENOENT with diag. */
int pl_dp_pipeline_dump(const struct pl_dp_pipeline *p, const char *table,
	void (*each)(void *arg, const char *entry, uint64_t packets, uint64_t bytes), void *arg,
	struct pl_diag *diag);
/* Calls each() for every table with its name, stage, number of entries, hits and misses. */
void pl_dp_pipeline_tables(const struct pl_dp_pipeline *p,
	void (*each)(void *arg, const char *name, enum pl_dp_stage stage, size_t entries,
		uint64_t hits, uint64_t misses),
	void *arg);
/* Calls each() for the cells of all counters, meters or registers, or of the one with this name.
 * Values: packets and bytes of a counter; green, yellow and red packets of a meter; the value of a
 * register. -ENOENT with diag. */
enum pl_dp_cells { PL_DP_COUNTERS, PL_DP_METERS, PL_DP_REGISTERS };
int pl_dp_pipeline_cells(const struct pl_dp_pipeline *p, enum pl_dp_cells kind, const char *name,
	void (*each)(void *arg, const char *name, uint32_t index, const uint64_t values[3]),
	void *arg, struct pl_diag *diag);
