/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flow hash of packet records (pl_pkt96.flow_hash): 64 bits of the 5-tuple, the same in both
 * directions, on every machine and in every run, so that exporters and partitions agree. Never 0,
 * which stands for no hash.
 *
 * Its key is public: senders of packets can make them collide. It spreads flows over partitions and
 * queues; a table that untrusted senders fill hashes the tuple with its own random seed.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/addr.h"
#include "base/hash.h"
#include "record/packet.h"

/* Hash of an address and a port. The sides differ by nothing else. */
static inline uint64_t pl_flow_hash_side(const struct pl_addr *addr, uint16_t port)
{
	uint64_t words[2];

	memcpy(words, addr->b, sizeof(words));
	return pl_hash_mix(words[1] ^ 0x51a9c4f3e2d78b06u, pl_hash_mix(words[0], port));
}

/* Flow hash of the 5-tuple. Ports are in the machine's order, 0 for protocols without. The sides
 * are added, not XORed: a host that talks to its own address and port is a flow too. */
static inline uint64_t pl_flow_hash(const struct pl_addr *src, const struct pl_addr *dst,
	uint16_t sport, uint16_t dport, uint8_t proto)
{
	const uint64_t hash =
		pl_hash_mix(pl_flow_hash_side(src, sport) + pl_flow_hash_side(dst, dport), proto);

	return hash != 0 ? hash : 1;
}

static inline uint64_t pl_flow_hash_packet(const struct pl_pkt96 *packet)
{
	return pl_flow_hash(
		&packet->src, &packet->dst, packet->sport, packet->dport, packet->proto);
}

/* Flow hash of a record of any kind; of a DNS message that of its client and server. */
static inline uint64_t pl_flow_hash_record(enum pl_flat_kind kind, const void *record)
{
	const struct pl_flow128 *f = record;
	const struct pl_dns64 *d = record;
	const struct pl_mark128 *m = record;
	const struct pl_seg192 *s = record;
	const struct pl_sent128 *sent = record;

	switch (kind) {
	case PL_FLAT_FLOW128:
	case PL_FLAT_FLOW288:
		return pl_flow_hash(&f->src, &f->dst, f->sport, f->dport, f->proto);
	case PL_FLAT_DNS64:
		return pl_flow_hash(&d->client, &d->server, 0, 0, 0);
	case PL_FLAT_MARK128:
		return pl_flow_hash(&m->src, &m->dst, m->sport, m->dport, m->proto);
	case PL_FLAT_SEG192:
		return pl_flow_hash(&s->src, &s->dst, s->sport, s->dport, s->proto);
	case PL_FLAT_SENT128:
		return pl_flow_hash(
			&sent->src, &sent->dst, sent->sport, sent->dport, (uint8_t)sent->proto);
	case PL_FLAT_LINK128:
		/* A link has no flow; its records stay together. */
		return pl_hash_mix(1 + ((const struct pl_link128 *)record)->link, 0) | 1;
	case PL_FLAT_PKT96:
	case PL_FLAT_DROP168: /* begins like pkt96; without addresses the hash is 0 */
		return ((const struct pl_pkt96 *)record)->flow_hash;
	case PL_FLAT_PKT64:
	case PL_FLAT_MAX:
		break;
	}
	/* Both kinds have the fields that are read here. */
	return pl_flow_hash_packet(record);
}
