/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the live output, for watch.c (the exporter) and watch_client.c (a viewer). */
#pragma once

#include <pthread.h>

#include "base/buf.h"
#include "export/watch.h"

enum {
	MAX_CLIENTS = 8,
	RECENT_EVENTS = 1024,
	BUFFER_MIN = 64 * 1024,
	BUFFER_DEFAULT = 1024 * 1024,
	NOTICE_MAX = 128,
	PENDING_BYTES = 384 * 1024,
	FLAT_LINE_MAX = 4096, /* bytes of a record of a tap as a line, or less */
};
#define ALIVE_NS (UINT64_C(10) * 1000000000u)

struct pl_watch_client {
	struct pl_watch *live;
	bool used;
	bool paths, events, values;
	enum pl_flat_kind flat; /* PL_FLAT_MAX: none */
	enum pl_watch_form form;
	struct pl_where *path_where, *event_where, *value_where, *flat_where;
	struct pl_watch_stats stats;
	uint64_t untold;      /* dropped, not yet said in the stream */
	uint64_t missed_from; /* missed_of() when it came, and what of it was told */
	uint64_t read_ns;     /* when something was last read */
	bool hungry;          /* found nothing at its last read: wake it */
	char *ring;           /* live->buffer_bytes of them */
	size_t at, len;       /* first byte waiting, bytes waiting */
};

/* Records of a kind that came while a reader had the lock; of the taps' thread. */
struct pl_watch_pending {
	uint8_t *records; /* PENDING_BYTES; NULL: not a kind of taps */
	uint32_t n;
};

struct pl_watch {
	struct pl_export export;
	pthread_mutex_t lock; /* everything below */
	struct pl_watch_hooks hooks;
	struct pl_watch_client *clients;
	unsigned int max_clients, n_clients;
	_Atomic unsigned int n_flat[PL_FLAT_MAX]; /* clients that want these */
	struct pl_watch_pending pending[PL_FLAT_MAX];
	_Atomic uint64_t missed_flat[PL_FLAT_MAX]; /* beyond them */
	size_t buffer_bytes;
	uint64_t missed_paths, missed_events, missed_values; /* in the output's queues */
	struct pl_event *recent;                             /* a ring of max_recent */
	uint32_t max_recent;
	struct pl_value *recent_values;     /* likewise */
	uint64_t n_recent, n_recent_values; /* ever */
	struct pl_buf line;                 /* scratch */
};

/* ---- watch_client.c ---- */

/* The line in live->line goes in whole, behind the word about what was dropped before it, or not at
 * all. */
bool pl_watch_client_put(struct pl_watch_client *c);
/* Whether a line of so many bytes may have no room; then one is dropped. */
bool pl_watch_client_full(struct pl_watch_client *c, size_t most);
