/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a translator, for translator_new.c, translator.c (checks reports, gives operations out),
 * and a file of each primitive: translate_append.c, _counters.c, _key_write.c, _postcards.c,
 * _sketch.c. */
#pragma once

#include "base/bucket.h"
#include "dta/ages.h"
#include "dta/senders.h"
#include "dta/translator.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/sketch.h"

#define ARENA_BYTES (64u * 1024)
#define TAKEN       (-1) /* result of a check: accepted */

struct pl_translator;

/* A report that is being handled. */
struct intake {
	const struct pl_dta_report *report;
	const struct pl_addr *from;
	uint16_t from_port;
	uint64_t now_ns;
	struct pl_key key; /* of primitives that have one */
	uint64_t spread;   /* chooses the collector */
};

struct append_state {
	struct pl_append geometry;
	uint64_t *heads;  /* [collector * lists + list] */
	uint8_t *held;    /* batch entries of each list, unchanged */
	uint16_t *n_held; /* of each list */
	struct pl_ages ages;
	bool swap; /* published form: entries of 32 bits are little-endian in memory */
};

struct counters_state {
	struct pl_counters geometry;
	struct pl_cache cache;
	struct sum {
		uint64_t sum;
		uint32_t n; /* number of increments in it */
	} * sums;
};

struct postcards_state {
	struct pl_postcards geometry;
	struct pl_cache cache;
	uint32_t *values; /* [row * hops + hop - 1] */
	struct path_row {
		uint32_t have;  /* bit hop - 1: the hop is there */
		uint8_t length; /* 0: unknown */
		bool immediate;
	} * rows;
};

struct sketch_state {
	struct pl_sketch merged; /* in our own memory */
	void *cells;             /* of one report, little-endian */
	/* begun: an epoch is under way; over: it is complete or was given up */
	bool begun, over;
	uint32_t epoch;
	uint64_t since_ns;
	uint64_t heard_ns; /* time of the last columns merged */
	uint64_t complete, written;
	int collector; /* collector with the columns written; -1: none */
	uint32_t n_reporters;
	struct sketch_reporter {
		struct pl_addr addr;
		uint16_t port;
		uint64_t next; /* next column */
	} reporters[PL_SKETCH_REPORTERS_MAX];
	/* Sources of the present epoch and of the one before; further sources are not
	 * remembered. */
	struct sketch_source {
		struct pl_addr source;
		uint32_t held; /* places */
		bool refused;  /* a request for another place was refused */
	} heard[PL_SKETCH_REPORTERS_MAX], known[PL_SKETCH_REPORTERS_MAX];
	uint32_t n_heard, n_known;
};

struct store {
	struct pl_dta_store config; /* defaults filled in */
	const struct primitive *primitive;
	uint16_t number;
	bool published; /* PL_HASH_DTA */
	struct pl_bucket bucket;
	union {
		struct pl_key_write key_write;
		struct append_state append;
		struct counters_state counters;
		struct postcards_state postcards;
		struct sketch_state sketch;
	};
};

/* Operations of a primitive. */
struct primitive {
	/* Returns -ENOMEM, or -EINVAL with diag. */
	int (*init)(struct pl_translator *t, struct store *s, struct pl_diag *diag);
	void (*done)(struct store *s); /* also after a failed init */
	/* Returns TAKEN with key and spread filled in, or the refusal (enum pl_refusal). Changes
	 * nothing. */
	int (*check)(const struct store *s, struct intake *in);
	/* Takes a checked report. Returns false when it is a repeat. */
	bool (*take)(struct pl_translator *t, struct store *s, const struct intake *in);
	/* Writes what is due, or everything. NULL, and due NULL too: nothing is ever held. */
	void (*tick)(struct pl_translator *t, struct store *s, uint64_t now_ns, bool all);
	uint64_t (*due)(const struct store *s);
};

/* Notes that a report was refused because the sketch had no place for its reporter. */
void pl_translate_sketch_refused(struct store *s, const struct intake *in);

extern const struct primitive pl_translate_key_write, pl_translate_append, pl_translate_counters,
	pl_translate_postcards, pl_translate_sketch;

struct pl_translator {
	struct pl_op_sink sink;
	struct pl_translator_counters count;
	struct pl_translator_held held;
	struct store *stores;
	unsigned int n_stores, collectors;
	uint64_t up, busy; /* bits of collectors */
	/* the first store of each, for published reports */
	struct store *by_primitive[PL_SKETCH + 1];
	struct pl_senders senders;
	bool limits_senders;
	struct pl_sender *asker; /* reporter that asks in the present datagram */
	struct pl_prefix *access;
	unsigned int n_access;
	enum pl_dta_form form;
	uint64_t nack_interval_ns;
	uint32_t nack_tries;
	uint16_t nack_port;
	uint64_t memory;
	/* operations that the sink did not get yet */
	struct pl_op ops[PL_OPS_MAX];
	unsigned int n_ops;
	uint8_t *arena;
	uint32_t arena_used, arena_bytes;
};

/* Allocates n zeroed objects, counted in t->memory; NULL. */
void *pl_translator_alloc(struct pl_translator *t, size_t n, size_t size);
/* Makes a cache, counted in t->memory. */
int pl_translator_cache(struct pl_translator *t, struct pl_cache *c, uint32_t rows);

/* Gives the waiting operations to the sink. */
void pl_translator_deliver(struct pl_translator *t);

/* The next three are called for each copy of a value, and inline for that. */

/* Room for the bytes of the next write, aligned to 8; at most t->arena_bytes. Room given before and
 * not used in an operation is lost. */
static inline uint8_t *pl_translator_room(struct pl_translator *t, uint32_t bytes)
{
	uint8_t *p;

	bytes = (bytes + 7) & ~7u;
	if (bytes > t->arena_bytes - t->arena_used || t->n_ops == PL_OPS_MAX)
		pl_translator_deliver(t);
	p = t->arena + t->arena_used;
	t->arena_used += bytes;
	return p;
}

/* The next operation, to be filled in. */
static inline struct pl_op *pl_translator_op(struct pl_translator *t)
{
	if (t->n_ops == PL_OPS_MAX) {
		/* Room given out just now is still needed. */
		const uint32_t used = t->arena_used;

		pl_translator_deliver(t);
		t->arena_used = used;
	}
	return &t->ops[t->n_ops++];
}

/* Adds an operation; `data` is from pl_translator_room, or stays until the next call of
 * pl_translator_deliver. */
static inline struct pl_op *pl_translator_write(struct pl_translator *t, const struct store *s,
	int collector, uint64_t offset, const uint8_t *data, uint32_t bytes)
{
	struct pl_op *op = pl_translator_op(t);

	*op = (struct pl_op){
		.kind = PL_OP_WRITE,
		.collector = (uint16_t)collector,
		.store = s->number,
		.bytes = bytes,
		.offset = offset,
		.data = data,
	};
	t->count.writes++;
	t->count.write_bytes += bytes;
	return op;
}
struct pl_op *pl_translator_add(struct pl_translator *t, const struct store *s, int collector,
	uint64_t offset, uint64_t increment);

/* Makes the operation wake its collector. */
void pl_translator_wake(struct pl_translator *t, struct pl_op *op, uint32_t imm);

static inline int pl_translator_choose(
	const struct pl_translator *t, const struct store *s, uint64_t spread)
{
	if (t->collectors == 1)
		return t->up != 0 ? 0 : -1;
	return pl_collector_choose(s->number, spread, t->up, t->collectors);
}

/* Returns true when the number in a value or entry is above that of the filter. */
bool pl_filter_wants(const struct pl_dta_filter *f, const uint8_t *bytes);

/* Returns true when a value or entry passes the filter. */
static inline bool pl_filter_passes(const struct pl_dta_filter *f, const uint8_t *bytes)
{
	return !f->on || pl_filter_wants(f, bytes);
}
