/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the headers of datagrams that a node itself sends. */
#include "dataplane/telemetry/datagram.h"

#include <errno.h>

#include "wire/layers.h"

#define TTL_USUAL 64

int pl_dp_datagram_check(const struct pl_dp_datagram *d, struct pl_diag *diag)
{
	if (pl_addr_is_unspecified(&d->src) || pl_addr_is_unspecified(&d->dst) ||
		pl_addr_is_v4(&d->src) != pl_addr_is_v4(&d->dst)) {
		pl_diag_set(diag, "a source and a destination are needed, both IPv4 or both IPv6");
		return -EINVAL;
	}
	return 0;
}

size_t pl_dp_datagram_begin(const struct pl_dp_datagram *d, struct pl_build *b)
{
	const struct pl_flow flow = {
		.src = d->src,
		.dst = d->dst,
		.sport = d->sport,
		.dport = d->dport,
		.proto = PL_IP_UDP,
		.dscp = d->dscp,
		.have = PL_FLOW_PORTS,
	};

	pl_put_eth(b, pl_addr_is_v4(&d->dst) ? PL_ETH_IPV4 : PL_ETH_IPV6, 0);
	pl_patch(b, 0, d->dmac, 6);
	pl_patch(b, 6, d->smac, 6);
	return pl_put_ip(b, &flow, d->ttl != 0 ? d->ttl : TTL_USUAL, 0);
}

void pl_dp_datagram_end(const struct pl_dp_datagram *d, struct pl_build *b, size_t at)
{
	pl_end_ip(b, at);
	if (d->no_sum && pl_addr_is_v4(&d->dst))
		pl_patch_be16(b, at + 20 + 6, 0);
}

struct pl_dp_packet *pl_dp_datagram_make(
	const struct pl_dp_datagram *d, struct pl_dp_pool *pool, const void *payload, uint32_t len)
{
	struct pl_dp_packet *pkt = pl_dp_packet_new(pool, PL_DP_DATAGRAM_OVERHEAD + len);
	struct pl_build b;
	size_t at;

	if (pkt == NULL)
		return NULL;
	b = pl_build(pkt->data, pkt->len);
	at = pl_dp_datagram_begin(d, &b);
	pl_put(&b, payload, len);
	pl_dp_datagram_end(d, &b, at);
	pkt->len = (uint32_t)b.len;
	if (b.full) {
		pl_dp_packet_free(pkt);
		return NULL;
	}
	return pkt;
}
