/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills the tables of layouts. */
#include "detect/layouts.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "core/detect_state.h"
#include "decode/present.h"

_Static_assert((int)PL_CORE_F_BUFFER == (int)PL_INT_F_BUFFER, "the order of wire/int.h");

/* The fields of pl_int_layout_key. */
#define KEY_VERSION(key) ((enum pl_int_version)((key) >> 16 & 3))
#define KEY_HAS_DS(key)  ((key) >> 18 & 1)
#define KEY_PINNED(key)  ((key) >> 19 & 1)
#define KEY_QUEUE(key)   ((enum pl_queue_word)((key) >> 20 & 15))
#define KEY_PREFER(key)  ((enum pl_dialect)((key) >> 24 & 0xff))
#define KEY_BITMAP(key)  ((uint16_t)((key) >> 32))
#define KEY_WORDS(key)   ((unsigned int)((key)&0x1f))

static void from_int(struct pl_core_layout *ret, const struct pl_int_layout *l)
{
	for (unsigned int f = 0; f < PL_INT_F_MAX; f++) {
		if (l->off[f] == PL_INT_NO_OFFSET)
			continue;
		ret->off[f] = l->off[f];
		ret->present |= pl_int_field_present(l, f);
	}
	if (l->off[PL_INT_F_PORTS2] != PL_INT_NO_OFFSET)
		ret->ports2_words = l->ports2_16 ? 1 : 2;
	ret->words = l->words;
	ret->hops_per_word = (65536 + l->words - 1u) / l->words;
	ret->time_bits = l->ts64 ? 64 : 32;
	ret->queue_shift = l->queue_16 ? 16 : 24;
}

/* Sets values that the fast path needs in advance (core/detect_fast_hops.h). */
static void prepare(struct pl_core_layout *l, uint64_t key)
{
	const uint32_t times = PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_egress_ts_ns;
	const bool ports = (l->present & PL_HOP_HAS_egress_port) != 0;
	const bool queue = (l->present & PL_HOP_HAS_queue_depth) != 0;
	const bool both_times = (l->present & times) == times;
	/* Reserved bits are worth a note. */
	const unsigned int reserved = KEY_VERSION(key) == PL_INT_V20   ? 0x007e
				      : KEY_VERSION(key) == PL_INT_V10 ? 0x00fe
								       : 0x00ff;

	l->derived = both_times && (l->present & PL_HOP_HAS_hop_latency_ns) == 0;
	l->stack_mask = UINT64_C(0xffffffff) << 32 | (ports ? UINT32_MAX : 0);
	l->depth_mask = queue ? (UINT32_C(1) << l->queue_shift) - 1 : 0;
	l->queue_bits = queue ? 0xffff : 0;
	l->place_has = (ports ? PL_CORE_HAS_PORT : 0) | (queue ? PL_CORE_HAS_QUEUE : 0);
	l->quantities = (l->derived || (l->present & PL_HOP_HAS_hop_latency_ns)
					? 1u << PL_CORE_Q_HOP_LATENCY
					: 0) |
			(queue ? 1u << PL_CORE_Q_QUEUE_DEPTH : 0) |
			(l->present & PL_HOP_HAS_tx_util ? 1u << PL_CORE_Q_TX_UTIL : 0) |
			(l->present & PL_HOP_HAS_buffer_depth ? 1u << PL_CORE_Q_BUFFER_DEPTH : 0) |
			(both_times ? 1u << PL_CORE_Q_LINK_LATENCY : 0);
	if ((KEY_BITMAP(key) & reserved) != 0 || (l->present & PL_HOP_HAS_node) == 0)
		l->reserved = 1;
}

/* Sets the members that may change while a program reads the layout. */
static void set_way(struct pl_core_layout *l, bool follow)
{
	const uint8_t shape = l->reserved || (follow && l->numbered) ? PL_CORE_SHAPE_NONE
			      : l->words == 1                        ? PL_CORE_SHAPE_NODE
								     : PL_CORE_SHAPE_VALUES;

	__atomic_store_n(&l->shape, shape, __ATOMIC_RELAXED);
	__atomic_store_n(&l->escalate, follow && l->numbered, __ATOMIC_RELAXED);
}

static int stack_layout(struct pl_core_layout *ret, uint64_t key)
{
	struct pl_int_layout l;

	if (pl_int_layout_find(&l, KEY_VERSION(key), KEY_BITMAP(key), KEY_WORDS(key),
		    KEY_HAS_DS(key), KEY_PREFER(key), KEY_QUEUE(key)) < 0)
		return -ENOENT;
	/* 31-bit values with a mark are the general decoder's. */
	if (l.dialect == PL_DIALECT_V04 || (KEY_PINNED(key) && l.dialect != KEY_PREFER(key)))
		return -ENOENT;
	from_int(ret, &l);
	prepare(ret, key);
	ret->numbered = l.dialect == PL_DIALECT_GEANT;
	return 0;
}

/* Adds a word with this field, or with none that is used. */
static void word(struct pl_core_layout *ret, unsigned int field, uint32_t present)
{
	ret->off[field] = (uint8_t)(4 * ret->words++);
	ret->present |= present;
}

/* v1.0 3.2.2: words of RepMdBits in their order. v0.5 3.3, 3.4: the words behind the node. */
static int own_layout_v1(struct pl_core_layout *ret, unsigned int version, unsigned int bits)
{
	const uint32_t ports = PL_HOP_HAS_ingress_port | PL_HOP_HAS_egress_port;
	const uint32_t queue = PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth;
	const uint32_t time = PL_HOP_HAS_egress_ts_ns | PL_HOP_HAS_time_bits;

	ret->time_bits = 32;
	ret->queue_shift = 24;
	if (version == PL_REPORT_V05) {
		if (bits != 1 && bits != 2)
			return -ENOENT;
		word(ret, PL_CORE_F_PORTS, ports);
		if (bits == 1) {
			word(ret, PL_CORE_F_DROP, 0);
			ret->has_drop = 1;
		} else {
			word(ret, PL_CORE_F_QUEUE, queue);
			word(ret, PL_CORE_F_EGRESS_TS, time);
		}
		return 0;
	}
	if (bits == 0 || bits > 0x3f)
		return -ENOENT;
	if (bits & 0x20)
		word(ret, PL_CORE_F_PORTS, ports);
	if (bits & 0x10)
		word(ret, PL_CORE_F_LATENCY, PL_HOP_HAS_hop_latency_ns);
	if (bits & 0x08)
		word(ret, PL_CORE_F_QUEUE, queue);
	if (bits & 0x04)
		word(ret, PL_CORE_F_EGRESS_TS, time);
	if (bits & 0x02)
		word(ret, PL_CORE_F_DROP, 0);
	if (bits & 0x01)
		word(ret, PL_CORE_F_TX_UTIL, PL_HOP_HAS_tx_util);
	ret->has_drop = (bits & 0x02) != 0;
	return 0;
}

/* v2.0 3.4.1: a block as of INT v2.x without a node, and bit 15 is the drop reason. */
static int own_layout_v2(struct pl_core_layout *ret, uint16_t bits)
{
	struct pl_int_layout l;

	if ((bits & 0x807e) != 0 || bits == 0 ||
		pl_int_layout_make(&l, PL_INT_V20, bits, 0, PL_DIALECT_SPEC) < 0)
		return -ENOENT;
	from_int(ret, &l);
	if (bits & PL_INT_CHECKSUM) {
		ret->has_drop = 1;
		ret->off[PL_CORE_F_DROP] = (uint8_t)(4 * (l.words - 1));
	}
	return 0;
}

static int own_layout(struct pl_core_layout *ret, uint64_t key)
{
	const unsigned int version = (unsigned int)(key >> 16 & 3);

	return version == PL_REPORT_V20 ? own_layout_v2(ret, KEY_BITMAP(key))
					: own_layout_v1(ret, version, KEY_BITMAP(key));
}

int pl_layouts_learn(struct pl_core_layouts *layouts, uint64_t key)
{
	struct pl_core_layout l = { 0 }, *slot;
	uint32_t at = pl_core_layout_slot(layouts, key);
	int r;

	if (pl_core_layout_find(layouts, key) != NULL)
		return 0;
	r = (key & PL_CORE_OWN) != 0 ? own_layout(&l, key) : stack_layout(&l, key);
	if (r < 0)
		return r;
	if ((key & PL_CORE_OWN) == 0)
		set_way(&l, layouts->follow != 0);
	for (uint32_t i = 0; i < 4; i++) {
		slot = &layouts->slot[(at ^ i) & (PL_CORE_LAYOUTS - 1)];
		if (slot->key != 0)
			continue;
		*slot = l;
		/* Pairs with the reader's load of the key: the layout that it finds is whole. */
		__atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
		return 0;
	}
	return -ENOSPC;
}

void pl_layouts_follow(struct pl_core_layouts *layouts, bool on)
{
	layouts->follow = on;
	for (uint32_t i = 0; i < PL_CORE_LAYOUTS; i++) {
		struct pl_core_layout *l = &layouts->slot[i];

		if (l->key != 0 && (l->key & PL_CORE_OWN) == 0)
			set_way(l, on);
	}
}

void pl_layouts_usual(struct pl_core_layouts *layouts)
{
	static const struct pl_int_hints none;
	static const struct {
		uint8_t version, words;
		uint16_t bitmap;
	} usual[] = {
		{ PL_INT_V05, 1, 0x8000 },
		{ PL_INT_V05, 6, 0xfc00 },
		{ PL_INT_V05, 8, 0xff00 },
		{ PL_INT_V10, 1, 0x8000 },
		{ PL_INT_V10, 6, 0xfc00 },
		{ PL_INT_V10, 7, 0xfd00 },
		{ PL_INT_V10, 8, 0xff00 },
		{ PL_INT_V10, 9, 0xff00 },
		{ PL_INT_V10, 10, 0xff00 },
		{ PL_INT_V20, 1, 0x8000 },
		{ PL_INT_V20, 8, 0xfc00 },
		{ PL_INT_V20, 9, 0xfd00 },
		{ PL_INT_V20, 11, 0xff00 },
	};

	layouts->seed = pl_hash_seed();
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		(void)pl_layouts_learn(
			layouts, pl_int_layout_key(usual[i].version, usual[i].bitmap,
					 usual[i].words, false, PL_DIALECT_SPEC, &none));
	(void)pl_layouts_learn(layouts, pl_core_own_key(PL_REPORT_V05, 1));
	(void)pl_layouts_learn(layouts, pl_core_own_key(PL_REPORT_V05, 2));
}
