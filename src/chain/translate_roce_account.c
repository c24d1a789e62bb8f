/* SPDX-License-Identifier: BSD-2-Clause */
/* Account of the translator's output to collectors over RoCE. */
#include "chain/translate_roce_state.h"

static const char *const results[] = { "ok", "invalid", "access", "operation", "retries", "rnr",
	"flushed" };

/* Counters of each collector: members of its object, families with the label collector. */
static const struct pl_stat uplink_rows[] = {
#define PL_STAT(kind, member, key, family, unit, help)                                             \
	PL_STAT_ROW(struct pl_uplink_counters, kind, member, key, "pathline_dta_collector_" key,   \
		unit, help)
#include "remote/uplink_stats.def"
#undef PL_STAT
};
static const struct pl_stats uplink_list = { uplink_rows,
	sizeof(uplink_rows) / sizeof(uplink_rows[0]) };

static const struct pl_stat dialer_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_dialer_counters, __VA_ARGS__)
#include "remote/dialer_stats.def"
#undef PL_STAT
};
static const struct pl_stats dialer_list = { dialer_rows,
	sizeof(dialer_rows) / sizeof(dialer_rows[0]) };

/* Counters of this translator's frames: the lists of a memory server, under other names. */
static const struct pl_stat nic_rows[] = {
#define PL_STAT(kind, member, key, family, unit, help)                                             \
	PL_STAT_ROW(struct pl_nic_counters, kind, member, "frames_" key,                           \
		"pathline_dta_out_frames_" key, unit, help)
#include "nic/nic_stats.def"
#undef PL_STAT
};
static const struct pl_stats nic_list = { nic_rows, sizeof(nic_rows) / sizeof(nic_rows[0]) };

static const struct pl_stat ring_rows[] = {
#define PL_STAT(kind, member, key, family, unit, help)                                             \
	PL_STAT_ROW(struct pl_port_stats, kind, member, key, "pathline_dta_out_" key, unit, help)
#include "netio/ring_stats.def"
#undef PL_STAT
};
static const struct pl_stats ring_list = { ring_rows, sizeof(ring_rows) / sizeof(ring_rows[0]) };

static void collector_json(const struct pl_roce_out *g, unsigned int i, struct pl_json *json)
{
	const struct pl_uplink_counters *c = pl_uplink_counters(g->uplink, i);

	pl_json_object(json);
	pl_json_text(json, "collector", g->servers[i]);
	pl_stats_json(&uplink_list, c, NULL, json);
	pl_json_number(json, "waiting", pl_uplink_waiting(g->uplink, i));
	pl_stats_json(&dialer_list, pl_dialer_counters(g->dialer, i), NULL, json);
	pl_json_key(json, "failures");
	pl_json_object(json);
	for (int r = PL_RDMA_RESULT_INVALID; r < PL_RDMA_RESULT_FLUSHED; r++)
		pl_json_number(json, results[r], c->failures[r]);
	pl_json_object_end(json);
	pl_json_object_end(json);
}

/* Returns a counter of a collector; with stat NULL the number of waiting operations. */
typedef uint64_t collector_number(
	const struct pl_roce_out *g, unsigned int i, const struct pl_stat *stat);

static uint64_t of_uplink(const struct pl_roce_out *g, unsigned int i, const struct pl_stat *stat)
{
	return pl_stat_read(stat, pl_uplink_counters(g->uplink, i));
}

static uint64_t of_dialer(const struct pl_roce_out *g, unsigned int i, const struct pl_stat *stat)
{
	return pl_stat_read(stat, pl_dialer_counters(g->dialer, i));
}

static uint64_t waiting(const struct pl_roce_out *g, unsigned int i, const struct pl_stat *stat)
{
	(void)stat;
	return pl_uplink_waiting(g->uplink, i);
}

/* Writes a sample for each collector. g NULL: none. */
static void put_samples(const struct pl_roce_out *g, collector_number *number,
	const struct pl_stat *stat, struct pl_exposition *page)
{
	for (unsigned int i = 0; g != NULL && i < g->collectors; i++) {
		const struct pl_label l = {
			.name = "collector", .form = PL_LABEL_TEXT, .text = g->servers[i]
		};

		pl_exposition_u64(page, &l, 1, number(g, i, stat));
	}
}

static void put_families(const struct pl_roce_out *g, collector_number *number,
	const struct pl_stats *list, struct pl_exposition *page)
{
	for (unsigned int k = 0; k < list->n; k++) {
		if (pl_exposition_stat(page, &list->rows[k]))
			put_samples(g, number, &list->rows[k], page);
	}
}

static void collector_families(const struct pl_roce_out *g, struct pl_exposition *page)
{
	put_families(g, of_uplink, &uplink_list, page);
	pl_exposition_family(page, "pathline_dta_collector_waiting", PL_METRIC_GAUGE, NULL,
		"Operations that wait to be done.");
	put_samples(g, waiting, NULL, page);
	put_families(g, of_dialer, &dialer_list, page);
}

/* g NULL: families without samples, and zeros. */
static void put_numbers(const struct pl_roce_out *g, const struct pl_account *a)
{
	struct pl_uplink_counters sum = { 0 };
	struct pl_port_stats port = { 0 };

	for (unsigned int i = 0; g != NULL && i < g->collectors; i++)
		pl_stats_add(&pl_uplink_stats_list, &sum, pl_uplink_counters(g->uplink, i));
	if (g != NULL)
		pl_nic_stats(g->nic, &port);
	pl_account_stats(a, &pl_uplink_stats_list, g != NULL ? &sum : NULL);
	pl_account_stats(
		a, &pl_requester_stats_list, g != NULL ? pl_uplink_packets(g->uplink) : NULL);
	pl_account_stats(a, &nic_list, g != NULL ? pl_nic_counters(g->nic) : NULL);
	pl_account_stats(a, &ring_list, g != NULL ? &port : NULL);
	PL_COUNT(a, "dta_out_", "slowed", "Times that sending was slowed for congestion.",
		g != NULL ? pl_uplink_slowed(g->uplink) : 0);
	PL_COUNT(a, "dta_out_", "interface_errors", "Times that the interface gave an error.",
		g != NULL ? g->unreadable : 0);
}

void pl_roce_out_describe(const struct pl_account *a)
{
	put_numbers(NULL, a);
	collector_families(NULL, a->page);
}

void pl_roce_out_account(void *arg, const struct pl_account *a)
{
	const struct pl_roce_out *g = arg;

	put_numbers(g, a);
	if (a->page != NULL) {
		collector_families(g, a->page);
		return;
	}
	pl_json_key(a->json, "collectors");
	pl_json_array(a->json);
	for (unsigned int i = 0; i < g->collectors; i++)
		collector_json(g, i, a->json);
	pl_json_array_end(a->json);
}
