/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node of an IOAM domain: trace options in the Hop-by-Hop header of IPv6 packets, inserted by the
 * encapsulating node, filled by transit nodes, removed by the decapsulating node (RFC 9197 4.4, RFC
 * 9486 3). Pre-allocated and incremental traces. Values that the node does not have, and those of
 * unknown bits of the trace type, are all ones. The units are those of the Linux kernel (hop limit
 * as it leaves, interfaces by level 1, arrival in seconds and, POSIX, microseconds, queue in
 * bytes), so that both can be on one path; the delay, which Linux leaves out, is in ns.
 *
 * Decapsulation removes a Hop-by-Hop header that has only the trace, so the packet's bytes are
 * those before encapsulation. Where other options share the header, a PadN replaces the trace.
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
	uint32_t data; /* namespace data of this node */
	uint64_t data_wide;
	/* Of the encapsulating node. */
	uint32_t type;    /* 24 bits; 0: id, interfaces, time, delay, queue */
	uint8_t nodes;    /* number of nodes with room, with this one; 0: 8, or as many as fit */
	bool incremental; /* packets grow at each node */
};

struct pl_dp_ioam {
	struct pl_dp_ioam_config config;
};

/* Initializes the node. -EINVAL with diag: a trace type without words, or with bit 22 or 23; or
 * more nodes than an option has room for. */
int pl_dp_ioam_init(
	struct pl_dp_ioam *io, const struct pl_dp_ioam_config *config, struct pl_diag *diag);

/* Insert, fill or remove a trace. Like the kernel, encapsulation skips packets that already have a
 * Hop-by-Hop header. */
enum pl_dp_int_outcome pl_dp_ioam_encapsulate(
	const struct pl_dp_ioam *io, const struct pl_dp_node *node, struct pl_dp_packet *pkt);
enum pl_dp_int_outcome pl_dp_ioam_transit(
	const struct pl_dp_ioam *io, const struct pl_dp_node *node, struct pl_dp_packet *pkt);
enum pl_dp_int_outcome pl_dp_ioam_decapsulate(
	const struct pl_dp_ioam *io, struct pl_dp_packet *pkt);
