/* SPDX-License-Identifier: BSD-2-Clause */
/* librdkafka's statistics: every number of an example from another place, and texts that are not
 * what they should be. */
#include "kafka/statistics.h"

#include <errno.h>

#include "base/test.h"

static const char example[] =
	"{\"msg_cnt\":11,\"msg_size\":12,\"txmsgs\":13,\"txmsg_bytes\":14,\"rxmsgs\":15,"
	"\"rxmsg_bytes\":16,\"tx\":99,\"cgrp\":{\"rebalance_cnt\":17},\"brokers\":{"
	"\"a:1/1\":{\"state\":\"UP\",\"txretries\":1,\"req_timeouts\":2,\"outbuf_cnt\":3,"
	"\"waitresp_cnt\":4,\"int_latency\":{\"p99\":500,\"max\":9000},"
	"\"outbuf_latency\":{\"p99\":40},\"rtt\":{\"p99\":7},\"throttle\":{\"max\":3}},"
	"\"b:1/2\":{\"state\":\"UP\",\"txretries\":10,\"req_timeouts\":20,\"outbuf_cnt\":30,"
	"\"waitresp_cnt\":40,\"int_latency\":{\"p99\":400},\"outbuf_latency\":{\"p99\":50},"
	"\"rtt\":{\"p99\":8},\"throttle\":{\"max\":2}},"
	"\"c:1/3\":{\"state\":\"DOWN\",\"outbuf_cnt\":-1}},\"topics\":{"
	"\"other\":{\"batchsize\":{\"avg\":1},\"partitions\":{\"7\":{\"partition\":7,"
	"\"unknown\":false,\"consumer_lag\":1000}}},"
	"\"t\":{\"batchsize\":{\"avg\":65536},\"batchcnt\":{\"avg\":6},\"partitions\":{"
	"\"0\":{\"partition\":0,\"unknown\":false,\"consumer_lag\":-1},"
	"\"1\":{\"partition\":1,\"unknown\":false,\"consumer_lag\":5},"
	"\"2\":{\"partition\":2,\"unknown\":true,\"consumer_lag\":6},"
	"\"-1\":{\"partition\":-1,\"unknown\":false,\"consumer_lag\":7}}}}}";

static void test_example(void)
{
	struct pl_kafka_client c = { .partitions = 1 };

	eq(pl_kafka_client_read(&c, "t", example, strlen(example)), 0);
	eq(c.partitions, 2, "partitions known, without the client's own");
	eq(c.brokers_up, 2);
	eq(c.queue_messages, 11);
	eq(c.queue_bytes, 12);
	eq(c.sent_messages, 13);
	eq(c.sent_bytes, 14);
	eq(c.received_messages, 15);
	eq(c.received_bytes, 16);
	eq(c.rebalances, 17);
	eq(c.retries, 11, "summed over brokers");
	eq(c.timeouts, 22);
	eq(c.requests_waiting, 77, "a number below zero is not one");
	eq(c.internal_us, 500, "of the slowest broker");
	eq(c.outbuf_us, 50);
	eq(c.rtt_us, 8);
	eq(c.throttle_ms, 3);
	eq(c.batch_bytes, 65536, "of our topic");
	eq(c.batch_messages, 6);
	eq(c.lag, 11);
	eq(pl_kafka_client_read(&c, "none", example, strlen(example)), 0);
	eq(c.partitions, 2, "a topic that is not told of keeps its partitions");
	eq(c.lag, 0);
	eq(pl_kafka_client_read(&c, NULL, example, strlen(example)), 0);
	eq(c.partitions, 3, "of all topics");
	eq(c.lag, 1011);
}

static void test_wrong(void)
{
	static const char *const rows[] = { "", "{", "[]", "7", "null", "{\"msg_cnt\":1}x",
		"\xff" };
	static const char *const odd[] = { "{}", "{\"brokers\":[1,2],\"topics\":7}",
		"{\"msg_cnt\":\"many\",\"brokers\":{\"a\":null,\"b\":{\"state\":3,\"rtt\":[]}}}",
		("{\"topics\":{\"t\":{\"partitions\":{\"0\":null,\"1\":{\"partition\":\"x\"},"
		 "\"2\":{\"partition\":2}}}}}") };
	struct pl_kafka_client c, before;

	memset(&c, 0x55, sizeof(c));
	before = c;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		eq(pl_kafka_client_read(&c, "t", rows[i], strlen(rows[i])), -EINVAL, "'%s'",
			rows[i]);
		memeq(&c, &before, sizeof(c), "leaves all as it was");
	}
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		c.partitions = 4;
		eq(pl_kafka_client_read(&c, "t", odd[i], strlen(odd[i])), 0, "'%s'", odd[i]);
		eq(c.partitions, 4, "keeps the partitions");
		eq(c.queue_messages + c.brokers_up + c.rtt_us, 0, "and has nothing to say");
	}
	for (size_t len = 0; len < strlen(example); len++) {
		if (pl_kafka_client_read(&c, "t", example, len) != -EINVAL)
			ok(false, "cut after %zu bytes", len);
	}
	ok(true, "no beginning of the example is taken for it");
}

int main(void)
{
	test_example();
	test_wrong();
	return pl_test_done();
}
