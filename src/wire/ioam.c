/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading IOAM options. Section numbers are RFC 9197's where no other document is named. */
#include "wire/ioam.h"

enum { OPT_PAD1 = 0, OPT_PADN = 1 };

/* IOAM option types as registered (IANA "IOAM Option-Type"; 64 to 66 are temporary). */
enum { INTEGRITY_FIRST = 64, INTEGRITY_LAST = 66 };

/* RFC 8200 4.2: PadN holds zeros. */
static bool is_zero(struct pl_cursor body)
{
	uint8_t all = 0;

	while (pl_cursor_left(&body) > 0)
		all |= pl_get_u8(&body);
	return all == 0;
}

bool pl_ioam_next(struct pl_cursor *area, struct pl_ioam_option *ret, enum pl_verdict *ret_verdict)
{
	*ret_verdict = PL_V_OK;
	while (pl_cursor_left(area) > 0) {
		uint8_t type = pl_get_u8(area);
		struct pl_cursor body;
		uint8_t kind;

		if (type == OPT_PAD1)
			continue;
		body = pl_cursor_split(area, pl_get_u8(area));
		if (area->short_read) {
			*ret_verdict = PL_V_IP_OPTIONS;
			return false;
		}
		/* PadN with other bytes is part of another option, of which a wrong length took
		 * bytes. */
		if (type == OPT_PADN && !is_zero(body)) {
			*ret_verdict = PL_V_IP_OPTIONS;
			return false;
		}
		if (type != PL_IP6_OPT_IOAM && type != PL_IP6_OPT_IOAM_MUTABLE)
			continue;
		pl_cursor_skip(&body, 1); /* reserved */
		kind = pl_get_u8(&body);
		if (body.short_read) {
			*ret_verdict = PL_V_IOAM_SHORT;
			return false;
		}
		ret->integrity = kind >= INTEGRITY_FIRST && kind <= INTEGRITY_LAST;
		if (ret->integrity)
			kind = (uint8_t)(kind - INTEGRITY_FIRST);
		if (kind > PL_IOAM_DEX) {
			*ret_verdict = PL_V_IOAM_OPTION;
			return false;
		}
		ret->kind = kind;
		ret->option_type = type;
		ret->body = body;
		return true;
	}
	return false;
}

#define WIDE_BITS       (PL_IOAM_BIT(8) | PL_IOAM_BIT(9) | PL_IOAM_BIT(10))
#define UNASSIGNED_BITS (0x3ffu << 2) /* bits 12 to 21 */
#define WORD_BITS       (0xff0000u | PL_IOAM_BIT(11) | UNASSIGNED_BITS)

uint8_t pl_ioam_node_len(uint32_t type)
{
	return (uint8_t)(__builtin_popcount(type & WORD_BITS) +
			 2 * __builtin_popcount(type & WIDE_BITS));
}

static uint64_t note_integrity(const struct pl_ioam_option *option)
{
	return option->integrity ? PL_NOTE_BIT(IOAM_INTEGRITY) : 0;
}

enum pl_verdict pl_ioam_trace_parse(struct pl_ioam_trace *ret, const struct pl_ioam_option *option)
{
	struct pl_cursor c = option->body;
	const uint8_t *p = pl_cursor_take(&c, 8);

	if (p == NULL)
		return PL_V_IOAM_SHORT;
	*ret = (struct pl_ioam_trace){
		.type = pl_be24(p + 4),
		.ns = pl_be16(p),
		.node_len = p[2] >> 3,
		.flags = (uint8_t)((p[2] & 0x07) << 1 | p[3] >> 7),
		.remaining = p[3] & 0x7f,
		.incremental = option->kind == PL_IOAM_INCREMENTAL,
		.nodes = c,
		.notes = note_integrity(option),
	};
	if ((ret->flags & PL_IOAM_OVERFLOW) != 0)
		ret->notes |= PL_NOTE_BIT(IOAM_OVERFLOW);
	if ((ret->flags & PL_IOAM_LOOPBACK) != 0)
		ret->notes |= PL_NOTE_BIT(IOAM_LOOPBACK);
	if ((ret->flags & PL_IOAM_ACTIVE) != 0)
		ret->notes |= PL_NOTE_BIT(IOAM_ACTIVE);
	if ((ret->type & UNASSIGNED_BITS) != 0 || (ret->flags & 1) != 0)
		ret->notes |= PL_NOTE_BIT(UNASSIGNED);
	if (ret->node_len != pl_ioam_node_len(ret->type))
		return PL_V_IOAM_NODE_LEN;
	/* In an incremental trace the free words are a budget: they are not in the packet
	 * (4.4.1). */
	if (!ret->incremental && (size_t)ret->remaining * 4 > pl_cursor_left(&c))
		return PL_V_IOAM_REMAINING;
	if (!ret->incremental)
		pl_cursor_skip(&ret->nodes, (size_t)ret->remaining * 4);
	/* Nodes write whole words; so there are at most PL_IOAM_NODES_MAX nodes. */
	if (pl_cursor_left(&c) % 4 != 0)
		return PL_V_IOAM_WALK;
	/* Nodes that write nothing cannot have filled anything. */
	if ((ret->type & (WORD_BITS | WIDE_BITS | PL_IOAM_SNAPSHOT)) == 0 &&
		pl_cursor_left(&ret->nodes) > 0)
		return PL_V_IOAM_WALK;
	return PL_V_OK;
}

/* Reads a word and sets its bit in `have`, unless it is all ones. */
static uint32_t take_word(struct pl_ioam_node *n, struct pl_cursor *c, uint32_t has)
{
	uint32_t v = pl_get_be32(c);

	if (v == UINT32_MAX)
		return 0;
	n->have |= has;
	return v;
}

static uint16_t take_half(struct pl_ioam_node *n, struct pl_cursor *c, uint32_t has)
{
	uint16_t v = pl_get_be16(c);

	if (v == UINT16_MAX)
		return 0;
	n->have |= has;
	return v;
}

static void take_hop_limit(struct pl_ioam_node *n, struct pl_cursor *c)
{
	uint8_t v = pl_get_u8(c);

	/* A node decrements the hop limit, so it never sends 255. */
	if (v == UINT8_MAX)
		return;
	n->have |= PL_IOAM_HAS_HOP_LIMIT;
	n->hop_limit = v;
}

static void take_node(struct pl_ioam_node *n, struct pl_cursor *c)
{
	uint32_t v;

	take_hop_limit(n, c);
	v = pl_get_be24(c);
	if (v == 0xffffff)
		return;
	n->have |= PL_IOAM_HAS_NODE;
	n->node = v;
}

static void take_node_wide(struct pl_ioam_node *n, struct pl_cursor *c)
{
	uint64_t v;

	take_hop_limit(n, c);
	v = (uint64_t)pl_get_be24(c) << 32;
	v |= pl_get_be32(c);
	if (v == UINT64_C(0xffffffffffffff))
		return;
	n->have |= PL_IOAM_HAS_NODE_WIDE;
	n->node_wide = v;
}

static void take_delay(struct pl_ioam_node *n, struct pl_cursor *c)
{
	uint32_t v = take_word(n, c, PL_IOAM_HAS_DELAY);

	n->delay_overflow = v >> 31 != 0;
	n->delay_ns = v & 0x7fffffff;
}

static void take_ns_data_wide(struct pl_ioam_node *n, struct pl_cursor *c)
{
	uint64_t v = pl_get_be64(c);

	if (v == UINT64_MAX)
		return;
	n->have |= PL_IOAM_HAS_NS_DATA_WIDE;
	n->ns_data_wide = v;
}

static void take_snapshot(struct pl_ioam_node *n, struct pl_cursor *c)
{
	size_t words = pl_get_u8(c);
	uint32_t schema = pl_get_be24(c);

	n->snapshot = pl_cursor_split(c, words * 4);
	if (schema == 0xffffff)
		return;
	n->have |= PL_IOAM_HAS_SCHEMA;
	n->schema = schema;
}

bool pl_ioam_node_next(
	struct pl_ioam_trace *trace, struct pl_ioam_node *ret, enum pl_verdict *ret_verdict)
{
	struct pl_cursor *c = &trace->nodes;
	uint32_t type = trace->type;

	*ret_verdict = c->short_read ? PL_V_IOAM_WALK : PL_V_OK;
	if (pl_cursor_left(c) == 0)
		return false;
	*ret = (struct pl_ioam_node){ .snapshot = { c->pos, c->pos, false } };
	if (type & PL_IOAM_BIT(0))
		take_node(ret, c);
	if (type & PL_IOAM_BIT(1)) {
		ret->ingress = take_half(ret, c, PL_IOAM_HAS_INGRESS);
		ret->egress = take_half(ret, c, PL_IOAM_HAS_EGRESS);
	}
	if (type & PL_IOAM_BIT(2))
		ret->seconds = take_word(ret, c, PL_IOAM_HAS_SECONDS);
	if (type & PL_IOAM_BIT(3))
		ret->fraction = take_word(ret, c, PL_IOAM_HAS_FRACTION);
	if (type & PL_IOAM_BIT(4))
		take_delay(ret, c);
	if (type & PL_IOAM_BIT(5))
		ret->ns_data = take_word(ret, c, PL_IOAM_HAS_NS_DATA);
	if (type & PL_IOAM_BIT(6))
		ret->queue = take_word(ret, c, PL_IOAM_HAS_QUEUE);
	if (type & PL_IOAM_BIT(7))
		ret->checksum = take_word(ret, c, PL_IOAM_HAS_CHECKSUM);
	if (type & PL_IOAM_BIT(8))
		take_node_wide(ret, c);
	if (type & PL_IOAM_BIT(9)) {
		ret->ingress_wide = take_word(ret, c, PL_IOAM_HAS_INGRESS_WIDE);
		ret->egress_wide = take_word(ret, c, PL_IOAM_HAS_EGRESS_WIDE);
	}
	if (type & PL_IOAM_BIT(10))
		take_ns_data_wide(ret, c);
	if (type & PL_IOAM_BIT(11))
		ret->buffer = take_word(ret, c, PL_IOAM_HAS_BUFFER);
	pl_cursor_skip(c, 4 * (size_t)__builtin_popcount(type & UNASSIGNED_BITS));
	if (type & PL_IOAM_SNAPSHOT)
		take_snapshot(ret, c);
	if (!c->short_read)
		return true;
	*ret_verdict = PL_V_IOAM_WALK;
	return false;
}

#define E2E_SEQ_64     0x8000
#define E2E_SEQ_32     0x4000
#define E2E_SECONDS    0x2000
#define E2E_FRACTION   0x1000
#define E2E_UNASSIGNED 0x0fff

enum pl_verdict pl_ioam_e2e_parse(struct pl_ioam_e2e *ret, const struct pl_ioam_option *option)
{
	struct pl_cursor c = option->body;

	*ret = (struct pl_ioam_e2e){ .ns = pl_get_be16(&c), .notes = note_integrity(option) };
	ret->type = pl_get_be16(&c);
	if (c.short_read)
		return PL_V_IOAM_SHORT;
	if (ret->type & E2E_SEQ_64) {
		ret->have_seq = true;
		ret->seq = pl_get_be64(&c);
	}
	if (ret->type & E2E_SEQ_32) {
		uint32_t seq = pl_get_be32(&c);

		if (!ret->have_seq)
			ret->seq = seq;
		ret->have_seq = true;
	}
	if (ret->type & E2E_SECONDS) {
		ret->have_seconds = true;
		ret->seconds = pl_get_be32(&c);
	}
	if (ret->type & E2E_FRACTION) {
		ret->have_fraction = true;
		ret->fraction = pl_get_be32(&c);
	}
	/* The data of an unassigned bit are unknown, but can only come behind the known ones. */
	if (ret->type & E2E_UNASSIGNED)
		ret->notes |= PL_NOTE_BIT(UNASSIGNED);
	else if (pl_cursor_left(&c) > 0)
		return PL_V_IOAM_LENGTH;
	return c.short_read ? PL_V_IOAM_LENGTH : PL_V_OK;
}

enum pl_verdict pl_ioam_pot_parse(struct pl_ioam_pot *ret, const struct pl_ioam_option *option)
{
	struct pl_cursor c = option->body;
	const uint8_t *p = pl_cursor_take(&c, 4);

	if (p == NULL)
		return PL_V_IOAM_SHORT;
	*ret = (struct pl_ioam_pot){
		.ns = pl_be16(p),
		.type = p[2],
		.flags = p[3],
		.notes = note_integrity(option),
	};
	if (ret->type != 0 || ret->flags != 0)
		ret->notes |= PL_NOTE_BIT(UNASSIGNED);
	if (ret->type != 0)
		return PL_V_OK;
	ret->have_values = true;
	ret->packet_id = pl_get_be64(&c);
	ret->cumulative = pl_get_be64(&c);
	return c.short_read || pl_cursor_left(&c) > 0 ? PL_V_IOAM_LENGTH : PL_V_OK;
}

/* RFC 9326 3.2; DEX_EARLY is an early exporter's value for the same two words. */
#define DEX_FLOW       0x80
#define DEX_SEQ        0x40
#define DEX_UNASSIGNED 0x3f
#define DEX_EARLY      0x03

enum pl_verdict pl_ioam_dex_parse(struct pl_ioam_dex *ret, const struct pl_ioam_option *option)
{
	struct pl_cursor c = option->body;
	const uint8_t *p = pl_cursor_take(&c, 8);
	uint8_t extensions;

	if (p == NULL)
		return PL_V_IOAM_SHORT;
	*ret = (struct pl_ioam_dex){
		.type = pl_be24(p + 4),
		.ns = pl_be16(p),
		.flags = p[2],
		.extensions = p[3],
		.notes = note_integrity(option),
	};
	extensions = ret->extensions;
	if (pl_cursor_left(&c) != 4 * (size_t)__builtin_popcount(extensions))
		return PL_V_IOAM_LENGTH;
	if (extensions == DEX_EARLY) {
		extensions = DEX_FLOW | DEX_SEQ;
		ret->notes |= PL_NOTE_BIT(IOAM_LEGACY_DEX);
	}
	if (ret->flags != 0 || (extensions & DEX_UNASSIGNED) != 0)
		ret->notes |= PL_NOTE_BIT(UNASSIGNED);
	if (extensions & DEX_FLOW) {
		ret->have_flow = true;
		ret->flow = pl_get_be32(&c);
	}
	if (extensions & DEX_SEQ) {
		ret->have_seq = true;
		ret->seq = pl_get_be32(&c);
	}
	return PL_V_OK;
}
