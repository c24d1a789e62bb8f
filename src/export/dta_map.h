/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records to reports of Direct Telemetry Access: which fields are the key, which the value
 * (record/pack.h), for each primitive
 *
 *   key-write      key, value: chosen fields, packed, or the whole record of 128 bytes
 *   append         the same value as an entry of one list
 *   counters       key, and 1 or a number of the record as increment
 *   postcards      of hops: key, and a number of at most 32 bits; hop and path length are the
 *                  record's
 *
 * Keys are the bytes that `pathline region lookup --key-form FORM` asks with.
 */
#pragma once

#include "record/pack.h"
#include "wire/dta.h"

#define PL_DTA_MAP_BYTES_MAX PL_PACK_BYTES_MAX

enum pl_key_form { PL_KEY_TEXT, PL_KEY_HEX, PL_KEY_U32, PL_KEY_BE32, PL_KEY_U64, PL_KEY_FORM_MAX };

struct pl_dta_map_options {
	enum pl_dta_op op; /* not a sketch */
	enum pl_record_kind record;
	const char *const *key; /* names of fields */
	size_t n_key;
	enum pl_key_form key_form;
	const char *const *value; /* none: what the primitive has by default */
	size_t n_value;
	bool big_endian; /* packed values and keys in hex */
	bool immediate;
	uint16_t store;
	uint32_t list;
};

struct pl_dta_map {
	struct pl_dta_map_options o; /* names are not kept */
	struct pl_pack key, value;
	bool whole; /* the record as it is */
	/* The last report's. */
	uint8_t key_bytes[PL_DTA_MAP_BYTES_MAX];
	uint8_t value_bytes[PL_DTA_MAP_BYTES_MAX];
};

/* -EINVAL with diag for what cannot be. */
int pl_dta_map_init(
	struct pl_dta_map *ret, const struct pl_dta_map_options *options, struct pl_diag *diag);

/* Bytes of a value or entry; 0 where the primitive has none. */
uint32_t pl_dta_map_value_bytes(const struct pl_dta_map *map);

enum pl_dta_map_answer {
	PL_DTA_MAP_MADE,
	PL_DTA_MAP_MISSING, /* a field of the key or value has none */
	PL_DTA_MAP_RANGE,   /* a number that the primitive or the form of the key cannot say */
};

/* The report of one record; what it points to is valid until the next. Of a hop record, its path
 * must have all hops. */
enum pl_dta_map_answer pl_dta_map_report(
	struct pl_dta_map *map, const struct pl_pack_record *record, struct pl_dta_report *ret);
