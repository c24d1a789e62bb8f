/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts INT headers into packets. */
#include "dataplane/telemetry/int_source.h"

#include <errno.h>
#include <string.h>

#include "wire/layers.h"

#define BITMAP_USUAL       0xfd00
#define HEADER_MAX         64 /* most bytes of marker, UDP header, shim, metadata header, tail */
#define GPE_FLAG_P         0x04
#define GPE_NEXT_ETH       3
#define GENEVE_OPTIONS_MAX 63

static int refuse(struct pl_diag *diag, const char *text)
{
	pl_diag_set(diag, "%s", text);
	return -EINVAL;
}

static int check(const struct pl_dp_int_source_config *c, struct pl_diag *diag)
{
	bool v21 = c->version == PL_INT_V20;

	if (c->version >= PL_INT_VERSION_MAX || c->carrier > PL_INT_OVER_GENEVE)
		return refuse(diag, "there is no such INT version or carrier");
	if (c->kind != PL_INT_MD && (c->kind != PL_INT_MX || !v21))
		return refuse(diag, "INT-MX exists only in INT 2.1");
	if (c->carrier == PL_INT_OVER_GRE && !v21)
		return refuse(diag, "INT over GRE exists only in INT 2.x");
	if (c->carrier != PL_INT_OVER_L4 && (c->by != 0 || c->npt != 0))
		return refuse(diag, "in a tunnel INT is announced by the tunnel's header only");
	if (c->by != 0 && c->by != PL_DP_BY_DSCP && c->by != PL_DP_BY_PORT &&
		c->by != PL_DP_BY_MARKER)
		return refuse(diag, "INT is announced by dscp, port or marker: one of them");
	if (c->by == PL_DP_BY_PORT && c->version == PL_INT_V10)
		return refuse(diag, "INT 1.0 is not announced by port");
	if (c->by == PL_DP_BY_MARKER && c->version == PL_INT_V05)
		return refuse(diag, "INT 0.5 has no probe marker");
	if (c->npt > 2 || (c->npt != 0 && (!v21 || c->by != PL_DP_BY_PORT)))
		return refuse(diag, "NPT 1 and 2 need INT 2.1 announced by port");
	return 0;
}

/* Returns the number of hops that the length fields allow. */
static unsigned int hops_fit(const struct pl_int_header *h, unsigned int words)
{
	unsigned int max = h->carrier == PL_INT_OVER_GENEVE ? 31 : 255,
		     fixed = h->version == PL_INT_V20                                   ? 3
			     : h->carrier == PL_INT_OVER_GENEVE                         ? 2
			     : h->version == PL_INT_V05 && h->carrier == PL_INT_OVER_L4 ? 4
											: 3;

	return words == 0 ? 0 : (max - fixed) / words;
}

int pl_dp_int_source_init(struct pl_dp_int_source *s, const struct pl_dp_int_source_config *config,
	struct pl_diag *diag)
{
	struct pl_dp_int_source_config *c = &s->config;
	struct pl_int_layout l;
	unsigned int fit;
	int r;

	memset(s, 0, sizeof(*s));
	*c = *config;
	r = check(c, diag);
	if (r < 0)
		return r;
	if (c->by == 0 && c->carrier == PL_INT_OVER_L4)
		c->by = PL_DP_BY_DSCP;
	if (c->by == PL_DP_BY_PORT && c->version == PL_INT_V20 && c->npt == 0)
		c->npt = 1;
	if (c->bitmap == 0)
		c->bitmap = BITMAP_USUAL;
	c->domain.by |= c->carrier == PL_INT_OVER_L4 ? c->by : PL_DP_BY_TUNNEL;
	c->domain = pl_dp_int_domain(&c->domain);
	s->header = (struct pl_int_header){
		.version = c->version,
		.kind = c->kind,
		.carrier = c->carrier,
		.bitmap = c->bitmap,
		.npt = c->npt,
		.ds_id = c->carrier == PL_INT_OVER_GENEVE && c->version != PL_INT_V20
				 ? c->domain.geneve_class
				 : 0,
	};
	if (pl_int_layout_make(&l, c->version, c->bitmap, 0, PL_DIALECT_SPEC) < 0)
		return refuse(diag, "this instruction bitmap asks for more than a block can hold");
	fit = hops_fit(&s->header, l.words);
	if (c->kind == PL_INT_MD && fit == 0)
		return refuse(diag, "not a single hop of these instructions fits this carrier");
	s->header.hops_left = (uint8_t)(c->max_hops != 0 && c->max_hops < fit ? c->max_hops : fit);
	s->bytes = (uint32_t)(c->kind == PL_INT_MD && !c->no_block ? 4 * l.words : 0);
	return 0;
}

/* ---- the places where a header may stand ---- */

struct site {
	uint32_t at; /* offset of the INT header */
	uint32_t tunnel;
	uint16_t next; /* GPE, GRE: next protocol in the tunnel's header */
	bool was_vxlan;
};

static enum pl_dp_int_outcome find_site(
	const struct pl_dp_int_source *s, const struct pl_dp_edit *e, struct site *ret)
{
	const uint8_t *data = e->pkt->data, *p;
	uint16_t dport = e->proto == PL_IP_UDP ? pl_be16(data + e->l4 + 2) : 0;
	struct pl_cursor c = pl_cursor(data + e->payload, e->end - e->payload);

	*ret = (struct site){ .at = e->payload, .tunnel = e->payload };
	switch (s->config.carrier) {
	case PL_INT_OVER_GPE:
		p = pl_cursor_peek(&c, 8);
		if (p == NULL || (dport != PL_PORT_VXLAN && dport != PL_PORT_VXLAN_GPE))
			return PL_DP_INT_TRANSPORT;
		ret->at += 8;
		ret->was_vxlan = dport == PL_PORT_VXLAN;
		ret->next = ret->was_vxlan ? GPE_NEXT_ETH : p[3];
		/* Only INT 2.1 can tell the sink that it was plain VXLAN, and only a header without
		 * other flags can be restored. */
		if (ret->was_vxlan && (s->config.version != PL_INT_V20 || p[0] != 0x08 ||
					      p[1] != 0 || p[2] != 0 || p[3] != 0))
			return PL_DP_INT_TRANSPORT;
		return !ret->was_vxlan && (p[0] & GPE_FLAG_P) == 0 ? PL_DP_INT_TRANSPORT
								   : PL_DP_INT_DONE;
	case PL_INT_OVER_GENEVE:
		p = pl_cursor_take(&c, 8);
		if (p == NULL || dport != PL_PORT_GENEVE || p[0] >> 6 != 0)
			return PL_DP_INT_TRANSPORT;
		if (pl_cursor_take(&c, 4 * (size_t)(p[0] & 0x3f)) == NULL)
			return PL_DP_INT_MALFORMED;
		/* before other options, so that an option that only looks like INT comes later */
		ret->at += 8;
		return PL_DP_INT_DONE;
	case PL_INT_OVER_GRE: {
		uint32_t bytes;

		if (e->proto != PL_IP_GRE)
			return PL_DP_INT_TRANSPORT;
		bytes = pl_dp_gre_bytes(data + e->l4);
		if (bytes == 0)
			return PL_DP_INT_TRANSPORT;
		if (bytes > e->end - e->l4)
			return PL_DP_INT_MALFORMED;
		ret->tunnel = e->l4;
		ret->at = e->l4 + bytes;
		ret->next = pl_be16(data + e->l4 + 2);
		return PL_DP_INT_DONE;
	}
	default:
		if (e->proto == PL_IP_GRE || (s->config.by == PL_DP_BY_PORT && s->config.npt != 2 &&
						     e->proto != PL_IP_UDP))
			return PL_DP_INT_TRANSPORT;
		/* Port 0 in the tail means not filled in: the sink would not restore it. */
		if (s->config.by == PL_DP_BY_PORT && s->config.version == PL_INT_V05 && dport == 0)
			return PL_DP_INT_TRANSPORT;
		if (s->config.npt == 2)
			ret->at = e->l4;
		else if (e->proto == PL_IP_TCP && s->config.domain.tcp_before_options)
			ret->at = e->l4 + 20;
		return PL_DP_INT_DONE;
	}
}

/* Builds the bytes to insert: those before the shim, and the INT header. */
static int make(const struct pl_dp_int_source *s, const struct pl_dp_edit *e,
	const struct site *site, struct pl_build *b, uint32_t *ret_shim)
{
	const uint8_t *data = e->pkt->data;
	struct pl_int_header h = s->header;
	int r;

	h.dscp = pl_dp_edit_dscp(e);
	h.proto = e->proto;
	h.dport = e->proto == PL_IP_GRE ? 0 : pl_be16(data + e->l4 + 2);
	h.next = site->next;
	h.gre_added = site->was_vxlan;
	if (s->config.by == PL_DP_BY_MARKER)
		pl_put_be64(b, s->config.domain.marker);
	if (s->config.npt == 2) { /* wrap() sets length and checksum */
		pl_put(b, data + e->l4, 2);
		pl_put_be16(b, s->config.domain.port);
		pl_put_be32(b, 0);
	}
	*ret_shim = (uint32_t)b->len;
	r = pl_int_put(b, &h, NULL, 0);
	/* pl_int_put writes the class of the specification: ds_id of INT 2.1 is another value. */
	if (r == 0 && s->config.carrier == PL_INT_OVER_GENEVE)
		pl_patch_be16(b, *ret_shim, s->config.domain.geneve_class);
	return r;
}

/* Completes the UDP header of NPT 2. Over IPv6 it needs a checksum, which must be computed over all
 * bytes. */
static void wrap(struct pl_dp_edit *e, uint32_t bytes)
{
	struct pl_dp_packet *pkt = e->pkt;
	uint8_t *l4 = pkt->data + e->l4;
	uint32_t sum = PL_IP_UDP + bytes;

	l4[4] = (uint8_t)(bytes >> 8);
	l4[5] = (uint8_t)bytes;
	if (e->ip_version != 6)
		return;
	sum = pl_checksum_add(sum, pkt->data + e->l3 + 8, 32);
	sum = pl_checksum_fold(pl_checksum_add(sum, l4, bytes));
	sum = sum == 0 ? 0xffff : sum;
	l4[6] = (uint8_t)(sum >> 8);
	l4[7] = (uint8_t)sum;
}

/* Writes the announcement of the INT header: DSCP, port, or the tunnel's next protocol. */
static void announce(
	const struct pl_dp_int_source *s, struct pl_dp_edit *e, const struct site *site)
{
	static const uint8_t gpe_next[] = { PL_GPE_INT_05, PL_GPE_INT_10, PL_GPE_INT_20 };
	const struct pl_dp_int_domain *d = &s->config.domain;
	const uint8_t *data = e->pkt->data;

	switch (s->config.carrier) {
	case PL_INT_OVER_GPE:
		pl_dp_edit_put8(e, site->tunnel, data[site->tunnel] | GPE_FLAG_P);
		pl_dp_edit_put8(e, site->tunnel + 3, gpe_next[s->config.version]);
		if (site->was_vxlan)
			pl_dp_edit_put16(e, e->l4 + 2, PL_PORT_VXLAN_GPE);
		return;
	case PL_INT_OVER_GRE:
		pl_dp_edit_put16(e, site->tunnel + 2, d->gre_ethertype);
		return;
	case PL_INT_OVER_GENEVE:
		pl_dp_edit_put8(e, site->tunnel,
			(uint8_t)(data[site->tunnel] +
				  (s->config.version == PL_INT_V20 ? 4u : 3u)));
		return;
	default:
		break;
	}
	if (s->config.by == PL_DP_BY_DSCP)
		pl_dp_edit_put_dscp(e, (uint8_t)((pl_dp_edit_dscp(e) & ~d->dscp_mask) | d->dscp));
	else if (s->config.by == PL_DP_BY_PORT && s->config.npt != 2)
		pl_dp_edit_put16(e, e->l4 + 2, d->port);
}

static enum pl_dp_int_outcome insert(struct pl_dp_int_source *s, const struct pl_dp_node *node,
	struct pl_dp_edit *e, const struct site *site)
{
	struct pl_dp_int_found found = { .shim = 0 };
	struct pl_int_layout l;
	uint8_t bytes[HEADER_MAX];
	struct pl_build b = pl_build(bytes, sizeof(bytes));
	uint32_t shim, was = e->end - e->l4;

	if (make(s, e, site, &b, &shim) < 0)
		return PL_DP_INT_MALFORMED;
	if (pl_dp_int_room(node, e) < b.len + s->bytes)
		return PL_DP_INT_MTU;
	if (s->config.carrier == PL_INT_OVER_GENEVE &&
		(e->pkt->data[site->tunnel] & 0x3f) + (b.len + s->bytes) / 4 > GENEVE_OPTIONS_MAX)
		return PL_DP_INT_LENGTH;
	/* With NPT 2 the transport header behind INT does not change. */
	if (s->config.npt == 2)
		e->summed = false;
	if (pl_dp_edit_insert(e, site->at, bytes, (uint32_t)b.len) < 0)
		return PL_DP_INT_ROOM;
	announce(s, e, site);
	if (s->bytes != 0 && pl_int_layout_make(&l, s->config.version, s->config.bitmap, 0,
				     PL_DIALECT_SPEC) == 0) {
		found.in = (struct pl_int){
			.version = s->config.version,
			.kind = PL_INT_MD,
			.carrier = s->config.carrier,
			.hop_words = l.words,
			.hops_left = s->header.hops_left,
			.layout = &l,
		};
		found.shim = site->at + shim;
		found.md = found.shim + 4;
		found.stack = found.md + (s->config.version == PL_INT_V20 ? 12 : 8);
		found.tunnel = site->tunnel;
		pl_dp_int_push(&found, node, e);
	}
	if (s->config.npt == 2) {
		uint32_t grown = (uint32_t)e->grown;

		pl_dp_edit_put_proto(e, PL_IP_UDP);
		pl_dp_edit_close(e);
		wrap(e, was + grown);
		return PL_DP_INT_DONE;
	}
	pl_dp_edit_close(e);
	return PL_DP_INT_DONE;
}

enum pl_dp_int_outcome pl_dp_int_source(
	struct pl_dp_int_source *s, const struct pl_dp_node *node, struct pl_dp_packet *pkt)
{
	struct pl_dp_int_found found;
	struct pl_dp_edit e;
	struct site site;
	enum pl_dp_edit_fault fault = pl_dp_edit_open(&e, pkt);
	enum pl_dp_int_outcome r;

	if (fault != PL_DP_EDIT_OK)
		return pl_dp_int_of_fault(fault);
	/* A packet that only looks like INT is instrumented as any other: nodes do not parse the
	 * bytes behind the new header. */
	if (pl_dp_int_find(&found, &s->config.domain, &e, &s->cache) == PL_DP_INT_DONE)
		return PL_DP_INT_ALREADY;
	r = find_site(s, &e, &site);
	if (r == PL_DP_INT_DONE)
		r = insert(s, node, &e, &site);
	if (r == PL_DP_INT_DONE && s->config.npt == 2) {
		pkt->headers.l4 = (uint16_t)e.l4;
		pkt->headers.payload = (uint16_t)(e.l4 + 8);
		pkt->headers.proto = PL_IP_UDP;
	} else if (r == PL_DP_INT_DONE) {
		pl_dp_edit_keep_places(&e);
	}
	return r;
}
