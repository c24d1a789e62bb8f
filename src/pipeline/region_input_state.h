/* SPDX-License-Identifier: BSD-2-Clause */
/* State of one region that is read, for the files that read it: region_input.c (its file, lists,
 * walks) and region_found.c (what becomes of what was found). */
#pragma once

#include "memory/append.h"
#include "pipeline/region_alerts.h"
#include "pipeline/region_input.h"
#include "pipeline/region_max.h"

enum { PL_REGION_STEP_ENTRIES = 2048, PL_REGION_READ_BYTES = 64 * 1024 }; /* of one step */

struct pl_region_input {
	struct pl_config_region config; /* own texts */
	struct pl_region *region;       /* NULL: there is none to read */
	struct pl_store_params params;
	uint64_t id, epoch; /* id: of the region that was read last; 0: none */
	bool finishing;     /* this walk is the last one of the epoch before */
	bool away;          /* the file of its writer, in this process, lost its name */
	struct pl_append append;
	struct pl_append_reader *lists; /* heap, append.lists */
	uint32_t list_at, quiet_lists;  /* the next one; lists in a row that had nothing */
	struct pl_scan scan;
	bool scans;       /* the scan is there */
	uint64_t columns; /* of a sketch, told last */
	bool walking, final_begun, final_over;
	uint64_t due_ns, settle_ns, look_ns;
	uint64_t slot_ns; /* of time, for max */
	struct pl_region_max max;
	const struct pl_key_names *keys; /* borrowed; NULL: keys are not known */
	struct pl_region_alerts *alerts; /* heap; NULL: no rule on its values */
	struct pl_region_input_stats stats;
	uint8_t bytes[PL_REGION_READ_BYTES];
	uint64_t numbers[PL_REGION_STEP_ENTRIES];
};

/* Where a number was found (region_alerts.h). */
struct pl_region_spot {
	uint64_t place;
	const char *key; /* NULL: it is not known */
	bool held;       /* the slot has this check value */
	uint32_t check;
};

/* A number was found there; where the value has an increase, the largest is told by it. */
void pl_region_note(struct pl_region_input *in, const struct pl_region_room *room,
	const struct pl_value *value, const struct pl_region_spot *spot);
/* A reading is over, or the region cannot be read now: rules on values go on. */
void pl_region_watch(struct pl_region_input *in, const struct pl_region_room *room, bool read);
/* To the outputs, or counted. */
void pl_region_tell(struct pl_region_input *in, const struct pl_region_room *room,
	const struct pl_value *value);
/* Bytes of a value or an entry; list UINT32_MAX: of no list. */
void pl_region_take_bytes(struct pl_region_input *in, const struct pl_region_room *room,
	const uint8_t *bytes, uint32_t n, uint64_t number, uint32_t list);
void pl_region_take_cell(struct pl_region_input *in, const struct pl_region_room *room,
	const struct pl_scan_found *found);
/* So many were found. */
void pl_region_found(struct pl_region_input *in, const struct pl_region_room *room, uint64_t n);
/* The largest number as it is to be told at this time. */
void pl_region_show_max(struct pl_region_input *in, uint64_t now_ns);
