/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes IOAM options. */
#include <errno.h>

#include "wire/ioam.h"

/* Begins an option: padding that aligns the IOAM header to a word, types and an open length.
 * Returns the offset of the option. */
static size_t begin(struct pl_build *b, uint8_t option_type, enum pl_ioam_kind kind)
{
	size_t pad = (4 - (b->len + 2) % 4) % 4;
	size_t at;

	if (pad == 1) {
		pl_put_u8(b, 0);
	} else if (pad > 1) {
		pl_put_u8(b, 1);
		pl_put_u8(b, (uint8_t)(pad - 2));
		pl_put_zero(b, pad - 2);
	}
	at = b->len;
	pl_put_u8(b, option_type);
	pl_put_u8(b, 0); /* length */
	pl_put_u8(b, 0);
	pl_put_u8(b, (uint8_t)kind);
	return at;
}

static int end(struct pl_build *b, size_t at)
{
	size_t len;

	if (b->full)
		return -ENOBUFS;
	len = b->len - at - 2;
	if (len > UINT8_MAX)
		return -E2BIG;
	pl_patch_u8(b, at + 1, (uint8_t)len);
	return 0;
}

static uint32_t value_or_ones(const struct pl_ioam_node *n, uint32_t has, uint32_t v)
{
	return (n->have & has) != 0 ? v : UINT32_MAX;
}

static void put_hop_limit(struct pl_build *b, const struct pl_ioam_node *n)
{
	pl_put_u8(b, (uint8_t)value_or_ones(n, PL_IOAM_HAS_HOP_LIMIT, n->hop_limit));
}

static void put_node(struct pl_build *b, uint32_t type, const struct pl_ioam_node *n)
{
	if (type & PL_IOAM_BIT(0)) {
		put_hop_limit(b, n);
		pl_put_be24(b, value_or_ones(n, PL_IOAM_HAS_NODE, n->node));
	}
	if (type & PL_IOAM_BIT(1)) {
		pl_put_be16(b, (uint16_t)value_or_ones(n, PL_IOAM_HAS_INGRESS, n->ingress));
		pl_put_be16(b, (uint16_t)value_or_ones(n, PL_IOAM_HAS_EGRESS, n->egress));
	}
	if (type & PL_IOAM_BIT(2))
		pl_put_be32(b, value_or_ones(n, PL_IOAM_HAS_SECONDS, n->seconds));
	if (type & PL_IOAM_BIT(3))
		pl_put_be32(b, value_or_ones(n, PL_IOAM_HAS_FRACTION, n->fraction));
	if (type & PL_IOAM_BIT(4))
		pl_put_be32(b, value_or_ones(n, PL_IOAM_HAS_DELAY,
				       n->delay_ns | (uint32_t)n->delay_overflow << 31));
	if (type & PL_IOAM_BIT(5))
		pl_put_be32(b, value_or_ones(n, PL_IOAM_HAS_NS_DATA, n->ns_data));
	if (type & PL_IOAM_BIT(6))
		pl_put_be32(b, value_or_ones(n, PL_IOAM_HAS_QUEUE, n->queue));
	if (type & PL_IOAM_BIT(7))
		pl_put_be32(b, value_or_ones(n, PL_IOAM_HAS_CHECKSUM, n->checksum));
	if (type & PL_IOAM_BIT(8)) {
		bool have = (n->have & PL_IOAM_HAS_NODE_WIDE) != 0;

		put_hop_limit(b, n);
		pl_put_be24(b, have ? (uint32_t)(n->node_wide >> 32) : UINT32_MAX);
		pl_put_be32(b, have ? (uint32_t)n->node_wide : UINT32_MAX);
	}
	if (type & PL_IOAM_BIT(9)) {
		pl_put_be32(b, value_or_ones(n, PL_IOAM_HAS_INGRESS_WIDE, n->ingress_wide));
		pl_put_be32(b, value_or_ones(n, PL_IOAM_HAS_EGRESS_WIDE, n->egress_wide));
	}
	if (type & PL_IOAM_BIT(10))
		pl_put_be64(b,
			(n->have & PL_IOAM_HAS_NS_DATA_WIDE) != 0 ? n->ns_data_wide : UINT64_MAX);
	if (type & PL_IOAM_BIT(11))
		pl_put_be32(b, value_or_ones(n, PL_IOAM_HAS_BUFFER, n->buffer));
	for (unsigned int bit = 12; bit <= 21; bit++) {
		if (type & PL_IOAM_BIT(bit))
			pl_put_be32(b, UINT32_MAX);
	}
	if (type & PL_IOAM_SNAPSHOT) {
		size_t len = pl_cursor_left(&n->snapshot);

		pl_put_u8(b, (uint8_t)(len / 4));
		pl_put_be24(b, value_or_ones(n, PL_IOAM_HAS_SCHEMA, n->schema));
		pl_put(b, n->snapshot.pos, len);
	}
}

int pl_ioam_put_trace(struct pl_build *b, const struct pl_ioam_trace *head, uint8_t option_type,
	const struct pl_ioam_node *nodes, unsigned int n)
{
	size_t at;

	if (head->type > 0xffffff || head->flags > 0xf || head->remaining > 0x7f)
		return -EINVAL;
	for (unsigned int i = 0; i < n; i++) {
		size_t len = pl_cursor_left(&nodes[i].snapshot);

		if (len % 4 != 0 || len > 1020)
			return -EINVAL;
	}
	at = begin(b, option_type, head->incremental ? PL_IOAM_INCREMENTAL : PL_IOAM_PREALLOCATED);
	pl_put_be16(b, head->ns);
	pl_put_u8(b, (uint8_t)(pl_ioam_node_len(head->type) << 3 | head->flags >> 1));
	pl_put_u8(b, (uint8_t)((head->flags & 1) << 7 | head->remaining));
	pl_put_be24(b, head->type);
	pl_put_u8(b, 0);
	if (!head->incremental)
		pl_put_zero(b, (size_t)head->remaining * 4);
	for (unsigned int i = n; i-- > 0;)
		put_node(b, head->type, &nodes[i]);
	return end(b, at);
}

int pl_ioam_put_e2e(
	struct pl_build *b, const struct pl_ioam_e2e *e2e, uint8_t option_type, bool seq_64)
{
	size_t at = begin(b, option_type, PL_IOAM_E2E);
	uint16_t type = 0;

	if (e2e->have_seq)
		type |= seq_64 ? 0x8000 : 0x4000;
	if (e2e->have_seconds)
		type |= 0x2000;
	if (e2e->have_fraction)
		type |= 0x1000;
	pl_put_be16(b, e2e->ns);
	pl_put_be16(b, type);
	if (e2e->have_seq && seq_64)
		pl_put_be64(b, e2e->seq);
	else if (e2e->have_seq)
		pl_put_be32(b, (uint32_t)e2e->seq);
	if (e2e->have_seconds)
		pl_put_be32(b, e2e->seconds);
	if (e2e->have_fraction)
		pl_put_be32(b, e2e->fraction);
	return end(b, at);
}

int pl_ioam_put_pot(struct pl_build *b, const struct pl_ioam_pot *pot, uint8_t option_type)
{
	size_t at = begin(b, option_type, PL_IOAM_POT);

	pl_put_be16(b, pot->ns);
	pl_put_u8(b, pot->type);
	pl_put_u8(b, pot->flags);
	if (pot->have_values) {
		pl_put_be64(b, pot->packet_id);
		pl_put_be64(b, pot->cumulative);
	}
	return end(b, at);
}

int pl_ioam_put_dex(struct pl_build *b, const struct pl_ioam_dex *dex, uint8_t option_type)
{
	size_t at;

	if (dex->type > 0xffffff)
		return -EINVAL;
	at = begin(b, option_type, PL_IOAM_DEX);
	pl_put_be16(b, dex->ns);
	pl_put_u8(b, dex->flags);
	pl_put_u8(b, (uint8_t)((dex->have_flow ? 0x80 : 0) | (dex->have_seq ? 0x40 : 0)));
	pl_put_be24(b, dex->type);
	pl_put_u8(b, 0);
	if (dex->have_flow)
		pl_put_be32(b, dex->flow);
	if (dex->have_seq)
		pl_put_be32(b, dex->seq);
	return end(b, at);
}

int pl_ioam_put_node(struct pl_build *b, uint32_t type, const struct pl_ioam_node *node)
{
	size_t len = pl_cursor_left(&node->snapshot);

	if (type > 0xffffff || len % 4 != 0 || len > 1020)
		return -EINVAL;
	put_node(b, type, node);
	return b->full ? -ENOBUFS : 0;
}
