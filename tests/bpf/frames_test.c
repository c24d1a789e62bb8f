/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detection without records against detection with them: the same packets, packet by packet, the
 * same rules; event by event equal but for the report id, which only a record has.
 *
 * And the fast path against the slow one, batch by batch: after each every event, at the end every
 * count and every byte of every table but the flows' prints.
 *
 * frames_test [REPORTS [SEED]]
 */
#include <inttypes.h>

#include "base/test.h"
#include "detect/tables.h"
#include "forms.h"
#include "tests/bpf/frames.h"

#define MS UINT64_C(1000000)

static struct pl_detect *direct_det, *record_det;
static struct pl_decode *decode;
static struct pl_direct direct;
static struct pl_record_batch records;
static struct pl_event_batch direct_events, record_events;
static struct pl_frames_counters counters;
static uint64_t now_ns = 1000 * MS, n_events;

static void no_flush(struct pl_record_batch *b, void *arg)
{
	(void)arg;
	pl_record_batch_clear(b);
}

static void by_records(
	struct pl_detect *det, const struct pl_batch *one, struct pl_event_batch *out)
{
	pl_record_batch_clear(&records);
	pl_decode_batch(decode, one, &records);
	pl_detect_batch(det, &records, now_ns, out);
}

static bool same_events(void)
{
	bool good = direct_events.n == record_events.n;

	if (!good)
		printf("# %u events without records, %u with\n", direct_events.n, record_events.n);
	for (uint32_t i = 0; good && i < direct_events.n; i++) {
		struct pl_event a = direct_events.events[i], b = record_events.events[i];

		/* A report that was escalated has an id on both sides, though not the same. */
		a.report_id = b.report_id = 0;
		a.present &= ~(uint32_t)PL_EVENT_HAS_report_id;
		b.present &= ~(uint32_t)PL_EVENT_HAS_report_id;
		good = memcmp(&a, &b, sizeof(a)) == 0;
		if (!good)
			printf("# events %u: kinds %u and %u\n", i, a.event, b.event);
	}
	n_events += direct_events.n;
	direct_events.n = record_events.n = 0;
	return good;
}

static bool one_packet(const struct pl_packet *pkt, struct pl_rng *rng)
{
	static struct pl_batch one = { .n = 1 };
	bool settled[1];

	one.pkts[0] = *pkt;
	now_ns += form_pick(rng, 1000) == 0 ? 100 * MS : form_pick(rng, 20000);
	by_records(record_det, &one, &record_events);
	pl_detect_frames(direct_det, &direct, &one, now_ns, settled, &counters, &direct_events);
	if (!settled[0])
		by_records(direct_det, &one, &direct_events);
	if (form_pick(rng, 500) == 0) {
		pl_detect_tick(record_det, now_ns, pkt->ts_ns, &record_events);
		pl_detect_tick(direct_det, now_ns, pkt->ts_ns, &direct_events);
	}
	return same_events();
}

static bool run_form(const struct pl_gen_cfg *cfg, struct pl_rng *rng, uint64_t *left)
{
	static struct pl_batch batch;
	struct pl_diag diag = { 0 };
	struct pl_gen *gen;
	bool good = true;

	if (pl_gen_new(&gen, cfg, &diag) < 0)
		return true;
	for (int i = 0; good && i < 6 && *left > 0; i++) {
		int n = pl_gen_next(gen, UINT64_MAX, &batch);

		for (int k = 0; good && k < n; k++) {
			good = one_packet(&batch.pkts[k], rng);
			*left -= *left > 0;
		}
		if (n <= 0)
			break;
	}
	pl_gen_free(gen);
	return good;
}

static struct pl_detect_options busy(void)
{
	struct pl_detect_level level = {
		.on = true, .threshold = 40, .step = 30, .step_first = true
	};
	struct pl_detect_options o;

	pl_detect_defaults(&o);
	o.report_loss = false; /* counted in different account */
	o.numbers = true;      /* room for the exporters of all streams */
	o.loop = o.flow_start = o.flow_end = true;
	o.queue_depth = o.tx_util = o.buffer_depth = level;
	level.threshold = 4000;
	level.step = 2000;
	o.hop_latency = o.link_latency = level;
	level.threshold = 9000;
	o.flow_latency = level;
	o.microburst.on = true;
	o.microburst.threshold = 50;
	o.microburst.flows = 4;
	o.flow_idle_ns = 500 * MS;
	o.max_flows = 2048;
	o.max_queues = 256;
	o.aggregates = true;
	o.limit_interval_ns = MS;
	return o;
}

/* --- both ways -------------------------------------------------------------------------------- */

struct side {
	struct pl_detect *det;
	struct pl_direct direct;
	struct pl_event_batch events;
	struct pl_frames_counters counters;
	bool settled[PL_BATCH_MAX];
};

static bool side_init(struct side *s, const struct pl_detect_options *detect, bool general)
{
	static const struct pl_decode_options options;
	struct pl_core_rules *rules;

	if (pl_direct_init(&s->direct, &options) < 0 ||
		pl_event_batch_init(&s->events, 65536) < 0 || pl_detect_new(&s->det, detect) < 0)
		return false;
	s->direct.general = general;
	/* Where a key stands follows from the secret: the same on both sides. */
	rules = &pl_detect_env(s->det)->rules;
	for (unsigned int i = 0; i < PL_CORE_SECRETS; i++)
		rules->secret[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	pl_fast_prepare(rules);
	return true;
}

static void side_done(struct side *s)
{
	pl_detect_free(s->det);
	pl_event_batch_done(&s->events);
	pl_direct_done(&s->direct);
	free(s);
}

static bool both_ways(struct side *a, struct side *b, const struct pl_batch *batch)
{
	pl_detect_frames(a->det, &a->direct, batch, now_ns, a->settled, &a->counters, &a->events);
	pl_detect_frames(b->det, &b->direct, batch, now_ns, b->settled, &b->counters, &b->events);
	if (now_ns % 16 == 0) {
		pl_detect_tick(a->det, now_ns, now_ns, &a->events);
		pl_detect_tick(b->det, now_ns, now_ns, &b->events);
	}
	n_events += a->events.n;
	if (a->events.n != b->events.n || memcmp(a->events.events, b->events.events,
						  a->events.n * sizeof(struct pl_event)) != 0) {
		printf("# %u events the fast path, %u the general way\n", a->events.n, b->events.n);
		return false;
	}
	a->events.n = b->events.n = 0;
	return memcmp(a->settled, b->settled, batch->n) == 0;
}

static void same_tables(struct side *a, struct side *b)
{
	const struct pl_tables *x = pl_detect_tables(a->det), *y = pl_detect_tables(b->det);

	for (uint32_t i = 0; i < x->sets[PL_CORE_T_flow] * PL_CORE_WAYS; i++)
		x->flow[i / PL_CORE_WAYS].e[i % PL_CORE_WAYS].print = 0;
#define TABLE(name, help)                                                                          \
	ok(memcmp(x->name, y->name, sizeof(*x->name) * x->sets[PL_CORE_T_##name]) == 0,            \
		"table of " #name "s is equal byte by byte");
	PL_CORE_TABLES(TABLE)
#undef TABLE
	memeq(pl_detect_counters(a->det), pl_detect_counters(b->det),
		sizeof(struct pl_core_counters), "so are the counts");
}

/* Where keys stood last is a guess: whatever it is, nothing but the time that it takes may depend
 * on it. */
static void guess_wrongly(struct side *s, struct pl_rng *rng)
{
	struct pl_fast_marks *marks = &pl_detect_env(s->det)->marks;

	for (uint32_t i = 0; i < PL_FAST_MEMOS; i++) {
		s->direct.memos[i].route = (uint32_t)pl_rng_u64(rng);
		for (uint32_t h = 0; h < PL_FAST_HOPS; h++) {
			struct pl_fast_memo_hop *hop = &s->direct.memos[i].hop[h];

			hop->place = (uint32_t)pl_rng_u64(rng);
			hop->port = hop->link = form_pick(rng, 64);
		}
	}
	for (uint32_t i = 0; i < PL_FAST_GUESSES; i++)
		marks->exporter[i] = (uint32_t)pl_rng_u64(rng);
}

/* restless: many reports have something to tell. */
static void test_ways(
	const struct pl_detect_options *detect, uint64_t left, bool restless, struct pl_rng *rng)
{
	static uint8_t rooms[PL_BATCH_MAX][PL_GEN_PACKET_MAX + 8];
	static struct pl_batch batch;
	struct side *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	struct pl_gen_cfg cfg;
	bool good = true;

	n_events = 0;
	if (a == NULL || b == NULL || !side_init(a, detect, false) || !side_init(b, detect, true))
		abort();
	while (good && left > 0) {
		struct pl_diag diag = { 0 };
		struct pl_gen *gen;

		form_usual(&cfg, rng);
		cfg.udp = form_pick(rng, 2) == 0;
		if (form_pick(rng, 4) == 0)
			(void)pl_malform_add_all(&cfg, 0.02, &diag);
		if (pl_gen_new(&gen, &cfg, &diag) < 0)
			continue;
		for (int i = 0; good && i < 8 && left > 0; i++) {
			int n = pl_gen_next(gen, UINT64_MAX, &batch);

			if (n <= 0)
				break;
			for (int k = 0; k < n; k++)
				form_tag(&batch.pkts[k], rooms[k], rng);
			now_ns += form_pick(rng, 200) == 0 ? 600 * MS : form_pick(rng, 2000000);
			if (form_pick(rng, 16) == 0)
				guess_wrongly(a, rng);
			good = both_ways(a, b, &batch);
			left -= left < (uint64_t)n ? left : (uint64_t)n;
		}
		pl_gen_free(gen);
	}
	ok(good, "the same events on the fast path and the slow path");
	same_tables(a, b);
	printf("# %" PRIu64 " packets, %" PRIu64 " settled, %" PRIu64 " the fast path, %" PRIu64
	       " events\n",
		a->counters.packets, a->counters.settled, a->counters.fast, n_events);
	ok(a->counters.fast > a->counters.packets / 3 &&
			a->counters.settled - a->counters.fast > a->counters.packets / 50,
		"both ways were gone often");
	eq(b->counters.fast, 0, "the fast path can be left out");
	ok(a->counters.changed >= a->counters.fast / 50 * restless,
		"%" PRIu64 " times with hops that changed", a->counters.changed);
	a->counters.fast = a->counters.changed = 0;
	memset(a->counters.slow, 0, sizeof(a->counters.slow));
	memset(b->counters.slow, 0, sizeof(b->counters.slow));
	memeq(&a->counters, &b->counters, sizeof(a->counters), "and the packets' counts");
	side_done(a);
	side_done(b);
}

/* Whatever carries the report, and whatever it is about, as long as it is usual: the fast path,
 * once a path is known. */
static void test_carriers(void)
{
	static uint8_t rooms[PL_BATCH_MAX][PL_GEN_PACKET_MAX + 8];
	static struct pl_batch batch;
	struct pl_detect_options o;
	struct pl_diag diag = { 0 };

	pl_detect_defaults(&o);
	for (unsigned int form = 0; form < 32; form++) {
		const struct pl_gen_cfg cfg = { .seed = 1,
			.flows = 4,
			.rate = 100000,
			.report = PL_GEN_REPORT_V20,
			.version = PL_GEN_INT_V21,
			.mode = PL_GEN_MD,
			.sink = PL_GEN_SINK_STACK,
			.bitmap = 0xff00,
			.carrier = form & 1 ? PL_GEN_UDP : PL_GEN_TCP,
			.outer_ip = form & 2 ? 6 : 4,
			.inner_ip = form & 4 ? 6 : 4,
			.inner = form & 8 ? PL_GEN_VLAN : PL_GEN_ETHERNET };
		struct side *s = calloc(1, sizeof(*s));
		struct pl_gen *gen = NULL;

		if (s == NULL || !side_init(s, &o, false) || pl_gen_new(&gen, &cfg, &diag) < 0)
			abort();
		for (int i = 0; i < 4 && pl_gen_next(gen, UINT64_MAX, &batch) > 0; i++) {
			for (uint32_t k = 0; (form & 16) && k < batch.n; k++)
				form_tag_as(&batch.pkts[k], rooms[k], PL_ETH_VLAN, 42, 1);
			pl_detect_frames(s->det, &s->direct, &batch, now_ns, s->settled,
				&s->counters, &s->events);
		}
		ok(s->counters.packets > 500 && s->counters.settled == s->counters.packets &&
				s->counters.fast >= s->counters.packets - 16,
			"%" PRIu64 " of %" PRIu64 ": %s, IPv%u%s, in it IPv%u%s", s->counters.fast,
			s->counters.packets, form & 1 ? "UDP" : "TCP", cfg.outer_ip,
			form & 16 ? " with a tag" : "", cfg.inner_ip,
			form & 8 ? " with a tag" : "");
		pl_gen_free(gen);
		side_done(s);
	}
}

/* Every instruction bitmap with a node id, whatever its dialect: the fast path, once a path is
 * known. */
static void test_layouts(void)
{
	static const struct {
		const char *what;
		enum pl_gen_report report;
		enum pl_gen_version version;
		uint16_t reserved; /* bits that are not asked for: reserved, or only noted */
		enum pl_dialect dialect;
	} families[] = {
		{ "INT v0.5", PL_GEN_REPORT_V05, PL_GEN_INT_V05, 0x00ff, PL_DIALECT_SPEC },
		{ "INT v1.0", PL_GEN_REPORT_V10, PL_GEN_INT_V10, 0x00fe, PL_DIALECT_SPEC },
		{ "INTCollector's", PL_GEN_REPORT_V10, PL_GEN_INT_V10, 0x00fe,
			PL_DIALECT_INTCOLLECTOR },
		{ "GEANT's", PL_GEN_REPORT_V10, PL_GEN_INT_V10, 0x00fe, PL_DIALECT_GEANT },
		{ "NoviFlow's", PL_GEN_REPORT_V10, PL_GEN_INT_V10, 0xffff, PL_DIALECT_NOVIFLOW },
		{ "INT v2.1", PL_GEN_REPORT_V20, PL_GEN_INT_V21, 0x007e, PL_DIALECT_SPEC },
	};
	static struct pl_batch batch;
	struct pl_detect_options o;
	struct pl_diag diag = { 0 };

	pl_detect_defaults(&o);
	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		uint64_t packets = 0, most_slow = 0, forms = 0;

		for (uint32_t bitmap = 0x8000; bitmap <= 0xffff; bitmap++) {
			struct pl_gen_cfg cfg = { .seed = 1,
				.flows = 1,
				.rate = 100000,
				.report = families[f].report,
				.version = families[f].version,
				.mode = PL_GEN_MD,
				.sink = PL_GEN_SINK_STACK,
				.bitmap = (uint16_t)bitmap,
				.dialect = families[f].dialect,
				.carrier = PL_GEN_TCP,
				.tcp_options = bitmap & 0x100 ? 3 : 0 };
			struct side *s;
			struct pl_gen *gen = NULL;

			if ((bitmap & families[f].reserved) != 0 &&
				!(families[f].reserved == 0xffff && bitmap == 0xfc00))
				continue;
			if (pl_gen_new(&gen, &cfg, &diag) < 0)
				continue;
			s = calloc(1, sizeof(*s));
			if (s == NULL || !side_init(s, &o, false))
				abort();
			if (pl_gen_next(gen, UINT64_MAX, &batch) > 0)
				pl_detect_frames(s->det, &s->direct, &batch, now_ns, s->settled,
					&s->counters, &s->events);
			packets += s->counters.packets;
			forms++;
			if (s->counters.packets - s->counters.fast > most_slow)
				most_slow = s->counters.packets - s->counters.fast;
			pl_gen_free(gen);
			side_done(s);
		}
		/* The first ones make the entries, learn the layout and prove the exporter. */
		ok(forms > 0 && packets > 32 * forms && most_slow <= 4,
			"%s: %" PRIu64 " layouts, at most %" PRIu64 " of %" PRIu64
			" reports of each on the slow path",
			families[f].what, forms, most_slow, packets / (forms > 0 ? forms : 1));
	}
}

/* Rules under which most is quiet. */
static void test_calm(struct pl_rng *rng, bool aggregates)
{
	struct pl_detect_options o = busy();
	struct pl_detect_level *levels[] = { &o.queue_depth, &o.hop_latency, &o.link_latency,
		&o.tx_util };

	for (unsigned int i = 0; i < 4; i++) {
		levels[i]->threshold *= 100;
		levels[i]->step *= 100;
	}
	o.microburst.on = false;
	o.flow_latency = (struct pl_detect_level){ 0 }; /* the fast path knows nothing of it */
	o.hop_latency.anomaly = aggregates;
	o.aggregates = aggregates;
	o.report_loss = true;
	test_ways(&o, 60000, false, rng);
}

/* Rules under which most is not. */
static void test_restless(struct pl_rng *rng)
{
	struct pl_detect_options o = busy();

	o.flow_latency = (struct pl_detect_level){ 0 };
	o.aggregates = true;
	o.prove = true;
	test_ways(&o, 60000, true, rng);
}

int main(int argc, char **argv)
{
	uint64_t left = argc > 1 ? strtoull(argv[1], NULL, 0) : 150000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20261121;
	const struct pl_decode_options options = { .max_exporters = 4096 };
	const struct pl_detect_options detect = busy();
	struct pl_gen_cfg cfg;
	struct pl_rng rng;
	bool good = true;

	if (pl_decode_new(&decode, &options) < 0 || pl_direct_init(&direct, &options) < 0 ||
		pl_record_batch_init(&records, 256, 4096) < 0 ||
		pl_event_batch_init(&direct_events, 65536) < 0 ||
		pl_event_batch_init(&record_events, 65536) < 0 ||
		pl_detect_new(&direct_det, &detect) < 0 || pl_detect_new(&record_det, &detect) < 0)
		return 1;
	records.flush = no_flush;
	pl_rng_seed(&rng, seed);
	printf("# seed %" PRIu64 "\n", seed);
	while (good && left > 0) {
		struct pl_diag diag = { 0 };

		form_random(&cfg, &rng);
		cfg.udp = form_pick(&rng, 4) == 0;
		if (form_pick(&rng, 4) == 0)
			(void)pl_malform_add_all(&cfg, 0.5, &diag);
		good = run_form(&cfg, &rng, &left);
	}
	ok(good, "the same events with records and without");
	ok(counters.settled > counters.packets / 4 && n_events > counters.settled / 50,
		"%" PRIu64 " packets, %" PRIu64 " settled, %" PRIu64 " events", counters.packets,
		counters.settled, n_events);
	test_calm(&rng, false);
	test_calm(&rng, true);
	test_restless(&rng);
	test_carriers();
	test_layouts();
	pl_detect_free(direct_det);
	pl_detect_free(record_det);
	pl_event_batch_done(&direct_events);
	pl_event_batch_done(&record_events);
	pl_record_batch_done(&records);
	pl_direct_done(&direct);
	pl_decode_free(decode);
	return pl_test_done();
}
