/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables: keys of several fields, each with its own kind of match (dataplane/conf.h has the syntax
 * of entries and the rules for several matching ones), and lookups built from sets of entries.
 *
 * A lookup is immutable: a change builds a new one, and the owner swaps the pointer between two
 * batches, so every packet sees either all of a change or nothing of it. Old and new lookups share
 * entries.
 *
 * Entries with the same masks form a tuple, a hash table of masked values; a lookup tries tuples in
 * the order of their best entries until the one found is better than all that follow. So an exact
 * table costs one probe, a table of prefixes one for each length in use, and a ternary one one for
 * each set of masks; ranges and windows are compared along a chain of equal values, in order.
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

/* A bound: a range (first, last), or a window (offset, width, period). */
struct pl_dp_bound {
	uint8_t at; /* word of the key */
	bool window;
	uint64_t first, last, period; /* window: last is the width */
};

struct pl_dp_match {
	uint32_t priority;
	uint16_t prefix; /* 1 + length of the prefix field's prefix; 0: not given */
	uint8_t n_bounds;
	uint64_t value[PL_DP_KEY_WORDS_MAX], mask[PL_DP_KEY_WORDS_MAX];
	struct pl_dp_bound bounds[PL_DP_FIELDS_MAX];
};

struct pl_dp_entry {
	struct pl_dp_match match;
	uint64_t packets, bytes; /* counted matches */
	uint64_t serial;         /* order of adding */
	void *actions;           /* owned by the table's owner */
	bool made;               /* created by a change that is not applied yet */
};

/* Adds "FIELD KIND" to a key that is zeroed at first. -EINVAL with diag. */
int pl_dp_key_add(struct pl_dp_key *key, const char *text, struct pl_diag *diag);

/* Parses "[priority N] FIELD=VALUE…". -EINVAL with diag. */
int pl_dp_match_parse(const struct pl_dp_key *key, const char *text, size_t len,
	struct pl_dp_match *ret, struct pl_diag *diag);
/* Writes a match in the syntax that pl_dp_match_parse reads. */
void pl_dp_match_put(
	const struct pl_dp_key *key, const struct pl_dp_match *match, struct pl_buf *out);
/* Returns true when two matches have the same values, masks, bounds and priority. */
bool pl_dp_match_equal(
	const struct pl_dp_key *key, const struct pl_dp_match *a, const struct pl_dp_match *b);

struct pl_dp_lookup;

/* Builds a lookup of entries, which must stay in place. -ENOMEM. */
int pl_dp_lookup_new(struct pl_dp_lookup **ret, const struct pl_dp_key *key,
	struct pl_dp_entry *const *entries, size_t n);
void pl_dp_lookup_free(struct pl_dp_lookup *l);
/* Returns the best matching entry, or NULL. words: values of the key's fields in their order. */
struct pl_dp_entry *pl_dp_lookup_find(const struct pl_dp_lookup *l, const uint64_t *words);

static inline void pl_dp_key_read(const struct pl_dp_key *key, const struct pl_dp_packet *pkt,
	uint64_t time_ns, uint64_t *ret)
{
	for (unsigned int i = 0; i < key->n; i++)
		pl_dp_field_read(pkt, (enum pl_dp_field)key->fields[i].field, time_ns,
			ret + key->fields[i].at);
}
