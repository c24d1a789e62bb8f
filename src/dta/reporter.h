/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reporter of Direct Telemetry Access, for programs that export telemetry: builds reports,
 * packs several into a datagram where the form allows it, numbers them, keeps the last ones to send
 * them again when the translator misses some, and keeps to a rate. It owns no socket and no clock:
 * datagrams leave through a function of the caller's, the caller gives it NACKs that arrive, time
 * passes by pl_reporter_tick.
 *
 *   struct pl_reporter_config config = { .form = PL_DTA_PATHLINE, .sequenced = true };
 *   pl_reporter_new(&r, &config, send_datagram, socket, &diag);
 *   pl_reporter_key_write(r, now, store, key, sizeof(key), value, sizeof(value));
 *   pl_reporter_flush(r, now);
 *
 * Reports are sent in the order of their put, also after some are sent again. A sequenced report
 * stays in the ring until the translator confirms it: eight times in a ring, and each probe_ns, a
 * report asks for the last number that the translator took. Published forms cannot ask, and older
 * translators do not answer; then a report stays for hold_ns, the time for NACKs. While the ring is
 * full, puts are refused: at most a ring of reports passes in each round trip, or, without answers,
 * in each hold_ns. The wait for a translator that answered before is ten times as long. Unsent
 * reports take half of the ring at most. A NACK that names a report older than the ring is answered
 * from the oldest report on, and the missing ones are counted as unavailable.
 *
 * The translator cannot notice the loss of a last report, so when nothing follows a sequenced
 * report for probe_ns, it is sent once more, up to probes times (ten times as often to a translator
 * that answered), until it is confirmed; the translator recognizes repeats by the number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "wire/dta.h"

#define PL_REPORTER_RING_TRACKING 127u /* half of the numbers of 8 bits */
#define PL_REPORTER_RING_MAX      (1u << 20)

struct pl_reporter_config {
	enum pl_dta_form form;
	bool sequenced; /* not with PL_DTA_PLAIN */
	/* reports kept; 0: 127 with TRACKING (the largest), 8192 sequenced, else 1024 */
	uint32_t ring;
	/* sequenced, without answers: time that a report is kept; 0: 200 ms, TRACKING: 10 ms */
	uint64_t hold_ns;
	uint32_t datagram_bytes; /* longest datagram; 0: 1400. Also the longest report */
	uint8_t copies;          /* published forms: copies of key-write and increment; 0: 1 */
	bool one_by_one; /* PATHLINE: a datagram for each report, as in the published forms */
	/* time that reports wait for others; 0: until the datagram is full or flushed */
	uint64_t linger_ns;
	double rate;       /* reports per second, including those sent again; 0: no limit */
	double burst;      /* reports at once after a pause; 0: a tenth of a second's, at least 1 */
	uint64_t probe_ns; /* 0: 20 ms */
	uint32_t probes;   /* 0: 3 */
};

struct pl_reporter_counters {
	uint64_t reports;          /* put */
	uint64_t datagrams, bytes; /* sent */
	uint64_t sent;             /* reports in them, including those sent again */
	uint64_t again;            /* sent again because of a NACK */
	uint64_t probes;
	uint64_t nacks;         /* NACKs that were understood and named something sent */
	uint64_t answers;       /* answers to reports that asked */
	uint64_t nacks_strange; /* not a NACK, or of numbers that were never sent */
	uint64_t unavailable;   /* reports asked for that the ring no longer had: lost */
	/* reports that the translator gave up: lost, some of them unavailable ones */
	uint64_t given_up;
	uint64_t refused; /* reports that the translator refused for good */
};

struct pl_reporter;

/* Sends a datagram; it counts its own failures. */
typedef void pl_reporter_send(void *arg, const void *bytes, size_t n);

/* Returns -EINVAL with a diag, -ENOMEM. */
int pl_reporter_new(struct pl_reporter **ret, const struct pl_reporter_config *config,
	pl_reporter_send *send, void *arg, struct pl_diag *diag);
void pl_reporter_free(struct pl_reporter *r);

/*
 * Puts a report of any primitive; form, sequenced, asks and seq are set here. The bytes are copied.
 * Returns -EAGAIN when the ring is full of reports that wait for the rate or for the translator's
 * confirmation: call again after pl_reporter_due_ns, or when a datagram came back. -EINVAL: the
 * form cannot express the report; -EMSGSIZE: longer than a datagram.
 */
int pl_reporter_put(struct pl_reporter *r, uint64_t now_ns, const struct pl_dta_report *report);

/* As pl_reporter_put for each primitive but sketches, with as many copies as the store has, in
 * published forms as configured. Published forms: store 0, keys of 4 bytes, no path length. */
int pl_reporter_key_write(struct pl_reporter *r, uint64_t now_ns, uint16_t store, const void *key,
	uint8_t key_bytes, const void *value, uint32_t value_bytes);
int pl_reporter_append(struct pl_reporter *r, uint64_t now_ns, uint16_t store, uint32_t list,
	const void *entries, uint32_t bytes);
int pl_reporter_increment(struct pl_reporter *r, uint64_t now_ns, uint16_t store, const void *key,
	uint8_t key_bytes, uint64_t increment);
int pl_reporter_postcard(struct pl_reporter *r, uint64_t now_ns, uint16_t store, const void *key,
	uint8_t key_bytes, uint8_t hop, uint8_t path_length, uint32_t value);

/* Takes a datagram from the translator's address: a NACK, an answer, or anything else. */
void pl_reporter_nack(struct pl_reporter *r, uint64_t now_ns, const void *bytes, size_t n);

/* Sends reports that the rate allows, datagrams that have waited, and probes. */
void pl_reporter_tick(struct pl_reporter *r, uint64_t now_ns);
/* Also sends a datagram that is not full yet; reports beyond the rate stay. */
void pl_reporter_flush(struct pl_reporter *r, uint64_t now_ns);
/* Time at which the next tick has something to do; UINT64_MAX: none. */
uint64_t pl_reporter_due_ns(const struct pl_reporter *r);

/* Number of reports put and not sent yet. */
uint64_t pl_reporter_waiting(const struct pl_reporter *r);

/* Progress of reports, numbered from 0 in the order of their put: numbers below `kept` have left
 * the ring, those below `confirmed` were taken or given up by the translator, those below `sent`
 * were sent or are in the datagram that fills. */
struct pl_reporter_progress {
	uint64_t kept, confirmed, sent, put;
};
struct pl_reporter_progress pl_reporter_progress(const struct pl_reporter *r);

/* Number of reports that are not confirmed by a translator that answers. */
uint64_t pl_reporter_unconfirmed(const struct pl_reporter *r);

const struct pl_reporter_counters *pl_reporter_counters(const struct pl_reporter *r);
