/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules on values of a region, by times of the test's own: when an event begins and ends, with what
 * value and how long; holds to the nanosecond; rates; places beyond the room; what ends because a
 * file, a rule or a key is no more.
 */
#include "pipeline/region_alerts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "memory/store.h"

#define S UINT64_C(1000000000)

static struct pl_event room[16], events[8192];
static unsigned int n_events;
static uint64_t told[PL_EVENT_KIND_MAX];
static struct pl_event_batch batch;
static struct pl_region_alerts *alerts;

static void take(struct pl_event_batch *b, void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < b->n && n_events < 8192; i++)
		events[n_events++] = b->events[i];
	b->n = 0;
}

static struct pl_region_alert_out at(uint64_t now_ns)
{
	return (struct pl_region_alert_out){ &batch, told, now_ns, now_ns + 7 };
}

static void begin(const struct pl_region_alert_rules *rules, uint32_t primitive)
{
	pl_region_alerts_free(alerts);
	batch = (struct pl_event_batch){ .events = room, .cap = 16, .flush = take };
	memset(told, 0, sizeof(told));
	n_events = 0;
	if (!ok(pl_region_alerts_new(&alerts, "last", rules) == 0, "rules"))
		exit(1);
	pl_region_alerts_primitive(alerts, primitive);
}

static void value(uint64_t now_ns, uint64_t place, uint64_t v)
{
	const struct pl_region_seen seen = { .place = place, .value = v };
	const struct pl_region_alert_out out = at(now_ns);

	pl_region_alerts_value(alerts, &seen, &out);
}

static void grow(uint64_t now_ns, uint64_t place, uint64_t v, uint64_t increase)
{
	const struct pl_region_seen seen = { .place = place, .value = v, .increase = increase };
	const struct pl_region_alert_out out = at(now_ns);

	pl_region_alerts_value(alerts, &seen, &out);
}

static void reading(uint64_t now_ns)
{
	const struct pl_region_alert_out out = at(now_ns);

	pl_region_alerts_read(alerts, &out);
	take(&batch, NULL);
}

/* The events so far, and none from now on. */
static const char *said(void)
{
	static char text[512];
	size_t n = 0;

	take(&batch, NULL);
	text[0] = '\0';
	for (unsigned int i = 0; i < n_events && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %s %" PRIu64 "=%" PRIu64,
			i > 0 ? ", " : "", pl_event_kind_name(events[i].event),
			pl_form_word(PL_FORM_PHASE, events[i].phase),
			pl_event_get_place(&events[i]), events[i].value);
	n_events = 0;
	return text;
}

static void says(const char *want, const char *what)
{
	const char *is = said();

	ok(strcmp(is, want) == 0, "%s (%s)", what, is);
}

static struct pl_region_alert_rules rules_of(uint64_t begin_hold_ns, uint64_t end_hold_ns)
{
	return (struct pl_region_alert_rules){ .begin_hold_ns = begin_hold_ns,
		.end_hold_ns = end_hold_ns,
		.idle_ns = 5 * S,
		.forget_ns = 600 * S };
}

static struct pl_region_alert_bound bound(uint64_t at_value, uint64_t back)
{
	return (struct pl_region_alert_bound){ true, at_value, back };
}

/* ---- the rules of a configuration ---- */

static void configured(void)
{
	struct pl_config_region c = { .alert = { .above = (char *)"100",
					      .low = (char *)"80",
					      .below = (char *)"0x10",
					      .begin_hold_ns = 3,
					      .end_hold_ns = 4 } };
	struct pl_region_alert_rules r;

	ok(pl_region_alert_rules(&r, &c, 5, 6), "a region with rules");
	ok(r.above.on && r.above.at == 100 && r.above.back == 80, "above");
	ok(r.below.on && r.below.at == 16 && r.below.back == 16,
		"below, without a bound for its end");
	ok(!r.rate.on, "no rate");
	ok(r.begin_hold_ns == 3 && r.end_hold_ns == 4 && r.idle_ns == 5 && r.forget_ns == 6,
		"times");
	memset(&c.alert, 0, sizeof(c.alert));
	ok(!pl_region_alert_rules(&r, &c, 5, 6), "a region without");
	c.alert.above = (char *)"0";
	ok(pl_region_alert_rules(&r, &c, 5, 6) && r.above.on && r.above.at == 0,
		"above 0 is a rule");
}

/* ---- above and below ---- */

static void slots(void)
{
	struct pl_region_alert_rules r = rules_of(0, S);

	r.above = bound(100, 80);
	r.below = bound(10, 20);
	begin(&r, PL_KEY_WRITE);
	value(1 * S, 5, 100);
	value(1 * S, 6, 10);
	value(1 * S, 7, 50);
	reading(1 * S);
	says("", "values at the bounds are no event");
	eq(pl_region_alerts_raised(alerts), 0);
	value(2 * S, 5, 101);
	value(2 * S, 6, 9);
	says("value_high begin 5=101, value_low begin 6=9", "one above and one below");
	reading(2 * S);
	eq(pl_region_alerts_raised(alerts), 2);
	value(3 * S, 5, 700);
	value(3 * S, 6, 3);
	reading(3 * S);
	value(4 * S, 5, 81);
	value(4 * S, 6, 19);
	reading(9 * S);
	says("", "between the bounds both go on, without end");
	value(10 * S, 5, 80);
	value(10 * S, 6, 20);
	reading(10 * S);
	reading(11 * S - 1);
	says("", "the end is held");
	reading(11 * S);
	says("value_high end 5=700, value_low end 6=3", "and told with the farthest values");
	eq(pl_region_alerts_raised(alerts), 0);
	eq(told[PL_EVENT_VALUE_HIGH], 2, "events are counted by kind");
	eq(told[PL_EVENT_VALUE_LOW], 2);
}

static void fields(void)
{
	struct pl_region_alert_rules r = rules_of(0, S);
	const struct pl_region_seen seen = { .place = 9, .value = 300, .key = "10.0.0.1" };
	const struct pl_region_alert_out out = at(10 * S);
	struct pl_text32 region;
	struct pl_text40 key;

	r.above = bound(100, 100);
	begin(&r, PL_KEY_WRITE);
	pl_region_alerts_value(alerts, &seen, &out);
	take(&batch, NULL);
	region = pl_event_get_region(&events[0]);
	key = pl_event_get_key(&events[0]);
	ok(strcmp(region.c, "last") == 0 && strcmp(key.c, "10.0.0.1") == 0, "region and key");
	ok(events[0].ts_ns == 10 * S + 7 && events[0].threshold == 100 &&
			events[0].record_version == PL_RECORD_VERSION,
		"time, bound and version");
	ok(events[0].present == (uint32_t)(PL_EVENT_HAS_value | PL_EVENT_HAS_threshold |
					   PL_EVENT_HAS_region | PL_EVENT_HAS_key),
		"and nothing else");
	value(13 * S, 9, 4);
	reading(14 * S);
	take(&batch, NULL);
	ok(n_events == 2 && pl_event_get_duration_ns(&events[1]) == 3 * S &&
			(events[1].present & PL_EVENT_HAS_duration_ns) != 0,
		"the end says how long, without the hold");
}

static void holds(void)
{
	struct pl_region_alert_rules r = rules_of(5 * S, 2 * S);

	r.above = bound(100, 100);
	begin(&r, PL_KEY_WRITE);
	value(10 * S, 1, 101);
	reading(10 * S);
	reading(15 * S - 1);
	says("", "a value that stands for less than the hold");
	reading(15 * S);
	says("value_high begin 1=101", "to the nanosecond");
	value(20 * S, 1, 100);
	reading(20 * S);
	value(21 * S, 1, 150);
	reading(21 * S);
	value(22 * S, 1, 7);
	reading(22 * S);
	reading(24 * S - 1);
	says("", "a relapse: the hold of the end begins again");
	reading(24 * S);
	says("value_high end 1=150", "and then the end");
	value(30 * S, 1, 101);
	reading(30 * S);
	value(34 * S, 1, 99);
	reading(34 * S);
	value(36 * S, 1, 101);
	reading(36 * S);
	says("", "one that falls within the hold was none");
}

/* Entries of a list are samples. */
static void lists(void)
{
	struct pl_region_alert_rules r = rules_of(0, S);

	r.above = bound(1000, 1000);
	begin(&r, PL_APPEND);
	value(1 * S, 3, 5);
	value(1 * S, 3, 900000);
	value(1 * S, 3, 7);
	reading(1 * S);
	says("value_high begin 3=900000", "a spike between two entries of one reading");
	reading(2 * S);
	says("value_high end 3=900000", "its end");
	value(10 * S, 3, 2000);
	reading(10 * S);
	says("value_high begin 3=2000", "an entry above");
	reading(15 * S - 1);
	says("", "and no more entries");
	reading(15 * S);
	says("value_high end 3=2000", "the end after idle");
	r.begin_hold_ns = 2 * S;
	begin(&r, PL_APPEND);
	value(20 * S, 3, 2000);
	reading(20 * S);
	reading(22 * S);
	reading(23 * S);
	says("", "a hold takes entries, not time alone");
	value(23 * S, 3, 2001);
	says("value_high begin 3=2001", "which go on above");
	value(23 * S, 4, 9000);
	says("", "lists are apart");
}

/* ---- rates ---- */

static void counters(void)
{
	struct pl_region_alert_rules r = rules_of(0, S);

	r.rate = bound(100, 100);
	begin(&r, PL_COUNTERS);
	grow(1 * S, 8, 100000, 100000);
	reading(1 * S);
	says("", "nothing is known of the time before the first reading");
	grow(3 * S, 8, 100200, 200);
	grow(3 * S, 9, 201, 201);
	reading(3 * S);
	says("value_rate begin 9=101", "more than 100 a second, and no less, over two seconds");
	grow(4 * S, 9, 5201, 5000);
	reading(4 * S);
	reading(5 * S);
	says("", "the end is held");
	reading(6 * S);
	says("value_rate end 9=5000", "what is not found has not grown");
	grow(7 * S, 9, 5301, 100);
	reading(7 * S);
	says("", "as fast as the bound is no event");
	eq(pl_region_alerts_refused(alerts), 0);
}

static void growing_values(void)
{
	struct pl_region_alert_rules r = rules_of(0, S);

	r.rate = bound(100, 100);
	begin(&r, PL_KEY_WRITE);
	value(1 * S, 2, 1000000);
	reading(1 * S);
	says("", "a first value has no rate");
	for (uint64_t t = 2; t < 6; t++)
		reading(t * S);
	value(6 * S, 2, 1000500);
	reading(6 * S);
	says("", "100 a second from one value to the next");
	value(7 * S, 2, 1000601);
	reading(7 * S);
	says("value_rate begin 2=101", "more than that");
	value(8 * S, 2, 5);
	reading(8 * S);
	reading(9 * S);
	says("value_rate end 2=101", "a value that began anew does not grow");
	value(10 * S, 2, 500005);
	reading(10 * S);
	says("value_rate begin 2=250000", "and grows again");
	reading(14 * S);
	says("", "without new values it goes on");
	reading(15 * S);
	reading(16 * S);
	says("value_rate end 2=250000", "until idle, and the hold of the end");
}

/* ---- room, and what is no more ---- */

static void full(void)
{
	struct pl_region_alert_rules r = rules_of(0, S);

	r.above = bound(100, 100);
	begin(&r, PL_KEY_WRITE);
	for (uint64_t i = 0; i < PL_REGION_PLACES + 10; i++)
		value(1 * S, i * 4096, 101);
	take(&batch, NULL);
	eq(n_events, PL_REGION_PLACES, "as many places as there is room for");
	eq(pl_region_alerts_refused(alerts), 10, "the others are counted");
	n_events = 0;
	for (uint64_t i = 0; i < PL_REGION_PLACES; i++)
		value(2 * S, i * 4096, 1);
	reading(2 * S);
	reading(3 * S);
	eq(n_events, PL_REGION_PLACES, "all of them end");
	n_events = 0;
	value(4 * S, 77, 101);
	says("value_high begin 77=101", "and give their room back");

	r.rate = bound(1000, 1000);
	begin(&r, PL_KEY_WRITE);
	for (uint64_t i = 0; i < PL_REGION_PLACES + 10; i++)
		value(1 * S, i, 5);
	reading(1 * S);
	eq(pl_region_alerts_refused(alerts), 10, "places that only have a value are bounded, too");
	value(2 * S, 99999, 101);
	says("value_high begin 99999=101", "they give way to one that is beyond a bound");
	eq(pl_region_alerts_refused(alerts), 10);
}

static void gone(void)
{
	struct pl_region_alert_rules r = rules_of(0, S);
	struct pl_region_alert_out out;

	r.above = bound(100, 100);
	begin(&r, PL_KEY_WRITE);
	value(1 * S, 1, 101);
	reading(1 * S);
	out = at(6 * S - 1);
	pl_region_alerts_unread(alerts, &out);
	says("value_high begin 1=101", "a region that cannot be read");
	out = at(6 * S);
	pl_region_alerts_unread(alerts, &out);
	says("value_high end 1=101", "what nothing is heard of ends after idle");

	value(7 * S, 1, 102);
	reading(7 * S);
	pl_region_alerts_turn(alerts, false);
	reading(11 * S);
	says("value_high begin 1=102", "an epoch: the slot is empty");
	reading(12 * S);
	says("value_high end 1=102", "unless it is written again");

	value(20 * S, 1, 103);
	reading(20 * S);
	(void)said();
	r.above.on = false;
	pl_region_alerts_set(alerts, &r);
	ok(!pl_region_alerts_on(alerts), "no rule");
	reading(21 * S);
	says("value_high end 1=103", "a rule that was taken away ends what it began");
	eq(pl_region_alerts_raised(alerts), 0);

	r.above = bound(100, 100);
	begin(&r, PL_COUNTERS);
	grow(1 * S, 1, 101, 101);
	reading(1 * S);
	pl_region_alerts_turn(alerts, true);
	reading(2 * S);
	reading(3 * S);
	says("value_high begin 1=101, value_high end 1=101", "counters of a new epoch are zero");
	grow(4 * S, 1, 200, 200);
	(void)said();
	out = at(5 * S);
	pl_region_alerts_end(alerts, &out);
	says("value_high end 1=200", "a region that is not read any more");
}

static void keys(void)
{
	struct pl_region_alert_rules r = rules_of(0, S);
	struct pl_region_seen seen = { .place = 1, .value = 500, .key = "a" };
	struct pl_region_alert_out out = at(S);

	r.above = bound(100, 100);
	begin(&r, PL_KEY_WRITE);
	pl_region_alerts_value(alerts, &seen, &out);
	(void)said();
	seen.key = "b";
	out = at(2 * S);
	pl_region_alerts_value(alerts, &seen, &out);
	take(&batch, NULL);
	ok(n_events == 2 && events[0].phase == PL_PHASE_END && events[1].phase == PL_PHASE_BEGIN,
		"another key in the slot: the event of the first ends, and one of its own begins");
	ok(n_events == 2 && strcmp(pl_event_get_key(&events[0]).c, "a") == 0 &&
			strcmp(pl_event_get_key(&events[1]).c, "b") == 0,
		"each with its key");
}

static bool holds_seven(void *arg, uint64_t slot, uint32_t check)
{
	(void)arg;
	return slot == 40 && check == 7;
}

/* A key whose slot another one took, whose value was found in another of its slots. */
static void taken(void)
{
	struct pl_region_alert_rules r = rules_of(0, S);
	struct pl_region_seen seen = {
		.place = 1, .value = 500, .held = true, .slot = 40, .check = 7
	};
	struct pl_region_alert_out out = at(S);

	r.above = bound(100, 100);
	begin(&r, PL_KEY_WRITE);
	pl_region_alerts_value(alerts, &seen, &out);
	pl_region_alerts_check(alerts, holds_seven, NULL, &out);
	reading(S);
	says("value_high begin 1=500", "a key that has its slot");
	seen.place = 2;
	seen.check = 8;
	out = at(2 * S);
	pl_region_alerts_value(alerts, &seen, &out);
	pl_region_alerts_check(alerts, holds_seven, NULL, &out);
	reading(2 * S);
	says("value_high begin 2=500, value_high end 2=500",
		"another key has the slot: it is over");
	eq(pl_region_alerts_raised(alerts), 1, "the first goes on");
	value(3 * S, 3, 600);
	out = at(3 * S);
	pl_region_alerts_check(alerts, holds_seven, NULL, &out);
	says("value_high begin 3=600", "where no slot is known, nothing is over");
}

int main(void)
{
	configured();
	slots();
	fields();
	holds();
	lists();
	counters();
	growing_values();
	full();
	gone();
	keys();
	taken();
	pl_region_alerts_free(alerts);
	return pl_test_done();
}
