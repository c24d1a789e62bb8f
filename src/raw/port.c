/* SPDX-License-Identifier: BSD-2-Clause */
/* The port driver of topics of Kafka that hold packets. */
#include "raw/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kafka/consumer.h"
#include "kafka/producer.h"
#include "netio/driver.h"
#include "raw/driver.h"
#include "raw/message.h"

#define COMMIT_NS   UINT64_C(1000000000)
#define COMMIT_MS   5000  /* for the answer to a commit, when partitions are revoked */
#define SETTLE_MS   3000  /* for records of released packets to be settled, likewise */
#define POSITION_MS 5000  /* for the group's positions, when partitions are assigned */
#define FIND_MS     10000 /* for the topic's partitions, with until=end */
#define WAIT_MAX_MS 1000

/* A partition. */
struct place {
	bool mine, ended;
	bool news;    /* `next` is newer than `mark` */
	bool marked;  /* `mark` is to be committed once settled */
	int64_t next; /* offset behind the last message with all packets released */
	int64_t mark; /* `next` at the reader's last mark */
};

struct raw_port {
	struct pl_port port;
	char *uri;
	struct pl_kafka_consumer *consumer;
	bool commits, to_end;
	const struct pl_port_reader *reader; /* NULL: released packets are settled */
	bool marked;                         /* a place has `marked` set */
	struct pl_kafka_block block;         /* whose packets are lent, or left */
	size_t at;                           /* bytes of the block's value already read */
	bool holds;                          /* the block is a message */
	uint32_t n_mine, n_ended;
	uint64_t damaged; /* bad entries; partition numbers above the maximum */
	uint64_t marked_ns;
	bool away;       /* the port has reported trouble */
	uint64_t errors; /* of the client, when the port reported last */
	char told[256];
	struct place places[PL_KAFKA_PARTITIONS_MAX];
	struct pl_kafka_position positions[PL_KAFKA_PARTITIONS_MAX]; /* for a commit */
};

/* ---- partitions ---- */

static void assigned(void *arg, struct pl_kafka_position *positions, uint32_t n)
{
	struct raw_port *self = arg;

	for (uint32_t i = 0; i < n; i++) {
		if (positions[i].partition >= PL_KAFKA_PARTITIONS_MAX)
			continue;
		self->n_mine += !self->places[positions[i].partition].mine;
		self->places[positions[i].partition] = (struct place){ .mine = true };
	}
	/* For messages that were deleted meanwhile. Without an answer they are not counted. */
	if (self->commits)
		(void)pl_kafka_consumer_committed(
			self->consumer, positions, n, POSITION_MS, NULL, NULL, NULL);
}

/* Sets a new mark; positions marked before are committed with it. */
static void mark(struct raw_port *self)
{
	bool any = false;

	for (uint32_t i = 0; i < PL_KAFKA_PARTITIONS_MAX; i++) {
		struct place *p = &self->places[i];

		if (!p->news)
			continue;
		p->mark = p->next;
		p->marked = any = true;
		p->news = false;
	}
	if (any && self->reader != NULL)
		self->reader->mark(self->reader->arg);
	self->marked = self->marked || any;
}

/* Commits marked positions if they are settled within settle_ms. */
static void commit(struct raw_port *self, uint32_t settle_ms, uint32_t wait_ms)
{
	uint32_t n = 0;

	if (!self->marked ||
		(self->reader != NULL && !self->reader->settled(self->reader->arg, settle_ms)))
		return;
	for (uint32_t i = 0; i < PL_KAFKA_PARTITIONS_MAX; i++) {
		struct place *p = &self->places[i];

		if (!p->marked)
			continue;
		self->positions[n++] =
			(struct pl_kafka_position){ .partition = i, .offset = p->mark };
		p->marked = false;
	}
	self->marked = false;
	/* The consumer counts a failure; packets then come again after a restart. */
	(void)pl_kafka_consumer_commit(self->consumer, self->positions, n, wait_ms, NULL);
}

static void revoked(void *arg, const uint32_t *partitions, uint32_t n, bool lost)
{
	struct raw_port *self = arg;

	if (self->commits && !lost) {
		commit(self, 0, COMMIT_MS);
		mark(self);
		commit(self, SETTLE_MS, COMMIT_MS);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct place *p = partitions[i] < PL_KAFKA_PARTITIONS_MAX
					  ? &self->places[partitions[i]]
					  : NULL;

		if (p == NULL || !p->mine)
			continue;
		self->n_mine--;
		self->n_ended -= p->ended;
		*p = (struct place){ .mine = false };
	}
}

static void turn_positions(struct raw_port *self, uint64_t now_ns)
{
	if (!self->commits)
		return;
	commit(self, 0, 0);
	if (self->marked || now_ns - self->marked_ns < COMMIT_NS)
		return;
	self->marked_ns = now_ns;
	mark(self);
}

/* ---- opening ---- */

static bool take_keys(struct pl_kafka_uri *uri, bool *to_end, struct pl_diag *diag)
{
	const char *until = pl_kafka_uri_take(uri, "until");

	if (until != NULL && strcmp(until, "end") != 0) {
		pl_diag_set(diag, "until=%s: only until=end is known", until);
		return false;
	}
	if (uri->format != PL_KAFKA_FORMAT_ANY) {
		pl_diag_set(diag, "format= does not apply: a topic of packets is " PL_RAW_FORMAT);
		return false;
	}
	*to_end |= until != NULL;
	return true;
}

static int keys(void *arg, struct pl_kafka_uri *uri, struct pl_kafka_consumer_config *config,
	struct pl_diag *diag)
{
	struct raw_port *self = arg;

	if (!take_keys(uri, &self->to_end, diag))
		return -EINVAL;
	config->wait_ms = self->to_end ? FIND_MS : 0;
	return 0;
}

static int open_consumer(struct raw_port *self, struct pl_diag *diag)
{
	/* Oldest message first: to decode a topic again is to read it all. */
	const struct pl_kafka_reader reader = {
		.uri = self->uri, .oldest = true, .keys = keys, .arg = self
	};
	const struct pl_kafka_consumer_config config = { .raw = true,
		.format = PL_RAW_FORMAT,
		.assigned = assigned,
		.revoked = revoked,
		.arg = self };

	return pl_kafka_reader_open(&self->consumer, &reader, &config, &self->commits, diag);
}

int pl_raw_port_check(const char *text, struct pl_diag *diag)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	bool to_end = false;
	int r = uri == NULL ? -ENOMEM : pl_kafka_uri_parse(uri, text, diag);

	if (r == 0)
		r = take_keys(uri, &to_end, diag) ? 1 : -EINVAL;

	pl_kafka_uri_free(uri);
	return r;
}

int pl_raw_port_open(
	struct pl_port **ret, const char *text, bool to_end, const struct pl_port_reader *reader)
{
	struct raw_port *self = calloc(1, sizeof(*self));

	if (self == NULL)
		return -ENOMEM;
	self->uri = strdup(text);
	/* Without the keys: their values may be passwords. */
	self->port.name = strndup(text, strcspn(text, "?"));
	if (self->uri == NULL || self->port.name == NULL) {
		free(self->uri);
		free(self->port.name);
		free(self);
		return -ENOMEM;
	}
	self->to_end = to_end;
	self->reader = reader;
	self->port.fd = -1;
	self->port.clock = PL_STAMP_NONE;
	*ret = &self->port;
	return 0;
}

/* ---- receiving ---- */

/* Called when all packets of the message are released. */
static void settle(struct raw_port *self)
{
	struct place *p = &self->places[self->block.partition];

	self->holds = false;
	if (!p->mine)
		return;
	p->next = self->block.next;
	p->news = true;
}

/* Takes a block: an end of a partition, a message without packets, or one to read. */
static void take_block(struct raw_port *self)
{
	struct place *p;

	if (self->block.partition >= PL_KAFKA_PARTITIONS_MAX) {
		self->damaged += !self->block.at_end;
		return;
	}
	p = &self->places[self->block.partition];
	if (self->block.at_end) {
		self->n_ended += p->mine && !p->ended;
		p->ended |= p->mine;
		return;
	}
	self->at = 0;
	self->holds = self->block.records != NULL;
	if (!self->holds)
		settle(self);
}

static int take_packets(struct raw_port *self, struct pl_batch *batch)
{
	int r = 1;

	batch->n = 0;
	while (batch->n < PL_BATCH_MAX && r == 1) {
		r = pl_raw_next(
			self->block.records, self->block.len, &self->at, &batch->pkts[batch->n]);
		batch->n += r == 1;
	}
	if (r < 0) {
		self->damaged++;
		self->at = self->block.len;
	}
	if (batch->n == 0)
		settle(self);
	return (int)batch->n;
}

/* Tells, with -ENETDOWN, errors of the client while nothing can come, and with -EAGAIN that this is
 * over, or that messages were deleted before they were read. An error alone, such as a refused commit, is counted by the client. */
static int hear(struct raw_port *self, bool got, struct pl_diag *diag)
{
	const char *trouble = pl_kafka_consumer_trouble(self->consumer);
	const uint64_t errors = pl_kafka_consumer_stats(self->consumer)->errors;
	const bool cut_off = !got && pl_kafka_consumer_cut_off(self->consumer);
	const bool told = strncmp(trouble, self->told, sizeof(self->told) - 1) == 0;
	const char *expired;

	if (self->away && !cut_off) {
		self->away = false;
		self->errors = errors;
		pl_diag_set(diag, "reads again");
		return -EAGAIN;
	}
	expired = pl_kafka_consumer_expired(self->consumer);
	if (expired != NULL) {
		pl_diag_set(diag, "%s", expired);
		return -EAGAIN;
	}
	if (!cut_off || (self->away ? told : errors == self->errors))
		return 0;
	snprintf(self->told, sizeof(self->told), "%s", trouble);
	self->errors = errors;
	self->away = true;
	pl_diag_set(diag, "%s", self->told);
	return -ENETDOWN;
}

static bool is_over(const struct raw_port *self)
{
	return self->to_end && self->n_mine > 0 && self->n_ended == self->n_mine;
}

/* Receives a message: returns 1, 0, or errors of pl_port_recv. */
static int look(struct raw_port *self, uint32_t wait_ms, struct pl_diag *diag)
{
	const int got = pl_kafka_consumer_recv(self->consumer, &self->block, wait_ms);
	int r;

	if (got > 0)
		take_block(self);
	r = hear(self, got > 0, diag);
	if (r < 0)
		return r;
	if (is_over(self))
		return -ENODATA;
	return got;
}

int pl_raw_port_recv(
	struct pl_port *port, struct pl_batch *batch, int timeout_ms, struct pl_diag *diag)
{
	struct raw_port *self = (struct raw_port *)port;
	const uint64_t begin_ns = pl_clock_mono_ns();
	uint64_t now_ns = begin_ns;
	int n = 0, r = self->consumer == NULL ? open_consumer(self, diag) : 0;

	while (r >= 0 && n == 0) {
		const uint64_t ms = (now_ns - begin_ns) / 1000000;
		const uint64_t left = timeout_ms < 0              ? WAIT_MAX_MS
				      : ms < (uint64_t)timeout_ms ? (uint64_t)timeout_ms - ms
								  : 0;

		turn_positions(self, now_ns);
		if (!self->holds)
			r = look(self, (uint32_t)(left < WAIT_MAX_MS ? left : WAIT_MAX_MS), diag);
		if (r >= 0 && self->holds)
			n = take_packets(self, batch);
		if (r == 0 && n == 0 && left == 0)
			break;
		/* A wait without limit may have been ended by a signal. */
		if (r == 0 && n == 0 && timeout_ms < 0)
			break;
		now_ns = pl_clock_mono_ns();
	}
	return n > 0 ? n : r < 0 ? r : 0;
}

void pl_raw_port_release(struct pl_port *port, struct pl_batch *batch)
{
	struct raw_port *self = (struct raw_port *)port;

	(void)batch;
	if (self->at == self->block.len)
		settle(self);
}

void pl_raw_port_stats(struct pl_port *port)
{
	struct raw_port *self = (struct raw_port *)port;

	port->stats.bad_messages =
		self->damaged +
		(self->consumer != NULL
				? pl_kafka_consumer_bad(pl_kafka_consumer_stats(self->consumer))
				: 0);
	if (self->consumer != NULL)
		port->stats.expired = pl_kafka_consumer_stats(self->consumer)->expired;
}

int pl_raw_port_close(struct pl_port *port)
{
	struct raw_port *self = (struct raw_port *)port;

	/* The consumer leaves the group and so calls `revoked`, which commits. */
	pl_kafka_consumer_close(self->consumer);
	explicit_bzero(self->uri, strlen(self->uri));
	free(self->uri);
	free(port->name);
	free(self);
	return 0;
}
