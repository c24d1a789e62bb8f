/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of remote write, for remote_write.c and remote_series.c. */
#pragma once

#include "base/hash.h"
#include "export/exposition.h"
#include "export/remote_write.h"

enum {
	LABELS_MAX = PL_SERIES_LABELS_MAX + PL_REMOTE_LABELS_MAX + 2, /* with __name__ and le */
	VALUE_MAX = 1024,                                             /* of a label */
	EXEMPLAR_LABELS_MAX = 4,
	SERIES_DEFAULT = 262144,
	SERIES_LIMIT = 1 << 24,
	SWEEP = 8, /* points looked at, whether they ended, for each that comes */
	NAME_MAX_LEN = 160,
};

struct pair {
	const char *name, *value;
};

/* A point that was written and has not ended. */
struct series {
	uint64_t hash;
	uint64_t interval; /* the last one that it was in */
	int64_t last_ms;
	const char *metric; /* static */
	/* a copy: the point's are gone when a marker needs them */
	struct pl_exposition_bounds bounds;
	char *labels; /* name, NUL, value, NUL, …: sorted */
	uint32_t labels_len;
	uint32_t next; /* of the same head, + 1 */
	enum pl_series_kind kind;
};

struct remote {
	struct pair base[PL_REMOTE_LABELS_MAX];
	char *base_text[PL_REMOTE_LABELS_MAX];
	uint32_t n_base;

	struct series *series;
	uint32_t *heads; /* number + 1 */
	uint32_t n, max, mask, sweep;
	uint64_t seed;
	/* Intervals are told apart by their time. */
	uint64_t interval;
	int64_t interval_ms, before_ms;

	/* Scratch. */
	struct pl_buf identity, texts;

	/* The sender's side: the times of the last request, the oldest and the newest. */
	int64_t body_oldest, body_newest;
};

/* ---- remote_series.c ---- */

bool pl_remote_name_good(const char *name, size_t len, bool metric);
/* The labels as they are sent, one behind the other, without the empty ones. */
int pl_remote_identify(struct remote *r, const struct pl_series_point *p);
/* The configuration may change the bounds of a histogram that goes on: buckets that are no more
 * end. */
void pl_remote_take_bounds(struct remote *r, struct series *s, const struct pl_exposition_bounds *b,
	int64_t ms, struct pl_buf *out);
void pl_remote_put(struct remote *r, const struct series *s, const struct pl_series_field *f,
	int64_t ms, struct pl_buf *out);
int pl_remote_obtain(struct remote *r, const struct pl_series_field *f, struct series **ret);
/* Ends a few of those that were not in the whole interval before this one. Its time is later than
 * any sample of theirs. */
void pl_remote_sweep(struct remote *r, struct pl_buf *out);
