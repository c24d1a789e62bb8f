/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consumers against librdkafka's own cluster: what our producer wrote, messages that somebody else
 * wrote in every wrong way, commits, and groups whose members come and go.
 */
#include "kafka/consumer.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/test.h"
#include "kafka/consumer_state.h"
#include "kafka/producer.h"
#include "kafka/test_kafka.h"

#define OFFSET_COMMIT 8 /* the protocol's numbers of requests */
#define OFFSET_FETCH  9
#define PARTITIONS    4

static struct test_cluster cluster;
static struct pl_kafka_uri uri;
static struct pl_diag diag;
static uint64_t seed;

/* Counts a member's partitions; `start`: offset it sets when a partition is assigned. */
struct member {
	struct pl_kafka_consumer *c;
	bool mine[PARTITIONS];
	unsigned int assigned, revoked;
	int64_t start, next[PARTITIONS]; /* next: to be committed when it is revoked; -1: nothing */
	bool asks;                       /* for the group's positions */
};

static void on_assigned(void *arg, struct pl_kafka_position *positions, uint32_t n)
{
	struct member *m = arg;

	for (uint32_t i = 0; i < n; i++) {
		m->mine[positions[i].partition] = true;
		m->next[positions[i].partition] = -1;
		positions[i].offset = m->start;
	}
	if (m->asks)
		eq(pl_kafka_consumer_committed(m->c, positions, n, 60000, NULL, NULL, &diag), 0,
			"the group's positions");
	m->assigned += n;
}

static void on_revoked(void *arg, const uint32_t *partitions, uint32_t n, bool lost)
{
	struct member *m = arg;

	for (uint32_t i = 0; i < n; i++) {
		const struct pl_kafka_position at = { partitions[i], m->next[partitions[i]] };

		if (at.offset >= 0 && !lost)
			pl_kafka_consumer_commit(m->c, &at, 1, 30000, NULL);
		m->mine[partitions[i]] = false;
	}
	m->revoked += n;
}

static int try_open(struct member *m, struct pl_kafka_consumer_config config)
{
	config.uri = &uri;
	config.assigned = on_assigned;
	config.revoked = on_revoked;
	config.arg = m;
	diag.text[0] = '\0';
	if (m->start == 0)
		m->start = PL_KAFKA_COMMITTED;
	return pl_kafka_consumer_open(&m->c, &config, &diag);
}

static void open_member(struct member *m, struct pl_kafka_consumer_config config)
{
	int r = try_open(m, config);

	ok(r == 0, "opens: %s", diag.text);
	if (r < 0) {
		printf("Bail out! cannot go on\n");
		exit(1);
	}
}

static int refused(struct pl_kafka_consumer_config config)
{
	struct member m = { .c = NULL };
	int r = try_open(&m, config);

	if (r == 0)
		pl_kafka_consumer_close(m.c);
	return r;
}

static bool next_block(struct member *m, struct pl_kafka_block *ret)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;

	while (pl_clock_mono_ns() < until) {
		if (pl_kafka_consumer_recv(m->c, ret, 100) > 0 && ret->records != NULL)
			return true;
	}
	return false;
}

/* The next time that the end of a partition is told. */
static bool next_end(struct member *m, struct pl_kafka_block *ret)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;

	while (pl_clock_mono_ns() < until) {
		if (pl_kafka_consumer_recv(m->c, ret, 100) > 0 && ret->at_end)
			return true;
	}
	return false;
}

static void produce(const char *topic, const char *query, uint64_t from, uint64_t to)
{
	struct pl_kafka_producer_config config = { .uri = &uri, .exporter = 7, .wait_ms = 60000 };
	struct pl_kafka_producer_stats s;
	struct pl_kafka_producer *p;

	test_uri(&uri, &cluster, topic, 0, query);
	if (pl_kafka_producer_open(&p, &config, &diag) < 0) {
		printf("Bail out! %s\n", diag.text);
		exit(1);
	}
	for (uint64_t i = from; i < to; i++) {
		const struct pl_pkt64 r = test_record(i);

		(void)eventually(pl_kafka_producer_room(p, pl_hash_mix(i, seed)),
			pl_kafka_producer_turn(p, pl_clock_mono_ns()));
		pl_kafka_producer_put(p, pl_hash_mix(i, seed), &r);
	}
	pl_kafka_producer_close(p, 60000, &s);
	eq(s.delivered, to - from, "%s: what is to be read is there", topic);
}

/* Counts each record of a block that is as it was written. */
static uint64_t check_block(const struct pl_kafka_block *b, uint8_t *seen, uint64_t n)
{
	const struct pl_pkt64 *records = b->records;
	uint64_t good = 0;

	if ((uintptr_t)b->records % 8 != 0 || b->message.exporter != 7 ||
		b->message.oldest_ns != records[0].ts_ns ||
		b->message.newest_ns != records[b->message.n - 1].ts_ns ||
		b->time_ms != (int64_t)(b->message.newest_ns / 1000000))
		return 0;
	for (uint32_t i = 0; i < b->message.n; i++) {
		const uint64_t number = test_number(&records[i]);
		const struct pl_pkt64 want = test_record(number);

		if (number < n && memcmp(&records[i], &want, sizeof(want)) == 0 &&
			pl_hash_mix(number, seed) % PARTITIONS == b->partition) {
			seen[number]++;
			good++;
		}
	}
	return good;
}

static uint64_t unseen(const uint8_t *seen, uint64_t n)
{
	uint64_t missing = 0;

	for (uint64_t i = 0; i < n; i++)
		missing += seen[i] == 0;
	return missing;
}

static void test_records(void)
{
	const uint64_t n = 20000;
	uint8_t *seen = calloc(1, n);
	const struct pl_kafka_consumer_stats *s;
	struct member m = { .c = NULL };
	struct pl_kafka_block b;
	uint64_t got = 0;

	test_uri(&uri, &cluster, "records", PARTITIONS, "");
	/* Sizes that do not go together well with a multiple of 8. */
	produce("records", "?records=1&compression.codec=none", 0, 50);
	produce("records", "?records=100", 50, n);
	test_uri(&uri, &cluster, "records", 0, "?group.id=r&auto.offset.reset=earliest");
	open_member(&m, (struct pl_kafka_consumer_config){ .wait_ms = 60000 });
	while (got < n && next_block(&m, &b)) {
		const uint64_t good = check_block(&b, seen, n);

		eq(good, b.message.n, "partition %u, offset %" PRIi64, b.partition, b.offset);
		got += b.message.n;
	}
	eq(got, n, "as many records as there are");
	eq(unseen(seen, n), 0, "each of them");
	s = pl_kafka_consumer_stats(m.c);
	eq(s->records, n);
	eq(s->bytes, n * 64);
	eq(s->received, s->good);
	eq(m.assigned, PARTITIONS, "the group's only member has them all");
	printf("# %" PRIu64 " of %" PRIu64 " messages copied\n", s->copied, s->good);
	pl_kafka_consumer_close(m.c);
	eq(m.revoked, PARTITIONS, "closing takes them away");
	free(seen);
}

/* ---- messages of somebody else ---- */

struct hostile {
	const char *f, *n;
	int f_len, n_len; /* below 0: without the header */
	size_t len;
	size_t counter;
};

#define IN(member) offsetof(struct pl_kafka_consumer_stats, member)

static const struct hostile hostile[] = {
	{ "pkt64/1", NULL, 7, -1, 64, IN(good) },
	{ "pkt64/1", "\2\0\0\0", 7, 4, 128, IN(good) },
	{ NULL, NULL, -1, -1, 64, IN(bad_no_format) },
	{ "pkt64/2", NULL, 7, -1, 64, IN(bad_other_format) },
	{ "dns64/1", NULL, 7, -1, 64, IN(bad_other_format) },
	{ "", NULL, 0, -1, 64, IN(bad_other_format) },
	{ NULL, NULL, 0, -1, 64, IN(bad_header) },
	{ "pkt64/1", "\1\0", 7, 2, 64, IN(bad_header) },
	{ "pkt64/1", NULL, 7, -1, 0, IN(bad_length) },
	{ "pkt64/1", NULL, 7, -1, 63, IN(bad_length) },
	{ "pkt64/1", NULL, 7, -1, 65, IN(bad_length) },
	{ "pkt64/1", NULL, 7, -1, 64 * 4097, IN(bad_too_long) },
	{ "pkt64/1", "\2\0\0\0", 7, 4, 64, IN(bad_count) },
	{ "pkt64/1", "\xff\xff\xff\xff", 7, 4, 64 * 4096, IN(bad_count) },
	{ "pkt64/1", NULL, 7, -1, 64 * 4096, IN(good) },
};

static void send_hostile(const char *topic)
{
	static uint8_t value[64 * 4097];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char text[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster.mock),
		text, sizeof(text));
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		const struct hostile *h = &hostile[i];
		rd_kafka_headers_t *headers = rd_kafka_headers_new(2);
		const rd_kafka_vu_t parts[] = {
			{ .vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic },
			{ .vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = 0 },
			{ .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY },
			{ .vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = { value, h->len } },
			{ .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers },
		};

		rd_kafka_header_add(headers, "other", -1, "x", 1);
		if (h->f_len >= 0)
			rd_kafka_header_add(headers, "f", -1, h->f, h->f_len);
		if (h->n_len >= 0)
			rd_kafka_header_add(headers, "n", -1, h->n, h->n_len);
		ok(rd_kafka_produceva(rk, parts, 5) == NULL, "row %zu is sent", i);
	}
	eq(rd_kafka_flush(rk, 60000), RD_KAFKA_RESP_ERR_NO_ERROR, "and has arrived");
	rd_kafka_destroy(rk);
}

static void test_hostile(void)
{
	const struct pl_kafka_consumer_stats *s;
	struct member m = { .c = NULL };
	struct pl_kafka_consumer_stats want = { .received = 0 };
	const size_t n = sizeof(hostile) / sizeof(hostile[0]);
	struct pl_kafka_block b;
	uint64_t blocks = 0, good = 0;

	test_uri(&uri, &cluster, "hostile", 1, "?auto.offset.reset=earliest");
	send_hostile("hostile");
	for (size_t i = 0; i < n; i++) {
		uint8_t *at = (uint8_t *)&want + hostile[i].counter;
		uint64_t v;

		memcpy(&v, at, sizeof(v));
		v++;
		memcpy(at, &v, sizeof(v));
		good += hostile[i].counter == IN(good);
	}
	open_member(&m, (struct pl_kafka_consumer_config){ .group = "h" });
	while (blocks < good && next_block(&m, &b))
		blocks++;
	s = pl_kafka_consumer_stats(m.c);
	eq(b.offset, n - 1, "the last message is a good one");
	eq(s->received, n, "all were looked at");
	eq(s->good, good);
	eq(s->records, 1 + 2 + 4096);
	eq(pl_kafka_consumer_bad(s), n - good);
	eq(s->bad_no_format, want.bad_no_format);
	eq(s->bad_other_format, want.bad_other_format);
	eq(s->bad_header, want.bad_header);
	eq(s->bad_length, want.bad_length);
	eq(s->bad_too_long, want.bad_too_long);
	eq(s->bad_count, want.bad_count);
	pl_kafka_consumer_close(m.c);
}

/* The end of a partition is reported, also behind messages that are bad. */
static void test_end(void)
{
	const unsigned int n = sizeof(hostile) / sizeof(hostile[0]);
	struct member m = { .c = NULL };
	struct pl_kafka_block b;

	test_uri(&uri, &cluster, "end", 1, "?auto.offset.reset=earliest");
	open_member(&m, (struct pl_kafka_consumer_config){ .group = "e", .wait_ms = 60000 });
	ok(next_end(&m, &b) && b.next == 0 && b.records == NULL, "of an empty partition");
	send_hostile("end");
	while (b.next < n && next_end(&m, &b))
		;
	eq(b.next, n, "it is behind the last");
	eq(pl_kafka_consumer_stats(m.c)->received, n, "an end is no message");
	eq(pl_kafka_consumer_stats(m.c)->errors, 0, "and no error");
	pl_kafka_consumer_close(m.c);
}

/* ---- positions ---- */

static void test_commit(void)
{
	struct pl_kafka_position at = { .partition = 0 };
	struct pl_kafka_block b;
	struct member m;

	test_uri(&uri, &cluster, "commit", 1, "");
	produce("commit", "?records=10", 0, 100);
	/* The cluster has a member that left wait for its session to end. */
	test_uri(&uri, &cluster, "commit", 0,
		"?auto.offset.reset=earliest&session.timeout.ms=6000&heartbeat.interval.ms=200");
	for (int round = 0; round < 2; round++) {
		m = (struct member){ .c = NULL };
		open_member(&m, (struct pl_kafka_consumer_config){ .group = "c" });
		for (int i = 0; i < 5; i++)
			ok(next_block(&m, &b) && b.offset == i, "round %d, message %d", round, i);
		/* The first round ends without a commit. */
		if (round == 1) {
			at.offset = b.offset + 1;
			eq(pl_kafka_consumer_commit(m.c, &at, 1, 60000, &diag), 0, "commits");
		}
		pl_kafka_consumer_close(m.c);
	}
	m = (struct member){ .c = NULL };
	open_member(&m, (struct pl_kafka_consumer_config){ .group = "c" });
	ok(next_block(&m, &b) && b.offset == 5, "goes on behind what was committed, not read");
	at.offset = 9;
	eq(pl_kafka_consumer_commit(m.c, &at, 1, 0, &diag), 0, "a commit nobody waits for");
	eq(pl_kafka_consumer_stats(m.c)->commits, 1);
	pl_kafka_consumer_close(m.c);
	m = (struct member){ .start = 7 };
	open_member(&m, (struct pl_kafka_consumer_config){ .group = "c" });
	ok(next_block(&m, &b) && b.offset == 7, "or where the caller says");
	pl_kafka_consumer_close(m.c);
}

/* Messages that the topic deletes between a commit and the next member are counted. The cluster
 * keeps 5 MiB of a partition. */
static void test_expired(void)
{
	struct pl_kafka_position at = { .partition = 0 };
	struct pl_kafka_block b;
	struct member m = { .c = NULL };
	const char *told;
	static const char keys[] =
		"?auto.offset.reset=earliest&session.timeout.ms=6000&heartbeat.interval.ms=200";

	test_uri(&uri, &cluster, "expired", 1, "");
	produce("expired", "?records=10", 0, 100);
	test_uri(&uri, &cluster, "expired", 0, keys);
	open_member(&m, (struct pl_kafka_consumer_config){ .group = "x" });
	for (int i = 0; i < 5; i++)
		ok(next_block(&m, &b) && b.offset == i, "message %d", i);
	at.offset = 5;
	eq(pl_kafka_consumer_commit(m.c, &at, 1, 60000, &diag), 0, "commits");
	eq(pl_kafka_consumer_stats(m.c)->expired, 0, "nothing was deleted");
	pl_kafka_consumer_close(m.c);
	produce("expired", "?compression.codec=none", 0, 200000);
	test_uri(&uri, &cluster, "expired", 0, keys);
	m = (struct member){ .asks = true };
	open_member(&m, (struct pl_kafka_consumer_config){ .group = "x" });
	ok(next_block(&m, &b) && b.offset > 5, "the next member reads what is left");
	eq(pl_kafka_consumer_stats(m.c)->expired, b.offset - 5, "and what was deleted is counted");
	told = pl_kafka_consumer_expired(m.c);
	ok(told != NULL && strstr(told, "partition 0: ") != NULL && strstr(told, "deleted") != NULL,
		"and told: %s", told != NULL ? told : "nothing");
	ok(next_block(&m, &b), "it reads on");
	eq(pl_kafka_consumer_stats(m.c)->expired, b.offset - 1 - 5, "and counts nothing twice");
	ok(pl_kafka_consumer_expired(m.c) == NULL, "nor is it told twice");
	pl_kafka_consumer_close(m.c);
}

/* Stands before librdkafka's function, and notes how often brokers were asked, and for how long last. */
static unsigned int questions;
static int question_ms;

rd_kafka_resp_err_t rd_kafka_query_watermark_offsets(rd_kafka_t *rk, const char *topic,
	int32_t partition, int64_t *low, int64_t *high, int timeout_ms)
{
	rd_kafka_resp_err_t (*next)(
		rd_kafka_t *, const char *, int32_t, int64_t *, int64_t *, int) = NULL;

	*(void **)&next = dlsym(RTLD_NEXT, "rd_kafka_query_watermark_offsets");
	questions++;
	question_ms = timeout_ms;
	return next(rk, topic, partition, low, high, timeout_ms);
}

/* Brokers were asked for so long, beginning so long ago; then offsets are missing before the next message.
 */
static void reach_gap(struct member *m, uint64_t asked_ns, uint64_t ago_ns, int64_t offset)
{
	struct pl_kafka_block b;

	m->c->asked_ns = asked_ns;
	m->c->span_ns = pl_clock_mono_ns() - ago_ns;
	pl_kafka_consumer_expect(m->c, 0, 0);
	ok(next_block(m, &b) && b.offset == offset, "message %lld", (long long)offset);
}

/* Offsets are missing that the topic did not delete, as behind transactions: brokers are asked where it
 * begins, for a second in each span of five, since the thread may have other work. */
static void test_questions(void)
{
	struct member m = { .c = NULL };
	struct pl_kafka_block b;

	test_uri(&uri, &cluster, "questions", 1, "");
	produce("questions", "?records=10", 0, 100);
	test_uri(&uri, &cluster, "questions", 0, "?auto.offset.reset=earliest");
	open_member(&m, (struct pl_kafka_consumer_config){ .group = "q" });
	for (int i = 0; i < 4; i++)
		ok(next_block(&m, &b) && b.offset == i, "message %d", i);
	eq(questions, 0, "nothing is missing, and nobody is asked");
	reach_gap(&m, 0, 0, 4);
	eq(questions, 1, "a broker is asked");
	eq(question_ms, 1000, "for a second at most");
	reach_gap(&m, 990000000, 0, 5);
	eq(questions, 2);
	eq(question_ms, 10, "for what is left of it");
	reach_gap(&m, 1000000000, 0, 6);
	eq(questions, 2, "then for nothing");
	reach_gap(&m, 1000000000, 5000000000, 7);
	eq(questions, 3, "until the span is over");
	eq(question_ms, 1000, "and again for a second");
	eq(pl_kafka_consumer_stats(m.c)->expired, 0, "none was deleted");
	pl_kafka_consumer_close(m.c);
}

static void test_commit_fails(void)
{
	const struct pl_kafka_position at = { .partition = 0, .offset = 1 };
	struct member m = { .c = NULL };
	struct pl_kafka_block b;

	test_uri(&uri, &cluster, "commit", 0, "?auto.offset.reset=earliest");
	open_member(&m, (struct pl_kafka_consumer_config){ .group = "f" });
	ok(next_block(&m, &b), "reads");
	rd_kafka_mock_push_request_errors(
		cluster.mock, OFFSET_COMMIT, 1, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
	eq(pl_kafka_consumer_commit(m.c, &at, 1, 60000, &diag), -EIO, "refused");
	ok(strstr(diag.text, "commit") != NULL, "and said: %s", diag.text);
	eq(pl_kafka_consumer_stats(m.c)->commits_failed, 1);
	eq(pl_kafka_consumer_commit(m.c, &at, 0, 60000, &diag), 0, "nothing to commit");
	rd_kafka_mock_broker_set_down(cluster.mock, 1);
	eq(pl_kafka_consumer_commit(m.c, &at, 1, 200, &diag), -ETIMEDOUT, "nobody answers: %s",
		diag.text);
	eq(pl_kafka_consumer_stats(m.c)->commits_failed, 2);
	rd_kafka_mock_broker_set_up(cluster.mock, 1);
	ok(next_block(&m, &b), "goes on when the broker is back");
	pl_kafka_consumer_close(m.c);
}

static void keep_offset(void *arg, uint32_t partition, int64_t offset, const char *note)
{
	(void)partition;
	(void)note;
	*(int64_t *)arg = offset;
}

/* A group that another broker takes over is asked for its positions again. */
static void test_no_coordinator(void)
{
	const struct pl_kafka_position at = { .partition = 0, .offset = 5 };
	struct member m = { .c = NULL };
	struct pl_kafka_block b;
	int64_t got = -1;

	test_uri(&uri, &cluster, "commit", 0, "?auto.offset.reset=earliest");
	open_member(&m, (struct pl_kafka_consumer_config){ .group = "moved" });
	ok(next_block(&m, &b), "reads");
	eq(pl_kafka_consumer_commit(m.c, &at, 1, 60000, &diag), 0, "commits");
	rd_kafka_mock_push_request_errors(cluster.mock, OFFSET_FETCH, 2,
		RD_KAFKA_RESP_ERR_NOT_COORDINATOR, RD_KAFKA_RESP_ERR_NOT_COORDINATOR);
	eq(pl_kafka_consumer_committed(m.c, &at, 1, 60000, keep_offset, &got, &diag), 0,
		"its position is known after two refusals");
	eq(got, 5);
	rd_kafka_mock_push_request_errors(
		cluster.mock, OFFSET_FETCH, 1, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
	eq(pl_kafka_consumer_committed(m.c, &at, 1, 60000, keep_offset, &got, &diag), -EIO,
		"a group that may not be read is not asked again: %s", diag.text);
	pl_kafka_consumer_close(m.c);
}

/* ---- groups ---- */

static unsigned int count_mine(const struct member *m)
{
	return m->mine[0] + m->mine[1] + m->mine[2] + m->mine[3];
}

static void read_some(struct member *m, uint8_t *seen, uint64_t n, uint64_t *bad)
{
	struct pl_kafka_block b;

	if (pl_kafka_consumer_recv(m->c, &b, 20) == 0 || b.records == NULL)
		return;
	*bad += check_block(&b, seen, n) != b.message.n || !m->mine[b.partition];
	m->next[b.partition] = b.offset + 1;
}

/* Until each of two members has half of the partitions. */
static void share(struct member two[2], uint8_t *seen, uint64_t n, uint64_t *bad)
{
	const uint64_t until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;

	while ((count_mine(&two[0]) != 2 || count_mine(&two[1]) != 2) &&
		pl_clock_mono_ns() < until) {
		read_some(&two[0], seen, n, bad);
		read_some(&two[1], seen, n, bad);
	}
}

static void test_group(void)
{
	const uint64_t n = 8000, until = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;
	uint8_t *seen = calloc(1, n);
	struct member two[2] = { { .c = NULL }, { .c = NULL } };
	uint64_t bad = 0;

	test_uri(&uri, &cluster, "group", PARTITIONS, "");
	produce("group", "?records=20", 0, n / 2);
	test_uri(&uri, &cluster, "group", 0,
		"?auto.offset.reset=earliest&session.timeout.ms=6000&heartbeat.interval.ms=200");
	open_member(&two[0], (struct pl_kafka_consumer_config){ .group = "g" });
	while (count_mine(&two[0]) < PARTITIONS && pl_clock_mono_ns() < until)
		read_some(&two[0], seen, n, &bad);
	eq(count_mine(&two[0]), PARTITIONS, "alone it has them all");
	open_member(&two[1], (struct pl_kafka_consumer_config){ .group = "g" });
	share(two, seen, n, &bad);
	eq(count_mine(&two[0]), 2, "the first keeps two");
	eq(count_mine(&two[1]), 2, "the second gets two");
	eq(two[0].revoked, 2, "no more than those were taken away");
	for (int i = 0; i < PARTITIONS; i++)
		ok(two[0].mine[i] != two[1].mine[i], "partition %d has one reader", i);
	produce("group", "?records=20", n / 2, n);
	while (unseen(seen, n) > 0 && pl_clock_mono_ns() < until) {
		read_some(&two[0], seen, n, &bad);
		read_some(&two[1], seen, n, &bad);
	}
	eq(unseen(seen, n), 0, "together they read every record");
	pl_kafka_consumer_close(two[1].c);
	while (count_mine(&two[0]) < PARTITIONS && pl_clock_mono_ns() < until)
		read_some(&two[0], seen, n, &bad);
	eq(count_mine(&two[0]), PARTITIONS, "those of a member that left come back");
	eq(bad, 0, "no block was wrong, or of a partition that was not the member's");
	pl_kafka_consumer_close(two[0].c);
	free(seen);
}

/* ---- configuration ---- */

static void test_properties(void)
{
	static const struct {
		const char *query, *names;
	} wrong[] = {
		{ "", "group.id" },
		{ "?group.id=g&fetch.min.bytes=x", "fetch.min.bytes" },
		{ "?group.id=g&enable.auto.commit=true", "enable.auto.commit" },
		{ "?group.id=g&enable.partition.eof=true", "enable.partition.eof" },
		{ "?group.id=g&partition.assignment.strategy=range", "assignment.strategy" },
		{ "?group.id=g&format=json", "format=json" },
		{ "?group.id=g&share.coffee=1", "share.coffee" },
	};
	char group[400];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		test_uri(&uri, &cluster, "records", 0, wrong[i].query);
		eq(refused((struct pl_kafka_consumer_config){ .wait_ms = 0 }), -EINVAL, "'%s'",
			wrong[i].query);
		ok(strstr(diag.text, wrong[i].names) != NULL, "is named: %s", diag.text);
	}
	memset(group, 'g', sizeof(group));
	group[PL_KAFKA_GROUP_MAX + 1] = '\0';
	eq(refused((struct pl_kafka_consumer_config){ .group = group }), -EINVAL, "a long group");
	eq(refused((struct pl_kafka_consumer_config){ .group = "" }), -EINVAL, "an empty one");
	rd_kafka_mock_topic_set_error(
		cluster.mock, "absent", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	test_uri(&uri, &cluster, "absent", 0, "?group.id=g");
	eq(refused((struct pl_kafka_consumer_config){ .wait_ms = 300 }), -ENOENT, "no topic");
	eq(pl_kafka_uri_parse(&uri, "kafka://127.0.0.1:1/t?group.id=g", NULL), 0);
	eq(refused((struct pl_kafka_consumer_config){ .wait_ms = 300 }), -ETIMEDOUT, "no broker");
	ok(strstr(diag.text, "127.0.0.1:1") != NULL, "which is named: %s", diag.text);
	pl_kafka_consumer_close(NULL);
}

int main(void)
{
	seed = pl_hash_seed();
	printf("# seed %" PRIu64 "\n", seed);
	cluster = test_cluster_start();
	test_records();
	test_hostile();
	test_end();
	test_commit();
	test_expired();
	test_questions();
	test_commit_fails();
	test_no_coordinator();
	test_group();
	test_properties();
	test_cluster_stop(&cluster);
	return pl_test_done();
}
