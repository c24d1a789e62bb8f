/* SPDX-License-Identifier: BSD-2-Clause */
/* Has taps in the kernel filter and count for standing queries. */
#include "service/standing_push.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/query_push.h"
#include "service/standing_query.h"

enum { NOTHING, FILTERS, COUNTS }; /* values of pl_standing_stats.in_kernel */

static const struct pl_standing_source *source_of(const struct pl_standing_query *q, int tap)
{
	for (unsigned int i = 0; i < q->n_sources; i++) {
		if (q->sources[i].tap == tap)
			return &q->sources[i];
	}
	return NULL;
}

/* Returns the only query that reads the tap; NULL: there is none, or several. */
static struct pl_standing_query *only_reader(
	struct pl_standing_query *const *queries, unsigned int n, int tap)
{
	struct pl_standing_query *only = NULL;

	for (unsigned int i = 0; i < n; i++) {
		if (source_of(queries[i], tap) == NULL)
			continue;
		if (only != NULL)
			return NULL;
		only = queries[i];
	}
	return only;
}

/* ---- rules ---- */

static bool same_rule(const struct pl_tap_rule *a, const struct pl_tap_rule *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static const struct pl_tap_rule skip_all = {
	.sport = { 0, UINT16_MAX },
	.dport = { 0, UINT16_MAX },
	.port = { 0, UINT16_MAX },
	.length = { 0, UINT16_MAX },
	.payload = { 0, UINT16_MAX },
	.action = PL_TAP_SKIP,
	.sample = 1,
	.sample_flows = 1,
};

/* Returns whether all rules take, except for the last one, which skips all other packets. */
static bool only_takes(const struct pl_tap_rules *rules)
{
	for (uint32_t i = 0; i + 1 < rules->n; i++) {
		if (rules->rules[i].action != PL_TAP_TAKE)
			return false;
	}
	return rules->n > 0 && same_rule(&rules->rules[rules->n - 1], &skip_all);
}

/* Adds rules so that the set takes every packet that either set takes. False: there is no room, or
 * one skips packets that the other may need. */
static bool join_rules(struct pl_tap_rules *into, const struct pl_tap_rules *from)
{
	if (!only_takes(into) || !only_takes(from))
		return false;
	into->n--;
	for (uint32_t i = 0; i + 1 < from->n; i++) {
		bool there = false;

		for (uint32_t k = 0; k < into->n; k++)
			there |= same_rule(&into->rules[k], &from->rules[i]);
		if (there)
			continue;
		if (into->n + 1 >= PL_TAP_RULES_MAX)
			return false;
		into->rules[into->n++] = from->rules[i];
	}
	into->rules[into->n++] = skip_all;
	return true;
}

/* Joins the rules of all queries that read the tap; none when one of them wants every packet. */
static void rules_for(const struct pl_taps_one *one, struct pl_standing_query *const *queries,
	unsigned int n, struct pl_tap_rules *ret)
{
	bool first = true, good = true;

	*ret = (struct pl_tap_rules){ .n = 0 };
	for (unsigned int i = 0; i < n && good; i++) {
		struct pl_tap_rules rules;

		if (source_of(queries[i], (int)one->index) == NULL)
			continue;
		pl_query_push_rules(
			queries[i]->query, one->options.sources, one->options.n_sources, &rules);
		if (first)
			*ret = rules;
		else
			good = join_rules(ret, &rules);
		first = false;
	}
	if (!good)
		*ret = (struct pl_tap_rules){ .n = 0 };
}

/* ---- taps ---- */

static void note(const struct pl_standing *s, struct pl_standing_query *q)
{
	q->stats.in_kernel = q->counted ? COUNTS : NOTHING;
	for (unsigned int i = 0; i < q->n_sources && !q->counted; i++) {
		const struct pl_taps_one *one =
			q->sources[i].tap >= 0 ? s->taps->taps[q->sources[i].tap] : NULL;

		if (one != NULL && pl_taps_may_push(one) && one->options.rules.n > 0)
			q->stats.in_kernel = FILTERS;
	}
}

static void push_tap(
	struct pl_taps_one *one, struct pl_standing_query *const *queries, unsigned int n)
{
	struct pl_standing_query *only = only_reader(queries, n, (int)one->index);
	struct pl_tap_rules rules;

	rules_for(one, queries, n, &rules);
	if (only != NULL && only->n_sources > 1)
		only = NULL;
	/* Viewers of taps' records were promised records of all packets. */
	if (one->all->watch != NULL && pl_watch_wants_tapped(one->all->watch)) {
		rules.n = 0;
		only = NULL;
	}
	if (!one->all->began) {
		one->options.plan = NULL;
		if (only != NULL && pl_taps_may_push(one) &&
			pl_query_push_plan(only->query, false, one->options.sources,
				one->options.n_sources, &one->plan, NULL))
			one->options.plan = &one->plan;
	} else if (only == NULL || !only->counted) {
		/* The query that had packets counted is still there to get the last counts. */
		pl_taps_stop_counts(one);
	}
	pl_taps_push(one, &rules);
}

void pl_standing_push(
	struct pl_standing *s, struct pl_standing_query *const *queries, unsigned int n)
{
	for (unsigned int i = 0; i < s->taps->n; i++)
		push_tap(s->taps->taps[i], queries, n);
	for (unsigned int i = 0; i < n; i++)
		note(s, queries[i]);
}

static void push_again(void *arg)
{
	struct pl_standing *s = arg;

	pl_standing_push(s, s->queries, s->n);
}

void pl_standing_push_again(struct pl_standing *s)
{
	pl_runtime_visit(push_again, s);
	pl_standing_tell_pushed(s->queries, s->n);
}

void pl_standing_tell_pushed(struct pl_standing_query *const *queries, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct pl_standing_query *q = queries[i];
		struct pl_buf by;

		if (q->stats.in_kernel == q->pushed_told)
			continue;
		q->pushed_told = q->stats.in_kernel;
		pl_buf_init(&by);
		if (q->stats.in_kernel == COUNTS) {
			pl_query_push_counts_text(q->query, &by);
			pl_buf_str(&by, pl_query_gives_windows(q->query) ? " and window" : "");
		}
		pl_info("query", "%s: %s%.*s", q->name,
			q->stats.in_kernel == COUNTS    ? "the kernel counts its packets by "
			: q->stats.in_kernel == FILTERS ? "the kernel filters its packets"
							: "the kernel makes records of all packets",
			(int)by.len, by.data != NULL ? by.data : "");
		pl_buf_done(&by);
	}
}

/* ---- what taps tell ---- */

void pl_standing_passed(void *standing, unsigned int tap, uint64_t ts_ns)
{
	const struct pl_standing *s = standing;

	for (unsigned int i = 0; i < s->n; i++) {
		const struct pl_standing_query *q = s->queries[i];
		const struct pl_standing_source *source = source_of(q, (int)tap);

		if (source == NULL)
			continue;
		/* Set the clock first, so that the time is not ahead of it. */
		pl_query_clock(q->run, pl_clock_real_ns());
		(void)pl_query_passed(q->run, PL_FLAT_PKT64, ts_ns, source->partition);
		(void)pl_query_passed(q->run, PL_FLAT_PKT96, ts_ns, source->partition);
	}
}

void pl_standing_counts(
	void *standing, unsigned int tap, const struct pl_tap_count *counts, uint32_t n)
{
	const struct pl_standing *s = standing;

	for (unsigned int i = 0; i < s->n; i++) {
		struct pl_standing_query *q = s->queries[i];

		if (!q->counted || source_of(q, (int)tap) == NULL)
			continue;
		pl_query_clock(q->run, pl_clock_real_ns());
		(void)pl_query_feed_counts(q->run, counts, n);
	}
}

void pl_standing_counting(void *standing, unsigned int tap, bool on)
{
	struct pl_standing *s = standing;

	for (unsigned int i = 0; i < s->n; i++) {
		struct pl_standing_query *q = s->queries[i];

		if (source_of(q, (int)tap) == NULL || q->counted == on)
			continue;
		q->counted = on;
		pl_query_told(q->run, on);
		note(s, q);
	}
}
