/* SPDX-License-Identifier: BSD-2-Clause */
/* Block records out of a topic of librdkafka's own cluster. Messages before which others of their sender may be
 * missing are torn. */
#include "marks/topic.h"

#include "base/test.h"
#include "kafka/message.h"
#include "kafka/test_kafka.h"

static struct test_cluster cluster;

/* Messages in the order of the topic, and whether they are torn. */
static const struct message {
	uint32_t point;
	uint64_t sequence, dropped;
	bool torn;
	const char *what;
} messages[] = {
	{ 1, 5, 0, true, "the first one: nobody knows what was before" },
	{ 1, 6, 0, false, "the next one" },
	{ 1, 6, 0, true, "one that comes again: that of a sender which began anew may look so" },
	{ 1, 7, 0, false, "the next one behind it" },
	{ 1, 9, 0, true, "one before which a message is missing" },
	{ 1, 10, 0, false, "the next one" },
	{ 1, 11, 3, true, "one before which its sender dropped records" },
	{ 1, 12, 3, false, "the next one" },
	{ 2, 0, 0, true, "the first one of another point" },
	{ 1, 13, 3, false, "the next one of the first point" },
	{ 2, 1, 0, false, "and of the other" },
	{ 1, 0, 0, true, "a sender that began anew" },
	{ 1, 1, 0, false, "the next one" },
};
#define N (sizeof(messages) / sizeof(messages[0]))

static void put_message(rd_kafka_t *rk, const struct message *of)
{
	const struct pl_mark128 record = { .point = of->point };
	const struct pl_kafka_message message = { .kind = PL_FLAT_MARK128,
		.n = 1,
		.exporter = 7,
		.sequence = of->sequence,
		.dropped = of->dropped };
	struct pl_kafka_header made[PL_KAFKA_HEADERS];
	rd_kafka_headers_t *headers = rd_kafka_headers_new(PL_KAFKA_HEADERS);

	pl_kafka_headers_make(&message, made);
	for (unsigned int i = 0; i < PL_KAFKA_HEADERS; i++)
		rd_kafka_header_add(headers, made[i].name, -1, made[i].value, (ssize_t)made[i].len);
	eq(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("blocks"), RD_KAFKA_V_PARTITION(0),
		   RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
		   RD_KAFKA_V_VALUE((void *)(uintptr_t)&record, sizeof(record)),
		   RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END),
		RD_KAFKA_RESP_ERR_NO_ERROR, "message %llu of point %u",
		(unsigned long long)of->sequence, of->point);
}

static void send_all(void)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char text[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster.mock),
		text, sizeof(text));
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	for (size_t i = 0; i < N; i++)
		put_message(rk, &messages[i]);
	eq(rd_kafka_flush(rk, 60000), RD_KAFKA_RESP_ERR_NO_ERROR, "all are in the topic");
	rd_kafka_destroy(rk);
}

static void take(void *arg, const struct pl_mark128 *records, uint32_t n, bool torn)
{
	size_t *got = arg;

	if (*got < N) {
		eq(n, 1);
		eq(records[0].point, messages[*got].point, "point of message %zu", *got);
		eq(torn, messages[*got].torn, "%s", messages[*got].what);
	}
	(*got)++;
}

int main(void)
{
	static struct pl_marks_topic topic;
	struct pl_diag diag = { .text = "" };
	char uri[256];
	size_t got = 0, torn = 0;

	cluster = test_cluster_start();
	rd_kafka_mock_topic_create(cluster.mock, "blocks", 1, 1);
	send_all();
	snprintf(uri, sizeof(uri), "kafka://%s/blocks?auto.offset.reset=earliest",
		rd_kafka_mock_cluster_bootstraps(cluster.mock));
	ok(pl_marks_topic_open(&topic, uri, &diag) == 0, "opens: %s", diag.text);
	(void)eventually(got >= N, (void)pl_marks_topic_turn(&topic, take, &got));
	eq(got, N, "each message came once");
	for (size_t i = 0; i < N; i++)
		torn += messages[i].torn;
	eq(topic.stats.torn, torn);
	eq(topic.stats.messages, topic.stats.good + topic.stats.bad);
	pl_marks_topic_close(&topic);
	test_cluster_stop(&cluster);
	return pl_test_done();
}
