/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reporter of Direct Telemetry Access, for programs that have something to tell: builds
 * reports, packs several into a datagram where the form allows it, numbers them, keeps the last
 * ones to send them again when the translator misses some, and keeps to a rate. It owns no socket
 * and no clock: datagrams leave through a function of the caller's, NACKs that arrive are handed
 * in, time passes by pl_reporter_tick.
 *
 *   struct pl_reporter_config config = { .form = PL_DTA_PATHLINE, .sequenced = true };
 *   pl_reporter_new(&r, &config, send_datagram, socket, &diag);
 *   pl_reporter_key_write(r, now, store, key, sizeof(key), value, sizeof(value));
 *   pl_reporter_flush(r, now);
 *
 * Reports are sent in the order they were put, those sent again and those after them too. A
 * sequenced report stays in the ring until the translator has it: eight times a ring, and each
 * probe_ns, a report asks how far the translator is. Published forms cannot ask, and older
 * translators do not answer; there it stays for hold_ns, which NACKs have time for. Meanwhile puts
 * are refused when the ring is full, so that a ring for each round trip may pass, or, unanswered,
 * one for each hold_ns. A translator that answered and is silent is waited for ten times as long.
 * Unsent reports take half of the ring at most. A NACK that names an older report than there is is
 * answered from the oldest one, and what is missing counted as unavailable.
 *
 * A last report that is lost would not be missed by anybody, so when nothing follows a sequenced
 * report for probe_ns, it is sent once more, up to probes times (ten times as often to a translator
 * that answered), until it is confirmed; the translator knows it by its number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "wire/dta.h"

#define PL_REPORTER_RING_TRACKING 127u /* half of the 8-bit numbers */
#define PL_REPORTER_RING_MAX      (1u << 20)

struct pl_reporter_config {
	enum pl_dta_form form;
	bool sequenced; /* not with PL_DTA_PLAIN */
	/* reports kept; 0: 127 with TRACKING (the most), 8192 sequenced, else 1024 */
	uint32_t ring;
	uint64_t hold_ns;        /* sequenced, unanswered: how long; 0: 200 ms, TRACKING: 10 ms */
	uint32_t datagram_bytes; /* longest datagram; 0: 1400. Also the longest report */
	uint8_t copies;          /* published forms: of key-write and increment; 0: 1 */
	bool one_by_one; /* PATHLINE: a datagram for each report, as in the published forms */
	/* how long reports wait for company; 0: until the datagram is full or flushed */
	uint64_t linger_ns;
	double rate;       /* reports per second, those sent again included; 0: no limit */
	double burst;      /* at once after a pause; 0: a tenth of a second's, at least 1 */
	uint64_t probe_ns; /* 0: 20 ms */
	uint32_t probes;   /* 0: 3 */
};

struct pl_reporter_counters {
	uint64_t reports;          /* put */
	uint64_t datagrams, bytes; /* sent */
	uint64_t sent;             /* reports in them, those sent again included */
	uint64_t again;            /* sent again because of a NACK */
	uint64_t probes;
	uint64_t nacks;         /* that were understood and named something sent */
	uint64_t answers;       /* to reports that asked */
	uint64_t nacks_strange; /* not a NACK, or of numbers that were never sent */
	uint64_t unavailable;   /* reports asked for that the ring had no more: lost */
	/* reports that the translator gave up: lost, some of them unavailable ones */
	uint64_t given_up;
	uint64_t refused; /* reports that the translator refused for good */
};

struct pl_reporter;

/* Sends a datagram; what fails is its own to count. */
typedef void pl_reporter_send(void *arg, const void *bytes, size_t n);

/* -EINVAL with a diag, -ENOMEM. */
int pl_reporter_new(struct pl_reporter **ret, const struct pl_reporter_config *config,
	pl_reporter_send *send, void *arg, struct pl_diag *diag);
void pl_reporter_free(struct pl_reporter *r);

/*
 * Any report; form, sequenced, asks and seq are set here. The bytes are copied. -EAGAIN: the ring
 * is full of reports that the rate has not let go yet, or that the translator has not confirmed:
 * call again after pl_reporter_due_ns, or when a datagram came back. -EINVAL: the form cannot say
 * it; -EMSGSIZE: longer than a datagram.
 */
int pl_reporter_put(struct pl_reporter *r, uint64_t now_ns, const struct pl_dta_report *report);

/* The same for each primitive, with as many copies as the store has, in published forms as
 * configured. Published forms: store 0, keys of 4 bytes, no path length, no sketches. */
int pl_reporter_key_write(struct pl_reporter *r, uint64_t now_ns, uint16_t store, const void *key,
	uint8_t key_bytes, const void *value, uint32_t value_bytes);
int pl_reporter_append(struct pl_reporter *r, uint64_t now_ns, uint16_t store, uint32_t list,
	const void *entries, uint32_t bytes);
int pl_reporter_increment(struct pl_reporter *r, uint64_t now_ns, uint16_t store, const void *key,
	uint8_t key_bytes, uint64_t increment);
int pl_reporter_postcard(struct pl_reporter *r, uint64_t now_ns, uint16_t store, const void *key,
	uint8_t key_bytes, uint8_t hop, uint8_t path_length, uint32_t value);
/* `columns` as they travel: cells in network order. */
int pl_reporter_sketch(struct pl_reporter *r, uint64_t now_ns, uint16_t store, uint32_t epoch,
	uint32_t first_column, const void *columns, uint32_t bytes);

/* A datagram that came back, from the translator's address: a NACK, an answer, or anything else. */
void pl_reporter_nack(struct pl_reporter *r, uint64_t now_ns, const void *bytes, size_t n);

/* Sends what the rate lets go, what has lingered, and probes. */
void pl_reporter_tick(struct pl_reporter *r, uint64_t now_ns);
/* Sends a datagram that is not full yet, too; what the rate keeps back stays. */
void pl_reporter_flush(struct pl_reporter *r, uint64_t now_ns);
/* When the next tick has something to do; UINT64_MAX: never by itself. */
uint64_t pl_reporter_due_ns(const struct pl_reporter *r);

/* Reports put and not sent yet. */
uint64_t pl_reporter_waiting(const struct pl_reporter *r);

/* Reports are numbered from 0 in the order in which they were put: those below `kept` are not in the
 * ring any more, those below `confirmed` were taken or given up by the translator, those below
 * `sent` have left or lie in the datagram that fills. */
struct pl_reporter_progress {
	uint64_t kept, confirmed, sent, put;
};
struct pl_reporter_progress pl_reporter_progress(const struct pl_reporter *r);

/* Reports that a translator that answers has not confirmed. */
uint64_t pl_reporter_unconfirmed(const struct pl_reporter *r);

const struct pl_reporter_counters *pl_reporter_counters(const struct pl_reporter *r);
