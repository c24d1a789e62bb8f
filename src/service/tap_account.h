/* SPDX-License-Identifier: BSD-2-Clause */
/* Accounts of the tap: metric families, JSON members, a sentence. */
#pragma once

#include "service/tap.h"

/* Returns the current counters, with those of taps in the kernel. */
const struct pl_tap_stats *pl_tap_stats_now(struct pl_tap_service *t);

extern const struct pl_stats pl_tap_service_list;
/* tap NULL: the families of any tap, without samples. */
void pl_tap_put(void *tap, const struct pl_account *a);
/* Appends "tc:eth0 and others, clock tai": the sources, and the clock expected of their times. */
void pl_tap_put_sources(const struct pl_tap_service *t, struct pl_buf *text);
void pl_tap_put_text(void *tap, struct pl_buf *text);

/* Matches of each rule; samples have `label` first, then their own labels. */
struct pl_tap_rule_stats {
#define PL_STAT PL_STAT_MEMBER
#include "service/tap_rule_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_tap_rule_list;
void pl_tap_put_rules(
	struct pl_tap_service *t, const struct pl_label *label, struct pl_exposition *page);

/* Sums over all ports of the tap. */
void pl_tap_port_stats(const struct pl_tap_service *t, struct pl_port_stats *ret);

/* Counters of outputs: families with a label, and the member "outputs". */
void pl_tap_outs_put(struct pl_tap_out *const *outs, unsigned int n, const struct pl_account *a);
