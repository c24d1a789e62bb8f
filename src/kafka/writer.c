/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends the messages of a member of a group, in transactions when asked. */
#include "kafka/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/conf.h"
#include "kafka/consumer_state.h"
#include "kafka/room.h"

struct pl_kafka_writer {
	rd_kafka_t *rk;
	bool transactional, begun;
	struct pl_kafka_writer_stats stats;
	struct pl_diag trouble;
};

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_kafka_writer_stats, __VA_ARGS__)
#include "kafka/writer_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_kafka_writer_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

/* A member that cannot be sure of a message sends it again: idempotence keeps order and number. */
static const struct pl_kafka_setting settings[] = {
	{ "client.id", "pathline" },
	{ "acks", "all" },
	{ "enable.idempotence", "true" },
	{ "delivery.timeout.ms", "60000" },
	{ "linger.ms", "5" },
	{ "compression.codec", "lz4" },
	{ "partitioner", "murmur2_random" },
	{ "socket.nagle.disable", "true" },
	{ NULL, NULL },
};
static const struct pl_kafka_setting in_transactions[] = {
	{ "transaction.timeout.ms", "40000" },
	{ "delivery.timeout.ms", "30000" },
	{ NULL, NULL },
};

static const struct pl_kafka_reserved reserved[] = {
	{ "bootstrap.servers", "brokers stand before the topic" },
	{ "metadata.broker.list", "brokers stand before the topic" },
	{ "transactional.id", "members name themselves" },
	{ "enable.idempotence", "a message is there once" },
	{ "acks", "a position is committed when messages are there" },
	{ NULL, NULL },
};

/* Counts a message that was not taken, or not acknowledged. */
static void count_failed(
	struct pl_kafka_writer *w, rd_kafka_resp_err_t err, const char *topic, size_t len)
{
	w->stats.failed++;
	/* The first error of a transaction makes the others fail: it is kept. */
	if (w->transactional && w->trouble.text[0] != '\0')
		return;
	if (err != RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) {
		pl_diag_set(&w->trouble, "%s", rd_kafka_err2str(err));
		return;
	}
	w->stats.too_large++;
	pl_diag_set(&w->trouble,
		"a message of %zu bytes is too large for topic '%s': raise its max.message.bytes, "
		"and message.max.bytes of the URI",
		len, topic);
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
	struct pl_kafka_writer *w = opaque;

	(void)rk;
	if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		w->stats.delivered++;
		return;
	}
	count_failed(w, message->err, rd_kafka_topic_name(message->rkt), message->len);
}

static int code_of(rd_kafka_error_t *error, const char *what, struct pl_diag *diag)
{
	if (error == NULL)
		return 0;
	pl_diag_set(diag, "%s: %s", what, rd_kafka_error_string(error));
	rd_kafka_error_destroy(error);
	return -EIO;
}

/* The URI is one of a source: librdkafka ignores properties of consumers here. */
static rd_kafka_conf_t *make_conf(struct pl_kafka_writer *w,
	const struct pl_kafka_writer_config *config, struct pl_diag *diag)
{
	rd_kafka_conf_t *conf = pl_kafka_conf_new(config->uri, settings, reserved, diag);
	char text[256];

	if (conf == NULL)
		return NULL;
	rd_kafka_conf_set_opaque(conf, w);
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
	if (config->max_batch != 0) {
		snprintf(text, sizeof(text), "%" PRIu32, config->max_batch);
		rd_kafka_conf_set(conf, "batch.size", text, NULL, 0);
	}
	if (config->transactions == NULL)
		return conf;
	w->transactional = true;
	for (const struct pl_kafka_setting *s = in_transactions; s->name != NULL; s++) {
		if (pl_kafka_uri_property(config->uri, s->name) == NULL)
			rd_kafka_conf_set(conf, s->name, s->value, text, sizeof(text));
	}
	if (rd_kafka_conf_set(conf, "transactional.id", config->transactions, text, sizeof(text)) ==
		RD_KAFKA_CONF_OK)
		return conf;
	pl_diag_set(diag, "%s", text);
	rd_kafka_conf_destroy(conf);
	return NULL;
}

static int begin(struct pl_kafka_writer *w, struct pl_diag *diag)
{
	int r;

	if (!w->transactional || w->begun)
		return 0;
	w->trouble.text[0] = '\0';
	r = code_of(rd_kafka_begin_transaction(w->rk), "a transaction", diag);
	w->begun = r == 0;
	return r;
}

int pl_kafka_writer_open(struct pl_kafka_writer **ret, const struct pl_kafka_writer_config *config,
	struct pl_diag *diag)
{
	struct pl_kafka_writer *w = calloc(1, sizeof(*w));
	rd_kafka_conf_t *conf;
	char text[256];

	if (w == NULL)
		return -ENOMEM;
	conf = make_conf(w, config, diag);
	if (conf != NULL) {
		w->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
		if (w->rk == NULL) {
			pl_diag_set(diag, "%s", text);
			rd_kafka_conf_destroy(conf);
		}
	}
	if (w->rk == NULL) {
		free(w);
		return -EINVAL;
	}
	if (w->transactional && code_of(rd_kafka_init_transactions(w->rk, (int)config->wait_ms),
					"transactions", diag) < 0) {
		pl_kafka_writer_close(w);
		return -ETIMEDOUT;
	}
	*ret = w;
	return 0;
}

void pl_kafka_writer_close(struct pl_kafka_writer *w)
{
	if (w == NULL)
		return;
	rd_kafka_purge(w->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	if (w->begun)
		(void)code_of(rd_kafka_abort_transaction(w->rk, 2000), "abort", NULL);
	rd_kafka_destroy(w->rk);
	free(w);
}

/* ---- topics ---- */

static rd_kafka_resp_err_t made(rd_kafka_event_t *event)
{
	const rd_kafka_topic_result_t **results;
	size_t n = 0;

	if (event == NULL)
		return RD_KAFKA_RESP_ERR__TIMED_OUT;
	if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return rd_kafka_event_error(event);
	results =
		rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
	return n == 1 ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR__FAIL;
}

int pl_kafka_writer_topic(struct pl_kafka_writer *w, const char *topic, uint32_t partitions,
	uint32_t wait_ms, struct pl_diag *diag)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(w->rk);
	rd_kafka_resp_err_t err;
	rd_kafka_NewTopic_t *new;
	rd_kafka_event_t *event;
	char text[256];

	new = rd_kafka_NewTopic_new(topic, (int)partitions, -1, text, sizeof(text));
	if (new == NULL) {
		rd_kafka_queue_destroy(queue);
		return pl_diag_fail(diag, -EINVAL, "topic '%s': %s", topic, text);
	}
	rd_kafka_CreateTopics(w->rk, &new, 1, NULL, queue);
	event = rd_kafka_queue_poll(queue, (int)wait_ms);
	err = made(event);
	if (event != NULL)
		rd_kafka_event_destroy(event);
	rd_kafka_NewTopic_destroy(new);
	rd_kafka_queue_destroy(queue);
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR || err == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
		return 0;
	return pl_diag_fail(
		diag, -EIO, "topic '%s' cannot be made: %s", topic, rd_kafka_err2str(err));
}

uint32_t pl_kafka_writer_room(
	struct pl_kafka_writer *w, const char *topic, uint32_t wait_ms, const char **ret_setting)
{
	const struct pl_kafka_room room = pl_kafka_room_of(w->rk, topic, wait_ms);

	*ret_setting = room.setting;
	return room.bytes;
}

/* ---- messages ---- */

int pl_kafka_writer_send(struct pl_kafka_writer *w, const char *topic, int32_t partition,
	const void *key, size_t key_len, const void *value, size_t len)
{
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__QUEUE_FULL;

	w->stats.sent++;
	if (begin(w, &w->trouble) < 0) {
		w->stats.failed++;
		return -EIO;
	}
	while (err == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
		err = rd_kafka_producev(w->rk, RD_KAFKA_V_TOPIC(topic),
			RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_PARTITION(partition),
			RD_KAFKA_V_KEY(key, key_len),
			RD_KAFKA_V_VALUE((void *)(uintptr_t)value, len), RD_KAFKA_V_END);
		rd_kafka_poll(w->rk, err == RD_KAFKA_RESP_ERR__QUEUE_FULL ? 100 : 0);
	}
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		return 0;
	count_failed(w, err, topic, len);
	return -EIO;
}

int pl_kafka_writer_flush(struct pl_kafka_writer *w, uint32_t wait_ms, struct pl_diag *diag)
{
	if (w->stats.delivered + w->stats.failed < w->stats.sent)
		rd_kafka_flush(w->rk, (int)wait_ms);
	if (w->stats.delivered == w->stats.sent)
		return 0;
	return pl_diag_fail(diag, -EIO, "messages were not acknowledged: %s",
		w->trouble.text[0] != '\0' ? w->trouble.text : "no broker answers");
}

int pl_kafka_writer_commit(struct pl_kafka_writer *w, struct pl_kafka_consumer *const *consumers,
	const struct pl_kafka_position *const *positions, const uint32_t *n, uint32_t n_consumers,
	uint32_t wait_ms, struct pl_diag *diag)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n_consumers; i++) {
		rd_kafka_consumer_group_metadata_t *group;
		rd_kafka_topic_partition_list_t *list;

		if (n[i] == 0)
			continue;
		r = begin(w, diag);
		if (r < 0)
			break;
		list = pl_kafka_consumer_list_of(consumers[i], positions[i], n[i]);
		group = rd_kafka_consumer_group_metadata(consumers[i]->rk);
		r = code_of(rd_kafka_send_offsets_to_transaction(w->rk, list, group, (int)wait_ms),
			"positions in a transaction", diag);
		rd_kafka_consumer_group_metadata_destroy(group);
		rd_kafka_topic_partition_list_destroy(list);
	}
	if (r == 0 && w->begun) {
		r = code_of(
			rd_kafka_commit_transaction(w->rk, (int)wait_ms), "a transaction", diag);
		w->begun = r < 0;
		w->stats.transactions += r == 0;
	}
	/* The error of a message says more than the failure of the transaction. */
	if (r < 0 && w->trouble.text[0] != '\0' && diag != NULL)
		pl_diag_set(diag, "a transaction: %s", w->trouble.text);
	return r;
}

int pl_kafka_writer_abort(struct pl_kafka_writer *w, uint32_t wait_ms, struct pl_diag *diag)
{
	int r;

	if (!w->begun)
		return 0;
	r = code_of(
		rd_kafka_abort_transaction(w->rk, (int)wait_ms), "a transaction taken back", diag);
	w->begun = r < 0;
	w->stats.aborted += r == 0;
	return r;
}

const struct pl_kafka_writer_stats *pl_kafka_writer_stats(const struct pl_kafka_writer *w)
{
	return &w->stats;
}

const char *pl_kafka_writer_trouble(const struct pl_kafka_writer *w)
{
	return w->trouble.text;
}
