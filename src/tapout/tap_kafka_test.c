/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of a tap's records to a topic, with a spool, against librdkafka's own test cluster. The
 * test has the output's clock. */
#include <errno.h>
#include <sys/wait.h>

#include "base/test.h"
#include "base/test_folder.h"
#include "kafka/producer.h"
#include "kafka/test_kafka.h"
#include "tapout/tap_out.h"
#include "tapout/tap_spool.h"

#define SECOND  UINT64_C(1000000000)
#define PRODUCE 0   /* the request's number in Kafka's protocol */
#define KEPT    100 /* records in the spool of a process that ends */

static struct test_cluster cluster;
static uint64_t now = 1000 * SECOND;

static const struct pl_kafka_producer_stats *sent(const struct pl_tap_out *out)
{
	return out->driver->numbers[0].counters(out);
}

static const struct pl_kafka_client *client(const struct pl_tap_out *out)
{
	return out->driver->numbers[1].counters(out);
}

static const struct pl_tap_spool_stats *spooled(const struct pl_tap_out *out)
{
	return out->driver->numbers[2].counters(out);
}

static void turn(struct pl_tap_out *out)
{
	(void)out->driver->turn(out, now);
}

/* Packets; flows that have packets in both directions when `flows` is set. */
static bool flows;

static void put(struct pl_tap_out *out, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		const struct pl_pkt64 small = test_record(i);
		struct pl_pkt96 record = { 0 };
		const struct pl_flow288 flow = { .first_ts = small.ts_ns,
			.last_ts = small.ts_ns,
			.sport = (uint16_t)i,
			.pkts_fwd = 1,
			.pkts_rev = 2 };

		memcpy(&record, &small, sizeof(small));
		out->driver->put(out, flows ? (const void *)&flow : &record, 1);
	}
}

static void uri_of(char *dst, size_t cap, const char *topic, const char *keys)
{
	snprintf(dst, cap, "kafka://%s/%s?spool=%s/%s&records=16%s",
		rd_kafka_mock_cluster_bootstraps(cluster.mock), topic, pl_test_folder, topic, keys);
}

/* Opens the output; the topic is made with that many partitions unless they are 0. */
static int try_out(struct pl_tap_out **ret, const char *topic, int partitions, const char *keys,
	struct pl_diag *diag)
{
	const struct pl_tap_out_settings settings = { .kind = flows ? PL_FLAT_FLOW288
								    : PL_FLAT_PKT96 };
	char uri[1024];

	if (partitions > 0)
		rd_kafka_mock_topic_create(cluster.mock, topic, partitions, 1);
	uri_of(uri, sizeof(uri), topic, keys);
	return pl_tap_out_open(ret, uri, &settings, diag);
}

static struct pl_tap_out *open_out(const char *topic, int partitions, const char *keys)
{
	struct pl_diag diag = { .text = "" };
	struct pl_tap_out *out = NULL;

	if (!ok(try_out(&out, topic, partitions, keys, &diag) == 0, "opens: %s", diag.text))
		exit(1);
	return out;
}

static void check_account(const struct pl_tap_out *out, uint64_t put, const char *when)
{
	const struct pl_tap_spool_stats *s = spooled(out);
	const struct pl_kafka_producer_stats *k = sent(out);

	eq(s->found + s->spooled, s->unspooled + s->held + s->dropped + s->damaged,
		"%s: the spool's account closes", when);
	eq(k->put, k->delivered + k->waiting + k->returned + pl_kafka_producer_dropped(k),
		"%s: the producer's account closes", when);
	eq(k->put - s->unspooled + s->spooled - k->returned, put, "%s: of every record", when);
}

/* Turns, with time that passes, until all that was put or found is delivered. */
static void deliver(struct pl_tap_out *out)
{
	(void)eventually(
		spooled(out)->held == 0 && sent(out)->waiting == 0, now += SECOND / 10, turn(out));
	eq(spooled(out)->held + sent(out)->waiting, 0, "nothing waits");
	eq(out->driver->lost(out), 0, "nothing was lost");
}

static void end(struct pl_tap_out *out)
{
	out->driver->finish(out);
	pl_tap_out_close(out);
}

/* Text of the output's fault; empty: it has none. */
static const char *fault(const struct pl_tap_out *out)
{
	static struct pl_conditions list;

	pl_conditions_clear(&list);
	out->driver->conditions(out, "t", &list);
	if (list.n == 0)
		return "";
	streq(list.items[0].name, "output_failing");
	return list.items[0].text;
}

/* A topic that is not there is told of, though brokers are up. */
static void test_missing(void)
{
	struct pl_tap_out *out;

	rd_kafka_mock_topic_set_error(
		cluster.mock, "missing", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	out = open_out("missing", 0, "&topic.metadata.refresh.interval.ms=200");
	put(out, 0, 100);
	(void)eventually(client(out)->brokers_up > 0, turn(out));
	ok(client(out)->brokers_up > 0, "a broker is up");
	streq(fault(out), "", "it may still tell of the topic");
	now += 6 * SECOND;
	turn(out);
	ok(strstr(fault(out), "no broker told of the topic") != NULL, "then it is told: %s",
		fault(out));
	rd_kafka_mock_topic_set_error(cluster.mock, "missing", RD_KAFKA_RESP_ERR_NO_ERROR);
	deliver(out);
	streq(fault(out), "", "and is over when there is a topic");
	end(out);
}

/* A topic that is removed: records on disk are not read and written again without end. */
static void test_removed(void)
{
	struct pl_tap_out *out = open_out("removed", 1, "&topic.metadata.refresh.interval.ms=200");
	uint64_t before, put_so_far = 0;

	put(out, 0, 16);
	put_so_far = 16;
	(void)eventually(sent(out)->delivered == 16, now += SECOND / 10, turn(out));
	eq(sent(out)->delivered, 16, "there is a topic");
	rd_kafka_mock_topic_set_error(
		cluster.mock, "removed", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	(void)eventually(sent(out)->returned > 0, put(out, put_so_far, put_so_far + 16),
		put_so_far += 16, turn(out));
	ok(sent(out)->returned > 0, "it is gone: records come back");
	put(out, put_so_far, put_so_far + 5000);
	put_so_far += 5000;
	turn(out);
	before = spooled(out)->spooled;
	for (int i = 0; i < 100; i++)
		turn(out);
	eq(spooled(out)->spooled, before, "none is read and written again in the same second");
	now += 2 * SECOND;
	turn(out);
	ok(spooled(out)->spooled - before >= 16, "then it is tried again");
	ok(spooled(out)->spooled - before <= 32, "with the first ones: %llu",
		(unsigned long long)(spooled(out)->spooled - before));
	ok(client(out)->brokers_up > 0, "all the time a broker is up");
	ok(test_names_removed(fault(out)), "it is told of: %s", fault(out));
	check_account(out, put_so_far, "without the topic");
	rd_kafka_mock_topic_set_error(cluster.mock, "removed", RD_KAFKA_RESP_ERR_NO_ERROR);
	deliver(out);
	eq(sent(out)->delivered, put_so_far, "when it is back all are delivered");
	check_account(out, put_so_far, "with the topic again");
	streq(fault(out), "", "nothing is wrong any more");
	end(out);
}

/* Records that come back have their place in a spool that is full: they are on disk already. */
static void test_full(void)
{
	static rd_kafka_resp_err_t refusals[3] = { RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
		RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
		RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED };
	struct pl_tap_out *out;
	uint64_t n = 0;

	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	out = open_out("full", 1, "&spool_bytes=2MiB");
	for (; spooled(out)->dropped == 0 && n < 100000; n++)
		put(out, n, n + 1);
	eq(spooled(out)->dropped, 1, "the spool is full");
	rd_kafka_mock_push_request_errors_array(cluster.mock, PRODUCE, 3, refusals);
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	(void)eventually(sent(out)->returned > 0, now += SECOND / 10, turn(out));
	ok(sent(out)->returned >= 16, "records of the spool come back");
	eq(spooled(out)->dropped, 1, "and are kept");
	(void)eventually(
		spooled(out)->held == 0 && sent(out)->waiting == 0, now += SECOND / 10, turn(out));
	eq(sent(out)->delivered, n - 1, "in the end all that were on disk are delivered");
	eq(spooled(out)->dropped, 1, "none was lost on the way");
	check_account(out, n, "a full spool");
	end(out);
}

/* Messages of other formats are made of records again, whether these were on disk from the start or
 * came back: all of them arrive, each once. of_record: messages of a record. */
static void test_format(const char *topic, const char *keys, uint64_t of_record)
{
	static const rd_kafka_resp_err_t refusals[3] = {
		RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
		RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
		RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED
	};
	struct pl_tap_out *out;
	uint64_t returned;

	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	out = open_out(topic, 1, keys);
	put(out, 0, 100);
	end(out);
	rd_kafka_mock_push_request_errors_array(cluster.mock, PRODUCE, 3, refusals);
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	out = open_out(topic, 0, keys);
	eq(spooled(out)->found, 100, "%s: records on disk", topic);
	(void)eventually(sent(out)->returned > 0, now += SECOND / 10, turn(out));
	ok(sent(out)->returned > 0, "some come back");
	deliver(out);
	eq(sent(out)->delivered, 100 * of_record, "all of them are delivered");
	rd_kafka_mock_push_request_errors_array(cluster.mock, PRODUCE, 3, refusals);
	returned = sent(out)->returned;
	put(out, 100, 200);
	(void)eventually(sent(out)->returned > returned, now += SECOND / 10, turn(out));
	ok(sent(out)->returned > returned, "some come back that were never on disk");
	deliver(out);
	eq(sent(out)->delivered, 200 * of_record, "and are delivered, too");
	eq(spooled(out)->found + spooled(out)->spooled, spooled(out)->unspooled,
		"the spool's account closes");
	end(out);
}

/* Records of one kind are not dropped by an output of another kind: it does not open. */
static void test_kind(void)
{
	struct pl_diag diag = { .text = "" };
	struct pl_tap_out *out;

	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	out = open_out("kinds", 1, "&kind=pkt64");
	put(out, 0, 10);
	eq(spooled(out)->held, 10, "records on disk");
	end(out);
	eq(try_out(&out, "kinds", 0, "&kind=pkt96", &diag), -EINVAL, "another kind is refused");
	ok(strstr(diag.text, "/kinds holds records of pkt64") != NULL &&
			strstr(diag.text, "pkt96") != NULL,
		"both are named, and the folder: %s", diag.text);
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	out = open_out("kinds", 0, "&kind=pkt64");
	eq(spooled(out)->found, 10, "nothing is lost");
	deliver(out);
	end(out);
	out = open_out("kinds", 0, "&kind=pkt96");
	end(out);
}

/* Records go to a topic that is named after them, when the URI names none. */
static void test_unnamed(void)
{
	const struct pl_tap_out_settings settings = { .kind = PL_FLAT_PKT96 };
	struct pl_diag diag = { .text = "" };
	struct pl_tap_out *out = NULL;
	char uri[512];

	rd_kafka_mock_topic_create(cluster.mock, "tm.pkt64.v1", 7, 1);
	snprintf(uri, sizeof(uri), "kafka://%s?spool=%s/unnamed",
		rd_kafka_mock_cluster_bootstraps(cluster.mock), pl_test_folder);
	if (!ok(pl_tap_out_open(&out, uri, &settings, &diag) == 0, "opens: %s", diag.text))
		return;
	put(out, 0, 100);
	deliver(out);
	eq(client(out)->partitions, 7, "the topic of pkt64 in version 1 of its layout");
	eq(sent(out)->delivered, 100, "gets the records");
	end(out);
}

/* A process that ends in the midst. It is there before the cluster, and with it the threads: a copy
 * of a process with threads may have locks that nobody gives back. */
static struct {
	pid_t pid;
	int uri; /* where it is told, in 512 bytes, what to send from */
} victim;

/* Says nothing: the numbers of the results are the parent's. Its exit code: 0 when all records of the
 * spool are on their way, 2 when the output cannot be opened, 3 when the output knows of some that
 * were acknowledged, 4 when some wait. */
static int be_victim(int uri_fd)
{
	const struct pl_tap_out_settings settings = { .kind = PL_FLAT_PKT96 };
	struct pl_tap_out *out;
	char uri[512];

	if (read(uri_fd, uri, sizeof(uri)) != sizeof(uri))
		return 1;
	if (pl_tap_out_open(&out, uri, &settings, NULL) < 0)
		return 2;
	(void)eventually(spooled(out)->held == 0, turn(out));
	return sent(out)->delivered > 0 ? 3 : spooled(out)->unspooled == KEPT ? 0 : 4;
}

static void start_victim(void)
{
	int ends[2];

	if (pipe(ends) < 0)
		abort();
	victim.pid = fork();
	if (victim.pid == 0) {
		close(ends[1]);
		_exit(be_victim(ends[0]));
	}
	close(ends[0]);
	victim.uri = ends[1];
}

/* Records of the spool that are with the client are on disk until the broker has them: a process
 * that is killed loses none. */
static void test_killed(void)
{
	struct pl_tap_out *out;
	char uri[512] = "";
	int status = -1;

	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	out = open_out("killed", 2, "");
	put(out, 0, KEPT);
	eq(spooled(out)->held, KEPT, "without a broker all are on disk");
	end(out);
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	uri_of(uri, sizeof(uri), "killed", "");
	eq(write(victim.uri, uri, sizeof(uri)), sizeof(uri), "a process that is to send them");
	eq(waitpid(victim.pid, &status, 0), victim.pid);
	ok(status == 0, "ends when all are on their way: status 0x%x", (unsigned int)status);
	out = open_out("killed", 0, "");
	eq(spooled(out)->found, KEPT, "the next one finds all of them");
	deliver(out);
	eq(sent(out)->delivered, KEPT, "and delivers them");
	end(out);
	out = open_out("killed", 0, "");
	eq(spooled(out)->found, 0, "then they are gone");
	end(out);
}

/* Acknowledged but for the messages that are not full. Time stands still meanwhile. */
static bool sent_full(struct pl_tap_out *out)
{
	return eventually(
		spooled(out)->held == 0 && sent(out)->waiting < 4 * UINT64_C(16), turn(out));
}

static void put_of_flow(struct pl_tap_out *out, uint64_t i, uint64_t flow_hash)
{
	const struct pl_pkt64 small = test_record(i);
	struct pl_pkt96 record = { 0 };

	memcpy(&record, &small, sizeof(small));
	record.flow_hash = flow_hash;
	out->driver->put(out, &record, 1);
}

static const struct pl_conditions *conditions_after(struct pl_tap_out *out, uint64_t ns)
{
	static struct pl_conditions list;

	now += ns;
	turn(out);
	pl_conditions_clear(&list);
	out->driver->conditions(out, "t", &list);
	return &list;
}

/* Partitions of which one gets most of the records are told of, until they are even. */
static void test_uneven(void)
{
	struct pl_tap_out *out = open_out("uneven", 4, "&kind=pkt96");
	const struct pl_conditions *list;

	turn(out);
	for (uint64_t i = 0; i < 2000; i++)
		put_of_flow(out, i, 5);
	ok(sent_full(out), "records of one flow are delivered");
	list = conditions_after(out, 11 * SECOND);
	if (eq(list->n, 1, "there is one condition")) {
		streq(list->items[0].name, "partitions_uneven");
		ok(strstr(list->items[0].text,
			   "partition 1 gets 4.0 times the mean of 4 partitions") != NULL,
			"it says how uneven: %s", list->items[0].text);
	}
	for (uint64_t i = 0; i < 2000; i++) {
		put_of_flow(out, i, i);
		if (i % 200 == 199)
			ok(sent_full(out), "records of many flows are delivered");
	}
	list = conditions_after(out, 11 * SECOND);
	eq(list->n, 0, "it is over when the partitions are even");
	deliver(out);
	end(out);
}

int main(void)
{
	if (!pl_test_folder_make())
		return 1;
	start_victim();
	cluster = test_cluster_start();
	test_missing();
	test_removed();
	test_full();
	test_format("objects", "&format=json", 1);
	test_format("rows", "&format=protobuf", 1);
	flows = true;
	test_format("flows", "&format=goflow2&sampler=192.0.2.1", 2);
	flows = false;
	test_kind();
	test_unnamed();
	test_killed();
	test_uneven();
	test_cluster_stop(&cluster);
	pl_test_remove(pl_test_folder);
	return pl_test_done();
}
