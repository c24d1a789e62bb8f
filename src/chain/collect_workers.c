/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the entries and values that peers signal. */
#include "chain/collect_workers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static const char digits[] = "0123456789abcdef";

static const char *index_name(uint32_t primitive)
{
	switch (primitive) {
	case PL_APPEND:
		return "list";
	case PL_KEY_WRITE:
		return "slot";
	case PL_COUNTERS:
		return "cell";
	case PL_POSTCARDS:
		return "chunk";
	default:
		return "epoch";
	}
}

static void put(struct pl_json *json, const struct pl_collector_options *options,
	const struct pl_worker_item *x)
{
	char hex[2 * PL_ENTRY_MAX];

	pl_json_object(json);
	pl_json_text(json, "store", options->stores[x->store].name);
	pl_json_key(json, index_name(x->primitive));
	pl_json_u64(json, x->index);
	if (x->primitive == PL_APPEND)
		pl_json_number(json, "entry", x->number);
	if (x->bytes != NULL) {
		for (uint32_t i = 0; i < x->len; i++) {
			hex[2 * i] = digits[((const uint8_t *)x->bytes)[i] >> 4];
			hex[2 * i + 1] = digits[((const uint8_t *)x->bytes)[i] & 15];
		}
		pl_json_key(json, "value");
		pl_json_strn(json, hex, 2 * (size_t)x->len);
	}
	pl_json_object_end(json);
}

/* Lines of several workers do not mix: they are written in one piece. */
static void print(void *arg, const struct pl_worker_item *items, uint32_t n)
{
	const struct pl_collect_workers_arg *a = arg;
	struct pl_json json;
	struct pl_buf buf;

	pl_buf_init(&buf);
	for (uint32_t i = 0; i < n; i++) {
		pl_json_init(&json, &buf);
		put(&json, a->options, &items[i]);
		pl_buf_printf(&buf, "\n");
	}
	if (!buf.failed)
		a->print.text(a->print.arg, buf.data, buf.len);
	pl_buf_done(&buf);
}

int pl_collect_workers_open(struct pl_workers **ret, struct pl_collector *c,
	const struct pl_collect_workers_arg *arg, unsigned int n, struct pl_diag *diag)
{
	const struct pl_collector_options *options = arg->options;
	struct pl_worker_store *stores = calloc(options->n_stores, sizeof(*stores));
	const struct pl_workers_options workers = { .n = n,
		.stores = stores,
		.n_stores = options->n_stores,
		.out = print,
		.arg = (void *)(uintptr_t)arg };
	int r;

	if (stores == NULL)
		return pl_diag_fail(diag, -ENOMEM, "%s", strerror(ENOMEM));
	for (uint32_t i = 0; i < options->n_stores; i++) {
		const struct pl_region *region = pl_collector_region(c, i);

		stores[i].params = *pl_region_params(region);
		stores[i].base = pl_region_store(region, pl_region_epoch(region));
		stores[i].region = pl_collector_can_turn(c, i, NULL) == 0 ? region : NULL;
	}
	r = pl_workers_open(ret, &workers, diag);
	free(stores);
	return r;
}

void pl_collect_workers_stats(struct pl_json *json, const struct pl_workers_stats *s)
{
	const struct pl_hist *h = &s->latency_ns;

	pl_json_key(json, "workers");
	pl_json_object(json);
	pl_json_number(json, "signals", s->signals);
	pl_json_number(json, "taken", s->taken);
	pl_json_number(json, "full", s->full);
	pl_json_number(json, "strange", s->strange);
	pl_json_number(json, "items", s->items);
	pl_json_number(json, "gone", s->gone);
	pl_json_number(json, "overrun", s->overrun);
	pl_json_number(json, "damaged", s->damaged);
	pl_json_number(json, "awoken", s->awoken);
	pl_json_key(json, "latency_ns");
	pl_json_object(json);
	pl_json_number(json, "count", pl_hist_count(h));
	pl_json_number(json, "sum", h->sum);
	pl_json_number(json, "p50", pl_hist_quantile(h, 0.5));
	pl_json_number(json, "p99", pl_hist_quantile(h, 0.99));
	pl_json_key(json, "buckets");
	pl_json_array(json);
	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++) {
		if (h->buckets[i] == 0)
			continue;
		pl_json_object(json);
		pl_json_number(json, "to", pl_hist_upper(i));
		pl_json_number(json, "count", h->buckets[i]);
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
	pl_json_object_end(json);
	pl_json_object_end(json);
}
