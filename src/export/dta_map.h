/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes DTA reports of records. Options choose the fields of the key and of the value
 * (record/pack.h), for each primitive:
 *
 *   key-write      a key and a value: chosen fields, packed, or the whole record of 128 bytes
 *   append         such a value as an entry of one list
 *   counters       a key; the increment is 1 or a number of the record
 *   postcards      for a hop: a key, and a number of at most 32 bits; hop and path length come from
 *                  the record
 *
 * Keys are the same bytes that `pathline region lookup --key-form FORM` asks for.
 */
#pragma once

#include "record/pack.h"
#include "wire/dta.h"

#define PL_DTA_MAP_BYTES_MAX PL_PACK_BYTES_MAX

enum pl_key_form { PL_KEY_TEXT, PL_KEY_HEX, PL_KEY_U32, PL_KEY_BE32, PL_KEY_U64, PL_KEY_FORM_MAX };

struct pl_dta_map_options {
	enum pl_dta_op op; /* any but the sketch */
	enum pl_record_kind record;
	const char *const *key; /* names of fields */
	size_t n_key;
	enum pl_key_form key_form;
	const char *const *value; /* no names: the primitive's default */
	size_t n_value;
	bool big_endian; /* of packed values and of keys in hex */
	bool immediate;
	uint16_t store;
	uint32_t list;
};

struct pl_dta_map {
	struct pl_dta_map_options o; /* without the names */
	struct pl_pack key, value;
	bool whole; /* the value is the whole record */
	/* of the last report */
	uint8_t key_bytes[PL_DTA_MAP_BYTES_MAX];
	uint8_t value_bytes[PL_DTA_MAP_BYTES_MAX];
};

/* -EINVAL with diag: the options contradict each other. */
int pl_dta_map_init(
	struct pl_dta_map *ret, const struct pl_dta_map_options *options, struct pl_diag *diag);

/* Returns the bytes of a value or entry; 0 where the primitive has none. */
uint32_t pl_dta_map_value_bytes(const struct pl_dta_map *map);

enum pl_dta_map_answer {
	PL_DTA_MAP_MADE,
	PL_DTA_MAP_MISSING, /* a field of the key or value is absent from the record */
	PL_DTA_MAP_RANGE,   /* a number does not fit the primitive or the form of the key */
};

/* Makes the report of one record; it is valid until the next call. A hop record is given together
 * with its path and all of its hops. */
enum pl_dta_map_answer pl_dta_map_report(
	struct pl_dta_map *map, const struct pl_pack_record *record, struct pl_dta_report *ret);
