/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the exporters of tmpkt/1 that a tap follows. */
#include "service/tap_exporters.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/num.h"
#include "decode/exporter_list.h"
#include "record/flow_hash.h"

#define TOLD_FROM 16 /* a flow that moves to another path also changes its exporter */

/* ---- one place of several exporters ---- */

static void tell(const struct pl_tap_service *t, const struct pl_pkt96 *record)
{
	char from[PL_ADDR_TEXT_MAX];

	pl_format_addr(from, pl_tmpkt_receiver_from(t->receiver));
	pl_warn("tap",
		"exporter %s, number %u: other exporters send packets of the same flows under observation point %u, too; such packets count twice in flows, and look like retransmissions: give each tap a --point of its own",
		from, pl_tmpkt_receiver_number(t->receiver), record->obs & PL_OBS_POINT_MASK);
}

void pl_tap_exporters_watch(struct pl_tap_service *t, const struct pl_pkt96 *records, uint32_t n)
{
	const uint64_t exporter = pl_hash(pl_tmpkt_receiver_from(t->receiver),
		sizeof(struct pl_addr), pl_tmpkt_receiver_number(t->receiver));

	if (t->flows == NULL || pl_tmpkt_receiver_stats(t->receiver)->exporters < 2)
		return;
	for (uint32_t i = 0; i < n; i++) {
		const struct pl_pkt96 *r = &records[i];
		const uint64_t flow = pl_hash_mix(pl_flow_hash_packet(r),
			pl_flow_hash_side(&r->src, r->sport) ^
				(r->obs & (PL_OBS_POINT_MASK | PL_OBS_OUT)));
		struct pl_tap_seen *seen = &t->seen[flow % PL_TAP_SEEN];

		if (seen->flow == flow && seen->exporter != exporter) {
			t->same_place++;
			if (t->same_place == TOLD_FROM)
				tell(t, r);
		}
		*seen = (struct pl_tap_seen){ flow, exporter };
	}
}

/* ---- the account ---- */

/* Lists the exporters of a tap; none without memory. The caller frees ret->list. */
static void find(const struct pl_tap_service *t, struct pl_exporters *ret)
{
	const size_t room = pl_tmpkt_receiver_stats(t->receiver)->exporters + 1;
	uint32_t pos = 0;

	*ret = (struct pl_exporters){ .list = calloc(room, sizeof(*ret->list)) };
	while (ret->list != NULL && ret->n < room &&
		pl_tmpkt_receiver_exporter(t->receiver, &pos, &ret->list[ret->n]))
		ret->n++;
	if (ret->list == NULL || pl_exporters_bound(ret, t->o->max_exporters) < 0)
		*ret = (struct pl_exporters){ .list = NULL };
}

static void put_json(struct pl_json *json, const struct pl_exporter *x)
{
	char text[PL_ADDR_TEXT_MAX];

	pl_json_object(json);
	pl_format_addr(text, &x->addr);
	pl_json_text(json, "exporter", text);
	pl_json_number(json, "number", x->node);
	pl_stats_json(&pl_tmpkt_exporter_stats_list, x, NULL, json);
	pl_json_key(json, "unsequenced");
	pl_json_bool(json, x->unsequenced);
	pl_json_key(json, "shared");
	pl_json_bool(json, x->shared);
	pl_json_number(json, "first_ts_ns", x->first_ts_ns);
	pl_json_number(json, "last_ts_ns", x->last_ts_ns);
	pl_json_object_end(json);
}

void pl_tap_exporters_json(struct pl_tap_service *t, struct pl_json *json)
{
	struct pl_exporters all;

	find(t, &all);
	pl_json_key(json, "by_exporter");
	pl_json_array(json);
	for (size_t i = 0; i < all.n; i++)
		put_json(json, &all.list[i]);
	pl_json_array_end(json);
	pl_json_number(json, "other_exporters", all.n_others);
	free(all.list);
}

static void put_samples(const struct pl_exporters *all, const char *tap, const struct pl_stat *stat,
	struct pl_exposition *page)
{
	struct pl_label labels[3] = { { .name = "exporter" }, { .name = "number" },
		{ .name = "tap", .form = PL_LABEL_TEXT, .text = tap } };
	const unsigned int n = tap != NULL ? 3 : 2;

	for (size_t i = 0; i < all->n; i++) {
		const struct pl_exporter *x = &all->list[i];

		labels[0].form = PL_LABEL_ADDR;
		labels[0].addr = x->addr;
		labels[1].form = PL_LABEL_U64;
		labels[1].number = x->node;
		pl_exposition_u64(page, labels, n, pl_stat_read(stat, x));
	}
	if (all->n_others == 0)
		return;
	labels[0].form = labels[1].form = PL_LABEL_TEXT;
	labels[0].text = labels[1].text = "other";
	pl_exposition_u64(page, labels, n, pl_stat_read(stat, &all->others));
}

void pl_tap_exporters_page(struct pl_tap_service *const *taps, const char *const *names,
	unsigned int n, struct pl_exposition *page)
{
	struct pl_exporters *all = calloc(n + 1, sizeof(*all));

	for (unsigned int i = 0; all != NULL && i < n; i++)
		find(taps[i], &all[i]);
	for (unsigned int k = 0; k < pl_tmpkt_exporter_stats_list.n; k++) {
		const struct pl_stat *stat = &pl_tmpkt_exporter_stats_list.rows[k];

		if (!pl_exposition_stat(page, stat))
			continue;
		for (unsigned int i = 0; all != NULL && i < n; i++)
			put_samples(&all[i], names != NULL ? names[i] : NULL, stat, page);
	}
	for (unsigned int i = 0; all != NULL && i < n; i++)
		free(all[i].list);
	free(all);
}
