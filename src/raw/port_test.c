/* SPDX-License-Identifier: BSD-2-Clause */
/* The port of a topic of packets, with librdkafka's own test cluster; entries come from the
 * producer. */
#include "raw/port.h"

#include <errno.h>

#include "base/test.h"
#include "kafka/producer.h"
#include "kafka/test_kafka.h"
#include "netio/port.h"
#include "raw/message.h"

#define PARTITIONS 3
#define SOURCES    20

static struct test_cluster cluster;
static struct pl_diag diag;

static struct pl_packet packet(uint32_t i)
{
	static uint8_t body[512];
	struct pl_packet p = { .data = body,
		.len = i % 300,
		.wire_len = i % 300,
		.ts_ns = 1700000000000000000 + i,
		.link = PL_LINK_UDP,
		.sport = (uint16_t)i,
		.dport = 32766,
		.clock = PL_STAMP_NONE };

	p.src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, (uint8_t)(i % SOURCES) });
	return p;
}

/* Produces n packets numbered from `from` on. */
static void produce(const char *topic, uint32_t from, uint32_t n)
{
	static struct pl_kafka_uri uri;
	const struct pl_kafka_producer_config config = {
		.uri = &uri, .mode = PL_KAFKA_ENTRIES, .format = PL_RAW_FORMAT, .wait_ms = 10000
	};
	struct pl_kafka_producer_stats stats;
	struct pl_kafka_producer *p = NULL;

	test_uri(&uri, &cluster, topic, 0, "?records=50");
	if (pl_kafka_producer_open(&p, &config, &diag) < 0) {
		printf("Bail out! %s\n", diag.text);
		exit(1);
	}
	for (uint32_t i = from; i < from + n; i++) {
		const struct pl_packet pkt = packet(i);
		struct pl_raw_head head;
		const struct pl_kafka_entry entry = { .head = &head,
			.head_len = sizeof(head),
			.body = pkt.data,
			.body_len = pkt.len,
			.size = pl_raw_entry_size(pkt.len),
			.ts_ns = pkt.ts_ns };

		pl_raw_head_make(&head, &pkt);
		(void)eventually(pl_kafka_producer_room_for(p, pl_raw_hash(&pkt), entry.size),
			pl_kafka_producer_turn(p, pl_clock_mono_ns()));
		(void)pl_kafka_producer_put_entry(p, pl_raw_hash(&pkt), &entry);
	}
	pl_kafka_producer_close(p, 60000, &stats);
	eq(stats.delivered, n, "all are in the topic");
}

static struct pl_port *open_for(
	const char *topic, const char *keys, const struct pl_port_reader *reader)
{
	const struct pl_port_options options = { .to_end = strstr(keys, "group.id") == NULL,
		.reader = reader };
	struct pl_port *port = NULL;
	char text[512];

	snprintf(text, sizeof(text), "kafka://%s/%s%s",
		rd_kafka_mock_cluster_bootstraps(cluster.mock), topic, keys);
	eq(pl_port_open(&port, text, PL_PORT_RECV, &options, &diag), 0, "opens: %s", diag.text);
	return port;
}

static struct pl_port *open_port(const char *topic, const char *keys)
{
	return open_for(topic, keys, NULL);
}

static uint32_t next_of[SOURCES], seen, wrong;
static struct pl_batch batch;

/* Reads until `want` packets were seen, or an error; returns the last result. */
static int read_on(struct pl_port *port, uint32_t want)
{
	int r = 0;

	while (seen < want && (r = pl_port_recv(port, &batch, 1000, &diag)) >= 0) {
		for (uint32_t i = 0; i < batch.n; i++, seen++) {
			const struct pl_packet *p = &batch.pkts[i];
			const uint32_t number = (uint32_t)(p->ts_ns - 1700000000000000000);
			const struct pl_packet should = packet(number);
			uint32_t *next = &next_of[number % SOURCES];

			/* Packets of each source must be in order. */
			wrong += number < *next || p->len != should.len ||
				 p->sport != should.sport || p->dport != 32766 ||
				 !pl_addr_equal(&p->src, &should.src);
			*next = number + 1;
		}
		if (r > 0)
			pl_port_release(port, &batch);
	}
	return r;
}

static void begin(void)
{
	memset(next_of, 0, sizeof(next_of));
	seen = wrong = 0;
}

static void to_the_end(void)
{
	struct pl_port_stats stats;
	struct pl_port *port;

	rd_kafka_mock_topic_create(cluster.mock, "whole", PARTITIONS, 1);
	produce("whole", 0, 5000);
	port = open_port("whole", "");
	begin();
	eq(read_on(port, UINT32_MAX), -ENODATA, "the end is told");
	eq(seen, 5000, "with all packets before");
	eq(wrong, 0, "as they were, those of a source in their order");
	pl_port_stats(port, &stats);
	eq(stats.packets, 5000, "counted");
	eq(stats.bad_messages, 0, "no message is bad");
	pl_port_close(port);
}

/* Produces a message of the given bytes, with the header f, or without it. */
static void produce_bytes(const char *topic, const char *format, const void *value, size_t len)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
	char text[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster.mock),
		text, sizeof(text));
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (format != NULL)
		rd_kafka_header_add(headers, "f", -1, format, -1);
	eq(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
		   RD_KAFKA_V_VALUE((void *)(uintptr_t)value, len), RD_KAFKA_V_HEADERS(headers),
		   RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
		RD_KAFKA_RESP_ERR_NO_ERROR, "a message");
	rd_kafka_flush(rk, 60000);
	rd_kafka_destroy(rk);
}

static void others(void)
{
	const struct pl_packet one = packet(0);
	uint8_t entries[64 + 30] = { 0 };
	struct pl_raw_head head;
	struct pl_port_stats stats;
	struct pl_port *port;

	pl_raw_head_make(&head, &one);
	memcpy(entries, &head, sizeof(head));
	rd_kafka_mock_topic_create(cluster.mock, "mixed", 1, 1);
	produce_bytes("mixed", NULL, "text", 4);
	produce_bytes("mixed", "pkt64/1", entries, 64);
	produce_bytes("mixed", PL_RAW_FORMAT, entries, sizeof(entries)); /* one entry and a half */
	produce_bytes("mixed", PL_RAW_FORMAT, entries, 0);
	produce("mixed", SOURCES, 10);
	port = open_port("mixed", "?until=end");
	begin();
	eq(read_on(port, UINT32_MAX), -ENODATA, "read to the end");
	eq(seen, 11, "packets of ours, and one before the damage");
	eq(wrong, 0, "as they were");
	pl_port_stats(port, &stats);
	eq(stats.bad_messages, 3, "no format, another one, and the damaged one");
	pl_port_close(port);
}

static void group(void)
{
	struct pl_port *port;

	rd_kafka_mock_topic_create(cluster.mock, "shared", 1, 1);
	produce("shared", 0, 1000);
	port = open_port("shared", "?group.id=decoders&session.timeout.ms=6000");
	begin();
	(void)read_on(port, 1000);
	eq(seen, 1000, "a member reads what was there before it");
	pl_port_close(port);
	produce("shared", 1000, 500);
	port = open_port("shared", "?group.id=decoders&session.timeout.ms=6000");
	(void)read_on(port, 1500);
	eq(seen, 1500, "the next one goes on where the first one left off");
	eq(wrong, 0, "without one twice");
	eq(next_of[0], 1481, "to the last");
	pl_port_close(port);
}

/* A reader whose records are settled when the test sets it. */
static bool is_settled;
static unsigned int marks;

static void take_mark(void *arg)
{
	(void)arg;
	marks++;
}

static bool tell_settled(void *arg, uint32_t wait_ms)
{
	(void)arg;
	(void)wait_ms;
	return is_settled;
}

static const struct pl_port_reader reader = { .mark = take_mark, .settled = tell_settled };

static void unsettled(void)
{
	static const char keys[] = "?group.id=careful&session.timeout.ms=6000";
	struct pl_port *port;

	rd_kafka_mock_topic_create(cluster.mock, "unsettled", 1, 1);
	produce("unsettled", 0, 1000);
	port = open_for("unsettled", keys, &reader);
	begin();
	(void)read_on(port, 1000);
	(void)eventually(marks > 0, (void)pl_port_recv(port, &batch, 100, &diag));
	eq(marks, 1, "what was released has a mark, and no other comes before it is settled");
	pl_port_close(port);
	port = open_for("unsettled", keys, &reader);
	begin();
	(void)read_on(port, 1000);
	eq(seen, 1000, "what was not settled comes again");
	is_settled = true;
	(void)eventually(marks > 1, (void)pl_port_recv(port, &batch, 100, &diag));
	(void)pl_port_recv(port, &batch, 100, &diag);
	is_settled = false;
	produce("unsettled", 1000, 500);
	(void)read_on(port, 1500);
	eq(seen, 1500, "more comes");
	pl_port_close(port);
	produce("unsettled", 1500, 20);
	port = open_for("unsettled", keys, &reader);
	begin();
	(void)read_on(port, 520);
	eq(seen, 520, "what came behind the settled mark comes again, and no more");
	pl_port_close(port);
}

static void refused(void)
{
	const struct pl_port_options options = { .to_end = true };
	struct pl_port *port = NULL;
	char text[512];

	eq(pl_port_uri_sockets("kafka://h/t?until=never", &diag), -EINVAL, "a word that is none");
	ok(strstr(diag.text, "until=end") != NULL, "says which there are: %s", diag.text);
	eq(pl_port_uri_sockets("kafka://h/t?format=json", &diag), -EINVAL, "another format");
	eq(pl_port_uri_sockets("kafka://h", &diag), -EINVAL, "no topic");
	eq(pl_port_uri_sockets("kafka://h/t?fetch.min.bytes=1", &diag), 1, "a property");
	eq(pl_port_uri_can("kafka://h/t"), PL_PORT_CAN_REPLAY, "its packets were kept");
	eq(pl_port_open(&port, "kafka://h/t", PL_PORT_SEND, NULL, &diag), -EINVAL, "no sending");
	snprintf(text, sizeof(text), "kafka://%s/t?fetch.min.bytes=-5",
		rd_kafka_mock_cluster_bootstraps(cluster.mock));
	eq(pl_port_open(&port, text, PL_PORT_RECV, &options, &diag), 0, "opens later");
	eq(pl_port_recv(port, &batch, 0, &diag), -EINVAL, "a property that is refused: %s",
		diag.text);
	pl_port_close(port);
}

int main(void)
{
	pl_raw_port_add();
	pl_raw_port_add();
	cluster = test_cluster_start();
	to_the_end();
	others();
	group();
	unsettled();
	refused();
	test_cluster_stop(&cluster);
	return pl_test_done();
}
