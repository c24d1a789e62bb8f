/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of flows, and of results and block records of alternate marking, as IPFIX: messages to a
 * collector (export/ipfix_link.h), and the records that wait for a connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "export/ipfix_link.h"
#include "ipfix/marks.h"
#include "ipfix/writer.h"
#include "netio/uri.h"
#include "runtime/say.h"
#include "tapout/tap_out.h"

#define WAIT_NS     UINT64_C(1000000000)  /* longest wait of a record for a full message */
#define REPEAT_NS   UINT64_C(60000000000) /* between templates, or accounts */
#define TURN_NS     UINT64_C(10000000)    /* between turns while the collector takes nothing */
#define CLOSE_MS    10000                 /* at the end, without anything being taken */
#define WAITING_MAX 65536u                /* records that wait for a connection: 18 MiB of flows */

struct ipfix_stats {
#define PL_STAT PL_STAT_MEMBER
#include "tapout/tap_ipfix_stats.def"
#undef PL_STAT
};

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct ipfix_stats, __VA_ARGS__)
#include "tapout/tap_ipfix_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

struct config {
	struct pl_ipfix_target target;
	bool biflow;
};

struct ipfix_out;

/* Functions that make messages of one kind of records. */
struct maker {
	size_t bytes; /* of a record */
	struct pl_ipfix_sum (*of)(const struct ipfix_out *self, const void *record);
	/* Returns false for a record that cannot be sent. */
	bool (*put)(struct ipfix_out *self, const void *record, uint32_t at_s);
	void (*begin)(struct ipfix_out *self, uint32_t at_s); /* a new session */
	void (*repeat)(struct ipfix_out *self, uint32_t at_s);
	void (*flush)(struct ipfix_out *self, uint32_t at_s);
	uint32_t (*waiting)(const struct ipfix_out *self);
};

struct ipfix_out {
	struct pl_tap_out out; /* first */
	const struct maker *maker;
	struct pl_ipfix *writer;     /* for flows */
	struct pl_ipfix_sets *marks; /* or for alternate marking */
	struct pl_ipfix_link link;
	bool tcp;
	struct pl_ipfix_amount dropped; /* since the start */
	struct pl_ipfix_amount making;  /* in the message that is being made */
	uint64_t flush_ns;              /* UDP: when that message is sent; 0: nothing waits */
	uint64_t repeat_ns;             /* when templates or the account are due */
	struct ipfix_stats stats;
	uint8_t *ring; /* TCP: records that wait */
	uint32_t first, n;
};

static const char *const keys[] = { PL_IPFIX_KEYS, "biflow", NULL };

static void lose(struct ipfix_out *self, const void *record)
{
	const struct pl_ipfix_amount one = { 1, self->maker->of(self, record) };

	pl_ipfix_amount_add(&self->dropped, &one);
}

/* Sum of the records lost before they were sent, for the account. */
static struct pl_ipfix_sum lost_sum(const struct ipfix_out *self)
{
	struct pl_ipfix_amount lost = self->dropped;

	pl_ipfix_amount_add(&lost, &self->link.failed);
	return lost.sum;
}

static void tell(struct ipfix_out *self)
{
	if (self->link.news)
		pl_say("%s: %s", self->out.name,
			self->link.trouble[0] != '\0' ? self->link.trouble : "connected");
	self->link.news = false;
}

/* ---- messages ---- */

static void on_message(void *arg, const uint8_t *message, uint32_t bytes, uint32_t records)
{
	struct ipfix_out *self = arg;

	(void)records;
	pl_ipfix_link_send(&self->link, message, bytes, &self->making, pl_clock_mono_ns());
	self->making = (struct pl_ipfix_amount){ 0 };
}

static void make(struct ipfix_out *self, const void *record, uint32_t at_s)
{
	const struct pl_ipfix_amount one = { 1, self->maker->of(self, record) };

	/* A record that does not fit sends the present message, of `making`, first. */
	if (self->maker->put(self, record, at_s))
		pl_ipfix_amount_add(&self->making, &one);
	else
		lose(self, record);
}

static uint8_t *waiting_at(const struct ipfix_out *self, uint32_t i)
{
	return self->ring + (self->first + i) % WAITING_MAX * self->maker->bytes;
}

/* Makes messages of the records that wait, as long as the connection takes them. */
static void drain(struct ipfix_out *self)
{
	const uint32_t at_s = pl_ipfix_now_s();

	while (self->n > 0 && pl_ipfix_link_ready(&self->link)) {
		make(self, waiting_at(self, 0), at_s);
		self->first = (self->first + 1) % WAITING_MAX;
		self->n--;
		/* Records in the ring outlive the connection; those in a message do not. */
		if (self->n == 0)
			self->maker->flush(self, at_s);
	}
}

/* Begins a session; records in the message of a broken connection are lost. */
static void begin(struct ipfix_out *self)
{
	pl_ipfix_amount_add(&self->link.failed, &self->making);
	self->making = (struct pl_ipfix_amount){ 0 };
	self->maker->begin(self, pl_ipfix_now_s());
	if (self->tcp)
		self->maker->flush(self, pl_ipfix_now_s());
}

/* ---- flows ---- */

static struct pl_ipfix_sum of_flow(const struct ipfix_out *self, const void *record)
{
	return pl_ipfix_of(self->writer, record);
}

static bool put_flow(struct ipfix_out *self, const void *record, uint32_t at_s)
{
	pl_ipfix_flow(self->writer, record, at_s);
	return true;
}

static void begin_flows(struct ipfix_out *self, uint32_t at_s)
{
	const struct pl_ipfix_sum lost = lost_sum(self);

	pl_ipfix_begin(self->writer, &lost, at_s);
}

static void repeat_flows(struct ipfix_out *self, uint32_t at_s)
{
	const struct pl_ipfix_sum lost = lost_sum(self);

	if (!self->tcp)
		pl_ipfix_templates(self->writer, &lost, at_s);
	else if (self->link.connected)
		pl_ipfix_account(self->writer, &lost, at_s);
	pl_ipfix_flush(self->writer, at_s);
}

static void flush_flows(struct ipfix_out *self, uint32_t at_s)
{
	pl_ipfix_flush(self->writer, at_s);
}

static uint32_t flows_waiting(const struct ipfix_out *self)
{
	return pl_ipfix_waiting(self->writer);
}

static const struct maker flows = { sizeof(struct pl_flow288), of_flow, put_flow, begin_flows,
	repeat_flows, flush_flows, flows_waiting };

/* ---- alternate marking ---- */

static struct pl_ipfix_sum of_mark(const struct ipfix_out *self, const void *record)
{
	(void)self;
	(void)record;
	return (struct pl_ipfix_sum){ .records = 1 };
}

static bool put_segment(struct ipfix_out *self, const void *record, uint32_t at_s)
{
	return pl_ipfix_marks_segment(self->marks, record, at_s);
}

static bool put_point(struct ipfix_out *self, const void *record, uint32_t at_s)
{
	return pl_ipfix_marks_point(self->marks, record, at_s);
}

static void begin_marks(struct ipfix_out *self, uint32_t at_s)
{
	(void)at_s;
	pl_ipfix_sets_begin(self->marks);
}

static void repeat_marks(struct ipfix_out *self, uint32_t at_s)
{
	if (!self->tcp)
		pl_ipfix_sets_renew(self->marks, at_s);
}

static void flush_marks(struct ipfix_out *self, uint32_t at_s)
{
	pl_ipfix_sets_flush(self->marks, at_s);
}

static uint32_t marks_waiting(const struct ipfix_out *self)
{
	return pl_ipfix_sets_waiting(self->marks);
}

static const struct maker segments = { sizeof(struct pl_seg192), of_mark, put_segment, begin_marks,
	repeat_marks, flush_marks, marks_waiting };
static const struct maker points = { sizeof(struct pl_mark128), of_mark, put_point, begin_marks,
	repeat_marks, flush_marks, marks_waiting };

static const struct maker *maker_of(enum pl_flat_kind kind)
{
	return kind == PL_FLAT_FLOW288   ? &flows
	       : kind == PL_FLAT_SEG192  ? &segments
	       : kind == PL_FLAT_MARK128 ? &points
					 : NULL;
}

/* ---- opening ---- */

static int check_kind(
	const struct config *c, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	const struct maker *maker = maker_of(settings->kind);

	if (maker == NULL)
		pl_diag_set(diag,
			"ipfix: only flows (tap --flows; in the configuration records: flows) and records of alternate marking are exported, not %s",
			pl_flat(pl_flat_short(settings->kind))->stream);
	else if (maker != &flows && c->target.pen == 0)
		pl_diag_set(diag,
			"ipfix: 'pen=N' is missing: the private enterprise number for values without an element of IPFIX, such as loss");
	else if (maker != &flows && c->biflow)
		pl_diag_set(diag, "ipfix: biflow=yes is for flows");
	else
		return 0;
	return -EINVAL;
}

static int configure(struct config *ret, const struct pl_uri *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	int r;

	*ret = (struct config){ .biflow = false };
	r = pl_ipfix_target_read(&ret->target, uri, diag);
	if (r == 0)
		r = pl_uri_get_bool(uri, "biflow", &ret->biflow, diag);
	return r == 0 ? check_kind(ret, settings, diag) : r;
}

static int ipfix_check(
	const struct pl_uri *uri, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct config c;

	return configure(&c, uri, settings, diag);
}

static void ipfix_close(struct pl_tap_out *out)
{
	struct ipfix_out *self = (struct ipfix_out *)out;

	pl_ipfix_free(self->writer);
	pl_ipfix_sets_free(self->marks);
	pl_ipfix_link_close(&self->link);
	free(self->ring);
}

static int new_writer(
	struct ipfix_out *self, const struct config *c, const struct pl_tap_out_settings *settings)
{
	const struct pl_ipfix_options of_flows = { .domain = settings->exporter,
		.biflow = c->biflow,
		.directed = settings->directed,
		.time = c->target.time,
		.pen = (uint32_t)c->target.pen,
		.send = on_message,
		.arg = self };
	const struct pl_ipfix_sets_options of_marks = { .domain = settings->exporter,
		.time = c->target.time,
		.pen = (uint32_t)c->target.pen,
		.send = on_message,
		.arg = self };

	return self->maker == &flows ? pl_ipfix_new(&self->writer, &of_flows)
				     : pl_ipfix_marks_new(&self->marks, &of_marks);
}

static int open_parts(struct ipfix_out *self, const struct config *c,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	int r = pl_ipfix_link_open(&self->link, &c->target, diag);

	self->tcp = c->target.tcp;
	self->maker = maker_of(settings->kind);
	if (r == 0)
		r = new_writer(self, c, settings);
	if (r == 0 && self->tcp) {
		self->ring = calloc(WAITING_MAX, self->maker->bytes);
		r = self->ring != NULL ? 0 : -ENOMEM;
	}
	if (r == 0 && !self->tcp)
		begin(self);
	return r;
}

static int ipfix_open(struct pl_tap_out *out, const struct pl_uri *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct ipfix_out *self = (struct ipfix_out *)out;
	struct config c;
	int r = configure(&c, uri, settings, diag);

	self->link.fd = -1;
	return r == 0 ? open_parts(self, &c, settings, diag) : r;
}

/* ---- running ---- */

/* Copies the counters of the link and the writer. */
static void count(struct ipfix_out *self)
{
	struct ipfix_stats *s = &self->stats;
	const struct pl_ipfix_link *l = &self->link;

	s->sent = l->sent.entries;
	s->failed = l->failed.entries;
	s->dropped = self->dropped.entries;
	s->waiting = self->n + self->making.entries + l->in_unsent.entries;
	s->messages = l->messages;
	s->refused = l->refused;
	s->connections = l->connections;
	s->mended = self->writer != NULL ? pl_ipfix_mended(self->writer) : 0;
}

static void ipfix_put(struct pl_tap_out *out, const void *records, uint32_t n)
{
	struct ipfix_out *self = (struct ipfix_out *)out;
	const uint8_t *record = records;
	const uint32_t at_s = pl_ipfix_now_s();

	self->stats.records += n;
	for (uint32_t i = 0; i < n; i++, record += self->maker->bytes) {
		if (!self->tcp)
			make(self, record, at_s);
		else if (self->n < WAITING_MAX)
			memcpy(waiting_at(self, self->n++), record, self->maker->bytes);
		else
			lose(self, record);
	}
	count(self);
}

static void repeat(struct ipfix_out *self, uint64_t now_ns)
{
	self->repeat_ns = now_ns + REPEAT_NS;
	self->maker->repeat(self, pl_ipfix_now_s());
}

static void turn_link(struct ipfix_out *self, uint64_t now_ns)
{
	if (pl_ipfix_link_turn(&self->link, now_ns)) {
		self->repeat_ns = now_ns + REPEAT_NS;
		begin(self);
	}
	drain(self);
	tell(self);
}

static uint64_t ipfix_turn(struct pl_tap_out *out, uint64_t now_ns)
{
	struct ipfix_out *self = (struct ipfix_out *)out;
	uint64_t due;

	turn_link(self, now_ns);
	if (self->repeat_ns == 0)
		self->repeat_ns = now_ns + REPEAT_NS;
	if (now_ns >= self->repeat_ns)
		repeat(self, now_ns);
	if (self->flush_ns != 0 && now_ns >= self->flush_ns) {
		self->maker->flush(self, pl_ipfix_now_s());
		self->flush_ns = 0;
	}
	if (self->flush_ns == 0 && self->maker->waiting(self) > 0)
		self->flush_ns = now_ns + WAIT_NS;
	count(self);
	due = self->flush_ns != 0 && self->flush_ns < self->repeat_ns ? self->flush_ns
								      : self->repeat_ns;
	if (self->tcp && (self->link.unsent.len > 0 || self->n > 0 || !self->link.connected) &&
		due > now_ns + TURN_NS)
		due = now_ns + TURN_NS;
	return due;
}

/* Returns true when more was sent within CLOSE_MS, or nothing is left. */
static bool waits(struct ipfix_out *self)
{
	const uint64_t sent = self->link.sent.entries, from_ns = pl_clock_mono_ns();
	const struct timespec look = pl_clock_timespec(TURN_NS);

	while (pl_clock_mono_ns() - from_ns < CLOSE_MS * UINT64_C(1000000)) {
		turn_link(self, pl_clock_mono_ns());
		if (self->link.sent.entries != sent || (self->n == 0 && self->link.unsent.len == 0))
			return true;
		nanosleep(&look, NULL);
	}
	return false;
}

static void ipfix_finish(struct pl_tap_out *out)
{
	struct ipfix_out *self = (struct ipfix_out *)out;
	bool going_on = true;

	self->maker->flush(self, pl_ipfix_now_s());
	if (!self->tcp)
		(void)pl_ipfix_link_turn(&self->link, pl_clock_mono_ns());
	while (self->tcp && going_on && (self->n > 0 || self->link.unsent.len > 0))
		going_on = waits(self);
	if (self->link.unsent.len > 0)
		pl_ipfix_link_drop(&self->link, "the collector takes nothing", pl_clock_mono_ns());
	/* The record that filled the last message is in the next one, which nobody takes: it
	 * failed. */
	self->maker->flush(self, pl_ipfix_now_s());
	for (; self->n > 0; self->n--) {
		lose(self, waiting_at(self, 0));
		self->first = (self->first + 1) % WAITING_MAX;
	}
	tell(self);
	count(self);
}

static uint64_t ipfix_lost(const struct pl_tap_out *out)
{
	const struct ipfix_stats *s = &((const struct ipfix_out *)out)->stats;

	return s->failed + s->dropped;
}

static void ipfix_conditions(
	const struct pl_tap_out *out, const char *tap, struct pl_conditions *ret)
{
	const struct ipfix_out *self = (const struct ipfix_out *)out;

	if (self->link.trouble[0] != '\0')
		pl_condition_add(ret, PL_CONDITION_FAULT, "output_failing", "tap %s: %s: %s", tap,
			self->out.name, self->link.trouble);
}

static const void *ipfix_counters(const struct pl_tap_out *out)
{
	return &((const struct ipfix_out *)out)->stats;
}

const struct pl_tap_out_driver pl_tap_out_ipfix = {
	.scheme = "ipfix",
	.size = sizeof(struct ipfix_out),
	.keys = keys,
	.check = ipfix_check,
	.open = ipfix_open,
	.put = ipfix_put,
	.turn = ipfix_turn,
	.finish = ipfix_finish,
	.lost = ipfix_lost,
	.conditions = ipfix_conditions,
	.numbers = { { &stats_list, ipfix_counters } },
	.close = ipfix_close,
};
