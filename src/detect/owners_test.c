/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose entries stay when the tables of the steps are full: those of sources, of exporters that are
 * proven and that are not. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"
#include "core/detect_steps.h"
#include "detect/batch_maker.h"
#include "detect/tables.h"

#define NOW_NS UINT64_C(1000000000000)
#define SECOND UINT64_C(1000000000)

static struct pl_detect *det;
static struct pl_core_env *env;
static struct pl_event_batch out;
static uint64_t at_ns;

static void begin_for(bool prove, uint32_t max_exporters)
{
	struct pl_detect_options o;

	pl_detect_defaults(&o);
	o.numbers = true;
	o.prove = prove;
	o.max_flows = 256;
	o.max_exporters = max_exporters;
	at_ns = NOW_NS;
	out.n = 0;
	if (pl_detect_new(&det, &o) < 0)
		abort();
	env = pl_detect_env(det);
	env->out = &out;
}

static void begin(bool prove)
{
	begin_for(prove, 64); /* 32 sets: 192 may be followed */
}

static struct pl_addr address(unsigned int source)
{
	const uint8_t b[4] = { 192, 0, 2, (uint8_t)source };

	return pl_addr_v4(b);
}

/* One report of a node, by a source; what the step says. */
static uint32_t number(unsigned int source, uint64_t node, uint32_t seq)
{
	const struct pl_core_report r = { .exporter = address(source),
		.node = node,
		.seq = seq,
		.report_version = 1,
		.now_ns = at_ns };

	return pl_core_exporter_step(env, &r);
}

static void flow(unsigned int source, uint32_t number_of_flow)
{
	struct pl_core_report r = {
		.exporter = address(source), .present = PL_PATH_HAS_src, .now_ns = NOW_NS
	};

	r.flow.vni = number_of_flow;
	r.flow.has = PL_FLOW_KEY_HAS_VNI;
	pl_core_report_begin(env, &r);
	pl_core_report_end(env, &r, NULL);
}

static unsigned int flows_of(unsigned int source)
{
	const struct pl_addr a = address(source);
	unsigned int n = 0;

	for (uint32_t set = 0; set < env->tables.sets[PL_CORE_T_flow]; set++) {
		const struct pl_core_flow_set *s = &env->tables.flow[set];

		for (unsigned int w = 0; w < PL_CORE_WAYS; w++)
			n += pl_way_live(s->way[w]) && s->owner[w] == pl_core_source(&a);
	}
	return n;
}

/* Exporters of a source that are followed. */
static unsigned int followed(unsigned int source)
{
	const struct pl_addr a = address(source);
	struct pl_exporter x;
	unsigned int n = 0;

	for (uint64_t pos = 0; pl_detect_sequence(det, &pos, &x);)
		n += pl_addr_equal(&x.addr, &a);
	return n;
}

static void flows(void)
{
	begin(false);
	for (uint32_t i = 0; i < 1000; i++)
		flow(1, i);
	eq(flows_of(1), 256, "a source that is alone has the whole table");
	for (uint32_t i = 0; i < 32; i++)
		flow(2, 100000 + i);
	ok(flows_of(2) >= 30, "another one gets what it needs: %u", flows_of(2));
	for (uint32_t i = 0; i < 20000; i++)
		flow(1, 200000 + i);
	ok(flows_of(2) >= 30, "and keeps it: %u", flows_of(2));
	for (uint32_t i = 0; i < 20000; i++)
		flow(2, 300000 + i);
	eq(flows_of(1), 128, "of two that want everything each has half");
	eq(flows_of(2), 128);
	pl_detect_free(det);
}

/* Random bytes in anybody's name, beside two exporters of one source. */
static void garbage(void)
{
	struct pl_rng rng;
	unsigned int refused = 0;

	begin(true);
	pl_rng_seed(&rng, 3);
	eq(number(7, 1, 10), PL_CORE_UNPROVEN, "the first report counts for nothing");
	eq(number(7, 1, 11), 0, "the second does");
	eq(number(7, 2, 500), PL_CORE_UNPROVEN);
	eq(number(7, 2, 503), 0, "also behind a loss");
	for (unsigned int i = 0; i < 60000; i++)
		refused += number((unsigned int)pl_rng_below(&rng, 256), pl_rng_u64(&rng) >> 32,
				   (uint32_t)pl_rng_u64(&rng)) == PL_CORE_UNPROVEN;
	eq(refused, 60000, "what is heard of once is refused");
	eq(followed(7), 2, "and displaces nobody who is proven");
	eq(number(7, 1, 14), 0, "whose account goes on");
	eq(env->counters.displaced, 0);
	eq(env->counters.untracked, 0);
	pl_detect_free(det);
}

/* A host that names nodes without end, and proves each. */
static void exporters(bool prove)
{
	begin(prove);
	for (uint32_t node = 0; node < 5000; node++) {
		(void)number(1, 1000 + node, 1);
		(void)number(1, 1000 + node, 2);
	}
	eq(followed(1), prove ? 192 : 256, "one host has all there is");
	ok(env->counters.untracked > 4000, "the others are counted: %" PRIu64,
		env->counters.untracked);
	for (uint32_t node = 0; node < 5; node++) {
		(void)number(2, node, 1);
		eq(number(2, node, 2), 0, "a report of another one counts");
	}
	eq(followed(2), 5, "and it is followed");
	ok(env->counters.displaced >= 1 && env->counters.displaced <= 5, "displaced: %" PRIu64,
		env->counters.displaced);
	for (uint32_t node = 0; node < 5000; node++) {
		(void)number(1, 10000 + node, 1);
		(void)number(1, 10000 + node, 2);
	}
	eq(followed(2), 5, "for good");
	pl_detect_free(det);
}

static void ticks(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		at_ns += SECOND;
		pl_detect_tick(det, at_ns, at_ns, &out);
	}
}

static uint64_t skipped_by_all(void)
{
	struct pl_core_accounts sum = env->counters.accounts;

	pl_detect_add_accounts(det, &sum);
	return sum.skipped;
}

/* Exporters that others displace, or that are forgotten: what they lost stays counted. */
static void accounts(void)
{
	begin(true);
	for (uint32_t node = 0; node < 2000; node++) {
		(void)number(1 + node / 1000, node, 1);
		(void)number(1 + node / 1000, node, 4);
	}
	ok(env->counters.displaced > 0, "some are displaced");
	eq(skipped_by_all(), 2 * 2000, "the losses of all are counted");
	at_ns += 700 * SECOND;
	ticks();
	eq(followed(1) + followed(2), 0, "all are forgotten");
	eq(skipped_by_all(), 2 * 2000, "their losses are not");
	pl_detect_free(det);
}

/* The seventh exporter of a set finds room late: only what it loses from then on is an event. */
static void late(void)
{
	begin_for(true, 2);
	for (uint32_t node = 1; node <= 7; node++) {
		(void)number(1, node, 1);
		(void)number(1, node, 2);
	}
	eq(followed(1), 6, "there is room for six");
	(void)number(1, 7, 12);
	eq(skipped_by_all(), 9, "losses of the seventh are counted");
	ticks();
	at_ns += 600 * SECOND;
	(void)number(1, 7, 13);
	ticks();
	(void)number(1, 7, 14);
	eq(followed(1), 1, "then it is alone");
	ticks();
	eq(out.n, 0, "what it lost before is no event");
	(void)number(1, 7, 17);
	ticks();
	ok(out.n == 1 && out.events[0].event == PL_EVENT_REPORT_LOSS && out.events[0].value == 2,
		"what it loses now is");
	pl_detect_free(det);
}

static struct pl_record_batch batch;

/* A report of that source, whose packet went through the node. */
static void through(unsigned int source, uint64_t node, uint64_t now_ns)
{
	struct pl_path *p;

	pl_record_batch_clear(&batch);
	p = add_path(&batch, 0);
	p->present = PL_PATH_HAS_src | PL_PATH_HAS_report_version;
	p->exporter = address(source);
	(void)add_hop(&batch, node, PL_HOP_HAS_node);
	pl_detect_batch(det, &batch, now_ns, &out);
}

/* A host that names nodes without end, beside one whose nodes fall silent. */
static void watched_nodes(void)
{
	struct pl_detect_options o;
	uint64_t now_ns = NOW_NS;
	unsigned int silent = 0;

	pl_detect_defaults(&o);
	o.node_silent_ns = 3 * SECOND;
	o.max_queues = 64;
	if (pl_detect_new(&det, &o) < 0)
		abort();
	for (unsigned int i = 0; i < 20; i++) {
		for (uint64_t node = 0; node < 64; node++)
			through(1, 1000 + 64 * i + node, now_ns);
		now_ns += SECOND / 10;
		out.n = 0;
		pl_detect_tick(det, now_ns, now_ns, &out);
	}
	ok(pl_detect_counters(det)->nodes_full > 0, "nodes that are not watched are counted");
	for (uint64_t node = 1; node <= 4; node++)
		through(2, node, now_ns);
	for (unsigned int i = 0; i < 60; i++) {
		now_ns += SECOND / 10;
		out.n = 0;
		pl_detect_tick(det, now_ns, now_ns, &out);
		for (uint32_t e = 0; e < out.n; e++)
			silent += out.events[e].event == PL_EVENT_NODE_SILENT &&
				  out.events[e].phase == PL_PHASE_BEGIN && out.events[e].node <= 4;
	}
	eq(silent, 4, "another source's nodes are watched all the same");
	pl_detect_free(det);
}

/* What counts as one source. */
static void sources(void)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{ "192.0.2.1", "192.0.2.1", true },
		{ "192.0.2.1", "192.0.2.2", false },
		{ "2001:db8::1", "2001:db8::2", true },
		{ "2001:db8::1", "2001:db8:0:1::1", false },
		{ "fe80::1", "fe80::2", false },
		{ "fe80::1", "fe80::1", true },
		{ "fe80::1", "2001:db8::1", false },
		{ "::", "192.0.2.1", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_addr a, b, x, y;

		if (pl_parse_addr(rows[i].a, &a) < 0 || pl_parse_addr(rows[i].b, &b) < 0)
			abort();
		x = pl_addr_source(&a);
		y = pl_addr_source(&b);
		eq(pl_core_source(&a) == pl_core_source(&b), rows[i].same, "%s and %s", rows[i].a,
			rows[i].b);
		eq(pl_addr_equal(&x, &y), rows[i].same, "as in user space");
	}
}

int main(void)
{
	if (pl_event_batch_init(&out, 256) < 0 ||
		pl_record_batch_init(&batch, 4, PL_BATCH_HOPS_MIN) < 0)
		abort();
	flows();
	garbage();
	exporters(true);
	exporters(false);
	accounts();
	late();
	watched_nodes();
	sources();
	pl_record_batch_done(&batch);
	pl_event_batch_done(&out);
	return pl_test_done();
}
