/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes reports about packets with INT, or such packets directly, and the expected results for
 * decoders. */
#include "gen/int_gen.h"

#include <assert.h>
#include <errno.h>

#include "gen/int_form.h"
#include "gen/int_packet.h"
#include "wire/report.h"

#define HOST_INT_SUMMARY 3 /* v0.5 NProto of Host-INT: missing sequence numbers */
#define HOST_INT_PROTO   4 /* v0.5 NProto of Host-INT: node id, then IPv4 */

/* ---- reports ---- */

/* Fields of the reporting node in the report's own header, as metadata bits. */
static uint16_t header_bits(const struct pl_gen_cfg *cfg, const struct pl_gen_item *item)
{
	bool has_hop = item->why != PL_GEN_WHY_FLUSH &&
		       (item->why != PL_GEN_WHY_SINK || cfg->sink != PL_GEN_SINK_STACK);
	uint16_t bits = 0;

	if (!has_hop)
		return 0;
	if (cfg->report == PL_GEN_REPORT_V20) {
		/* bit 0 is the node id, which is in the group header; bit 15 means something else
		 * here */
		bits = cfg->bitmap & 0x7f80;
		if (item->why == PL_GEN_WHY_DROP)
			bits |= 0x0001;
		return bits;
	}
	if (cfg->report == PL_GEN_REPORT_V10) {
		static const uint8_t of_field[] = {
			[PL_INT_F_PORTS] = 0x20,
			[PL_INT_F_LATENCY] = 0x10,
			[PL_INT_F_QUEUE] = 0x08,
			[PL_INT_F_EGRESS_TS] = 0x04,
			[PL_INT_F_TX_UTIL] = 0x01,
		};

		for (unsigned int f = 0; f < sizeof(of_field); f++) {
			if ((cfg->bitmap & PL_INT_BIT(f)) != 0)
				bits |= of_field[f];
		}
		if (item->why == PL_GEN_WHY_DROP)
			bits |= 0x02;
	}
	return bits;
}

/* As header_bits, as a set of fields. */
static uint32_t header_fields(
	const struct pl_gen_cfg *cfg, const struct pl_gen_item *item, uint16_t bits)
{
	uint32_t have = PL_INT_HAS(PL_INT_F_NODE);

	switch (cfg->report) {
	case PL_GEN_REPORT_V05:
		if (item->why == PL_GEN_WHY_SINK && cfg->sink == PL_GEN_SINK_STACK)
			return cfg->dialect == PL_DIALECT_HOST_INT ? have : 0;
		have |= PL_INT_HAS(PL_INT_F_PORTS) | PL_INT_HAS(PL_INT_F_INGRESS_TS);
		if (item->why != PL_GEN_WHY_DROP)
			have |= PL_INT_HAS(PL_INT_F_QUEUE) | PL_INT_HAS(PL_INT_F_EGRESS_TS);
		return have;
	case PL_GEN_REPORT_V10:
		have |= PL_INT_HAS(PL_INT_F_INGRESS_TS);
		have |= (bits & 0x20) != 0 ? PL_INT_HAS(PL_INT_F_PORTS) : 0;
		have |= (bits & 0x10) != 0 ? PL_INT_HAS(PL_INT_F_LATENCY) : 0;
		have |= (bits & 0x08) != 0 ? PL_INT_HAS(PL_INT_F_QUEUE) : 0;
		have |= (bits & 0x04) != 0 ? PL_INT_HAS(PL_INT_F_EGRESS_TS) : 0;
		have |= (bits & 0x01) != 0 ? PL_INT_HAS(PL_INT_F_TX_UTIL) : 0;
		return have;
	default:
		for (unsigned int f = PL_INT_F_PORTS; f < PL_INT_F_MAX; f++)
			have |= (bits & PL_INT_BIT(f)) != 0 ? PL_INT_HAS(f) : 0;
		return have;
	}
}

/* Fields of a block of the stack. */
static uint32_t stack_fields(const struct pl_gen_cfg *cfg)
{
	uint32_t have = 0;

	for (unsigned int f = 0; f < PL_INT_F_MAX; f++) {
		if ((cfg->bitmap & PL_INT_BIT(f)) != 0)
			have |= PL_INT_HAS(f);
	}
	if (cfg->version != PL_GEN_INT_V21)
		have &= ~PL_INT_HAS(PL_INT_F_BUFFER);
	return have;
}

static bool stack_ts64(const struct pl_gen_cfg *cfg)
{
	return cfg->version == PL_GEN_INT_V21 || cfg->dialect == PL_DIALECT_GEANT;
}

/* Number of hops in the stack of the packet at the reporting node; -1: it carries no INT. */
static int stack_hops(const struct pl_gen_cfg *cfg, const struct pl_gen_item *item)
{
	if (cfg->mode == PL_GEN_XD || item->why == PL_GEN_WHY_QUEUE)
		return -1;
	if (cfg->mode == PL_GEN_MX)
		return 0;
	if (item->why == PL_GEN_WHY_SINK && cfg->sink != PL_GEN_SINK_HEADER)
		return (int)(item->hop + 1 - item->first);
	return (int)(item->hop - item->first);
}

static struct pl_int_hop truth_hop(const struct pl_gen_cfg *cfg, const struct pl_int_hop *hop,
	uint32_t have, bool ts64, bool dialect)
{
	struct pl_int_hop t = *hop;

	if (dialect)
		pl_gen_speak_dialect(cfg, &t);
	t.have &= have;
	if (!ts64) {
		t.ingress_ts &= 0xffffffff;
		t.egress_ts &= 0xffffffff;
	}
	return t;
}

/* header_md: the header has metadata of the node, at least the reason of the drop. */
static void tell(const struct pl_gen_cfg *cfg, const struct pl_gen_item *item, int n_stack,
	uint32_t header_have, bool header_md, struct pl_gen_truth *t)
{
	const struct pl_int_hop *hops = item->packet->hops + item->first;
	unsigned int budget = pl_gen_hop_budget_left(cfg, item),
		     n = n_stack < 0 ? 0 : (unsigned int)n_stack;
	uint32_t header_ts = PL_INT_HAS(PL_INT_F_INGRESS_TS);
	uint32_t named = PL_INT_HAS(PL_INT_F_NODE);
	/* a header without metadata still has the node id, which is a hop when there is no other */
	bool in_header = header_md || (header_have & ~(named | header_ts)) != 0 ||
			 ((header_have & named) != 0 && (n == 0 || budget == 0));

	t->flow = *item->flow;
	if (n_stack < 0 && pl_int_form_in_tunnel(cfg)) { /* without INT there is no tunnel */
		t->flow.have &= (uint8_t)~PL_FLOW_VNI;
		t->flow.vni = 0;
	}
	if (n_stack < 0 && item->fragment) {
		t->flow.have &= (uint8_t)~PL_FLOW_PORTS;
		t->flow.sport = t->flow.dport = 0;
	}
	t->flow_index = item->packet->flow;
	t->flow_seq = item->packet->flow_seq;
	t->dropped = item->why == PL_GEN_WHY_DROP;
	t->congested = item->why == PL_GEN_WHY_QUEUE;
	t->tracked = item->why != PL_GEN_WHY_QUEUE;
	t->drop_reason = t->dropped ? item->packet->drop_reason : 0;
	t->intermediate = item->why == PL_GEN_WHY_FLUSH;
	t->n_nodes = 0;
	t->n_hops = 0;
	for (unsigned int i = 0; i < n && i < budget; i++)
		t->hops[t->n_hops++] =
			truth_hop(cfg, &hops[i], stack_fields(cfg), stack_ts64(cfg), true);
	if (!in_header)
		return;
	struct pl_int_hop own = truth_hop(cfg, &item->packet->hops[item->hop], header_have,
		cfg->report == PL_GEN_REPORT_V20, false);

	/* the timestamp of a v0.5 or v1.0 header cannot be marked as missing */
	if (cfg->report != PL_GEN_REPORT_V20)
		own.have |= header_have & header_ts;
	/* A hop that is in the header and on top of the stack is listed once. The header's values
	 * count, except times of another width, which do not fit those of the other hops. */
	if (n > item->hop - item->first && budget > item->hop - item->first) {
		struct pl_int_hop *top = &t->hops[t->n_hops - 1];
		uint32_t times = PL_INT_HAS(PL_INT_F_INGRESS_TS) | PL_INT_HAS(PL_INT_F_EGRESS_TS);
		uint32_t both = top->have;

		if ((top->have & times) != 0 &&
			stack_ts64(cfg) != (cfg->report == PL_GEN_REPORT_V20)) {
			own.ingress_ts = top->ingress_ts;
			own.egress_ts = top->egress_ts;
			own.have &= ~times;
		}
		if ((own.have & PL_INT_HAS(PL_INT_F_LATENCY)) == 0)
			own.latency = top->latency;
		own.have |= both;
		*top = own;
		return;
	}
	t->hops[t->n_hops++] = own;
}

static enum pl_report_version report_version(const struct pl_gen_cfg *cfg)
{
	return cfg->report == PL_GEN_REPORT_V05   ? PL_REPORT_V05
	       : cfg->report == PL_GEN_REPORT_V10 ? PL_REPORT_V10
						  : PL_REPORT_V20;
}

/* Writes Host-INT's own form of a v0.5 report: the sink's node id, then the packet from its IPv4
 * header on. */
static size_t put_host_int(struct pl_build *b, const struct pl_report_head *h)
{
	size_t at = b->len;

	pl_put_u8(b, HOST_INT_PROTO);
	pl_put_u8(b, (uint8_t)(h->tracked << 5));
	pl_put_u8(b, 0);
	pl_put_u8(b, h->hw_id & 0x3f);
	pl_put_be32(b, h->seq);
	pl_put_be32(b, h->ingress_ts);
	pl_put_be32(b, h->node);
	return at;
}

/* Writes Host-INT's summary of packets that a sink missed (NProto 3): both ends, the ports between
 * them, time, first number, count; then headers of which the addresses and ports matter. */
static void put_summary(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *item, struct pl_report_head *h, struct pl_gen_damage *d,
	struct pl_gen_truth *truth)
{
	const struct pl_int_hop *source = &item->packet->hops[0];
	const struct pl_int_hop *sink = &item->packet->hops[item->hop];
	struct pl_gen_open open = { .n = 0 };

	d->individual = b->len;
	pl_put_u8(b, HOST_INT_SUMMARY);
	pl_put_u8(b, 0x80); /* D */
	pl_put_u8(b, 0);
	pl_put_u8(b, h->hw_id & 0x3f);
	pl_put_be32(b, h->seq);
	pl_put_be32(b, (uint32_t)sink->ingress_ts);
	pl_put_be32(b, source->node);
	pl_put_be32(b, h->node);
	pl_put_be16(b, (uint16_t)source->egress_port);
	pl_put_be16(b, (uint16_t)sink->ingress_port);
	pl_put_be32(b, (uint32_t)item->lost->ts_ns);
	pl_put_be32(b, item->lost->first);
	pl_put_be32(b, item->lost->count);
	d->inner = b->len;
	pl_gen_put_plain(cfg, b, &open, item, d);
	pl_gen_open_close(&open, b);
	if (truth != NULL) {
		tell(cfg, item, -1, 0, false, truth);
		truth->form = PL_GEN_TRUTH_SUMMARY;
		truth->seq = h->seq;
		truth->node = source->node;
		truth->dropped = true;
		truth->tracked = false;
		truth->flow_seq = item->lost->first;
		truth->lost_count = item->lost->count;
		truth->n_hops = 2;
		truth->hops[0] = *source;
		truth->hops[1] = *sink;
	}
}

/* Opens inner contents as TLVs (report specification v2.0 3.4.3): Type:4 Rsvd:4 | Length:8 |
 * template:16. First a TLV of a domain, then the packet. Returns the offset of the packet's TLV
 * header. */
static size_t open_tlvs(const struct pl_gen_cfg *cfg, struct pl_build *b, size_t report)
{
	uint8_t type = cfg->inner != PL_GEN_IP ? 1 : cfg->inner_ip == 6 ? 3 : 2;

	pl_patch_u8(b, report, (uint8_t)((b->data[report] & 0xf0) | 1));
	pl_put_be32(b, 0x00010001);
	pl_put_be32(b, 0xd0d0d0d0);
	pl_put_be32(b, (uint32_t)type << 28);
	return b->len - 4;
}

static void close_tlvs(struct pl_build *b, size_t at)
{
	pl_put_zero(b, (4 - (b->len - at) % 4) % 4);
	if (b->len - at > 4 * 256) /* the packet is cut at the end of its TLV */
		b->len = at + 4 * 256;
	pl_patch_u8(b, at + 1, (uint8_t)((b->len - at) / 4 - 1));
}

static void put_report(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *item, struct pl_report_head *h, struct pl_gen_damage *d,
	struct pl_gen_truth *truth)
{
	const struct pl_int_hop *hop = &item->packet->hops[item->hop];
	struct pl_gen_open open = { .n = 0 };
	int n_stack = stack_hops(cfg, item);
	bool host_int = cfg->dialect == PL_DIALECT_HOST_INT && item->why == PL_GEN_WHY_SINK;
	size_t at, tlv = 0;

	if (item->why == PL_GEN_WHY_SUMMARY) {
		put_summary(cfg, b, item, h, d, truth);
		return;
	}
	h->intermediate = item->why == PL_GEN_WHY_FLUSH;
	h->dropped = item->why == PL_GEN_WHY_DROP;
	h->congested = item->why == PL_GEN_WHY_QUEUE;
	h->tracked = !h->congested;
	h->ingress_ts = (uint32_t)hop->ingress_ts;
	h->md_bits = header_bits(cfg, item);
	h->drop_header = h->dropped;
	h->local_header =
		!h->dropped && (item->why != PL_GEN_WHY_SINK || cfg->sink != PL_GEN_SINK_STACK);
	h->drop_reason = item->packet->drop_reason;
	h->drop_queue = (uint8_t)hop->queue;
	at = host_int ? put_host_int(b, h) : pl_report_put(b, h, hop);
	d->individual = at;
	if (cfg->inner_tlv)
		tlv = open_tlvs(cfg, b, at);
	d->inner = b->len;
	pl_gen_put_packet(cfg, b, &open, item, n_stack, d);
	pl_gen_open_close(&open, b);
	if (cfg->inner_tlv)
		close_tlvs(b, tlv);
	pl_malform_at(d, PL_MALFORM_INNER, b);
	pl_report_end(b, h, at);
	if (truth != NULL) {
		truth->form = PL_GEN_TRUTH_REPORT;
		truth->seq = h->seq;
		truth->node = h->node;
		tell(cfg, item, n_stack, header_fields(cfg, item, h->md_bits), h->md_bits != 0,
			truth);
	}
}

unsigned int pl_int_gen_reports(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *items, unsigned int n, uint32_t seq, struct pl_gen_damage *damage,
	struct pl_gen_truth *truth)
{
	struct pl_report_head h = {
		.version = report_version(cfg),
		.hw_id = cfg->hw_id,
		.seq = cfg->report == PL_GEN_REPORT_V20 ? seq & 0x3fffff : seq,
		.node = items[0].packet->hops[items[0].hop].node,
		.inner_link = cfg->inner == PL_GEN_IP ? PL_LINK_RAW_IP : PL_LINK_ETHERNET,
		.inner_ip_version = cfg->inner_ip,
	};

	damage->payload = b->len;
	damage->have_payload = true;
	pl_report_put_group(b, &h);
	for (unsigned int i = 0; i < n; i++) {
		put_report(cfg, b, &items[i], &h, damage, truth == NULL ? NULL : &truth[i]);
		if (cfg->report == PL_GEN_REPORT_V20 && b->data[damage->individual + 1] == 255)
			n = i + 1;
	}
	pl_malform_at(damage, PL_MALFORM_REPORT, b);
	return n;
}

void pl_int_gen_packet(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *item, struct pl_gen_damage *damage, struct pl_gen_truth *truth)
{
	struct pl_gen_open open = { .n = 0 };
	int n_stack = cfg->mode == PL_GEN_MX ? 0 : (int)item->hop + 1;

	damage->link = cfg->inner == PL_GEN_IP ? PL_LINK_RAW_IP : PL_LINK_ETHERNET;
	pl_gen_put_packet(cfg, b, &open, item, n_stack, damage);
	damage->frame_l3 = open.at[0];
	pl_gen_open_close(&open, b);
	pl_malform_at(damage, PL_MALFORM_FRAME, b);
	if (truth != NULL) {
		truth->form = PL_GEN_TRUTH_PACKET;
		truth->seq = 0;
		truth->node = 0;
		tell(cfg, item, n_stack, 0, false, truth);
		truth->dropped = truth->congested = truth->tracked = false;
	}
}

/* ---- the frame around a report ---- */

static struct pl_addr node_address(const struct pl_gen_cfg *cfg, uint32_t node)
{
	uint8_t v4[4] = { 10, 255, (uint8_t)(node >> 8), (uint8_t)node };
	uint8_t v6[16] = { 0xfd, 0, 0, 0xff, [12] = (uint8_t)(node >> 24), (uint8_t)(node >> 16),
		(uint8_t)(node >> 8), (uint8_t)node };

	return cfg->outer_ip == 6 ? pl_addr_v6(v6) : pl_addr_v4(v4);
}

size_t pl_int_gen_open_frame(const struct pl_gen_cfg *cfg, struct pl_build *b, uint32_t node,
	struct pl_gen_damage *damage)
{
	struct pl_flow f = {
		.src = node_address(cfg, node),
		.dst = cfg->collector,
		.sport = (uint16_t)(32768 + node % 16384),
		.dport = cfg->report_port,
		.proto = PL_IP_UDP,
		.dscp = cfg->instrumented ? cfg->dscp : 0,
		.have = PL_FLOW_PORTS,
	};
	size_t at;

	pl_put_eth(b, cfg->outer_ip == 6 ? PL_ETH_IPV6 : PL_ETH_IPV4, 0);
	damage->link = PL_LINK_ETHERNET;
	damage->frame_l3 = b->len;
	at = pl_put_ip(b, &f, 60, 0);
	if (cfg->instrumented) { /* the report itself passed an INT domain, and has its INT */
		struct pl_int_hop hop = {
			.have = PL_INT_HAS(PL_INT_F_NODE) | PL_INT_HAS(PL_INT_F_PORTS),
			.node = node,
			.ingress_port = 1,
			.egress_port = 2,
		};
		struct pl_int_header h = {
			.version = pl_int_form_version(cfg),
			.bitmap = 0xc000,
			.hops_left = 8,
			.proto = PL_IP_UDP,
			.dport = cfg->report_port,
		};
		int r = pl_int_put(b, &h, &hop, 1);

		assert(r == 0 || r == -ENOBUFS);
		(void)r;
	}
	return at;
}
