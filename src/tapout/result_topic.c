/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes rows of a query to a topic of Kafka, a message each; rows that no broker takes wait in a
 * spool when the URI names one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/num.h"
#include "kafka/kafka.h"
#include "kafka/uri.h"
#include "tapout/result_out.h"

void pl_result_topic_spool(const char *uri, char *ret, size_t cap)
{
	struct pl_kafka_uri *parsed = calloc(1, sizeof(*parsed));
	const char *path = NULL;

	if (parsed != NULL && pl_kafka_uri_parse(parsed, uri, NULL) == 0)
		path = pl_kafka_uri_take(parsed, "spool");
	snprintf(ret, cap, "%s", path != NULL ? path : "");
	pl_kafka_uri_free(parsed);
}

#if PL_HAVE_KAFKA
#include "export/spool.h"
#include "kafka/producer.h"
#include "runtime/kafka_files.h"
#include "runtime/say.h"

#define TURN_NS         UINT64_C(10000000)
#define SYNC_NS         UINT64_C(1000000000)
#define SPOOL_BYTES     (UINT64_C(1) << 30)
#define SPOOL_BYTES_MIN (UINT64_C(1) << 20)
#define ROW_BYTES_MAX   (UINT32_C(1) << 18)  /* largest row with its key, in the spool */
#define ROW_FLAGS       0x51u                /* flags of a row of a query in the spool */
#define ON_THEIR_WAY    1000                 /* rows of the spool sent at a time */
#define BYTES_ON_WAY    (UINT64_C(1) << 20)  /* and bytes of them */
#define AGAIN_NS        UINT64_C(1000000000) /* pause after rows that came back */

struct topic_out {
	struct pl_result_out out; /* first */
	struct pl_kafka_producer *producer;
	struct pl_kafka_producer_stats sent; /* the producer's, kept when it is closed */
	struct pl_kafka_client client;       /* librdkafka's last statistics */
	struct pl_spool *spool;              /* NULL: none */
	struct pl_buf entry;                 /* u32 length of the key, the key, the row */
	uint64_t spool_full;                 /* rows that the spool refused */
	uint64_t spool_foreign;              /* entries of the spool that were no rows */
	const void *giving;                  /* row of the spool that the client is being given */
	uint64_t kept;           /* of sent.returned: rows of the spool, which stayed there */
	uint64_t seen, again_ns; /* rows returned at the last check; when to send again */
	/* Rows of the spool sent since the last release, and their bytes. */
	uint64_t sent_on, sent_bytes;
	uint64_t released_at; /* rows returned at the last release */
	uint64_t synced_ns;
	bool dirty;
	char trouble[256]; /* logged last */
};

/* ---- accounts ---- */

/* Drops of the producer that have no row of their own in the account. */
static uint64_t others(const struct pl_kafka_producer_stats *s)
{
	return pl_kafka_producer_dropped(s) - s->drop_queue_full - s->drop_too_large -
	       s->drop_timed_out - s->drop_no_topic - s->drop_denied - s->drop_purged;
}

static void count(struct topic_out *self)
{
	const struct pl_kafka_producer_stats *sent = &self->sent;
	struct pl_result_stats *s = &self->out.stats;
	struct pl_spool_counts counts = { 0 };

	if (self->producer != NULL)
		pl_kafka_producer_stats(self->producer, &self->sent);
	if (self->spool != NULL)
		pl_spool_counts(self->spool, &counts);
	s->delivered = sent->delivered;
	s->waiting = sent->waiting;
	s->returned = sent->returned - self->kept;
	s->held = counts.entries;
	s->drop_spool_full = self->spool_full;
	s->drop_spool_damaged = counts.damaged_entries + self->spool_foreign;
	s->drop_queue_full = sent->drop_queue_full;
	s->drop_too_large = sent->drop_too_large;
	s->drop_timed_out = sent->drop_timed_out;
	s->drop_no_topic = sent->drop_no_topic;
	s->drop_denied = sent->drop_denied;
	s->drop_purged = sent->drop_purged;
	s->drop_failed = self->out.refused + others(sent);
}

/* ---- the spool ---- */

/* back: the row came back, and is stored also when the spool is full. */
static void put_spool(struct topic_out *self, const void *key, size_t key_len, const void *row,
	size_t len, bool back)
{
	const uint32_t n = (uint32_t)key_len;
	struct pl_spool_record record = { .entries = 1, .flags = ROW_FLAGS };

	pl_buf_reset(&self->entry);
	pl_buf_add(&self->entry, (const char *)&n, sizeof(n));
	if (key_len > 0)
		pl_buf_add(&self->entry, key, key_len);
	pl_buf_add(&self->entry, row, len);
	record.payload = self->entry.data;
	record.len = (uint32_t)self->entry.len;
	if (self->entry.failed || self->entry.len > ROW_BYTES_MAX ||
		(back ? pl_spool_put_back(self->spool, &record)
		      : pl_spool_put(self->spool, &record)) < 0)
		self->spool_full++;
	else
		self->dirty = true;
}

static bool take_back(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
	struct topic_out *self = arg;

	/* put_spool counts a row that finds no room. */
	if (self->giving != NULL && value == self->giving)
		self->kept++;
	else
		put_spool(self, key, key_len, value, len, true);
	return true;
}

/* Sends a row of the spool, or counts an entry that is none. Returns false when the client does not
 * take it now. */
static bool send_spooled(struct topic_out *self, const struct pl_spool_record *record)
{
	const char *p = record->payload;
	const uint64_t kept = self->kept;
	uint32_t n;

	if (record->flags != ROW_FLAGS || record->len < sizeof(n)) {
		self->spool_foreign += record->entries;
		return true;
	}
	memcpy(&n, p, sizeof(n));
	if (n > record->len - sizeof(n)) {
		self->spool_foreign += record->entries;
		return true;
	}
	p += sizeof(n);
	self->giving = p + n;
	(void)pl_kafka_producer_send_stored(
		self->producer, n > 0 ? p : NULL, n, p + n, record->len - sizeof(n) - n);
	self->giving = NULL;
	pl_kafka_producer_stats(self->producer, &self->sent);
	if (self->kept != kept)
		return false;
	self->sent_on++;
	self->sent_bytes += record->len;
	return true;
}

/* Releases the rows of the spool that were sent. Called when all of them have ended: delivered,
 * dropped, or put again at the end of the spool. */
static void release_sent(struct topic_out *self)
{
	const uint64_t returned = self->sent.returned - self->kept;

	if (returned != self->released_at && self->dirty && pl_spool_sync(self->spool) == 0)
		self->dirty = false;
	self->released_at = returned;
	self->sent_on = self->sent_bytes = 0;
	pl_spool_release(self->spool);
}

/* Sends rows of the spool while a broker is up: else they would only come back. Rows that a broker
 * refuses come back at once, and are sent again a second later. Rows stay on disk until all that
 * were sent with them have ended, so that none is lost with the process. */
static void empty_spool(struct topic_out *self, uint64_t now_ns)
{
	struct pl_spool_record record;

	if (self->out.stats.returned != self->seen)
		self->again_ns = now_ns + AGAIN_NS;
	self->seen = self->out.stats.returned;
	if (pl_kafka_producer_stored(self->producer) == 0)
		release_sent(self);
	pl_spool_hold(self->spool);
	while (pl_kafka_producer_knows(self->producer) && self->client.brokers_up > 0 &&
		now_ns >= self->again_ns && self->sent.waiting < ON_THEIR_WAY &&
		self->sent_on < ON_THEIR_WAY && self->sent_bytes < BYTES_ON_WAY &&
		pl_spool_peek(self->spool, &record) == 0 && send_spooled(self, &record))
		pl_spool_next(self->spool);
	if (self->dirty && now_ns - self->synced_ns >= SYNC_NS) {
		(void)pl_spool_sync(self->spool);
		self->synced_ns = now_ns;
		self->dirty = false;
	}
}

/* Opens the spool of the keys spool=FOLDER and spool_bytes=SIZE. */
static int open_spool(struct topic_out *self, struct pl_kafka_uri *uri, struct pl_diag *diag)
{
	const char *path = pl_kafka_uri_take(uri, "spool"),
		   *size = pl_kafka_uri_take(uri, "spool_bytes");
	struct pl_spool_options options = { .path = path,
		.bytes = SPOOL_BYTES,
		.payload_max = ROW_BYTES_MAX,
		.drop_newest = true };
	struct pl_spool_counts counts;
	int r;

	if (path == NULL && size == NULL)
		return 0;
	if (path == NULL)
		return pl_diag_fail(diag, -EINVAL, "kafka: spool_bytes= without spool=FOLDER");
	if (size != NULL &&
		(pl_parse_size(size, &options.bytes) < 0 || options.bytes < SPOOL_BYTES_MIN))
		return pl_diag_fail(diag, -EINVAL,
			"'spool_bytes=%s' in the URI: a size of at least 1MiB", size);
	r = pl_spool_open(&self->spool, &options, diag);
	if (r < 0)
		return r;
	pl_spool_counts(self->spool, &counts);
	self->out.stats.found = counts.entries;
	return 0;
}

/* ---- the output ---- */

/* Closes the producer. After rows that it gave up without an answer, none is released: they may be
 * missing. */
static void close_producer(struct topic_out *self, uint32_t wait_ms)
{
	if (self->producer == NULL)
		return;
	pl_kafka_producer_close(self->producer, wait_ms, &self->sent);
	self->producer = NULL;
	if (self->spool != NULL && self->sent.drop_purged == 0)
		release_sent(self);
}

static void close_topic(struct pl_result_out *out)
{
	struct topic_out *self = (struct topic_out *)out;

	close_producer(self, 0);
	if (self->spool != NULL)
		pl_spool_close(self->spool);
	pl_buf_done(&self->entry);
	free(self);
}

static int open_producer(struct topic_out *self, struct pl_kafka_uri *uri, const char *text,
	uint32_t wait_ms, struct pl_diag *diag)
{
	struct pl_kafka_producer_config config = {
		.uri = uri, .mode = PL_KAFKA_MESSAGES, .wait_ms = wait_ms, .arg = self
	};
	int r = pl_kafka_uri_parse(uri, text, diag);

	if (r == 0)
		r = open_spool(self, uri, diag);
	if (r == 0 && self->spool != NULL) {
		config.undelivered_message = take_back;
		config.wait_ms = 0; /* the spool serves while brokers are away */
	}
	if (r == 0 && pl_kafka_uri_read_properties(uri, diag) < 0)
		r = -EINVAL;
	if (r == 0)
		r = pl_kafka_producer_open(&self->producer, &config, diag);
	return r;
}

static int open_topic(struct pl_result_out **ret, const char *text, const struct pl_query *query,
	uint32_t wait_ms, struct pl_diag *diag)
{
	struct topic_out *self = calloc(1, sizeof(*self));
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	int r = self != NULL && uri != NULL ? 0 : -ENOMEM;

	(void)query;
	if (r == 0) {
		pl_buf_init(&self->entry);
		r = open_producer(self, uri, text, wait_ms, diag);
	}
	pl_kafka_uri_free(uri);
	if (r < 0) {
		if (self != NULL)
			close_topic(&self->out);
		return r;
	}
	count(self);
	*ret = &self->out;
	return 0;
}

static void put_message(struct pl_result_out *out, const struct pl_result_item *item)
{
	struct topic_out *self = (struct topic_out *)out;

	/* Rows of the spool are sent first. Before a broker has described the topic, the size of
	 * batches is not known. */
	if (self->out.stats.held > 0 ||
		(self->spool != NULL && !pl_kafka_producer_knows(self->producer)))
		put_spool(self, item->key, item->key_len, item->line, item->len, false);
	else
		(void)pl_kafka_producer_send(self->producer, item->key_len > 0 ? item->key : NULL,
			item->key_len, item->line, item->len);
	count(self);
}

static void tell_trouble(struct topic_out *self)
{
	const char *trouble = pl_kafka_producer_trouble(self->producer);

	if (trouble[0] == '\0' || strncmp(trouble, self->trouble, sizeof(self->trouble) - 1) == 0)
		return;
	snprintf(self->trouble, sizeof(self->trouble), "%s", trouble);
	pl_say("%s: %s", self->out.name, self->trouble);
}

static uint64_t turn_topic(struct pl_result_out *out, uint64_t now_ns)
{
	struct topic_out *self = (struct topic_out *)out;

	if (self->producer == NULL)
		return UINT64_MAX;
	pl_kafka_producer_turn(self->producer, now_ns);
	self->client = *pl_kafka_producer_client(self->producer);
	count(self);
	if (self->spool != NULL) {
		empty_spool(self, now_ns);
		count(self);
	}
	tell_trouble(self);
	/* Statistics and errors come without rows too, but less often. */
	return now_ns + (out->stats.waiting > 0 || out->stats.held > 0 ? TURN_NS : 20 * TURN_NS);
}

/* Rows given up at the end (drop_purged) are stored nowhere. */
static bool settled(struct pl_result_out *out, bool all)
{
	struct topic_out *self = (struct topic_out *)out;
	const bool sent = self->producer == NULL || pl_kafka_producer_settled(self->producer);

	if (out->stats.drop_purged > 0 || !sent || (all && out->stats.waiting > 0))
		return false;
	if (self->dirty && pl_spool_sync(self->spool) == 0)
		self->dirty = false;
	return !self->dirty;
}

static void mark(struct pl_result_out *out)
{
	struct topic_out *self = (struct topic_out *)out;

	if (self->producer != NULL)
		pl_kafka_producer_mark(self->producer);
}

static bool topic_failing(const struct pl_result_out *out, struct pl_diag *ret)
{
	const struct topic_out *self = (const struct topic_out *)out;

	return self->producer != NULL && pl_kafka_producer_failing(self->producer, ret);
}

static void finish_topic(struct pl_result_out *out, uint32_t wait_ms)
{
	struct topic_out *self = (struct topic_out *)out;

	if (self->producer == NULL)
		return;
	tell_trouble(self);
	close_producer(self, wait_ms);
	count(self);
}

static int check_topic(const char *uri, const struct pl_query *query, struct pl_diag *diag)
{
	struct pl_kafka_uri *parsed = calloc(1, sizeof(*parsed));
	int r = parsed == NULL ? -ENOMEM : pl_kafka_uri_parse(parsed, uri, diag);

	(void)query;
	if (r == 0 && parsed->format != PL_KAFKA_FORMAT_ANY &&
		parsed->format != PL_KAFKA_FORMAT_JSON)
		r = pl_diag_fail(diag, -EINVAL,
			"kafka: rows of a query are JSON objects: leave format= out");
	pl_kafka_uri_free(parsed);
	return r;
}

/* Makes the spool's folder, which must exist before privileges are given up. */
static int topic_files(const char *uri, struct pl_confine *confine)
{
	char spool[PL_KAFKA_URI_MAX];
	int r = pl_kafka_files(uri, confine);

	pl_result_topic_spool(uri, spool, sizeof(spool));
	if (r == 0 && spool[0] != '\0') {
		(void)mkdir(spool, 0700); /* opening it reports the error */
		r = pl_confine_path(confine, spool, true);
	}
	return r;
}

const struct pl_result_driver pl_result_topic = {
	.check = check_topic,
	.files = topic_files,
	.open = open_topic,
	.put = put_message,
	.turn = turn_topic,
	.settled = settled,
	.mark = mark,
	.failing = topic_failing,
	.finish = finish_topic,
	.close = close_topic,
};
#else
static int check_topic(const char *uri, const struct pl_query *query, struct pl_diag *diag)
{
	(void)uri;
	(void)query;
	return pl_kafka_check(diag);
}

static int topic_files(const char *uri, struct pl_confine *confine)
{
	(void)uri;
	(void)confine;
	return 0;
}

static int open_topic(struct pl_result_out **ret, const char *text, const struct pl_query *query,
	uint32_t wait_ms, struct pl_diag *diag)
{
	(void)ret;
	(void)text;
	(void)query;
	(void)wait_ms;
	return pl_kafka_check(diag);
}

/* Without Kafka the check fails, so it is never opened. */
const struct pl_result_driver pl_result_topic = { .check = check_topic,
	.files = topic_files,
	.open = open_topic };
#endif
