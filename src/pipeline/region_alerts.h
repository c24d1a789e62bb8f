/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules on the values of one region (the key alert of the configuration), and their events:
 *
 * value_high begins when a value is above `above`, ends when it is at or below `low`
 * value_low begins when a value is below `below`, ends when it is at or above `high`
 * value_rate begins when a value grows by more than `rate` per second, ends when it does not
 *
 * each after its hold times, as the levels of detection (core/detect_core.h) do: it begins after
 * begin_hold beyond the bound, and ends after end_hold back. Value of the event: at begin the one
 * that crossed, at end the largest (value_low: the smallest); rates are whole numbers per second,
 * rounded up.
 *
 * A place is a slot, a cell, a list, or a sketch: each has its own states. The value in a slot, a
 * cell or a sketch stands until another one is read there, so that holds continue from reading to
 * reading. Entries of a list are samples: holds continue from entry to entry, and a state ends when
 * no entry came for idle_ns.
 *
 * Rates: for counters the increase between two readings, by the time between them. For other values
 * the growth from one value to the next, by the time between the readings that found them; a value
 * that became smaller starts again, and one that has not changed for idle_ns does not grow.
 *
 * Bounded: PL_REGION_PLACES places have states. A place without a raised or rising level is freed
 * (with a rule on rates: when it has not changed for forget_ns, or a value of another place begins
 * an event); a value without room is counted and not watched.
 *
 * No clock, no file: the caller passes the time. now_ns is monotonic, ts_ns stamps events.
 */
#pragma once

#include "detect/events.h"
#include "pipeline/config.h"

#define PL_REGION_PLACES 4096

struct pl_region_alert_bound {
	bool on;
	uint64_t at;   /* bound beyond which it begins */
	uint64_t back; /* bound at or behind which it ends */
};

struct pl_region_alert_rules {
	struct pl_region_alert_bound above, below, rate;
	uint64_t begin_hold_ns, end_hold_ns;
	uint64_t idle_ns, forget_ns;
};

/* Reads the rules of a checked configuration. Returns false when the region has none. */
bool pl_region_alert_rules(struct pl_region_alert_rules *ret, const struct pl_config_region *region,
	uint64_t idle_ns, uint64_t forget_ns);

struct pl_region_alerts;

/* Destination of events. */
struct pl_region_alert_out {
	struct pl_event_batch *events;
	uint64_t *told; /* counts events by kind, PL_EVENT_KIND_MAX of them; NULL: not wanted */
	uint64_t now_ns, ts_ns;
};

struct pl_region_seen {
	uint64_t place, value;
	uint64_t increase; /* since the last reading, for counters; else 0 */
	const char *key;   /* plain text; NULL: unknown */
	/* For key-write: the slot, and the check value found there, which is its key's. held: they
	 * are known. */
	bool held;
	uint64_t slot;
	uint32_t check;
};

/* Copies the name. Returns -ENOMEM. */
int pl_region_alerts_new(struct pl_region_alerts **ret, const char *region,
	const struct pl_region_alert_rules *rules);
void pl_region_alerts_free(struct pl_region_alerts *alerts);
/* Levels continue with the new rules; those of removed rules end with the next reading. */
void pl_region_alerts_set(
	struct pl_region_alerts *alerts, const struct pl_region_alert_rules *rules);
/* Returns whether there is any rule. */
bool pl_region_alerts_on(const struct pl_region_alerts *alerts);
/* Sets the primitive of the region's store. */
void pl_region_alerts_primitive(struct pl_region_alerts *alerts, uint32_t primitive);

/* Applies the rules to a value that was read. */
void pl_region_alerts_value(struct pl_region_alerts *alerts, const struct pl_region_seen *seen,
	const struct pl_region_alert_out *out);
/* Returns whether the slot still has a value of the key with this check value. */
typedef bool pl_region_holds(void *arg, uint64_t slot, uint32_t check);
/* After the values of a reading, before pl_region_alerts_read: ends states of keys whose slot
 * another key has, as the other key's value may have been found in another slot only. */
void pl_region_alerts_check(struct pl_region_alerts *alerts, pl_region_holds *holds, void *arg,
	const struct pl_region_alert_out *out);
/* Ends a reading of the whole region: values not found are unchanged. */
void pl_region_alerts_read(struct pl_region_alerts *alerts, const struct pl_region_alert_out *out);
/* The region cannot be read now: ends states without a value for idle_ns. */
void pl_region_alerts_unread(
	struct pl_region_alerts *alerts, const struct pl_region_alert_out *out);
/* The values read are no longer in the region: counters restart at zero (emptied), other values are
 * unknown until they are written again. */
void pl_region_alerts_turn(struct pl_region_alerts *alerts, bool emptied);
/* The region will not be read any more: ends all raised levels. */
void pl_region_alerts_end(struct pl_region_alerts *alerts, const struct pl_region_alert_out *out);

/* Number of levels raised now; number of values without room so far. */
uint64_t pl_region_alerts_raised(const struct pl_region_alerts *alerts);
uint64_t pl_region_alerts_refused(const struct pl_region_alerts *alerts);
