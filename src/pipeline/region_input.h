/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One region that is read: its file, what of it was read already, and what is new. Lists are read
 * by a cursor each, so that what is overwritten before it is read is known by number; key-write,
 * counters and postcards are walked (memory/scan.h); a sketch is looked at as a whole. All in
 * bounded steps, whoever writes meanwhile.
 *
 * The file may be cut, removed, or made anew with another geometry. A writer in this process
 * keeps the file that it has, and that one is read; else the file that has the name. In either case
 * the loss is told and counted. A file that
 * appears while this runs is read from its beginning.
 *
 *   found = told + counted + every dropped[cause]
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
	PL_REGION_REPEATED, /* other copies of a value that was found */
	PL_REGION_KEYED,    /* paths of postcards: only who knows the flow can read them */
	PL_REGION_INVALID,  /* value.format is record, and it is none */
	PL_REGION_DROP_MAX,
};
const char *pl_region_drop_name(enum pl_region_drop cause); /* "overrun", … */

struct pl_region_input_stats {
	char name[32];
	uint32_t primitive; /* 0: never opened */
	unsigned int writer;
	bool readable;
	char trouble[192]; /* why it is not */
#define PL_STAT PL_STAT_MEMBER
#include "pipeline/region_input_stats.def"
#undef PL_STAT
	uint64_t opened;        /* times */
	uint64_t slots, in_use; /* of the last whole walk; of lists all entries there is room for */
	uint64_t dropped[PL_REGION_DROP_MAX];
	uint64_t increase; /* of counters, modulo 2^64 */
	bool has_value;
	uint64_t value, value_number; /* the newest number, and where it was */
	bool has_max;
	/* the largest of this and the last slot of time; of counters the largest increase */
	uint64_t max, max_number;
	uint64_t last_ts_ns; /* when something was found last; 0: never */
};
extern const struct pl_stats pl_region_input_list;

/* Room for the records, events and values that are found. */
struct pl_region_room {
	struct pl_record_batch *paths;
	struct pl_event_batch *events;
	struct pl_value_batch *values;
	uint64_t *told; /* events of rules on values, by kind; NULL: they are not counted */
	uint64_t now_ns, ts_ns;
	bool final; /* all that is there is wanted, at whatever time */
};

struct pl_region_input;

/* Copies what it needs. Opens nothing. -ENOMEM. */
int pl_region_input_new(struct pl_region_input **ret, const struct pl_config_region *config);
void pl_region_input_free(struct pl_region_input *in);
/* Whether it is what this part of a configuration says. */
bool pl_region_input_is(const struct pl_region_input *in, const struct pl_config_region *config);

/* The length of the slots of time that maxima are of: 15 s, or this. Above 0. */
void pl_region_input_set_slot(struct pl_region_input *in, uint64_t slot_ns);

/* Rules on its values: new ones, of which what is begun goes on. `*alerts` (region_alerts.h), which
 * may be NULL where there is no rule, is taken over (*alerts: NULL) by an input that has none. */
struct pl_region_alerts;
struct pl_region_alert_rules;
void pl_region_input_set_alerts(struct pl_region_input *in, struct pl_region_alerts **alerts,
	const struct pl_region_alert_rules *rules);
/* Where its writer, in this process, notes keys (memory/key_names.h); NULL: nowhere. */
void pl_region_input_set_keys(struct pl_region_input *in, const struct pl_key_names *keys);
/* It is not to be read any more: events that have begun end. */
void pl_region_input_end(struct pl_region_input *in, const struct pl_region_room *room);

/* Opens the file; `first`: what is there already is not new, unless the configuration says so. An
 * error is in the stats, and later steps try again. */
void pl_region_input_open(struct pl_region_input *in, bool first);

/* A bounded piece of what is due. Whether there is more at once. */
bool pl_region_input_step(struct pl_region_input *in, const struct pl_region_room *room);
/* Its lists are due now; walks of the others keep their interval. */
void pl_region_input_wake(struct pl_region_input *in);
/* When its next step is due, by now_ns of the last one. */
uint64_t pl_region_input_due_ns(const struct pl_region_input *in);

const struct pl_region_input_stats *pl_region_input_stats(const struct pl_region_input *in);

/* ---- typing (region_values.c) ---- */

/* Whether what the configuration says of values can be of such a store. -EINVAL with diag. */
int pl_region_check_value(const struct pl_config_region *config,
	const struct pl_store_params *params, struct pl_diag *diag);
/* Why there can be no rules on values (alert) of such a store; NULL: there can. */
const char *pl_region_alert_fault(
	const struct pl_config_region *config, const struct pl_store_params *params);
/* Bytes of an entry or a value, as the configuration says; false for format hex. */
bool pl_region_number(
	const struct pl_config_region *config, const uint8_t *bytes, uint64_t *ret_number);
/* The record of a value; list UINT32_MAX: none. The text of names is the configuration's. */
void pl_region_value(struct pl_value *ret, const struct pl_config_region *config,
	const uint8_t *bytes, uint32_t n);
/* A record of the region's content into its batch. False when it is none. */
bool pl_region_record(
	const uint8_t *bytes, enum pl_content content, const struct pl_region_room *room);
