/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the statistics that librdkafka gives as JSON. */
#include "kafka/statistics.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_kafka_client, __VA_ARGS__)
#include "kafka/client_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_kafka_client_list = { rows, sizeof(rows) / sizeof(rows[0]) };

/* Numbers below zero stand for "not known". */
static uint64_t number(const json_t *object, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(object, key));

	return v > 0 ? (uint64_t)v : 0;
}

static uint64_t window(const json_t *object, const char *key, const char *which)
{
	return number(json_object_get(object, key), which);
}

static void keep_largest(uint64_t *largest, uint64_t value)
{
	if (value > *largest)
		*largest = value;
}

static void read_brokers(struct pl_kafka_client *c, json_t *brokers)
{
	const char *name;
	json_t *b;

	json_object_foreach(brokers, name, b)
	{
		const char *state = json_string_value(json_object_get(b, "state"));

		c->brokers_up += state != NULL && strcmp(state, "UP") == 0;
		c->retries += number(b, "txretries");
		c->timeouts += number(b, "req_timeouts");
		c->requests_waiting += number(b, "outbuf_cnt") + number(b, "waitresp_cnt");
		keep_largest(&c->internal_us, window(b, "int_latency", "p99"));
		keep_largest(&c->outbuf_us, window(b, "outbuf_latency", "p99"));
		keep_largest(&c->rtt_us, window(b, "rtt", "p99"));
		keep_largest(&c->throttle_ms, window(b, "throttle", "max"));
	}
}

static uint64_t read_partitions(struct pl_kafka_client *c, json_t *partitions)
{
	uint64_t known = 0;
	const char *name;
	json_t *p;

	json_object_foreach(partitions, name, p)
	{
		const json_t *id = json_object_get(p, "partition");

		/* Partition -1 is the client's own queue of messages without a partition. */
		if (!json_is_integer(id) || json_integer_value(id) < 0)
			continue;
		c->lag += number(p, "consumer_lag");
		known += json_is_false(json_object_get(p, "unknown"));
	}
	return known;
}

/* Reads the topic of this name, or all; returns their number of known partitions. */
static uint64_t read_topics(struct pl_kafka_client *c, json_t *topics, const char *topic)
{
	uint64_t known = 0;
	const char *name;
	json_t *t;

	json_object_foreach(topics, name, t)
	{
		if (topic != NULL && strcmp(name, topic) != 0)
			continue;
		keep_largest(&c->batch_bytes, window(t, "batchsize", "avg"));
		keep_largest(&c->batch_messages, window(t, "batchcnt", "avg"));
		known += read_partitions(c, json_object_get(t, "partitions"));
	}
	return known;
}

int pl_kafka_client_read(
	struct pl_kafka_client *ret, const char *topic, const char *json, size_t len)
{
	json_t *root = json_loadb(json, len, 0, NULL);
	struct pl_kafka_client c = { .partitions = ret->partitions };
	uint64_t known;

	if (!json_is_object(root)) {
		json_decref(root);
		return -EINVAL;
	}
	c.queue_messages = number(root, "msg_cnt");
	c.queue_bytes = number(root, "msg_size");
	c.sent_messages = number(root, "txmsgs");
	c.sent_bytes = number(root, "txmsg_bytes");
	c.received_messages = number(root, "rxmsgs");
	c.received_bytes = number(root, "rxmsg_bytes");
	c.rebalances = number(json_object_get(root, "cgrp"), "rebalance_cnt");
	read_brokers(&c, json_object_get(root, "brokers"));
	known = read_topics(&c, json_object_get(root, "topics"), topic);
	if (known > 0)
		c.partitions = known;
	json_decref(root);
	*ret = c;
	return 0;
}
