/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of values: data records hold only the values that are known, and each set of values that
 * comes gets a template, which is sent before its first data record (decision 47). For the files of
 * this folder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipfix/message.h"
#include "ipfix/writer.h"

/* Most templates of a session; records with other sets of values are not sent. */
#define PL_IPFIX_SETS_MAX 128

/* A template. */
struct pl_ipfix_set {
	uint32_t flags;
	uint16_t id, bytes; /* bytes of a data record with the header of its set */
	uint8_t kind;
	bool sent, used;
};

/* An element in a list of a kind, as in paths.def; id 0: not of the enterprise. */
struct pl_ipfix_own {
	const char *name;
	uint16_t id;
	uint8_t bytes;
	bool is_signed;
};
#define PL_IPFIX_OWN(type, member, name, id, ...)                                                  \
	{ name, id, sizeof(type), _Generic(*(type *)NULL, int64_t : true, default : false) },

/* Kinds of data record of an output. Static. */
struct pl_ipfix_schema {
	struct fbInfoElementSpec_st *const *kinds; /* elements of each kind, with flags */
	const struct pl_ipfix_own *own;            /* elements of the enterprise */
	size_t n_own;
	uint8_t n_kinds;
	uint32_t times[3]; /* flags of time elements, by enum pl_ipfix_time */
};

struct pl_ipfix_sets_options {
	uint32_t domain;
	enum pl_ipfix_time time;
	uint32_t pen; /* not 0 */
	/* Takes a whole message, in which `entries` paths, results or block records end. */
	void (*send)(void *arg, const uint8_t *message, uint32_t bytes, uint32_t entries);
	void *arg;
};

struct pl_ipfix_sets {
	struct pl_ipfix_message m;
	const struct pl_ipfix_schema *schema;
	enum pl_ipfix_time unit;
	uint32_t time; /* the flag for `unit`, of the schema's times */
	uint16_t next_id;
	unsigned int n;
	struct pl_ipfix_set sets[PL_IPFIX_SETS_MAX];
};

/* Makes the sets of an output. Returns 0 or -ENOMEM. */
int pl_ipfix_sets_new(struct pl_ipfix_sets **ret, const struct pl_ipfix_schema *schema,
	const struct pl_ipfix_sets_options *options);
void pl_ipfix_sets_free(struct pl_ipfix_sets *x); /* NULL is allowed */

/* Begins a transport session: numbers begin at 0, no template was sent. Waiting records are
 * dropped. */
void pl_ipfix_sets_begin(struct pl_ipfix_sets *x);
/* Sends the present message, and has templates sent again before their next data records; those
 * that were not used since the last time are forgotten. */
void pl_ipfix_sets_renew(struct pl_ipfix_sets *x, uint32_t export_s);
void pl_ipfix_sets_flush(struct pl_ipfix_sets *x, uint32_t export_s);
/* Number of paths, results or block records in the present message. */
uint32_t pl_ipfix_sets_waiting(const struct pl_ipfix_sets *x);

/* Template of data records of a kind with these flags; NULL when there are too many. It is valid
 * until one of the calls above. */
struct pl_ipfix_set *pl_ipfix_set_of(struct pl_ipfix_sets *x, uint8_t kind, uint32_t flags);
/* Puts a template before the first of data records that belong together: libfixbuf has templates in
 * messages of their own. */
void pl_ipfix_set_announce(struct pl_ipfix_sets *x, struct pl_ipfix_set *s, uint32_t export_s);
/* Puts a data record. record: all values that the kind can have, laid out as its elements. */
void pl_ipfix_set_put(struct pl_ipfix_sets *x, struct pl_ipfix_set *s, const void *record,
	size_t bytes, uint32_t export_s);
