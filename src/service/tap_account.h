/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tap tells of itself: families, members, a sentence. */
#pragma once

#include "service/tap.h"

/* With what taps in the kernel counted; as it stands now. */
const struct pl_tap_stats *pl_tap_stats_now(struct pl_tap_service *t);

void pl_tap_put_page(void *tap, struct pl_exposition *page);
/* Families of any tap, without samples. */
void pl_tap_describe(struct pl_exposition *page);
extern const struct pl_stats pl_tap_service_list;
void pl_tap_put_json(void *tap, struct pl_json *json);
/* "tc:eth0 and others, clock tai": what is tapped, and which clock times are to be of. */
void pl_tap_put_sources(const struct pl_tap_service *t, struct pl_buf *text);
void pl_tap_put_text(void *tap, struct pl_buf *text);

/* Of each rule: its matches, with labels behind those that are given. */
struct pl_tap_rule_stats {
#define PL_STAT PL_STAT_MEMBER
#include "service/tap_rule_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_tap_rule_list;
void pl_tap_put_rules(
	struct pl_tap_service *t, const struct pl_label *label, struct pl_exposition *page);

/* Of all its ports together. */
void pl_tap_port_stats(const struct pl_tap_service *t, struct pl_port_stats *ret);

/* The counters of outputs: families with a label, and the member "outputs". */
void pl_tap_outs_page(struct pl_tap_out *const *outs, unsigned int n, struct pl_exposition *page);
void pl_tap_outs_json(struct pl_tap_out *const *outs, unsigned int n, struct pl_json *json);
