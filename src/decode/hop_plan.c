/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans by which a block of one layout becomes a hop record: byte shuffles, made once per
 * layout. */
#include "decode/internal.h"

#include "decode/present.h"

/* The bits of `present` that a block of this layout sets when every value is available. */
static uint32_t expected(const struct pl_int_layout *l)
{
	uint32_t all = 0;

	for (unsigned int f = 0; f < PL_INT_F_MAX; f++)
		all |= l->off[f] == PL_INT_NO_OFFSET ? 0 : pl_int_field_present(l, f);
	return all;
}

/* `bytes` bytes of the record from offset `dst` come from the window's big-endian bytes that end
 * before `src_end`. */
static void shuffle_in(
	struct hop_plan *plan, unsigned int dst, unsigned int src_end, unsigned int bytes)
{
	for (unsigned int k = 0; k < bytes; k++) {
		unsigned int src = src_end - 1 - k;

		if (dst + k < 64)
			plan->shuffle[(dst + k) / 32][src / 16][(dst + k) % 32] =
				(uint8_t)(src % 16);
		plan->permute[(dst + k) / 64][(dst + k) % 64] = (uint8_t)(src - plan->window_back);
		plan->permuted[(dst + k) / 64] |= UINT64_C(1) << (dst + k) % 64;
	}
}

/* Bit 6, as hop_decode_bit6 has it. */
static void shuffle_bit6(struct hop_plan *plan, unsigned int at)
{
	const unsigned int port_bytes = plan->layout.ports2_16 ? 2 : 4;

	if (plan->layout.version == PL_INT_V05 && plan->layout.ports2_16) {
		const unsigned int queue = plan->layout.queue_16 ? 2 : 1;

		shuffle_in(plan, offsetof(struct pl_hop, congestion), at + 4, 4 - queue);
		shuffle_in(plan, offsetof(struct pl_hop, congestion_queue), at + queue, queue);
		return;
	}
	shuffle_in(plan, offsetof(struct pl_hop, ingress_port2), at + port_bytes, port_bytes);
	shuffle_in(plan, offsetof(struct pl_hop, egress_port2), at + 2 * port_bytes, port_bytes);
}

/* Sets what fast.c needs to know of a layout: reserved instructions raise notes, GEANT's header
 * holds a sequence number, and without node ids there is no path id. */
static void plan_usual(struct hop_plan *plan)
{
	const struct pl_int_layout *l = &plan->layout;
	const unsigned int reserved = l->version == PL_INT_V20 ? 0x007e : 0x00fe;

	plan->usual = plan->usable && l->version != PL_INT_V05 && l->dialect != PL_DIALECT_GEANT &&
		      (l->bitmap & reserved) == 0 && (plan->present & PL_HOP_HAS_node) != 0;
	plan->hops_per_word = (65536 + l->words - 1) / l->words;
	plan->path = (struct pl_path){
		.dialect = l->dialect,
		.mode = PL_MODE_MD,
		.int_version = l->version,
		.record_version = PL_RECORD_VERSION,
		.present = PL_PATH_HAS_exporter | PL_PATH_HAS_exporter_port |
			   PL_PATH_HAS_report_version | PL_PATH_HAS_dialect | PL_PATH_HAS_hw_id |
			   PL_PATH_HAS_seq | PL_PATH_HAS_node | PL_PATH_HAS_src |
			   PL_PATH_HAS_sport | PL_PATH_HAS_path_id,
	};
}

void plan_make(struct hop_plan *plan, const struct pl_int_layout *layout)
{
	const struct pl_int_layout *l = &plan->layout;
	const uint8_t *off = l->off;
	unsigned int back, ts, queue;
	struct pl_hop record;

	plan->layout = *layout;
	plan->block_bytes = 4u * l->words;
	back = plan->block_bytes < 48 ? 48 - plan->block_bytes : 0;
	plan->window_back = back;
	plan->present = expected(l);
	plan->time_bits = (plan->present & PL_HOP_HAS_time_bits) == 0 ? 0 : l->ts64 ? 64 : 32;
	plan->block_mask =
		plan->block_bytes < 64 ? (UINT64_C(1) << plan->block_bytes) - 1 : UINT64_MAX;
	plan->known_words = 0;
	plan->usable = l->dialect != PL_DIALECT_V04;
	memset(plan->shuffle, 0x80, sizeof(plan->shuffle));
	memset(plan->permute, 0, sizeof(plan->permute));
	memset(plan->permuted, 0, sizeof(plan->permuted));
	ts = l->ts64 ? 8 : 4;
	queue = l->queue_16 ? 2 : 1;
	for (unsigned int f = 0; f < PL_INT_F_MAX; f++) {
		unsigned int at = back + off[f], words = 1;

		if (off[f] == PL_INT_NO_OFFSET)
			continue;
		switch (f) {
		case PL_INT_F_NODE:
			shuffle_in(plan, offsetof(struct pl_hop, node), at + 4, 4);
			break;
		case PL_INT_F_PORTS:
			shuffle_in(plan, offsetof(struct pl_hop, ingress_port), at + 2, 2);
			shuffle_in(plan, offsetof(struct pl_hop, egress_port), at + 4, 2);
			break;
		case PL_INT_F_LATENCY:
			shuffle_in(plan, offsetof(struct pl_hop, hop_latency_ns), at + 4, 4);
			break;
		case PL_INT_F_QUEUE:
			shuffle_in(plan, offsetof(struct pl_hop, queue_depth), at + 4, 4 - queue);
			shuffle_in(plan, offsetof(struct pl_hop, queue), at + queue, queue);
			break;
		case PL_INT_F_INGRESS_TS:
			shuffle_in(plan, offsetof(struct pl_hop, ingress_ts_ns), at + ts, ts);
			words = ts / 4;
			break;
		case PL_INT_F_EGRESS_TS:
			shuffle_in(plan, offsetof(struct pl_hop, egress_ts_ns), at + ts, ts);
			words = ts / 4;
			break;
		case PL_INT_F_TX_UTIL:
			shuffle_in(plan, offsetof(struct pl_hop, tx_util), at + 4, 4);
			break;
		case PL_INT_F_BUFFER:
			shuffle_in(plan, offsetof(struct pl_hop, buffer_depth), at + 4, 3);
			shuffle_in(plan, offsetof(struct pl_hop, buffer), at + 1, 1);
			break;
		default: /* PL_INT_F_PORTS2: in the record's second half */
			words = l->ports2_16 ? 1 : 2;
			shuffle_bit6(plan, at);
			break;
		}
		for (unsigned int w = 0; w < words; w++)
			plan->known_words |= 1u << (at / 4 + w);
	}
	plan->ports2_at = PLAN_PORTS2_NONE;
	if (off[PL_INT_F_PORTS2] != PL_INT_NO_OFFSET)
		plan->ports2_at = l->ports2_16 ? PLAN_PORTS2_OTHER : off[PL_INT_F_PORTS2];
	record = (struct pl_hop){
		.present = plan->present,
		.time_bits = plan->time_bits,
		.record_version = PL_RECORD_VERSION,
	};
	memcpy(plan->fixed, &record, sizeof(record));
	plan_usual(plan);
}

const struct hop_plan *own_plan_of(struct pl_decode *d, uint16_t bitmap)
{
	struct hop_plan *plan = &d->own_plans[(bitmap >> 7 ^ bitmap >> 10) % OWN_PLANS];
	struct pl_int_layout layout;

	if (__builtin_expect(plan->layout.bitmap != bitmap, 0)) {
		if (pl_int_layout_make(&layout, PL_INT_V20, bitmap, 0, PL_DIALECT_SPEC) < 0)
			return NULL;
		plan_make(plan, &layout);
	}
	return plan;
}
