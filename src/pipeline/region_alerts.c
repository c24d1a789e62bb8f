/* SPDX-License-Identifier: BSD-2-Clause */
/* Applies the rules on the values of a region. */
#include "pipeline/region_alerts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "core/detect_core.h"
#include "memory/store.h"

#define SECOND  UINT64_C(1000000000)
#define BUCKETS PL_REGION_PLACES
#define NOWHERE UINT32_MAX
#define LOOKS   64 /* most places examined for one to give up */

enum { ABOVE, BELOW, RATE, LEVELS };

static const uint8_t kinds[LEVELS] = { PL_EVENT_VALUE_HIGH, PL_EVENT_VALUE_LOW,
	PL_EVENT_VALUE_RATE };

struct place {
	uint64_t place;
	uint64_t value, base;         /* newest value, and value of the last rate */
	uint64_t base_ns, changed_ns; /* of the last rate; of the newest value */
	uint64_t heard_ns;            /* last time at which its value was known */
	uint64_t grown;               /* of a counter, in this reading */
	struct pl_core_level level[LEVELS];
	uint32_t next; /* in its bucket, or in the free list */
	bool used;
	bool stands;   /* the place still has the value */
	bool has_base; /* there is a value to compute a rate from */
	bool fresh;    /* a value was read in this reading */
	bool held;     /* the key with this check value was in this slot */
	uint32_t check;
	uint64_t slot;
	char key[sizeof(struct pl_text40)];
};

struct pl_region_alerts {
	struct pl_text32 region;
	struct pl_region_alert_rules rules;
	struct pl_core_level_rule level[LEVELS];
	bool lists, counters;
	uint64_t read_ns; /* end of the last reading; 0: none */
	uint64_t raised, refused;
	uint32_t hand;         /* index at which the search for a place to free begins */
	uint32_t free, top, n; /* free: head of the free list; top: the first place never used */
	uint32_t bucket[BUCKETS];
	struct place of[PL_REGION_PLACES];
};

/* ---- rules ---- */

static struct pl_region_alert_bound bound_of(const char *at, const char *back)
{
	struct pl_region_alert_bound b = { .on = at != NULL };

	/* The configuration was checked. */
	if (b.on && pl_parse_u64(at, &b.at) < 0)
		b.on = false;
	if (b.on && (back == NULL || pl_parse_u64(back, &b.back) < 0))
		b.back = b.at;
	return b;
}

bool pl_region_alert_rules(struct pl_region_alert_rules *ret, const struct pl_config_region *c,
	uint64_t idle_ns, uint64_t forget_ns)
{
	*ret = (struct pl_region_alert_rules){
		.above = bound_of(c->alert.above, c->alert.low),
		.below = bound_of(c->alert.below, c->alert.high),
		.rate = bound_of(c->alert.rate, NULL),
		.begin_hold_ns = c->alert.begin_hold_ns,
		.end_hold_ns = c->alert.end_hold_ns,
		.idle_ns = idle_ns,
		.forget_ns = forget_ns,
	};
	return ret->above.on || ret->below.on || ret->rate.on;
}

static struct pl_core_level_rule level_rule(
	const struct pl_region_alert_rules *r, uint64_t at, uint64_t back)
{
	return (struct pl_core_level_rule){ at, back, r->begin_hold_ns, r->end_hold_ns };
}

void pl_region_alerts_set(struct pl_region_alerts *a, const struct pl_region_alert_rules *r)
{
	a->rules = *r;
	a->level[ABOVE] = level_rule(r, r->above.at, r->above.back);
	/* Complements, so that this level also begins above a bound. */
	a->level[BELOW] = level_rule(r, ~r->below.at, ~r->below.back);
	a->level[RATE] = level_rule(r, r->rate.at, r->rate.back);
}

static bool is_on(const struct pl_region_alerts *a, unsigned int level)
{
	return level == ABOVE   ? a->rules.above.on
	       : level == BELOW ? a->rules.below.on
				: a->rules.rate.on;
}

bool pl_region_alerts_on(const struct pl_region_alerts *a)
{
	return a->rules.above.on || a->rules.below.on || a->rules.rate.on;
}

int pl_region_alerts_new(struct pl_region_alerts **ret, const char *region,
	const struct pl_region_alert_rules *rules)
{
	struct pl_region_alerts *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return -ENOMEM;
	snprintf(a->region.c, sizeof(a->region.c), "%s", region);
	memset(a->bucket, 0xff, sizeof(a->bucket));
	a->free = NOWHERE;
	pl_region_alerts_set(a, rules);
	*ret = a;
	return 0;
}

void pl_region_alerts_free(struct pl_region_alerts *a)
{
	free(a);
}

void pl_region_alerts_primitive(struct pl_region_alerts *a, uint32_t primitive)
{
	a->lists = primitive == PL_APPEND;
	a->counters = primitive == PL_COUNTERS;
}

uint64_t pl_region_alerts_raised(const struct pl_region_alerts *a)
{
	return a->raised;
}

uint64_t pl_region_alerts_refused(const struct pl_region_alerts *a)
{
	return a->refused;
}

/* ---- places ---- */

static uint32_t *bucket_of(struct pl_region_alerts *a, uint64_t place)
{
	return &a->bucket[(place * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

_Static_assert(BUCKETS == 1 << 12, "the upper 12 bits choose");

static struct place *find(struct pl_region_alerts *a, uint64_t place)
{
	uint32_t i = *bucket_of(a, place);

	while (i != NOWHERE && a->of[i].place != place)
		i = a->of[i].next;
	return i != NOWHERE ? &a->of[i] : NULL;
}

static struct place *make(struct pl_region_alerts *a, uint64_t place)
{
	uint32_t *bucket = bucket_of(a, place), i = a->free;

	if (i != NOWHERE)
		a->free = a->of[i].next;
	else if (a->top < PL_REGION_PLACES)
		i = a->top++;
	else
		return NULL;
	a->of[i] = (struct place){ .place = place, .next = *bucket, .used = true };
	*bucket = i;
	a->n++;
	return &a->of[i];
}

static void let_go(struct pl_region_alerts *a, struct place *p)
{
	const uint32_t i = (uint32_t)(p - a->of);
	uint32_t *at = bucket_of(a, p->place);

	while (*at != i)
		at = &a->of[*at].next;
	*at = p->next;
	p->used = false;
	p->next = a->free;
	a->free = i;
	a->n--;
}

static bool is_quiet(const struct place *p)
{
	return p->level[ABOVE].state == PL_CORE_IDLE && p->level[BELOW].state == PL_CORE_IDLE &&
	       p->level[RATE].state == PL_CORE_IDLE;
}

/* ---- events ---- */

static void tell(struct pl_region_alerts *a, const struct place *p, unsigned int level,
	uint32_t change, uint64_t value, const struct pl_region_alert_out *out)
{
	const struct pl_core_level *s = &p->level[level];
	const struct pl_region_alert_bound *bounds[LEVELS] = { &a->rules.above, &a->rules.below,
		&a->rules.rate };
	struct pl_event_batch *b = out->events;
	struct pl_event e = {
		.ts_ns = out->ts_ns, .event = kinds[level], .record_version = PL_RECORD_VERSION
	};
	struct pl_text40 key = { "" };

	if (change == PL_CORE_BEGIN) {
		a->raised++;
		e.phase = PL_PHASE_BEGIN;
		e.value = value;
		e.threshold = bounds[level]->at;
		e.present = PL_EVENT_HAS_threshold;
	} else {
		a->raised--;
		e.phase = PL_PHASE_END;
		e.value = level == BELOW ? ~s->max : s->max;
		pl_event_set_duration_ns(&e, pl_core_level_lasted(s, out->now_ns));
	}
	e.present |= PL_EVENT_HAS_value;
	pl_event_set_region(&e, a->region);
	pl_event_set_place(&e, p->place);
	if (p->key[0] != '\0') {
		memcpy(key.c, p->key, sizeof(key.c));
		pl_event_set_key(&e, key);
	}
	if (out->told != NULL)
		out->told[e.event]++;
	if (b->n == b->cap)
		b->flush(b, b->flush_arg);
	b->events[b->n++] = e;
}

static void step(struct pl_region_alerts *a, struct place *p, unsigned int level, uint64_t value,
	const struct pl_region_alert_out *out)
{
	uint32_t change;

	if (!is_on(a, level))
		return;
	change = pl_core_level_step(
		&p->level[level], &a->level[level], level == BELOW ? ~value : value, out->now_ns);
	if (change != PL_CORE_NONE)
		tell(a, p, level, change, value, out);
}

static void drop(struct pl_region_alerts *a, struct place *p, unsigned int level,
	const struct pl_region_alert_out *out)
{
	if (pl_core_level_drop(&p->level[level]) == PL_CORE_END)
		tell(a, p, level, PL_CORE_END, 0, out);
}

/* ---- values ---- */

/* Returns whether the growth in this time is more than the bound. */
static bool is_faster(uint64_t growth, uint64_t ns, uint64_t bound)
{
	return (unsigned __int128)growth * SECOND > (unsigned __int128)bound * ns;
}

/* Returns growth per second, rounded up: above a bound if the growth is. ns: not 0. */
static uint64_t rate_of(uint64_t growth, uint64_t ns)
{
	const unsigned __int128 rate = ((unsigned __int128)growth * SECOND + ns - 1) / ns;

	return rate > UINT64_MAX ? UINT64_MAX : (uint64_t)rate;
}

/* Returns whether a value is beyond a limit, so that an event begins. A counter's rate is computed
 * at the end of the reading, later than now: then it is at most as high as now. */
static bool is_beyond(
	const struct pl_region_alerts *a, const struct pl_region_seen *seen, uint64_t now_ns)
{
	const struct pl_region_alert_rules *r = &a->rules;

	return (r->above.on && seen->value > r->above.at) ||
	       (r->below.on && seen->value < r->below.at) ||
	       (r->rate.on && a->counters && a->read_ns != 0 &&
		       is_faster(seen->increase, pl_core_elapsed(now_ns, a->read_ns), r->rate.at));
}

/* Makes a place for a value, if needed. Places that only wait for the next value of a rate are
 * given up for a value that begins an event. */
static struct place *make_needed(
	struct pl_region_alerts *a, const struct pl_region_seen *seen, uint64_t now_ns)
{
	const bool beyond = is_beyond(a, seen, now_ns);
	struct place *p;

	if (!beyond && (!a->rules.rate.on || a->counters))
		return NULL;
	p = make(a, seen->place);
	for (unsigned int i = 0; p == NULL && beyond && i < LOOKS; i++) {
		struct place *old = &a->of[a->hand++ % PL_REGION_PLACES];

		if (!is_quiet(old))
			continue;
		let_go(a, old);
		p = make(a, seen->place);
	}
	a->refused += p == NULL;
	return p;
}

/* Ends the states of the key that had the slot before. */
static void other_key(struct pl_region_alerts *a, struct place *p, const char *key,
	const struct pl_region_alert_out *out)
{
	if (key == NULL ? p->key[0] == '\0' : strcmp(p->key, key) == 0)
		return;
	for (unsigned int i = 0; i < LEVELS; i++)
		drop(a, p, i, out);
	p->has_base = false;
	snprintf(p->key, sizeof(p->key), "%s", key != NULL ? key : "");
}

void pl_region_alerts_value(struct pl_region_alerts *a, const struct pl_region_seen *seen,
	const struct pl_region_alert_out *out)
{
	struct place *p = find(a, seen->place);

	if (p == NULL)
		p = make_needed(a, seen, out->now_ns);
	if (p == NULL)
		return;
	other_key(a, p, seen->key, out);
	p->value = seen->value;
	p->held = seen->held;
	p->slot = seen->slot;
	p->check = seen->check;
	p->grown += seen->increase;
	p->heard_ns = p->changed_ns = out->now_ns;
	p->stands = !a->lists;
	p->fresh = true;
	step(a, p, ABOVE, seen->value, out);
	step(a, p, BELOW, seen->value, out);
}

/* ---- readings ---- */

/* Steps the rate: of a counter at every reading, of others when there is a new value. */
static void step_rate(
	struct pl_region_alerts *a, struct place *p, const struct pl_region_alert_out *out)
{
	const bool known = a->counters ? a->read_ns != 0 : p->fresh && p->has_base;
	const uint64_t since_ns = a->counters ? a->read_ns : p->base_ns;
	const uint64_t growth = a->counters          ? p->grown
				: p->value > p->base ? p->value - p->base
						     : 0;

	if (known && out->now_ns > since_ns)
		step(a, p, RATE, rate_of(growth, out->now_ns - since_ns), out);
	else if (!a->counters && pl_core_elapsed(out->now_ns, p->changed_ns) >= a->rules.idle_ns)
		step(a, p, RATE, 0, out);
	else if (pl_core_level_wait(&p->level[RATE], &a->level[RATE], out->now_ns) == PL_CORE_END)
		tell(a, p, RATE, PL_CORE_END, 0, out);
	if (p->fresh) {
		p->base = p->value;
		p->base_ns = out->now_ns;
		p->has_base = true;
	}
	p->grown = 0;
	p->fresh = false;
}

/* Continues a level of a place without a new value. */
static void wait_level(struct pl_region_alerts *a, struct place *p, unsigned int level,
	const struct pl_region_alert_out *out)
{
	if (p->stands)
		step(a, p, level, p->value, out);
	else if (pl_core_level_wait(&p->level[level], &a->level[level], out->now_ns) == PL_CORE_END)
		tell(a, p, level, PL_CORE_END, 0, out);
}

static void end_unheard(
	struct pl_region_alerts *a, struct place *p, const struct pl_region_alert_out *out)
{
	if (pl_core_elapsed(out->now_ns, p->heard_ns) < a->rules.idle_ns)
		return;
	for (unsigned int i = 0; i < LEVELS; i++)
		drop(a, p, i, out);
}

static void read_place(
	struct pl_region_alerts *a, struct place *p, const struct pl_region_alert_out *out)
{
	const bool fresh = p->fresh;

	if (p->stands)
		p->heard_ns = out->now_ns;
	for (unsigned int i = 0; i < LEVELS; i++) {
		if (!is_on(a, i))
			drop(a, p, i, out);
	}
	/* The newest entry of a list was applied when it came. */
	if (!fresh || p->stands) {
		wait_level(a, p, ABOVE, out);
		wait_level(a, p, BELOW, out);
	}
	if (a->rules.rate.on)
		step_rate(a, p, out);
	p->fresh = false;
	end_unheard(a, p, out);
	if (is_quiet(p) &&
		(!a->rules.rate.on || a->counters ||
			pl_core_elapsed(out->now_ns, p->changed_ns) >= a->rules.forget_ns))
		let_go(a, p);
}

void pl_region_alerts_check(struct pl_region_alerts *a, pl_region_holds *holds, void *arg,
	const struct pl_region_alert_out *out)
{
	for (uint32_t i = 0; a->n > 0 && i < a->top; i++) {
		struct place *p = &a->of[i];

		if (!p->used || !p->held || holds(arg, p->slot, p->check))
			continue;
		for (unsigned int k = 0; k < LEVELS; k++)
			drop(a, p, k, out);
		let_go(a, p);
	}
}

void pl_region_alerts_read(struct pl_region_alerts *a, const struct pl_region_alert_out *out)
{
	for (uint32_t i = 0; a->n > 0 && i < a->top; i++) {
		if (a->of[i].used)
			read_place(a, &a->of[i], out);
	}
	a->read_ns = out->now_ns;
}

void pl_region_alerts_unread(struct pl_region_alerts *a, const struct pl_region_alert_out *out)
{
	for (uint32_t i = 0; a->raised > 0 && i < a->top; i++) {
		if (a->of[i].used)
			end_unheard(a, &a->of[i], out);
	}
	a->read_ns = 0;
}

void pl_region_alerts_turn(struct pl_region_alerts *a, bool emptied)
{
	for (uint32_t i = 0; a->n > 0 && i < a->top; i++) {
		struct place *p = &a->of[i];

		p->value = emptied ? 0 : p->value;
		p->stands = p->used && emptied;
		p->has_base = false;
	}
}

void pl_region_alerts_end(struct pl_region_alerts *a, const struct pl_region_alert_out *out)
{
	for (uint32_t i = 0; a->n > 0 && i < a->top; i++) {
		for (unsigned int k = 0; a->of[i].used && k < LEVELS; k++)
			drop(a, &a->of[i], k, out);
	}
}
