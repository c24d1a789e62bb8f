/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules on the values of one region (the key alert of the configuration), and their events:
 *
 *   value_high   begins when a value is above `above`, ends when it is at or below `low`
 *   value_low    begins when a value is below `below`, ends when it is at or above `high`
 *   value_rate   begins when a value grows by more than `rate` per second, ends when it does not
 *
 * each after its hold times, as the levels of detection (core/detect_core.h) do: a begin when it
 * was so for begin_hold, an end when it was over for end_hold. Value of the event: at begin the one
 * that crossed, at end the largest (value_low: the smallest); rates are whole numbers per second,
 * rounded up.
 *
 * A place is a slot, a cell, a list, or a sketch: each has states of its own. What is in a slot, a
 * cell or a sketch stands until something else is read there, so that its holds run on from reading
 * to reading. Entries of a list are samples: a hold runs from entry to entry, and a state ends when
 * no entry came for idle_ns.
 *
 * Rates: of counters the increase between two readings, by the time between them. Of other values
 * the growth from one value to the next, by the time between the readings that found them; a value
 * that became smaller has begun anew, and one that has not changed for idle_ns does not grow.
 *
 * Bounded: PL_REGION_PLACES places have states. A place without a raised or rising level gives its
 * room back (where there is a rule on rates, when it has not changed for forget_ns, or a value of
 * another place begins something), and a value that finds no room is counted and not watched.
 *
 * No clock, no file: the caller hands the time in. now_ns is monotonic, ts_ns stamps events.
 */
#pragma once

#include "detect/events.h"
#include "pipeline/config.h"

#define PL_REGION_PLACES 4096

struct pl_region_alert_bound {
	bool on;
	uint64_t at;   /* it begins beyond it */
	uint64_t back; /* it ends at it or on its other side */
};

struct pl_region_alert_rules {
	struct pl_region_alert_bound above, below, rate;
	uint64_t begin_hold_ns, end_hold_ns;
	uint64_t idle_ns, forget_ns;
};

/* The rules of a checked configuration. False: it has none for the region. */
bool pl_region_alert_rules(struct pl_region_alert_rules *ret, const struct pl_config_region *region,
	uint64_t idle_ns, uint64_t forget_ns);

struct pl_region_alerts;

/* Where events go. */
struct pl_region_alert_out {
	struct pl_event_batch *events;
	uint64_t *told; /* PL_EVENT_KIND_MAX of them: events by kind; NULL: they are not counted */
	uint64_t now_ns, ts_ns;
};

struct pl_region_seen {
	uint64_t place, value;
	uint64_t increase; /* of a counter since the reading before, which finds it once; else 0 */
	const char *key;   /* a plain text; NULL: it is not known */
	/* Of key-write: the slot in which it was found, and the check value there, which is its
	 * key's. held: they are known. */
	bool held;
	uint64_t slot;
	uint32_t check;
};

/* The name is copied. -ENOMEM. */
int pl_region_alerts_new(struct pl_region_alerts **ret, const char *region,
	const struct pl_region_alert_rules *rules);
void pl_region_alerts_free(struct pl_region_alerts *alerts);
/* Levels go on by the new rules; those of rules that are no more end with the next reading. */
void pl_region_alerts_set(
	struct pl_region_alerts *alerts, const struct pl_region_alert_rules *rules);
/* Whether there is any rule. */
bool pl_region_alerts_on(const struct pl_region_alerts *alerts);
/* What the region is. */
void pl_region_alerts_primitive(struct pl_region_alerts *alerts, uint32_t primitive);

/* A value was read. */
void pl_region_alerts_value(struct pl_region_alerts *alerts, const struct pl_region_seen *seen,
	const struct pl_region_alert_out *out);
/* Whether the slot still has a value of the key with that check value. */
typedef bool pl_region_holds(void *arg, uint64_t slot, uint32_t check);
/* Behind the values of a reading, before pl_region_alerts_read: what is of a key whose slot another
 * key has is over, as another key's value may have been found in another slot only. */
void pl_region_alerts_check(struct pl_region_alerts *alerts, pl_region_holds *holds, void *arg,
	const struct pl_region_alert_out *out);
/* A reading of the whole region is over: what was not found has not changed. */
void pl_region_alerts_read(struct pl_region_alerts *alerts, const struct pl_region_alert_out *out);
/* The region is not read now: ends what nothing was heard of for idle_ns. */
void pl_region_alerts_unread(
	struct pl_region_alerts *alerts, const struct pl_region_alert_out *out);
/* What was read is in the region no more: counters begin again at zero (emptied), and nothing is
 * known of other values until they are written again. */
void pl_region_alerts_turn(struct pl_region_alerts *alerts, bool emptied);
/* The region is not to be read any more: every level that is raised ends. */
void pl_region_alerts_end(struct pl_region_alerts *alerts, const struct pl_region_alert_out *out);

/* Levels that are raised now, and values that found no room so far. */
uint64_t pl_region_alerts_raised(const struct pl_region_alerts *alerts);
uint64_t pl_region_alerts_refused(const struct pl_region_alerts *alerts);
