/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records and events to whoever watches: an exporter whose other end are clients that come and go
 * (`pathline tail`, the events and values of /api/v1/), and records of taps beside them. It also
 * remembers the latest events and values.
 *
 * Each client has a bounded buffer of lines made when it opened, with its own kinds, expression and
 * form. What does not fit is dropped for that client, counted, and told to it in its stream, where
 * it happened:
 *
 *   {"kind":"dropped","count":3,"cause":"slow_client"}   this client did not read fast enough
 *   {"kind":"dropped","count":9,"cause":"queue_full"}    before filtering, for every client: the
 *                                                        output's thread did not keep up; of
 *                                                        taps: nor did their readers
 *   {"kind":"alive",…}                                   nothing else for 10 s
 *
 * No data line begins with these. For the output's account an entry is delivered when every client
 * that wanted it took it (also when none did), else dropped with cause queue_full; `seen = filtered
 * + sent + dropped` holds for each client.
 *
 * One thread is the exporter's; the functions here are for any one other thread, and
 * pl_watch_tapped() and pl_watch_turned() for a third, that of the taps, which never waits for the lock
 * that they share.
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
	/* A line each: "event ", "path ", "value " or the word of a kind of taps, and the record's bytes in
	 * hexadecimal digits, of a path with its hops behind it. For programs that have the same
	 * records. */
	PL_WATCH_RECORD,
	PL_WATCH_FORM_MAX,
};
const char *pl_watch_form_name(enum pl_watch_form form); /* "api", "jsonl", "table", … */

/* A kind of records of taps. They come by themselves: no other kind comes with them, and the form is
 * jsonl or record. */
struct pl_watch_kind {
	enum pl_flat_kind flat;
	const char *name; /* of many, in a request: "packets" */
	const char *word; /* of one, with a space, in the form record: "packet " */
};
/* Those that there are; NULL behind the last. */
const struct pl_watch_kind *pl_watch_kind_at(unsigned int i);
/* By what it makes; NULL: it is none of them. */
const struct pl_watch_kind *pl_watch_kind_of(enum pl_flat_kind flat);

struct pl_watch_options {
	unsigned int max_clients; /* 0: 8 */
	uint32_t buffer_bytes;    /* per client; 0: 1 MiB; at least 64 KiB */
	uint32_t recent_events;   /* and values; 0: 1024 */
};

struct pl_watch;
struct pl_watch_client;

/* -ENOMEM. The exporter owns *ret_live, which lives until it is closed; by then every client must
 * be. */
int pl_watch_new(
	struct pl_export **ret, struct pl_watch **ret_live, const struct pl_watch_options *options);
uint64_t pl_watch_memory(const struct pl_watch_options *options);

/*
 * `wake` is called on the exporter's thread when a client that found nothing has something now; it
 * must not block. `want` is called when paths begin or cease to be wanted, by the thread that opens
 * and closes.
 */
struct pl_watch_hooks {
	void (*wake)(void *arg);
	void (*want)(void *arg, bool paths);
	void *arg;
};
void pl_watch_set_hooks(struct pl_watch *live, const struct pl_watch_hooks *hooks);

struct pl_watch_request {
	bool paths, events, values; /* none: those that `where` can be asked of */
	uint32_t flat;              /* of taps, 1 << enum pl_flat_kind: one of them, alone */
	const char *where;          /* NULL = all */
	enum pl_watch_form form;
	struct pl_addr address; /* whose it is, for the statistics */
};
/* -EINVAL with diag (the expression, or CSV of several kinds); -EBUSY when there is no place;
 * -ENOMEM. */
int pl_watch_open(struct pl_watch_client **ret, struct pl_watch *live,
	const struct pl_watch_request *request, uint64_t now_ns, struct pl_diag *diag);
void pl_watch_close(struct pl_watch_client *client);

/* Up to cap bytes; 0: nothing now. now_ns is monotonic. */
size_t pl_watch_read(struct pl_watch_client *client, char *dst, size_t cap, uint64_t now_ns);
bool pl_watch_ready(struct pl_watch_client *client, uint64_t now_ns);

/* Records of a tap, for who watches them. Up to 384 KiB of a kind that come while a reader has the lock
 * are kept for the next call; further ones are left out, and told as queue_full. */
void pl_watch_tapped(
	struct pl_watch *live, enum pl_flat_kind kind, const void *records, uint32_t n);
/* There are no more of them for now. */
void pl_watch_turned(struct pl_watch *live);
/* Whether somebody watches records of taps. Any thread. */
bool pl_watch_wants_tapped(const struct pl_watch *live);

/* What the output's queues dropped before the exporter saw it, ever; growth is told to the
 * clients. */
void pl_watch_missed(struct pl_watch *live, uint64_t paths, uint64_t events, uint64_t values);

struct pl_watch_stats {
	struct pl_addr address;
	bool paths, events, values;
	enum pl_flat_kind flat; /* PL_FLAT_MAX: none */
	enum pl_watch_form form;
	uint64_t seen, filtered, sent, dropped; /* entries of its kinds; sent: into its buffer */
	uint64_t missed;                        /* of the output's queues while it was there */
	uint64_t waiting_bytes;
};
/* Of the clients there are, in no order: i from 0; false behind the last. */
bool pl_watch_stats(struct pl_watch *live, unsigned int i, struct pl_watch_stats *ret);

/* Events of an earlier run, oldest first, to be among the latest; before any come. */
void pl_watch_remember(struct pl_watch *live, const struct pl_event *events, uint32_t n);

/* The latest events, newest first; returns how many. ret_total: events ever. */
uint32_t pl_watch_events(
	struct pl_watch *live, struct pl_event *dst, uint32_t cap, uint64_t *ret_total);
uint32_t pl_watch_events_max(const struct pl_watch *live);
/* The latest values likewise. */
uint32_t pl_watch_values(
	struct pl_watch *live, struct pl_value *dst, uint32_t cap, uint64_t *ret_total);
