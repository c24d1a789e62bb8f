/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a packet as it is in the network, with its INT header and stack. */
#include "gen/int_packet.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "gen/int_form.h"

#define GPE_NEXT_ETHERNET 3

#define FRAGMENT_UNITS    16 /* offset of a later fragment in its packet, in units of 8 bytes */
#define LABEL             16000u

static void open_push(struct pl_gen_open *o, size_t at)
{
	assert(o->n < sizeof(o->at) / sizeof(o->at[0]));
	o->at[o->n++] = at;
}

/* Makes a whole packet the last fragment of a longer one: its transport header becomes payload. */
static void make_fragment(struct pl_build *b, size_t at)
{
	uint8_t *p = b->data + at;

	if (b->full)
		return;
	if (p[0] >> 4 == 4) {
		pl_patch_be16(b, at + 6, FRAGMENT_UNITS);
		pl_patch_be16(b, at + 10, 0);
		pl_patch_be16(b, at + 10,
			pl_checksum_fold(pl_checksum_add(0, p, 4 * (size_t)(p[0] & 0xf))));
		return;
	}
	if (pl_build_reserve(b, 8) == NULL)
		return;
	/* Next:8 | Rsvd:8 | Offset:13 Rsvd:2 M:1 | Identification:32 (RFC 8200 4.5) */
	memmove(p + 48, p + 40, b->len - at - 48);
	memset(p + 40, 0, 8);
	p[40] = p[6];
	p[6] = PL_IP_FRAGMENT;
	pl_patch_be16(b, at + 42, FRAGMENT_UNITS << 3);
	pl_patch_be32(b, at + 44, 1);
	pl_patch_be16(b, at + 4, (uint16_t)(b->len - at - 40));
}

void pl_gen_open_close(struct pl_gen_open *o, struct pl_build *b)
{
	while (o->n > 0) {
		pl_end_ip(b, o->at[--o->n]);
		if (o->fragment)
			make_fragment(b, o->at[o->n]);
		o->fragment = false;
	}
}

/* Writes the IP and transport headers of an original packet, with the configured IP options. */
static size_t put_ip(const struct pl_gen_cfg *cfg, struct pl_build *b, const struct pl_flow *flow,
	uint8_t ttl, unsigned int tcp_words)
{
	size_t n = 4 * (size_t)cfg->ip_options, at;

	if (n > 0 && cfg->inner_ip == 6) {
		const uint8_t padding[4 * 10] = { 1, (uint8_t)(n - 2) }; /* PadN */
		const struct pl_ip6_options options = { .hop = padding, .hop_len = n };

		return pl_put_ip_options(b, flow, ttl, tcp_words, &options);
	}
	at = pl_put_ip(b, flow, ttl, tcp_words);
	if (n > 0 && pl_build_reserve(b, n) != NULL) {
		uint8_t *p = b->data + at;

		memmove(p + 20 + n, p + 20, b->len - at - 20 - n);
		memset(p + 20, 1, n); /* no operation */
		p[0] = (uint8_t)(0x45 + cfg->ip_options);
	}
	return at;
}

/* Size of the headers that put_ip writes before the transport. */
static size_t ip_bytes(const struct pl_gen_cfg *cfg)
{
	size_t n = 4 * (size_t)cfg->ip_options;

	if (cfg->inner_ip == 4)
		return 20 + n;
	return n == 0 ? 40 : 40 + (n + 2 + 7) / 8 * 8;
}

static enum pl_int_carrier wire_carrier(const struct pl_gen_cfg *cfg)
{
	switch (cfg->carrier) {
	case PL_GEN_GRE:
		return PL_INT_OVER_GRE;
	case PL_GEN_GPE:
		return PL_INT_OVER_GPE;
	case PL_GEN_GENEVE:
		return PL_INT_OVER_GENEVE;
	default:
		return PL_INT_OVER_L4;
	}
}

/* ---- the INT header ---- */

void pl_gen_speak_dialect(const struct pl_gen_cfg *cfg, struct pl_int_hop *hop)
{
	if (cfg->dialect == PL_DIALECT_GEANT) {
		hop->latency /= 1000; /* in microseconds, beside timestamps in nanoseconds */
	} else if (cfg->dialect == PL_DIALECT_NOVIFLOW) {
		hop->have &= ~PL_INT_HAS(PL_INT_F_LATENCY);
	}
}

unsigned int pl_gen_hop_budget_left(const struct pl_gen_cfg *cfg, const struct pl_gen_item *item)
{
	unsigned int budget = pl_int_form_hops(cfg);

	return budget > item->first ? budget - item->first : 0;
}

static uint8_t gpe_next(const struct pl_gen_cfg *cfg)
{
	return cfg->version == PL_GEN_INT_V05   ? PL_GPE_INT_05
	       : cfg->version == PL_GEN_INT_V10 ? PL_GPE_INT_10
						: PL_GPE_INT_20;
}

/* Writes a destination-type header, whose content only the end systems' software reads. */
static void put_destination(const struct pl_gen_cfg *cfg, struct pl_build *b)
{
	uint16_t behind = cfg->carrier == PL_GEN_GPE   ? gpe_next(cfg)
			  : cfg->carrier == PL_GEN_GRE ? cfg->gre_ethertype
						       : 0;

	if (cfg->carrier == PL_GEN_GENEVE) { /* in an option of its own */
		pl_put_be16(b, 0x0103);
		pl_put_be16(b, 0x0202);
	} else if (cfg->version == PL_GEN_INT_V21) {
		pl_put_be16(b, 0x2002);
		pl_put_be16(b, behind);
	} else {
		pl_put_be16(b, 0x0200);
		pl_put_be16(b, (uint16_t)(3 << 8 | behind));
	}
	pl_put_be64(b, UINT64_C(0x0011223344556677));
}

static void put_int(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *item, unsigned int n_stack, uint16_t next,
	struct pl_gen_damage *d)
{
	struct pl_int_hop hops[PL_GEN_HOPS_MAX];
	unsigned int budget = pl_gen_hop_budget_left(cfg, item),
		     n = n_stack < budget ? n_stack : budget;
	bool mx = cfg->mode == PL_GEN_MX;
	struct pl_int_header h = {
		.version = pl_int_form_version(cfg),
		.dialect = cfg->dialect,
		.kind = mx ? PL_INT_MX : PL_INT_MD,
		.carrier = wire_carrier(cfg),
		.bitmap = cfg->bitmap,
		.npt = cfg->npt,
		.hop_limit =
			n<n_stack, .hops_left = (uint8_t)(budget - n), .ds_id = cfg->ds_id,
				.ds_bitmap = (uint16_t)(0xffff0000u >>
							(cfg->ds_words + (cfg->source_words > 0))),
				.ds_words = cfg->ds_words, .source_words = n> 0 &&
					item->first == 0
				? cfg->source_words
				: 0,
		.dscp = item->flow->dscp,
		.proto = item->flow->proto,
		.dport = item->flow->dport,
		.next = next,
		.flow_seq = item->packet->flow_seq,
	};
	int r;

	if (mx)
		n = 0;
	for (unsigned int i = 0; i < n; i++) {
		hops[i] = item->packet->hops[item->first + i];
		pl_gen_speak_dialect(cfg, &hops[i]);
	}
	if (cfg->destination_shim)
		put_destination(cfg, b);
	if (cfg->gpe_chain > 0)
		h.next = gpe_next(cfg);
	d->shim = b->len;
	d->md = b->len + 4;
	d->stack = d->md + (cfg->version == PL_GEN_INT_V21 ? 12 : 8);
	r = pl_int_put(b, &h, hops, n);
	assert(r == 0 || r == -ENOBUFS);
	(void)r;
	h.kind = PL_INT_MD;
	h.hop_limit = false;
	h.source_words = 0;
	for (unsigned int i = 0; i < cfg->gpe_chain;
		i++) { /* shims of other domains, which added nothing */
		h.next = i + 1 == cfg->gpe_chain ? next : gpe_next(cfg);
		r = pl_int_put(b, &h, NULL, 0);
		assert(r == 0 || r == -ENOBUFS);
	}
	d->after = b->len;
}

/* ---- the packet in the network ---- */

void pl_gen_put_link(const struct pl_gen_cfg *cfg, struct pl_build *b, const struct pl_flow *flow)
{
	uint16_t type = cfg->inner_ip == 6 ? PL_ETH_IPV6 : PL_ETH_IPV4;

	switch (cfg->inner) {
	case PL_GEN_VLAN:
		pl_put_eth(b, type, flow->vlan);
		break;
	case PL_GEN_QINQ: /* the outer tag is the provider's, 802.1ad */
		pl_put_eth(b, PL_ETH_QINQ, 0);
		pl_put_be16(b, 2000);
		pl_put_be16(b, PL_ETH_VLAN);
		pl_put_be16(b, flow->vlan);
		pl_put_be16(b, type);
		break;
	case PL_GEN_MPLS: /* Label:20 | TC:3 S:1 | TTL:8 (RFC 3032) */
		pl_put_eth(b, PL_ETH_MPLS, 0);
		pl_put_be32(b, LABEL << 12 | 62);
		pl_put_be32(b, (LABEL + 1 + flow->dscp) << 12 | 0x100 | 62);
		break;
	case PL_GEN_IP:
		break;
	default:
		pl_put_eth(b, type, 0);
		break;
	}
}

/* Opens the outer IP header of a tunnel between two end points of the fabric. */
static void open_tunnel(const struct pl_gen_cfg *cfg, struct pl_build *b, struct pl_gen_open *o,
	const struct pl_gen_item *item, uint8_t proto, uint16_t port)
{
	static const uint8_t v4[2][4] = { { 172, 16, 0, 1 }, { 172, 16, 0, 2 } };
	static const uint8_t v6[2][16] = { { 0xfd, 0x10, [15] = 1 }, { 0xfd, 0x10, [15] = 2 } };
	struct pl_flow f = {
		.src = cfg->inner_ip == 6 ? pl_addr_v6(v6[0]) : pl_addr_v4(v4[0]),
		.dst = cfg->inner_ip == 6 ? pl_addr_v6(v6[1]) : pl_addr_v4(v4[1]),
		.sport = (uint16_t)(49152 + item->packet->flow % 16384),
		.dport = port,
		.proto = proto,
		.dscp = item->flow->dscp,
		.have = PL_FLOW_PORTS,
	};

	open_push(o, pl_put_ip(b, &f, 64, 0));
}

/* Adds n zero bytes to the transport header at p, which was closed without a payload. */
static void add_payload(uint8_t *p, uint8_t proto, uint16_t n)
{
	const bool udp = proto == PL_IP_UDP;
	uint8_t *checksum = p + (udp ? 6 : 16);
	/* TCP's length is in the pseudo header only, UDP's also in its header. */
	uint32_t sum = (uint16_t)~pl_be16(checksum) + (udp ? 2u : 1u) * n;
	uint16_t folded = pl_checksum_fold(sum);

	if (udp) {
		const uint16_t length = (uint16_t)(pl_be16(p + 4) + n);

		p[4] = (uint8_t)(length >> 8);
		p[5] = (uint8_t)length;
		if (folded == 0)
			folded = 0xffff;
	}
	checksum[0] = (uint8_t)(folded >> 8);
	checksum[1] = (uint8_t)folded;
}

/* Writes an IP packet with INT between its transport header and its payload. */
static void put_int_over_l4(const struct pl_gen_cfg *cfg, struct pl_build *b, struct pl_gen_open *o,
	const struct pl_gen_item *item, unsigned int n_stack, struct pl_gen_damage *d)
{
	struct pl_flow f = *item->flow;
	bool tcp = f.proto == PL_IP_TCP && cfg->npt != 2;
	unsigned int options = tcp && !cfg->tcp_before_options ? cfg->tcp_options : 0;
	uint8_t ttl = (uint8_t)(64 - item->hop);

	if (cfg->announce == PL_GEN_ANNOUNCE_DSCP)
		f.dscp = cfg->dscp;
	else if (cfg->announce == PL_GEN_ANNOUNCE_PORT)
		f.dport = cfg->int_port;
	if (cfg->npt == 2)
		f.proto = PL_IP_UDP;
	d->inner_l3 = b->len;
	open_push(o, put_ip(cfg, b, &f, ttl, options));
	d->inner_l4 = d->inner_l3 + ip_bytes(cfg);
	if (cfg->announce == PL_GEN_ANNOUNCE_MARKER)
		pl_put_be64(b, cfg->marker);
	put_int(cfg, b, item, n_stack, 0, d);
	if (tcp && cfg->tcp_before_options && cfg->tcp_options > 0) {
		/* the data offset counts the options, which are behind the stack now */
		for (unsigned int i = 0; i < cfg->tcp_options; i++)
			pl_put_be32(b, 0x01010101);
		pl_patch_u8(b, d->inner_l4 + 12, (uint8_t)((5 + cfg->tcp_options) << 4));
	}
	if (cfg->npt == 2) { /* the original transport header follows INT */
		uint8_t scratch[128];
		struct pl_build original = pl_build(scratch, sizeof(scratch));
		size_t at = pl_put_ip(&original, item->flow, ttl, cfg->tcp_options);
		size_t l3 = cfg->inner_ip == 6 ? 40 : 20;

		pl_end_ip(&original, at);
		add_payload(scratch + l3, item->flow->proto, cfg->payload);
		pl_put(b, scratch + l3, original.len - l3);
	}
}

void pl_gen_put_plain(const struct pl_gen_cfg *cfg, struct pl_build *b, struct pl_gen_open *o,
	const struct pl_gen_item *item, struct pl_gen_damage *d)
{
	d->inner_l3 = b->len;
	d->inner_l4 = b->len + ip_bytes(cfg);
	open_push(o, put_ip(cfg, b, item->flow, (uint8_t)(64 - item->hop), cfg->tcp_options));
}

void pl_gen_put_packet(const struct pl_gen_cfg *cfg, struct pl_build *b, struct pl_gen_open *o,
	const struct pl_gen_item *item, int n_stack, struct pl_gen_damage *d)
{
	uint16_t ethertype = cfg->inner_ip == 6 ? PL_ETH_IPV6 : PL_ETH_IPV4;
	uint8_t option[12 + 4 + 4 * 31];
	struct pl_build opt;

	pl_gen_put_link(cfg, b, item->flow);
	if (cfg->inner == PL_GEN_VXLAN) {
		open_tunnel(cfg, b, o, item, PL_IP_UDP, PL_PORT_VXLAN);
		pl_put_vxlan(b, item->flow->vni);
		pl_put_eth(b, ethertype, 0);
	}
	if (n_stack < 0) {
		pl_gen_put_plain(cfg, b, o, item, d);
		o->fragment = item->fragment;
	} else if (!pl_int_form_in_tunnel(cfg)) {
		put_int_over_l4(cfg, b, o, item, (unsigned int)n_stack, d);
	} else if (cfg->carrier == PL_GEN_GRE) {
		open_tunnel(cfg, b, o, item, PL_IP_GRE, 0);
		pl_put_gre(b, cfg->gre_ethertype, 0);
		put_int(cfg, b, item, (unsigned int)n_stack, ethertype, d);
		pl_gen_put_plain(cfg, b, o, item, d);
	} else if (cfg->carrier == PL_GEN_GPE) {
		open_tunnel(cfg, b, o, item, PL_IP_UDP, PL_PORT_VXLAN_GPE);
		pl_put_vxlan_gpe(b, item->flow->vni, gpe_next(cfg));
		put_int(cfg, b, item, (unsigned int)n_stack, GPE_NEXT_ETHERNET, d);
		pl_put_eth(b, ethertype, 0);
		pl_gen_put_plain(cfg, b, o, item, d);
	} else {
		struct pl_gen_damage at;
		size_t start;

		/* the option's length is part of the header before it */
		opt = pl_build(option, sizeof(option));
		put_int(cfg, &opt, item, (unsigned int)n_stack, 0, &at);
		open_tunnel(cfg, b, o, item, PL_IP_UDP, PL_PORT_GENEVE);
		pl_put_geneve(b, item->flow->vni, PL_ETH_TEB, opt.len);
		start = b->len;
		pl_put(b, option, opt.len);
		d->shim = start + at.shim;
		d->md = start + at.md;
		d->stack = start + at.stack;
		d->after = b->len;
		pl_put_eth(b, ethertype, 0);
		pl_gen_put_plain(cfg, b, o, item, d);
	}
	pl_put_zero(b, cfg->payload);
	pl_malform_at(d, PL_MALFORM_INT, b);
}
