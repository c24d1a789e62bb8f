/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and closes a consumer, follows its share of the group's partitions, and commits. */
#include "kafka/consumer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "kafka/conf.h"
#include "kafka/consumer_state.h"

#define NOTE_MAX      64  /* bytes of a note that are read, with the NUL */
#define RETRY_MS      100 /* between two requests while the group has no coordinator */
#define PART          256 /* partitions in one call of a callback */
#define CLOSE_NS      UINT64_C(5000000000)
#define CLOSE_POLL_MS 50

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_kafka_consumer_stats, __VA_ARGS__)
#include "kafka/consumer_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_kafka_consumer_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

#define QUOTED(x) #x
#define TEXT(x)   QUOTED(x)

/* The queue is bounded by its bytes: librdkafka 2.0 stops fetching for a second whenever it has
 * reached the number of messages. */
static const struct pl_kafka_setting settings[] = {
	{ "client.id", "pathline" },
	{ "partition.assignment.strategy", "cooperative-sticky" },
	{ "enable.auto.commit", "false" },
	{ "enable.auto.offset.store", "false" },
	{ "enable.partition.eof", "true" },
	{ "fetch.min.bytes", "1000000" },
	{ "fetch.wait.max.ms", "100" },
	{ "fetch.message.max.bytes", "8388608" },
	{ "queued.min.messages", "10000000" },
	{ "queued.max.messages.kbytes", TEXT(PL_KAFKA_QUEUE_KBYTES) },
	{ "socket.nagle.disable", "true" },
	{ "statistics.interval.ms", "1000" },
	{ NULL, NULL },
};

static const struct pl_kafka_reserved reserved[] = {
	{ "bootstrap.servers", "brokers stand before the topic" },
	{ "metadata.broker.list", "brokers stand before the topic" },
	{ "partition.assignment.strategy", "members keep the partitions that are not moved" },
	{ "enable.auto.commit", "only records that are done with are committed" },
	{ "enable.auto.offset.store", "only records that are done with are committed" },
	{ "enable.partition.eof", "the end of a partition is always told" },
	{ "enabled_events", "events come by callback" },
	{ NULL, NULL },
};

/* ---- partitions of several topics ---- */

uint32_t pl_kafka_consumer_number(
	const struct pl_kafka_consumer *c, const char *topic, int32_t partition)
{
	if (c->n_topics == 1)
		return (uint32_t)partition;
	for (unsigned int i = 0; i < c->n_topics; i++) {
		if (strcmp(c->topics[i].name, topic) == 0 && partition >= 0 &&
			(uint32_t)partition < c->topics[i].n)
			return c->topics[i].first + (uint32_t)partition;
	}
	return PL_KAFKA_UNKNOWN;
}

static const struct pl_kafka_source_topic *topic_of(
	const struct pl_kafka_consumer *c, uint32_t number)
{
	unsigned int i = c->n_topics - 1;

	while (i > 0 && number < c->topics[i].first)
		i--;
	return &c->topics[i];
}

/* ---- what librdkafka calls, within recv and close ---- */

static void tell_assigned(
	struct pl_kafka_consumer *c, rd_kafka_topic_partition_list_t *list, int from, int n)
{
	struct pl_kafka_position positions[PART] = { { 0 } };
	int of[PART], known = 0;

	for (int i = from; i < from + n; i++) {
		const rd_kafka_topic_partition_t *p = &list->elems[i];
		const uint32_t number = pl_kafka_consumer_number(c, p->topic, p->partition);

		if (number == PL_KAFKA_UNKNOWN)
			continue;
		pl_kafka_consumer_expect(c, number, PL_KAFKA_UNEXPECTED);
		positions[known] = (struct pl_kafka_position){ .partition = number,
			.offset = PL_KAFKA_COMMITTED };
		of[known++] = i;
	}
	if (c->config.assigned != NULL && known > 0)
		c->config.assigned(c->config.arg, positions, (uint32_t)known);
	for (int i = 0; i < known; i++) {
		if (positions[i].offset == PL_KAFKA_COMMITTED)
			continue;
		list->elems[of[i]].offset = positions[i].offset;
		if (positions[i].offset >= 0)
			pl_kafka_consumer_expect(c, positions[i].partition, positions[i].offset);
	}
	c->stats.assignments += (uint64_t)n;
}

static void tell_revoked(
	struct pl_kafka_consumer *c, const rd_kafka_topic_partition_list_t *list, int from, int n)
{
	uint32_t partitions[PART];
	int known = 0;

	for (int i = from; i < from + n; i++) {
		const rd_kafka_topic_partition_t *p = &list->elems[i];
		const uint32_t number = pl_kafka_consumer_number(c, p->topic, p->partition);

		if (number == PL_KAFKA_UNKNOWN)
			continue;
		partitions[known++] = number;
		pl_kafka_consumer_expect(c, number, PL_KAFKA_UNEXPECTED);
	}
	if (c->config.revoked != NULL && known > 0)
		c->config.revoked(c->config.arg, partitions, (uint32_t)known,
			rd_kafka_assignment_lost(c->rk) != 0);
	c->stats.revocations += (uint64_t)n;
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err,
	rd_kafka_topic_partition_list_t *list, void *opaque)
{
	struct pl_kafka_consumer *c = opaque;
	const bool assign = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
	rd_kafka_error_t *error;

	for (int from = 0; from < list->cnt; from += PART) {
		const int n = list->cnt - from < PART ? list->cnt - from : PART;

		if (assign)
			tell_assigned(c, list, from, n);
		else
			tell_revoked(c, list, from, n);
	}
	c->revoked = c->revoked || !assign;
	error = assign ? rd_kafka_incremental_assign(rk, list)
		       : rd_kafka_incremental_unassign(rk, list);
	if (error != NULL) {
		c->stats.errors++;
		pl_diag_set(&c->trouble, "%s", rd_kafka_error_string(error));
		rd_kafka_error_destroy(error);
	}
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque)
{
	struct pl_kafka_consumer *c = opaque;
	char text[256] = "";

	c->stats.errors++;
	if (err == RD_KAFKA_RESP_ERR__FATAL)
		rd_kafka_fatal_error(rk, text, sizeof(text));
	pl_diag_set(&c->trouble, "%s", text[0] != '\0' ? text : reason);
}

static int on_statistics(rd_kafka_t *rk, char *json, size_t len, void *opaque)
{
	struct pl_kafka_consumer *c = opaque;

	(void)rk;
	/* The statistics hold only the topics that the consumer reads. */
	if (pl_kafka_client_read(&c->client, NULL, json, len) < 0)
		pl_diag_set(&c->trouble, "librdkafka's statistics are not readable");
	return 0; /* librdkafka frees the text */
}

/* Returns the error of the whole answer, else the first error of a partition in it. */
static rd_kafka_resp_err_t error_of(
	rd_kafka_resp_err_t err, const rd_kafka_topic_partition_list_t *list)
{
	for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && list != NULL && i < list->cnt; i++)
		err = list->elems[i].err;
	return err;
}

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err,
	rd_kafka_topic_partition_list_t *list, void *opaque)
{
	struct pl_kafka_consumer *c = opaque;

	(void)rk;
	err = error_of(err, list);
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		return;
	c->stats.commits_failed++;
	pl_diag_set(&c->trouble, "commit: %s", rd_kafka_err2str(err));
}

/* ---- open ---- */

static rd_kafka_conf_t *make_conf(
	struct pl_kafka_consumer *c, const char *group, struct pl_diag *diag)
{
	rd_kafka_conf_t *conf;
	char text[256];

	if (group == NULL || *group == '\0' || strlen(group) > PL_KAFKA_GROUP_MAX) {
		pl_diag_set(diag, "the consumer's group is %s: property group.id has 1 to %d bytes",
			group == NULL ? "missing" : "not a name", PL_KAFKA_GROUP_MAX);
		return NULL;
	}
	conf = pl_kafka_conf_new(c->config.uri, settings, reserved, diag);
	if (conf == NULL)
		return NULL;
	if (rd_kafka_conf_set(conf, "group.id", group, text, sizeof(text)) != RD_KAFKA_CONF_OK) {
		pl_diag_set(diag, "property 'group.id': %s", text);
		rd_kafka_conf_destroy(conf);
		return NULL;
	}
	snprintf(text, sizeof(text), "%" PRIu32, c->config.gather_ms);
	if (c->config.gather_ms > 0 &&
		pl_kafka_uri_property(c->config.uri, "fetch.wait.max.ms") == NULL)
		rd_kafka_conf_set(conf, "fetch.wait.max.ms", text, NULL, 0);
	rd_kafka_conf_set_opaque(conf, c);
	rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
	rd_kafka_conf_set_error_cb(conf, on_error);
	rd_kafka_conf_set_stats_cb(conf, on_statistics);
	rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
	return conf;
}

static int find_topic(struct pl_kafka_consumer *c, struct pl_kafka_source_topic *t,
	unsigned int wait_ms, struct pl_diag *diag)
{
	rd_kafka_topic_t *topic = rd_kafka_topic_new(c->rk, t->name, NULL);
	unsigned int n = 0;
	int r;

	if (topic == NULL)
		return pl_diag_fail(diag, -EINVAL, "topic '%s': %s", t->name,
			rd_kafka_err2str(rd_kafka_last_error()));
	r = pl_kafka_conf_partitions(
		c->rk, topic, c->config.uri->brokers, wait_ms, &c->trouble, &n, diag);
	rd_kafka_topic_destroy(topic);
	t->n = n;
	return r;
}

/* Finds the partitions of all topics; wait_ms bounds the sum of their waits. */
static int find_topics(struct pl_kafka_consumer *c, struct pl_diag *diag)
{
	const uint64_t ms = 1000000, until = pl_clock_mono_ns() + c->config.wait_ms * ms;
	unsigned int left = c->config.wait_ms;
	uint32_t sum = 0;
	int r = 0;

	if (c->config.wait_ms == 0 && c->n_topics == 1)
		return 0;
	for (unsigned int i = 0; r == 0 && i < c->n_topics; i++) {
		const uint64_t now = pl_clock_mono_ns();

		if (i > 0)
			left = now < until ? (unsigned int)((until - now) / ms) : 0;
		r = find_topic(c, &c->topics[i], left, diag);
		c->topics[i].first = sum;
		sum += c->topics[i].n;
	}
	c->client.partitions = sum;
	return r;
}

static int subscribe(struct pl_kafka_consumer *c, struct pl_diag *diag)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)c->n_topics);
	rd_kafka_resp_err_t err;

	for (unsigned int i = 0; i < c->n_topics; i++)
		rd_kafka_topic_partition_list_add(list, c->topics[i].name, RD_KAFKA_PARTITION_UA);
	err = rd_kafka_subscribe(c->rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		return 0;
	return pl_diag_fail(
		diag, -EINVAL, "topic '%s': %s", c->topics[0].name, rd_kafka_err2str(err));
}

static int open_client(struct pl_kafka_consumer *c, const char *group, struct pl_diag *diag)
{
	rd_kafka_conf_t *conf = make_conf(c, group, diag);
	char text[256] = "";
	int r;

	if (conf == NULL)
		return -EINVAL;
	c->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
	if (c->rk == NULL) {
		rd_kafka_conf_destroy(conf);
		return pl_diag_fail(diag, -EINVAL, "%s", text);
	}
	r = find_topics(c, diag);
	if (r < 0)
		return r;
	rd_kafka_poll_set_consumer(c->rk);
	c->queue = rd_kafka_queue_get_consumer(c->rk);
	return subscribe(c, diag);
}

int pl_kafka_consumer_open(struct pl_kafka_consumer **ret,
	const struct pl_kafka_consumer_config *config, struct pl_diag *diag)
{
	struct pl_kafka_consumer *c;
	int r;

	if (config->uri->format > PL_KAFKA_FORMAT_ROWBINARY)
		return pl_diag_fail(diag, -EINVAL,
			"format=%s in the URI: only records of fixed size are read",
			pl_kafka_format_name(config->uri->format));
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return pl_diag_fail(diag, -ENOMEM, "out of memory");
	c->config = *config;
	c->n_topics = config->uri->n_topics;
	for (unsigned int i = 0; i < c->n_topics; i++)
		snprintf(
			c->topics[i].name, sizeof(c->topics[i].name), "%s", config->uri->topics[i]);
	c->aligned = malloc((size_t)PL_KAFKA_RECORDS_MAX * pl_flat(config->kind)->size);
	if (c->aligned == NULL) {
		r = pl_diag_fail(diag, -ENOMEM, "out of memory");
	} else {
		r = open_client(c,
			config->group != NULL ? config->group
					      : pl_kafka_uri_property(config->uri, "group.id"),
			diag);
	}
	if (r < 0) {
		pl_kafka_consumer_close(c);
		return r;
	}
	c->config.uri = NULL;
	c->config.group = NULL;
	*ret = c;
	return 0;
}

/* Leaves the group. Returns false when librdkafka did not finish in time, as 2.0.2 at times while
 * partitions move; other members get these after session.timeout.ms. */
static bool leave(struct pl_kafka_consumer *c)
{
	const uint64_t until = pl_clock_mono_ns() + CLOSE_NS;
	rd_kafka_queue_t *served = rd_kafka_queue_new(c->rk);
	rd_kafka_error_t *error = rd_kafka_consumer_close_queue(c->rk, served);
	bool closed = error == NULL;

	if (error != NULL)
		rd_kafka_error_destroy(error);
	while (closed && !rd_kafka_consumer_closed(c->rk)) {
		/* The queue also gets messages that were still being fetched. */
		rd_kafka_message_t *message = rd_kafka_consume_queue(served, CLOSE_POLL_MS);

		if (message != NULL)
			rd_kafka_message_destroy(message);
		closed = pl_clock_mono_ns() < until;
	}
	rd_kafka_queue_destroy(served);
	return closed;
}

void pl_kafka_consumer_close(struct pl_kafka_consumer *c)
{
	bool closed = true;

	if (c == NULL)
		return;
	pl_kafka_consumer_forget(c);
	if (c->queue != NULL) {
		closed = leave(c);
		rd_kafka_queue_destroy(c->queue);
	}
	/* A client that did not close cannot be freed without waiting for it. Its callbacks may
	 * refer to the consumer: both stay allocated. */
	if (!closed)
		return;
	if (c->rk != NULL)
		rd_kafka_destroy(c->rk);
	free(c->expected);
	free(c->aligned);
	free(c);
}

static void *leave_and_free(void *consumer)
{
	pl_kafka_consumer_close(consumer);
	return NULL;
}

void pl_kafka_consumer_leave(struct pl_kafka_consumer *c)
{
	pthread_t thread;

	if (c == NULL)
		return;
	c->config.assigned = NULL;
	c->config.revoked = NULL;
	if (pl_thread_start(&thread, "pl-leave", leave_and_free, c) == 0)
		pthread_detach(thread);
	else
		pl_kafka_consumer_close(c);
}

/* ---- commit ---- */

struct answer {
	bool came;
	rd_kafka_resp_err_t err;
};

static void on_answer(
	rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *arg)
{
	struct answer *answer = arg;

	(void)rk;
	answer->came = true;
	answer->err = error_of(err, list);
}

/* Commits with a time limit; rd_kafka_commit has none. */
static int commit_and_wait(struct pl_kafka_consumer *c, rd_kafka_topic_partition_list_t *list,
	uint32_t wait_ms, struct pl_diag *diag)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(c->rk);
	struct answer answer = { .came = false };
	rd_kafka_resp_err_t err = rd_kafka_commit_queue(c->rk, list, queue, on_answer, &answer);

	if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		rd_kafka_queue_poll_callback(queue, wait_ms > INT32_MAX ? INT32_MAX : (int)wait_ms);
		err = answer.came ? answer.err : RD_KAFKA_RESP_ERR__TIMED_OUT;
	}
	/* Without the queue an answer that comes later is ignored. */
	rd_kafka_queue_destroy(queue);
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		return 0;
	c->stats.commits_failed++;
	if (!answer.came && err == RD_KAFKA_RESP_ERR__TIMED_OUT)
		return pl_diag_fail(
			diag, -ETIMEDOUT, "commit: no broker answered within %u ms", wait_ms);
	return pl_diag_fail(diag, -EIO, "commit: %s", rd_kafka_err2str(err));
}

rd_kafka_topic_partition_list_t *pl_kafka_consumer_list_of(
	const struct pl_kafka_consumer *c, const struct pl_kafka_position *positions, uint32_t n)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)n);

	for (uint32_t i = 0; i < n; i++) {
		const struct pl_kafka_source_topic *topic = topic_of(c, positions[i].partition);
		rd_kafka_topic_partition_t *to = rd_kafka_topic_partition_list_add(
			list, topic->name, (int32_t)(positions[i].partition - topic->first));

		to->offset = positions[i].offset;
		to->metadata = positions[i].note != NULL ? strdup(positions[i].note) : NULL;
		to->metadata_size = to->metadata != NULL ? strlen(positions[i].note) : 0;
	}
	return list;
}

/* Returns true for errors that end without action, as when another broker takes over the group. */
static bool passes(rd_kafka_resp_err_t err)
{
	return err == RD_KAFKA_RESP_ERR_NOT_COORDINATOR ||
	       err == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
	       err == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
	       err == RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT ||
	       err == RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT || err == RD_KAFKA_RESP_ERR__WAIT_COORD ||
	       err == RD_KAFKA_RESP_ERR__TRANSPORT;
}

int pl_kafka_consumer_committed(struct pl_kafka_consumer *c,
	const struct pl_kafka_position *positions, uint32_t n, uint32_t wait_ms,
	pl_kafka_committed *each, void *arg, struct pl_diag *diag)
{
	rd_kafka_topic_partition_list_t *list = pl_kafka_consumer_list_of(c, positions, n);
	const uint64_t ms = 1000000, until = pl_clock_mono_ns() + wait_ms * ms;
	rd_kafka_resp_err_t err;
	char note[NOTE_MAX];

	for (;;) {
		const uint64_t now = pl_clock_mono_ns();

		err = rd_kafka_committed(c->rk, list, now < until ? (int)((until - now) / ms) : 0);
		err = error_of(err, list);
		if (!passes(err) || pl_clock_mono_ns() + RETRY_MS * ms >= until)
			break;
		usleep(RETRY_MS * 1000);
	}
	for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++) {
		const rd_kafka_topic_partition_t *of = &list->elems[i];
		const uint32_t number = pl_kafka_consumer_number(c, of->topic, of->partition);

		if (of->offset >= 0)
			pl_kafka_consumer_expect(c, number, of->offset);
		if (each == NULL)
			continue;
		snprintf(note, sizeof(note), "%.*s", (int)of->metadata_size,
			of->metadata != NULL ? (const char *)of->metadata : "");
		each(arg, number, of->offset >= 0 ? of->offset : PL_KAFKA_COMMITTED, note);
	}
	rd_kafka_topic_partition_list_destroy(list);
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
		return 0;
	return pl_diag_fail(
		diag, -EIO, "the committed position of the group: %s", rd_kafka_err2str(err));
}

int pl_kafka_consumer_commit(struct pl_kafka_consumer *c, const struct pl_kafka_position *positions,
	uint32_t n, uint32_t wait_ms, struct pl_diag *diag)
{
	rd_kafka_topic_partition_list_t *list;
	rd_kafka_resp_err_t err;
	int r = 0;

	if (n == 0)
		return 0;
	list = pl_kafka_consumer_list_of(c, positions, n);
	c->stats.commits++;
	if (wait_ms > 0) {
		r = commit_and_wait(c, list, wait_ms, diag);
	} else {
		err = rd_kafka_commit(c->rk, list, 1);
		if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
			c->stats.commits_failed++;
			r = pl_diag_fail(diag, -EIO, "commit: %s", rd_kafka_err2str(err));
		}
	}
	rd_kafka_topic_partition_list_destroy(list);
	return r;
}

/* ---- state for callers ---- */

const struct pl_kafka_consumer_stats *pl_kafka_consumer_stats(const struct pl_kafka_consumer *c)
{
	return &c->stats;
}

const struct pl_kafka_client *pl_kafka_consumer_client(const struct pl_kafka_consumer *c)
{
	return &c->client;
}

const char *pl_kafka_consumer_trouble(const struct pl_kafka_consumer *c)
{
	return c->trouble.text;
}

bool pl_kafka_consumer_cut_off(const struct pl_kafka_consumer *c)
{
	return pl_kafka_consumer_client(c)->brokers_up == 0 ||
	       c->stats.assignments == c->stats.revocations;
}
