/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes telemetry reports about packets at a node. */
#include "dataplane/telemetry/reporter.h"

#include <errno.h>
#include <string.h>

#define BITMAP_USUAL 0xfd00
#define PORT_USUAL   32766
#define OVERHEAD                                                                                   \
	(PL_DP_DATAGRAM_OVERHEAD + 8 + 12 + 4 * 16 +                                               \
		3)       /* most bytes of headers around the inner packet */
#define HEADERS_USUAL 64 /* bytes kept of a packet that is not IP */

/* Returns the metadata bits of a report's header for the values in INT's bitmap that the header can
 * carry. */
static uint16_t header_bits(uint8_t version, uint16_t bitmap)
{
	static const uint8_t of_field[PL_INT_F_MAX] = {
		[PL_INT_F_PORTS] = 0x20,
		[PL_INT_F_LATENCY] = 0x10,
		[PL_INT_F_QUEUE] = 0x08,
		[PL_INT_F_EGRESS_TS] = 0x04,
		[PL_INT_F_TX_UTIL] = 0x01,
	};
	uint16_t bits = 0;

	/* 2.0: without bit 0, the node, which is in the group header */
	if (version == PL_REPORT_V20)
		return bitmap & 0x7f80;
	for (unsigned int f = 0; version == PL_REPORT_V10 && f < PL_INT_F_MAX; f++)
		bits |= (bitmap & PL_INT_BIT(f)) != 0 ? of_field[f] : 0;
	return bits;
}

int pl_dp_reporter_init(struct pl_dp_reporter *r, const struct pl_dp_reporter_config *config,
	struct pl_dp_pool *pool, struct pl_diag *diag)
{
	*r = (struct pl_dp_reporter){ .config = *config, .pool = pool };
	if (config->version >= PL_REPORT_VERSION_MAX || config->hw_id > 63) {
		pl_diag_set(
			diag, "a report has version 0.5, 1.0 or 2.0 and a hardware id up to 63");
		return -EINVAL;
	}
	if (pl_dp_datagram_check(&config->to, diag) < 0)
		return -EINVAL;
	if (r->config.to.dport == 0)
		r->config.to.dport = PORT_USUAL;
	if (r->config.to.sport == 0)
		r->config.to.sport = PORT_USUAL;
	if (r->config.bitmap == 0)
		r->config.bitmap = BITMAP_USUAL;
	r->md_bits = header_bits(config->version, r->config.bitmap);
	return 0;
}

uint32_t pl_dp_report_keep(const struct pl_dp_packet *pkt)
{
	const struct pl_dp_headers *h = &pkt->headers;

	if (h->payload != PL_DP_NONE)
		return h->payload;
	if (h->l4 != PL_DP_NONE)
		return h->l4 + 8u;
	if (h->l3 != PL_DP_NONE)
		return h->l3 + 40u;
	return HEADERS_USUAL;
}

static struct pl_report_head head(const struct pl_dp_reporter *r, const struct pl_dp_node *node,
	const struct pl_dp_packet *pkt, unsigned int bits)
{
	bool dropped = (bits & PL_DP_REPORT_D) != 0;
	uint16_t md = r->md_bits;

	if (dropped)
		md |= r->config.version == PL_REPORT_V20   ? 0x0001
		      : r->config.version == PL_REPORT_V10 ? 0x02
							   : 0;
	return (struct pl_report_head){
		.version = r->config.version,
		.hw_id = r->config.hw_id,
		.dropped = dropped,
		.congested = (bits & PL_DP_REPORT_Q) != 0,
		.tracked = (bits & PL_DP_REPORT_F) != 0,
		.seq = (uint32_t)(r->shared != NULL ? *r->shared : r->seq),
		.node = node->id,
		/* in ns by the specification (0.5, 1.0), whatever unit the node's blocks use */
		.ingress_ts = (uint32_t)pkt->in_ns,
		.md_bits = md,
		.drop_header = dropped,
		.local_header = !dropped,
		.drop_reason = pl_dp_drop_code(pkt->drop),
		.drop_queue = pkt->queue,
		.inner_link = PL_LINK_ETHERNET,
	};
}

static void put(const struct pl_dp_reporter *r, struct pl_build *b, const struct pl_report_head *h,
	const struct pl_int_hop *hop, const void *inner, uint32_t len)
{
	size_t ip = pl_dp_datagram_begin(&r->config.to, b), at;

	pl_report_put_group(b, h);
	at = pl_report_put(b, h, hop);
	pl_put(b, inner, len);
	pl_report_end(b, h, at);
	pl_dp_datagram_end(&r->config.to, b, ip);
}

struct pl_dp_packet *pl_dp_report(struct pl_dp_reporter *r, const struct pl_dp_node *node,
	const struct pl_dp_packet *pkt, unsigned int bits, uint32_t keep)
{
	struct pl_report_head h = head(r, node, pkt, bits);
	struct pl_dp_packet *report;
	struct pl_int_hop hop;
	struct pl_build b;
	uint32_t len = (keep != 0 ? keep : pl_dp_report_keep(pkt)) + r->config.snap;

	if (r->shared != NULL)
		++*r->shared;
	else
		r->seq++;
	if (len > pkt->len)
		len = pkt->len;
	report = pl_dp_packet_new(r->pool, OVERHEAD + len);
	if (report == NULL)
		return NULL;
	pl_dp_node_hop(&hop, node, pkt);
	/* as the ingress timestamp: in ns by the specification (0.5, 1.0) */
	if (r->config.version != PL_REPORT_V20)
		hop.egress_ts = pkt->out_ns;
	b = pl_build(report->data, report->len);
	put(r, &b, &h, &hop, pkt->data, len);
	if (b.full) {
		pl_dp_packet_free(report);
		return NULL;
	}
	report->len = (uint32_t)b.len;
	return report;
}
