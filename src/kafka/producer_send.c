/* SPDX-License-Identifier: BSD-2-Clause */
/* Gathers records into batches, sends batches as messages, and counts how each ended. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kafka/message.h"
#include "kafka/producer.h"
#include "kafka/producer_pool.h"
#include "kafka/producer_renew.h"
#include "kafka/producer_room.h"
#include "kafka/producer_state.h"

#define ABSENT     "no broker told of the topic; is it there?"
#define TELL_NS    UINT64_C(5000000000) /* time to wait for a broker to describe the topic */
/* Time for which a refusal counts. Longer than delivery.timeout.ms, after which messages that wait
 * for replicas are refused, and come again. */
#define REFUSED_NS UINT64_C(60000000000)

/* ---- accounts ---- */

static uint64_t *counter_of(struct pl_kafka_producer_stats *s, rd_kafka_resp_err_t err)
{
	switch (err) {
	case RD_KAFKA_RESP_ERR_NO_ERROR:
		return &s->delivered;
	case RD_KAFKA_RESP_ERR__QUEUE_FULL:
		return &s->drop_queue_full;
	case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
		return &s->drop_too_large;
	case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
	case RD_KAFKA_RESP_ERR__TIMED_OUT:
	case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
		return &s->drop_timed_out;
	case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
	case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
		return &s->drop_no_topic;
	case RD_KAFKA_RESP_ERR__AUTHENTICATION:
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
		return &s->drop_denied;
	case RD_KAFKA_RESP_ERR__FATAL:
		return &s->drop_fatal;
	case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
	case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
		return &s->drop_purged;
	default:
		return &s->drop_failed;
	}
}

static void count_ended(struct pl_kafka_producer *p, rd_kafka_resp_err_t err, uint64_t items)
{
	*counter_of(&p->stats, err) += items;
}

static bool is_too_large(rd_kafka_resp_err_t err)
{
	return err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
	       err == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE;
}

/* Returns true for errors that another try may not have: all but those of the message itself, which
 * would come back for ever. */
static bool may_return(rd_kafka_resp_err_t err)
{
	return err != RD_KAFKA_RESP_ERR_NO_ERROR && !is_too_large(err) &&
	       err != RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP;
}

/* Returns the time of a message. Brokers refuse one that is far ahead of their clock (Kafka 4: an
 * hour), and with it all messages that came along. */
static int64_t message_ms(uint64_t ts_ns)
{
	const uint64_t now_ns = pl_clock_real_ns();

	return (int64_t)((ts_ns < now_ns ? ts_ns : now_ns) / 1000000);
}

static void note_end(struct pl_kafka_producer *p, rd_kafka_resp_err_t err)
{
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		p->refused_ns = 0;
	else if (!is_too_large(err) && err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
		p->refused_ns = p->now_ns;
}

void pl_kafka_batch_ended(
	struct pl_kafka_producer *p, rd_kafka_resp_err_t err, const struct pl_kafka_batch *batch)
{
	note_end(p, err);
	if (p->undelivered != NULL && may_return(err) &&
		p->undelivered(p->arg, batch->records, batch->n))
		p->stats.returned += batch->n;
	else
		count_ended(p, err, batch->n);
}

bool pl_kafka_message_ended(struct pl_kafka_producer *p, rd_kafka_resp_err_t err, const void *key,
	size_t key_len, const void *value, size_t len)
{
	note_end(p, err);
	if (p->undelivered_message != NULL && may_return(err) &&
		p->undelivered_message(p->arg, key, key_len, value, len)) {
		p->stats.returned++;
		return true;
	}
	count_ended(p, err, 1);
	return err == RD_KAFKA_RESP_ERR_NO_ERROR;
}

bool pl_kafka_noted_ended(struct pl_kafka_producer *p, rd_kafka_resp_err_t err, const void *note)
{
	note_end(p, err);
	if (p->undelivered_note != NULL && may_return(err) && p->undelivered_note(p->arg, note)) {
		p->stats.returned++;
		return true;
	}
	count_ended(p, err, 1);
	return err == RD_KAFKA_RESP_ERR_NO_ERROR;
}

uint64_t pl_kafka_producer_dropped(const struct pl_kafka_producer_stats *stats)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < pl_kafka_producer_list.n; i++) {
		const struct pl_stat *row = &pl_kafka_producer_list.rows[i];

		if (strncmp(row->name, "drop_", 5) == 0)
			sum += pl_stat_read(row, stats);
	}
	return sum;
}

void pl_kafka_producer_stats(const struct pl_kafka_producer *p, struct pl_kafka_producer_stats *ret)
{
	*ret = p->stats;
	ret->waiting = p->waiting;
	ret->free_buffers = p->n_free;
	ret->skew_percent = p->skew.percent;
}

const struct pl_kafka_skew *pl_kafka_producer_skew(const struct pl_kafka_producer *p)
{
	return &p->skew;
}

const struct pl_kafka_client *pl_kafka_producer_client(const struct pl_kafka_producer *p)
{
	return &p->client;
}

const char *pl_kafka_producer_misfit(const struct pl_kafka_producer *p)
{
	return p->misfit.text;
}

const char *pl_kafka_producer_trouble(const struct pl_kafka_producer *p)
{
	return p->trouble.text;
}

static bool is_absent(const struct pl_kafka_producer *p)
{
	return p->client.partitions == 0 && p->now_ns - p->began_ns > TELL_NS;
}

bool pl_kafka_producer_failing(const struct pl_kafka_producer *p, struct pl_diag *ret)
{
	const char *trouble = p->trouble.text;

	/* Before the first error the state of the brokers is unknown. */
	if (trouble[0] != '\0' && p->client.brokers_up == 0) {
		pl_diag_set(ret, "no broker is up: %s", trouble);
		return true;
	}
	if (is_absent(p)) {
		pl_diag_set(ret, ABSENT);
		return true;
	}
	if (p->refused_ns != 0 && p->now_ns - p->refused_ns < REFUSED_NS) {
		pl_diag_set(ret, "%s", trouble);
		return true;
	}
	return false;
}

/* ---- batches ---- */

void pl_kafka_batch_free(struct pl_kafka_producer *p, struct pl_kafka_batch *batch)
{
	p->older -= batch->side != p->side;
	batch->side = p->side;
	/* The buffer freed last is used first: its memory may still be in a cache. */
	TAILQ_INSERT_HEAD(&p->free, batch, link);
	p->n_free++;
}

static struct pl_kafka_batch *begin(struct pl_kafka_producer *p, uint32_t partition)
{
	struct pl_kafka_batch *batch = TAILQ_FIRST(&p->free);

	if (batch == NULL)
		return NULL;
	TAILQ_REMOVE(&p->free, batch, link);
	p->n_free--;
	TAILQ_INSERT_TAIL(&p->filling, batch, link);
	batch->n = batch->clocks = 0;
	batch->side = p->side;
	batch->bytes = 0;
	batch->partition = partition;
	batch->oldest_ns = UINT64_MAX;
	batch->newest_ns = 0;
	batch->since_ns = p->now_ns;
	p->of_partition[partition] = batch;
	return batch;
}

static rd_kafka_headers_t *make_headers(
	const struct pl_kafka_producer *p, const struct pl_kafka_batch *batch)
{
	const struct pl_kafka_message message = { .kind = p->kind,
		.n = batch->n,
		.exporter = p->exporter,
		.sequence = p->sequence,
		.oldest_ns = batch->oldest_ns,
		.newest_ns = batch->newest_ns,
		.dropped = pl_kafka_producer_dropped(&p->stats),
		.clock = pl_clock_of(batch->clocks),
		.protobuf = p->protobuf,
		.format = p->format };
	struct pl_kafka_header made[PL_KAFKA_HEADERS];
	rd_kafka_headers_t *headers = rd_kafka_headers_new(PL_KAFKA_HEADERS + 1);

	pl_kafka_headers_make(&message, made);
	for (unsigned int i = 0; i < PL_KAFKA_HEADERS; i++)
		rd_kafka_header_add(headers, made[i].name, -1, made[i].value, (ssize_t)made[i].len);
	if (p->spread)
		rd_kafka_header_add(headers, PL_KAFKA_PLACING, -1, PL_KAFKA_SPREAD, -1);
	return headers;
}

/* Returns the code of an error, which is freed; its text becomes the trouble. */
static rd_kafka_resp_err_t code_of(struct pl_kafka_producer *p, rd_kafka_error_t *error)
{
	rd_kafka_resp_err_t code;

	if (error == NULL)
		return RD_KAFKA_RESP_ERR_NO_ERROR;
	/* A fatal error has the code of its cause. */
	code = rd_kafka_error_is_fatal(error) ? RD_KAFKA_RESP_ERR__FATAL
					      : rd_kafka_error_code(error);
	pl_diag_set(&p->trouble, "%s", rd_kafka_error_string(error));
	rd_kafka_error_destroy(error);
	return code;
}

void pl_kafka_batch_send(struct pl_kafka_producer *p, struct pl_kafka_batch *batch)
{
	rd_kafka_headers_t *headers = make_headers(p, batch);
	/* Neither COPY nor FREE: librdkafka refers to the buffer until the delivery report. */
	const rd_kafka_vu_t parts[] = {
		{ .vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = p->topic },
		{ .vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = (int32_t)batch->partition },
		{ .vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = { batch->records, batch->bytes } },
		{ .vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = message_ms(batch->newest_ns) },
		{ .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers },
		{ .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = batch },
	};
	rd_kafka_resp_err_t err;

	TAILQ_REMOVE(&p->filling, batch, link);
	p->of_partition[batch->partition] = NULL;
	p->turn_of = batch->partition + 1;
	p->sequence++;
	err = code_of(p, rd_kafka_produceva(p->rk, parts, sizeof(parts) / sizeof(parts[0])));
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		p->stats.messages++;
		p->n_lent++;
		return;
	}
	rd_kafka_headers_destroy(headers);
	p->waiting -= batch->n;
	pl_kafka_batch_ended(p, err, batch);
	pl_kafka_batch_free(p, batch);
}

static inline void note_time(struct pl_kafka_batch *batch, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns < batch->oldest_ns)
		batch->oldest_ns = from_ns;
	if (to_ns > batch->newest_ns)
		batch->newest_ns = to_ns;
}

/* n_partitions must not be 0. */
static inline uint32_t partition_of(const struct pl_kafka_producer *p, uint64_t hash)
{
	return p->spread ? p->turn_of % p->n_partitions : (uint32_t)(hash % p->n_partitions);
}

/* Returns the batch that takes the next `size` bytes of this hash; counts them as put. NULL:
 * dropped and counted, and *ret has the reason. */
static inline struct pl_kafka_batch *batch_for(
	struct pl_kafka_producer *p, uint64_t hash, size_t size, int *ret)
{
	struct pl_kafka_batch *batch;
	uint32_t partition;

	p->stats.put++;
	if (p->n_partitions == 0) {
		p->stats.drop_no_partitions++;
		*ret = -EAGAIN;
		return NULL;
	}
	partition = partition_of(p, hash);
	batch = p->of_partition[partition];
	if (batch != NULL && p->batch_bytes - batch->bytes < size) {
		pl_kafka_batch_send(p, batch);
		partition = partition_of(p, hash);
		batch = NULL;
	}
	if (batch == NULL)
		batch = begin(p, partition);
	if (batch == NULL) {
		p->stats.drop_no_buffer++;
		*ret = -ENOBUFS;
	}
	return batch;
}

/* Counts an item of `size` bytes that was written to the batch, and sends the batch when it is
 * full. */
static inline void added(struct pl_kafka_producer *p, struct pl_kafka_batch *batch, size_t size)
{
	batch->bytes += size;
	batch->clocks |= 1u << p->clock;
	pl_kafka_skew_count(&p->skew, batch->partition, 1);
	p->waiting++;
	if (++batch->n == p->records)
		pl_kafka_batch_send(p, batch);
}

int pl_kafka_producer_put(struct pl_kafka_producer *p, uint64_t hash, const void *record)
{
	struct pl_kafka_batch *batch;
	uint64_t times[2];
	int r = 0;

	assert(p->mode == PL_KAFKA_RECORDS);
	batch = batch_for(p, hash, p->size, &r);
	if (batch == NULL)
		return r;
	if (p->protobuf)
		pl_protobuf_put(p->kind, p->row, record, batch->records + batch->bytes);
	else
		memcpy(batch->records + batch->bytes, record, p->size);
	/* A record begins with its time, a flow with the times of its first and last packet. */
	memcpy(times, record, sizeof(times));
	note_time(batch, times[0], times[pl_flat_short(p->kind) == PL_FLAT_FLOW128]);
	added(p, batch, p->size);
	return 0;
}

int pl_kafka_producer_put_entry(
	struct pl_kafka_producer *p, uint64_t hash, const struct pl_kafka_entry *e)
{
	struct pl_kafka_batch *batch;
	uint8_t *to;
	int r = 0;

	assert(p->mode == PL_KAFKA_ENTRIES && e->size <= PL_KAFKA_ENTRIES_BYTES &&
		e->head_len + e->body_len <= e->size);
	if (e->size > p->batch_bytes) {
		p->stats.put++;
		p->stats.drop_too_large++;
		return pl_diag_fail(&p->trouble, -EMSGSIZE,
			"a message of %zu bytes is more than topic '%s' takes: raise %s",
			e->size + PL_KAFKA_BESIDE, p->topic_name, p->room.setting);
	}
	batch = batch_for(p, hash, e->size, &r);
	if (batch == NULL)
		return r;
	to = batch->records + batch->bytes;
	memcpy(to, e->head, e->head_len);
	if (e->body_len > 0)
		memcpy(to + e->head_len, e->body, e->body_len);
	memset(to + e->head_len + e->body_len, 0, e->size - e->head_len - e->body_len);
	note_time(batch, e->ts_ns, e->ts_ns);
	added(p, batch, e->size);
	return 0;
}

void pl_kafka_producer_clock(struct pl_kafka_producer *p, enum pl_clock_kind clock)
{
	p->clock = clock;
}

bool pl_kafka_producer_knows(const struct pl_kafka_producer *p)
{
	return p->n_partitions != 0;
}

bool pl_kafka_producer_room(const struct pl_kafka_producer *p, uint64_t hash)
{
	if (p->mode == PL_KAFKA_MESSAGES)
		return p->n_partitions != 0 && p->waiting < PL_KAFKA_MESSAGES_MAX;
	return p->n_partitions != 0 &&
	       (p->n_free > 0 || p->of_partition[partition_of(p, hash)] != NULL);
}

bool pl_kafka_producer_room_for(const struct pl_kafka_producer *p, uint64_t hash, size_t size)
{
	const struct pl_kafka_batch *batch =
		p->n_partitions != 0 ? p->of_partition[partition_of(p, hash)] : NULL;

	return p->n_partitions != 0 &&
	       (p->n_free > 0 || (batch != NULL && p->batch_bytes - batch->bytes >= size));
}

/* Gives a message to the client; returns 0 or the client's error. */
static rd_kafka_resp_err_t give_message(
	struct pl_kafka_producer *p, const rd_kafka_vu_t *parts, size_t n)
{
	rd_kafka_resp_err_t err;

	assert(p->mode == PL_KAFKA_MESSAGES);
	err = code_of(p, rd_kafka_produceva(p->rk, parts, n));
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		p->stats.messages++;
		p->waiting++;
	}
	return err;
}

/* Returns the errno of a client's error, for callers who do not get the message back. */
static int error_of(rd_kafka_resp_err_t err)
{
	if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
		return -ENOBUFS;
	return err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ? -EMSGSIZE : -EIO;
}

static rd_kafka_resp_err_t give_keyed(struct pl_kafka_producer *p, const void *key, size_t key_len,
	const void *value, size_t len, uintptr_t word)
{
	const rd_kafka_vu_t parts[] = {
		{ .vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = p->topic },
		{ .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY },
		{ .vtype = RD_KAFKA_VTYPE_KEY, .u.mem = { (void *)(uintptr_t)key, key_len } },
		{ .vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = { (void *)(uintptr_t)value, len } },
		{ .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = (void *)word },
	};

	p->stats.put++;
	return give_message(p, parts, sizeof(parts) / sizeof(parts[0]));
}

int pl_kafka_producer_send(
	struct pl_kafka_producer *p, const void *key, size_t key_len, const void *value, size_t len)
{
	const rd_kafka_resp_err_t err = give_keyed(p, key, key_len, value, len, p->side);

	if (err == RD_KAFKA_RESP_ERR_NO_ERROR ||
		pl_kafka_message_ended(p, err, key, key_len, value, len))
		return 0;
	return error_of(err);
}

int pl_kafka_producer_send_stored(
	struct pl_kafka_producer *p, const void *key, size_t key_len, const void *value, size_t len)
{
	const rd_kafka_resp_err_t err = give_keyed(p, key, key_len, value, len, p->side | STORED);

	if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		p->stored++;
		return 0;
	}
	(void)pl_kafka_message_ended(p, err, key, key_len, value, len);
	return error_of(err);
}

uint64_t pl_kafka_producer_stored(const struct pl_kafka_producer *p)
{
	return p->stored;
}

int pl_kafka_producer_send_hashed(struct pl_kafka_producer *p, uint64_t hash, uint64_t ts_ns,
	const void *value, size_t len, const struct pl_kafka_note *note)
{
	void *copy = note != NULL ? malloc(note->len) : NULL;
	rd_kafka_vu_t parts[] = {
		{ .vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = p->topic },
		{ .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY },
		{ .vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = message_ms(ts_ns) },
		{ .vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = { (void *)(uintptr_t)value, len } },
		{ .vtype = RD_KAFKA_VTYPE_PARTITION },
		{ .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = (void *)((uintptr_t)copy | p->side) },
	};
	rd_kafka_resp_err_t err;
	bool kept;

	p->stats.put++;
	if (p->n_partitions == 0) {
		p->stats.drop_no_partitions++;
		free(copy);
		return -EAGAIN;
	}
	parts[4].u.i32 = (int32_t)partition_of(p, hash);
	p->turn_of = (uint32_t)parts[4].u.i32 + 1;
	pl_kafka_skew_count(&p->skew, (uint32_t)parts[4].u.i32, 1);
	if (copy != NULL)
		memcpy(copy, note->bytes, note->len);
	err = note != NULL && copy == NULL
		      ? RD_KAFKA_RESP_ERR__QUEUE_FULL
		      : give_message(p, parts, sizeof(parts) / sizeof(parts[0]));
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		return 0;
	free(copy);
	kept = note != NULL ? pl_kafka_noted_ended(p, err, note->bytes)
			    : pl_kafka_message_ended(p, err, NULL, 0, value, len);
	return kept ? 0 : error_of(err);
}

bool pl_kafka_producer_settled(const struct pl_kafka_producer *p)
{
	return p->older == 0;
}

void pl_kafka_producer_mark(struct pl_kafka_producer *p)
{
	assert(p->older == 0);
	/* A buffer being filled counts as older, although records from after the mark may be
	 * added. */
	p->older = p->mode == PL_KAFKA_MESSAGES ? p->waiting : p->n_buffers - p->n_free;
	p->side ^= SIDE;
}

/* Takes a new number of partitions, which only grows while a topic lives. Batches being filled go
 * to the partitions chosen before. */
static void take_partitions(struct pl_kafka_producer *p, uint64_t n)
{
	if (n == p->n_partitions || n == 0)
		return;
	if (!pl_kafka_producer_room_turn(p))
		return;
	if (n > PL_KAFKA_PARTITIONS_MAX) {
		/* The known partitions stay in use; the others get no records. */
		pl_diag_set(&p->trouble, "the topic has %llu partitions now; %d is the limit",
			(unsigned long long)n, PL_KAFKA_PARTITIONS_MAX);
		return;
	}
	while (!TAILQ_EMPTY(&p->filling))
		pl_kafka_batch_send(p, TAILQ_FIRST(&p->filling));
	p->n_partitions = (uint32_t)n;
	/* With fewer buffers than partitions need, the partitions share them. */
	if (p->mode != PL_KAFKA_MESSAGES)
		(void)pl_kafka_producer_pool(p, &p->trouble);
}

/* librdkafka reports no error when only the topic is missing. */
static void look_absent(struct pl_kafka_producer *p)
{
	const bool absent = is_absent(p) && p->client.brokers_up > 0;

	if (absent && !p->absent)
		pl_diag_set(&p->trouble, ABSENT);
	p->absent = absent;
}

void pl_kafka_producer_turn(struct pl_kafka_producer *p, uint64_t now_ns)
{
	struct pl_kafka_batch *batch;

	p->now_ns = now_ns;
	if (p->began_ns == 0)
		p->began_ns = now_ns;
	rd_kafka_poll(p->rk, 0);
	pl_kafka_producer_renew(p, now_ns);
	take_partitions(p, p->client.partitions);
	look_absent(p);
	pl_kafka_skew_turn(&p->skew, now_ns, p->n_partitions);
	/* While acknowledgements are slow, buffers are few: those left are better sent full. */
	while (2 * p->n_lent <= p->n_buffers && (batch = TAILQ_FIRST(&p->filling)) != NULL &&
		now_ns - batch->since_ns >= p->age_ns) {
		p->stats.aged++;
		pl_kafka_batch_send(p, batch);
	}
}
