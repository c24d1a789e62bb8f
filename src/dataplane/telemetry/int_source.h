/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * INT source: inserts an INT header into packets, with INT-MD also the node's own block as the
 * first of the stack. INT 0.5 4.6, 1.0 4.6, 2.1 5.6. INT-XD inserts nothing: its nodes only report
 * (dataplane/telemetry/reporter.h).
 *
 * The header goes behind the TCP or UDP header, announced by DSCP, UDP port or marker, or into a
 * tunnel that the packet is already in: VXLAN (made VXLAN-GPE; G tells the sink to undo that in
 * 2.1), VXLAN-GPE, Geneve, GRE. Lengths and checksums are updated. A packet that cannot carry INT
 * is not changed, and is counted by cause.
 */
#pragma once

#include "base/diag.h"
#include "dataplane/telemetry/int_transit.h"

struct pl_dp_int_source_config {
	struct pl_dp_int_domain domain;
	uint8_t version;  /* enum pl_int_version */
	uint8_t kind;     /* PL_INT_MD, PL_INT_MX */
	uint8_t carrier;  /* enum pl_int_carrier */
	uint8_t by;       /* over TCP and UDP, one PL_DP_BY_*; 0: PL_DP_BY_DSCP */
	uint8_t npt;      /* 2.1 by port: 1 (UDP) or 2; 0: 1 */
	uint16_t bitmap;  /* 0: id, ports, latency, queue, both times, utilization (0xfd00) */
	uint8_t max_hops; /* 0: as many as the length has room for */
	bool no_block;    /* INT-MD: the node's own block is left to an int_transit behind it */
};

struct pl_dp_int_source {
	struct pl_dp_int_source_config config;
	struct pl_int_header header; /* without the values of the packet */
	struct pl_int_cache cache;
	uint32_t bytes; /* bytes of the node's own block, 0 without one */
};

/* Initializes the source. -EINVAL with diag for settings that exclude each other. */
int pl_dp_int_source_init(struct pl_dp_int_source *s, const struct pl_dp_int_source_config *config,
	struct pl_diag *diag);

/* Instruments a packet. After DONE the header offsets are updated. */
enum pl_dp_int_outcome pl_dp_int_source(
	struct pl_dp_int_source *s, const struct pl_dp_node *node, struct pl_dp_packet *pkt);
