/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telemetry reports of a node (Telemetry Report Format Specification 0.5, 1.0, 2.0): one packet of
 * the data plane for each, Ethernet to UDP, for the pipeline to send. One reporter is one stream
 * with a sequence number for each report, also for one that could not be made, so that the
 * collector counts it as lost.
 *
 *   flow   F   from the sink: the packet with its stack, and the sink's own values in the header;
 *              or from a node of INT-MX and INT-XD, about a passing packet
 *   drop   D   a packet that the node did not send on, and why (dataplane/drops.def)
 *   queue  Q   a packet that met a deep queue
 */
#pragma once

#include "dataplane/telemetry/datagram.h"
#include "dataplane/telemetry/telemetry.h"
#include "wire/report.h"

struct pl_dp_reporter_config {
	struct pl_dp_datagram to; /* dport 0: 32766 */
	uint8_t version;          /* enum pl_report_version */
	uint8_t hw_id;            /* 6 bits */
	uint16_t bitmap; /* the node's own values in the header, where the version has a place for
	                    them; 0: 0xfd00 */
	uint16_t snap;   /* bytes of the packet after INT, or after its headers; 0: none */
};

struct pl_dp_reporter {
	struct pl_dp_reporter_config config;
	struct pl_dp_pool *pool;
	/* Sequence number of the next report; at `shared` for a stream of several reporters. */
	uint64_t seq, *shared;
	uint16_t md_bits;
};

/* Initializes a reporter; the pool stays the caller's. -EINVAL with diag. */
int pl_dp_reporter_init(struct pl_dp_reporter *r, const struct pl_dp_reporter_config *config,
	struct pl_dp_pool *pool, struct pl_diag *diag);

#define PL_DP_REPORT_D 0x01
#define PL_DP_REPORT_Q 0x02
#define PL_DP_REPORT_F 0x04

/*
 * Makes a report about the packet as it is. keep: bytes of the packet up to the end of INT or its
 * headers, 0: pl_dp_report_keep. The bits may be combined; with D the packet's `drop` is the
 * reason. NULL: no packet was free, or the report did not fit.
 */
struct pl_dp_packet *pl_dp_report(struct pl_dp_reporter *r, const struct pl_dp_node *node,
	const struct pl_dp_packet *pkt, unsigned int bits, uint32_t keep);
uint32_t pl_dp_report_keep(const struct pl_dp_packet *pkt);
