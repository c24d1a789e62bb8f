/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables: keys of several fields, each matched in its own way (dataplane/conf.h tells how entries
 * are written and which of several that match is taken), and lookups built from sets of entries.
 *
 * A lookup never changes: a change builds the next one, and the owner swaps the pointer between two
 * batches, so no packet sees half of a change. Entries are shared by the lookups before and after.
 *
 * How a lookup works: entries with the same masks are a tuple, which is a hash table of masked
 * values; tuples are tried in the order of their best entries, until what was found is better than
 * all that follow. So an exact table costs one probe, a table of prefixes one for each length in
 * use, and a ternary one one for each set of masks; ranges and windows are compared along a chain of
 * equal values, in order.
 */
#pragma once

#include "base/buf.h"
#include "base/diag.h"
#include "dataplane/conf.h"
#include "dataplane/field.h"

enum pl_dp_match_kind {
	PL_DP_EXACT,
	PL_DP_PREFIX,
	PL_DP_TERNARY,
	PL_DP_RANGE,
	PL_DP_WINDOW,
};

struct pl_dp_key {
	unsigned int n, words;
	struct {
		uint8_t field; /* enum pl_dp_field */
		uint8_t kind;  /* enum pl_dp_match_kind */
		uint8_t at;    /* first word */
	} fields[PL_DP_FIELDS_MAX];
};

#define PL_DP_KEY_WORDS_MAX (2 * PL_DP_FIELDS_MAX)

/* What is neither value nor mask: a range (first, last), or a window (offset, width, period). */
struct pl_dp_bound {
	uint8_t at; /* word of the key */
	bool window;
	uint64_t first, last, period; /* window: last is the width */
};

struct pl_dp_match {
	uint32_t priority;
	uint16_t prefix; /* bits of the prefix field */
	uint8_t n_bounds;
	uint64_t value[PL_DP_KEY_WORDS_MAX], mask[PL_DP_KEY_WORDS_MAX];
	struct pl_dp_bound bounds[PL_DP_FIELDS_MAX];
};

struct pl_dp_entry {
	struct pl_dp_match match;
	uint64_t packets, bytes; /* that it matched */
	uint64_t serial;         /* the order of adding */
	void *actions;           /* of the owner */
};

/* Adds "FIELD KIND" to a key that is zeroed at first. -EINVAL with diag. */
int pl_dp_key_add(struct pl_dp_key *key, const char *text, struct pl_diag *diag);

/* "[priority N] FIELD=VALUE…". -EINVAL with diag. */
int pl_dp_match_parse(const struct pl_dp_key *key, const char *text, size_t len,
	struct pl_dp_match *ret, struct pl_diag *diag);
/* In the form that is read. */
void pl_dp_match_put(
	const struct pl_dp_key *key, const struct pl_dp_match *match, struct pl_buf *out);
/* Whether two match the same packets with the same priority, as they are written. */
bool pl_dp_match_equal(
	const struct pl_dp_key *key, const struct pl_dp_match *a, const struct pl_dp_match *b);

struct pl_dp_lookup;

/* Of entries that stay where they are. -ENOMEM. */
int pl_dp_lookup_new(struct pl_dp_lookup **ret, const struct pl_dp_key *key,
	struct pl_dp_entry *const *entries, size_t n);
void pl_dp_lookup_free(struct pl_dp_lookup *l);
/* Words of the key's fields in their order. NULL: none matches. */
struct pl_dp_entry *pl_dp_lookup_find(const struct pl_dp_lookup *l, const uint64_t *words);

static inline void pl_dp_key_read(const struct pl_dp_key *key, const struct pl_dp_packet *pkt,
	uint64_t time_ns, uint64_t *ret)
{
	for (unsigned int i = 0; i < key->n; i++)
		pl_dp_field_read(pkt, (enum pl_dp_field)key->fields[i].field, time_ns,
			ret + key->fields[i].at);
}
