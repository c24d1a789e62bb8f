/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * INT shims, headers and stacks in every carrier. Bytes 0 and 1 are carrier, cut or not, and hints.
 * Whatever the verdict, nothing points outside; what was read is written again, and reading that
 * gives the same header and the same values of every hop.
 */
#include "fuzz.h"
#include "wire/int.h"

static void inside(const uint8_t *data, size_t size, const struct pl_cursor *c)
{
	if (c->pos == NULL && c->end == NULL)
		return;
	must(c->pos >= data && c->pos <= c->end && c->end <= data + size);
}

static uint64_t value(const uint8_t *block, const struct pl_int_layout *l, enum pl_int_field f)
{
	const uint8_t *p = block + l->off[f];

	return (l->ts64 && (f == PL_INT_F_INGRESS_TS || f == PL_INT_F_EGRESS_TS)) ||
			       (f == PL_INT_F_PORTS2 && !l->ports2_16)
		       ? pl_be64(p)
		       : pl_be32(p);
}

/* The values of one block as a writer takes them. */
static void read_hop(struct pl_int_hop *h, const uint8_t *block, const struct pl_int_layout *l)
{
	const unsigned int queue_bits = l->queue_16 ? 16 : 24;

	memset(h, 0, sizeof(*h));
	for (unsigned int f = 0; f < PL_INT_F_MAX; f++) {
		uint64_t v;

		if (l->off[f] == PL_INT_NO_OFFSET)
			continue;
		v = value(block, l, f);
		h->have |= PL_INT_HAS(f);
		switch ((enum pl_int_field)f) {
		case PL_INT_F_NODE:
			h->node = (uint32_t)v;
			break;
		case PL_INT_F_PORTS:
			h->ingress_port = (uint32_t)v >> 16;
			h->egress_port = v & 0xffff;
			break;
		case PL_INT_F_LATENCY:
			h->latency = (uint32_t)v;
			break;
		case PL_INT_F_QUEUE:
			h->queue = (uint32_t)v >> queue_bits;
			h->queue_depth = v & ((1u << queue_bits) - 1);
			break;
		case PL_INT_F_INGRESS_TS:
			h->ingress_ts = v;
			break;
		case PL_INT_F_EGRESS_TS:
			h->egress_ts = v;
			break;
		case PL_INT_F_PORTS2:
			if (l->version == PL_INT_V05) {
				h->congestion_queue = (uint32_t)v >> queue_bits;
				h->congestion = v & ((1u << queue_bits) - 1);
			} else {
				unsigned int half = l->ports2_16 ? 16 : 32;

				h->ingress_port2 = (uint32_t)(v >> half);
				h->egress_port2 = (uint32_t)(v & (UINT64_MAX >> (64 - half)));
			}
			break;
		case PL_INT_F_TX_UTIL:
			h->tx_util = (uint32_t)v;
			break;
		default:
			h->buffer = (uint32_t)v >> 24;
			h->buffer_depth = v & 0xffffff;
			break;
		}
	}
}

static void again(const struct pl_int *in, enum pl_int_carrier carrier)
{
	static struct pl_int_hop hops[PL_INT_HOPS_MAX];
	static struct pl_int_cache cache;
	const struct pl_int_layout *l = in->layout;
	unsigned int dialect = l != NULL ? l->dialect : PL_DIALECT_SPEC;
	struct pl_int_hints hints = { .dialect = (uint8_t)dialect };
	struct pl_int_header h = { .version = in->version,
		.dialect = dialect,
		.kind = in->kind,
		.carrier = carrier,
		.bitmap = in->bitmap,
		.npt = in->npt,
		.hop_limit = in->hop_limit,
		.mtu_limit = in->mtu_limit,
		.copy = in->copy,
		.hops_left = in->hops_left,
		.ds_id = in->ds_id,
		.ds_bitmap = in->ds_bitmap,
		.ds_flags = in->ds_flags,
		.ds_words = l != NULL ? (uint8_t)(l->words - l->baseline_words) : 0,
		.source_words = in->source_words,
		.dscp = in->dscp,
		.proto = in->proto,
		.dport = in->dport,
		.next = in->next,
		.gre_added = in->gre_added,
		.flow_seq = in->flow_seq };
	uint8_t memory[1200];
	struct pl_build b = pl_build(memory, sizeof(memory));
	struct pl_cursor c;
	struct pl_int out;
	enum pl_verdict v;

	/* The shim's type says Host-INT, a hint may say anything; v0.4 is written otherwise when
	 * not pinned. */
	if (in->host_int)
		h.dialect = hints.dialect = PL_DIALECT_HOST_INT;
	else if (dialect == PL_DIALECT_HOST_INT || dialect == PL_DIALECT_V04)
		h.dialect = hints.dialect = PL_DIALECT_SPEC;
	/* Source first for the writer. */
	for (unsigned int i = 0; i < in->hops; i++)
		read_hop(&hops[in->hops - 1 - i], in->stack + 4 * (size_t)i * in->hop_words, l);
	must(pl_int_put(&b, &h, hops, in->hops) == 0);
	c = pl_cursor(memory, b.len);
	if (carrier == PL_INT_OVER_GENEVE) {
		pl_cursor_skip(&c, 4);
		v = pl_int_parse_geneve(&out, c, memory[2], &hints, &cache);
	} else {
		v = pl_int_parse(&out, &c, carrier, &hints, &cache, false);
		must(pl_cursor_left(&c) == 0);
	}
	must(v == PL_V_OK);
	must(out.version == in->version && out.kind == in->kind && out.npt == in->npt);
	must(out.bitmap == in->bitmap && out.hops == in->hops);
	must(out.hop_limit == in->hop_limit && out.mtu_limit == in->mtu_limit);
	must(out.copy == in->copy && out.partial == in->partial);
	must(out.hops_left == in->hops_left && out.source_words == in->source_words);
	must(out.ds_id == in->ds_id && out.ds_bitmap == in->ds_bitmap);
	must(out.ds_flags == in->ds_flags && out.gre_added == in->gre_added);
	must(out.have_dscp == in->have_dscp && out.dscp == in->dscp);
	must(out.have_dport == in->have_dport && out.dport == in->dport);
	must(out.have_proto == in->have_proto && out.proto == in->proto);
	must(out.have_flow_seq == in->have_flow_seq && out.flow_seq == in->flow_seq);
	must(out.next == in->next && out.host_int == in->host_int);
	for (unsigned int i = 0; i < in->hops; i++) {
		struct pl_int_hop was, is;

		read_hop(&was, in->stack + 4 * (size_t)i * in->hop_words, l);
		read_hop(&is, out.stack + 4 * (size_t)i * out.hop_words, out.layout);
		must(memcmp(&was, &is, sizeof(was)) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pl_int_cache cache;
	struct pl_int_hints hints = { 0 };
	struct pl_int in;
	struct pl_cursor c;
	enum pl_verdict v;

	if (size < 2)
		return 0;
	memset(&in, 0, sizeof(in));
	hints.dialect = data[1] % PL_DIALECT_MAX;
	hints.dialect_pinned = (data[1] & 0x80) != 0;
	hints.queue_word = data[1] >> 4 & 1;
	c = pl_cursor(data + 2, size - 2);
	if (data[0] % 4 == 3)
		(void)pl_cursor_trim(&c, 31 * 4); /* no option of Geneve is longer (RFC 8926 3.5) */
	if (data[0] % 4 == 3)
		v = pl_int_parse_geneve(&in, c, data[0] >> 4, &hints, &cache);
	else
		v = pl_int_parse(&in, &c, (enum pl_int_carrier)(data[0] % 4), &hints, &cache,
			(data[0] & 0x80) != 0);
	must(v < PL_V_MAX);
	inside(data, size, &c);
	if (v != PL_V_OK && v != PL_V_INT_TRUNCATED)
		return 0;
	must(in.version < PL_INT_VERSION_MAX || v == PL_V_INT_TRUNCATED ||
		in.kind == PL_INT_DESTINATION);
	must(in.hops <= in.announced_hops || in.announced_hops == 0);
	inside(data, size, &in.rest);
	if (in.hops > 0) {
		size_t bytes = (size_t)in.hops * in.hop_words * 4;

		must(in.hop_words > 0 && in.hop_words <= PL_INT_HOP_ML_MAX);
		must(in.stack >= data && bytes <= size);
		must(in.stack + bytes <= data + size);
		must(in.kind != PL_INT_MD || in.layout->words == in.hop_words);
		for (unsigned int f = 0; f < PL_INT_F_MAX; f++)
			must(in.layout->off[f] == PL_INT_NO_OFFSET ||
				in.layout->off[f] + 4u <= in.hop_words * 4u);
	}
	must((v == PL_V_INT_TRUNCATED) <= in.partial);
	/* What was there whole, read as the writer would write it: v0.4 puts its flags elsewhere,
	 * and a hint may divide the queue word otherwise than the dialect. */
	if (v == PL_V_OK && in.kind != PL_INT_DESTINATION && hints.queue_word == 0 &&
		!(hints.dialect == PL_DIALECT_V04 && hints.dialect_pinned))
		again(&in,
			data[0] % 4 == 3 ? PL_INT_OVER_GENEVE : (enum pl_int_carrier)(data[0] % 4));
	return 0;
}
