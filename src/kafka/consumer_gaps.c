/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds messages that a topic deleted before they were read. When a position is not in the topic
 * any more, librdkafka silently continues where auto.offset.reset says.
 *
 * A message behind the expected offset is no proof: offsets are also missing where a transaction
 * ended or was aborted, and in compacted topics. The proof is the offset at which the topic begins.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "kafka/consumer.h"
#include "kafka/consumer_state.h"

#define BEGIN_NS   UINT64_C(1000000000) /* for answers of brokers, in each span of: */
#define SPAN_NS    UINT64_C(5000000000)
#define PLACES_MAX 65536 /* partitions that are watched */

void pl_kafka_consumer_expect(struct pl_kafka_consumer *c, uint32_t partition, int64_t offset)
{
	if (partition >= PLACES_MAX)
		return;
	if (partition >= c->n_expected) {
		const uint32_t n = partition + 64;
		int64_t *more = realloc(c->expected, n * sizeof(*more));

		if (more == NULL)
			return;
		for (uint32_t i = c->n_expected; i < n; i++)
			more[i] = PL_KAFKA_UNEXPECTED;
		c->expected = more;
		c->n_expected = n;
	}
	c->expected[partition] = offset;
}

/* Asks a broker where the partition begins; -1: it does not say, or brokers took all the time for it.
 * The thread may have other work. */
static int64_t ask(struct pl_kafka_consumer *c, const rd_kafka_message_t *m)
{
	const uint64_t now = pl_clock_mono_ns();
	int64_t low = -1, high = -1;
	int left_ms;

	if (now - c->span_ns >= SPAN_NS) {
		c->span_ns = now;
		c->asked_ns = 0;
	}
	left_ms = c->asked_ns < BEGIN_NS ? (int)((BEGIN_NS - c->asked_ns) / 1000000) : 0;
	if (left_ms == 0 ||
		rd_kafka_query_watermark_offsets(c->rk, rd_kafka_topic_name(m->rkt), m->partition,
			&low, &high, left_ms) != RD_KAFKA_RESP_ERR_NO_ERROR)
		low = -1;
	c->asked_ns += pl_clock_mono_ns() - now;
	return low;
}

/* Returns the offset at which the partition begins, or -1. The client's own copy may be old: it
 * suffices when it is behind `expected`. The end of a transaction takes one offset, so a gap of one
 * is not worth a question to the broker: retention deletes whole files. */
static int64_t begin_of(struct pl_kafka_consumer *c, const rd_kafka_message_t *m, int64_t expected)
{
	const char *topic = rd_kafka_topic_name(m->rkt);
	int64_t low = -1, high = -1;

	if (rd_kafka_get_watermark_offsets(c->rk, topic, m->partition, &low, &high) ==
			RD_KAFKA_RESP_ERR_NO_ERROR &&
		low > expected)
		return low;
	return m->offset - expected > 1 ? ask(c, m) : -1;
}

void pl_kafka_consumer_reach(
	struct pl_kafka_consumer *c, const rd_kafka_message_t *m, uint32_t partition)
{
	const int64_t expected =
		partition < c->n_expected ? c->expected[partition] : PL_KAFKA_UNEXPECTED;
	int64_t begin = INT64_MIN;

	if (expected != PL_KAFKA_UNEXPECTED && m->offset > expected)
		begin = begin_of(c, m, expected);
	/* Offsets between the beginning of the topic and the message were skipped, not deleted. */
	begin = begin < m->offset ? begin : m->offset;
	if (begin > expected) {
		c->stats.expired += (uint64_t)(begin - expected);
		pl_diag_set(&c->gone,
			"topic '%s', partition %" PRId32 ": %" PRId64
			" messages were deleted before they were read (retention)",
			rd_kafka_topic_name(m->rkt), m->partition, begin - expected);
	}
	pl_kafka_consumer_expect(c, partition,
		m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF ? m->offset : m->offset + 1);
}

const char *pl_kafka_consumer_expired(struct pl_kafka_consumer *c)
{
	const bool more = c->stats.expired != c->told_expired;

	c->told_expired = c->stats.expired;
	return more ? c->gone.text : NULL;
}
