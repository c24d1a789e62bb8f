/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rules that choose the packets which mark.bpf.c marks, counts or clears. */
#pragma once

#include "bpf/mark_maps.bpf.h"

/* True when a rule chooses the packet in w->record; a packet that no rule matches is not chosen. */
__attribute__((noinline)) int pl_mark_do_rules(struct work *w)
{
	struct pl_mark_rules *set = &pl_mark_rules;
	uint32_t n = *(volatile uint32_t *)&set->n, from;

	if (w == NULL)
		return 0;
	from = w->blind != 0 ? PL_TAP_RULES_MAX : 0;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PL_TAP_RULES_MAX && i < n; i++) {
		const struct pl_tap_rule *u = &set->rules[(from + i) & (2 * PL_TAP_RULES_MAX - 1)];

		if (pl_tap_rule_matches(u, &w->record))
			return pl_tap_rule_decide(u, &w->record, 0) == PL_TAP_RULED_TAKE;
	}
	return 0;
}

/* True when a rule chooses the packet; why: PL_MARK_UNREAD when its ports are not known, and a rule may
 * choose it. */
static __always_inline bool chosen_as(
	struct work *w, const struct pl_mark_packet *s, uint32_t why, bool leaving)
{
	struct pl_pkt96 *r = &w->record;

	memcpy(r->src.b, s->key.src, 16);
	memcpy(r->dst.b, s->key.dst, 16);
	r->sport = s->key.sport;
	r->dport = s->key.dport;
	r->proto = (uint8_t)s->key.proto;
	r->tos = s->tos;
	r->vlan = s->vlan;
	r->obs = leaving ? PL_OBS_OUT : 0;
	r->flow_hash = pl_tap_core_hash(r);
	w->blind = why == PL_MARK_UNREAD;
	return pl_mark_do_rules(w) != 0;
}

static __always_inline bool chosen(struct work *w, const struct pl_mark_packet *s, bool leaving)
{
	return chosen_as(w, s, PL_MARK_PARSED, leaving);
}

/* Counts packets that were not read as far as is needed: as unread if a rule may choose them, else as
 * skipped. */
static __always_inline void count_unread(struct work *w, const struct pl_mark_packet *s,
	uint32_t why, bool leaving, uint32_t n, uint64_t *unread, uint64_t *skipped)
{
	if (why != PL_MARK_UNREAD && why != PL_MARK_UNSEARCHED)
		return;
	if (chosen_as(w, s, why, leaving))
		*unread += n;
	else
		*skipped += n;
}
