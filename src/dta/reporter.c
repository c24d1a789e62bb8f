/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds DTA reports and packs them into datagrams. */
#include "dta/reporter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bucket.h"

#define RING_DEFAULT     1024u
#define RING_SEQUENCED   8192u
#define DATAGRAM_DEFAULT 1400u
#define DATAGRAM_MAX     65507u /* of UDP over IPv4 */
#define PROBE_NS         UINT64_C(20000000)
#define PROBES           3u
#define HOLD_NS          UINT64_C(200000000)
#define HOLD_TRACKING_NS UINT64_C(10000000)
/* The wait for a translator that answered before is this many times as long. */
#define PATIENCE         10u
#define ASKS_A_RING      8u

/*
 * Reports are in the ring in their form on the wire, each in room for a datagram. They have running
 * numbers of 64 bits, of which the wire has the low bits; number i is in slot i mod ring:
 *
 *   oldest <= next <= newest     oldest .. next - 1 were sent, next .. newest - 1 wait
 *
 * A NACK moves `next` back. A sent report gives up its slot to a new one when the translator
 * confirmed it (numbers below `confirmed`), or when no NACK for it is to be expected any more.
 * Reports without numbers go through the same ring, to keep to the rate.
 */
struct pl_reporter {
	struct pl_reporter_config config;
	pl_reporter_send *send;
	void *arg;
	struct pl_bucket bucket;
	struct pl_reporter_counters count;
	uint8_t *ring;
	uint32_t *ring_bytes;
	uint64_t *ring_ns; /* time of the last sending */
	uint64_t oldest, next, newest;
	uint64_t again_until;   /* lower numbers were sent before */
	uint64_t confirmed;     /* the translator has accepted all lower numbers */
	uint32_t lost, refused; /* as the translator reported last */
	uint64_t gone;          /* requests for lower numbers came too late, and were counted */
	bool blocked;           /* a report found no room */
	uint64_t asked;         /* reports packed at the last question */
	uint64_t asked_ns;
	uint64_t packed;
	uint8_t *datagram;
	/* last_at: offset of the last report in it */
	uint32_t datagram_bytes, in_datagram, last_at;
	/* since when the datagram or the ring has had something unsent */
	uint64_t waiting_since_ns;
	uint64_t sent_ns; /* time of the last datagram */
	uint32_t probes;  /* probes since then */
};

/* ---- making ---- */

static int check_config(const struct pl_reporter_config *c, struct pl_diag *diag)
{
	if (c->form >= PL_DTA_FORM_MAX)
		pl_diag_set(diag, "unknown form of reports");
	else if (c->sequenced && c->form == PL_DTA_PLAIN)
		pl_diag_set(diag, "plain reports have no sequence numbers");
	else if (c->ring > PL_REPORTER_RING_MAX || (c->form == PL_DTA_TRACKING && c->sequenced &&
							   c->ring > PL_REPORTER_RING_TRACKING))
		pl_diag_set(diag, "the ring is too large for the sequence numbers");
	else if (c->datagram_bytes > DATAGRAM_MAX)
		pl_diag_set(diag, "a datagram has at most %u bytes", DATAGRAM_MAX);
	else if (c->ring == 1 && c->sequenced)
		pl_diag_set(diag, "the ring must have room for more than one report");
	else if (c->rate < 0 || c->burst < 0)
		pl_diag_set(diag, "the rate must not be negative");
	else
		return 0;
	return -EINVAL;
}

int pl_reporter_new(struct pl_reporter **ret, const struct pl_reporter_config *config,
	pl_reporter_send *send, void *arg, struct pl_diag *diag)
{
	struct pl_reporter *r;
	struct pl_reporter_config *c;
	int error = check_config(config, diag);

	*ret = NULL;
	if (error < 0)
		return error;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	r->config = *config;
	c = &r->config;
	if (c->ring == 0)
		c->ring = c->form == PL_DTA_TRACKING ? PL_REPORTER_RING_TRACKING
			  : c->sequenced             ? RING_SEQUENCED
						     : RING_DEFAULT;
	if (c->datagram_bytes == 0)
		c->datagram_bytes = DATAGRAM_DEFAULT;
	if (c->probe_ns == 0)
		c->probe_ns = PROBE_NS;
	if (c->probes == 0)
		c->probes = PROBES;
	if (c->hold_ns == 0)
		c->hold_ns = c->form == PL_DTA_TRACKING ? HOLD_TRACKING_NS : HOLD_NS;
	if (c->copies == 0)
		c->copies = 1;
	if (c->form != PL_DTA_PATHLINE)
		c->one_by_one = true;
	r->send = send;
	r->arg = arg;
	pl_bucket_init(&r->bucket, c->rate, c->burst, 0);
	r->ring = malloc((size_t)c->ring * c->datagram_bytes);
	r->ring_bytes = calloc(c->ring, sizeof(*r->ring_bytes));
	r->ring_ns = calloc(c->ring, sizeof(*r->ring_ns));
	r->datagram = malloc(c->datagram_bytes);
	if (r->ring == NULL || r->ring_bytes == NULL || r->ring_ns == NULL || r->datagram == NULL) {
		pl_reporter_free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void pl_reporter_free(struct pl_reporter *r)
{
	if (r == NULL)
		return;
	free(r->ring);
	free(r->ring_bytes);
	free(r->ring_ns);
	free(r->datagram);
	free(r);
}

/* ---- sending ---- */

static uint8_t *slot_of(const struct pl_reporter *r, uint64_t number)
{
	return r->ring + (number % r->config.ring) * r->config.datagram_bytes;
}

/* Makes the last report ask for the translator's progress: some times a ring, and when that takes
 * long, each probe_ns. */
static void ask(struct pl_reporter *r, uint64_t now_ns)
{
	r->datagram[r->last_at + PL_DTA_FLAGS_AT] |= PL_DTA_FLAG_ASKS;
	r->asked = r->packed;
	r->asked_ns = now_ns;
}

static bool asks(const struct pl_reporter *r)
{
	return r->config.sequenced && r->config.form == PL_DTA_PATHLINE;
}

static void send_datagram(struct pl_reporter *r, uint64_t now_ns)
{
	if (r->in_datagram == 0)
		return;
	if (asks(r) && (r->packed - r->asked >= r->config.ring / ASKS_A_RING ||
			       now_ns - r->asked_ns >= r->config.probe_ns))
		ask(r, now_ns);
	r->send(r->arg, r->datagram, r->datagram_bytes);
	r->count.datagrams++;
	r->count.bytes += r->datagram_bytes;
	r->count.sent += r->in_datagram;
	r->datagram_bytes = 0;
	r->in_datagram = 0;
	r->sent_ns = now_ns;
}

static void pack(struct pl_reporter *r, uint64_t number, uint64_t now_ns)
{
	uint32_t bytes = r->ring_bytes[number % r->config.ring];

	if (bytes > r->config.datagram_bytes - r->datagram_bytes)
		send_datagram(r, now_ns);
	if (r->in_datagram == 0)
		r->waiting_since_ns = now_ns;
	memcpy(r->datagram + r->datagram_bytes, slot_of(r, number), bytes);
	r->last_at = r->datagram_bytes;
	r->datagram_bytes += bytes;
	r->in_datagram++;
	r->packed++;
	r->ring_ns[number % r->config.ring] = now_ns;
	if (r->config.one_by_one)
		send_datagram(r, now_ns);
}

static uint32_t patience(const struct pl_reporter *r)
{
	return r->count.answers > 0 ? PATIENCE : 1;
}

/* Sends waiting reports, as far as the rate allows. */
static void pump(struct pl_reporter *r, uint64_t now_ns)
{
	while (r->next < r->newest && pl_bucket_has(&r->bucket, now_ns)) {
		pl_bucket_take(&r->bucket);
		if (r->next < r->again_until)
			r->count.again++;
		pack(r, r->next++, now_ns);
		r->probes = 0;
	}
}

static uint64_t hold_until(const struct pl_reporter *r)
{
	return r->ring_ns[r->oldest % r->config.ring] + r->config.hold_ns * patience(r);
}

/* Returns true when the next report may take its slot. */
static bool has_room(const struct pl_reporter *r, uint64_t now_ns)
{
	if (r->newest - r->next >= (r->config.sequenced ? r->config.ring / 2 : r->config.ring))
		return false;
	return r->newest - r->oldest < r->config.ring || !r->config.sequenced ||
	       r->oldest < r->confirmed || now_ns >= hold_until(r);
}

static bool make_room(struct pl_reporter *r, uint64_t now_ns)
{
	if (!has_room(r, now_ns))
		pump(r, now_ns);
	r->blocked = !has_room(r, now_ns);
	/* The datagram may have the question whose answer frees the ring. */
	if (r->blocked && r->config.sequenced && r->next == r->newest)
		send_datagram(r, now_ns);
	return !r->blocked;
}

int pl_reporter_put(struct pl_reporter *r, uint64_t now_ns, const struct pl_dta_report *report)
{
	struct pl_dta_report out = *report;
	struct pl_build b;
	int error;

	if (!make_room(r, now_ns))
		return -EAGAIN;
	out.form = r->config.form;
	out.sequenced = r->config.sequenced;
	out.asks = false;
	out.seq = !out.sequenced ? 0 : (uint32_t)r->newest;
	if (out.form == PL_DTA_TRACKING)
		out.seq = (uint8_t)out.seq;
	b = pl_build(slot_of(r, r->newest), r->config.datagram_bytes);
	/* Frees the oldest report's slot, even if this report is refused. */
	if (r->newest - r->oldest == r->config.ring)
		r->oldest++;
	error = pl_dta_put(&b, &out);
	if (error < 0)
		return error == -ENOBUFS ? -EMSGSIZE : error;
	r->ring_bytes[r->newest++ % r->config.ring] = (uint32_t)b.len;
	r->count.reports++;
	pump(r, now_ns);
	return 0;
}

/* ---- what came back ---- */

/* Number of reports that were sent at least once: numbers below. */
static uint64_t sent_once(const struct pl_reporter *r)
{
	return r->next > r->again_until ? r->next : r->again_until;
}

/* Distance of the wire's number behind the last one sent. */
static uint32_t behind(const struct pl_reporter *r, uint32_t last)
{
	uint32_t distance = (uint32_t)(sent_once(r) - 1) - last;

	return r->config.form == PL_DTA_TRACKING ? (uint8_t)distance : distance;
}

/* Adds a count of the translator. A lower count than before is from a translator that started
 * again. */
static void hear(uint64_t *total, uint32_t *last, uint32_t told)
{
	*total += told >= *last ? told - *last : told;
	*last = told;
}

/* Takes the counts of a NACK that is no older than the last one. */
static void hear_of_lost(struct pl_reporter *r, const struct pl_dta_nack *nack)
{
	if (nack->tells_lost)
		hear(&r->count.given_up, &r->lost, nack->lost);
	if (nack->tells_refused)
		hear(&r->count.refused, &r->refused, nack->refused);
}

void pl_reporter_nack(struct pl_reporter *r, uint64_t now_ns, const void *bytes, size_t n)
{
	const uint32_t most =
		r->config.form == PL_DTA_TRACKING ? INT8_MAX + 1u : PL_REPORTER_RING_MAX;
	struct pl_cursor c = pl_cursor(bytes, n);
	struct pl_dta_nack nack;
	uint64_t missing, first; /* reports to be sent again */

	if (!r->config.sequenced || pl_dta_nack_read(&c, &nack) != PL_DTA_OK ||
		nack.form != r->config.form) {
		r->count.nacks_strange++;
		return;
	}
	/* A NACK cannot name numbers that were never sent, or those before the first. */
	missing = behind(r, nack.last);
	if (missing > most || missing > sent_once(r)) {
		r->count.nacks_strange++;
		return;
	}
	first = sent_once(r) - missing;
	if (first >= r->confirmed) {
		r->confirmed = first;
		hear_of_lost(r, &nack);
	}
	if (nack.answer) {
		r->count.answers++;
		return;
	}
	r->count.nacks++;
	/* Sends the datagram that fills: packed reports would come before the missing ones. */
	send_datagram(r, now_ns);
	/* A NACK that was long under way, or from a restarted translator, may name confirmed
	 * reports. */
	if (first < r->confirmed)
		first = r->confirmed;
	if (first < r->oldest) {
		if (r->gone < r->oldest)
			r->count.unavailable += r->oldest - (first > r->gone ? first : r->gone);
		r->gone = r->gone < r->oldest ? r->oldest : r->gone;
		first = r->oldest;
	}
	r->again_until = sent_once(r);
	r->next = first;
	pump(r, now_ns);
	send_datagram(r, now_ns);
}

/* ---- time ---- */

static bool may_probe(const struct pl_reporter *r)
{
	return r->config.sequenced && r->confirmed < r->newest && r->next == r->newest &&
	       r->in_datagram == 0 && r->probes < r->config.probes * patience(r);
}

static uint64_t linger_due(const struct pl_reporter *r)
{
	return r->in_datagram > 0 && r->config.linger_ns > 0
		       ? r->waiting_since_ns + r->config.linger_ns
		       : UINT64_MAX;
}

void pl_reporter_tick(struct pl_reporter *r, uint64_t now_ns)
{
	pump(r, now_ns);
	r->blocked = r->blocked && !has_room(r, now_ns);
	if (linger_due(r) <= now_ns)
		send_datagram(r, now_ns);
	if (may_probe(r) && now_ns >= r->sent_ns + r->config.probe_ns) {
		pack(r, r->newest - 1, now_ns);
		if (asks(r) && r->in_datagram > 0)
			ask(r, now_ns);
		send_datagram(r, now_ns);
		r->probes++;
		r->count.probes++;
	}
}

void pl_reporter_flush(struct pl_reporter *r, uint64_t now_ns)
{
	pump(r, now_ns);
	if (asks(r) && r->in_datagram > 0)
		ask(r, now_ns);
	send_datagram(r, now_ns);
}

uint64_t pl_reporter_due_ns(const struct pl_reporter *r)
{
	uint64_t due = linger_due(r);

	if (r->next < r->newest && pl_bucket_due_ns(&r->bucket) < due)
		due = pl_bucket_due_ns(&r->bucket);
	if (may_probe(r) && r->sent_ns + r->config.probe_ns < due)
		due = r->sent_ns + r->config.probe_ns;
	if (r->blocked && r->newest - r->oldest == r->config.ring && hold_until(r) < due)
		due = hold_until(r);
	return due;
}

struct pl_reporter_progress pl_reporter_progress(const struct pl_reporter *r)
{
	return (struct pl_reporter_progress){ r->oldest, r->confirmed, r->next, r->newest };
}

uint64_t pl_reporter_unconfirmed(const struct pl_reporter *r)
{
	return r->count.answers > 0 ? r->newest - r->confirmed : 0;
}

uint64_t pl_reporter_waiting(const struct pl_reporter *r)
{
	return r->newest - r->next + r->in_datagram;
}

const struct pl_reporter_counters *pl_reporter_counters(const struct pl_reporter *r)
{
	return &r->count;
}

/* ---- one for each primitive ---- */

/* Copies in published forms, which always have them. */
static uint8_t copies_of(const struct pl_reporter *r)
{
	return r->config.form == PL_DTA_PATHLINE ? 0 : r->config.copies;
}

int pl_reporter_key_write(struct pl_reporter *r, uint64_t now_ns, uint16_t store, const void *key,
	uint8_t key_bytes, const void *value, uint32_t value_bytes)
{
	const struct pl_dta_report report = {
		.op = PL_DTA_KEY_WRITE,
		.store = store,
		.copies = copies_of(r),
		.key = key,
		.key_bytes = key_bytes,
		.data = value,
		.data_bytes = value_bytes,
	};

	return pl_reporter_put(r, now_ns, &report);
}

int pl_reporter_append(struct pl_reporter *r, uint64_t now_ns, uint16_t store, uint32_t list,
	const void *entries, uint32_t bytes)
{
	const struct pl_dta_report report = {
		.op = PL_DTA_APPEND,
		.store = store,
		.list = list,
		.data = entries,
		.data_bytes = bytes,
	};

	return pl_reporter_put(r, now_ns, &report);
}

int pl_reporter_increment(struct pl_reporter *r, uint64_t now_ns, uint16_t store, const void *key,
	uint8_t key_bytes, uint64_t increment)
{
	const struct pl_dta_report report = {
		.op = PL_DTA_INCREMENT,
		.store = store,
		.copies = copies_of(r),
		.key = key,
		.key_bytes = key_bytes,
		.increment = increment,
	};

	return pl_reporter_put(r, now_ns, &report);
}

int pl_reporter_postcard(struct pl_reporter *r, uint64_t now_ns, uint16_t store, const void *key,
	uint8_t key_bytes, uint8_t hop, uint8_t path_length, uint32_t value)
{
	const struct pl_dta_report report = {
		.op = PL_DTA_POSTCARD,
		.store = store,
		.key = key,
		.key_bytes = key_bytes,
		.hop = hop,
		.path_length = path_length,
		.value = value,
	};

	return pl_reporter_put(r, now_ns, &report);
}
