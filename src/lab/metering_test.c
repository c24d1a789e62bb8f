/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate marking in simulated networks: in every block the meters at both ends of each link must
 * find what its queue and link did to the packets, and delays must be right up to the clocks'
 * error. "metering_test long [SEEDS]" tests many networks.
 */
#include "lab/metering.h"

#include <stdlib.h>

#include "base/rng.h"
#include "base/test.h"
#include "lab/faults.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
#define START  (UINT64_C(1700000000) * SECOND)
#define FEW    30u /* packets of a block */

struct totals {
	uint64_t results, with_loss, with_delay, with_mean, alarms;
	uint64_t sent, loss, lost_by_truth;
	uint64_t wrong_counts, wrong_loss, wrong_delay, wrong_mean, unknown;
	uint64_t unsound, beyond, silent; /* results not vouched for; wrong ones among the others */
	uint64_t misread;                 /* delays of a packet that is not the pulse */
};

/* A network, its faults, and the results. */
struct trial {
	const char *yaml;
	const char *faults[4];
	uint8_t method;
	const char *bits[2];
	uint64_t seed, period_ns, guard_ns, clock_ns;
	double rate;
	unsigned int flows;
	uint64_t duration_ns;
	int64_t offsets_ns[4]; /* of the nodes' clocks at START, in the network's order */
	int64_t drifts_ppb[4];
	struct pl_lab_topology topology;
	struct pl_lab_metering *marking;
	struct totals all, by_link[32][2];   /* by link and sending end */
	char loses[2 * PL_LAB_NAME_MAX + 5]; /* the last direction with a loss */
	struct begun {
		struct pl_mark_flow flow;
		unsigned int link, end;
		uint64_t block;
	} begun[64]; /* first blocks of flows at links */
	unsigned int n_begun;
};

static int64_t loss_of(const struct pl_lab_metering_truth *t)
{
	return (int64_t)(t->dropped + t->lost);
}

/* Returns the clock of a node less the true time, at that true time. */
static int64_t offset_of(const struct trial *t, const char *name, int64_t since_start_ns)
{
	const int node = pl_lab_find_node(&t->topology, name, NULL);

	return node >= 0 && node < 4
		       ? t->offsets_ns[node] + since_start_ns / 1000 * t->drifts_ppb[node] / 1000000
		       : 0;
}

/* Returns how much two clocks move against each other in two periods, and what is rounded. */
static int64_t moved(const struct trial *t, const char *from, const char *to)
{
	const int64_t two = 2 * (int64_t)t->period_ns;
	const int64_t by = (offset_of(t, to, two) - offset_of(t, to, 0)) -
			   (offset_of(t, from, two) - offset_of(t, from, 0));
	const int64_t own = offset_of(t, to, two) - offset_of(t, to, 0);

	return (by < 0 ? -by : by) + (own < 0 ? -own : own) + 3;
}

static bool is_off(int64_t value, int64_t truth, int64_t by)
{
	return value < truth - by || value > truth + by;
}

/* Returns the first block of the flow in the link's direction. */
static uint64_t begun_at(struct trial *t, const struct pl_lab_metering_result *r)
{
	unsigned int i = 0;

	while (i < t->n_begun && (t->begun[i].link != r->link || t->begun[i].end != r->end ||
					 memcmp(&t->begun[i].flow, &r->by_marking->flow,
						 sizeof(t->begun[i].flow)) != 0))
		i++;
	if (i == t->n_begun) {
		if (i == sizeof(t->begun) / sizeof(t->begun[0]))
			return r->by_marking->block;
		t->begun[t->n_begun++] = (struct begun){ r->by_marking->flow, r->link, r->end,
			r->by_marking->block };
	}
	return t->begun[i].block;
}

static void add(struct totals *a, struct trial *trial, const struct pl_lab_metering_result *r)
{
	const struct pl_mark_result *m = r->by_marking;
	const struct pl_lab_metering_truth *t = &r->truth;
	/* Within a block clocks that drift move by less than is allowed for. */
	const int64_t middle = (int64_t)(m->block * m->period_ns + m->period_ns / 2 - START);
	const int64_t apart = offset_of(trial, r->to, middle) - offset_of(trial, r->from, middle),
		      by = moved(trial, r->from, r->to);

	a->results++;
	a->beyond += (m->alarms & PL_MARK_ALARM_BEYOND) != 0;
	a->unknown += !t->known;
	a->alarms += (m->alarms & ~(uint32_t)PL_MARK_ALARM_PULSES) != 0;
	if ((m->has & PL_MARK_HAS_LOSS) != 0) {
		a->with_loss++;
		a->sent += m->sent;
		a->loss += (uint64_t)m->loss;
		a->lost_by_truth += (uint64_t)loss_of(t);
		a->wrong_counts += m->sent != t->sent || m->received != t->arrived;
		a->wrong_loss += m->loss != loss_of(t);
	}
	if ((m->has & PL_MARK_HAS_DELAY) != 0) {
		a->with_delay++;
		a->wrong_delay +=
			!t->has_pulse || is_off(m->delay_ns, (int64_t)t->pulse_ns + apart, by - 3);
	}
	if ((m->has & PL_MARK_HAS_MEAN) != 0 && t->arrived > 0) {
		a->with_mean++;
		/* Both means are rounded down to whole nanoseconds. */
		a->wrong_mean +=
			is_off(m->mean_ns, apart + (int64_t)(t->transit_ns / t->arrived), by);
	}
	if (!pl_mark_result_is_sound(m))
		a->unsound++;
	/* Beyond the limit the first block lacks packets of which only the next one shows that they are
	 * not lost, and in a block of few packets may be none that shows it. */
	else if (m->block > begun_at(trial, r) + 1 && t->sent >= FEW)
		a->silent += m->sent != t->sent || m->received != t->arrived;
	a->misread += m->block > begun_at(trial, r) + 1 && (m->has & PL_MARK_HAS_DELAY) != 0 &&
		      is_off(m->delay_ns, (int64_t)t->pulse_ns + apart, by);
}

static void result(void *arg, const struct pl_lab_metering_result *r)
{
	struct trial *t = arg;

	add(&t->all, t, r);
	add(&t->by_link[r->link][r->end], t, r);
	if ((r->by_marking->has & PL_MARK_HAS_LOSS) != 0 && r->by_marking->loss > 0)
		snprintf(t->loses, sizeof(t->loses), "%s to %s", r->from, r->to);
}

static void path(void *arg, const struct pl_path *p, const struct pl_hop *hops)
{
	struct trial *t = arg;

	if (t->marking != NULL)
		pl_lab_metering_path(t->marking, p, hops);
}

/* Returns the packets that a direction's queue and link have lost, by their counters. */
static uint64_t booked(struct pl_lab_simulation *s, unsigned int link, unsigned int end)
{
	unsigned int node, port, dp_link;
	const struct pl_dp_queue_account *q;
	const struct pl_dp_link_account *l;

	pl_lab_simulation_sender(s, link, end, &node, &port, &dp_link);
	q = pl_dp_port_account(pl_dp_sim_port_at(pl_lab_simulation_sim(s), node, port), 0);
	l = pl_dp_link_account(pl_dp_sim_link_at(pl_lab_simulation_sim(s), dp_link));
	return q->dropped_bytes_limit + q->dropped_packets_limit + q->dropped_port_limit +
	       l->lost_random + l->lost_burst + l->lost_listed + l->lost_down + l->lost_full;
}

/* Returns the number of directions whose losses over all blocks differ from the counters. */
static unsigned int unlike_account(struct trial *t, struct pl_lab_simulation *s)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->topology.n_links; i++) {
		const struct pl_lab_link *l = &t->topology.links[i];

		for (unsigned int end = 0; end < 2; end++)
			n += t->topology.nodes[l->end[end].node].kind != PL_LAB_HOST &&
			     t->by_link[i][end].loss != booked(s, i, end) &&
			     t->method != PL_MARK_PULSE;
	}
	return n;
}

static void set_clocks(const struct trial *t, struct pl_lab_simulation *s)
{
	for (unsigned int i = 0; i < t->topology.n_links; i++) {
		for (unsigned int end = 0; end < 2; end++) {
			unsigned int node, port, link;
			const unsigned int at = t->topology.links[i].end[end].node;

			pl_lab_simulation_sender(s, i, end, &node, &port, &link);
			if (at < 4)
				(void)pl_dp_clock_set(
					pl_dp_sim_clock(pl_lab_simulation_sim(s), node), START,
					t->offsets_ns[at], t->drifts_ppb[at]);
		}
	}
}

/* Runs a trial. Returns the number of directions that differ from the counters, or negative
 * errno. */
static int run(struct trial *t)
{
	const struct pl_lab_simulation_cfg cfg = { .seed = t->seed,
		.start_ns = START,
		.duration_ns = t->duration_ns,
		.rate = t->rate,
		.flows = t->flows,
		.bytes = 200,
		.truth = { .path = path, .arg = t } };
	struct pl_lab_metering_cfg marking = { .method = t->method,
		.period_ns = t->period_ns,
		.guard_ns = t->guard_ns,
		.clock_ns = t->clock_ns,
		.flows_max = 256,
		.result = result,
		.arg = t };
	struct pl_lab_simulation *s = NULL;
	struct pl_lab_faults *faults = NULL;
	struct pl_diag diag = { .text = "" };
	size_t n = 0;
	int r = pl_lab_topology_parse(&t->topology, "net", t->yaml, strlen(t->yaml), &diag);

	while (n < 4 && t->faults[n] != NULL)
		n++;
	if (r == 0)
		r = pl_lab_simulation_new(&s, &t->topology, &cfg, &diag);
	if (r == 0)
		r = pl_lab_faults_new(&faults, s, &t->topology, t->faults, n, &diag);
	if (r == 0)
		r = pl_mark_where_parse(
			&marking.where, t->method, t->bits, t->bits[1] != NULL ? 2 : 1, &diag);
	if (r == 0)
		r = pl_lab_metering_new(&t->marking, s, &t->topology, &marking, &diag);
	if (r == 0) {
		set_clocks(t, s);
		pl_dp_sim_run(pl_lab_simulation_sim(s), START + t->duration_ns + SECOND);
		pl_lab_metering_finish(t->marking);
		r = (int)unlike_account(t, s);
	} else {
		printf("# %s\n", diag.text);
	}
	pl_lab_metering_free(t->marking);
	t->marking = NULL;
	pl_lab_simulation_free(s);
	pl_lab_faults_free(faults);
	pl_lab_topology_done(&t->topology);
	return r;
}

static void check(struct trial *t, const char *what)
{
	const int r = run(t);
	const struct totals *a = &t->all;

	eq(r, 0, "%s: each link's loss is what its queue and link have booked", what);
	ok(a->with_loss > 0 && a->unknown == 0 && a->wrong_counts == 0 && a->wrong_loss == 0,
		"%s: %llu results, %llu packets, %llu lost; in every block as it was (%llu not, %llu not known)",
		what, (unsigned long long)a->with_loss, (unsigned long long)a->sent,
		(unsigned long long)a->loss, (unsigned long long)(a->wrong_counts + a->wrong_loss),
		(unsigned long long)a->unknown);
	ok(a->wrong_delay == 0 && (a->with_delay > 0) == (t->method != PL_MARK_STEP),
		"%s: %llu delays by a pulse are its own (%llu not)", what,
		(unsigned long long)a->with_delay, (unsigned long long)a->wrong_delay);
	ok(a->wrong_mean == 0, "%s: %llu mean delays (%llu wrong)", what,
		(unsigned long long)a->with_mean, (unsigned long long)a->wrong_mean);
	eq(a->alarms, 0, "%s: nothing to be said against them", what);
}

#define LINE   "name: t\nshape: line:2\ntelemetry: none\nevery_link: {rate: 20M, queue: 20kB}\n"
#define LEAVES "name: t\nshape: leaf-spine:2x2x2\n"

static const char *const dscp[] = { "dscp:0", "dscp:1" };

static const struct {
	const char *name;
	uint8_t method;
} methods[] = { { "step", PL_MARK_STEP }, { "pulse", PL_MARK_PULSE }, { "double", PL_MARK_DOUBLE },
	{ "multiplexed", PL_MARK_MULTIPLEXED } };

static void of_methods(void)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct trial t = { .yaml = LINE,
			.method = methods[i].method,
			.bits = { dscp[0], methods[i].method == PL_MARK_DOUBLE ? dscp[1] : NULL },
			.seed = i,
			.period_ns = 200 * MS,
			.guard_ns = 48 * MS,
			.rate = 4000,
			.flows = 4,
			.duration_ns = 3 * SECOND,
			.faults = { "s1-s2:loss=0.03@500ms", "s1>s2:rate=2M queue=8kB@1s",
				"s1-s2:rate=20M@2s" } };

		check(&t, methods[i].name);
		ok(t.all.loss > 500, "%s: the link loses", methods[i].name);
	}
}

/* INT uses the whole DSCP between switches; the reserved bit must pass unchanged. */
static void beside_int(void)
{
	struct trial t = { .yaml = LEAVES,
		.method = PL_MARK_MULTIPLEXED,
		.bits = { "ipv4-reserved" },
		.seed = 7,
		.period_ns = 200 * MS,
		.guard_ns = 40 * MS,
		.rate = 4000,
		.flows = 12,
		.duration_ns = 2 * SECOND,
		.faults = { "leaf1>spine2:loss=0.05@400ms" } };
	unsigned int losing = 0;

	check(&t, "beside INT");
	for (unsigned int i = 0; i < 64; i++)
		losing += t.by_link[i / 2][i % 2].loss > 0;
	eq(losing, 1, "one link loses, in one direction, and it is told");
	streq(t.loses, "leaf1 to spine2");
}

/* With clocks 6 ms apart counts must stay exact, and delays be wrong by just the difference. */
static void with_clocks(void)
{
	struct trial t = { .yaml = LINE,
		.method = PL_MARK_DOUBLE,
		.bits = { dscp[0], dscp[1] },
		.seed = 3,
		.period_ns = 200 * MS,
		.guard_ns = 60 * MS,
		.clock_ns = 12 * MS,
		.rate = 3000,
		.flows = 3,
		.duration_ns = 2 * SECOND,
		.faults = { "s1-s2:loss=0.1 delay=3ms reorder=0.2 reorder_time=2ms" } };

	for (unsigned int i = 0; i < 4; i++)
		t.offsets_ns[i] = (int64_t)(i % 2 == 0 ? 3 * (int64_t)MS : -3 * (int64_t)MS);
	check(&t, "clocks apart");
}

/* How far apart the clocks of a drawn network are. */
enum apart {
	CLOSE,    /* as they are said to be */
	AT_LIMIT, /* as far as the method bears, offset and drift together */
	BEYOND,   /* further, by a tenth of the period at least: then it shows in each block */
};

/* What delay and reordering take of the guard band in drawn networks: queue, link, reordering. */
#define DELAYS (32 * MS)

/* Draws offsets and drifts of the clocks. Drift is of up to 1000 ppm, 3 ms in the time of a trial. */
static void draw_clocks(struct trial *t, struct pl_rng *rng, enum apart apart)
{
	const uint64_t limit = pl_mark_guard_limit(t->method, t->period_ns);
	uint64_t most = 4 * MS; /* of each clock */

	if (apart == AT_LIMIT) {
		/* Room for the window of the pulse is left. */
		t->guard_ns = limit - 5 * MS;
		most = (t->guard_ns - DELAYS) / 2 - 3 * MS;
		t->clock_ns = 2 * (most + 3 * MS);
	}
	for (unsigned int k = 0; k < 4; k++) {
		const int64_t drift = (int64_t)pl_rng_below(rng, 2000001) - 1000000;
		const int64_t offset = (int64_t)pl_rng_below(rng, 2 * most) - (int64_t)most;

		t->drifts_ppb[k] = drift;
		t->offsets_ns[k] = offset;
		/* Those next to each other are as far apart as they may be. */
		if (apart == AT_LIMIT)
			t->offsets_ns[k] = (int64_t)(k % 2 == t->seed % 2 ? most : 0 - most);
		/* They go on to get further apart in the end. */
		if (apart == AT_LIMIT && (t->offsets_ns[k] < 0) == (drift > 0))
			t->drifts_ppb[k] = -drift;
	}
	if (apart != BEYOND)
		return;
	/* The marker's clock is right, that behind it is not. */
	t->offsets_ns[0] = t->offsets_ns[1] = 0;
	t->offsets_ns[2] =
		(int64_t)(limit + t->period_ns / 10 + pl_rng_below(rng, t->period_ns / 5 * 2));
	t->offsets_ns[2] *= t->seed % 2 == 0 ? 1 : -1;
	t->offsets_ns[3] = t->offsets_ns[2];
}

/* Draws faults, clocks, rates and method of a network from a seed. */
static void draw(struct trial *t, char texts[2][128], uint64_t seed, enum apart apart)
{
	struct pl_rng rng;
	unsigned int i, mbit;

	pl_rng_seed(&rng, seed);
	mbit = (unsigned int)pl_rng_below(&rng, 10);
	i = (unsigned int)pl_rng_below(&rng, 3);
	i += i > 0; /* no pulse marking: it does not allow reordering */
	*t = (struct trial){ .yaml = LINE,
		.method = methods[i].method,
		.bits = { dscp[0], methods[i].method == PL_MARK_DOUBLE ? dscp[1] : NULL },
		.seed = seed,
		.period_ns = 200 * MS,
		.guard_ns = 48 * MS,
		.clock_ns = 14 * MS,
		.rate = 1000 + (double)pl_rng_below(&rng, 8000),
		.flows = 1 + (unsigned int)pl_rng_below(&rng, 8),
		.duration_ns = 2 * SECOND };
	draw_clocks(t, &rng, apart);
	snprintf(texts[0], 128,
		"s1-s2:loss=0.%02u to_bad=0.0%u to_good=0.%u bad_loss=0.8 delay=%ums reorder=0.%u reorder_time=%ums",
		(unsigned int)pl_rng_below(&rng, 30), (unsigned int)pl_rng_below(&rng, 9),
		1 + (unsigned int)pl_rng_below(&rng, 9), (unsigned int)pl_rng_below(&rng, 8),
		(unsigned int)pl_rng_below(&rng, 5), 1 + (unsigned int)pl_rng_below(&rng, 6));
	snprintf(texts[1], 128, "s1>s2:rate=%uM queue=%ukB@1s", 1 + mbit, 2 * (1 + mbit));
	t->faults[0] = texts[0];
	t->faults[1] = texts[1];
}

/* Within the limit every number is right and nothing is said against it; beyond it what is wrong has an
 * alarm, but for one block at most of a hundred, in which the only packets of other blocks were by chance
 * as many as pulses or losses would be. */
static bool is_right(const struct trial *t, enum apart apart, int r)
{
	const struct totals *a = &t->all;

	if (apart == BEYOND)
		return r >= 0 && a->unknown == 0 && a->silent + a->misread <= 1 && a->beyond > 0;
	return r == 0 && a->wrong_counts + a->wrong_loss + a->wrong_delay + a->wrong_mean +
					 a->unknown + a->alarms ==
				 0;
}

static int many(unsigned int seeds, enum apart apart)
{
	struct totals sum = { .results = 0 };
	unsigned int bad = 0;

	for (unsigned int i = 0; i < seeds; i++) {
		struct trial t;
		char texts[2][128];
		int r;

		draw(&t, texts, i + 1, apart);
		r = run(&t);
		sum.results += t.all.with_loss;
		sum.sent += t.all.sent;
		sum.loss += t.all.loss;
		sum.with_delay += t.all.with_delay;
		sum.unsound += t.all.unsound;
		sum.wrong_counts += t.all.wrong_counts;
		if (is_right(&t, apart, r))
			continue;
		bad++;
		printf("# seed %u, method %u: %s %s: account %d, counts %llu, loss %llu, delay %llu, mean %llu, silent %llu, alarms %llu of %llu\n",
			i + 1, t.method, texts[0], texts[1], r,
			(unsigned long long)t.all.wrong_counts,
			(unsigned long long)t.all.wrong_loss, (unsigned long long)t.all.wrong_delay,
			(unsigned long long)t.all.wrong_mean, (unsigned long long)t.all.silent,
			(unsigned long long)t.all.alarms, (unsigned long long)t.all.results);
	}
	printf("# %u seeds, %u not right: %llu packets at links, %llu lost, %llu blocks of flows (%llu not vouched for, %llu of them wrong), %llu delays\n",
		seeds, bad, (unsigned long long)sum.sent, (unsigned long long)sum.loss,
		(unsigned long long)sum.results, (unsigned long long)sum.unsound,
		(unsigned long long)sum.wrong_counts, (unsigned long long)sum.with_delay);
	return bad == 0 ? 0 : 1;
}

static void drawn(unsigned int seeds)
{
	eq(many(seeds, CLOSE), 0, "drawn networks");
	eq(many(seeds, AT_LIMIT), 0, "with clocks as far apart as they may be");
	eq(many(seeds, BEYOND), 0, "with clocks beyond the limit: wrong numbers have an alarm");
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "long") == 0)
		drawn(argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 1000);
	if (argc > 1)
		return pl_test_done();
	of_methods();
	beside_int();
	with_clocks();
	drawn(8);
	return pl_test_done();
}
