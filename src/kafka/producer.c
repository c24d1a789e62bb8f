/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and closes a producer; has librdkafka's callbacks. */
#include "kafka/producer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kafka/conf.h"
#include "kafka/producer_pool.h"
#include "kafka/producer_renew.h"
#include "kafka/producer_room.h"
#include "kafka/producer_state.h"

#define PURGE_MS    2000
#define FLUSH_MS    100 /* time between two checks of how many items still wait */
#define CLOSE_TIMES 6   /* the most that close waits, in multiples of its time limit */

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_kafka_producer_stats, __VA_ARGS__)
#include "kafka/producer_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_kafka_producer_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

/*
 * A message set of up to batch.size bytes has to pass the broker, whose message.max.bytes is
 * 1048588 unless somebody raised it: batch.size and message.max.bytes stay at librdkafka's 1000000.
 */
static const struct pl_kafka_setting common[] = {
	{ "client.id", "pathline" },
	{ "acks", "all" },
	{ "enable.idempotence", "true" },
	{ "max.in.flight", "5" },
	{ "delivery.timeout.ms", "30000" },
	{ "queue.buffering.max.messages", "200000" },
	{ "queue.buffering.max.kbytes", "524288" },
	{ "topic.metadata.refresh.interval.ms", "30000" },
	{ "socket.nagle.disable", "true" },
	{ "statistics.interval.ms", "1000" },
	{ "delivery.report.only.error", "false" },
};
static const struct pl_kafka_setting for_records[] = {
	{ "linger.ms", "50" },
	{ "compression.codec", "lz4" },
	{ "sticky.partitioning.linger.ms", "0" },
};
static const struct pl_kafka_setting for_messages[] = {
	{ "linger.ms", "5" },
	{ "partitioner", "murmur2_random" },
};

static const struct pl_kafka_reserved reserved[] = {
	{ "bootstrap.servers", "brokers stand before the topic" },
	{ "metadata.broker.list", "brokers stand before the topic" },
	{ "delivery.report.only.error", "deliveries are counted" },
	{ "statistics.interval.ms", "the number of partitions comes with the statistics" },
	{ "enabled_events", "delivery reports come by callback" },
	{ "transactional.id", "the producer has no transactions" },
	{ NULL, NULL },
};

/* ---- what librdkafka calls, within poll and flush, in the producer's thread ---- */

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
	struct pl_kafka_producer *p = opaque;
	struct pl_kafka_batch *batch = p->mode != PL_KAFKA_MESSAGES ? message->_private : NULL;
	const uint64_t items = batch != NULL ? batch->n : 1;
	void *note = batch == NULL ? (void *)((uintptr_t)message->_private & NOTE) : NULL;

	(void)rk;
	assert(p->waiting >= items);
	p->waiting -= items;
	if (batch == NULL) {
		p->older -= ((uintptr_t)message->_private & SIDE) != p->side;
		p->stored -= ((uintptr_t)message->_private & STORED) != 0;
	}
	if (batch != NULL)
		pl_kafka_batch_ended(p, message->err, batch);
	else if (note != NULL)
		(void)pl_kafka_noted_ended(p, message->err, note);
	else
		pl_kafka_message_ended(p, message->err, message->key, message->key_len,
			message->payload, message->len);
	free(note);
	if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		p->stats.messages_delivered++;
		p->stats.bytes_delivered += message->len;
	} else {
		pl_diag_set(&p->trouble, "%s",
			message->err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE &&
					p->misfit.text[0] != '\0'
				? p->misfit.text
				: rd_kafka_err2str(message->err));
	}
	if (batch != NULL) {
		p->n_lent--;
		pl_kafka_batch_free(p, batch);
	}
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque)
{
	struct pl_kafka_producer *p = opaque;
	char text[256] = "";

	p->stats.errors++;
	if (err == RD_KAFKA_RESP_ERR__FATAL)
		rd_kafka_fatal_error(rk, text, sizeof(text));
	/* Messages do not wait for a client that is being replaced, or for its successor: their
	 * errors stay apart. */
	if (rk == p->old.rk)
		return;
	pl_diag_set(rk == p->next.rk ? &p->next_trouble : &p->trouble, "%s",
		text[0] != '\0' ? text : reason);
}

static int on_statistics(rd_kafka_t *rk, char *json, size_t len, void *opaque)
{
	struct pl_kafka_producer *p = opaque;
	struct pl_kafka_client next = { .partitions = 0 };

	if (rk == p->old.rk)
		return 0;
	if (rk == p->next.rk) {
		p->next_ready = pl_kafka_client_read(&next, p->topic_name, json, len) == 0 &&
				next.partitions > 0 && next.brokers_up > 0;
		return 0;
	}
	if (pl_kafka_client_read(&p->client, p->topic_name, json, len) < 0)
		pl_diag_set(&p->trouble, "librdkafka's statistics are not readable");
	return 0; /* librdkafka frees the text */
}

/* ---- open ---- */

static int check_config(const struct pl_kafka_producer_config *config, struct pl_diag *diag)
{
	const bool records = config->mode != PL_KAFKA_MESSAGES;
	const bool texts = config->uri->format == PL_KAFKA_FORMAT_JSON ||
			   config->uri->format == PL_KAFKA_FORMAT_GOFLOW2;

	if (config->uri->format != PL_KAFKA_FORMAT_ANY && texts == records)
		return pl_diag_fail(diag, -EINVAL, "format=%s in the URI: this topic is for %s",
			pl_kafka_format_name(config->uri->format),
			records ? "records of fixed size, rowbinary or protobuf" : "json");
	if (config->uri->spread && config->mode == PL_KAFKA_ENTRIES)
		return pl_diag_fail(diag, -EINVAL,
			"partition=spread: packets of one source stay in one partition");
	if (config->mode == PL_KAFKA_ENTRIES && config->uri->format != PL_KAFKA_FORMAT_ANY)
		return pl_diag_fail(diag, -EINVAL,
			"format= does not apply to this topic, whose format is %s", config->format);
	if (config->buffers > PL_KAFKA_BUFFERS_MAX || config->buffers == 1)
		return pl_diag_fail(diag, -EINVAL, "%u batch buffers: not between 2 and %d",
			config->buffers, PL_KAFKA_BUFFERS_MAX);
	return 0;
}

static rd_kafka_conf_t *plain_conf(
	const struct pl_kafka_producer_config *config, struct pl_diag *diag)
{
	const bool records = config->mode != PL_KAFKA_MESSAGES;
	struct pl_kafka_setting all[32] = { { NULL, NULL } };

	memcpy(all, common, sizeof(common));
	memcpy(all + sizeof(common) / sizeof(common[0]), records ? for_records : for_messages,
		records ? sizeof(for_records) : sizeof(for_messages));
	return pl_kafka_conf_new(config->uri, all, reserved, diag);
}

int pl_kafka_producer_check(const struct pl_kafka_producer_config *config, struct pl_diag *diag)
{
	rd_kafka_conf_t *conf = check_config(config, diag) == 0 ? plain_conf(config, diag) : NULL;

	if (conf == NULL)
		return -EINVAL;
	rd_kafka_conf_destroy(conf);
	return 0;
}

static rd_kafka_conf_t *make_conf(struct pl_kafka_producer *p,
	const struct pl_kafka_producer_config *config, struct pl_diag *diag)
{
	rd_kafka_conf_t *conf = plain_conf(config, diag);

	if (conf == NULL)
		return NULL;
	rd_kafka_conf_set_opaque(conf, p);
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
	rd_kafka_conf_set_error_cb(conf, on_error);
	rd_kafka_conf_set_stats_cb(conf, on_statistics);
	if (p->resize != 0)
		pl_kafka_producer_resized(p, conf);
	return conf;
}

static int new_client(struct pl_kafka_producer *p, const struct pl_kafka_producer_config *config,
	struct pl_diag *diag)
{
	rd_kafka_conf_t *conf = make_conf(p, config, diag);
	char text[256] = "";

	if (conf == NULL)
		return -EINVAL;
	if (p->renew.n == 0 && pl_kafka_renew_init(&p->renew, conf) < 0) {
		rd_kafka_conf_destroy(conf);
		return -ENOMEM;
	}
	p->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (p->rk == NULL) {
		rd_kafka_conf_destroy(conf);
		return pl_diag_fail(diag, -EINVAL, "%s", text);
	}
	/* From here on the client requests the topic's metadata on its own. */
	p->topic = rd_kafka_topic_new(p->rk, p->topic_name, NULL);
	if (p->topic == NULL)
		return pl_diag_fail(diag, -EINVAL, "topic '%s': %s", p->topic_name,
			rd_kafka_err2str(rd_kafka_last_error()));
	return 0;
}

static void drop_client(struct pl_kafka_producer *p)
{
	if (p->topic != NULL)
		rd_kafka_topic_destroy(p->topic);
	if (p->rk != NULL)
		rd_kafka_destroy(p->rk);
	p->topic = NULL;
	p->rk = NULL;
}

static int ask_partitions(struct pl_kafka_producer *p,
	const struct pl_kafka_producer_config *config, struct pl_diag *diag)
{
	unsigned int n = 0;
	int r = pl_kafka_conf_partitions(
		p->rk, p->topic, config->uri->brokers, config->wait_ms, &p->trouble, &n, diag);

	if (r == 0 && n > PL_KAFKA_PARTITIONS_MAX)
		return pl_diag_fail(diag, -E2BIG, "topic '%s' has %u partitions; %d is the limit",
			p->topic_name, n, PL_KAFKA_PARTITIONS_MAX);
	p->n_partitions = n;
	p->client.partitions = n;
	return r;
}

static int open_client(struct pl_kafka_producer *p, const struct pl_kafka_producer_config *config,
	struct pl_diag *diag)
{
	int r = new_client(p, config, diag);

	if (r == 0 && config->wait_ms > 0)
		r = ask_partitions(p, config, diag);
	if (r == 0)
		r = pl_kafka_producer_find_room(p, config->wait_ms, diag);
	if (r < 0 || p->resize == 0)
		return r;
	drop_client(p);
	r = new_client(p, config, diag);
	p->resize = 0;
	return r;
}

static void release(struct pl_kafka_producer *p)
{
	/* The client first: until it is destroyed it may read the buffers. */
	if (p->asked != NULL)
		rd_kafka_queue_destroy(p->asked);
	pl_kafka_producer_renew_done(p);
	drop_client(p);
	pl_kafka_producer_pool_done(p);
	free(p);
}

int pl_kafka_producer_open(struct pl_kafka_producer **ret,
	const struct pl_kafka_producer_config *config, struct pl_diag *diag)
{
	struct pl_kafka_producer *p;
	int r = check_config(config, diag);

	if (r < 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return pl_diag_fail(diag, -ENOMEM, "out of memory");
	TAILQ_INIT(&p->free);
	TAILQ_INIT(&p->filling);
	p->mode = config->mode;
	p->kind = config->kind;
	p->exporter = config->exporter;
	p->size = pl_flat(config->kind)->size;
	p->protobuf = config->uri->format == PL_KAFKA_FORMAT_PROTOBUF;
	if (p->protobuf) {
		p->size = pl_protobuf_row_size(config->kind);
		pl_protobuf_template(config->kind, p->row);
	}
	p->records = config->uri->records;
	p->format = config->format;
	p->spread = config->uri->spread;
	p->batch_bytes =
		p->mode == PL_KAFKA_ENTRIES ? PL_KAFKA_ENTRIES_BYTES : (size_t)p->records * p->size;
	p->undelivered = config->undelivered;
	p->undelivered_message = config->undelivered_message;
	p->undelivered_note = config->undelivered_note;
	p->arg = config->arg;
	p->age_ns = config->age_ns != 0 ? config->age_ns : PL_KAFKA_AGE_NS;
	p->least = p->mode == PL_KAFKA_RECORDS ? p->size : config->least;
	snprintf(p->topic_name, sizeof(p->topic_name), "%s", config->uri->topic);
	p->buffers = config->buffers;
	r = open_client(p, config, diag);
	if (r == 0 && p->mode != PL_KAFKA_MESSAGES)
		r = pl_kafka_producer_pool(p, diag);
	if (r < 0) {
		release(p);
		return r;
	}
	*ret = p;
	return 0;
}

/* Waits for acknowledgements. The time limit counts from the last one: a broker that is slow, but
 * takes what it gets, gets all of it. */
static void await_acknowledgements(struct pl_kafka_producer *p, uint32_t timeout_ms)
{
	const uint64_t ms = 1000000, begun = pl_clock_mono_ns();
	const uint64_t end = begun + CLOSE_TIMES * timeout_ms * ms;
	const int slice = timeout_ms < FLUSH_MS ? (int)timeout_ms : FLUSH_MS;
	uint64_t waiting = p->waiting, until = begun + timeout_ms * ms, now = begun;

	while (rd_kafka_flush(p->rk, slice) != RD_KAFKA_RESP_ERR_NO_ERROR) {
		now = pl_clock_mono_ns();
		if (p->waiting != waiting)
			until = now + timeout_ms * ms;
		waiting = p->waiting;
		if (now >= until || now >= end)
			break;
	}
}

void pl_kafka_producer_close(
	struct pl_kafka_producer *p, uint32_t timeout_ms, struct pl_kafka_producer_stats *ret)
{
	if (p == NULL)
		return;
	while (!TAILQ_EMPTY(&p->filling))
		pl_kafka_batch_send(p, TAILQ_FIRST(&p->filling));
	pl_kafka_producer_renew_end(p, timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms);
	await_acknowledgements(p, timeout_ms);
	if (p->waiting > 0) {
		rd_kafka_purge(p->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
		rd_kafka_flush(p->rk, PURGE_MS);
	}
	pl_kafka_skew_end(&p->skew, p->n_partitions);
	/* Items without a delivery report by now get none any more: they were not acknowledged
	 * either. */
	p->stats.drop_purged += p->waiting;
	p->waiting = 0;
	if (ret != NULL)
		pl_kafka_producer_stats(p, ret);
	release(p);
}
