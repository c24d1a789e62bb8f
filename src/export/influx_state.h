/* SPDX-License-Identifier: BSD-2-Clause */
/* Internals of the InfluxDB format, for influx.c and influx_line.c. */
#pragma once

#include <stdatomic.h>

#include "base/hash.h"
#include "export/influx.h"
#include "record/put.h"

enum {
	MEMBERS_MAX = 80,
	KEY_MAX = 40,
	KEYS_DEFAULT = 10000,
	KEYS_MAX = 1 << 24,
};

/* A field of a record as a tag or a field of a line. */
struct member {
	char key[KEY_MAX]; /* ",node=" */
	uint8_t key_len;
	uint8_t form;
	uint16_t offset;
	uint32_t present;
};

/* A kind of record as a line: tags sorted by name, then fields. */
struct form {
	struct member tags[MEMBERS_MAX], fields[MEMBERS_MAX];
	unsigned int n_tags, n_fields;
	size_t max; /* bytes of the longest line */
	uint16_t present_at;
};

/* A set of tags in use: its hash, and the time of its last point. */
struct key {
	uint64_t hash; /* 0: free */
	uint64_t ts_ns;
};

struct influx {
	struct form event, hop, value, flat;
	enum pl_flat_kind kind; /* kind that `flat` is the form of; PL_FLAT_MAX: none yet */
	struct key *keys;
	uint32_t mask, n_keys, max_keys;
	bool community_id; /* flat lines have it */
	_Atomic uint64_t folded;
	_Atomic bool many_lines; /* an entry may become several lines */
};

/* ---- influx.c ---- */

/* Makes the form for a flat kind of record. */
void pl_influx_make_flat(struct influx *x, enum pl_flat_kind kind);

/* ---- influx_line.c ---- */

int pl_influx_format_event(
	void *format, const struct pl_event *event, uint64_t real_ns, struct pl_buf *out);
int pl_influx_format_value(
	void *format, const struct pl_value *value, uint64_t real_ns, struct pl_buf *out);
int pl_influx_format_flat(void *format, enum pl_flat_kind kind, const void *record,
	uint64_t real_ns, struct pl_buf *out);
int pl_influx_format_path(void *format, const struct pl_path *path, const struct pl_hop *hops,
	uint64_t real_ns, struct pl_buf *out);
int pl_influx_format_point(
	void *format, const struct pl_series_point *point, uint64_t real_ns, struct pl_buf *out);
/* Escapes names of measurements, keys of tags and fields, and values of tags. */
void pl_influx_escape(struct pl_buf *out, const char *text);
bool pl_influx_time_good(uint64_t ts_ns, uint64_t real_ns);
/* Sets the time of a point with these tags and measurement; a passing point may be replaced by the
 * next one of its time. Returns false when the set of tags is one too many. */
bool pl_influx_place(
	void *format, const char *tags, size_t len, bool passing, uint64_t ts_ns, uint64_t *ret_ns);
