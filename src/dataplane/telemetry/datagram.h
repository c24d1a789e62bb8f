/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP datagrams that a node sends itself: the headers around what telemetry puts inside. */
#pragma once

#include "base/addr.h"
#include "base/diag.h"
#include "dataplane/packet.h"
#include "wire/build.h"

/* Most that stands before the payload: Ethernet, IPv6, UDP. */
#define PL_DP_DATAGRAM_OVERHEAD (14 + 40 + 8)

struct pl_dp_datagram {
	struct pl_addr src, dst; /* both IPv4, or both IPv6 */
	uint16_t sport, dport;
	uint8_t dscp, ttl; /* ttl 0: 64 */
	uint8_t smac[6], dmac[6];
	bool no_sum; /* IPv4: UDP checksum 0 */
};

/* -EINVAL with diag: addresses of two families, or none. */
int pl_dp_datagram_check(const struct pl_dp_datagram *d, struct pl_diag *diag);
/* Headers; returns what pl_dp_datagram_end takes when the payload has been put. */
size_t pl_dp_datagram_begin(const struct pl_dp_datagram *d, struct pl_build *b);
void pl_dp_datagram_end(const struct pl_dp_datagram *d, struct pl_build *b, size_t at);
/* A whole one. NULL: no packet was free, or it does not fit. */
struct pl_dp_packet *pl_dp_datagram_make(
	const struct pl_dp_datagram *d, struct pl_dp_pool *pool, const void *payload, uint32_t len);
