/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the tests: a mock cluster of librdkafka on loopback, and records whose content follows
 * from their number. */
#pragma once

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/test.h"
#include "kafka/uri.h"
#include "record/packet.h"

struct test_cluster {
	rd_kafka_t *rk;
	rd_kafka_mock_cluster_t *mock;
};

static inline struct test_cluster test_cluster_start(void)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	struct test_cluster c;
	char text[256];

	rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text));
	c.rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	c.mock = c.rk == NULL ? NULL : rd_kafka_mock_cluster_new(c.rk, 1);
	if (c.mock == NULL) {
		printf("Bail out! no cluster: %s\n", text);
		exit(1);
	}
	return c;
}

static inline void test_cluster_stop(struct test_cluster *c)
{
	rd_kafka_mock_cluster_destroy(c->mock);
	rd_kafka_destroy(c->rk);
}

/* Parses the URI of a topic, which is made with that many partitions unless `partitions` is 0. */
static inline void test_uri(struct pl_kafka_uri *ret, const struct test_cluster *c,
	const char *topic, int partitions, const char *query)
{
	char text[1024];
	struct pl_diag diag = { .text = "" };

	if (partitions > 0)
		rd_kafka_mock_topic_create(c->mock, topic, partitions, 1);
	snprintf(text, sizeof(text), "kafka://%s/%s%s", rd_kafka_mock_cluster_bootstraps(c->mock),
		topic, query);
	if (pl_kafka_uri_parse(ret, text, &diag) < 0) {
		printf("Bail out! %s: %s\n", text, diag.text);
		exit(1);
	}
}

/* Record i: every byte follows from its number. */
static inline struct pl_pkt64 test_record(uint64_t i)
{
	struct pl_pkt64 r;

	for (size_t at = 0; at < sizeof(r); at += 8) {
		const uint64_t word = pl_hash_mix(i, at);

		memcpy((uint8_t *)&r + at, &word, 8);
	}
	r.ts_ns = 1700000000000000000ull + i * 1000;
	return r;
}

static inline uint64_t test_number(const struct pl_pkt64 *r)
{
	return (r->ts_ns - 1700000000000000000ull) / 1000;
}

/* Returns true for a text that says why nothing gets into a topic that was removed. There are two: a
 * refusal, and once the client knows that the topic has no partitions, that no broker told of it. */
static inline bool test_names_removed(const char *why)
{
	return strstr(why, "nknown") != NULL || strstr(why, "no broker told of the topic") != NULL;
}

/* ---- the witness: a consumer of librdkafka ---- */

static inline rd_kafka_t *witness(
	const struct test_cluster *cluster, const char *topic, int partitions)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char text[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers",
		rd_kafka_mock_cluster_bootstraps(cluster->mock), text, sizeof(text));
	rd_kafka_conf_set(conf, "group.id", "witness", text, sizeof(text));
	rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", text, sizeof(text));
	rd_kafka_conf_set(conf, "enable.auto.commit", "false", text, sizeof(text));
	rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
	for (int i = 0; i < partitions; i++)
		rd_kafka_topic_partition_list_add(list, topic, i)->offset =
			RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_assign(rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	return rk;
}

static inline rd_kafka_message_t *witness_next(rd_kafka_t *rk)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;

	while (pl_clock_mono_ns() < until) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 100);

		if (m != NULL && m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
			return m;
		if (m != NULL)
			rd_kafka_message_destroy(m);
	}
	return NULL;
}

static inline void witness_end(rd_kafka_t *rk)
{
	rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
}

static inline uint64_t test_header(const rd_kafka_message_t *m, const char *name, size_t len)
{
	rd_kafka_headers_t *headers = NULL;
	const void *value = NULL;
	uint64_t v = 0;
	size_t got = 0;

	if (rd_kafka_message_headers(m, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
		rd_kafka_header_get_last(headers, name, &value, &got) !=
			RD_KAFKA_RESP_ERR_NO_ERROR ||
		got != len) {
		ok(false, "header %s has %zu bytes, not %zu", name, got, len);
		return 0;
	}
	for (size_t i = 0; i < len; i++)
		v |= (uint64_t)((const uint8_t *)value)[i] << 8 * i;
	return v;
}
