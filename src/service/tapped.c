/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the page of flows in the caches of taps. */
#include "service/tapped.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/num.h"
#include "flow/largest.h"
#include "runtime/runtime.h"
#include "service/taps.h"

#define AGE_NS UINT64_C(1000000000) /* for how long a result is used */

void pl_tapped_done(struct pl_tapped *tapped)
{
	free(tapped->rows);
	*tapped = (struct pl_tapped){ .rows = NULL };
}

/* ---- rows ---- */

static void put_addr(struct pl_json *json, const char *key, const struct pl_addr *addr)
{
	char text[PL_ADDR_TEXT_MAX];

	(void)pl_format_addr(text, addr);
	pl_json_text(json, key, text);
}

static void put_ends(struct pl_json *json, const struct pl_flow288 *f)
{
	pl_json_key(json, "flow");
	pl_json_object(json);
	put_addr(json, "src", &f->src);
	put_addr(json, "dst", &f->dst);
	pl_json_number(json, "sport", f->sport);
	pl_json_number(json, "dport", f->dport);
	pl_json_number(json, "proto", f->proto);
	if (f->vlan != 0)
		pl_json_number(json, "vlan", f->vlan);
	pl_json_object_end(json);
}

/* Adds a time, unless it is 0: not measured. */
static void put_time(struct pl_json *json, const char *key, uint32_t us)
{
	if (us != 0)
		pl_json_number(json, key, us * UINT64_C(1000));
}

static void put_row(
	struct pl_json *json, const char *tap, uint64_t clock_ns, const struct pl_flow288 *f)
{
	pl_json_object(json);
	pl_json_text(json, "tap", tap);
	put_ends(json, f);
	pl_json_number(json, "packets", (uint64_t)f->pkts_fwd + f->pkts_rev);
	pl_json_number(json, "bytes", f->bytes_fwd + f->bytes_rev);
	pl_json_number(json, "packets_fwd", f->pkts_fwd);
	pl_json_number(json, "packets_rev", f->pkts_rev);
	pl_json_number(json, "bytes_fwd", f->bytes_fwd);
	pl_json_number(json, "bytes_rev", f->bytes_rev);
	put_time(json, "rtt_ns", f->rtt_min_us);
	put_time(json, "handshake_ns",
		f->hs_external_us != 0 && f->hs_internal_us != 0
			? f->hs_external_us + f->hs_internal_us
			: 0);
	if (f->proto == 6) {
		pl_json_number(json, "retransmitted", (uint64_t)f->retrans_fwd + f->retrans_rev);
		pl_json_number(json, "out_of_order", (uint64_t)f->ooo_fwd + f->ooo_rev);
	}
	pl_json_number(json, "first_ts_ns", f->first_ts);
	pl_json_number(json, "idle_ns", clock_ns > f->last_ts ? clock_ns - f->last_ts : 0);
	pl_json_object_end(json);
}

/* ---- the page, on the taps' thread ---- */

struct asking {
	struct pl_taps *taps;
	struct pl_json json;
	uint64_t now_ns;
	unsigned int caches;
	bool no_memory;
};

static void look(struct pl_taps_one *one, uint64_t now_ns)
{
	struct pl_tapped *d = &one->tapped;
	const struct pl_flow_cache *cache = one->service.flows;

	if (d->rows == NULL)
		d->rows = calloc(PL_TAPPED_ROWS, sizeof(*d->rows));
	else if (now_ns - d->made_ns < AGE_NS)
		return;
	if (d->rows == NULL || pl_flow_cache_room(cache) > PL_TAPPED_ROOM)
		return;
	d->n = pl_flow_cache_largest(cache, d->rows, PL_TAPPED_ROWS);
	d->made_ns = now_ns;
	d->clock_ns = pl_flow_cache_clock(cache);
}

static void put_tap(struct asking *a, struct pl_taps_one *one)
{
	const struct pl_flow_counters *c = pl_flow_cache_counters(one->service.flows);

	look(one, a->now_ns);
	a->no_memory = a->no_memory || one->tapped.rows == NULL;
	a->caches++;
	pl_json_object(&a->json);
	pl_json_text(&a->json, "tap", one->name);
	pl_json_number(&a->json, "flows", c->live);
	pl_json_number(&a->json, "shown", one->tapped.n);
	/* A cache that was never searched has no age. */
	pl_json_number(
		&a->json, "age_ns", one->tapped.made_ns != 0 ? a->now_ns - one->tapped.made_ns : 0);
	if (pl_flow_cache_room(one->service.flows) > PL_TAPPED_ROOM)
		pl_json_text(&a->json, "left_out",
			"a cache for more than 1048576 flows is not looked through");
	pl_json_object_end(&a->json);
}

static void write_page(void *arg)
{
	struct asking *a = arg;

	a->now_ns = pl_clock_mono_ns();
	pl_json_key(&a->json, "taps");
	pl_json_array(&a->json);
	for (unsigned int i = 0; i < a->taps->n; i++) {
		if (a->taps->taps[i]->service.flows != NULL)
			put_tap(a, a->taps->taps[i]);
	}
	pl_json_array_end(&a->json);
	pl_json_key(&a->json, "tapped");
	pl_json_array(&a->json);
	for (unsigned int i = 0; i < a->taps->n; i++) {
		const struct pl_taps_one *one = a->taps->taps[i];

		for (uint32_t k = 0; k < one->tapped.n; k++)
			put_row(&a->json, one->name, one->tapped.clock_ns, &one->tapped.rows[k]);
	}
	pl_json_array_end(&a->json);
}

void pl_tapped_page(void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	struct asking a = { .taps = arg };
	char name[48];

	if (pl_http_query_unknown(request->query, NULL, 0, name, sizeof(name)) != 0) {
		pl_http_problem(reply, 400, "bad_parameter", "this page has no parameters");
		return;
	}
	if (a.taps == NULL) {
		pl_http_problem(reply, 404, "no_taps",
			"this process has no tap (the key taps of the configuration)");
		return;
	}
	pl_json_init(&a.json, &reply->body);
	pl_json_object(&a.json);
	pl_json_number(&a.json, "ts_ns", pl_clock_real_ns());
	pl_runtime_visit(write_page, &a);
	pl_json_object_end(&a.json);
	pl_buf_chr(&reply->body, '\n');
	reply->content_type = "application/json";
	if (a.no_memory)
		pl_http_problem(reply, 503, "no_memory", "no memory for the flows of a tap");
	else if (a.caches == 0)
		pl_http_problem(reply, 404, "no_flows",
			"no tap of this process makes flows (records: flows, or a query of flows)");
}
