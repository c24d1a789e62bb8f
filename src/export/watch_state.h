/* SPDX-License-Identifier: BSD-2-Clause */
/* Internals of the live output, for watch.c (the driver) and watch_client.c (a viewer). */
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
	FLAT_LINE_MAX = 4096, /* upper bound of a tap record's line, in bytes */
};
#define ALIVE_NS (UINT64_C(10) * 1000000000u)

struct pl_watch_client {
	struct pl_watch *live;
	bool used;
	bool paths, events, values;
	uint32_t flat; /* as in the request */
	enum pl_watch_form form;
	struct pl_where *path_where, *event_where, *value_where, *flat_where;
	struct pl_watch_stats stats;
	uint64_t untold;      /* dropped, not reported yet */
	uint64_t missed_from; /* missed_of() at its start or last report */
	uint64_t read_ns;     /* last read with data */
	bool hungry;          /* its last read found nothing: to be woken */
	char *ring;           /* of live->buffer_bytes */
	size_t at, len;       /* begin and number of waiting bytes */
};

/* Tap records that came while a reader had the lock; of the taps' thread. */
struct pl_watch_pending {
	uint8_t *records; /* PENDING_BYTES; NULL: not a kind of tap records */
	uint32_t n;
};

struct pl_watch {
	struct pl_export export;
	pthread_mutex_t lock; /* guards everything below */
	struct pl_watch_hooks hooks;
	struct pl_watch_client *clients;
	unsigned int max_clients, n_clients;
	_Atomic unsigned int n_flat[PL_FLAT_MAX]; /* number of clients that want this kind */
	struct pl_watch_pending pending[PL_FLAT_MAX];
	_Atomic uint64_t missed_flat[PL_FLAT_MAX]; /* dropped beyond `pending` */
	size_t buffer_bytes;
	uint64_t missed_paths, missed_events, missed_values; /* dropped in the output's queues */
	struct pl_event *recent;                             /* a ring of max_recent */
	uint32_t max_recent;
	struct pl_value *recent_values;     /* likewise */
	uint64_t n_recent, n_recent_values; /* total ever */
	struct pl_buf line;                 /* scratch */
};

/* ---- watch_client.c ---- */

/* Puts live->line into the buffer, after a report of drops before it; drops it when both do not
 * fit. */
bool pl_watch_client_put(struct pl_watch_client *c);
/* Returns true, and counts a drop, when a line of `most` bytes might not fit. */
bool pl_watch_client_full(struct pl_watch_client *c, size_t most);
