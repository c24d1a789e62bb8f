/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A Kafka consumer group of two members that count records by destination, against one member: the
 * same topic read from its beginning, 16 partitions of messages with 1024 records, by a new group
 * each time. Records per second by the clock on the wall, from the moment when every member has
 * partitions to the end of the topic: members read slowly until then. A member is a thread with a
 * consumer (whose client has threads of its own) and a query; the broker is another process. --size
 * says how many bytes of records there are; librdkafka's mock cluster keeps 5 MB a partition.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/hash.h"
#include "kafka/consumer.h"
#include "kafka/producer.h"
#include "query/query.h"
#include "tests/bench/bench.h"
#include "tests/bench/cluster.h"

#define PARTITIONS  16
#define MEMBERS_MAX 2
#define BYTES       (UINT64_C(64) << 20)
#define HOSTS       4096
#define WAIT_MS     10000
#define PAUSE_NS    50000
#define SLOW_NS     20000000 /* behind each message, until all have partitions */
#define PATIENCE_NS UINT64_C(60000000000)

struct group_bench;

struct member {
	struct group_bench *b;
	struct pl_kafka_uri uri;
	struct pl_query_run *run;
	atomic_uint partitions;
	int failed;
	uint64_t counted; /* by the query, all in all */
};

struct group_bench {
	struct pl_cluster cluster;
	struct pl_query *query;
	struct member members[MEMBERS_MAX];
	unsigned int n;            /* members of this run */
	unsigned int runs;         /* groups so far */
	uint64_t ends[PARTITIONS]; /* messages in each partition */
	uint64_t records;
	_Atomic uint64_t at[PARTITIONS];
	atomic_bool complete, stop;
	_Atomic uint64_t read, read_before; /* records; before the group was complete */
	_Atomic uint64_t began_ns;
};

/* ---- the topic ---- */

static int put_record(struct pl_kafka_producer *p, uint64_t hash, const struct pl_pkt64 *r)
{
	const uint64_t until = pl_clock_mono_ns() + PATIENCE_NS;

	while (pl_kafka_producer_put(p, hash, r) < 0) {
		if (pl_clock_mono_ns() > until)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
		pl_kafka_producer_turn(p, pl_clock_mono_ns());
	}
	return 0;
}

/* Each partition in its turn gets a whole message. */
static int fill(struct group_bench *b, struct pl_kafka_producer *p, uint64_t messages)
{
	int r = 0;

	for (uint64_t m = 0; r == 0 && m < messages; m++) {
		for (uint64_t i = 0; r == 0 && i < PL_KAFKA_RECORDS_DEFAULT; i++) {
			const uint64_t h = pl_hash_mix(m, i + 1);
			const uint8_t dst[4] = { 192, 0, (uint8_t)(h % HOSTS >> 8), (uint8_t)h };
			const struct pl_pkt64 record = {
				.ts_ns = UINT64_C(1800000000000000000) + m * UINT64_C(1000),
				.src = pl_addr_v4((const uint8_t *)&h),
				.dst = pl_addr_v4(dst),
				.proto = 6,
				.wire_len = (uint16_t)(60 + h % 1440),
			};

			r = put_record(p, m % PARTITIONS, &record);
		}
		b->ends[m % PARTITIONS]++;
		pl_kafka_producer_turn(p, pl_clock_mono_ns());
	}
	b->records = messages * PL_KAFKA_RECORDS_DEFAULT;
	return r;
}

static int make_topic(struct group_bench *b, uint64_t bytes)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	const struct pl_kafka_producer_config config = {
		.uri = uri, .kind = PL_FLAT_PKT64, .wait_ms = WAIT_MS, .age_ns = PATIENCE_NS
	};
	struct pl_kafka_producer *p = NULL;
	struct pl_kafka_producer_stats stats = { 0 };
	struct pl_diag diag = { .text = "" };
	int r = uri == NULL ? -ENOMEM : pl_cluster_uri(&b->cluster, uri, "?compression.codec=none");

	if (r == 0)
		r = pl_kafka_producer_open(&p, &config, &diag);
	if (r == 0)
		r = fill(b, p, bytes / (PL_KAFKA_RECORDS_DEFAULT * sizeof(struct pl_pkt64)));
	pl_kafka_producer_close(p, WAIT_MS, &stats);
	free(uri);
	if (r == 0 && stats.delivered != b->records)
		r = -EIO;
	if (r < 0)
		pl_complain("benchmark group: the topic cannot be filled: %s",
			diag.text[0] != '\0' ? diag.text : strerror(-r));
	return r;
}

/* ---- members ---- */

static void assigned(void *arg, struct pl_kafka_position *positions, uint32_t n)
{
	struct member *m = arg;

	(void)positions;
	atomic_fetch_add(&m->partitions, n);
}

static void revoked(void *arg, const uint32_t *partitions, uint32_t n, bool lost)
{
	struct member *m = arg;

	(void)partitions;
	(void)lost;
	atomic_fetch_sub(&m->partitions, n);
}

/* Whether the group is complete: the first who sees it begins the time. */
static bool is_complete(struct group_bench *b)
{
	unsigned int all = 0;

	if (atomic_load_explicit(&b->complete, memory_order_relaxed))
		return true;
	for (unsigned int i = 0; i < b->n; i++) {
		const unsigned int n = atomic_load(&b->members[i].partitions);

		if (n == 0)
			return false;
		all += n;
	}
	if (all != PARTITIONS)
		return false;
	if (!atomic_exchange(&b->complete, true)) {
		atomic_store(&b->read_before, atomic_load(&b->read));
		atomic_store(&b->began_ns, pl_clock_mono_ns());
	}
	return true;
}

static bool at_end(struct group_bench *b)
{
	for (unsigned int i = 0; i < PARTITIONS; i++) {
		if (atomic_load_explicit(&b->at[i], memory_order_relaxed) < b->ends[i])
			return false;
	}
	return true;
}

static void take(struct member *m, const struct pl_kafka_block *block)
{
	struct group_bench *b = m->b;

	if (block->partition >= PARTITIONS)
		return;
	(void)pl_query_feed(
		m->run, PL_FLAT_PKT64, block->records, block->message.n, block->partition);
	atomic_fetch_add(&b->read, block->message.n);
	if ((uint64_t)block->offset + 1 > atomic_load(&b->at[block->partition]))
		atomic_store(&b->at[block->partition], (uint64_t)block->offset + 1);
	if (!is_complete(b))
		nanosleep(&(struct timespec){ .tv_nsec = SLOW_NS }, NULL);
}

static void *be_member(void *arg)
{
	struct member *m = arg;
	struct group_bench *b = m->b;
	char group[96];
	const struct pl_kafka_consumer_config config = { .uri = &m->uri,
		.kind = PL_FLAT_PKT64,
		.group = group,
		.wait_ms = WAIT_MS,
		.assigned = assigned,
		.revoked = revoked,
		.arg = m };
	struct pl_kafka_consumer *c = NULL;
	struct pl_diag diag = { .text = "" };
	int r;

	snprintf(group, sizeof(group), "%s-%u", b->cluster.topic, b->runs);
	r = pl_kafka_consumer_open(&c, &config, &diag);
	if (r < 0)
		pl_complain("benchmark group: %s", diag.text);
	while (r == 0 && !atomic_load(&b->stop)) {
		struct pl_kafka_block block;

		if (pl_kafka_consumer_recv(c, &block, 20) == 1)
			take(m, &block);
		else
			(void)is_complete(b);
		if (at_end(b))
			atomic_store(&b->stop, true);
	}
	if (r == 0)
		pl_query_finish(m->run);
	/* The others may stop, too. */
	atomic_store(&b->stop, true);
	pl_kafka_consumer_close(c);
	m->failed = r;
	return NULL;
}

/* ---- runs ---- */

static void count(void *arg, const struct pl_query_row *row)
{
	struct member *m = arg;

	m->counted += row->values[1].u;
}

static int open_member(struct group_bench *b, unsigned int i)
{
	const struct pl_query_config config = { .partitions = PARTITIONS };
	struct member *m = &b->members[i];
	struct pl_diag diag = { .text = "" };
	int r = pl_cluster_uri(
		&b->cluster, &m->uri, "?auto.offset.reset=earliest&fetch.min.bytes=1");

	m->b = b;
	m->counted = 0;
	m->failed = 0;
	atomic_store(&m->partitions, 0);
	if (r == 0)
		r = pl_query_run_new(&m->run, b->query, &config, count, m, &diag);
	if (r < 0)
		pl_complain("benchmark group: %s", diag.text);
	return r;
}

static int check(struct group_bench *b)
{
	uint64_t counted = 0;

	for (unsigned int i = 0; i < b->n; i++) {
		if (b->members[i].failed < 0)
			return b->members[i].failed;
		counted += b->members[i].counted;
	}
	/* Records of a partition that moved before the group was complete come twice. */
	if (atomic_load(&b->complete) && counted >= b->records)
		return 0;
	pl_complain("benchmark group: %llu records of %llu were counted%s",
		(unsigned long long)counted, (unsigned long long)b->records,
		atomic_load(&b->complete) ? "" : "; the group was not complete before the end");
	return -EIO;
}

static int run_group(struct group_bench *b, unsigned int n, struct pl_bench_sample *ret)
{
	pthread_t threads[MEMBERS_MAX];
	unsigned int started = 0;
	uint64_t end;
	int r = 0;

	b->n = n;
	b->runs++;
	for (unsigned int i = 0; i < PARTITIONS; i++)
		atomic_store(&b->at[i], 0);
	atomic_store(&b->complete, false);
	atomic_store(&b->stop, false);
	atomic_store(&b->read, 0);
	for (unsigned int i = 0; r == 0 && i < n; i++)
		r = open_member(b, i);
	while (r == 0 && started < n) {
		r = -pthread_create(&threads[started], NULL, be_member, &b->members[started]);
		started += r == 0;
	}
	end = pl_clock_mono_ns() + PATIENCE_NS;
	while (r == 0 && !atomic_load(&b->stop) && pl_clock_mono_ns() < end)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	ret->ns = pl_clock_mono_ns() - atomic_load(&b->began_ns);
	ret->items = atomic_load(&b->read) - atomic_load(&b->read_before);
	atomic_store(&b->stop, true);
	while (started > 0)
		pthread_join(threads[--started], NULL);
	if (r == 0)
		r = check(b);
	for (unsigned int i = 0; i < n; i++) {
		pl_query_run_free(b->members[i].run);
		b->members[i].run = NULL;
	}
	return r;
}

static int two(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	(void)budget_ns; /* a run takes as long as the topic */
	return run_group(arg, 2, ret);
}

static int one(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	(void)budget_ns;
	return run_group(arg, 1, ret);
}

static int run(struct pl_bench_ctx *ctx)
{
	const struct pl_bench_case c = { .name = "group/2-members",
		.ceiling_name = "one member",
		.subject = two,
		.ceiling = one };
	struct group_bench *b = calloc(1, sizeof(*b));
	struct pl_bench_case bench = c;
	struct pl_diag diag = { .text = "" };
	int r;

	if (b == NULL)
		return -ENOMEM;
	bench.arg = b;
	r = pl_query_parse(&b->query,
		"SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1h) GROUP BY dst", &diag);
	if (r < 0)
		pl_complain("benchmark group: %s", diag.text);
	if (r == 0)
		r = pl_cluster_open(&b->cluster, ctx, "group", PARTITIONS);
	if (r == 0)
		r = make_topic(b, pl_bench_size_bytes(ctx, BYTES));
	if (r == 0)
		r = pl_bench_compare(ctx, &bench);
	pl_cluster_close(&b->cluster);
	pl_query_free(b->query);
	free(b);
	return r;
}

const struct pl_bench pl_bench_group = {
	.name = "group",
	.summary = "a Kafka consumer group of two members, against one",
	.run = run,
};
