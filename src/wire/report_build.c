/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes telemetry reports in the layouts of report_parse.c. */
#include "wire/report.h"

static uint32_t ports(const struct pl_int_hop *hop)
{
	if ((hop->have & PL_INT_HAS(PL_INT_F_PORTS)) == 0)
		return 0xffffffff;
	return hop->ingress_port << 16 | (hop->egress_port & 0xffff);
}

static uint32_t queue(const struct pl_int_hop *hop)
{
	if ((hop->have & PL_INT_HAS(PL_INT_F_QUEUE)) == 0)
		return 0xffffffff;
	return hop->queue << 24 | (hop->queue_depth & 0xffffff);
}

static uint32_t drop(const struct pl_report_head *h)
{
	return (uint32_t)h->drop_queue << 24 | (uint32_t)h->drop_reason << 16;
}

/* Returns the value, or all ones when the hop does not have it. */
static uint64_t value(const struct pl_int_hop *hop, enum pl_int_field f, uint64_t v)
{
	return (hop->have & PL_INT_HAS(f)) != 0 ? v : UINT64_MAX;
}

static uint8_t nibble(const struct pl_report_head *h)
{
	return h->version_nibble_set ? h->version_nibble & 0xf : (uint8_t)h->version;
}

void pl_report_put_group(struct pl_build *b, const struct pl_report_head *h)
{
	if (h->version != PL_REPORT_V20)
		return;
	pl_put_be32(b, (uint32_t)nibble(h) << 28 | (uint32_t)(h->hw_id & 0x3f) << 22 |
			       (h->seq & 0x3fffff));
	pl_put_be32(b, h->node);
}

static void put_v05(
	struct pl_build *b, const struct pl_report_head *h, const struct pl_int_hop *hop)
{
	unsigned int nproto = h->drop_header ? 1 : h->local_header ? 2 : 0;

	pl_put_u8(b, (uint8_t)(nibble(h) << 4 | nproto));
	pl_put_u8(b, (uint8_t)(h->dropped << 7 | h->congested << 6 | h->tracked << 5));
	pl_put_u8(b, 0);
	pl_put_u8(b, h->hw_id & 0x3f);
	pl_put_be32(b, h->seq);
	pl_put_be32(b, h->ingress_ts);
	if (nproto == 0)
		return;
	pl_put_be32(b, h->node);
	pl_put_be32(b, ports(hop));
	if (nproto == 1) {
		pl_put_be32(b, drop(h));
	} else {
		pl_put_be32(b, queue(hop));
		pl_put_be32(b, (uint32_t)value(hop, PL_INT_F_EGRESS_TS, hop->egress_ts));
	}
}

static void put_v10(
	struct pl_build *b, const struct pl_report_head *h, const struct pl_int_hop *hop)
{
	unsigned int bits = h->md_bits & 0x3f;
	unsigned int length = 4 + (unsigned int)__builtin_popcount(bits);
	unsigned int nprot = h->inner_link != PL_LINK_RAW_IP ? 0 : h->inner_ip_version == 6 ? 2 : 1;

	pl_put_be32(b, (uint32_t)nibble(h) << 28 | length << 24 | nprot << 21 | bits << 15 |
			       (uint32_t)h->dropped << 8 | (uint32_t)h->congested << 7 |
			       (uint32_t)h->tracked << 6 | (h->hw_id & 0x3fu));
	pl_put_be32(b, h->node);
	pl_put_be32(b, h->seq);
	pl_put_be32(b, h->ingress_ts);
	if ((bits & 0x20) != 0)
		pl_put_be32(b, ports(hop));
	if ((bits & 0x10) != 0)
		pl_put_be32(b, (uint32_t)value(hop, PL_INT_F_LATENCY, hop->latency));
	if ((bits & 0x08) != 0)
		pl_put_be32(b, queue(hop));
	if ((bits & 0x04) != 0)
		pl_put_be32(b, (uint32_t)value(hop, PL_INT_F_EGRESS_TS, hop->egress_ts));
	if ((bits & 0x02) != 0)
		pl_put_be32(b, drop(h));
	if ((bits & 0x01) != 0)
		pl_put_be32(b, (uint32_t)value(hop, PL_INT_F_TX_UTIL, hop->tx_util));
}

static unsigned int inner_type(const struct pl_report_head *h)
{
	if (h->inner_link == PL_LINK_ETHERNET)
		return 3;
	if (h->inner_link == PL_LINK_RAW_IP)
		return h->inner_ip_version == 6 ? 5 : 4;
	return 0;
}

static void put_v20_value(struct pl_build *b, const struct pl_report_head *h,
	const struct pl_int_hop *hop, unsigned int bit)
{
	switch (bit) {
	case PL_INT_F_PORTS:
		pl_put_be32(b, ports(hop));
		break;
	case PL_INT_F_LATENCY:
		pl_put_be32(b, (uint32_t)value(hop, PL_INT_F_LATENCY, hop->latency));
		break;
	case PL_INT_F_QUEUE:
		pl_put_be32(b, queue(hop));
		break;
	case PL_INT_F_INGRESS_TS:
		pl_put_be64(b, value(hop, PL_INT_F_INGRESS_TS, hop->ingress_ts));
		break;
	case PL_INT_F_EGRESS_TS:
		pl_put_be64(b, value(hop, PL_INT_F_EGRESS_TS, hop->egress_ts));
		break;
	case PL_INT_F_PORTS2:
		pl_put_be64(b, value(hop, PL_INT_F_PORTS2,
				       (uint64_t)hop->ingress_port2 << 32 | hop->egress_port2));
		break;
	case PL_INT_F_TX_UTIL:
		pl_put_be32(b, (uint32_t)value(hop, PL_INT_F_TX_UTIL, hop->tx_util));
		break;
	case PL_INT_F_BUFFER:
		pl_put_be32(
			b, (uint32_t)value(hop, PL_INT_F_BUFFER,
				   (uint64_t)hop->buffer << 24 | (hop->buffer_depth & 0xffffff)));
		break;
	case 15:
		pl_put_be32(b, drop(h));
		break;
	default:
		pl_put_be32(b, 0xffffffff);
		break;
	}
}

static void put_v20(
	struct pl_build *b, const struct pl_report_head *h, const struct pl_int_hop *hop)
{
	size_t at = b->len, md;

	pl_put_u8(b, (uint8_t)((h->md_bits != 0) << 4 | inner_type(h)));
	pl_put_be16(b, 0); /* both lengths are patched */
	pl_put_u8(b, (uint8_t)(h->dropped << 7 | h->congested << 6 | h->tracked << 5 |
			       h->intermediate << 4));
	if (h->md_bits == 0)
		return;
	pl_put_be16(b, h->md_bits);
	pl_put_be16(b, h->ds_id);
	pl_put_be32(b, 0);
	md = b->len;
	for (unsigned int bit = 0; bit < 16; bit++) {
		if ((h->md_bits & PL_INT_BIT(bit)) != 0)
			put_v20_value(b, h, hop, bit);
	}
	if (!b->full)
		pl_patch_u8(b, at + 2, (uint8_t)((b->len - md) / 4));
}

size_t pl_report_put(
	struct pl_build *b, const struct pl_report_head *h, const struct pl_int_hop *hop)
{
	static const struct pl_int_hop nothing;
	size_t at = b->len;

	if (hop == NULL)
		hop = &nothing;
	switch (h->version) {
	case PL_REPORT_V05:
		put_v05(b, h, hop);
		break;
	case PL_REPORT_V10:
		put_v10(b, h, hop);
		break;
	default:
		put_v20(b, h, hop);
		break;
	}
	return at;
}

void pl_report_end(struct pl_build *b, const struct pl_report_head *h, size_t at)
{
	size_t words;

	if (h->version != PL_REPORT_V20 || b->full)
		return;
	pl_put_zero(b, (4 - (b->len - at) % 4) % 4);
	if (b->full)
		return;
	words = (b->len - at) / 4 - 1;
	pl_patch_u8(b, at + 1, words >= 255 ? 255 : (uint8_t)words);
}
