/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the INT header of a packet by its announcement: DSCP, port, marker or tunnel. */
#include "dataplane/telemetry/int_find.h"

#include "wire/cursor.h"
#include "wire/layers.h"

#define SHIMS_MAX    4
#define GPE_HAS_NEXT 0x04 /* P of VXLAN-GPE */

enum pl_dp_int_outcome pl_dp_int_of_fault(enum pl_dp_edit_fault fault)
{
	switch (fault) {
	case PL_DP_EDIT_OK:
		return PL_DP_INT_DONE;
	case PL_DP_EDIT_NOT_IP:
		return PL_DP_INT_NOT_IP;
	case PL_DP_EDIT_FRAGMENT:
		return PL_DP_INT_FRAGMENT;
	case PL_DP_EDIT_NO_L4:
		return PL_DP_INT_TRANSPORT;
	default:
		return PL_DP_INT_MALFORMED;
	}
}

uint32_t pl_dp_gre_bytes(const uint8_t gre[4])
{
	if ((gre[0] & 0xc0) != 0 || (gre[1] & 7) != 0)
		return 0;
	return 4u + ((gre[0] & 0x20) != 0 ? 4 : 0) + ((gre[0] & 0x10) != 0 ? 4 : 0);
}

static uint32_t offset(const struct pl_dp_edit *e, const uint8_t *p)
{
	return (uint32_t)(p - e->pkt->data);
}

/* Returns the shim behind destination-type headers, which belong to the end hosts. pl_int_parse
 * skipped the same ones. */
static const uint8_t *skip_destinations(struct pl_cursor c, bool *ret_any)
{
	const uint8_t *s = pl_cursor_peek(&c, 4);

	*ret_any = false;
	for (unsigned int i = 0; i < SHIMS_MAX && s != NULL; i++) {
		if (s[0] == 2 && s[2] > 0)
			pl_cursor_skip(&c, 4 * (size_t)s[2]);
		else if (s[0] >> 4 == 2)
			pl_cursor_skip(&c, 4 + 4 * (size_t)s[1]);
		else
			break;
		*ret_any = true;
		s = pl_cursor_peek(&c, 4);
	}
	return s;
}

/* Parses INT that begins at the cursor. */
static enum pl_dp_int_outcome take(struct pl_dp_int_found *ret,
	const struct pl_dp_int_domain *domain, const struct pl_dp_edit *e, struct pl_cursor c,
	enum pl_int_carrier carrier, struct pl_int_cache *cache)
{
	struct pl_cursor after = c;
	const uint8_t *shim;

	if (pl_int_parse(&ret->in, &after, carrier, &domain->hints, cache, false) != PL_V_OK ||
		ret->in.host_int)
		return PL_DP_INT_MALFORMED;
	if (ret->in.kind == PL_INT_DESTINATION)
		return PL_DP_INT_NONE;
	shim = skip_destinations(c, &ret->others);
	if (shim == NULL)
		return PL_DP_INT_MALFORMED;
	ret->shim = offset(e, shim);
	ret->md = ret->shim + 4;
	ret->stack = ret->md + (ret->in.version == PL_INT_V20 ? 12 : 8);
	ret->end = ret->keep = offset(e, after.pos);
	return PL_DP_INT_DONE;
}

static enum pl_dp_int_outcome find_geneve(struct pl_dp_int_found *ret,
	const struct pl_dp_int_domain *domain, const struct pl_dp_edit *e, struct pl_cursor c,
	struct pl_int_cache *cache)
{
	const uint8_t *g = pl_cursor_take(&c, 8);
	struct pl_cursor options;

	/* Ver:2 OptLen:6 (words) | … (RFC 8926 3.4) */
	if (g == NULL || g[0] >> 6 != 0)
		return PL_DP_INT_NONE;
	options = pl_cursor_split(&c, 4 * (size_t)(g[0] & 0x3f));
	ret->tunnel = offset(e, g);
	ret->others = false;
	while (pl_cursor_left(&options) > 0) {
		const uint8_t *o = pl_cursor_take(&options, 4);
		struct pl_cursor body;

		if (o == NULL)
			return PL_DP_INT_MALFORMED;
		body = pl_cursor_split(&options, 4 * (size_t)(o[3] & 0x1f));
		if (body.short_read)
			return PL_DP_INT_MALFORMED;
		if (pl_be16(o) != domain->geneve_class || (o[2] & 0x7f) == 2)
			continue;
		if (pl_int_parse_geneve(&ret->in, body, o[2] & 0x7f, &domain->hints, cache) !=
			PL_V_OK)
			return PL_DP_INT_MALFORMED;
		ret->at = ret->shim = offset(e, o);
		ret->md = ret->shim + 4;
		ret->stack = ret->md + (ret->in.version == PL_INT_V20 ? 12 : 8);
		ret->end = offset(e, body.end);
		ret->keep = offset(e, options.end);
		return PL_DP_INT_DONE;
	}
	return options.short_read ? PL_DP_INT_MALFORMED : PL_DP_INT_NONE;
}

static bool is_int_in_gpe(uint8_t next)
{
	return next == PL_GPE_INT_05 || next == PL_GPE_INT_10 || next == PL_GPE_INT_20;
}

static enum pl_dp_int_outcome find_in_tunnel(struct pl_dp_int_found *ret,
	const struct pl_dp_int_domain *domain, const struct pl_dp_edit *e,
	struct pl_int_cache *cache)
{
	const uint8_t *data = e->pkt->data;
	struct pl_cursor c;
	const uint8_t *p;

	ret->by = PL_DP_BY_TUNNEL;
	if (e->proto == PL_IP_GRE) {
		uint32_t bytes = pl_dp_gre_bytes(data + e->l4);

		if (pl_be16(data + e->l4 + 2) != domain->gre_ethertype)
			return PL_DP_INT_NONE;
		c = pl_cursor(data + e->l4, e->end - e->l4);
		if (bytes == 0 || pl_cursor_take(&c, bytes) == NULL)
			return PL_DP_INT_MALFORMED;
		ret->tunnel = e->l4;
		ret->at = e->l4 + bytes;
		return take(ret, domain, e, c, PL_INT_OVER_GRE, cache);
	}
	if (e->proto != PL_IP_UDP)
		return PL_DP_INT_NONE;
	c = pl_cursor(data + e->payload, e->end - e->payload);
	switch (pl_be16(data + e->l4 + 2)) {
	case PL_PORT_VXLAN_GPE:
		p = pl_cursor_take(&c, 8);
		if (p == NULL || (p[0] & GPE_HAS_NEXT) == 0 || !is_int_in_gpe(p[3]))
			return PL_DP_INT_NONE;
		ret->tunnel = e->payload;
		ret->at = e->payload + 8;
		return take(ret, domain, e, c, PL_INT_OVER_GPE, cache);
	case PL_PORT_GENEVE:
		return find_geneve(ret, domain, e, c, cache);
	default:
		return PL_DP_INT_NONE;
	}
}

/* Returns true when a header of the protocol is whole in so many bytes and claims no more than these, so that the packet
 * is well-formed with it in the place of INT's. Any protocol but TCP, UDP and IP's own extension headers is believed. */
static bool transport_fits(uint8_t proto, const uint8_t *p, uint32_t bytes)
{
	uint32_t claimed;

	switch (proto) {
	case PL_IP_TCP:
		claimed = bytes >= 20 ? (uint32_t)(p[12] >> 4) * 4 : 0;
		return claimed >= 20 && claimed <= bytes;
	case PL_IP_UDP:
		claimed = bytes >= 8 ? pl_be16(p + 4) : 0;
		return claimed >= 8 && claimed <= bytes;
	case PL_IP_HOPOPTS:
	case PL_IP_ROUTING:
	case PL_IP_FRAGMENT:
	case PL_IP_AH:
	case PL_IP_DSTOPTS:
		return false;
	default:
		return true;
	}
}

/* Finds INT between transport and payload, announced in one of the three ways. */
static enum pl_dp_int_outcome find_behind_l4(struct pl_dp_int_found *ret,
	const struct pl_dp_int_domain *domain, const struct pl_dp_edit *e, uint8_t by, uint32_t at,
	struct pl_int_cache *cache)
{
	enum pl_dp_int_outcome r;

	ret->by = by;
	ret->at = at;
	if (by == PL_DP_BY_MARKER)
		at += 8;
	r = take(ret, domain, e, pl_cursor(e->pkt->data + at, e->end - at), PL_INT_OVER_L4, cache);
	/* With NPT 2 the transport header in front of INT was put in by the source and belongs to
	 * INT. */
	if (r == PL_DP_INT_DONE && ret->in.npt == 2) {
		if (by != PL_DP_BY_PORT || ret->others ||
			!transport_fits(ret->in.proto, e->pkt->data + ret->end, e->end - ret->end))
			return PL_DP_INT_MALFORMED;
		ret->at = e->l4;
	} else if (r == PL_DP_INT_DONE && (ret->in.npt == 1) != (by == PL_DP_BY_PORT) &&
		   ret->in.version == PL_INT_V20) {
		return PL_DP_INT_MALFORMED;
	} else if (r == PL_DP_INT_DONE && by == PL_DP_BY_PORT && !ret->in.have_dport) {
		return PL_DP_INT_MALFORMED; /* the original port is not known (1.0) */
	}
	return r;
}

enum pl_dp_int_outcome pl_dp_int_find(struct pl_dp_int_found *ret,
	const struct pl_dp_int_domain *domain, const struct pl_dp_edit *e,
	struct pl_int_cache *cache)
{
	const uint8_t *data = e->pkt->data;
	enum pl_dp_int_outcome r, all = PL_DP_INT_NONE;
	uint32_t at = e->payload;
	uint8_t by = 0;

	if (e->proto == PL_IP_TCP && domain->tcp_before_options)
		at = e->l4 + 20;
	if (e->proto != PL_IP_GRE) {
		if ((pl_dp_edit_dscp(e) & domain->dscp_mask) == domain->dscp)
			by |= PL_DP_BY_DSCP;
		if (e->proto == PL_IP_UDP && pl_be16(data + e->l4 + 2) == domain->port)
			by |= PL_DP_BY_PORT;
		if (e->end - at >= 8 && pl_be64(data + at) == domain->marker)
			by |= PL_DP_BY_MARKER;
	}
	by &= domain->by;
	/* A packet may have the DSCP or the port by chance while another one announces its INT: all
	 * are tried. */
	for (uint8_t one = PL_DP_BY_DSCP; one <= PL_DP_BY_MARKER; one <<= 1) {
		if ((by & one) == 0)
			continue;
		r = find_behind_l4(ret, domain, e, one, at, cache);
		if (r == PL_DP_INT_DONE)
			return r;
		all = r != PL_DP_INT_NONE ? r : all;
	}
	if ((domain->by & PL_DP_BY_TUNNEL) == 0)
		return all;
	r = find_in_tunnel(ret, domain, e, cache);
	return r != PL_DP_INT_NONE ? r : all;
}

uint32_t pl_dp_int_found_keep(const struct pl_dp_int_found *found)
{
	if (found->in.npt != 2)
		return found->keep;
	return found->keep + (found->in.proto == PL_IP_TCP ? 20 : 8);
}

uint32_t pl_dp_int_keep(
	const struct pl_dp_int_domain *domain, struct pl_dp_packet *pkt, struct pl_int_cache *cache)
{
	struct pl_dp_int_found found;
	struct pl_dp_edit e;

	if (pl_dp_edit_open(&e, pkt) != PL_DP_EDIT_OK ||
		pl_dp_int_find(&found, domain, &e, cache) != PL_DP_INT_DONE)
		return 0;
	return pl_dp_int_found_keep(&found);
}
