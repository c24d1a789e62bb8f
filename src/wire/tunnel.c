/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the tunnel headers between two levels: IP in IP, GRE and ERSPAN, VXLAN, VXLAN-GPE, Geneve,
 * GTP-U. */
#include "wire/layers.h"

#include <errno.h>

#include "base/num.h"

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

enum { ERSPAN_II = 1, ERSPAN_III = 2 };
enum { ERSPAN_ETHERNET = 0, ERSPAN_IP = 2 };

/*
 * draft-foschiano-erspan-03: type I has no header of its own, and its GRE header no sequence
 * number, by which it is told from type II. II: Ver:4 VLAN:12 COS:3 En:2 T:1 Session:10 |
 * Reserved:12 Index:20. III: the same first word | Timestamp:32 | SGT:16 P:1 FT:5 Hw:6 D:1 Gra:2 O:1,
 * and with O 8 bytes of the platform.
 */
static enum pl_verdict open_erspan(struct pl_tunnel *t, bool sequence)
{
	const uint8_t *p;

	t->inner_link = PL_LINK_ETHERNET;
	if (t->next == PL_ETH_ERSPAN && !sequence)
		return PL_V_OK;
	p = pl_cursor_take(&t->inner, t->next == PL_ETH_ERSPAN ? 8 : 12);
	if (p == NULL)
		return PL_V_SHORT;
	if (p[0] >> 4 != (t->next == PL_ETH_ERSPAN ? ERSPAN_II : ERSPAN_III))
		return PL_V_TUNNEL_HEADER;
	if (t->next == PL_ETH_ERSPAN)
		return PL_V_OK;
	if ((p[11] & 1) != 0)
		pl_cursor_skip(&t->inner, 8);
	if (t->inner.short_read)
		return PL_V_SHORT;
	switch (p[10] >> 2 & 0x1f) {
	case ERSPAN_ETHERNET:
		break;
	case ERSPAN_IP:
		t->inner_link = PL_LINK_RAW_IP;
		break;
	default:
		t->inner_link = PL_LINK_UNKNOWN;
		break;
	}
	return PL_V_OK;
}

static enum pl_verdict open_gre(struct pl_tunnel *t, struct pl_cursor c)
{
	uint16_t flags = pl_get_be16(&c);
	uint16_t next = pl_get_be16(&c);
	enum pl_verdict v;

	if (c.short_read)
		return PL_V_SHORT;
	/* Version 1 is PPTP's (RFC 2637): an ordinary packet that carries PPP, which is not
	 * read. */
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
	if (next != PL_ETH_ERSPAN && next != PL_ETH_ERSPAN_III)
		return PL_V_OK;
	v = open_erspan(t, (flags & GRE_SEQUENCE) != 0);
	t->kind = v == PL_V_OK ? PL_TUNNEL_ERSPAN : PL_TUNNEL_NONE;
	return v;
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

/* 3GPP TS 29.281 5.1: Ver:3 PT:1 R:1 E:1 S:1 PN:1 | Type:8 | Length:16 | TEID:32, and with E, S or
 * PN: Sequence:16 | N-PDU:8 | Next:8. */
#define GTPU_VERSION_1   0x30 /* with PT: GTP, not GTP' */
#define GTPU_VERSION     0xf0
#define GTPU_OPTIONAL    0x07 /* E, S, PN: the four bytes are present */
#define GTPU_EXTENSION   0x04 /* E: Next is valid */
#define GTPU_PDU         255  /* G-PDU: a user's packet; other types are between nodes */
#define GTPU_HEADERS_MAX 8    /* extension headers at most; fewer are defined */

static enum pl_verdict open_gtpu(struct pl_tunnel *t, struct pl_cursor c, bool cut)
{
	const uint8_t *p = pl_cursor_take(&c, 8);
	uint8_t next = 0;

	/* Other protocols use the port too. */
	if (p == NULL || (p[0] & GTPU_VERSION) != GTPU_VERSION_1 || p[1] != GTPU_PDU)
		return PL_V_OK;
	/* The length may exceed the bytes only when the packet was cut. */
	if (!pl_cursor_trim(&c, pl_be16(p + 2)) && !cut)
		return PL_V_TUNNEL_HEADER;
	if ((p[0] & GTPU_OPTIONAL) != 0) {
		const uint8_t *optional = pl_cursor_take(&c, 4);

		if (optional == NULL)
			return cut ? PL_V_SHORT : PL_V_TUNNEL_HEADER;
		next = (p[0] & GTPU_EXTENSION) != 0 ? optional[3] : 0;
	}
	/* Length:8 in words, the content, the type of the next. */
	for (unsigned int i = 0; next != 0; i++) {
		const uint8_t *length = pl_cursor_peek(&c, 1), *header;

		if (i == GTPU_HEADERS_MAX || (length != NULL && *length == 0))
			return PL_V_TUNNEL_HEADER;
		header = length == NULL ? NULL : pl_cursor_take(&c, 4u * *length);
		if (header == NULL)
			return cut ? PL_V_SHORT : PL_V_TUNNEL_HEADER;
		next = header[4u * *length - 1];
	}
	t->kind = PL_TUNNEL_GTPU;
	t->inner = c;
	p = pl_cursor_peek(&c, 1);
	/* No field names the contents: IP, or the contents of another type of session. */
	t->inner_link =
		p != NULL && (p[0] >> 4 == 4 || p[0] >> 4 == 6) ? PL_LINK_RAW_IP : PL_LINK_UNKNOWN;
	return PL_V_OK;
}

int pl_vxlan_ports_parse(uint64_t *ret, const char *const *texts, size_t n, const char **ret_bad)
{
	uint16_t ports[PL_PORTS_MAX - 1] = { PL_PORT_VXLAN, PL_PORT_VXLAN, PL_PORT_VXLAN };
	uint64_t port;

	*ret_bad = NULL;
	if (n > PL_PORTS_MAX - 1)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (pl_parse_u64(texts[i], &port) < 0 || port < 1 || port > UINT16_MAX) {
			*ret_bad = texts[i];
			return -EINVAL;
		}
		ports[i] = (uint16_t)port;
	}
	*ret = n == 0 ? PL_VXLAN_PORTS : PL_PORTS(PL_PORT_VXLAN, ports[0], ports[1], ports[2]);
	return 0;
}

enum pl_verdict pl_tunnel_open(
	struct pl_tunnel *ret, const struct pl_layers *layers, uint64_t vxlan_ports)
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
	if (pl_ports_have(vxlan_ports, layers->flow.dport))
		return open_vxlan(ret, layers->payload, false);
	switch (layers->flow.dport) {
	case PL_PORT_GTPU:
		return open_gtpu(ret, layers->payload, cut);
	case PL_PORT_VXLAN_GPE:
		return open_vxlan(ret, layers->payload, true);
	case PL_PORT_GENEVE:
		return open_geneve(ret, layers->payload, cut);
	default:
		return PL_V_OK;
	}
}
