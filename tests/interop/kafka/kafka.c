/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our producer and consumer against a server, for kafka.py:
 *
 *   interop_kafka create URI PARTITIONS [NAME=VALUE]   a topic, or more partitions of it
 *   interop_kafka produce URI N CLOSE_MS               N records; if N is 0 as many as come until a
 *                                                      line is read, 1000 every 50 ms, and 1000
 *                                                      after it
 *   interop_kafka consume URI N                        until N records were read, or 60 s
 *   interop_kafka members URI GROUP                    how many the group has
 *   interop_kafka dump URI PARTITIONS                  what is in them: of each message a line with
 *                                                      partition, offset, bytes of the value and
 *                                                      headers as NAME=HEX, then the value
 *   interop_kafka delete URI PARTITION OFFSET          the messages before the offset, as retention
 *                                                      does
 *   interop_kafka raw URI PARTITION FILE               its messages, each behind its u32 length, as
 *                                                      values of pkt64
 *
 * Record i has the time BASE + i, and i in each of its other seven words. At the end one JSON
 * object tells the numbers.
 */
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "kafka/consumer.h"
#include "kafka/producer.h"

#define BASE 1700000000000000000ull

static struct pl_kafka_uri uri;
static struct pl_diag diag;

static int fail(int r)
{
	fprintf(stderr, "%s: %s\n", strerror(-r), diag.text);
	return 1;
}

static void tell(const struct pl_stats *list, const void *stats, uint64_t partitions)
{
	struct pl_json json;
	struct pl_buf out;

	pl_buf_init(&out);
	pl_json_init(&json, &out);
	pl_json_object(&json);
	for (unsigned int i = 0; i < list->n; i++)
		pl_json_number(&json, list->rows[i].name, pl_stat_read(&list->rows[i], stats));
	pl_json_number(&json, "partitions", partitions);
	pl_json_object_end(&json);
	printf("%.*s\n", (int)out.len, out.data);
	pl_buf_done(&out);
}

/* ---- topics ---- */

static rd_kafka_resp_err_t topic_error(rd_kafka_event_t *event, bool made)
{
	const rd_kafka_topic_result_t **results;
	size_t n;

	if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return rd_kafka_event_error(event);
	results = made ? rd_kafka_CreateTopics_result_topics(
				 rd_kafka_event_CreateTopics_result(event), &n)
		       : rd_kafka_CreatePartitions_result_topics(
				 rd_kafka_event_CreatePartitions_result(event), &n);
	return rd_kafka_topic_result_error(results[0]);
}

static rd_kafka_resp_err_t make(rd_kafka_t *rk, int partitions, char *setting, bool made)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__TIMED_OUT;
	rd_kafka_event_t *event;
	char text[256];

	if (made) {
		rd_kafka_NewTopic_t *topic =
			rd_kafka_NewTopic_new(uri.topic, partitions, -1, text, sizeof(text));

		if (setting != NULL) {
			char *value = strchr(setting, '=');

			*value++ = '\0';
			rd_kafka_NewTopic_set_config(topic, setting, value);
		}
		rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
		rd_kafka_NewTopic_destroy(topic);
	} else {
		rd_kafka_NewPartitions_t *more = rd_kafka_NewPartitions_new(
			uri.topic, (size_t)partitions, text, sizeof(text));

		rd_kafka_CreatePartitions(rk, &more, 1, NULL, queue);
		rd_kafka_NewPartitions_destroy(more);
	}
	event = rd_kafka_queue_poll(queue, 60000);
	if (event != NULL) {
		err = topic_error(event, made);
		rd_kafka_event_destroy(event);
	}
	rd_kafka_queue_destroy(queue);
	return err;
}

static int create(int partitions, char *setting)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_resp_err_t err;
	char text[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers", uri.brokers, text, sizeof(text));
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	err = make(rk, partitions, setting, true);
	if (err == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
		err = make(rk, partitions, setting, false);
	rd_kafka_destroy(rk);
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		return 0;
	fprintf(stderr, "topic %s: %s\n", uri.topic, rd_kafka_err2str(err));
	return 1;
}

/* Deletes the messages of a partition before the offset. */
static int delete_before(int partition, int64_t offset)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__TIMED_OUT;
	rd_kafka_DeleteRecords_t *records;
	rd_kafka_queue_t *queue;
	rd_kafka_event_t *event;
	char text[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers", uri.brokers, text, sizeof(text));
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	rd_kafka_topic_partition_list_add(list, uri.topic, partition)->offset = offset;
	records = rd_kafka_DeleteRecords_new(list);
	rd_kafka_topic_partition_list_destroy(list);
	queue = rd_kafka_queue_new(rk);
	rd_kafka_DeleteRecords(rk, &records, 1, NULL, queue);
	rd_kafka_DeleteRecords_destroy(records);
	event = rd_kafka_queue_poll(queue, 60000);
	if (event != NULL) {
		err = rd_kafka_event_error(event);
		rd_kafka_event_destroy(event);
	}
	rd_kafka_queue_destroy(queue);
	rd_kafka_destroy(rk);
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		return 0;
	fprintf(stderr, "topic %s: %s\n", uri.topic, rd_kafka_err2str(err));
	return 1;
}

/* ---- records ---- */

static struct pl_pkt64 record(uint64_t i)
{
	uint64_t words[8] = { BASE + i, i, i, i, i, i, i, i };
	struct pl_pkt64 r;

	memcpy(&r, words, sizeof(r));
	return r;
}

static bool line_is_there(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, 0) > 0;
}

/* Certificates that were taken up, and that were not, when there are more. */
static void tell_renewals(const struct pl_kafka_producer *p)
{
	static uint64_t told;
	struct pl_kafka_producer_stats s;

	pl_kafka_producer_stats(p, &s);
	if (s.renewals + s.renewals_failed == told)
		return;
	told = s.renewals + s.renewals_failed;
	printf("renewals %" PRIu64 " failed %" PRIu64 " dropped %" PRIu64 "\n", s.renewals,
		s.renewals_failed, pl_kafka_producer_dropped(&s));
	fflush(stdout);
}

static void put_all(struct pl_kafka_producer *p, uint64_t n)
{
	bool more = true;

	for (uint64_t i = 0; n > 0 ? i < n : more;) {
		more = !line_is_there();
		for (int k = 0; k < 1000 && (n == 0 || i < n); k++) {
			const struct pl_pkt64 r = record(i);

			/* A given number is to arrive, so it waits for room. */
			if (n > 0 && !pl_kafka_producer_room(p, pl_hash_mix(i, 1)))
				break;
			pl_kafka_producer_put(p, pl_hash_mix(i, 1), &r);
			i++;
		}
		pl_kafka_producer_turn(p, pl_clock_mono_ns());
		tell_renewals(p);
		if (n == 0)
			usleep(50000);
	}
}

static int produce(uint64_t n, uint32_t close_ms)
{
	const struct pl_kafka_producer_config config = {
		.uri = &uri, .exporter = 1, .wait_ms = 5000
	};
	struct pl_kafka_producer_stats stats;
	struct pl_kafka_producer *p;
	uint64_t partitions;
	int r = pl_kafka_producer_open(&p, &config, &diag);

	if (r < 0)
		return fail(r);
	printf("ready\n");
	fflush(stdout);
	put_all(p, n);
	partitions = pl_kafka_producer_client(p)->partitions;
	pl_kafka_producer_close(p, close_ms, &stats);
	tell(&pl_kafka_producer_list, &stats, partitions);
	return 0;
}

static int consume(uint64_t n)
{
	const struct pl_kafka_consumer_config config = { .uri = &uri, .wait_ms = 5000 };
	const uint64_t until = pl_clock_mono_ns() + 60ull * 1000000000;
	struct pl_kafka_consumer *c;
	struct pl_kafka_block b;
	uint64_t got = 0;
	int r = pl_kafka_consumer_open(&c, &config, &diag);

	if (r < 0)
		return fail(r);
	while (got < n && pl_clock_mono_ns() < until) {
		if (pl_kafka_consumer_recv(c, &b, 100) == 0 || b.records == NULL)
			continue;
		for (uint32_t i = 0; i < b.message.n; i++) {
			const struct pl_pkt64 *at = (const struct pl_pkt64 *)b.records + i;
			const struct pl_pkt64 want = record(at->ts_ns - BASE);

			got += memcmp(at, &want, sizeof(want)) == 0;
		}
		pl_kafka_consumer_commit(
			c, &(struct pl_kafka_position){ b.partition, b.offset + 1 }, 1, 0, NULL);
	}
	tell(&pl_kafka_consumer_list, pl_kafka_consumer_stats(c), got);
	pl_kafka_consumer_close(c);
	return 0;
}

static int members(const char *group)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	const struct rd_kafka_group_list *list;
	rd_kafka_resp_err_t err;
	char text[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers", uri.brokers, text, sizeof(text));
	rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
	err = rd_kafka_list_groups(rk, group, &list, 30000);
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		printf("%d\n", list->group_cnt > 0 ? list->groups[0].member_cnt : 0);
		rd_kafka_group_list_destroy(list);
	}
	rd_kafka_destroy(rk);
	return err == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : 1;
}

/* ---- any bytes ---- */

static int send_file(rd_kafka_t *rk, int32_t partition, FILE *f)
{
	static uint8_t value[1 << 20];
	uint32_t len;

	while (fread(&len, sizeof(len), 1, f) == 1) {
		if (len > sizeof(value) || fread(value, 1, len, f) != len)
			return 1;
		if (rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(uri.topic),
			    RD_KAFKA_V_PARTITION(partition),
			    RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(value, len),
			    RD_KAFKA_V_HEADER("f", "pkt64/1", 7),
			    RD_KAFKA_V_END) != RD_KAFKA_RESP_ERR_NO_ERROR)
			return 1;
	}
	return rd_kafka_flush(rk, 30000) == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : 1;
}

static int raw(int32_t partition, const char *path)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	FILE *f = fopen(path, "re");
	char text[256];
	rd_kafka_t *rk;
	int r;

	if (f == NULL)
		return 1;
	rd_kafka_conf_set(conf, "bootstrap.servers", uri.brokers, text, sizeof(text));
	rd_kafka_conf_set(conf, "linger.ms", "0", text, sizeof(text));
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	r = send_file(rk, partition, f);
	fclose(f);
	rd_kafka_destroy(rk);
	return r;
}

static void dump_message(const rd_kafka_message_t *m)
{
	rd_kafka_headers_t *headers;
	const char *name;
	const void *value;
	size_t len;

	printf("%d %lld %zu", m->partition, (long long)m->offset, m->len);
	for (size_t i = 0; rd_kafka_message_headers(m, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
			   rd_kafka_header_get_all(headers, i, &name, &value, &len) ==
				   RD_KAFKA_RESP_ERR_NO_ERROR;
		i++) {
		printf(" %s=", name);
		for (size_t at = 0; at < len; at++)
			printf("%02x", ((const uint8_t *)value)[at]);
	}
	putchar('\n');
	fwrite(m->payload, 1, m->len, stdout);
}

/* The witness: librdkafka without code of ours. */
static int dump(int partitions)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char text[256];
	rd_kafka_t *rk;
	int left = partitions;

	rd_kafka_conf_set(conf, "bootstrap.servers", uri.brokers, text, sizeof(text));
	rd_kafka_conf_set(conf, "group.id", "dump", text, sizeof(text));
	rd_kafka_conf_set(conf, "enable.auto.commit", "false", text, sizeof(text));
	rd_kafka_conf_set(conf, "enable.partition.eof", "true", text, sizeof(text));
	rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
	for (int i = 0; i < partitions; i++)
		rd_kafka_topic_partition_list_add(list, uri.topic, i)->offset =
			RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_assign(rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	while (left > 0) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 60000);

		if (m == NULL)
			break;
		if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
			dump_message(m);
		left -= m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
		rd_kafka_message_destroy(m);
	}
	rd_kafka_destroy(rk);
	return left == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	int r;

	if (argc < 4)
		return 2;
	r = pl_kafka_uri_parse(&uri, argv[2], &diag);
	if (r < 0)
		return fail(r);
	if (strcmp(what, "create") == 0)
		return create(atoi(argv[3]), argc > 4 ? argv[4] : NULL);
	if (strcmp(what, "delete") == 0 && argc > 4)
		return delete_before(atoi(argv[3]), atoll(argv[4]));
	if (strcmp(what, "raw") == 0 && argc > 4)
		return raw(atoi(argv[3]), argv[4]);
	if (strcmp(what, "produce") == 0 && argc > 4)
		return produce(strtoull(argv[3], NULL, 10), (uint32_t)atoi(argv[4]));
	if (strcmp(what, "dump") == 0)
		return dump(atoi(argv[3]));
	if (strcmp(what, "members") == 0)
		return members(argv[3]);
	return strcmp(what, "consume") == 0 ? consume(strtoull(argv[3], NULL, 10)) : 2;
}
