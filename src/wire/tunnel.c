/* SPDX-License-Identifier: BSD-2-Clause */
/* The tunnel headers between two levels: IP in IP, GRE, VXLAN, VXLAN-GPE, Geneve. */
#include "wire/layers.h"

enum pl_link pl_link_of_ethertype(uint16_t ethertype)
{
	switch (ethertype) {
	case PL_ETH_IPV4:
	case PL_ETH_IPV6:
		return PL_LINK_RAW_IP;
	case PL_ETH_TEB:
		return PL_LINK_ETHERNET;
	default:
		return PL_LINK_UNKNOWN;
	}
}

enum { GPE_IPV4 = 1, GPE_IPV6 = 2, GPE_ETHERNET = 3 };

enum pl_link pl_link_of_gpe(uint8_t next)
{
	switch (next) {
	case GPE_IPV4:
	case GPE_IPV6:
		return PL_LINK_RAW_IP;
	case GPE_ETHERNET:
		return PL_LINK_ETHERNET;
	default:
		return PL_LINK_UNKNOWN;
	}
}

/* RFC 2784 and 2890: the optional words come in the order of their flags. */
#define GRE_CHECKSUM 0x8000
#define GRE_ROUTING  0x4000 /* RFC 1701 only, withdrawn: its fields cannot be skipped safely */
#define GRE_KEY      0x2000
#define GRE_SEQUENCE 0x1000
#define GRE_VERSION  0x0007

static enum pl_verdict open_gre(struct pl_tunnel *t, struct pl_cursor c)
{
	uint16_t flags = pl_get_be16(&c);
	uint16_t next = pl_get_be16(&c);

	if (c.short_read)
		return PL_V_SHORT;
	/* Version 1 is PPTP's (RFC 2637): an ordinary packet that carries PPP, which we do not
	 * enter. */
	if ((flags & GRE_VERSION) == 1)
		return PL_V_OK;
	if ((flags & GRE_VERSION) != 0 || (flags & GRE_ROUTING) != 0)
		return PL_V_TUNNEL_HEADER;
	if ((flags & GRE_CHECKSUM) != 0)
		pl_cursor_skip(&c, 4);
	if ((flags & GRE_KEY) != 0) {
		t->have_vni = true;
		t->vni = pl_get_be32(&c);
	}
	if ((flags & GRE_SEQUENCE) != 0)
		pl_cursor_skip(&c, 4);
	if (c.short_read)
		return PL_V_SHORT;
	t->kind = PL_TUNNEL_GRE;
	t->next = next;
	t->inner_link = pl_link_of_ethertype(next);
	t->inner = c;
	return PL_V_OK;
}

#define VXLAN_VNI     0x08 /* I: the VNI is valid */
#define VXLAN_NEXT    0x04 /* P: the last byte of word 0 is a protocol */
#define VXLAN_VERSION 0x30

static enum pl_verdict open_vxlan(struct pl_tunnel *t, struct pl_cursor c, bool gpe)
{
	const uint8_t *p = pl_cursor_take(&c, 8);

	if (p == NULL)
		return PL_V_SHORT;
	if (gpe ? (p[0] & VXLAN_VERSION) != 0 : (p[0] & VXLAN_VNI) == 0)
		return PL_V_TUNNEL_HEADER;
	t->have_vni = (p[0] & VXLAN_VNI) != 0;
	t->vni = t->have_vni ? pl_be24(p + 4) : 0;
	t->kind = gpe ? PL_TUNNEL_VXLAN_GPE : PL_TUNNEL_VXLAN;
	/* Without P a GPE header is a plain VXLAN one: Ethernet follows. */
	t->next = GPE_ETHERNET;
	if (gpe && (p[0] & VXLAN_NEXT) != 0)
		t->next = p[3];
	else if (gpe)
		t->next_unsaid = p[3];
	t->inner_link = pl_link_of_gpe((uint8_t)t->next);
	t->inner = c;
	return PL_V_OK;
}

static enum pl_verdict open_geneve(struct pl_tunnel *t, struct pl_cursor c, bool cut)
{
	const uint8_t *p = pl_cursor_take(&c, 8);

	if (p == NULL)
		return PL_V_SHORT;
	if (p[0] >> 6 != 0)
		return PL_V_TUNNEL_HEADER;
	t->options = pl_cursor_split(&c, (size_t)(p[0] & 0x3f) * 4);
	if (c.short_read)
		return cut ? PL_V_SHORT : PL_V_TUNNEL_HEADER;
	t->kind = PL_TUNNEL_GENEVE;
	t->have_vni = true;
	t->vni = pl_be24(p + 4);
	t->next = pl_be16(p + 2);
	t->inner_link = pl_link_of_ethertype(t->next);
	t->inner = c;
	return PL_V_OK;
}

enum pl_verdict pl_tunnel_open(struct pl_tunnel *ret, const struct pl_layers *layers)
{
	bool cut = (layers->flags & PL_LAYERS_CUT) != 0;

	*ret = (struct pl_tunnel){
		.kind = PL_TUNNEL_NONE,
		.options = { layers->payload.pos, layers->payload.pos, false },
		.inner = layers->payload,
		.inner_link = PL_LINK_UNKNOWN,
	};
	if ((layers->flags & (PL_LAYERS_FRAGMENT | PL_LAYERS_NO_L4)) != 0)
		return PL_V_OK;
	switch (layers->flow.proto) {
	case PL_IP_IPIP:
	case PL_IP_IPV6:
		ret->kind = PL_TUNNEL_IP;
		ret->next = layers->flow.proto == PL_IP_IPIP ? PL_ETH_IPV4 : PL_ETH_IPV6;
		ret->inner_link = PL_LINK_RAW_IP;
		return PL_V_OK;
	case PL_IP_GRE:
		return open_gre(ret, layers->payload);
	case PL_IP_UDP:
		break;
	default:
		return PL_V_OK;
	}
	switch (layers->flow.dport) {
	case PL_PORT_VXLAN:
		return open_vxlan(ret, layers->payload, false);
	case PL_PORT_VXLAN_GPE:
		return open_vxlan(ret, layers->payload, true);
	case PL_PORT_GENEVE:
		return open_geneve(ret, layers->payload, cut);
	default:
		return PL_V_OK;
	}
}
