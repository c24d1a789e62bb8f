/* SPDX-License-Identifier: BSD-2-Clause */
/* Generates the common report from a template. */
#include "gen/template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/cursor.h"

#define TEMPLATE_MAX 1024 /* bytes; a longer packet is encoded each time */

/* Template of a flow's packet. Offsets are into it; a sum covers the bytes of a checksum, with
 * zeros for changing ones. */
struct template
{
	uint32_t generation; /* 0 = none */
	uint32_t outer_sum, inner_sum;
	uint16_t len, payload, md, stack, stack_len, outer_checksum, inner_checksum;
	uint16_t hop;
	uint8_t n_stack;
	bool inner_udp;
};

struct pl_templates {
	const struct pl_gen_cfg *cfg;
	struct pl_int_layout stack,
		md; /* one hop's block; the header's metadata, with the same layout */
	bool has_md;
	size_t stride;
	uint8_t *memory; /* for each flow: struct template, then the bytes */
};

static struct template *template_of(const struct pl_templates *t, uint32_t flow)
{
	void *place = t->memory + flow * t->stride;

	return place;
}

static uint8_t *bytes_of(struct template *tp)
{
	return (uint8_t *)(tp + 1);
}

static void set_be16(uint8_t *p, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(p, &v, sizeof(v));
}

static void set_be32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

static void set_be64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, sizeof(v));
}

static bool usual(const struct pl_gen_cfg *cfg)
{
	return !cfg->general && !cfg->truth && cfg->replay == PL_GEN_REPLAY_NONE &&
	       cfg->ioam.options == 0 && cfg->n_malform == 0 && cfg->mode == PL_GEN_MD &&
	       cfg->missing == 0 && cfg->fragments == 0 && cfg->reports_per_datagram == 1 &&
	       (cfg->carrier == PL_GEN_UDP || cfg->carrier == PL_GEN_TCP) &&
	       cfg->inner != PL_GEN_VXLAN && cfg->npt == 0 && !cfg->inner_tlv &&
	       cfg->flush_hops == 0 && !cfg->instrumented &&
	       (cfg->dialect == PL_DIALECT_SPEC || cfg->dialect == PL_DIALECT_INTCOLLECTOR) &&
	       (cfg->report == PL_GEN_REPORT_V20 ||
		       (cfg->report >= PL_GEN_REPORT_V05 && cfg->sink == PL_GEN_SINK_STACK));
}

int pl_templates_new(struct pl_templates **ret, const struct pl_gen_cfg *cfg, size_t packet_bytes)
{
	enum pl_int_version version = cfg->version == PL_GEN_INT_V05   ? PL_INT_V05
				      : cfg->version == PL_GEN_INT_V10 ? PL_INT_V10
								       : PL_INT_V20;
	struct pl_templates *t;
	uint16_t md_bits = cfg->bitmap & 0x7f80;
	size_t stride;

	*ret = NULL;
	if (packet_bytes > TEMPLATE_MAX)
		packet_bytes = TEMPLATE_MAX;
	stride = (sizeof(struct template) + packet_bytes + 63) / 64 * 64;
	if (!usual(cfg) || cfg->flows > PL_TEMPLATES_BYTES_MAX / stride)
		return 0;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	t->cfg = cfg;
	t->stride = stride;
	t->has_md =
		cfg->report == PL_GEN_REPORT_V20 && cfg->sink != PL_GEN_SINK_STACK && md_bits != 0;
	if (pl_int_layout_make(&t->stack, version, cfg->bitmap, cfg->ds_words, cfg->dialect) < 0 ||
		(t->has_md &&
			pl_int_layout_make(&t->md, PL_INT_V20, md_bits, 0, PL_DIALECT_SPEC) < 0)) {
		free(t);
		return 0;
	}
	t->memory = calloc(cfg->flows, stride);
	if (t->memory == NULL) {
		free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void pl_templates_free(struct pl_templates *t)
{
	if (t == NULL)
		return;
	free(t->memory);
	free(t);
}

/* Writes the values of a block that differ from packet to packet; node and ports are constant on a
 * path. */
static inline void put_values(
	uint8_t *p, const struct pl_int_layout *l, const struct pl_int_hop *hop)
{
	const uint8_t *off = l->off;

	if (off[PL_INT_F_LATENCY] != PL_INT_NO_OFFSET)
		set_be32(p + off[PL_INT_F_LATENCY], hop->latency);
	if (off[PL_INT_F_QUEUE] != PL_INT_NO_OFFSET)
		set_be32(p + off[PL_INT_F_QUEUE],
			l->queue_16 ? hop->queue << 16 | (hop->queue_depth & 0xffff)
				    : hop->queue << 24 | (hop->queue_depth & 0xffffff));
	if (off[PL_INT_F_INGRESS_TS] != PL_INT_NO_OFFSET) {
		if (l->ts64)
			set_be64(p + off[PL_INT_F_INGRESS_TS], hop->ingress_ts);
		else
			set_be32(p + off[PL_INT_F_INGRESS_TS], (uint32_t)hop->ingress_ts);
	}
	if (off[PL_INT_F_EGRESS_TS] != PL_INT_NO_OFFSET) {
		if (l->ts64)
			set_be64(p + off[PL_INT_F_EGRESS_TS], hop->egress_ts);
		else
			set_be32(p + off[PL_INT_F_EGRESS_TS], (uint32_t)hop->egress_ts);
	}
	if (off[PL_INT_F_PORTS2] != PL_INT_NO_OFFSET && l->version == PL_INT_V05)
		set_be32(p + off[PL_INT_F_PORTS2],
			l->queue_16 ? hop->congestion_queue << 16 | (hop->congestion & 0xffff)
				    : hop->congestion_queue << 24 | (hop->congestion & 0xffffff));
	if (off[PL_INT_F_TX_UTIL] != PL_INT_NO_OFFSET)
		set_be32(p + off[PL_INT_F_TX_UTIL], hop->tx_util);
	if (off[PL_INT_F_BUFFER] != PL_INT_NO_OFFSET && l->version == PL_INT_V20)
		set_be32(p + off[PL_INT_F_BUFFER],
			hop->buffer << 24 | (hop->buffer_depth & 0xffffff));
}

/* Writes the sequence number and, before v2.0, the time behind it. Returns the sum of the two
 * words. */
static inline uint32_t put_numbers(
	const struct pl_templates *t, uint8_t *payload, uint32_t seq, const struct pl_int_hop *hop)
{
	uint8_t *p = payload + (t->cfg->report == PL_GEN_REPORT_V05 ? 4 : 8);

	if (t->cfg->report == PL_GEN_REPORT_V20) {
		set_be32(payload,
			UINT32_C(2) << 28 | (uint32_t)t->cfg->hw_id << 22 | (seq & 0x3fffff));
		return pl_checksum_add(0, payload, 4);
	}
	set_be32(p, seq);
	set_be32(p + 4, (uint32_t)hop->ingress_ts);
	return pl_checksum_add(0, p, 8);
}

/* Makes a checksum that is never 0 where 0 means "none"; the sums here are never 0, because they
 * include ports. */
static inline uint16_t checksum(uint32_t sum, bool udp)
{
	uint16_t c = pl_checksum_fold(sum);

	return c == 0 && udp ? 0xffff : c;
}

bool pl_templates_put(struct pl_templates *t, struct pl_build *b, const struct pl_gen_item *item,
	uint32_t seq, uint32_t generation)
{
	struct template *tp = template_of(t, item->packet->flow);
	const struct pl_int_hop *hops = item->packet->hops;
	uint32_t sum, stack_sum;
	uint16_t inner;
	uint8_t *p, *block;

	if (tp->generation != generation || tp->hop != item->hop)
		return false;
	p = pl_build_reserve(b, tp->len);
	if (p == NULL)
		return false;
	memcpy(p, bytes_of(tp), tp->len);
	sum = put_numbers(t, p + tp->payload, seq, &hops[item->hop]);
	if (t->has_md) {
		put_values(p + tp->md, &t->md, &hops[item->hop]);
		sum = pl_checksum_add(sum, p + tp->md, 4 * (size_t)t->md.words);
	}
	/* newest first; the source's block may be longer, after its values */
	block = p + tp->stack;
	for (unsigned int i = tp->n_stack; i-- > 0; block += 4 * (size_t)t->stack.words)
		put_values(block, &t->stack, &hops[i]);
	stack_sum = pl_checksum_add(0, p + tp->stack, tp->stack_len);
	inner = checksum(
		pl_checksum_add(tp->inner_sum, p + tp->stack, tp->stack_len), tp->inner_udp);
	set_be16(p + tp->inner_checksum, inner);
	if (!t->cfg->udp) {
		uint64_t all = (uint64_t)tp->outer_sum + sum + stack_sum + inner;

		all = (all & UINT32_MAX) + (all >> 32);
		set_be16(p + tp->outer_checksum,
			checksum((uint32_t)((all & UINT32_MAX) + (all >> 32)), true));
	}
	return true;
}

/* Sum of the bytes that the checksum of the transport header at `at` covers, up to `end`; l3 is its
 * IP header. */
static uint32_t transport_sum(const uint8_t *p, size_t l3, size_t at, size_t end, uint8_t proto)
{
	bool v4 = p[l3] >> 4 == 4;
	uint32_t sum = pl_checksum_add(0, p + l3 + (v4 ? 12 : 8), v4 ? 8 : 32);
	size_t len = end - at;
	uint8_t tail[8] = { 0, 0, (uint8_t)(len >> 8), (uint8_t)len, 0, 0, 0, proto };

	sum = pl_checksum_add(sum, tail, sizeof(tail));
	return pl_checksum_add(sum, p + at, len);
}

void pl_templates_learn(struct pl_templates *t, const struct pl_build *b,
	const struct pl_gen_item *item, const struct pl_gen_damage *d, uint32_t generation)
{
	struct template *tp = template_of(t, item->packet->flow);
	unsigned int words = t->stack.words;
	uint8_t *p = bytes_of(tp);
	bool v4 = t->cfg->inner_ip == 4;
	size_t end, outer_l4;

	tp->generation = 0;
	/* int_gen.c encodes packets whose stack was cut by the hop limit, or is longer than its
	 * hops */
	if (b->len > t->stride - sizeof(*tp) || d->shim == 0 || words == 0)
		return;
	tp->n_stack = (uint8_t)(t->cfg->sink == PL_GEN_SINK_HEADER ? item->hop : item->hop + 1);
	tp->stack_len = (uint16_t)(4 * words * tp->n_stack);
	if (d->stack + tp->stack_len > d->after ||
		(d->after - d->stack - tp->stack_len) / 4 >= words)
		return;
	memcpy(p, b->data, b->len);
	tp->len = (uint16_t)b->len;
	tp->hop = (uint16_t)item->hop;
	tp->payload = (uint16_t)d->payload;
	tp->md = (uint16_t)(d->individual + 12);
	tp->stack = (uint16_t)d->stack;
	tp->inner_udp = t->cfg->carrier == PL_GEN_UDP;
	tp->inner_checksum = (uint16_t)(d->inner_l4 + (tp->inner_udp ? 6 : 16));
	/* changing bytes count as 0 in the sums */
	memset(p + tp->stack, 0, tp->stack_len);
	set_be16(p + tp->inner_checksum, 0);
	end = v4 ? d->inner_l3 + pl_be16(p + d->inner_l3 + 2)
		 : d->inner_l3 + 40u + pl_be16(p + d->inner_l3 + 4);
	tp->inner_sum = transport_sum(
		p, d->inner_l3, d->inner_l4, end, tp->inner_udp ? PL_IP_UDP : PL_IP_TCP);
	if (!t->cfg->udp) {
		size_t seq_at = t->cfg->report == PL_GEN_REPORT_V05   ? d->payload + 4
				: t->cfg->report == PL_GEN_REPORT_V10 ? d->payload + 8
								      : d->payload;

		memset(p + seq_at, 0, t->cfg->report == PL_GEN_REPORT_V20 ? 4 : 8);
		if (t->has_md)
			memset(p + tp->md, 0, 4 * (size_t)t->md.words);
		outer_l4 = d->payload - 8;
		tp->outer_checksum = (uint16_t)(outer_l4 + 6);
		set_be16(p + tp->outer_checksum, 0);
		tp->outer_sum = transport_sum(p, d->frame_l3, outer_l4, b->len, PL_IP_UDP);
	}
	/* node and ports of the blocks are constant on a path: they come from the packet again */
	memcpy(p, b->data, b->len);
	tp->generation = generation;
}
