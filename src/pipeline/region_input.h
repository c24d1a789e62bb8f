/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region that the daemon reads: its file, the values read so far, and new values. Lists are read
 * by a cursor each, so that entries overwritten before they were read are counted by number;
 * key-write, counters and postcards are walked (memory/scan.h); a sketch is read as a whole. All
 * reading is done in bounded steps, while others write.
 *
 * The file may be truncated, removed, or created again with another geometry. With a writer in this
 * process, the file that it has open is read; else the file of that name. Either way the loss is
 * logged and counted. A file that appears later is read from its beginning.
 *
 * found = told + counted + every dropped[cause]
 */
#pragma once

#include "base/stats.h"
#include "memory/append.h"
#include "memory/key_names.h"
#include "memory/region.h"
#include "memory/scan.h"
#include "pipeline/config.h"
#include "pipeline/worker.h"

enum pl_region_drop {
	PL_REGION_OVERRUN,  /* overwritten before they were read */
	PL_REGION_DAMAGED,  /* entries whose seal does not fit */
	PL_REGION_REPEATED, /* other copies of values that were found */
	PL_REGION_KEYED,    /* paths of postcards: unreadable without the flow */
	PL_REGION_INVALID,  /* value.format is record, and it is not one */
	PL_REGION_DROP_MAX,
};
const char *pl_region_drop_name(enum pl_region_drop cause); /* "overrun", … */

struct pl_region_input_stats {
	char name[32];
	uint32_t primitive; /* 0: it was never open */
	unsigned int writer;
	bool readable;
	char trouble[192]; /* why it is not readable */
#define PL_STAT PL_STAT_MEMBER
#include "pipeline/region_input_stats.def"
#undef PL_STAT
	uint64_t opened;        /* how often it was opened */
	uint64_t slots, in_use; /* capacity; slots in use at the last whole walk */
	uint64_t dropped[PL_REGION_DROP_MAX];
	uint64_t increase; /* of counters, modulo 2^64 */
	bool has_value;
	uint64_t value, value_number; /* the newest number, and its place */
	bool has_max;
	/* largest number of the present and last slot; for counters the largest increase */
	uint64_t max, max_number;
	uint64_t last_ts_ns; /* time of the last find; 0: never */
};
extern const struct pl_stats pl_region_input_list;

/* Room for records, events and values found. */
struct pl_region_room {
	struct pl_record_batch *paths;
	struct pl_event_batch *events;
	struct pl_value_batch *values;
	uint64_t *told; /* counts events of rules on values by kind; NULL: not wanted */
	uint64_t now_ns, ts_ns;
	bool final; /* read all that is there, at whatever time */
};

struct pl_region_input;

/* Makes an input; copies what it needs, opens nothing. Returns -ENOMEM. */
int pl_region_input_new(struct pl_region_input **ret, const struct pl_config_region *config);
void pl_region_input_free(struct pl_region_input *in);
/* Returns whether it matches this part of a configuration. */
bool pl_region_input_is(const struct pl_region_input *in, const struct pl_config_region *config);

/* Sets the length of the slots of maxima, above 0; the default is 15 s. */
void pl_region_input_set_slot(struct pl_region_input *in, uint64_t slot_ns);

/* Sets rules on its values; states continue. An input without *alerts (region_alerts.h) takes them
 * over and sets the pointer to NULL; it may be NULL when there is no rule. */
struct pl_region_alerts;
struct pl_region_alert_rules;
void pl_region_input_set_alerts(struct pl_region_input *in, struct pl_region_alerts **alerts,
	const struct pl_region_alert_rules *rules);
/* Sets where the writer, in this process, notes keys (memory/key_names.h); NULL: nowhere. */
void pl_region_input_set_keys(struct pl_region_input *in, const struct pl_key_names *keys);
/* Ends events, because the region will not be read any more. */
void pl_region_input_end(struct pl_region_input *in, const struct pl_region_room *room);

/* Opens the file; `first`: its present contents are not new, unless the configuration says so.
 * Errors are in the stats; later steps try again. */
void pl_region_input_open(struct pl_region_input *in, bool first);

/* Does a bounded part of what is due. Returns whether more is due at once. */
bool pl_region_input_step(struct pl_region_input *in, const struct pl_region_room *room);
/* Makes lists due now; walks of other stores keep their interval. */
void pl_region_input_wake(struct pl_region_input *in);
/* Time of the next step, on the clock of now_ns. */
uint64_t pl_region_input_due_ns(const struct pl_region_input *in);

const struct pl_region_input_stats *pl_region_input_stats(const struct pl_region_input *in);

/* ---- typing (region_values.c) ---- */

/* Checks that value.* of the configuration fits the store. Returns -EINVAL with diag. */
int pl_region_check_value(const struct pl_config_region *config,
	const struct pl_store_params *params, struct pl_diag *diag);
/* Returns why there can be no rules on values (alert) of such a store; NULL: there can. */
const char *pl_region_alert_fault(
	const struct pl_config_region *config, const struct pl_store_params *params);
/* Reads the number in an entry or value, as configured; returns false for format hex. */
bool pl_region_number(
	const struct pl_config_region *config, const uint8_t *bytes, uint64_t *ret_number);
/* Makes the record of a value, with its bytes (NULL: none), names as configured. */
void pl_region_value(struct pl_value *ret, const struct pl_config_region *config,
	const uint8_t *bytes, uint32_t n);
/* Adds a record of the region's content to its batch. Returns false when it is none. */
bool pl_region_record(
	const uint8_t *bytes, enum pl_content content, const struct pl_region_room *room);
