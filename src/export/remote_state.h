/* SPDX-License-Identifier: BSD-2-Clause */
/* Internals of remote write, for remote_write.c and remote_series.c. */
#pragma once

#include "base/hash.h"
#include "export/exposition.h"
#include "export/remote_write.h"

enum {
	LABELS_MAX = PL_SERIES_LABELS_MAX + PL_REMOTE_LABELS_MAX + 2, /* and __name__, le */
	VALUE_MAX = 1024,                                             /* longest value of a label */
	EXEMPLAR_LABELS_MAX = 4,
	SERIES_DEFAULT = 262144,
	SERIES_LIMIT = 1 << 24,
	SWEEP = 8, /* series checked for their end per point */
	NAME_MAX_LEN = 160,
};

struct pair {
	const char *name, *value;
};

/* A series, or histogram, that was written and has not ended. */
struct series {
	uint64_t hash;
	uint64_t interval; /* the last interval with a sample */
	int64_t last_ms;
	const char *metric; /* static */
	/* a copy: a stale marker is written without a point */
	struct pl_exposition_bounds bounds;
	char *labels; /* name, NUL, value, NUL, …: sorted */
	uint32_t labels_len;
	uint32_t next; /* next in the chain, number + 1; 0: none */
	enum pl_series_kind kind;
};

struct remote {
	struct pair base[PL_REMOTE_LABELS_MAX];
	char *base_text[PL_REMOTE_LABELS_MAX];
	uint32_t n_base;

	struct series *series;
	uint32_t *heads; /* of chains: number + 1 */
	uint32_t n, max, mask, sweep;
	uint64_t seed;
	/* Number of intervals; each has its own time. */
	uint64_t interval;
	int64_t interval_ms, before_ms;

	/* Scratch. */
	struct pl_buf identity, texts;

	/* The sender's thread's own: oldest and newest time in the last request. */
	int64_t body_oldest, body_newest;
};

/* ---- remote_series.c ---- */

bool pl_remote_name_good(const char *name, size_t len, bool metric);
/* Puts the point's labels as they are sent, without empty ones, into r->identity. */
int pl_remote_identify(struct remote *r, const struct pl_series_point *p);
/* Takes a histogram's bounds, which the configuration may change: buckets that are gone end. */
void pl_remote_take_bounds(struct remote *r, struct series *s, const struct pl_exposition_bounds *b,
	int64_t ms, struct pl_buf *out);
void pl_remote_put(struct remote *r, const struct series *s, const struct pl_series_field *f,
	int64_t ms, struct pl_buf *out);
int pl_remote_obtain(struct remote *r, const struct pl_series_field *f, struct series **ret);
/* Ends a few series without a sample in the whole previous interval. Their markers carry that
 * interval's time, later than any of their samples. */
void pl_remote_sweep(struct remote *r, struct pl_buf *out);
