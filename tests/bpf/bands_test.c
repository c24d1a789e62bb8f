/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quiet bands (core/detect_bands.h): a quantity whose values within its band are passed over comes
 * to the same state and the same events as one of which every value is looked at; by random rules,
 * values and times. And a level that is raised, or a deviation that goes on, has a band too.
 *
 * bands_test [SEED]
 */
#include "steps_env.h"

#include <inttypes.h>

#include "base/test.h"

enum { RULES = 400, VALUES = 3000, ID = PL_CORE_Q_QUEUE_DEPTH };

/* One quantity, and what was told of it. */
struct side {
	struct pl_core_env env;
	struct pl_core_quantity q;
	struct pl_core_band band;
	uint64_t looks;
};

static struct side passing, looking;
static struct pl_event told[2][ENV_EVENTS];
static uint64_t state;

static uint32_t draw(uint32_t n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % n;
}

static struct pl_core_rules drawn_rules(void)
{
	const uint32_t threshold = draw(8) == 0 ? PL_CORE_NO_THRESHOLD : 1 + draw(900);
	struct pl_core_rules r = { .learn_window_ns = 100 + draw(3000),
		.learn_windows = draw(5),
		.learn_shift = draw(4),
		.burst_threshold = draw(2) ? PL_CORE_NO_THRESHOLD : draw(1200),
		.idle_ns = 1000000 };

	r.q[ID] = (struct pl_core_quantity_rule){
		.level = { threshold,
			threshold == PL_CORE_NO_THRESHOLD ? threshold : draw(threshold + 1),
			draw(3) * draw(40), draw(3) * draw(40) },
		.odd = { draw(60), 0, draw(3) * draw(40), draw(3) * draw(40) },
		.relative = draw(2) * draw(131072),
		.relative_min = draw(2) * draw(500),
		.odd_times = draw(2) * draw(64),
		.step = draw(3) == 0 ? 1 + draw(400) : 0,
		.step_relative = draw(4) == 0 ? draw(65536) : 0,
		.step_shift = draw(4) == 0 ? (uint8_t)draw(9) : 0,
		.step_first = (uint8_t)draw(2),
		.on = 1
	};
	r.q[ID].learn = r.q[ID].relative != 0 || r.q[ID].odd_times != 0;
	for (unsigned int kind = 0; kind < PL_EVENT_KIND_MAX; kind++)
		r.limit[kind] = (struct pl_core_limit_rule){ draw(50), draw(500) };
	return r;
}

static void step(
	struct side *s, const struct pl_core_report *r, const struct pl_core_hop *h, int all)
{
	const struct pl_core_quantity_rule *rule = &s->env.rules.q[ID];

	if (all || pl_core_stirs(&s->band, &s->q, rule, h->queue_depth, r->now_ns)) {
		s->looks++;
		pl_core_band_set(&s->band, pl_core_quantity_step(&s->env, r, h, &s->q, ID));
	}
	pl_core_sum(&s->q, h->queue_depth);
}

/* A depth that stays for a while, wanders a little, or is another. */
static uint32_t next_depth(uint32_t depth)
{
	switch (draw(16)) {
	case 0:
		return draw(1000);
	case 1:
		return draw(4) == 0 ? 0 : UINT32_MAX >> draw(24);
	case 2:
	case 3:
	case 4:
	case 5:
		return depth > 8 && depth < 100000 ? depth - 8 + draw(17) : depth + draw(9);
	default:
		return depth;
	}
}

static int same(void)
{
	return memcmp(&passing.q, &looking.q, sizeof(passing.q)) == 0 &&
	       passing.env.n == looking.env.n &&
	       memcmp(told[0], told[1], passing.env.n * sizeof(told[0][0])) == 0 &&
	       memcmp(&passing.env.counters, &looking.env.counters, sizeof(passing.env.counters)) ==
		       0;
}

/* As many values by one set of rules. Returns how many, of those looked at by one side only, found
 * the level raised; UINT64_MAX: the sides differ. */
static uint64_t run_rules(void)
{
	const struct pl_core_rules rules = drawn_rules();
	const uint32_t unit = draw(3) == 0 ? 1 + draw(80) : 0;
	struct pl_core_report r = { .now_ns = 1000 };
	struct pl_core_hop h = { .node = 1, .present = PL_HOP_HAS_node | PL_HOP_HAS_queue_depth };
	uint64_t raised = 0;

	for (int i = 0; i < 2; i++) {
		struct side *s = i == 0 ? &passing : &looking;

		memset(s, 0, sizeof(*s));
		s->env.rules = rules;
		s->env.events = told[i];
		s->q.unit_bytes = unit;
	}
	for (unsigned int i = 0; i < VALUES; i++) {
		const uint64_t looks = passing.looks;

		h.queue_depth = next_depth(h.queue_depth);
		r.now_ns += draw(8) == 0 ? draw(200) : draw(4);
		step(&passing, &r, &h, 0);
		step(&looking, &r, &h, 1);
		if (!same())
			return UINT64_MAX;
		raised += passing.looks == looks && (passing.q.level.state == PL_CORE_RAISED ||
							    passing.q.odd.state == PL_CORE_RAISED);
		passing.env.n = looking.env.n = 0;
	}
	return raised;
}

static void every_rule(void)
{
	uint64_t raised = 0, n;

	for (unsigned int i = 0; i < RULES; i++) {
		const uint64_t from = state;

		n = run_rules();
		if (n == UINT64_MAX) {
			ok(0, "rules %u, state %" PRIu64 ": the same as looking at every value", i,
				from);
			return;
		}
		raised += n;
	}
	ok(1, "the same as looking at every value");
	ok(raised > RULES * VALUES / 20, "%" PRIu64 " values of raised levels were passed over",
		raised);
}

/* A queue that stays above its threshold: looked at when it rises, at each new maximum, and when it
 * falls. */
static void stays_raised(void)
{
	static const uint32_t depths[] = { 5, 300, 300, 250, 299, 101, 301, 200, 301, 50, 40 };
	struct pl_core_report r = { .now_ns = 1000 };
	struct pl_core_hop h = { .node = 1, .present = PL_HOP_HAS_node | PL_HOP_HAS_queue_depth };
	char looks[sizeof(depths) / sizeof(depths[0]) + 1] = "";

	memset(&passing, 0, sizeof(passing));
	passing.env.events = told[0];
	passing.env.rules.burst_threshold = PL_CORE_NO_THRESHOLD;
	passing.env.rules.q[ID] =
		(struct pl_core_quantity_rule){ .on = 1, .level = { 200, 100, 0, 1000 } };
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		const uint64_t before = passing.looks;

		h.queue_depth = depths[i];
		r.now_ns++;
		step(&passing, &r, &h, 0);
		looks[i] = passing.looks != before ? 'L' : '-';
	}
	streq(looks, "LL----L--LL", "a raised level is looked at when it moves");
	eq(passing.q.level.max, 301, "its largest value");
}

int main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	every_rule();
	stays_raised();
	return pl_test_done();
}
