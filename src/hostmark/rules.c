/* SPDX-License-Identifier: BSD-2-Clause */
/* The lists of counters of alternate marking in the kernel, and the rules that it refuses. */
#include <errno.h>
#include <string.h>

#include "hostmark/hostmark.h"

static const struct pl_stat marker_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_mark_marker_counts, __VA_ARGS__)
#include "bpf/mark_marker_counts.def"
#undef PL_STAT
};
static const struct pl_stat meter_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_mark_meter_counts, __VA_ARGS__)
#include "bpf/mark_meter_counts.def"
#undef PL_STAT
};
static const struct pl_stat edge_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_mark_edge_counts, __VA_ARGS__)
#include "bpf/mark_edge_counts.def"
#undef PL_STAT
};

#define LIST(rows)                                                                                 \
	{                                                                                          \
		rows, sizeof(rows) / sizeof(rows[0])                                               \
	}
const struct pl_stats pl_hostmark_marker_list = LIST(marker_rows);
const struct pl_stats pl_hostmark_meter_list = LIST(meter_rows);
const struct pl_stats pl_hostmark_edge_list = LIST(edge_rows);

static bool is_any(struct pl_tap_range r)
{
	return r.low == 0 && r.high == UINT16_MAX;
}

int pl_hostmark_check_rules(const struct pl_tap_rules *rules, struct pl_diag *diag)
{
	struct pl_buf text = { 0 };

	for (uint32_t i = 0; i < rules->n; i++) {
		const struct pl_tap_rule *u = &rules->rules[i];

		if (is_any(u->length) && is_any(u->payload) && u->flags_mask == 0 && u->sample <= 1)
			continue;
		pl_tap_rule_text(&text, u);
		pl_diag_set(diag,
			"rule \"%.*s\": flows are chosen, so that all points count the same packets; take out length, payload, flags and sample (sample_flows is allowed)",
			(int)text.len, text.data);
		pl_buf_done(&text);
		return -EINVAL;
	}
	return 0;
}

/* Makes a rule for packets whose ports and protocol are not known: a rule that takes packets then
 * ignores them, a rule that skips packets is kept only if it does not test them. */
static void make_blind(struct pl_tap_rule *u)
{
	const struct pl_tap_range any = { 0, UINT16_MAX }, none = { 1, 0 };
	const bool matter = !is_any(u->sport) || !is_any(u->dport) || !is_any(u->port) ||
			    u->proto_mask != 0 || u->sample_flows > 1;

	if (!matter)
		return;
	u->sport = u->action == PL_TAP_SKIP ? none : any;
	u->dport = u->port = any;
	u->proto_mask = 0;
	u->sample_flows = 1;
}

void pl_hostmark_make_rules(struct pl_mark_rules *ret, const struct pl_tap_rules *rules)
{
	ret->n = rules->n;
	for (uint32_t i = 0; i < rules->n; i++) {
		ret->rules[i] = ret->rules[PL_TAP_RULES_MAX + i] = rules->rules[i];
		make_blind(&ret->rules[PL_TAP_RULES_MAX + i]);
	}
}
