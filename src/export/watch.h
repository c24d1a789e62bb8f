/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records and events for live viewers: a driver whose clients come and go (`pathline tail`, the
 * events and values of /api/v1/), with records of taps. It also remembers the latest events and
 * values.
 *
 * Each client has a bounded buffer of lines, allocated at the start, and its own kinds, expression
 * and form. Lines that do not fit are dropped for that client, counted, and reported in its stream,
 * where it happened:
 *
 *   {"kind":"dropped","count":3,"cause":"slow_client"}   this client did not read fast enough
 *   {"kind":"dropped","count":9,"cause":"queue_full"}    before filtering, for every client: the
 *                                                        output's thread was too slow; of taps:
 *                                                        or their readers were
 *   {"kind":"alive",…}                                   nothing else for 10 s
 *
 * No data line begins like these. In the output's account an entry is delivered when every client
 * that wanted it took it (also when none did), else dropped with cause queue_full; `seen = filtered
 * + sent + dropped` holds for each client.
 *
 * The driver's operations run in its thread; the functions here in any one other thread, and
 * pl_watch_tapped() and pl_watch_turned() in a third, that of the taps, which never waits for the
 * lock they share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "export/exporter.h"

enum pl_watch_form {
	PL_WATCH_API,   /* JSON lines; times are strings (record/rows.h) */
	PL_WATCH_JSONL, /* JSON lines as in files */
	PL_WATCH_TABLE,
	PL_WATCH_WIDE,
	PL_WATCH_CSV, /* of one kind */
	PL_WATCH_TEXT,
	/* One line each: "event ", "path ", "value " or the word of a kind of taps, and the
	 * record's bytes in hexadecimal digits; a path's hops follow. For programs with the same
	 * record types. */
	PL_WATCH_RECORD,
	PL_WATCH_FORM_MAX,
};
const char *pl_watch_form_name(enum pl_watch_form form); /* "api", "jsonl", "table", … */

/* A kind of records of taps and marking domains. Its form is jsonl or record; with other kinds it is
 * record, without an expression. */
struct pl_watch_kind {
	enum pl_flat_kind flat;
	const char *name; /* plural, in requests: "packets" */
	const char *word; /* singular with a space, in the form record: "packet " */
};
/* Returns kind i; NULL behind the last. */
const struct pl_watch_kind *pl_watch_kind_at(unsigned int i);
/* Returns the kind for a flat record; NULL: taps do not make it. */
const struct pl_watch_kind *pl_watch_kind_of(enum pl_flat_kind flat);

struct pl_watch_options {
	unsigned int max_clients; /* 0: 8 */
	uint32_t buffer_bytes;    /* bytes per client; 0: 1 MiB; at least 64 KiB */
	uint32_t recent_events;   /* events, and as many values; 0: 1024 */
};

struct pl_watch;
struct pl_watch_client;

/* -ENOMEM. The driver owns *ret_live, which lives until the driver is closed; clients must be
 * closed before. */
int pl_watch_new(
	struct pl_export **ret, struct pl_watch **ret_live, const struct pl_watch_options *options);
uint64_t pl_watch_memory(const struct pl_watch_options *options);

/*
 * `wake` is called on the driver's or the taps' thread when a client that found nothing has data
 * now; it must not block. `want` is called when clients begin or cease to want paths, by the thread
 * that opens and closes them.
 */
struct pl_watch_hooks {
	void (*wake)(void *arg);
	void (*want)(void *arg, bool paths);
	void *arg;
};
void pl_watch_set_hooks(struct pl_watch *live, const struct pl_watch_hooks *hooks);

struct pl_watch_request {
	bool paths, events, values; /* none set: all kinds that have the fields of `where` */
	uint32_t flat;              /* of taps and marking domains: bits 1 << enum pl_flat_kind */
	const char *where;          /* NULL = all */
	enum pl_watch_form form;
	struct pl_addr address; /* the client's, for the statistics */
};
/* -EINVAL with diag (the expression, or several kinds in a form of one); -EBUSY: all places are taken;
 * -ENOMEM. */
int pl_watch_open(struct pl_watch_client **ret, struct pl_watch *live,
	const struct pl_watch_request *request, uint64_t now_ns, struct pl_diag *diag);
void pl_watch_close(struct pl_watch_client *client);

/* Reads up to cap bytes; returns 0 when there are none now. now_ns is monotonic. */
size_t pl_watch_read(struct pl_watch_client *client, char *dst, size_t cap, uint64_t now_ns);
bool pl_watch_ready(struct pl_watch_client *client, uint64_t now_ns);

/* Offers records of a tap. While a reader holds the lock, up to 384 KiB of a kind are kept for the
 * next call; further ones are dropped and reported as queue_full. */
void pl_watch_tapped(
	struct pl_watch *live, enum pl_flat_kind kind, const void *records, uint32_t n);
/* Offers kept records when no new ones come for now. */
void pl_watch_turned(struct pl_watch *live);
/* Returns true when a client wants records of taps. Any thread. */
bool pl_watch_wants_tapped(const struct pl_watch *live);

/* Sets the number of entries that the output's queues dropped in front of the driver; an increase
 * is reported to clients. */
void pl_watch_missed(struct pl_watch *live, uint64_t paths, uint64_t events, uint64_t values);

struct pl_watch_stats {
	struct pl_addr address;
	bool paths, events, values;
	uint32_t flat; /* as in the request */
	enum pl_watch_form form;
	uint64_t seen, filtered, sent, dropped; /* entries of its kinds; sent: into its buffer */
	uint64_t missed;                        /* dropped by the output's queues meanwhile */
	uint64_t waiting_bytes;
};
/* Returns the statistics of client i, from 0, in no order; false behind the last. */
bool pl_watch_stats(struct pl_watch *live, unsigned int i, struct pl_watch_stats *ret);

/* Adds events of an earlier run, oldest first, to the latest; called before any come. */
void pl_watch_remember(struct pl_watch *live, const struct pl_event *events, uint32_t n);

/* Copies the latest events, newest first; returns their number. ret_total: events ever. */
uint32_t pl_watch_events(
	struct pl_watch *live, struct pl_event *dst, uint32_t cap, uint64_t *ret_total);
uint32_t pl_watch_events_max(const struct pl_watch *live);
/* Likewise for the latest values. */
uint32_t pl_watch_values(
	struct pl_watch *live, struct pl_value *dst, uint32_t cap, uint64_t *ret_total);
