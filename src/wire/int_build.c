/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes INT headers in the layouts of int_parse.c. */
#include <errno.h>
#include <string.h>

#include "wire/int.h"

static void store32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

static void store64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, 8);
}

/* Returns a word of two parts. */
static uint32_t pair(uint32_t hi, unsigned int lo_bits, uint32_t lo)
{
	return hi << lo_bits | (lo & ((1u << lo_bits) - 1));
}

static void store_ports2(uint8_t *p, const struct pl_int_layout *l, const struct pl_int_hop *h,
	unsigned int queue_bits)
{
	if (!l->ports2_16)
		store64(p, (uint64_t)h->ingress_port2 << 32 | h->egress_port2);
	else if (l->version == PL_INT_V05)
		store32(p, pair(h->congestion_queue, queue_bits, h->congestion));
	else
		store32(p, pair(h->ingress_port2, 16, h->egress_port2));
}

static void store_time(uint8_t *p, const struct pl_int_layout *l, uint64_t ts)
{
	if (l->ts64)
		store64(p, ts);
	else
		store32(p, (uint32_t)ts);
}

/* Writes a hop's block. It is filled with ones first, which stand for values that are missing, and
 * for unknown bits. */
static void put_hop(struct pl_build *b, const struct pl_int_layout *l, const struct pl_int_hop *h,
	unsigned int extra_words)
{
	const unsigned int queue_bits = l->queue_16 ? 16 : 24;
	const bool checksum = (l->bitmap & PL_INT_CHECKSUM) != 0;
	uint8_t *p = pl_build_reserve(b, 4 * (size_t)(l->words + extra_words));
	size_t behind = 4 * (size_t)(l->baseline_words - checksum);

	if (p == NULL)
		return;
	memset(p, 0xff, behind);
#define HAS(f) (l->off[f] != PL_INT_NO_OFFSET && (h->have & PL_INT_HAS(f)) != 0)
	if (HAS(PL_INT_F_NODE))
		store32(p + l->off[PL_INT_F_NODE], h->node);
	if (HAS(PL_INT_F_PORTS))
		store32(p + l->off[PL_INT_F_PORTS], pair(h->ingress_port, 16, h->egress_port));
	if (HAS(PL_INT_F_LATENCY))
		store32(p + l->off[PL_INT_F_LATENCY], h->latency);
	if (HAS(PL_INT_F_QUEUE))
		store32(p + l->off[PL_INT_F_QUEUE], pair(h->queue, queue_bits, h->queue_depth));
	if (HAS(PL_INT_F_INGRESS_TS))
		store_time(p + l->off[PL_INT_F_INGRESS_TS], l, h->ingress_ts);
	if (HAS(PL_INT_F_EGRESS_TS))
		store_time(p + l->off[PL_INT_F_EGRESS_TS], l, h->egress_ts);
	if (HAS(PL_INT_F_PORTS2))
		store_ports2(p + l->off[PL_INT_F_PORTS2], l, h, queue_bits);
	if (HAS(PL_INT_F_TX_UTIL))
		store32(p + l->off[PL_INT_F_TX_UTIL], h->tx_util);
	if (HAS(PL_INT_F_BUFFER))
		store32(p + l->off[PL_INT_F_BUFFER], pair(h->buffer, 24, h->buffer_depth));
#undef HAS
	/* Domain-specific words stand before the checksum complement, which is the last of the
	 * block. */
	memset(p + behind, 0, 4 * (size_t)(l->words - l->baseline_words + extra_words));
	if (checksum)
		store32(p + 4 * (size_t)(l->words + extra_words - 1),
			l->version == PL_INT_V05 ? 0xffffffff : 0);
}

static void put_md(struct pl_build *b, const struct pl_int_header *h, const struct pl_int_layout *l,
	unsigned int n)
{
	switch (h->version) {
	case PL_INT_V05:
		if (h->dialect == PL_DIALECT_V04)
			pl_put_u8(b, (uint8_t)(h->copy << 3 | h->hop_limit << 2));
		else
			pl_put_u8(b, (uint8_t)(h->copy << 1 | h->hop_limit));
		pl_put_u8(b, l->words);
		pl_put_u8(b, (uint8_t)(n + h->hops_left));
		pl_put_u8(b, (uint8_t)n);
		pl_put_be16(b, h->bitmap);
		pl_put_be16(b, 0);
		break;
	case PL_INT_V10:
		pl_put_u8(b, (uint8_t)(1u << 4 | h->copy << 1 | h->hop_limit));
		pl_put_u8(b, (uint8_t)(h->mtu_limit << 7));
		pl_put_u8(b, l->words);
		pl_put_u8(b, h->hops_left);
		pl_put_be16(b, h->bitmap);
		pl_put_be16(b, h->dialect == PL_DIALECT_GEANT ? (uint16_t)h->flow_seq : 0);
		break;
	default:
		pl_put_u8(b, (uint8_t)(2u << 4 | h->copy << 3 |
				       (h->kind == PL_INT_MD ? h->hop_limit << 2 | h->mtu_limit << 1
							     : 0)));
		pl_put_u8(b, 0);
		pl_put_u8(b, h->kind == PL_INT_MD ? l->words : 0);
		pl_put_u8(b, h->kind == PL_INT_MD ? h->hops_left : 0);
		pl_put_be16(b, h->bitmap);
		pl_put_be16(b, h->ds_id);
		pl_put_be16(b, h->ds_bitmap);
		pl_put_be16(b, h->ds_flags);
		break;
	}
}

static void put_shim(struct pl_build *b, const struct pl_int_header *h, unsigned int length)
{
	if (h->version != PL_INT_V20) {
		pl_put_u8(b, h->dialect == PL_DIALECT_HOST_INT ? 3 : 1);
		pl_put_u8(b, 0);
		pl_put_u8(b, (uint8_t)length);
		if (h->carrier == PL_INT_OVER_GPE)
			pl_put_u8(b, (uint8_t)h->next);
		else
			pl_put_u8(b, h->version == PL_INT_V10 ? (uint8_t)(h->dscp << 2) : 0);
		return;
	}

	uint8_t type = h->kind == PL_INT_MX ? 3 : 1;

	switch (h->carrier) {
	case PL_INT_OVER_GPE:
		pl_put_u8(b, (uint8_t)(type << 4));
		pl_put_u8(b, (uint8_t)length);
		pl_put_u8(b, (uint8_t)(h->gre_added << 7));
		pl_put_u8(b, (uint8_t)h->next);
		break;
	case PL_INT_OVER_GRE:
		pl_put_u8(b, (uint8_t)(type << 4 | h->gre_added << 3));
		pl_put_u8(b, (uint8_t)length);
		pl_put_be16(b, h->next);
		break;
	default:
		pl_put_u8(b, (uint8_t)(type << 4 | (h->npt & 3) << 2));
		pl_put_u8(b, (uint8_t)length);
		if (h->npt == 1)
			pl_put_be16(b, h->dport);
		else
			pl_put_be16(b, h->npt == 2 ? h->proto : (uint16_t)(h->dscp << 2));
		break;
	}
}

int pl_int_put(struct pl_build *b, const struct pl_int_header *h, const struct pl_int_hop *hops,
	unsigned int n)
{
	const bool v2 = h->version == PL_INT_V20, geneve = h->carrier == PL_INT_OVER_GENEVE;
	const bool tail = h->version == PL_INT_V05 && h->carrier == PL_INT_OVER_L4;
	struct pl_int_layout l = { 0 };
	unsigned int stack, body, after = 0;
	int r;

	if ((h->carrier == PL_INT_OVER_GRE && !v2) || (h->kind != PL_INT_MD && !v2) ||
		(h->kind == PL_INT_MX && n > 1) || h->kind == PL_INT_DESTINATION)
		return -EINVAL;
	r = pl_int_layout_make(&l, h->version, h->bitmap, h->ds_words, h->dialect);
	if (r < 0)
		return r;

	stack = n * l.words + (n > 0 ? h->source_words : 0);
	body = (v2 ? 3 : 2) + stack;
	if (tail)
		after = h->dialect == PL_DIALECT_HOST_INT ? 2 : 1;
	/* Length counts the shim too in v0.5 and v1.0, only what follows it in v2.x. */
	if (body + after + (v2 ? 0 : 1) > 255 || (geneve && body > 31) ||
		(h->version == PL_INT_V05 && n + h->hops_left > 255))
		return -E2BIG;

	if (geneve) {
		/* RFC 8926 3.5: Class:16 | Type:8 | R:3 Length:5 */
		pl_put_be16(b, h->ds_id != 0 && !v2 ? h->ds_id : 0x0103);
		pl_put_u8(b, h->kind == PL_INT_MX ? 3 : 1);
		pl_put_u8(b, (uint8_t)body);
	} else {
		put_shim(b, h, body + after + (v2 ? 0 : 1));
	}
	put_md(b, h, &l, n);
	for (unsigned int i = n; i-- > 0;)
		put_hop(b, &l, &hops[i], i == 0 ? h->source_words : 0);
	if (h->dialect == PL_DIALECT_V04 && stack > 0 && !b->full)
		b->data[b->len - 4] |= 0x80; /* bottom of stack: bit 31 of the last word */
	if (tail) {
		if (h->dialect == PL_DIALECT_HOST_INT)
			pl_put_be32(b, h->flow_seq);
		pl_put_u8(b, h->proto);
		pl_put_be16(b, h->dport);
		pl_put_u8(b, h->dscp);
	}
	return b->full ? -ENOBUFS : 0;
}

int pl_int_put_block(
	struct pl_build *b, const struct pl_int_layout *l, const struct pl_int_hop *hop)
{
	put_hop(b, l, hop, 0);
	return b->full ? -ENOBUFS : 0;
}
