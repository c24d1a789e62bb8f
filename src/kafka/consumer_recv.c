/* SPDX-License-Identifier: BSD-2-Clause */
/* Fetches messages, checks them, and lends their values to the caller. */
#include <errno.h>
#include <string.h>

#include "kafka/consumer.h"
#include "kafka/consumer_state.h"

void pl_kafka_consumer_forget(struct pl_kafka_consumer *c)
{
	if (c->lent != NULL)
		rd_kafka_message_destroy(c->lent);
	c->lent = NULL;
	for (; c->next < c->n_burst; c->next++)
		rd_kafka_message_destroy(c->burst[c->next]);
	c->next = c->n_burst = 0;
}

uint64_t pl_kafka_consumer_bad(const struct pl_kafka_consumer_stats *stats)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < pl_kafka_consumer_list.n; i++) {
		const struct pl_stat *row = &pl_kafka_consumer_list.rows[i];

		if (strncmp(row->name, "bad_", 4) == 0)
			sum += pl_stat_read(row, stats);
	}
	return sum;
}

/* Returns true for a message and for the end of a partition, false for an error of the client. */
static bool is_of_partition(const rd_kafka_message_t *m)
{
	return m->err == RD_KAFKA_RESP_ERR_NO_ERROR || m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
}

/* Drops messages in the burst of partitions that the group took away. The member that has these
 * partitions now reads the messages too. */
static void drop_stale(struct pl_kafka_consumer *c)
{
	rd_kafka_topic_partition_list_t *mine = NULL;
	unsigned int kept = 0;

	if (rd_kafka_assignment(c->rk, &mine) != RD_KAFKA_RESP_ERR_NO_ERROR)
		mine = NULL;
	for (unsigned int i = 0; i < c->n_burst; i++) {
		rd_kafka_message_t *m = c->burst[i];

		if (is_of_partition(m) && (mine == NULL || rd_kafka_topic_partition_list_find(mine,
								   rd_kafka_topic_name(m->rkt),
								   m->partition) == NULL)) {
			c->stats.received += m->err == RD_KAFKA_RESP_ERR_NO_ERROR;
			c->stats.stale += m->err == RD_KAFKA_RESP_ERR_NO_ERROR;
			rd_kafka_message_destroy(m);
		} else {
			c->burst[kept++] = m;
		}
	}
	c->n_burst = kept;
	if (mine != NULL)
		rd_kafka_topic_partition_list_destroy(mine);
}

static void drop_fetched(
	struct pl_kafka_consumer *c, const rd_kafka_topic_partition_list_t *partitions)
{
	unsigned int kept = c->next;

	for (unsigned int i = c->next; i < c->n_burst; i++) {
		rd_kafka_message_t *m = c->burst[i];

		if (is_of_partition(m) &&
			rd_kafka_topic_partition_list_find(
				partitions, rd_kafka_topic_name(m->rkt), m->partition) != NULL)
			rd_kafka_message_destroy(m);
		else
			c->burst[kept++] = m;
	}
	c->n_burst = kept;
}

int pl_kafka_consumer_seek(struct pl_kafka_consumer *c, const struct pl_kafka_position *positions,
	uint32_t n, uint32_t wait_ms, struct pl_diag *diag)
{
	rd_kafka_topic_partition_list_t *list;
	rd_kafka_error_t *error;
	int r = 0;

	if (n == 0)
		return 0;
	list = pl_kafka_consumer_list_of(c, positions, n);
	drop_fetched(c, list);
	error = rd_kafka_seek_partitions(c->rk, list, (int)wait_ms);
	if (error != NULL) {
		pl_diag_set(diag, "going back in a topic: %s", rd_kafka_error_string(error));
		rd_kafka_error_destroy(error);
		r = -EIO;
	}
	for (uint32_t i = 0; r == 0 && i < n; i++)
		pl_kafka_consumer_expect(c, positions[i].partition, positions[i].offset);
	for (int i = 0; r == 0 && i < list->cnt; i++) {
		if (list->elems[i].err == RD_KAFKA_RESP_ERR_NO_ERROR)
			continue;
		r = pl_diag_fail(diag, -EIO, "going back in topic '%s': %s", list->elems[i].topic,
			rd_kafka_err2str(list->elems[i].err));
	}
	rd_kafka_topic_partition_list_destroy(list);
	return r;
}

/* A call for many messages waits until it has all of them. So the first call waits for one, and the
 * second takes the messages that are ready. Within the second call partitions may be taken away,
 * but not come back, which needs another rebalance. */
static void fetch(struct pl_kafka_consumer *c, uint32_t timeout_ms)
{
	ssize_t n;

	c->next = c->n_burst = 0;
	c->burst[0] =
		rd_kafka_consumer_poll(c->rk, timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms);
	if (c->burst[0] == NULL)
		return;
	c->revoked = false;
	n = rd_kafka_consume_batch_queue(c->queue, 0, c->burst + 1, PL_KAFKA_BURST - 1);
	c->n_burst = 1 + (n > 0 ? (unsigned int)n : 0);
	if (c->revoked)
		drop_stale(c);
}

static uint64_t *counter_of(struct pl_kafka_consumer_stats *s, enum pl_kafka_verdict verdict)
{
	switch (verdict) {
	case PL_KAFKA_GOOD:
		return &s->good;
	case PL_KAFKA_NO_FORMAT:
		return &s->bad_no_format;
	case PL_KAFKA_OTHER_FORMAT:
		return &s->bad_other_format;
	case PL_KAFKA_BAD_LENGTH:
		return &s->bad_length;
	case PL_KAFKA_TOO_LONG:
		return &s->bad_too_long;
	case PL_KAFKA_BAD_COUNT:
		return &s->bad_count;
	case PL_KAFKA_BAD_HEADER:
	case PL_KAFKA_VERDICTS:
		break;
	}
	return &s->bad_header;
}

static enum pl_kafka_verdict look(const struct pl_kafka_consumer *c, const rd_kafka_message_t *m,
	struct pl_kafka_reading *reading)
{
	rd_kafka_headers_t *headers;
	const char *name;
	const void *value;
	size_t len;

	pl_kafka_reading_init(reading);
	if (rd_kafka_message_headers(m, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
		for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &len) ==
				   RD_KAFKA_RESP_ERR_NO_ERROR;
			i++)
			pl_kafka_reading_header(reading, name, value, len);
	}
	if (c->config.raw)
		return pl_kafka_reading_format(reading, c->config.format);
	return pl_kafka_reading_end(reading, c->config.kind, m->payload != NULL ? m->len : 0);
}

/* Puts the value of a good message into *ret, copied when it is not aligned to 8 bytes. */
static void lend(struct pl_kafka_consumer *c, const rd_kafka_message_t *m,
	const struct pl_kafka_message *message, struct pl_kafka_block *ret)
{
	rd_kafka_timestamp_type_t type;

	c->stats.records += message->n;
	c->stats.bytes += m->len;
	ret->time_ms = rd_kafka_message_timestamp(m, &type);
	ret->appended = type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME;
	ret->message = *message;
	ret->records = m->payload != NULL ? m->payload : "";
	ret->len = m->payload != NULL ? m->len : 0;
	if (!c->config.raw && (uintptr_t)m->payload % 8 != 0) {
		c->stats.copied++;
		memcpy(c->aligned, m->payload, m->len);
		ret->records = c->aligned;
	}
}

/* Fills *ret from a message or the end of a partition; returns false for an error of the client,
 * which is counted. */
static bool take(
	struct pl_kafka_consumer *c, const rd_kafka_message_t *m, struct pl_kafka_block *ret)
{
	struct pl_kafka_reading reading;
	enum pl_kafka_verdict verdict = PL_KAFKA_GOOD;

	if (!is_of_partition(m)) {
		c->stats.errors++;
		pl_diag_set(&c->trouble, "%s", rd_kafka_message_errstr(m));
		return false;
	}
	*ret = (struct pl_kafka_block){ .partition = pl_kafka_consumer_number(
						c, rd_kafka_topic_name(m->rkt), m->partition),
		.offset = m->offset,
		.next = m->offset + 1,
		.time_ms = -1 };
	if (ret->partition != PL_KAFKA_UNKNOWN)
		pl_kafka_consumer_reach(c, m, ret->partition);
	if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
		ret->next = m->offset;
		ret->at_end = true;
		return true;
	}
	if (c->config.raw && c->config.format == NULL)
		pl_kafka_reading_init(&reading);
	else
		verdict = look(c, m, &reading);
	c->stats.received++;
	(*counter_of(&c->stats, verdict))++;
	if (verdict == PL_KAFKA_GOOD)
		lend(c, m, &reading.message, ret);
	return true;
}

int pl_kafka_consumer_recv(
	struct pl_kafka_consumer *c, struct pl_kafka_block *ret, uint32_t timeout_ms)
{
	if (c->lent != NULL)
		rd_kafka_message_destroy(c->lent);
	c->lent = NULL;
	if (c->next == c->n_burst)
		fetch(c, timeout_ms);
	while (c->next < c->n_burst) {
		rd_kafka_message_t *m = c->burst[c->next++];

		if (take(c, m, ret)) {
			c->lent = m;
			return 1;
		}
		rd_kafka_message_destroy(m);
	}
	return 0;
}

uint64_t pl_kafka_block_clock(const struct pl_kafka_block *block, uint64_t real_ns)
{
	const uint64_t ms = 1000000;

	if (!block->appended || block->time_ms < 0 || (uint64_t)block->time_ms >= real_ns / ms)
		return real_ns;
	return (uint64_t)block->time_ms * ms + ms - 1;
}
