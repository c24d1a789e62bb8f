/* SPDX-License-Identifier: BSD-2-Clause */
/* State of one region that is read, shared by region_input.c (file, lists, walks) and
 * region_found.c (values and records found). */
#pragma once

#include "memory/append.h"
#include "pipeline/region_alerts.h"
#include "pipeline/region_input.h"
#include "pipeline/region_max.h"

enum { PL_REGION_STEP_ENTRIES = 2048, PL_REGION_READ_BYTES = 64 * 1024 }; /* limits of one step */

struct pl_region_input {
	struct pl_config_region config; /* with texts of its own */
	struct pl_region *region;       /* NULL: not open */
	struct pl_store_params params;
	uint64_t id, epoch; /* id: of the region read last; 0: none */
	bool finishing;     /* this walk is the last one of the old epoch */
	bool away;          /* the file of its writer, in this process, lost its name */
	struct pl_append append;
	struct pl_append_reader *lists; /* heap, append.lists */
	uint32_t list_at, quiet_lists;  /* next list; number of successive lists without entries */
	struct pl_scan scan;
	bool scans;       /* `scan` is initialized */
	uint64_t columns; /* columns of a sketch when last read */
	bool walking, final_begun, final_over;
	uint64_t due_ns, settle_ns, look_ns;
	uint64_t slot_ns; /* length of slots of `max` */
	struct pl_region_max max;
	const struct pl_key_names *keys; /* borrowed; NULL: keys are unknown */
	struct pl_region_alerts *alerts; /* heap; NULL: no rules */
	struct pl_region_input_stats stats;
	uint8_t bytes[PL_REGION_READ_BYTES];
	uint64_t numbers[PL_REGION_STEP_ENTRIES];
};

/* Place of a number (region_alerts.h). */
struct pl_region_spot {
	uint64_t place;
	const char *key; /* NULL: unknown */
	bool held;       /* the slot has this check value */
	uint32_t check;
};

/* Notes a number; if the value has an increase, the maximum is that of increases. */
void pl_region_note(struct pl_region_input *in, const struct pl_region_room *room,
	const struct pl_value *value, const struct pl_region_spot *spot);
/* Continues rules on values: after a reading, or when the region cannot be read. */
void pl_region_watch(struct pl_region_input *in, const struct pl_region_room *room, bool read);
/* Gives a value to the outputs, or counts it. */
void pl_region_tell(struct pl_region_input *in, const struct pl_region_room *room,
	const struct pl_value *value);
/* Handles the bytes of a value or an entry; list UINT32_MAX: of no list. */
void pl_region_take_bytes(struct pl_region_input *in, const struct pl_region_room *room,
	const uint8_t *bytes, uint32_t n, uint64_t number, uint32_t list);
void pl_region_take_cell(struct pl_region_input *in, const struct pl_region_room *room,
	const struct pl_scan_found *found);
/* Counts n new entries or changes. */
void pl_region_found(struct pl_region_input *in, const struct pl_region_room *room, uint64_t n);
/* Updates the maximum as of this time. */
void pl_region_show_max(struct pl_region_input *in, uint64_t now_ns);
