/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of packets with librdkafka's own test cluster: in any case each packet is delivered,
 * on disk, or dropped with a cause. */
#include "export/raw_out.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "kafka/test_kafka.h"
#include "raw/message.h"

#define N 200 /* packets per call */

static struct test_cluster cluster;
static struct pl_diag diag;
static uint8_t entries[N * 128];
static size_t entries_len;

static void make_entries(void)
{
	static const uint8_t body[40];

	for (unsigned int i = 0; i < N; i++) {
		struct pl_packet p = { .link = PL_LINK_UDP, .len = sizeof(body), .ts_ns = i };
		struct pl_raw_head head;

		p.src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, (uint8_t)i });
		pl_raw_head_make(&head, &p);
		memcpy(entries + entries_len, &head, sizeof(head));
		entries_len += pl_raw_entry_size(p.len);
	}
}

static struct pl_export *open_out(const char *topic, const char *keys, const char *spool)
{
	char uri[512];
	struct pl_raw_out_options options = {
		.uri = uri, .spool_path = spool, .spool_bytes = 8 << 20
	};
	struct pl_export *e = NULL;

	snprintf(uri, sizeof(uri), "kafka://%s/%s%s",
		rd_kafka_mock_cluster_bootstraps(cluster.mock), topic, keys);
	eq(pl_raw_out_open(&e, &options, &diag), 0, "opens: %s", diag.text);
	if (e == NULL) {
		printf("Bail out! cannot go on\n");
		exit(1);
	}
	return e;
}

static uint64_t dropped(const struct pl_export *e)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < PL_EXPORT_DROP_MAX; i++)
		sum += pl_counter_read(&e->stats.dropped[i]);
	return sum;
}

static uint64_t queued(const struct pl_export *e)
{
	return atomic_load(&e->stats.queued);
}

static uint64_t spooled(const struct pl_export *e)
{
	return atomic_load(&e->stats.spooled);
}

static void balance(const struct pl_export *e, const char *when)
{
	eq(pl_counter_read(&e->stats.delivered) + dropped(e) + queued(e) + spooled(e),
		pl_counter_read(&e->stats.accepted) + pl_counter_read(&e->stats.recovered),
		"%s: accepted + recovered = delivered + dropped + queued + spooled", when);
}

static void write_some(struct pl_export *e, unsigned int times)
{
	for (unsigned int i = 0; i < times; i++) {
		e->ops->write_packets(e, entries, entries_len, N, pl_clock_mono_ns());
		pl_export_flush(e, pl_clock_mono_ns(), false);
	}
}

/* Flushes until n packets are delivered. */
static bool deliver(struct pl_export *e, uint64_t n)
{
	return eventually(pl_counter_read(&e->stats.delivered) == n,
		pl_export_flush(e, pl_clock_mono_ns(), false));
}

static void delivered(void)
{
	struct pl_export_words words;
	struct pl_export *e;

	rd_kafka_mock_topic_create(cluster.mock, "good", 3, 1);
	e = open_out("good", "", NULL);
	/* No broker has told of the topic yet. */
	write_some(e, 5);
	ok(queued(e) > 0, "packets that come before wait");
	balance(e, "before");
	ok(deliver(e, 5 * N), "they are delivered");
	write_some(e, 50);
	ok(deliver(e, 55 * N), "and those that come then");
	eq(dropped(e), 0, "nothing is dropped");
	balance(e, "delivered");
	e->ops->words(e, &words);
	streq(words.trouble, "", "nothing is wrong");
	pl_export_finish(e);
	balance(e, "finished");
	pl_export_close(e);
}

/* Senders whose packets go to more partitions than there were buffers at first. */
static void many_partitions(void)
{
	struct pl_export *e;

	rd_kafka_mock_topic_create(cluster.mock, "wide", 200, 1);
	e = open_out("wide", "", NULL);
	write_some(e, 1);
	ok(deliver(e, N), "packets for more than 64 of 200 partitions are delivered");
	write_some(e, 1);
	ok(deliver(e, 2 * N), "and so are the next ones");
	eq(dropped(e), 0, "nothing is dropped");
	balance(e, "many partitions");
	pl_export_finish(e);
	pl_export_close(e);
}

static void no_topic(void)
{
	struct pl_export *e = open_out("never", "?allow.auto.create.topics=false", NULL);
	struct pl_export_words words;
	uint64_t now = pl_clock_mono_ns();

	/* The test sets the time. */
	e->ops->write_packets(e, entries, entries_len, N, now);
	pl_export_flush(e, now, false);
	pl_export_flush(e, now + UINT64_C(6000000000), false);
	e->ops->words(e, &words);
	ok(strstr(words.trouble, "never") != NULL && strstr(words.trouble, "topic") != NULL,
		"the topic is told of: %s", words.trouble);
	eq(atomic_load(&e->stats.last_error), EIO, "as an error");
	balance(e, "waiting for the topic");
	pl_export_flush(e, now + UINT64_C(11000000000), false);
	eq(dropped(e), N, "after ten seconds they are dropped");
	e->ops->write_packets(e, entries, entries_len, N, now + UINT64_C(12000000000));
	eq(pl_counter_read(&e->stats.dropped[PL_EXPORT_IO]), 2 * N, "and those that come then");
	pl_export_finish(e);
	balance(e, "finished");
	pl_export_close(e);
}

static void closed(void)
{
	struct pl_export *e;

	rd_kafka_mock_topic_create(cluster.mock, "closed", 1, 1);
	e = open_out("closed", "", NULL);
	write_some(e, 1);
	ok(deliver(e, N), "a broker is there");
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	write_some(e, 10);
	pl_export_finish(e);
	eq(pl_counter_read(&e->stats.dropped[PL_EXPORT_CLOSED]), 10 * N,
		"without a broker and a spool the end loses them");
	eq(queued(e), 0, "nothing waits");
	balance(e, "finished");
	pl_export_close(e);
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
}

static void spool(void)
{
	char folder[] = "/tmp/pathline-raw-XXXXXX", command[64];
	struct pl_export *e;

	if (mkdtemp(folder) == NULL) {
		printf("Bail out! no folder\n");
		exit(1);
	}
	rd_kafka_mock_topic_create(cluster.mock, "kept", 2, 1);
	e = open_out("kept", "?delivery.timeout.ms=2000&socket.timeout.ms=1000", folder);
	write_some(e, 1);
	ok(deliver(e, N), "by way of the disk");
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	write_some(e, 20);
	ok(eventually(spooled(e) == 20 * N, pl_export_flush(e, pl_clock_mono_ns(), false)),
		"what is not acknowledged goes to disk");
	write_some(e, 1);
	eq(spooled(e), 21 * N, "and all behind it");
	balance(e, "without a broker");
	pl_export_finish(e);
	eq(dropped(e), 0, "nothing is dropped");
	balance(e, "finished");
	pl_export_close(e);
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	e = open_out("kept", "", folder);
	eq(pl_counter_read(&e->stats.recovered), 21 * N, "the next one finds them");
	ok(deliver(e, 21 * N), "and sends them");
	eq(spooled(e), 0, "the disk is empty");
	balance(e, "recovered");
	pl_export_finish(e);
	pl_export_close(e);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	ok(system(command) == 0, "cleaned up");
}

/* A mark is settled when all entries before it are delivered, on disk or dropped. */
static void marks(void)
{
	struct pl_export *e;

	rd_kafka_mock_topic_create(cluster.mock, "marked", 3, 1);
	e = open_out("marked", "", NULL);
	pl_export_mark(e);
	ok(pl_export_settled(e), "nothing came: nothing waits");
	write_some(e, 1);
	pl_export_mark(e);
	ok(!pl_export_settled(e), "what came before a broker told of the topic waits");
	ok(deliver(e, N), "delivered");
	ok(pl_export_settled(e), "and settled");
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	write_some(e, 2);
	pl_export_mark(e);
	write_some(e, 1);
	ok(!pl_export_settled(e), "what no broker acknowledged is not");
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	ok(eventually(pl_export_settled(e), pl_export_flush(e, pl_clock_mono_ns(), false)),
		"what it did is");
	ok(pl_counter_read(&e->stats.delivered) >= 3 * N, "all before the mark is delivered");
	pl_export_finish(e);
	pl_export_close(e);
}

/* Entries from the spool stay on disk until acknowledged: a killed process loses none of them. */
static void killed(void)
{
	char folder[] = "/tmp/pathline-raw-XXXXXX", command[64];
	struct pl_export *e;
	int status = 0;
	pid_t child;

	if (mkdtemp(folder) == NULL) {
		printf("Bail out! no folder\n");
		exit(1);
	}
	rd_kafka_mock_topic_create(cluster.mock, "killed", 2, 1);
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	e = open_out("killed", "", folder);
	write_some(e, 20);
	pl_export_mark(e);
	ok(eventually(pl_export_settled(e),
		   pl_export_flush(e, pl_clock_mono_ns() + UINT64_C(2000000000), false)),
		"what is on the device is settled");
	eq(pl_counter_read(&e->stats.delivered), 0, "though nothing is delivered");
	pl_export_finish(e);
	pl_export_close(e);
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (freopen("/dev/null", "w", stdout) == NULL)
			_exit(1);
		e = open_out("killed", "", folder);
		/* The next call processes acknowledgements. */
		if (!eventually(spooled(e) == 0 && queued(e) == 20 * N,
			    pl_export_flush(e, pl_clock_mono_ns(), false)))
			_exit(1);
		raise(SIGKILL);
	}
	waitpid(child, &status, 0);
	ok(WIFSIGNALED(status), "killed with all of it on its way");
	e = open_out("killed", "", folder);
	eq(pl_counter_read(&e->stats.recovered), 20 * N, "the next one finds all");
	ok(deliver(e, 20 * N), "and sends it");
	ok(eventually(pl_export_settled(e), pl_export_flush(e, pl_clock_mono_ns(), false)),
		"settled");
	pl_export_finish(e);
	pl_export_close(e);
	e = open_out("killed", "", folder);
	eq(pl_counter_read(&e->stats.recovered), 0, "nothing is left");
	pl_export_finish(e);
	pl_export_close(e);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	ok(system(command) == 0, "cleaned up");
}

static void refused(void)
{
	eq(pl_raw_out_check("kafka://h/t?format=json", &diag), -EINVAL, "another format");
	ok(strstr(diag.text, "format=") != NULL, "is told: %s", diag.text);
	eq(pl_raw_out_check("kafka://h/t?acks=nine", &diag), -EINVAL, "a bad property");
	eq(pl_raw_out_check("kafka://h/t?transactional.id=x", &diag), -EINVAL, "a reserved one");
	eq(pl_raw_out_check("kafka://h/t", &diag), 0, "a good one");
}

int main(void)
{
	make_entries();
	cluster = test_cluster_start();
	delivered();
	many_partitions();
	no_topic();
	closed();
	spool();
	marks();
	killed();
	refused();
	test_cluster_stop(&cluster);
	return pl_test_done();
}
