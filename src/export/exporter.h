/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where records go: one interface for files, databases, message systems. Three parts, kept apart:
 *
 *   queue      worker -> exporter thread, one single-producer ring per worker and exporter,
 *              bounded; a full one drops what comes and counts it, so a slow or dead exporter never
 *              slows the rest
 *   formatting pure functions from records to bytes, in each exporter's own header
 *   sending    this interface: open, write, flush, close; one thread calls them
 *
 * The unit of account is an entry: a path with its hops, an event, a value, a packet as it arrived, or a
 * point of a series. For the
 * queue
 *   accepted + dropped[QUEUE_FULL] = offered,   accepted = taken + in the queue
 * and for the exporter behind it, at any quiet moment,
 *   accepted + recovered = delivered + every dropped[cause] + queued + spooled.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/diag.h"
#include "export/series.h"
#include "record/packet.h"

enum pl_export_drop {
	PL_EXPORT_QUEUE_FULL, /* the exporter's thread did not keep up */
	PL_EXPORT_NO_SPACE,   /* disk full, quota, file size limit */
	PL_EXPORT_IO,         /* any other failure of the device or the connection */
	PL_EXPORT_FORMAT,     /* could not be written down: no memory, or beyond the size limit */
	PL_EXPORT_REJECTED,   /* the server will not have it, and said so */
	PL_EXPORT_CLOSED,     /* still unsent when the time to shut down was over */
	PL_EXPORT_MEMORY,     /* the memory for batches was full, and there is no spool */
	PL_EXPORT_SPOOL_FULL, /* the spool was full, and this gave way (or found no place) */
	PL_EXPORT_DAMAGED,    /* spooled, and not readable any more */
	PL_EXPORT_TIME,       /* a time stamp that cannot be, which would do harm at the server */
	PL_EXPORT_EMPTY,      /* nothing in it that this kind of exporter writes */
	PL_EXPORT_DROP_MAX,
};
const char *pl_export_drop_name(enum pl_export_drop cause); /* "queue_full", … */

/* Any thread may read; the exporter's thread writes. Those of a spool, requests and points are of
 * exporters to servers (export/sender.h). */
struct pl_export_stats {
#define PL_STAT(kind, member, ...) struct pl_counter member;
#include "export/stats.def"
#undef PL_STAT
	struct pl_counter accepted;
	struct pl_counter dropped[PL_EXPORT_DROP_MAX];
	_Atomic uint64_t queued;        /* entries in memory, neither delivered nor dropped */
	_Atomic uint64_t spooled;       /* entries on disk, neither delivered nor dropped */
	_Atomic uint64_t spooled_bytes; /* what the spool takes on disk */
	_Atomic int last_error;         /* errno of the last failed attempt; 0 while all is well */
};

struct pl_export;

/* In words, for people: printable, empty when there is nothing to tell. */
#define PL_WORDS_MAX 320
struct pl_export_words {
	char trouble[PL_WORDS_MAX]; /* why nothing is delivered at the moment */
	char refusal[PL_WORDS_MAX]; /* the last refused entry's answer */
};

/* What a kind of exporter supplies; all are called by one thread. now_ns is monotonic. */
struct pl_export_ops {
	const char *name; /* "jsonl" */
	/* Takes every entry: afterwards it is delivered, queued or counted as dropped. Never blocks
	 * for longer than one system call on a local file. */
	void (*write_paths)(
		struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns);
	void (*write_events)(
		struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns);
	/* NULL: takes none. */
	void (*write_values)(
		struct pl_export *e, const struct pl_value *values, uint32_t n, uint64_t now_ns);
	/* Records of packets, flows and their like, each the first bytes of `stride`. NULL: takes none. */
	void (*write_flat)(struct pl_export *e, enum pl_flat_kind kind, const void *records,
		uint32_t n, uint32_t stride, uint64_t now_ns);
	/* Packets as they arrived: n entries (raw/message.h) of `len` bytes together. NULL: takes
	 * none. */
	void (*write_packets)(
		struct pl_export *e, const void *entries, size_t len, uint32_t n, uint64_t now_ns);
	/* Once per interval, what the network looks like. NULL: takes none. */
	void (*write_series)(struct pl_export *e, const struct pl_series_point *points, uint32_t n,
		uint64_t now_ns);
	/* Sends what is due: call at least once a second, and with `all` before closing. NULL: nothing
	 * waits. */
	void (*flush)(struct pl_export *e, uint64_t now_ns, bool all);
	/* For sources that can be read again from a position (netio/port.h). A mark stands behind all
	 * that was accepted so far; the next one comes when the last is settled. Settled: of what
	 * was accepted before the mark nothing is lost when the process ends, for it is delivered,
	 * on disk, or dropped and counted. NULL, both: it is settled once nothing is queued. */
	void (*mark)(struct pl_export *e);
	bool (*settled)(struct pl_export *e);
	/* Lets go of files and connections and takes them up again by name (SIGHUP). 0 or -errno;
	 * on failure goes on with what it had. NULL: it holds none. */
	int (*reopen)(struct pl_export *e, uint64_t now_ns, struct pl_diag *diag);
	/* Nothing more will come or be sent: puts away what is left where it survives. What does
	 * not stays in `queued`. NULL: nothing to do. */
	void (*finish)(struct pl_export *e);
	/* Any thread. NULL: has no words. */
	void (*words)(struct pl_export *e, struct pl_export_words *ret);
	void (*close)(struct pl_export *e); /* frees e */
};

struct pl_export {
	const struct pl_export_ops *ops;
	struct pl_export_stats stats;
};

static inline void pl_export_write_paths(
	struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	e->ops->write_paths(e, batch, now_ns);
}

static inline void pl_export_write_events(
	struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	e->ops->write_events(e, events, n, now_ns);
}

static inline void pl_export_write_values(
	struct pl_export *e, const struct pl_value *values, uint32_t n, uint64_t now_ns)
{
	e->ops->write_values(e, values, n, now_ns);
}

static inline void pl_export_write_flat(struct pl_export *e, enum pl_flat_kind kind,
	const void *records, uint32_t n, uint32_t stride, uint64_t now_ns)
{
	e->ops->write_flat(e, kind, records, n, stride, now_ns);
}

static inline void pl_export_write_series(
	struct pl_export *e, const struct pl_series_point *points, uint32_t n, uint64_t now_ns)
{
	e->ops->write_series(e, points, n, now_ns);
}

static inline void pl_export_flush(struct pl_export *e, uint64_t now_ns, bool all)
{
	if (e->ops->flush != NULL)
		e->ops->flush(e, now_ns, all);
}

static inline void pl_export_mark(struct pl_export *e)
{
	if (e->ops->mark != NULL)
		e->ops->mark(e);
}

static inline bool pl_export_settled(struct pl_export *e)
{
	if (e->ops->settled != NULL)
		return e->ops->settled(e);
	return atomic_load_explicit(&e->stats.queued, memory_order_relaxed) == 0;
}

static inline int pl_export_reopen(struct pl_export *e, uint64_t now_ns, struct pl_diag *diag)
{
	return e->ops->reopen != NULL ? e->ops->reopen(e, now_ns, diag) : 0;
}

static inline void pl_export_finish(struct pl_export *e)
{
	if (e->ops->finish != NULL)
		e->ops->finish(e);
}

/* Frees; NULL does nothing. Flush with `all` first; what is still unsent then is lost, read
 * queued. */
static inline void pl_export_close(struct pl_export *e)
{
	if (e != NULL)
		e->ops->close(e);
}
