/* SPDX-License-Identifier: BSD-2-Clause */
/* Random forms of telemetry: versions, dialects, carriers, inner packets, values, damage. */
#pragma once

#include "base/rng.h"
#include "decode/decode.h"
#include "gen/event.h"
#include "gen/gen.h"
#include "gen/malform.h"
#include "wire/layers.h"
#include "wire/packet.h"

static inline uint32_t form_pick(struct pl_rng *rng, uint32_t n)
{
	return (uint32_t)(pl_rng_u64(rng) % n);
}

/* One of the first n, mostly the first. */
static inline uint32_t form_rarely(struct pl_rng *rng, uint32_t n)
{
	return form_pick(rng, 3) == 0 ? form_pick(rng, n) : 0;
}

/* What the fast path is for: any layout with a node id, long runs, values that seldom leave their
 * bands. */
static inline void form_usual(struct pl_gen_cfg *cfg, struct pl_rng *rng)
{
	static const uint16_t bitmaps[] = { 0x8000, 0xfc00, 0xff00, 0xfd00, 0xf000, 0xb000, 0xcc00,
		0xff00, 0xfc00, 0xc000, 0xa800, 0x9400, 0x8200, 0xdd00, 0xff80, 0x8080, 0xfd81 };
	static const struct {
		enum pl_gen_report report;
		enum pl_gen_version version;
		unsigned int bitmaps; /* of those above */
	} kinds[] = { { PL_GEN_REPORT_V10, PL_GEN_INT_V10, 14 },
		{ PL_GEN_REPORT_V20, PL_GEN_INT_V21, 17 },
		{ PL_GEN_REPORT_V05, PL_GEN_INT_V05, 14 } };
	const unsigned int kind = form_pick(rng, 3);

	*cfg = (struct pl_gen_cfg){
		.seed = pl_rng_u64(rng),
		.flows = 1 + form_pick(rng, 40),
		.rate = 100000,
		.report = kinds[kind].report,
		.version = kinds[kind].version,
		.mode = PL_GEN_MD,
		.carrier = form_pick(rng, 2) != 0 ? PL_GEN_UDP : PL_GEN_TCP,
		.sink = PL_GEN_SINK_STACK,
		.bitmap = bitmaps[form_pick(rng, kinds[kind].bitmaps)],
		.dialect = kinds[kind].version == PL_GEN_INT_V10
				   ? (enum pl_dialect)form_rarely(rng, PL_DIALECT_MAX)
				   : PL_DIALECT_SPEC,
		.inner = (enum pl_gen_inner)form_rarely(rng, PL_GEN_QINQ + 1),
		.outer_ip = form_pick(rng, 3) == 0 ? 6 : 4,
		.inner_ip = form_pick(rng, 3) == 0 ? 6 : 4,
		.npt = kinds[kind].version == PL_GEN_INT_V21 ? (uint8_t)form_rarely(rng, 2) : 0,
		.tcp_options = (uint8_t)form_rarely(rng, 11),
		.missing = form_pick(rng, 8) == 0 ? 0.001 : 0,
		.loss = form_pick(rng, 4) == 0 ? 0.001 : 0,
		.clock_offset_ns = form_pick(rng, 8) == 0 ? 2000 : 0,
		.hw_id = (uint8_t)form_pick(rng, 64),
		.topology = form_pick(rng, 4) == 0 ? "ring:30" : NULL,
	};
	if (form_pick(rng, 4) == 0)
		pl_gen_story(cfg);
}

/* The frame with n tags, in `room`, of 4 bytes more for each. */
static inline void form_tag_as(
	struct pl_packet *pkt, uint8_t *room, uint16_t type, uint16_t id, uint32_t n)
{
	const uint8_t tag[4] = { (uint8_t)(type >> 8), (uint8_t)type, (uint8_t)(id >> 8),
		(uint8_t)id };

	memcpy(room, pkt->data, 12);
	for (uint32_t i = 0; i < n; i++)
		memcpy(room + 12 + 4 * i, tag, 4);
	memcpy(room + 12 + 4 * n, pkt->data + 12, pkt->len - 12);
	pkt->data = room;
	pkt->len += 4 * n;
	pkt->wire_len += 4 * n;
}

/* Some frames get a tag of 802.1Q, fewer one of another type, or two. */
static inline void form_tag(struct pl_packet *pkt, uint8_t *room, struct pl_rng *rng)
{
	static const uint16_t types[] = { PL_ETH_VLAN, PL_ETH_VLAN, PL_ETH_VLAN, PL_ETH_QINQ,
		0x9100 };

	if (pkt->link == PL_LINK_ETHERNET && pkt->len >= 14 && form_pick(rng, 3) == 0)
		form_tag_as(pkt, room, types[form_pick(rng, 5)], (uint16_t)pl_rng_u64(rng),
			1 + (form_pick(rng, 8) == 0));
}

/* Something set for every exporter, out of what the forms below have. */
static inline struct pl_profile form_profile(struct pl_rng *rng)
{
	struct pl_profile p = {
		.report_version = (int)form_rarely(rng, 4),
		.tcp_placement = (uint8_t)form_rarely(rng, 3),
		.timestamp_unit = (uint8_t)form_rarely(rng, 2),
		.latency_unit = (uint8_t)form_rarely(rng, 2),
		.embedded = (uint8_t)form_rarely(rng, 3),
		.dscp_set = form_pick(rng, 3) == 0,
		.dscp_value = 0x17,
		.dscp_mask = 0x3f,
		.int_port = form_pick(rng, 3) == 0 ? 33122 : 0,
		.marker_set = form_pick(rng, 3) == 0,
		.marker = UINT64_C(0xaaaaaaaabbbbbbbb),
		.hints = { .dialect = (uint8_t)form_pick(rng, PL_DIALECT_MAX),
			.dialect_pinned = form_pick(rng, 3) == 0,
			.queue_word = (uint8_t)form_rarely(rng, 3) },
	};

	if (form_pick(rng, 4) == 0)
		p.dscp_value = p.dscp_mask = 1;
	return p;
}

/* What the form is; it may be one that the generator refuses. */
static inline void form_random(struct pl_gen_cfg *cfg, struct pl_rng *rng)
{
	static const uint16_t bitmaps[] = { 0x8000, 0xfc00, 0xff00, 0, 0, 0xfd00, 0xff80, 0xa000,
		0xff01, 0xcc00, 0x7c00, 0xfc40 };

	*cfg = (struct pl_gen_cfg){
		.seed = pl_rng_u64(rng),
		.flows = 1 + form_pick(rng, 300),
		.rate = 100000,
		.report = (enum pl_gen_report[]){ PL_GEN_REPORT_V05, PL_GEN_REPORT_V10,
			PL_GEN_REPORT_V20 }[form_pick(rng, 3)],
		.version = (enum pl_gen_version)form_pick(rng, 4),
		.mode = (enum pl_gen_mode)form_pick(rng, 4),
		.carrier = (enum pl_gen_carrier[]){ PL_GEN_CARRIER_AUTO, PL_GEN_UDP, PL_GEN_TCP,
			PL_GEN_TCP, PL_GEN_GPE, PL_GEN_GENEVE }[form_pick(rng, 6)],
		.dialect = (enum pl_dialect)form_rarely(rng, PL_DIALECT_MAX),
		.inner = (enum pl_gen_inner)form_rarely(rng, 7),
		.sink = (enum pl_gen_sink)form_pick(rng, 4),
		.bitmap = bitmaps[form_pick(rng, sizeof(bitmaps) / sizeof(bitmaps[0]))],
		.npt = (uint8_t)form_rarely(rng, 3),
		.missing = form_pick(rng, 4) == 0 ? 0.1 : 0,
		.drop = form_pick(rng, 3) == 0 ? 0.05 : 0,
		.loss = form_pick(rng, 3) == 0 ? 0.01 : 0,
		.duplicate = form_pick(rng, 4) == 0 ? 0.01 : 0,
		.reorder = form_pick(rng, 4) == 0 ? 0.01 : 0,
		.queue_report = form_pick(rng, 4) == 0 ? 50 : 0,
		.reports_per_datagram = (uint8_t)form_rarely(rng, 4),
		.outer_ip = form_pick(rng, 3) == 0 ? 6 : 4,
		.inner_ip = form_pick(rng, 3) == 0 ? 6 : 4,
		.ip_options = (uint8_t)form_rarely(rng, 5),
		.tcp_options = (uint8_t)form_rarely(rng, 11),
		.tcp_before_options = form_pick(rng, 4) == 0,
		.max_hops = (uint8_t)form_rarely(rng, 5),
		.flush_hops = (uint8_t)form_rarely(rng, 4),
		.clock_offset_ns = form_pick(rng, 3) == 0 ? 2000 : 0,
		.hw_id = (uint8_t)form_pick(rng, 64),
		.payload = (uint16_t)form_rarely(rng, 200),
		.topology = form_pick(rng, 6) == 0 ? "ring:30" : NULL,
	};
	/* Beyond what is plausible, among others. */
	if (cfg->seed % 6 == 0)
		cfg->latency = (struct pl_dist){ PL_DIST_UNIFORM, 1e9, 4.2e9 };
	if (form_pick(rng, 8) == 0)
		cfg->announce = (enum pl_gen_announce)form_pick(rng, 4);
	if (form_pick(rng, 8) == 0)
		cfg->clock_offset_ns = 3000000000u;
	if (form_pick(rng, 10) == 0)
		cfg->replay = (enum pl_gen_replay)(1 + form_pick(rng, PL_GEN_REPLAY_MAX - 1));
	if (form_pick(rng, 4) == 0)
		pl_gen_story(cfg);
}
