/* SPDX-License-Identifier: BSD-2-Clause */
/* Producers against librdkafka's own cluster, in order and in every disorder that it can be put to.
 * After each, every record is delivered or in the counter of one cause. A consumer of librdkafka's,
 * without code of ours, says what arrived. */
#include "kafka/producer.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "base/sandbox.h"
#include "base/test.h"
#include "kafka/producer_room.h"
#include "kafka/skew.h"
#include "kafka/test_kafka.h"

#define PRODUCE 0 /* the protocol's number of the request */

static struct test_cluster cluster;
static struct pl_kafka_uri uri;
static struct pl_diag diag;
static uint64_t seed;

static struct pl_kafka_producer *open_with(struct pl_kafka_producer_config config)
{
	struct pl_kafka_producer *p = NULL;
	int r;

	config.uri = &uri;
	config.exporter = 0xa1b2c3d4;
	diag.text[0] = '\0';
	r = pl_kafka_producer_open(&p, &config, &diag);
	ok(r == 0, "opens: %s", diag.text);
	if (r < 0) {
		printf("Bail out! cannot go on\n");
		exit(1);
	}
	pl_kafka_producer_clock(p, PL_STAMP_NIC);
	return p;
}

static int refused(struct pl_kafka_producer_config config)
{
	struct pl_kafka_producer *p = NULL;
	int r;

	config.uri = &uri;
	diag.text[0] = '\0';
	r = pl_kafka_producer_open(&p, &config, &diag);
	if (r == 0)
		pl_kafka_producer_close(p, 0, NULL);
	return r;
}

static uint64_t hash_of(uint64_t i)
{
	return pl_hash_mix(i, seed);
}

static void put_range(struct pl_kafka_producer *p, uint64_t from, uint64_t to, bool patient)
{
	for (uint64_t i = from; i < to; i++) {
		const struct pl_pkt64 r = test_record(i);

		(void)eventually(!patient || pl_kafka_producer_room(p, hash_of(i)),
			pl_kafka_producer_turn(p, pl_clock_mono_ns()));
		pl_kafka_producer_put(p, hash_of(i), &r);
	}
}

static struct pl_kafka_producer_stats stats_of(const struct pl_kafka_producer *p)
{
	struct pl_kafka_producer_stats s;

	pl_kafka_producer_stats(p, &s);
	return s;
}

/* Turns until nothing waits. */
static void settle(struct pl_kafka_producer *p)
{
	(void)eventually(stats_of(p).waiting == 0, pl_kafka_producer_turn(p, pl_clock_mono_ns()));
}

static void check_accounts(const struct pl_kafka_producer_stats *s, uint64_t put, const char *when)
{
	eq(s->put, put, "%s: all were put", when);
	eq(s->delivered + s->waiting + pl_kafka_producer_dropped(s), put,
		"%s: each is delivered, waiting or dropped for one cause", when);
}

static struct pl_kafka_producer_stats close_and_check(
	struct pl_kafka_producer *p, uint32_t timeout_ms, uint64_t put, const char *when)
{
	struct pl_kafka_producer_stats s;

	pl_kafka_producer_close(p, timeout_ms, &s);
	check_accounts(&s, put, when);
	eq(s.waiting, 0, "%s: nothing waits at the end", when);
	return s;
}

/* ---- the witness ---- */

/* Checks the content and partition of every record of the message; marks the records in seen. */
static bool check_records(const rd_kafka_message_t *m, int partitions, uint8_t *seen, uint64_t n)
{
	uint64_t newest = 0, oldest = UINT64_MAX, last = 0;
	bool good = m->len > 0 && m->len % 64 == 0;

	for (size_t at = 0; good && at < m->len; at += 64) {
		struct pl_pkt64 got, want;
		uint64_t i;

		memcpy(&got, (const uint8_t *)m->payload + at, 64);
		i = test_number(&got);
		want = test_record(i);
		good = i < n && seen[i] == 0 && memcmp(&got, &want, 64) == 0 &&
		       hash_of(i) % (unsigned int)partitions == (uint64_t)m->partition &&
		       (at == 0 || i > last);
		if (good)
			seen[i] = 1;
		last = i;
		newest = got.ts_ns > newest ? got.ts_ns : newest;
		oldest = got.ts_ns < oldest ? got.ts_ns : oldest;
	}
	return good && test_header(m, "f", 7) == 0x312f3436746b70 && /* "pkt64/1" */
	       test_header(m, "n", 4) == m->len / 64 && test_header(m, "x", 4) == 0xa1b2c3d4 &&
	       test_header(m, "t0", 8) == oldest && test_header(m, "t1", 8) == newest &&
	       test_header(m, "d", 8) == 0 && test_header(m, "c", 3) == 0x63696e && /* "nic" */
	       rd_kafka_message_timestamp(m, NULL) == (int64_t)(newest / 1000000);
}

/* Reads n records in `messages` messages of the topic. */
static void check_arrived(const char *topic, int partitions, uint64_t n, uint64_t messages)
{
	uint8_t *seen = calloc(1, n), *sequences = calloc(1, messages);
	rd_kafka_t *rk = witness(&cluster, topic, partitions);
	uint64_t got = 0, bad = 0, missing = 0;

	for (uint64_t i = 0; i < messages; i++) {
		rd_kafka_message_t *m = witness_next(rk);
		uint64_t s;

		if (m == NULL)
			break;
		got++;
		s = test_header(m, "s", 8);
		bad += !check_records(m, partitions, seen, n) || s >= messages || sequences[s];
		if (s < messages)
			sequences[s] = 1;
		rd_kafka_message_destroy(m);
	}
	for (uint64_t i = 0; i < n; i++)
		missing += !seen[i];
	eq(got, messages, "%s: messages that arrived", topic);
	eq(bad, 0, "%s: messages with a record, header or time that is wrong", topic);
	eq(missing, 0, "%s: records that did not arrive", topic);
	witness_end(rk);
	free(sequences);
	free(seen);
}

/* ---- in order ---- */

static void test_exact(const char *topic, const char *query)
{
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, topic, 3, query);
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
	put_range(p, 0, 10000, true);
	s = stats_of(p);
	check_accounts(&s, 10000, "while they are on their way");
	s = close_and_check(p, 60000, 10000, topic);
	eq(s.delivered, 10000, "all are delivered");
	eq(s.messages, s.messages_delivered);
	eq(s.bytes_delivered, 10000 * 64);
	check_arrived(topic, 3, 10000, s.messages);
}

/* A batch is sent by its age, told by the caller's clock alone. */
static void test_age(void)
{
	const struct pl_pkt64 r = test_record(0);
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "age", 2, "");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
	pl_kafka_producer_turn(p, 1000);
	pl_kafka_producer_put(p, 0, &r);
	pl_kafka_producer_turn(p, 1000 + PL_KAFKA_AGE_NS / 2);
	pl_kafka_producer_put(p, 1, &r);
	pl_kafka_producer_turn(p, 1000 + PL_KAFKA_AGE_NS - 1);
	eq(stats_of(p).messages, 0, "too young by a nanosecond");
	pl_kafka_producer_turn(p, 1000 + PL_KAFKA_AGE_NS);
	eq(stats_of(p).messages, 1, "old enough, and the younger one is not");
	pl_kafka_producer_put(p, 0, &r);
	pl_kafka_producer_turn(p, 1000 + PL_KAFKA_AGE_NS + PL_KAFKA_AGE_NS / 2);
	eq(stats_of(p).messages, 2, "the younger one in its turn");
	eq(stats_of(p).aged, 2);
	eq(close_and_check(p, 60000, 3, "age").delivered, 3, "all are delivered");
}

static void test_flow_times(void)
{
	const struct pl_flow128 flows[2] = { { .first_ts = 50, .last_ts = 7000000 },
		{ .first_ts = 40, .last_ts = 60 } };
	struct pl_kafka_producer *p;
	rd_kafka_message_t *m;
	rd_kafka_t *rk;

	test_uri(&uri, &cluster, "flows", 1, "?records=2");
	p = open_with(
		(struct pl_kafka_producer_config){ .kind = PL_FLAT_FLOW128, .wait_ms = 60000 });
	pl_kafka_producer_put(p, 9, &flows[0]);
	pl_kafka_producer_put(p, 9, &flows[1]);
	eq(stats_of(p).messages, 1, "a full batch goes at once");
	close_and_check(p, 60000, 2, "flows");
	rk = witness(&cluster, "flows", 1);
	m = witness_next(rk);
	eq(m->len, sizeof(flows));
	memeq(m->payload, flows, sizeof(flows), "the flows' bytes");
	eq(test_header(m, "t0", 8), 40, "the oldest first packet");
	eq(test_header(m, "t1", 8), 7000000, "the newest last packet");
	eq(rd_kafka_message_timestamp(m, NULL), 7);
	rd_kafka_message_destroy(m);
	witness_end(rk);
}

static void test_texts(void)
{
	int of_key[5] = { -1, -1, -1, -1, -1 };
	struct pl_kafka_producer *p;
	uint64_t good = 0;
	rd_kafka_t *rk;

	test_uri(&uri, &cluster, "texts", 4, "?format=json");
	p = open_with(
		(struct pl_kafka_producer_config){ .mode = PL_KAFKA_MESSAGES, .wait_ms = 60000 });
	for (int i = 0; i < 100; i++) {
		char key[16], value[64];

		snprintf(key, sizeof(key), "ddos|%d", i % 5);
		snprintf(value, sizeof(value), "{\"q\":\"ddos\",\"key\":%d,\"n\":%d}", i % 5, i);
		pl_kafka_producer_send(p, key, strlen(key), value, strlen(value));
		/* Copies were taken. */
		memset(key, 'x', sizeof(key));
		memset(value, 'x', sizeof(value));
	}
	eq(close_and_check(p, 60000, 100, "texts").delivered, 100);
	rk = witness(&cluster, "texts", 4);
	for (int i = 0; i < 100; i++) {
		rd_kafka_message_t *m = witness_next(rk);
		char value[64] = "", want[64], key[16];
		int k = -1, n = -1;

		if (m == NULL)
			break;
		memcpy(value, m->payload, m->len < 63 ? m->len : 63);
		if (sscanf(value, "{\"q\":\"ddos\",\"key\":%d,\"n\":%d}", &k, &n) == 2 && k >= 0 &&
			k < 5) {
			snprintf(want, sizeof(want), "{\"q\":\"ddos\",\"key\":%d,\"n\":%d}", k, n);
			snprintf(key, sizeof(key), "ddos|%d", k);
			good += strcmp(value, want) == 0 && m->key_len == strlen(key) &&
				memcmp(m->key, key, m->key_len) == 0 &&
				(of_key[k] == -1 || of_key[k] == m->partition);
			of_key[k] = m->partition;
		}
		rd_kafka_message_destroy(m);
	}
	eq(good, 100, "keys, values, and one partition for each key");
	witness_end(rk);
}

/* A producer that did not wait learns of the topic by the statistics. */
static void test_partitions_later(void)
{
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "later", 5, "");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 0 });
	ok(!pl_kafka_producer_room(p, 1), "no room yet");
	put_range(p, 0, 10, false);
	eq(stats_of(p).drop_no_partitions, 10, "dropped while partitions are not known");
	(void)eventually(
		pl_kafka_producer_room(p, 1), pl_kafka_producer_turn(p, pl_clock_mono_ns()));
	eq(pl_kafka_producer_client(p)->partitions, 5, "the topic's partitions");
	put_range(p, 10, 500, true);
	s = close_and_check(p, 60000, 500, "later");
	eq(s.delivered, 490);
	eq(s.drop_no_partitions, 10);
}

/* Each partition has its buffer, also when a broker tells of the partitions only later, and of more
 * of them than there were buffers at first. */
static void test_many_later(void)
{
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "many", 100, "");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 0 });
	(void)eventually(pl_kafka_producer_knows(p), pl_kafka_producer_turn(p, pl_clock_mono_ns()));
	eq(stats_of(p).free_buffers, 200, "two buffers for each of 100 partitions");
	for (uint64_t i = 0; i < 200; i++) {
		const struct pl_pkt64 r = test_record(i);

		pl_kafka_producer_put(p, i, &r);
	}
	eq(stats_of(p).drop_no_buffer, 0, "no partition is without one");
	eq(stats_of(p).free_buffers, 100, "while each fills a message");
	settle(p);
	eq(stats_of(p).free_buffers, 200, "they are used again");
	eq(close_and_check(p, 60000, 200, "many").delivered, 200);
}

/* A number of buffers that was asked for, and memory's bound, hold for partitions of later. */
static void test_later_bounds(void)
{
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "few", 100, "");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 0, .buffers = 4 });
	(void)eventually(pl_kafka_producer_knows(p), pl_kafka_producer_turn(p, pl_clock_mono_ns()));
	eq(stats_of(p).free_buffers, 4, "as many as were asked for");
	close_and_check(p, 60000, 0, "few");
	test_uri(&uri, &cluster, "wide", 1025, "?records=4096");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 0 });
	(void)eventually(pl_kafka_producer_knows(p), pl_kafka_producer_turn(p, pl_clock_mono_ns()));
	eq(stats_of(p).free_buffers, 2048, "no more memory than there may be");
	ok(strstr(pl_kafka_producer_trouble(p), "512 MiB") != NULL, "its bound is told: %s",
		pl_kafka_producer_trouble(p));
	close_and_check(p, 60000, 0, "wide");
}

static void test_statistics(void)
{
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "statistics", 2, "?records=16");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
	put_range(p, 0, 640, true);
	(void)eventually(pl_kafka_producer_client(p)->sent_messages >= stats_of(p).messages,
		pl_kafka_producer_turn(p, pl_clock_mono_ns()));
	eq(pl_kafka_producer_client(p)->sent_messages, stats_of(p).messages,
		"librdkafka counts the messages that we count");
	ok(pl_kafka_producer_client(p)->brokers_up >= 1, "a broker is up");
	ok(pl_kafka_producer_client(p)->rtt_us > 0, "and answered after some time");
	close_and_check(p, 60000, 640, "statistics");
}

/* ---- in disorder ---- */

static void test_no_buffer(void)
{
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "buffers", 1, "?records=8");
	p = open_with((struct pl_kafka_producer_config){ .buffers = 4, .wait_ms = 60000 });
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	put_range(p, 0, 100, false);
	s = stats_of(p);
	check_accounts(&s, 100, "no buffer");
	eq(s.drop_no_buffer, 100 - 4 * 8, "the newest are dropped, whole records");
	eq(s.free_buffers, 0);
	ok(!pl_kafka_producer_room(p, 0), "there is no room");
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	settle(p);
	ok(pl_kafka_producer_room(p, 0), "delivery gives buffers back");
	eq(stats_of(p).free_buffers, 4, "all of them");
	put_range(p, 0, 8, false);
	s = close_and_check(p, 60000, 108, "no buffer");
	eq(s.delivered, 4 * 8 + 8, "those that had a buffer are delivered");
}

/* An outage does not use the buffers up for messages of one record. */
static void test_slow_acknowledgements(void)
{
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;
	uint64_t now = 1000000000000;

	test_uri(&uri, &cluster, "slow", 1, "?records=8");
	p = open_with((struct pl_kafka_producer_config){ .buffers = 4, .wait_ms = 60000 });
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	for (int i = 0; i < 20; i++) {
		put_range(p, (uint64_t)i, (uint64_t)i + 1, false);
		now += PL_KAFKA_AGE_NS;
		pl_kafka_producer_turn(p, now);
	}
	s = stats_of(p);
	check_accounts(&s, 20, "slow acknowledgements");
	eq(s.aged, 3, "until more than half of the buffers are on their way");
	eq(s.drop_no_buffer, 20 - 3 - 8, "the last one is filled");
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	settle(p);
	put_range(p, 20, 21, false);
	settle(p);
	eq(stats_of(p).aged, 4, "age counts again");
	eq(close_and_check(p, 60000, 21, "slow acknowledgements").delivered, 12);
}

/* A slow broker gets all messages, also when that takes longer than close waits for one. */
static void test_slow_close(void)
{
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "slow-close", 1, "?batch.num.messages=1&max.in.flight=1");
	p = open_with(
		(struct pl_kafka_producer_config){ .mode = PL_KAFKA_MESSAGES, .wait_ms = 60000 });
	rd_kafka_mock_broker_set_rtt(cluster.mock, 1, 700);
	for (int i = 0; i < 8; i++)
		(void)pl_kafka_producer_send(p, NULL, 0, "text", 4);
	eq(close_and_check(p, 4000, 8, "a slow broker").delivered, 8, "all were delivered");
	rd_kafka_mock_broker_set_rtt(cluster.mock, 1, 0);
}

static void test_down(void)
{
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "down", 2, "?records=8");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	put_range(p, 0, 101, false);
	s = close_and_check(p, 200, 101, "the broker is down");
	eq(s.delivered, 0, "nothing is delivered");
	eq(s.drop_purged, 101, "all is given up at the end");
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
}

static void test_timed_out(void)
{
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "late", 2, "?records=8&linger.ms=0&delivery.timeout.ms=300");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	put_range(p, 0, 100, false);
	settle(p);
	s = stats_of(p);
	check_accounts(&s, 100, "timed out");
	eq(s.drop_timed_out, 100, "given up after delivery.timeout.ms");
	ok(s.errors > 0 && pl_kafka_producer_trouble(p)[0] != '\0', "the client tells: %s",
		pl_kafka_producer_trouble(p));
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	close_and_check(p, 60000, 100, "timed out");
}

static void test_queue_full(void)
{
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "full", 1, "?records=10&queue.buffering.max.messages=3");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	put_range(p, 0, 95, false);
	s = stats_of(p);
	check_accounts(&s, 95, "queue full");
	eq(s.drop_queue_full, 60, "every batch but three and the one being filled");
	eq(s.free_buffers, PL_KAFKA_BUFFERS_DEFAULT - 4, "whose buffers are free again");
	pl_kafka_producer_turn(p, pl_clock_mono_ns());
	eq(stats_of(p).drop_queue_full, 65, "and so is that, when it is old enough");
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	settle(p);
	s = close_and_check(p, 60000, 95, "queue full");
	eq(s.delivered, 30);
}

static void test_text_queue_full(void)
{
	struct pl_kafka_producer *p;
	int full = 0;

	test_uri(&uri, &cluster, "textsfull", 1, "?queue.buffering.max.messages=3");
	p = open_with(
		(struct pl_kafka_producer_config){ .mode = PL_KAFKA_MESSAGES, .wait_ms = 60000 });
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	for (int i = 0; i < 10; i++)
		full += pl_kafka_producer_send(p, NULL, 0, "{}", 2) == -ENOBUFS;
	eq(full, 7, "the caller is told");
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	eq(close_and_check(p, 60000, 10, "texts, queue full").drop_queue_full, 7);
}

static unsigned int taken_back;

/* Takes every other one. */
static bool take_text(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
	ok(arg == &taken_back && key_len == 1 && memcmp(key, "k", 1) == 0 && len == 2 &&
			memcmp(value, "{}", 2) == 0,
		"it is the message that was sent");
	return ++taken_back % 2 == 1;
}

/* Texts that were not acknowledged, or found no room, go back to whoever takes them. */
static void test_texts_returned(void)
{
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;
	int refused = 0;

	taken_back = 0;
	test_uri(&uri, &cluster, "textsback", 1, "?queue.buffering.max.messages=4");
	p = open_with((struct pl_kafka_producer_config){ .mode = PL_KAFKA_MESSAGES,
		.wait_ms = 60000,
		.undelivered_message = take_text,
		.arg = &taken_back });
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	for (int i = 0; i < 10; i++)
		refused += pl_kafka_producer_send(p, "k", 1, "{}", 2) == -ENOBUFS;
	eq(refused, 3,
		"of six without room every other one is taken back, the caller is told of the rest");
	pl_kafka_producer_close(p, 200, &s);
	eq(taken_back, 10, "those that the client had, too");
	eq(s.returned, 5);
	eq(s.drop_queue_full, 3);
	eq(s.drop_purged, 2);
	eq(s.put, s.delivered + s.returned + pl_kafka_producer_dropped(&s), "the account closes");
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
}

static bool take_records(void *arg, const void *records, uint32_t n)
{
	(void)records;
	*(unsigned int *)arg += n;
	return true;
}

/* A fault of the message itself does not go away: the message is not taken back for ever. */
static void test_bad_time(void)
{
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;

	taken_back = 0;
	test_uri(&uri, &cluster, "badtime", 1,
		"?records=10&enable.idempotence=false&linger.ms=0&retries=0");
	p = open_with((struct pl_kafka_producer_config){
		.wait_ms = 60000, .undelivered = take_records, .arg = &taken_back });
	rd_kafka_mock_push_request_errors(
		cluster.mock, PRODUCE, 1, RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP);
	put_range(p, 0, 10, false);
	settle(p);
	s = close_and_check(p, 60000, 10, "a time that the broker refuses");
	eq(s.drop_failed, 10, "dropped");
	eq(taken_back, 0, "and not taken back");
	rd_kafka_mock_clear_request_errors(cluster.mock, PRODUCE);
}

/* A message is no later than the present, however far ahead its records are. */
static void test_ahead(void)
{
	const uint64_t hour_ms = 3600000;
	struct pl_pkt64 r = test_record(0);
	struct pl_kafka_producer *p;
	rd_kafka_message_t *m;
	rd_kafka_t *rk;
	int64_t ms;

	test_uri(&uri, &cluster, "ahead", 1, "");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
	r.ts_ns = pl_clock_real_ns() + 24 * hour_ms * 1000000;
	pl_kafka_producer_put(p, 9, &r);
	close_and_check(p, 60000, 1, "a record of tomorrow");
	rk = witness(&cluster, "ahead", 1);
	m = witness_next(rk);
	ms = rd_kafka_message_timestamp(m, NULL);
	ok(ms > 0 && (uint64_t)ms <= pl_clock_real_ns() / 1000000, "the message is of now");
	eq(test_header(m, "t1", 8), r.ts_ns, "its header has the record's time");
	rd_kafka_message_destroy(m);
	witness_end(rk);
}

static void test_too_large(void)
{
	static char text[3000];
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "large", 1, "?records=64&message.max.bytes=2000&linger.ms=1");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
	put_range(p, 0, 70, true);
	s = close_and_check(p, 60000, 70, "messages of as many records as the client allows");
	eq(s.delivered, 70);
	eq(s.messages, 4, "23 records and 512 bytes beside them are below 2000");
	test_uri(&uri, &cluster, "large", 1, "?message.max.bytes=1000");
	eq(refused((struct pl_kafka_producer_config){
		   .mode = PL_KAFKA_ENTRIES, .format = "raw/1", .least = 489, .wait_ms = 0 }),
		-EMSGSIZE, "a message that is needed does not fit, without a broker");
	ok(strstr(diag.text, "'large' takes messages of 1000 bytes, and 1001 are needed: raise "
			     "message.max.bytes of the URI") != NULL,
		"what to do is told: %s", diag.text);
	p = open_with((struct pl_kafka_producer_config){
		.mode = PL_KAFKA_ENTRIES, .format = "raw/1", .least = 488, .wait_ms = 60000 });
	eq(pl_kafka_producer_put_entry(
		   p, 1, &(struct pl_kafka_entry){ .head = text, .head_len = 496, .size = 496 }),
		-EMSGSIZE, "an entry that fits in no message");
	eq(pl_kafka_producer_put_entry(
		   p, 1, &(struct pl_kafka_entry){ .head = text, .head_len = 488, .size = 488 }),
		0, "one that does");
	s = close_and_check(p, 60000, 2, "entries of any length");
	eq(s.drop_too_large, 1);
	eq(s.delivered, 1);
	test_uri(&uri, &cluster, "large", 1, "?message.max.bytes=2000&batch.size=2000");
	p = open_with(
		(struct pl_kafka_producer_config){ .mode = PL_KAFKA_MESSAGES, .wait_ms = 60000 });
	eq(pl_kafka_producer_send(p, "k", 1, text, sizeof(text)), -EMSGSIZE, "a text, too");
	eq(close_and_check(p, 60000, 1, "a large text").drop_too_large, 1);
}

/* Each error that a broker may answer with, and the counter that has to take it. */
/* A client that replaces one of too large batches keeps to the topic's limit, however low that is:
 * else it would be replaced as well, and so on. */
static void test_low_limits(void)
{
	static const uint32_t limits[] = { 1, 512, 513, 700, 1023, 1024, 1025, 1000000 };

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct pl_kafka_producer p = { .room.batch = limits[i] };
		rd_kafka_conf_t *conf = rd_kafka_conf_new();
		char text[256] = "";

		p.resize = pl_kafka_producer_batch_most(&p);
		pl_kafka_producer_resized(&p, conf);
		p.rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
		ok(p.rk != NULL, "batch.size %" PRIu32 " is one of librdkafka %s", p.resize, text);
		ok(p.rk != NULL && pl_kafka_producer_batch_fits(&p),
			"max.message.bytes %" PRIu32 " and batch.size %" PRIu32, limits[i],
			p.resize);
		if (p.rk != NULL)
			rd_kafka_destroy(p.rk);
	}
}

static void test_request_errors(void)
{
	static const struct {
		rd_kafka_resp_err_t err;
		size_t counter;
	} rows[] = {
#define ROW(err, member) { err, offsetof(struct pl_kafka_producer_stats, member) }
		ROW(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, drop_too_large),
		ROW(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, drop_denied),
		ROW(RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, drop_denied),
		ROW(RD_KAFKA_RESP_ERR_INVALID_MSG, drop_failed),
		ROW(RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS, drop_failed),
		ROW(RD_KAFKA_RESP_ERR_POLICY_VIOLATION, drop_failed),
		ROW(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, drop_failed),
#undef ROW
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_kafka_producer_stats s;
		struct pl_kafka_producer *p;
		uint64_t counted;

		test_uri(&uri, &cluster, "errors", 1,
			"?records=10&enable.idempotence=false&linger.ms=0&retries=0");
		p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
		rd_kafka_mock_push_request_errors(cluster.mock, PRODUCE, 1, rows[i].err);
		put_range(p, 0, 10, false);
		settle(p);
		put_range(p, 10, 20, false);
		s = close_and_check(p, 60000, 20, rd_kafka_err2name(rows[i].err));
		memcpy(&counted, (const uint8_t *)&s + rows[i].counter, 8);
		/* After some librdkafka refuses what follows, until it has asked for the topic. */
		ok(counted >= 10, "%s is counted where it belongs", rd_kafka_err2name(rows[i].err));
		eq(counted + s.delivered, 20, "and nowhere else");
		rd_kafka_mock_clear_request_errors(cluster.mock, PRODUCE);
	}
}

/* librdkafka retries after errors that allow it, and each record arrives once. */
static void test_retries(void)
{
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "retries", 2, "?records=32&retry.backoff.ms=10");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
	rd_kafka_mock_push_request_errors(cluster.mock, PRODUCE, 4,
		RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR__TRANSPORT,
		RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR__TRANSPORT);
	put_range(p, 0, 2000, true);
	s = close_and_check(p, 60000, 2000, "retries");
	eq(s.delivered, 2000);
	check_arrived("retries", 2, 2000, s.messages);
}

/* Stands before librdkafka's function, and notes who closed which client last. */
static const rd_kafka_t *closed_last;
static pthread_t closed_by;

void rd_kafka_destroy(rd_kafka_t *rk)
{
	void (*next)(rd_kafka_t *) = NULL;

	*(void **)&next = dlsym(RTLD_NEXT, "rd_kafka_destroy");
	closed_last = rk;
	closed_by = pthread_self();
	next(rk);
}

/* A client that cannot go on is replaced by another one; records put meanwhile are counted. */
static void test_fatal(void)
{
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;
	const rd_kafka_t *first;

	test_uri(&uri, &cluster, "fatal", 1, "?records=10&linger.ms=1");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
	put_range(p, 0, 10, false);
	settle(p);
	eq(stats_of(p).delivered, 10);
	first = p->rk;
	eq(rd_kafka_test_fatal_error(
		   p->rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "of the test"),
		RD_KAFKA_RESP_ERR_NO_ERROR);
	put_range(p, 10, 20, false);
	eq(stats_of(p).drop_fatal, 10, "the client takes nothing any more");
	(void)eventually(p->rk != first, pl_kafka_producer_turn(p, pl_clock_mono_ns()));
	ok(p->rk != first, "another one takes its place");
	put_range(p, 20, 30, false);
	settle(p);
	(void)eventually(p->old.rk == NULL, pl_kafka_producer_turn(p, pl_clock_mono_ns()));
	ok(p->old.rk == NULL && p->next.rk == NULL,
		"the first one is closed, and it stays at that");
	(void)eventually(!atomic_load(&p->closing));
	ok(closed_last == first && !pthread_equal(closed_by, pthread_self()),
		"in a thread that may wait for it");
	s = close_and_check(p, 60000, 30, "a fatal error");
	eq(s.delivered, 20);
	eq(s.drop_fatal, 10);
	eq(s.renewals + s.renewals_failed, 0, "certificates have nothing to do with it");
}

static void test_dropped_header(void)
{
	struct pl_kafka_producer *p;
	rd_kafka_message_t *m;
	rd_kafka_t *rk;

	test_uri(&uri, &cluster, "header", 1, "?records=8");
	p = open_with((struct pl_kafka_producer_config){ .buffers = 2, .wait_ms = 60000 });
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	put_range(p, 0, 20, false);
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	settle(p);
	put_range(p, 20, 28, false);
	eq(close_and_check(p, 60000, 28, "drops told").drop_no_buffer, 4);
	rk = witness(&cluster, "header", 1);
	for (int i = 0; i < 3 && (m = witness_next(rk)) != NULL; i++) {
		eq(test_header(m, "s", 8), i, "message %d", i);
		eq(test_header(m, "d", 8), i < 2 ? 0 : 4, "tells of the records dropped before it");
		rd_kafka_message_destroy(m);
	}
	witness_end(rk);
}

static void test_no_topic(void)
{
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, "absent", 0, "?topic.metadata.propagation.max.ms=100");
	rd_kafka_mock_topic_set_error(
		cluster.mock, "absent", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	eq(refused((struct pl_kafka_producer_config){ .wait_ms = 500 }), -ENOENT, "%s", "no topic");
	ok(strstr(diag.text, "'absent'") != NULL, "its name is told: %s", diag.text);
	p = open_with((struct pl_kafka_producer_config){ .mode = PL_KAFKA_MESSAGES });
	for (int i = 0; i < 10; i++)
		pl_kafka_producer_send(p, "k", 1, "{}", 2);
	settle(p);
	eq(close_and_check(p, 60000, 10, "no topic").drop_no_topic, 10);
	rd_kafka_mock_topic_set_error(
		cluster.mock, "absent", RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	eq(refused((struct pl_kafka_producer_config){ .wait_ms = 60000 }), -EACCES, "%s",
		"a topic that is not for us");
}

static void test_no_broker(void)
{
	struct pl_kafka_producer *p;

	eq(pl_kafka_uri_parse(&uri, "kafka://127.0.0.1:1/t", NULL), 0);
	eq(refused((struct pl_kafka_producer_config){ .wait_ms = 300 }), -ETIMEDOUT);
	ok(strstr(diag.text, "127.0.0.1:1") != NULL, "the broker is named: %s", diag.text);
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 0 });
	put_range(p, 0, 50, false);
	eq(close_and_check(p, 100, 50, "no broker").drop_no_partitions, 50);
	p = open_with((struct pl_kafka_producer_config){ .mode = PL_KAFKA_MESSAGES });
	eq(pl_kafka_producer_send_hashed(p, 1, 0, "{}", 2, NULL), -EAGAIN,
		"one for a partition does not, before they are known");
	eq(pl_kafka_producer_send(p, NULL, 0, "{}", 2), 0, "a text waits for a broker");
	eq(close_and_check(p, 100, 2, "no broker, a text").drop_purged, 1);
}

/* ---- configuration ---- */

static void test_properties(void)
{
	static const struct {
		const char *query, *names;
	} wrong[] = {
		{ "?linger.ms=soon", "linger.ms" },
		{ "?acks=7000", "acks" },
		{ "?compression.codec=rar", "compression.codec" },
		{ "?acks=1", "acks" }, /* not with idempotence */
		{ "?bootstrap.servers=x", "bootstrap.servers" },
		{ "?metadata.broker.list=x", "metadata.broker.list" },
		{ "?delivery.report.only.error=true", "delivery.report.only.error" },
		{ "?statistics.interval.ms=0", "statistics.interval.ms" },
		{ "?transactional.id=x", "transactional.id" },
		{ "?dr_cb=x", "dr_cb" },
		{ "?security.protocol=ssl&ssl.ca.location=/nowhere", "ssl.ca.location" },
		{ "?format=json", "format=json" },
		{ "?securty.protocol=ssl", "securty.protocol" },
		{ "?linger.ms=1&spol=folder", "spol" },
	};
	struct pl_kafka_producer *p;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		test_uri(&uri, &cluster, "properties", 1, wrong[i].query);
		eq(refused((struct pl_kafka_producer_config){ .wait_ms = 0 }), -EINVAL, "%s",
			wrong[i].query);
		ok(strstr(diag.text, wrong[i].names) != NULL, "is named: %s", diag.text);
	}
	test_uri(&uri, &cluster, "properties", 1, "?security.protocol=sasl_plaintext");
	if (pl_sandbox_filters_calls()) {
		eq(refused((struct pl_kafka_producer_config){ .wait_ms = 0 }), -EINVAL,
			"Kerberos, whose kinit the sandbox refuses");
		ok(strstr(diag.text, "GSSAPI") != NULL, "is named: %s", diag.text);
	}
	test_uri(&uri, &cluster, "properties", 1, "?enable.idempotence=false&acks=1&linger.ms=1");
	p = open_with((struct pl_kafka_producer_config){ .wait_ms = 60000 });
	put_range(p, 0, 10, false);
	eq(close_and_check(p, 60000, 10, "properties").delivered, 10, "known ones are taken");
}

static void test_bounds(void)
{
	test_uri(&uri, &cluster, "bounds", 1, "?records=4096");
	eq(refused((struct pl_kafka_producer_config){ .buffers = 1 }), -EINVAL, "one buffer");
	eq(refused((struct pl_kafka_producer_config){ .buffers = 65537 }), -EINVAL, "too many");
	eq(refused((struct pl_kafka_producer_config){ .buffers = 2049 }), -EINVAL, "%s",
		"more memory than there may be");
	ok(strstr(diag.text, "512 MiB") != NULL, "its bound is told: %s", diag.text);
	eq(refused((struct pl_kafka_producer_config){
		   .mode = PL_KAFKA_MESSAGES, .kind = PL_FLAT_PKT64, .buffers = 2 }),
		0, "a producer of texts has no use for them");
	test_uri(&uri, &cluster, "bounds", 1, "?format=rowbinary");
	eq(refused((struct pl_kafka_producer_config){ .mode = PL_KAFKA_MESSAGES }), -EINVAL, "%s",
		"texts are no rowbinary");
	pl_kafka_producer_close(NULL, 0, NULL);
}

/* All records of one flow. */
static void put_elephant(struct pl_kafka_producer *p, uint64_t n, uint64_t now_ns)
{
	for (uint64_t i = 0; i < n; i++) {
		const struct pl_pkt64 r = test_record(i);

		(void)eventually(pl_kafka_producer_room(p, 5), pl_kafka_producer_turn(p, now_ns));
		pl_kafka_producer_put(p, 5, &r);
	}
}

static void test_spread(void)
{
	const struct pl_kafka_producer_config config = { .kind = PL_FLAT_PKT64, .wait_ms = 10000 };
	const uint64_t now = pl_clock_mono_ns();
	uint64_t of[4] = { 0 }, told = 0;
	struct pl_kafka_producer *p;
	rd_kafka_t *rk;

	test_uri(&uri, &cluster, "spread", 4, "?records=16&partition=spread");
	p = open_with(config);
	pl_kafka_producer_turn(p, now);
	put_elephant(p, 1600, now);
	pl_kafka_producer_turn(p, now + 2 * PL_KAFKA_SKEW_NS);
	eq(stats_of(p).skew_percent, 100, "spread: the partitions are even");
	close_and_check(p, 60000, 1600, "spread");
	rk = witness(&cluster, "spread", 4);
	for (int i = 0; i < 100; i++) {
		rd_kafka_message_t *m = witness_next(rk);
		rd_kafka_headers_t *headers;
		const void *value;
		size_t len;

		if (m == NULL)
			break;
		of[m->partition] += m->len / 64;
		told += rd_kafka_message_headers(m, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
			rd_kafka_header_get_last(headers, "p", &value, &len) ==
				RD_KAFKA_RESP_ERR_NO_ERROR &&
			len == 6 && memcmp(value, "spread", 6) == 0;
		rd_kafka_message_destroy(m);
	}
	witness_end(rk);
	for (int i = 0; i < 4; i++)
		eq(of[i], 400, "partition %d has a quarter", i);
	eq(told, 100, "each message says that flows are in several");
	test_uri(&uri, &cluster, "elephant", 4, "?records=16");
	p = open_with(config);
	pl_kafka_producer_turn(p, now);
	put_elephant(p, 1600, now);
	pl_kafka_producer_turn(p, now + 2 * PL_KAFKA_SKEW_NS);
	eq(stats_of(p).skew_percent, 400, "by the hash all are in one");
	eq(pl_kafka_producer_skew(p)->busiest, 1, "which one");
	close_and_check(p, 60000, 1600, "elephant");
}

static void test_spread_texts(void)
{
	const struct pl_kafka_producer_config config = { .mode = PL_KAFKA_MESSAGES,
		.wait_ms = 10000 };
	uint64_t of[3] = { 0 };
	struct pl_kafka_producer *p;
	rd_kafka_t *rk;

	test_uri(&uri, &cluster, "texts-spread", 3, "?partition=spread");
	p = open_with(config);
	for (int i = 0; i < 30; i++)
		eq(pl_kafka_producer_send_hashed(p, 5, 1, "{}", 2, NULL), 0, "a text");
	close_and_check(p, 60000, 30, "texts");
	rk = witness(&cluster, "texts-spread", 3);
	for (int i = 0; i < 30; i++) {
		rd_kafka_message_t *m = witness_next(rk);

		if (m == NULL)
			break;
		of[m->partition]++;
		rd_kafka_message_destroy(m);
	}
	witness_end(rk);
	for (int i = 0; i < 3; i++)
		eq(of[i], 10, "partition %d has a third of the texts", i);
}

int main(void)
{
	seed = pl_hash_seed();
	printf("# seed %" PRIu64 "\n", seed);
	cluster = test_cluster_start();
	test_exact("exact", "?records=256");
	test_exact("plain", "?records=7&compression.codec=none&enable.idempotence=false&acks=1");
	test_exact("zstd", "?compression.codec=zstd");
	test_age();
	test_flow_times();
	test_texts();
	test_partitions_later();
	test_many_later();
	test_later_bounds();
	test_statistics();
	test_no_buffer();
	test_slow_acknowledgements();
	test_slow_close();
	test_down();
	test_timed_out();
	test_queue_full();
	test_text_queue_full();
	test_texts_returned();
	test_bad_time();
	test_ahead();
	test_too_large();
	test_low_limits();
	test_request_errors();
	test_retries();
	test_fatal();
	test_dropped_header();
	test_no_topic();
	test_no_broker();
	test_properties();
	test_spread();
	test_spread_texts();
	test_bounds();
	test_cluster_stop(&cluster);
	return pl_test_done();
}
