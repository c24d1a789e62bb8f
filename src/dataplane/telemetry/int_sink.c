/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes INT headers out of packets. */
#include "dataplane/telemetry/int_sink.h"

#include <string.h>

#include "wire/layers.h"

#define GPE_FLAG_P 0x04

void pl_dp_int_sink_init(struct pl_dp_int_sink *s, const struct pl_dp_int_domain *domain)
{
	memset(s, 0, sizeof(*s));
	s->domain = pl_dp_int_domain(domain);
}

enum pl_dp_int_outcome pl_dp_int_sink_look(
	struct pl_dp_int_sink *s, struct pl_dp_packet *pkt, struct pl_dp_int_sink_look *ret)
{
	enum pl_dp_edit_fault fault = pl_dp_edit_open(&ret->edit, pkt);

	return fault == PL_DP_EDIT_OK
		       ? pl_dp_int_find(&ret->found, &s->domain, &ret->edit, &s->cache)
		       : pl_dp_int_of_fault(fault);
}

static void restore_tunnel(struct pl_dp_edit *e, const struct pl_dp_int_found *f)
{
	const uint8_t *data = e->pkt->data;
	unsigned int words;

	switch (f->in.carrier) {
	case PL_INT_OVER_GPE:
		if (f->in.gre_added && !f->others) { /* the source changed plain VXLAN */
			pl_dp_edit_put8(e, f->tunnel, data[f->tunnel] & (uint8_t)~GPE_FLAG_P);
			pl_dp_edit_put8(e, f->tunnel + 3, 0);
			pl_dp_edit_put16(e, e->l4 + 2, PL_PORT_VXLAN);
		} else if (!f->others) {
			pl_dp_edit_put8(e, f->tunnel + 3, (uint8_t)f->in.next);
		}
		break;
	case PL_INT_OVER_GRE:
		if (!f->others)
			pl_dp_edit_put16(e, f->tunnel + 2, f->in.next);
		break;
	default:
		words = (f->end - f->shim) / 4;
		pl_dp_edit_put8(e, f->tunnel, (uint8_t)(data[f->tunnel] - words));
		break;
	}
}

/* Restores DSCP and port. INT 0.5 saves both, whichever announces it: only the one that has the
 * announcing value is restored. */
static void restore_marks(
	struct pl_dp_edit *e, const struct pl_dp_int_found *f, const struct pl_dp_int_domain *d)
{
	bool v05 = f->in.version == PL_INT_V05;

	if (f->in.have_dscp &&
		(f->by == PL_DP_BY_DSCP || (v05 && (d->by & PL_DP_BY_DSCP) != 0 &&
						   (pl_dp_edit_dscp(e) & d->dscp_mask) == d->dscp)))
		pl_dp_edit_put_dscp(e, f->in.dscp);
	if (f->in.have_dport &&
		(f->by == PL_DP_BY_PORT ||
			(v05 && (d->by & PL_DP_BY_PORT) != 0 && e->proto == PL_IP_UDP &&
				pl_be16(e->pkt->data + e->l4 + 2) == d->port)))
		pl_dp_edit_put16(e, e->l4 + 2, f->in.dport);
}

static void restore(
	struct pl_dp_edit *e, const struct pl_dp_int_found *f, const struct pl_dp_int_domain *d)
{
	if (f->by == PL_DP_BY_TUNNEL) {
		restore_tunnel(e, f);
	} else if (f->others) {
		/* the announcement is still needed */
	} else if (f->in.npt == 2) {
		pl_dp_edit_put_proto(e, f->in.proto);
	} else {
		restore_marks(e, f, d);
	}
}

/* Lets the last destination-type header in GPE or GRE name what follows it now. */
static void relink(struct pl_dp_edit *e, const struct pl_dp_int_found *f)
{
	uint32_t at = f->at, last = f->at;

	if (!f->others || f->by != PL_DP_BY_TUNNEL)
		return;
	while (at < f->shim) {
		const uint8_t *s = e->pkt->data + at;

		last = at;
		at += s[0] == 2 ? 4u * s[2] : 4u + 4u * s[1];
	}
	if (f->in.carrier == PL_INT_OVER_GPE)
		pl_dp_edit_put8(e, last + 3, (uint8_t)f->in.next);
	else if (f->in.carrier == PL_INT_OVER_GRE)
		pl_dp_edit_put16(e, last + 2, f->in.next);
}

/* Sets the header offsets as a parser would now. */
static void reparse(const struct pl_dp_edit *e, const struct pl_dp_int_found *f)
{
	struct pl_dp_packet *pkt = e->pkt;

	pl_dp_edit_keep_places(e);
	if (f->in.npt != 2)
		return;
	pkt->headers.proto = f->in.proto;
	pkt->headers.payload = PL_DP_NONE;
	if (f->in.proto == PL_IP_UDP && pkt->len >= e->l4 + 8)
		pkt->headers.payload = (uint16_t)(e->l4 + 8);
	else if (f->in.proto == PL_IP_TCP && pkt->len >= e->l4 + 20) {
		uint32_t bytes = (uint32_t)(pkt->data[e->l4 + 12] >> 4) * 4;

		/* The transport header behind INT has not been checked before. */
		if (bytes >= 20 && bytes <= pkt->len - e->l4)
			pkt->headers.payload = (uint16_t)(e->l4 + bytes);
	}
}

bool pl_dp_int_sink_strip(const struct pl_dp_int_sink *s, struct pl_dp_int_sink_look *look)
{
	struct pl_dp_edit *e = &look->edit;
	struct pl_dp_int_found *f = &look->found;
	uint32_t from = f->others ? f->shim : f->at;

	if (pl_dp_edit_remove(e, from, f->end - from) < 0)
		return false;
	relink(e, f);
	restore(e, f, &s->domain);
	pl_dp_edit_close(e);
	reparse(e, f);
	return f->in.copy;
}
