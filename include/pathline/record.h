/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records: decoded facts of 128 bytes, as they lie in regions of history (events.region,
 * paths.region, hops.region) and are exported. Fields are reached by the names that `pathline tail
 * -o jsonl` prints and docs/formats/records.md lists, so that a program goes on working when fields
 * are added.
 *
 *   int depth = pathline_field_find(PATHLINE_HOP, "queue_depth");
 *   if (pathline_record_u64(PATHLINE_HOP, record, depth, &value) == 1) ...
 */
#ifndef PATHLINE_RECORD_H
#define PATHLINE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "pathline/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PATHLINE_RECORD_BYTES 128

enum pathline_kind { PATHLINE_PATH = 0, PATHLINE_HOP = 1, PATHLINE_EVENT = 2 };

/* Fields of a kind are numbered from 0, the same within one process only; -EINVAL: no such kind. */
int pathline_field_count(enum pathline_kind kind);
/* -ENOENT: no field has this name. */
int pathline_field_find(enum pathline_kind kind, const char *name);
/* NULL: no such field; "" where it has none. */
const char *pathline_field_name(enum pathline_kind kind, int field);
const char *pathline_field_unit(enum pathline_kind kind, int field);
const char *pathline_field_help(enum pathline_kind kind, int field);

/* Record: PATHLINE_RECORD_BYTES bytes, wherever they stand. 1: the value; 0: this record has none;
 * -EINVAL: no such field, or an address. Enumerated fields give their number. */
int pathline_record_u64(
	enum pathline_kind kind, const void *record, int field, uint64_t *ret_value);
/* An address, IPv4 ones in the last four bytes behind ::ffff:0:0/96. As above; -EINVAL: the field
 * is no address. */
int pathline_record_address(
	enum pathline_kind kind, const void *record, int field, unsigned char ret_address[16]);
/* The record as a JSON object, as `pathline tail` prints it (a path without its hops). The length
 * without the terminating zero; the text is complete only if that is less than `room`. -EINVAL,
 * -ENOMEM. */
int pathline_record_json(enum pathline_kind kind, const void *record, char *ret_text, size_t room);

#ifdef __cplusplus
}
#endif

#endif
