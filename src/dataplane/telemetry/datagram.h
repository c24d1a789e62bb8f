/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP datagrams that a node itself sends: headers around a payload of telemetry. */
#pragma once

#include "base/addr.h"
#include "base/diag.h"
#include "dataplane/packet.h"
#include "wire/build.h"

/* Most bytes before the payload: Ethernet, IPv6, UDP. */
#define PL_DP_DATAGRAM_OVERHEAD (14 + 40 + 8)

struct pl_dp_datagram {
	struct pl_addr src, dst; /* both IPv4, or both IPv6 */
	uint16_t sport, dport;
	uint8_t dscp, ttl; /* ttl 0: 64 */
	uint8_t smac[6], dmac[6];
	bool no_sum; /* IPv4: UDP checksum 0 */
};

/* Checks the addresses. -EINVAL with diag: one is missing, or they are of two families. */
int pl_dp_datagram_check(const struct pl_dp_datagram *d, struct pl_diag *diag);
/* Writes the headers. Returns the offset that pl_dp_datagram_end needs after the payload. */
size_t pl_dp_datagram_begin(const struct pl_dp_datagram *d, struct pl_build *b);
void pl_dp_datagram_end(const struct pl_dp_datagram *d, struct pl_build *b, size_t at);
/* Makes a whole datagram. NULL: no packet was free, or it does not fit. */
struct pl_dp_packet *pl_dp_datagram_make(
	const struct pl_dp_datagram *d, struct pl_dp_pool *pool, const void *payload, uint32_t len);
