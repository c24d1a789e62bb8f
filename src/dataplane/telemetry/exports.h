/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a node sends about a packet besides telemetry reports, each as packets of the data plane:
 *
 *   recorder   records of packets (pkt64/1, pkt96/1) in datagrams of tmpkt/1 (docs/protocols/tmpkt.md)
 *   dta        a report of Direct Telemetry Access to a translator (wire/dta.h)
 *   roce       RDMA WRITEs of its own into a collector's memory (wire/roce.h): PSN and address are
 *              registers of the node, nobody answers it (unreliable connection)
 *
 * Keys and values of the last two are fields of the records of a path and its hop at this node, by
 * name as everywhere (record/pack.h).
 */
#pragma once

#include "dataplane/telemetry/datagram.h"
#include "dataplane/telemetry/telemetry.h"
#include "record/pack.h"
#include "tap/sender.h"
#include "wire/dta.h"

/* The node's hop of a packet as records; the path has this hop only. */
void pl_dp_records(struct pl_path *path, struct pl_hop *hop, const struct pl_dp_node *node,
	const struct pl_dp_packet *pkt);

/* ---- records of packets ---- */

struct pl_dp_recorder_config {
	struct pl_dp_datagram to; /* dport 0: 40050 */
	uint8_t kind;             /* PL_FLAT_PKT64, PL_FLAT_PKT96 */
	uint16_t records;         /* of a datagram; 0: 1, so that none waits */
	uint16_t point;           /* observation point */
	uint32_t exporter;
	uint64_t *shared_seq; /* of the next datagram, where several recorders share a stream */
};

struct pl_dp_recorder;

/* The pool is the caller's. -EINVAL with diag, -ENOMEM. */
int pl_dp_recorder_new(struct pl_dp_recorder **ret, const struct pl_dp_recorder_config *config,
	struct pl_dp_pool *pool, struct pl_diag *diag);
void pl_dp_recorder_free(struct pl_dp_recorder *r); /* what waits is lost */
/* A datagram when it is full; NULL: the record waits, or (counted) no packet was free, or the packet
 * is none that has a record. */
struct pl_dp_packet *pl_dp_record(struct pl_dp_recorder *r, const struct pl_dp_packet *pkt);
/* Records that wait; NULL: none do. */
struct pl_dp_packet *pl_dp_recorder_flush(struct pl_dp_recorder *r);

struct pl_dp_recorder_counts {
	uint64_t records, none, no_packet; /* put; packets without one; records lost */
	uint64_t waiting;                  /* for their datagram to be full */
};
const struct pl_dp_recorder_counts *pl_dp_recorder_counts(const struct pl_dp_recorder *r);

/* ---- Direct Telemetry Access ---- */

struct pl_dp_dta_config {
	struct pl_dp_datagram to; /* dport 0: 40040 */
	uint8_t op;               /* key-write, append, increment, postcard */
	uint16_t store;
	uint8_t copies;
	uint32_t list; /* append */
	struct pl_pack key,
		value; /* increment: value is one number, or 0 fields: 1; postcard: one */
	bool text_key; /* as text, not packed */
	uint8_t hop, path_length; /* postcard */
};

struct pl_dp_dta {
	struct pl_dp_dta_config config;
	struct pl_dp_pool *pool;
	uint64_t reports, missing, no_packet; /* a field was missing: no report */
};

int pl_dp_dta_init(struct pl_dp_dta *d, const struct pl_dp_dta_config *config,
	struct pl_dp_pool *pool, struct pl_diag *diag);
/* NULL: counted. */
struct pl_dp_packet *pl_dp_dta(
	struct pl_dp_dta *d, const struct pl_dp_node *node, const struct pl_dp_packet *pkt);

/* ---- RDMA WRITE ---- */

struct pl_dp_roce_config {
	struct pl_dp_datagram to; /* dport is RoCE's own */
	uint32_t qpn, psn, rkey;  /* of the peer; the first PSN */
	uint64_t va;
	uint32_t slots;      /* of slot_bytes each, written in turn; 0: 1 */
	uint32_t slot_bytes; /* 0: as many as the value has */
	uint8_t service; /* PL_ROCE_UC, PL_ROCE_RC; whether it is acknowledged is not looked at */
	bool v1;         /* RoCEv1, to the MAC address alone; else RoCEv2 */
	bool has_imm;    /* each WRITE is with immediate */
	uint32_t imm;
	struct pl_pack value; /* packed, little-endian */
};

struct pl_dp_roce {
	struct pl_dp_roce_config config;
	struct pl_dp_pool *pool;
	/* Registers: WRITEs so far, and slot of the next; where several share a queue pair, theirs. */
	uint64_t own[2], *shared;
	uint64_t writes, missing, no_packet;
};

int pl_dp_roce_init(struct pl_dp_roce *r, const struct pl_dp_roce_config *config,
	struct pl_dp_pool *pool, struct pl_diag *diag);
/* NULL: counted; neither register has moved. */
struct pl_dp_packet *pl_dp_roce_write(
	struct pl_dp_roce *r, const struct pl_dp_node *node, const struct pl_dp_packet *pkt);
