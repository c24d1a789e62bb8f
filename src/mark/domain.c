/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums results by segment and block, and judges each block once it is over. A window is one block,
 * chosen by the time of its deadline, so that points whose clocks are seconds apart share it, and
 * the block numbers of one point do not close the blocks of others. */
#include "mark/domain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 4u /* most periods that points' clocks may be ahead of ours */

struct window {
	uint64_t window; /* 0: not open */
	uint64_t close_ns;
};

struct pl_mark_domain {
	struct pl_mark_domain_config config;
	struct pl_mark_correlator *correlator;
	struct pl_mark_domain_stats stats;
	struct pl_mark_segment_state *segments;
	uint32_t n_segments;
	struct pl_mark_point_state *points;
	uint32_t n_points;
	struct window windows[PL_MARK_WINDOWS];
	uint64_t closed; /* newest window that is over */
	uint64_t now_ns;
};

const struct pl_stats pl_mark_domain_stats_list = {
	.rows =
		(const struct pl_stat[]){
#define PL_STAT(...) PL_STAT_ROW(struct pl_mark_domain_stats, __VA_ARGS__)
#include "mark/domain_stats.def"
#undef PL_STAT
		},
	.n = sizeof(struct pl_mark_domain_stats) / sizeof(uint64_t),
};

const struct pl_stats pl_mark_segment_book_list = {
	.rows =
		(const struct pl_stat[]){
#define PL_STAT(...) PL_STAT_ROW(struct pl_mark_segment_book, __VA_ARGS__)
#include "mark/segment_stats.def"
#undef PL_STAT
		},
	.n = sizeof(struct pl_mark_segment_book) / sizeof(uint64_t),
};

/* Most time from now to the deadline of a record. */
static uint64_t ahead_of(const struct pl_mark_domain_config *c)
{
	return c->wait_ns + AHEAD * c->period_ns;
}

/* ---- windows ---- */

/* Returns the window of blocks with this deadline, opening it if needed; NULL when the window is
 * over or its slot is still another's. */
static struct window *window_of(struct pl_mark_domain *d, uint64_t deadline_ns)
{
	const uint64_t window = deadline_ns / d->config.period_ns + 1;
	struct window *w = &d->windows[window % PL_MARK_WINDOWS];

	if (window <= d->closed)
		return NULL;
	/* All blocks that are waited for, or can be ahead, have room. */
	if (w->window != 0 && w->window != window)
		return NULL;
	if (w->window == 0)
		*w = (struct window){ window, deadline_ns };
	return w;
}

static uint64_t deadline_of(const struct pl_mark_domain *d, const struct pl_mark128 *r)
{
	const uint64_t at = pl_mark_read_at(r->method, r->block, r->period_ns) + d->config.wait_ns,
		       offset = r->tai_offset * UINT64_C(1000000000);

	return at > offset ? at - offset : 0;
}

/* ---- results ---- */

static void add_loss(struct pl_mark_sum *sum, const struct pl_mark_result *r)
{
	const uint64_t lost = r->loss > 0 ? (uint64_t)r->loss : 0;

	sum->counted++;
	sum->sent += r->sent;
	sum->received += r->received;
	sum->lost += lost;
	sum->surplus += r->loss < 0 ? 0 - (uint64_t)r->loss : 0;
	if (lost > sum->worst_lost) {
		sum->worst_lost = lost;
		sum->lossy = r->flow;
	}
}

static void add_delay(struct pl_mark_sum *sum, const struct pl_mark_result *r)
{
	const bool pulse = (r->has & PL_MARK_HAS_DELAY) != 0;
	const int64_t delay = pulse ? r->delay_ns : r->mean_ns;

	if ((r->alarms & PL_MARK_ALARM_STEPPED) != 0 ||
		(!pulse && (r->has & PL_MARK_HAS_MEAN) == 0))
		return;
	if (sum->delays == 0 || delay < sum->delay_least_ns)
		sum->delay_least_ns = delay;
	if (sum->delays == 0 || delay > sum->delay_most_ns) {
		sum->delay_most_ns = delay;
		sum->slow = r->flow;
	}
	sum->delays++;
	sum->delay_sum_ns += delay;
	if ((r->has & PL_MARK_HAS_JITTER) == 0)
		return;
	sum->jitters++;
	sum->jitter_sum_ns += (uint64_t)(r->jitter_ns < 0 ? -r->jitter_ns : r->jitter_ns);
}

static void add_sum(struct pl_mark_segment_book *to, const struct pl_mark_sum *s)
{
	to->results += s->flows;
	to->counted += s->counted;
	to->withheld += s->flows - s->counted;
	to->sent += s->sent;
	to->received += s->received;
	to->lost += s->lost;
	to->surplus += s->surplus;
	to->delays += s->delays;
	to->jitters += s->jitters;
}

static void take_result(void *arg, const struct pl_mark_result *r)
{
	struct pl_mark_domain *d = arg;
	struct pl_mark_segment_state *s = &d->segments[r->segment];
	const struct window *w = window_of(d, r->deadline_ns);
	struct pl_mark_sum alone = { .window = 0 }, *sum = &alone;

	for (unsigned int i = 0; i < PL_MARK_ALARM_KINDS; i++)
		s->alarms[i] += r->alarms >> i & 1;
	if (w != NULL) {
		sum = &s->open[w->window % PL_MARK_WINDOWS];
		if (sum->window != w->window)
			*sum = (struct pl_mark_sum){ .window = w->window, .block = r->block };
	}
	sum->flows++;
	sum->alarms |= r->alarms;
	if (pl_mark_result_is_sound(r))
		add_loss(sum, r);
	add_delay(sum, r);
	if (w == NULL)
		add_sum(&s->book, sum);
	if (d->config.result != NULL)
		d->config.result(d->config.arg, r);
}

/* ---- events ---- */

/* Makes the key of an event, "DOMAIN/name" of the segment or point `what`, cut if too long. */
static struct pl_text40 key_of(const struct pl_mark_domain *d, const char *what, uint32_t number)
{
	struct pl_text40 key = { "" };
	const int n = snprintf(key.c, sizeof(key.c), "%s/%s", d->config.name, what);

	if (n >= (int)sizeof(key.c))
		pl_mark_network_cut(key.c, sizeof(key.c), number);
	return key;
}

static void put_flow(struct pl_event *e, const struct pl_mark_flow *flow)
{
	e->src = flow->src;
	e->dst = flow->dst;
	e->proto = flow->proto;
	e->sport = flow->sport;
	e->dport = flow->dport;
	e->present |= PL_EVENT_HAS_src | PL_EVENT_HAS_sport;
}

static void tell(struct pl_mark_domain *d, struct pl_event *e, const struct pl_text40 *key)
{
	e->ts_ns = d->now_ns;
	e->record_version = PL_RECORD_VERSION;
	pl_event_set_key(e, *key);
	d->stats.events++;
	d->config.event(d->config.arg, e);
}

/* A value that a segment is judged by, and its bound. */
struct verdict {
	uint8_t kind; /* enum pl_event_kind */
	bool above;
	uint64_t value, threshold;
	bool adds;                       /* values of blocks are summed, else the largest counts */
	bool counts;                     /* the event has a value */
	const struct pl_mark_flow *flow; /* NULL: none */
};

static void judge(struct pl_mark_domain *d, struct pl_mark_level *level, const struct verdict *v,
	const struct pl_text40 *key)
{
	struct pl_event e = { .event = v->kind, .phase = PL_PHASE_BEGIN };

	if (v->above) {
		level->good = 0;
		level->value = v->adds                   ? level->value + v->value
			       : v->value > level->value ? v->value
							 : level->value;
		if (level->raised)
			return;
		level->raised = true;
		level->begun_ns = d->now_ns;
		if (v->counts) {
			e.value = v->value;
			e.threshold = v->threshold;
			e.present |=
				PL_EVENT_HAS_value |
				(v->kind != PL_EVENT_POINT_MISSING ? PL_EVENT_HAS_threshold : 0);
		}
		if (v->flow != NULL)
			put_flow(&e, v->flow);
		tell(d, &e, key);
		return;
	}
	if (!level->raised || ++level->good < d->config.end_after)
		return;
	e.phase = PL_PHASE_END;
	if (v->counts) {
		e.value = level->value;
		e.present |= PL_EVENT_HAS_value;
	}
	/* The clock may have been set back. */
	pl_event_set_duration_ns(&e, d->now_ns > level->begun_ns ? d->now_ns - level->begun_ns : 0);
	tell(d, &e, key);
	*level = (struct pl_mark_level){ .raised = false };
}

static void judge_loss(struct pl_mark_domain *d, struct pl_mark_segment_state *s)
{
	const struct pl_mark_sum *sum = &s->last;
	const double most = (double)sum->sent * d->config.loss_above / 100;
	const struct verdict v = { .kind = PL_EVENT_SEGMENT_LOSS,
		.above = sum->lost > 0 && (double)sum->lost > most,
		.value = sum->lost,
		.threshold = (uint64_t)most,
		.adds = true,
		.counts = true,
		.flow = &sum->lossy };

	if (sum->counted > 0)
		judge(d, &s->loss, &v, &s->key);
}

static void judge_delay(struct pl_mark_domain *d, struct pl_mark_segment_state *s)
{
	const struct pl_mark_sum *sum = &s->last;
	const uint64_t most = d->config.delay_above_ns;
	const struct verdict v = { .kind = PL_EVENT_SEGMENT_DELAY,
		.above = most != 0 && sum->delay_most_ns > 0 && (uint64_t)sum->delay_most_ns > most,
		.value = sum->delay_most_ns > 0 ? (uint64_t)sum->delay_most_ns : 0,
		.threshold = most,
		.counts = true,
		.flow = &sum->slow };

	if (sum->delays > 0)
		judge(d, &s->delay, &v, &s->key);
}

static void judge_alarms(struct pl_mark_domain *d, struct pl_mark_segment_state *s)
{
	const uint32_t alarms = s->last.alarms;
	const struct verdict clock = { .kind = PL_EVENT_SEGMENT_CLOCK,
		.above = (alarms & (PL_MARK_ALARM_CLOCK_DOMAIN | PL_MARK_ALARM_CLOCK_FAULT |
					   PL_MARK_ALARM_STEPPED | PL_MARK_ALARM_LATE_CHANGE |
					   PL_MARK_ALARM_BEYOND)) != 0 },
			     conflict = { .kind = PL_EVENT_MARK_CONFLICT,
				     .above = (alarms & PL_MARK_ALARM_IN_USE) != 0 };

	/* The clock of a point that did not report is unknown. */
	if (clock.above || (alarms & PL_MARK_ALARM_MISSING) == 0)
		judge(d, &s->clock, &clock, &s->key);
	if (conflict.above || (alarms & PL_MARK_ALARM_MISSING) == 0)
		judge(d, &s->conflict, &conflict, &s->key);
}

static void judge_point(
	struct pl_mark_domain *d, struct pl_mark_point_state *p, const struct window *w)
{
	const bool reported = p->windows[w->window % PL_MARK_WINDOWS] == w->window;
	const struct verdict v = { .kind = PL_EVENT_POINT_MISSING,
		.above = !reported,
		.value = 1,
		.adds = true,
		.counts = true };

	p->missed += !reported;
	judge(d, &p->missing, &v, &p->key);
}

static void close_window(struct pl_mark_domain *d, struct window *w, bool judged)
{
	for (uint32_t i = 0; judged && i < d->n_points; i++)
		judge_point(d, &d->points[i], w);
	for (uint32_t i = 0; i < d->n_segments; i++) {
		struct pl_mark_segment_state *s = &d->segments[i];
		const struct pl_mark_sum *sum = &s->open[w->window % PL_MARK_WINDOWS];

		if (sum->window != w->window)
			continue;
		s->last = *sum;
		add_sum(&s->book, sum);
		if (!judged)
			continue;
		judge_loss(d, s);
		judge_delay(d, s);
		judge_alarms(d, s);
	}
	d->closed = w->window;
	*w = (struct window){ .window = 0 };
}

static struct window *oldest(struct pl_mark_domain *d)
{
	struct window *found = NULL;

	for (uint32_t i = 0; i < PL_MARK_WINDOWS; i++) {
		struct window *w = &d->windows[i];

		if (w->window != 0 && (found == NULL || w->window < found->window))
			found = w;
	}
	return found;
}

static void close_all(struct pl_mark_domain *d)
{
	struct window *w;

	while ((w = oldest(d)) != NULL)
		close_window(d, w, false);
}

/* Begins again after the clock was set back: otherwise all records would be late until the old time
 * is reached again. */
static void begin_anew(struct pl_mark_domain *d, uint64_t now_ns)
{
	pl_mark_correlator_begin_anew(d->correlator, now_ns);
	close_all(d);
	d->closed = 0;
	for (uint32_t i = 0; i < d->n_points; i++)
		d->points[i].newest_block = 0;
	for (uint32_t i = 0; i < d->n_points; i++)
		d->points[i].lag_ns = d->points[i].lag_blocks = 0;
	d->stats.set_back++;
}

/* ---- outside ---- */

void pl_mark_domain_turn(struct pl_mark_domain *d, uint64_t now_ns)
{
	struct window *w;
	uint64_t longer;

	if (now_ns < d->now_ns && d->now_ns - now_ns > ahead_of(&d->config))
		begin_anew(d, now_ns);
	d->now_ns = now_ns;
	pl_mark_correlate_until(d->correlator, now_ns);
	longer = pl_mark_correlator_postponed(d->correlator) > 0 ? d->config.period_ns : 0;
	while ((w = oldest(d)) != NULL && w->close_ns + longer < now_ns)
		close_window(d, w, true);
}

void pl_mark_domain_finish(struct pl_mark_domain *d)
{
	pl_mark_correlate_until(d->correlator, UINT64_MAX);
	close_all(d);
}

uint64_t pl_mark_domain_due_ns(const struct pl_mark_domain *d)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t i = 0; i < PL_MARK_WINDOWS; i++) {
		if (d->windows[i].window != 0 && d->windows[i].close_ns < due)
			due = d->windows[i].close_ns;
	}
	if (due != UINT64_MAX && pl_mark_correlator_postponed(d->correlator) > 0)
		due += d->config.period_ns;
	return due == UINT64_MAX ? due : due + 1;
}

static bool is_allowed(const struct pl_mark_domain *d, const struct pl_addr *sender)
{
	static const struct pl_addr nobody;

	if (pl_addr_equal(sender, &nobody))
		return true;
	for (uint32_t i = 0; i < d->config.n_allow; i++) {
		if (pl_prefix_has(&d->config.allow[i], sender))
			return true;
	}
	return d->config.n_allow == 0;
}

static void note_late(struct pl_mark_domain *d, const struct pl_mark128 *r)
{
	for (uint32_t i = 0; i < d->n_points; i++)
		d->points[i].late += d->points[i].number == r->point;
}

/* Stores that the point of a record is present. */
static void note_point(struct pl_mark_domain *d, const struct pl_mark128 *r)
{
	const struct window *w = window_of(d, deadline_of(d, r));
	const uint64_t at = deadline_of(d, r) - d->config.wait_ns;

	for (uint32_t i = 0; i < d->n_points; i++) {
		struct pl_mark_point_state *p = &d->points[i];

		if (p->number != r->point)
			continue;
		p->records++;
		p->heard_ns = d->now_ns;
		pl_mark_note_lag(p, r->block, d->now_ns > at ? d->now_ns - at : 0);
		p->newest_block = r->block > p->newest_block ? r->block : p->newest_block;
		if (w != NULL)
			p->windows[w->window % PL_MARK_WINDOWS] = w->window;
	}
}

void pl_mark_domain_take(struct pl_mark_domain *d, const struct pl_addr *sender,
	const struct pl_mark128 *records, uint32_t n, bool torn, uint64_t now_ns)
{
	const struct pl_mark_correlator_stats *c = pl_mark_correlator_stats(d->correlator);

	d->stats.records += n;
	/* Blocks that are over by now are finished first: later records of them are late. */
	pl_mark_domain_turn(d, now_ns);
	if (!is_allowed(d, sender)) {
		d->stats.not_allowed += n;
		return;
	}
	if (torn)
		pl_mark_correlate_gap(d->correlator, sender);
	for (uint32_t i = 0; i < n; i++) {
		const struct pl_mark128 *r = &records[i];
		const uint64_t taken = c->taken, late = c->late;

		if (r->method != d->config.method || r->period_ns != d->config.period_ns) {
			d->stats.other_settings++;
			continue;
		}
		pl_mark_correlate_from(d->correlator, sender, r);
		if (c->taken != taken)
			note_point(d, r);
		else if (c->late != late)
			note_late(d, r);
	}
	for (uint32_t i = 0; torn && i < n; i++)
		pl_mark_correlate_torn(d->correlator, records[i].point, records[i].block);
}

static struct pl_mark_correlator_config correlator_config(const struct pl_mark_domain_config *c)
{
	return (struct pl_mark_correlator_config){ .segments = c->network->segments,
		.n_segments = c->network->n_segments,
		.blocks_max = c->blocks_max,
		.clock_ns = c->clock_ns,
		.patience_ns = c->wait_ns,
		.utc = true,
		.ahead_ns = ahead_of(c),
		.shares = true,
		.absent = true };
}

uint64_t pl_mark_domain_memory(const struct pl_mark_domain_config *c)
{
	const struct pl_mark_correlator_config of = correlator_config(c);

	return sizeof(struct pl_mark_domain) +
	       pl_mark_correlator_memory(&of, c->network->n_points) +
	       c->network->n_segments * sizeof(struct pl_mark_segment_state) +
	       c->network->n_points * sizeof(struct pl_mark_point_state);
}

static int make_states(struct pl_mark_domain *d)
{
	const struct pl_mark_network *w = d->config.network;

	d->segments = calloc(w->n_segments, sizeof(*d->segments));
	d->points = calloc(w->n_points, sizeof(*d->points));
	if (d->segments == NULL || d->points == NULL)
		return -ENOMEM;
	d->n_segments = w->n_segments;
	d->n_points = w->n_points;
	for (uint32_t i = 0; i < w->n_segments; i++) {
		struct pl_mark_segment_state *s = &d->segments[i];

		pl_mark_network_segment(w, i, s->name, sizeof(s->name));
		s->key = key_of(d, s->name, i);
	}
	for (uint32_t i = 0; i < w->n_points; i++) {
		memcpy(d->points[i].name, w->points[i].name, sizeof(d->points[i].name));
		d->points[i].number = w->points[i].number;
		d->points[i].key = key_of(d, d->points[i].name, i);
	}
	return 0;
}

int pl_mark_domain_new(struct pl_mark_domain **ret, const struct pl_mark_domain_config *config,
	struct pl_diag *diag)
{
	struct pl_mark_correlator_config of = correlator_config(config);
	struct pl_mark_domain *d;
	int r;

	if (config->period_ns == 0 || config->wait_ns / config->period_ns >= PL_MARK_WAIT_MOST)
		return pl_diag_fail(diag, -EINVAL,
			"records are waited for during %u periods at most", PL_MARK_WAIT_MOST);
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return -ENOMEM;
	d->config = *config;
	of.result = take_result;
	of.arg = d;
	r = make_states(d);
	if (r == 0)
		r = pl_mark_correlator_new(&d->correlator, &of, diag);
	if (r < 0) {
		pl_mark_domain_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

void pl_mark_domain_free(struct pl_mark_domain *d)
{
	if (d == NULL)
		return;
	pl_mark_correlator_free(d->correlator);
	free(d->segments);
	free(d->points);
	free(d);
}

void pl_mark_domain_change(struct pl_mark_domain *d, const struct pl_mark_domain_config *config)
{
	struct pl_mark_domain_config *c = &d->config;

	c->clock_ns = config->clock_ns;
	c->loss_above = config->loss_above;
	c->delay_above_ns = config->delay_above_ns;
	c->end_after = config->end_after;
	c->allow = config->allow;
	c->n_allow = config->n_allow;
	pl_mark_correlator_set_clock(d->correlator, config->clock_ns);
}

const struct pl_mark_domain_stats *pl_mark_domain_stats(const struct pl_mark_domain *d)
{
	return &d->stats;
}

const struct pl_mark_correlator_stats *pl_mark_domain_correlated(const struct pl_mark_domain *d)
{
	return pl_mark_correlator_stats(d->correlator);
}

const struct pl_mark_segment_state *pl_mark_domain_segments(
	const struct pl_mark_domain *d, uint32_t *ret_n)
{
	*ret_n = d->n_segments;
	return d->segments;
}

const struct pl_mark_point_state *pl_mark_domain_points(
	const struct pl_mark_domain *d, uint32_t *ret_n)
{
	*ret_n = d->n_points;
	return d->points;
}
