/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node of an IOAM domain: trace options in the Hop-by-Hop header of IPv6 packets, put in by the
 * encapsulating node, filled on the way, taken out by the decapsulating node (RFC 9197 4.4, RFC 9486
 * 3). Pre-allocated and incremental traces; what the node has not is all ones; an unknown bit of the
 * trace type is all ones and takes its space. The units are those of the Linux kernel (hop limit as
 * it leaves, interfaces by level 1, arrival in seconds and, POSIX, microseconds, queue in bytes), so
 * that both can stand on one path; the delay, which Linux leaves out, is in ns.
 *
 * A header that was put in leaves without a trace: the packet's bytes are then those before. Where
 * other options share it, a PadN stands in place of the trace.
 */
#pragma once

#include "base/diag.h"
#include "dataplane/telemetry/telemetry.h"
#include "decode/decode.h"
#include "wire/ioam.h"

struct pl_dp_ioam_config {
	uint16_t ns;
	uint8_t time; /* enum pl_ioam_time */
	bool have_data, have_data_wide;
	uint32_t data; /* of the namespace at this node */
	uint64_t data_wide;
	/* encapsulating */
	uint32_t type;    /* 24 bits; 0: id, interfaces, time, delay, queue */
	uint8_t nodes;    /* room for so many, this one too; 0: 8, or as many as fit */
	bool incremental; /* packets grow at each node */
};

struct pl_dp_ioam {
	struct pl_dp_ioam_config config;
	uint64_t outcomes[PL_DP_INT_MAX];
};

/* -EINVAL with diag: a trace type without words, or with bit 22 or 23; or more nodes than an option
 * has room for. */
int pl_dp_ioam_init(
	struct pl_dp_ioam *io, const struct pl_dp_ioam_config *config, struct pl_diag *diag);

/* Each: one outcome, counted. A packet with a Hop-by-Hop header already is not encapsulated, as the
 * kernel does it. */
enum pl_dp_int_outcome pl_dp_ioam_encapsulate(
	struct pl_dp_ioam *io, const struct pl_dp_node *node, struct pl_dp_packet *pkt);
enum pl_dp_int_outcome pl_dp_ioam_transit(
	struct pl_dp_ioam *io, const struct pl_dp_node *node, struct pl_dp_packet *pkt);
enum pl_dp_int_outcome pl_dp_ioam_decapsulate(struct pl_dp_ioam *io, struct pl_dp_packet *pkt);
