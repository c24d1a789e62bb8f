/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drivers of outputs: one interface for files, databases and message systems. It
 * has three separate parts:
 *
 *   queue       worker -> driver thread: one single-producer ring per worker and driver,
 *               bounded; a full ring drops new records and counts them, so that a slow or dead
 *               driver does not slow the rest
 *   formatting  pure functions from records to bytes, in each driver's own header
 *   sending     this interface: open, write, flush, close; one thread calls them
 *
 * The unit of account is an entry: a path with its hops, an event, a value, a packet as it arrived,
 * or a point of a series. For the queue
 *   accepted + dropped[QUEUE_FULL] = offered,   accepted = taken + in the queue
 * and for the driver behind it, at any quiet moment,
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
	PL_EXPORT_QUEUE_FULL, /* the driver's thread was too slow */
	PL_EXPORT_NO_SPACE,   /* disk full, quota, file size limit */
	PL_EXPORT_IO,         /* another error of the device or connection */
	PL_EXPORT_FORMAT,     /* could not be formatted: no memory, or above the size limit */
	PL_EXPORT_REJECTED,   /* refused by the server */
	PL_EXPORT_CLOSED,     /* unsent when the time for the shutdown was over */
	PL_EXPORT_MEMORY,     /* memory for batches, or a ring, was full and there is no spool */
	PL_EXPORT_SPOOL_FULL, /* the spool was full: the entry was not stored, or removed */
	PL_EXPORT_DAMAGED,    /* spooled, and no longer readable */
	PL_EXPORT_TIME,       /* time stamp out of range, harmful at the server */
	PL_EXPORT_EMPTY,      /* holds nothing that this driver writes */
	PL_EXPORT_DROP_MAX,
};
const char *pl_export_drop_name(enum pl_export_drop cause); /* "queue_full", … */
/* Returns the cause for an entry that a spool or file did not take with this negative errno. */
enum pl_export_drop pl_export_drop_of(int error);

/* Any thread may read; the driver's thread writes. Counters of a spool, requests and points exist
 * for drivers to servers only (export/sender.h). */
struct pl_export_stats {
#define PL_STAT(kind, member, ...) struct pl_counter member;
#include "export/stats.def"
#undef PL_STAT
	struct pl_counter accepted;
	struct pl_counter dropped[PL_EXPORT_DROP_MAX];
	_Atomic uint64_t queued;        /* entries in memory, neither delivered nor dropped */
	_Atomic uint64_t spooled;       /* entries on disk, neither delivered nor dropped */
	_Atomic uint64_t spooled_bytes; /* bytes of the spool on disk */
	_Atomic int last_error;         /* errno of the last failed attempt; 0: none */
};

struct pl_export;

/* Texts for people: printable, empty when there is nothing to report. */
#define PL_WORDS_MAX 320
struct pl_export_words {
	char trouble[PL_WORDS_MAX]; /* why nothing is delivered now */
	char refusal[PL_WORDS_MAX]; /* the server's answer to the last refused entry */
};

/* Operations of a driver; one thread calls them, except where noted. now_ns is monotonic. */
struct pl_export_ops {
	const char *name; /* "jsonl" */
	/* Writes paths: afterwards each is delivered, queued or counted as dropped. Never blocks
	 * for longer than one system call on a local file. */
	void (*write_paths)(
		struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns);
	void (*write_events)(
		struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns);
	/* NULL: takes no values. */
	void (*write_values)(
		struct pl_export *e, const struct pl_value *values, uint32_t n, uint64_t now_ns);
	/* Writes records of flat kinds, of each the first bytes of `stride`. NULL: takes none. */
	void (*write_flat)(struct pl_export *e, enum pl_flat_kind kind, const void *records,
		uint32_t n, uint32_t stride, uint64_t now_ns);
	/* Writes packets as they arrived: n entries (raw/message.h), `len` bytes together. NULL:
	 * takes none. */
	void (*write_packets)(
		struct pl_export *e, const void *entries, size_t len, uint32_t n, uint64_t now_ns);
	/* Writes the points of one interval. NULL: takes none. */
	void (*write_series)(struct pl_export *e, const struct pl_series_point *points, uint32_t n,
		uint64_t now_ns);
	/* Sends entries that are due; called at least once a second, and with `all` before closing.
	 * NULL: nothing is ever held back. */
	void (*flush)(struct pl_export *e, uint64_t now_ns, bool all);
	/* For sources that can be read again from a position (netio/port.h). mark() remembers all
	 * that was accepted so far; the next mark comes when this one is settled. settled() returns
	 * true when a process end loses none of those entries: each is delivered, on disk, or
	 * dropped and counted. Both NULL: settled once nothing is queued. */
	void (*mark)(struct pl_export *e);
	bool (*settled)(struct pl_export *e);
	/* Closes files and connections and opens them again by name (SIGHUP). 0 or -errno; on
	 * failure the old ones stay in use. NULL: there are none. */
	int (*reopen)(struct pl_export *e, uint64_t now_ns, struct pl_diag *diag);
	/* Called when nothing more will come or be sent: stores what is left where it survives.
	 * Entries that do not survive stay in `queued`. NULL: nothing to do. */
	void (*finish)(struct pl_export *e);
	/* Any thread. NULL: no texts. */
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

/* Frees e; NULL does nothing. Flush with `all` before; read `queued` for the entries still unsent,
 * which are lost. */
static inline void pl_export_close(struct pl_export *e)
{
	if (e != NULL)
		e->ops->close(e);
}
