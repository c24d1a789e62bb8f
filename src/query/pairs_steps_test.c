/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps that a join of records takes for each record, in whatever order those of one key come. */
#include "base/rng.h"
#include "base/test.h"
#include "query/pairs_room.h"
#include "query/query.h"

enum { LINE = 8192 };

static uint64_t pairs;

static void sink(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	pairs += row->values[0].u;
}

static uint64_t steps_of(const struct pl_query_run *r)
{
	for (unsigned int i = 0; i < STAGES_MAX; i++) {
		if (r->stages[i].pairs != NULL)
			return r->stages[i].pairs->steps;
	}
	return 0;
}

/* Records of the right of one key, the k-th of the time ts[k], and one of the left with all. */
static void one_key(const char *name, const uint32_t *ts, uint64_t most)
{
	static const char text[] =
		"SELECT count(*) AS n FROM (SELECT * FROM packets WHERE proto = 6) AS a "
		"JOIN (SELECT * FROM packets WHERE proto = 17) AS b ON a.sport = b.sport WITHIN 1s";
	const struct pl_query_config config = {
		.max_groups = 2 * LINE, .seed = 7, .lateness_ns = UINT64_C(1000000000)
	};
	struct pl_query *query = NULL;
	struct pl_diag diag = { 0 };
	struct pl_query_run *r;
	uint64_t steps;

	pairs = 0;
	if (!ok(pl_query_parse(&query, text, &diag) == 0 &&
			    pl_query_run_new(&r, query, &config, sink, NULL, &diag) == 0,
		    "%s: the join is understood: %s", name, diag.text))
		return;
	for (unsigned int k = 0; k < LINE; k++) {
		const struct pl_pkt64 p = { .ts_ns = ts[k], .sport = 1, .proto = 17, .tcp_seq = k };

		pl_query_feed(r, PL_FLAT_PKT64, &p, 1, 0);
	}
	steps = steps_of(r);
	ok(steps > LINE && steps <= most, "%s: %" PRIu64 " steps for %u records, at most %" PRIu64,
		name, steps, LINE, most);
	pl_query_feed(r, PL_FLAT_PKT64, &(struct pl_pkt64){ .ts_ns = LINE, .sport = 1, .proto = 6 },
		1, 0);
	pl_query_finish(r);
	ok(pairs == 4096, "%s: the left one has its bound of partners", name);
	pl_query_run_free(r);
	pl_query_free(query);
}

static void test_steps(void)
{
	static uint32_t ts[LINE];
	struct pl_rng rng;

	pl_rng_seed(&rng, 11);
	for (unsigned int k = 0; k < LINE; k++)
		ts[k] = k;
	one_key("in order", ts, 8 * LINE);
	for (unsigned int k = 0; k < LINE; k++)
		ts[k] = LINE - k;
	one_key("in reverse order", ts, 8 * LINE);
	for (unsigned int k = LINE - 1; k > 0; k--) {
		const unsigned int other = (unsigned int)pl_rng_below(&rng, k + 1);
		const uint32_t t = ts[k];

		ts[k] = ts[other];
		ts[other] = t;
	}
	one_key("in any order", ts, 64 * LINE);
	/* Two that come from the ends to the middle: the one before last is never at an end. */
	for (unsigned int k = 0; k < LINE; k++)
		ts[k] = k % 2 == 0 ? k : 2 * LINE - k;
	one_key("from both ends", ts, 64 * LINE);
}

int main(void)
{
	test_steps();
	return pl_test_done();
}
