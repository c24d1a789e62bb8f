/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Steps that programs which make records of packets share (tap.bpf.c, drops.bpf.c): those of
 * core/tap_core.h as functions that the verifier checks once each, and the present rules. */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>

#include <bpf/bpf_helpers.h>

#include "bpf/tap_kernel.h"
#include "core/tap_rules.h"

struct pl_tap_walk;
int pl_tap_do_tag(struct pl_tap_walk *w, uint32_t i);
int pl_tap_do_label(struct pl_tap_walk *w, uint32_t i);
int pl_tap_do_extension(struct pl_tap_walk *w, uint32_t i);
int pl_tap_do_option(struct pl_tap_walk *w);

#define PL_TAP_TAG       (uint32_t) pl_tap_do_tag
#define PL_TAP_LABEL     (uint32_t) pl_tap_do_label
#define PL_TAP_EXTENSION (uint32_t) pl_tap_do_extension
#define PL_TAP_OPTION    pl_tap_do_option

#include "core/tap_core.h"

/* Returns the flags for bpf_ringbuf_output. After a wake-up user space polls the ring for longer
 * than wake_ns; nothing wakes it again in this time. woken_ns: time of this processor's last
 * wake-up. */
static __always_inline uint64_t pl_tap_wakes(uint64_t *woken_ns, uint32_t wake_ns, uint64_t now_ns)
{
	if (now_ns - *woken_ns < wake_ns)
		return BPF_RB_NO_WAKEUP;
	*woken_ns = now_ns;
	return BPF_RB_FORCE_WAKEUP;
}

struct pl_tap_rule_set pl_tap_sets[PL_TAP_RULE_SETS];
uint32_t pl_tap_set; /* number of the set in use */

__attribute__((noinline)) int pl_tap_do_tag(struct pl_tap_walk *w, uint32_t i)
{
	return w == NULL ? PL_TAP_BROKEN : (int)pl_tap_core_tag(w, i);
}

__attribute__((noinline)) int pl_tap_do_label(struct pl_tap_walk *w, uint32_t i)
{
	return w == NULL ? PL_TAP_BROKEN : (int)pl_tap_core_label(w, i);
}

__attribute__((noinline)) int pl_tap_do_option(struct pl_tap_walk *w)
{
	return w == NULL ? 0 : pl_tap_core_option(w);
}

__attribute__((noinline)) int pl_tap_do_extension(struct pl_tap_walk *w, uint32_t i)
{
	return w == NULL ? PL_TAP_BROKEN : (int)pl_tap_core_extension(w, i);
}

__attribute__((noinline)) int pl_tap_do_ip6(struct pl_tap_walk *w)
{
	return w == NULL ? PL_TAP_BROKEN : (int)pl_tap_core_ip6(w);
}

__attribute__((noinline)) int pl_tap_do_options(struct pl_tap_walk *w)
{
	if (w != NULL)
		pl_tap_core_options(w);
	return 0;
}

/* Applies the first rule that matches and returns its enum pl_tap_ruling. share: packets for which
 * the rules are the same, with n set. hits: those of the processor. */
__attribute__((noinline)) int pl_tap_do_rules(
	struct pl_tap_walk *w, struct pl_tap_share *share, struct pl_tap_rule_hits *hits)
{
	const uint32_t turn = *(volatile uint32_t *)&pl_tap_set & (PL_TAP_RULE_SETS - 1);
	struct pl_tap_rule_set *set = &pl_tap_sets[turn];
	uint32_t n = set->n;

	if (w == NULL || share == NULL || hits == NULL)
		return PL_TAP_RULED_SKIP;
	w->record.obs |= set->point;
	pl_tap_share_all(share);
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PL_TAP_RULES_MAX && i < n; i++) {
		const struct pl_tap_rule *u = &set->rules[i & (PL_TAP_RULES_MAX - 1)];
		uint64_t before = 0;
		uint32_t over;

		if (!pl_tap_rule_matches(u, &w->record))
			continue;
		hits->of[turn][i & (PL_TAP_RULES_MAX - 1)] += share->n;
		if (u->sample > 1 && !pl_tap_is_edge(&w->record))
			before = __sync_fetch_and_add(
				&set->matched[i & (PL_TAP_RULES_MAX - 1)], share->n);
		return (int)pl_tap_rule_tap(u, &w->record, before, share, &over);
	}
	hits->of[turn][PL_TAP_RULES_MAX] += share->n;
	return PL_TAP_RULED_TAKE;
}

static __always_inline int pl_tap_read_rules(
	struct pl_tap_walk *w, struct pl_tap_share *share, struct pl_tap_rule_hits *hits)
{
	const uint32_t turn = *(volatile uint32_t *)&pl_tap_set & (PL_TAP_RULE_SETS - 1);
	const struct pl_tap_rule_set *set = &pl_tap_sets[turn];

	if (set->n != 0)
		return pl_tap_do_rules(w, share, hits);
	hits->of[turn][PL_TAP_RULES_MAX] += share->n;
	w->record.obs |= set->point;
	pl_tap_share_all(share);
	return PL_TAP_RULED_TAKE;
}
