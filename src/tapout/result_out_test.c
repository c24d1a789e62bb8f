/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows into files and topics: every row is delivered, waits, or is dropped for one cause. The
 * witness of topics is librdkafka's own consumer. */
#include <errno.h>
#include <sys/wait.h>

#include "base/test.h"
#include "base/test_folder.h"
#include "kafka/kafka.h"
#include "kafka/test_kafka.h"
#include "tapout/result_out.h"

#define ROWS     50
#define PRODUCE  0 /* the request's number in Kafka's protocol */
#define REFUSALS 20000

static void path_of(char *dst, size_t cap, const char *name)
{
	snprintf(dst, cap, "%s/%s", pl_test_folder, name);
}

static void check_account(const struct pl_result_out *out, uint64_t rows, const char *when)
{
	const struct pl_result_stats *s = &out->stats;

	eq(s->rows, rows, "%s: all were given", when);
	eq(s->delivered + s->waiting + s->held + pl_result_lost(s), s->rows + s->found,
		"%s: each is delivered, waits, or is dropped for one cause", when);
}

static void put(struct pl_result_out *out, int from, int to)
{
	for (int i = from; i < to; i++) {
		char key[32], row[64];
		const int key_len = snprintf(key, sizeof(key), "q|%d", i % 5);
		const int len = snprintf(row, sizeof(row), "{\"n\":%d}", i);

		const struct pl_result_item item = {
			.key = key, .key_len = (size_t)key_len, .line = row, .len = (size_t)len
		};

		pl_result_out_put(out, &item);
		/* Copies were taken. */
		memset(key, 'x', sizeof(key));
		memset(row, 'x', sizeof(row));
	}
}

static struct pl_result_out *open_out(const char *uri, uint32_t wait_ms)
{
	struct pl_diag diag = { .text = "" };
	struct pl_result_out *out = NULL;

	if (!ok(pl_result_out_open(&out, uri, NULL, wait_ms, &diag) == 0, "%s: %s", uri, diag.text))
		exit(1);
	return out;
}

static void test_file(void)
{
	char uri[128], path[96], text[4096] = "";
	struct pl_result_out *out;
	FILE *f;

	path_of(path, sizeof(path), "rows.jsonl");
	snprintf(uri, sizeof(uri), "file:%s", path);
	for (int run = 0; run < 2; run++) {
		out = open_out(uri, 0);
		streq(out->name, uri, "its name");
		put(out, 0, 3);
		eq(out->stats.waiting, 3, "lines are gathered");
		check_account(out, 3, "before they are written");
		pl_result_out_turn(out, pl_clock_mono_ns());
		eq(out->stats.delivered, 3, "a turn writes them");
		put(out, 3, 5);
		pl_result_out_finish(out, 0);
		eq(out->stats.delivered, 5);
		check_account(out, 5, "a file");
		pl_result_out_close(out);
	}
	f = fopen(path, "r");
	ok(f != NULL && fread(text, 1, sizeof(text) - 1, f) > 0);
	if (f != NULL)
		fclose(f);
	streq(text,
		"{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n"
		"{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n",
		"the second one adds to what the first one wrote");

	out = open_out("file:/dev/full", 0);
	put(out, 0, 7);
	pl_result_out_refuse(out);
	pl_result_out_finish(out, 0);
	check_account(out, 8, "a full disk");
	eq(out->stats.drop_file, 7);
	eq(out->stats.drop_failed, 1, "a row that could not be made is one of them");
	pl_result_out_close(out);
}

static void test_refused(void)
{
	static const struct {
		const char *uri, *says;
	} wrong[] = { { "file:", "rows go to" }, { "events", "rows go to" },
		{ "kafka://host", "topic" },
		{ "kafka://host/t?format=rowbinary", "JSON objects" } };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct pl_diag diag = { .text = "" };

		ok(pl_result_out_check(wrong[i].uri, NULL, &diag) < 0 &&
				strstr(diag.text, wrong[i].says) != NULL,
			"%s is refused: %s", wrong[i].uri, diag.text);
	}
}

static struct test_cluster cluster;

/* Counts how often each number is in the topic. */
static void read_topic(const char *topic, unsigned int n, unsigned int *ret)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	unsigned int read = 0;
	char text[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster.mock),
		text, sizeof(text));
	rd_kafka_conf_set(conf, "group.id", "witness", text, sizeof(text));
	rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
	rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_assign(rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	while (read < n && pl_clock_mono_ns() < until) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 100);
		char row[64] = "", key[32] = "", want[32];
		int i = -1;

		if (m != NULL && m->err == RD_KAFKA_RESP_ERR_NO_ERROR && m->len < sizeof(row) &&
			m->key_len < sizeof(key)) {
			memcpy(row, m->payload, m->len);
			memcpy(key, m->key, m->key_len);
			read++;
			if (sscanf(row, "{\"n\":%d}", &i) == 1 && i >= 0 && i < ROWS) {
				snprintf(want, sizeof(want), "q|%d", i % 5);
				ret[i] += strcmp(key, want) == 0;
			}
		}
		if (m != NULL)
			rd_kafka_message_destroy(m);
	}
	rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
}

static void check_topic(const char *topic, const char *when)
{
	unsigned int seen[ROWS] = { 0 }, once = 0;

	read_topic(topic, ROWS, seen);
	for (unsigned int i = 0; i < ROWS; i++)
		once += seen[i] == 1;
	eq(once, ROWS, "%s: each row is in the topic once, with the key of its group", when);
}

static void topic_uri(char *dst, size_t cap, const char *topic, const char *keys)
{
	rd_kafka_mock_topic_create(cluster.mock, topic, 1, 1);
	snprintf(dst, cap, "kafka://%s/%s%s", rd_kafka_mock_cluster_bootstraps(cluster.mock), topic,
		keys);
}

static void test_topic(void)
{
	struct pl_result_out *out;
	char uri[512];

	topic_uri(uri, sizeof(uri), "rows", "?linger.ms=1");
	out = open_out(uri, 60000);
	ok(strchr(out->name, '?') == NULL, "its name has no keys: %s", out->name);
	put(out, 0, ROWS);
	check_account(out, ROWS, "on their way");
	pl_result_out_finish(out, 60000);
	eq(out->stats.delivered, ROWS);
	check_account(out, ROWS, "a topic");
	pl_result_out_close(out);
	check_topic("rows", "a topic");
}

/* Without a spool rows that no broker takes are dropped, and counted. */
static void test_away(void)
{
	struct pl_result_out *out;
	char uri[512];

	topic_uri(uri, sizeof(uri), "away", "?queue.buffering.max.messages=20");
	out = open_out(uri, 60000);
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	put(out, 0, ROWS);
	check_account(out, ROWS, "a broker that is away");
	eq(out->stats.drop_queue_full, ROWS - 20, "what the client has no room for");
	pl_result_out_finish(out, 100);
	eq(out->stats.drop_purged, 20, "and what was not acknowledged");
	check_account(out, ROWS, "a broker that stays away");
	pl_result_out_close(out);
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
}

/* With a spool rows wait on disk, also after the end of the process, and are sent when there is a
 * broker. */
static void test_spool(void)
{
	char uri[512], keys[256], spool[96];
	struct pl_result_out *out, *other = NULL;
	struct pl_diag diag = { .text = "" };

	path_of(spool, sizeof(spool), "spool");
	snprintf(
		keys, sizeof(keys), "?linger.ms=1&queue.buffering.max.messages=20&spool=%s", spool);
	topic_uri(uri, sizeof(uri), "spooled", keys);
	pl_result_topic_spool(uri, keys, sizeof(keys));
	streq(keys, spool, "the folder that the URI names");
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	out = open_out(uri, 60000);
	put(out, 0, 30);
	check_account(out, 30, "a broker that is away");
	eq(pl_result_lost(&out->stats), 0, "nothing is dropped");
	ok(out->stats.held >= 10, "what the client has no room for is on disk");
	ok(pl_result_out_open(&other, uri, NULL, 0, &diag) == -EBUSY, "one at a time: %s",
		diag.text);
	pl_result_out_finish(out, 100);
	eq(out->stats.held, 30, "in the end all of them are");
	check_account(out, 30, "a spool");
	pl_result_out_close(out);

	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	out = open_out(uri, 60000);
	eq(out->stats.found, 30, "the next one finds them");
	put(out, 30, ROWS);
	check_account(out, ROWS - 30, "behind those that were found");
	(void)eventually(out->stats.delivered >= ROWS, pl_result_out_turn(out, pl_clock_mono_ns()));
	pl_result_out_finish(out, 60000);
	eq(out->stats.held + pl_result_lost(&out->stats), 0, "nothing is left, nothing was lost");
	check_account(out, ROWS - 30, "a spool that is read");
	pl_result_out_close(out);
	check_topic("spooled", "a spool");
}

/* A process that ends in the midst. It is there before the cluster, and with it the threads: a copy
 * of a process with threads may have locks that nobody gives back. */
static struct {
	pid_t pid;
	int uri; /* where it is told, in 512 bytes, what to send from */
} victim;

/* It says nothing: the numbers of the results are the parent's. Its exit code: 0 when all rows are on
 * their way, 2 when the output cannot be opened, 3 when some were acknowledged, 4 when some wait. */
static int be_victim(int uri_fd)
{
	struct pl_result_out *out;
	char uri[512];

	if (read(uri_fd, uri, sizeof(uri)) != sizeof(uri))
		return 1;
	if (pl_result_out_open(&out, uri, NULL, 60000, NULL) < 0)
		return 2;
	(void)eventually(out->stats.waiting >= ROWS, pl_result_out_turn(out, pl_clock_mono_ns()));
	return out->stats.delivered > 0 ? 3 : out->stats.waiting == ROWS ? 0 : 4;
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

/* Rows of the spool that are with the client are on disk until the broker has them: a process that is
 * killed loses none. */
static void test_killed(void)
{
	static rd_kafka_resp_err_t refusals[REFUSALS];
	char uri[512], keys[256], spool[96];
	struct pl_result_out *out;
	int status = -1;

	path_of(spool, sizeof(spool), "killed");
	snprintf(keys, sizeof(keys), "?linger.ms=1&spool=%s", spool);
	topic_uri(uri, sizeof(uri), "killed", keys);
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	out = open_out(uri, 60000);
	put(out, 0, ROWS);
	pl_result_out_finish(out, 100);
	eq(out->stats.held, ROWS, "rows on disk");
	pl_result_out_close(out);

	/* A broker that takes nothing for as long as the child may need to send: each is sent again. */
	for (size_t i = 0; i < REFUSALS; i++)
		refusals[i] = RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT;
	rd_kafka_mock_push_request_errors_array(cluster.mock, PRODUCE, REFUSALS, refusals);
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	eq(write(victim.uri, uri, sizeof(uri)), sizeof(uri), "a process that is to send them");
	eq(waitpid(victim.pid, &status, 0), victim.pid);
	ok(status == 0, "all were sent, and none acknowledged, when the process ended: status 0x%x",
		(unsigned int)status);
	rd_kafka_mock_clear_request_errors(cluster.mock, PRODUCE);
	out = open_out(uri, 60000);
	eq(out->stats.found, ROWS, "the next one finds all of them");
	(void)eventually(out->stats.delivered >= ROWS, pl_result_out_turn(out, pl_clock_mono_ns()));
	pl_result_out_finish(out, 60000);
	check_account(out, 0, "rows that were sent again");
	pl_result_out_close(out);
	out = open_out(uri, 60000);
	eq(out->stats.found, 0, "and once they are delivered they are gone");
	pl_result_out_close(out);
}

/* A topic that is not there is told of, though brokers are up; so is one that was removed. */
static void test_failing(void)
{
	const uint64_t second = UINT64_C(1000000000);
	uint64_t now = 1000 * second;
	struct pl_diag why = { .text = "" };
	char uri[512], keys[256], spool[96];
	struct pl_result_out *out;

	path_of(spool, sizeof(spool), "failing");
	snprintf(keys, sizeof(keys), "?linger.ms=1&topic.metadata.refresh.interval.ms=200&spool=%s",
		spool);
	topic_uri(uri, sizeof(uri), "failing", keys);
	rd_kafka_mock_topic_set_error(
		cluster.mock, "failing", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	out = open_out(uri, 60000);
	put(out, 0, 10);
	pl_result_out_turn(out, now);
	ok(!pl_result_out_failing(out, &why), "a broker may still tell of the topic");
	now += 6 * second;
	pl_result_out_turn(out, now);
	ok(pl_result_out_failing(out, &why), "then it is told: %s", why.text);
	ok(strstr(why.text, "no broker told of the topic") != NULL, "with the cause");
	rd_kafka_mock_topic_set_error(cluster.mock, "failing", RD_KAFKA_RESP_ERR_NO_ERROR);
	(void)eventually(
		out->stats.delivered == 10, now += second / 10, pl_result_out_turn(out, now));
	ok(!pl_result_out_failing(out, &why), "and is over when there is a topic");
	rd_kafka_mock_topic_set_error(
		cluster.mock, "failing", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	/* A row sent before may be delivered behind the first that comes back: that ends the fault
	 * until the next one comes back. */
	(void)eventually(out->stats.returned > 0 && pl_result_out_failing(out, &why),
		put(out, 10, 11), now += second / 10, pl_result_out_turn(out, now));
	ok(out->stats.returned > 0 && pl_result_out_failing(out, &why),
		"rows that come back are told of: %s", why.text);
	ok(test_names_removed(why.text), "with the cause");
	rd_kafka_mock_topic_set_error(cluster.mock, "failing", RD_KAFKA_RESP_ERR_NO_ERROR);
	(void)eventually(out->stats.held == 0 && out->stats.waiting == 0, now += second / 10,
		pl_result_out_turn(out, now));
	ok(!pl_result_out_failing(out, &why), "until they are delivered");
	pl_result_out_finish(out, 60000);
	pl_result_out_close(out);
}

int main(void)
{
	if (!pl_test_folder_make())
		return 1;
	start_victim();
	cluster = test_cluster_start();
	test_file();
	test_refused();
	test_topic();
	test_away();
	test_spool();
	test_failing();
	test_killed();
	test_cluster_stop(&cluster);
	pl_test_remove(pl_test_folder);
	return pl_test_done();
}
