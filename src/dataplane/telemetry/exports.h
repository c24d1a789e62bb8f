/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that a node sends about a packet besides telemetry reports:
 *
 *   recorder   records of packets (pkt64/1, pkt96/1) in datagrams of tmpkt/1 (docs/protocols/tmpkt.md)
 *   dta        a report of Direct Telemetry Access to a translator (wire/dta.h)
 *   roce       RDMA WRITEs of its own into a collector's memory (wire/roce.h): PSN and address are
 *              registers of the node, nobody answers it (unreliable connection)
 *
 * Keys and values of the last two are fields of the path and hop records of this node, by name
 * (record/pack.h).
 */
#pragma once

#include "dataplane/telemetry/datagram.h"
#include "dataplane/telemetry/telemetry.h"
#include "record/pack.h"
#include "tap/sender.h"
#include "wire/dta.h"

/* ---- records of packets ---- */

struct pl_dp_recorder_config {
	struct pl_dp_datagram to; /* dport 0: 40050 */
	uint8_t kind;             /* PL_FLAT_PKT64, PL_FLAT_PKT96 */
	uint16_t records;         /* records in a datagram; 0: 1, so that none waits */
	uint16_t point;           /* observation point */
	uint32_t exporter;
	uint64_t *shared_seq; /* number of the next datagram, if recorders share a stream */
};

struct pl_dp_recorder;

/* Creates a recorder; the pool stays the caller's. -EINVAL with diag, -ENOMEM. */
int pl_dp_recorder_new(struct pl_dp_recorder **ret, const struct pl_dp_recorder_config *config,
	struct pl_dp_pool *pool, struct pl_diag *diag);
void pl_dp_recorder_free(struct pl_dp_recorder *r); /* waiting records are lost */
/* Records a packet. Returns the datagram when it is full; NULL: the record waits, or (counted) no
 * packet was free, or the packet has no record. */
struct pl_dp_packet *pl_dp_record(struct pl_dp_recorder *r, const struct pl_dp_packet *pkt);

struct pl_dp_recorder_counts {
	uint64_t none, no_packet; /* packets without a record; records lost */
	uint64_t waiting;         /* records waiting for a full datagram */
};
const struct pl_dp_recorder_counts *pl_dp_recorder_counts(const struct pl_dp_recorder *r);

/* ---- Direct Telemetry Access ---- */

struct pl_dp_dta_config {
	struct pl_dp_datagram to; /* dport 0: 40040 */
	uint8_t op;               /* key-write, append, increment, postcard */
	uint16_t store;
	uint8_t copies;
	uint32_t list; /* append */
	/* value of increment: one number, or 0 fields for 1; of postcard: one, and a packet whose
	 * value is above 32 bits is counted as missing */
	struct pl_pack key, value;
	bool text_key;            /* the key is sent as text, not packed */
	uint8_t hop, path_length; /* postcard */
};

struct pl_dp_dta {
	struct pl_dp_dta_config config;
	struct pl_dp_pool *pool;
	uint64_t missing; /* packets without a report: a field had no value */
};

int pl_dp_dta_init(struct pl_dp_dta *d, const struct pl_dp_dta_config *config,
	struct pl_dp_pool *pool, struct pl_diag *diag);
/* Returns the report; NULL: counted in missing, or no packet was free. */
struct pl_dp_packet *pl_dp_dta(
	struct pl_dp_dta *d, const struct pl_dp_node *node, const struct pl_dp_packet *pkt);

/* ---- RDMA WRITE ---- */

struct pl_dp_roce_config {
	struct pl_dp_datagram to; /* dport is RoCE's */
	uint32_t qpn, psn, rkey;  /* of the peer; psn: the first one */
	uint64_t va;
	uint32_t slots;      /* slots of slot_bytes each, written in turn; 0: 1 */
	uint32_t slot_bytes; /* 0: the length of the value */
	uint8_t service;     /* PL_ROCE_UC, PL_ROCE_RC; acknowledgements are ignored */
	bool v1;             /* RoCEv1, by MAC address only; else RoCEv2 */
	bool has_imm;        /* each WRITE has immediate data */
	uint32_t imm;
	struct pl_pack value; /* packed, little-endian */
};

struct pl_dp_roce {
	struct pl_dp_roce_config config;
	struct pl_dp_pool *pool;
	/* Registers: WRITEs so far, and slot of the next one; `shared` if several share a queue
	 * pair. */
	uint64_t own[2], *shared;
	uint64_t missing; /* packets without a WRITE: a field had no value */
};

int pl_dp_roce_init(struct pl_dp_roce *r, const struct pl_dp_roce_config *config,
	struct pl_dp_pool *pool, struct pl_diag *diag);
/* Returns the WRITE; NULL: counted in missing, or no packet was free; the registers are unchanged. */
struct pl_dp_packet *pl_dp_roce_write(
	struct pl_dp_roce *r, const struct pl_dp_node *node, const struct pl_dp_packet *pkt);
