/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and closes the Kafka clients of a member. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "service/query_member_parts.h"

#define BROKER_WAIT_MS 10000
#define MESSAGE_BYTES  256     /* beside the piece: of a message and its batch */
#define USUAL_BATCH    1000000 /* librdkafka's batch.size */

/* Names the topic of partial results; characters not allowed in topic names become '_'. */
static void name_topic(struct pl_query_member *m)
{
	if (m->o->partials != NULL) {
		snprintf(m->topic, sizeof(m->topic), "%s", m->o->partials);
		return;
	}
	snprintf(m->topic, sizeof(m->topic), "tm.partial.%s", m->o->group);
	for (char *c = m->topic; *c != '\0'; c++) {
		if (!isalnum((unsigned char)*c) && strchr("._-", *c) == NULL)
			*c = '_';
	}
}

static int read_uri(struct pl_query_member *m, struct pl_kafka_uri *uri, struct pl_diag *diag)
{
	int r = pl_kafka_uri_parse_topics(uri, m->o->uri, diag);

	if (r == 0)
		r = pl_kafka_uri_read_properties(uri, diag);
	/* With the newest, a group whose first member fails before its first commit would miss
	 * records. */
	if (r == 0)
		pl_kafka_uri_oldest(uri);
	return r;
}

static int open_writer(struct pl_query_member *m, const struct pl_kafka_uri *uri,
	uint32_t max_batch, struct pl_diag *diag)
{
	char id[PL_KAFKA_GROUP_MAX + 64], host[64] = "";
	const struct pl_kafka_writer_config config = { .uri = uri,
		.transactions = m->o->transactions ? id : NULL,
		.wait_ms = BROKER_WAIT_MS,
		.max_batch = max_batch };

	if (!m->two_stages && m->o->results == NULL)
		return 0;
	(void)gethostname(host, sizeof(host) - 1);
	snprintf(id, sizeof(id), "%s-%s-%d-%" PRIx64, m->o->group, host, getpid(),
		m->sender.attempt);
	return pl_kafka_writer_open(&m->writer, &config, diag);
}

/* Finds the largest message size, to which partial results are cut. Messages of one batch must fit
 * together, so the writer is opened again when a topic takes less than the usual batch. */
static int find_room(
	struct pl_query_member *m, const struct pl_kafka_uri *uri, struct pl_diag *diag)
{
	const uint32_t least = pl_query_partial_least(m->o->query) + MESSAGE_BYTES;
	const char *setting, *unused;
	uint32_t room = UINT32_MAX, rows = UINT32_MAX;

	if (m->two_stages)
		room = pl_kafka_writer_room(m->writer, m->topic, BROKER_WAIT_MS, &setting);
	if (room < least) {
		pl_diag_set(diag,
			"partial results of this question need messages of %" PRIu32
			" bytes, and topic '%s' takes %" PRIu32 ": raise %s",
			least, m->topic, room, setting);
		return -EMSGSIZE;
	}
	m->piece_max = room - MESSAGE_BYTES < PL_QUERY_PARTIAL_PIECE ? room - MESSAGE_BYTES
								     : PL_QUERY_PARTIAL_PIECE;
	if (m->o->results != NULL)
		rows = pl_kafka_writer_room(m->writer, m->o->results, BROKER_WAIT_MS, &unused);
	room = rows < room ? rows : room;
	if (room >= USUAL_BATCH)
		return 0;
	pl_kafka_writer_close(m->writer);
	m->writer = NULL;
	m->max_batch = room;
	return open_writer(m, uri, room, diag);
}

int pl_query_member_rewrite(struct pl_query_member *m, struct pl_diag *diag)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	int r = uri == NULL ? -ENOMEM : read_uri(m, uri, diag);

	pl_stats_add(&pl_kafka_writer_list, &m->written, pl_kafka_writer_stats(m->writer));
	m->written.aborted++;
	pl_kafka_writer_close(m->writer);
	m->writer = NULL;
	if (r == 0)
		r = open_writer(m, uri, m->max_batch, diag);
	pl_kafka_uri_free(uri);
	return r;
}

static int open_records(
	struct pl_query_member *m, const struct pl_kafka_uri *uri, struct pl_diag *diag)
{
	const struct pl_kafka_consumer_config config = { .uri = uri,
		.kind = m->o->kind,
		.group = m->o->group,
		.wait_ms = BROKER_WAIT_MS,
		.assigned = pl_query_member_assigned,
		.revoked = pl_query_member_revoked,
		.arg = m };
	int r = pl_kafka_consumer_open(&m->records, &config, diag);

	if (r < 0)
		return r;
	m->n_inputs = (uint32_t)pl_kafka_consumer_client(m->records)->partitions;
	if (m->n_inputs > PL_QUERY_INPUTS_MAX) {
		pl_diag_set(diag, "%s has %u partitions; %d is the limit", m->name, m->n_inputs,
			PL_QUERY_INPUTS_MAX);
		m->n_inputs = 0; /* no partition is taken while it closes */
		return -E2BIG;
	}
	m->inputs = calloc(m->n_inputs, sizeof(struct pl_query_input *));
	return m->inputs != NULL ? 0 : -ENOMEM;
}

static int open_partials(struct pl_query_member *m, struct pl_kafka_uri *uri, struct pl_diag *diag)
{
	char group[PL_KAFKA_GROUP_MAX + 16];
	const struct pl_kafka_consumer_config config = { .uri = uri,
		.raw = true,
		.group = group,
		.wait_ms = BROKER_WAIT_MS,
		.assigned = pl_query_partials_assigned,
		.revoked = pl_query_partials_revoked,
		.arg = m };
	int r;

	snprintf(group, sizeof(group), "%s.partials", m->o->group);
	uri->topic = uri->topics[0] = m->topic;
	uri->n_topics = 1;
	r = pl_kafka_consumer_open(&m->partials, &config, diag);
	if (r < 0)
		return r;
	m->n_outputs = (uint32_t)pl_kafka_consumer_client(m->partials)->partitions;
	if (m->n_outputs > PL_QUERY_INPUTS_MAX) {
		pl_diag_set(diag, "topic '%s' has %u partitions; %d is the limit", m->topic,
			m->n_outputs, PL_QUERY_INPUTS_MAX);
		m->n_outputs = 0;
		return -E2BIG;
	}
	m->outputs = calloc(m->n_outputs, sizeof(struct pl_query_output *));
	return m->outputs != NULL ? 0 : -ENOMEM;
}

uint32_t pl_query_member_places(const struct pl_kafka_uri *uri)
{
	return uri->spread && uri->n_topics == 1 ? 2 : uri->n_topics;
}

static void choose_split(struct pl_query_member *m, const struct pl_kafka_uri *uri)
{
	const uint32_t places = pl_query_member_places(uri);
	const enum pl_query_split split = pl_query_split(m->o->query, places, NULL);

	m->two_stages = split == PL_QUERY_TWO_STAGES;
	m->by_flow = places == 1 && split != pl_query_split(m->o->query, 2, NULL);
}

int pl_query_member_open(struct pl_query_member *m, struct pl_diag *diag)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	int r = -ENOMEM;

	if (uri != NULL)
		r = read_uri(m, uri, diag);
	if (r == 0)
		choose_split(m, uri);
	m->sender.plan = pl_query_plan_hash(m->o->query);
	m->sender.attempt = pl_hash_mix(pl_clock_real_ns(), pl_hash_seed()) | 1;
	name_topic(m);
	if (r == 0)
		r = open_writer(m, uri, 0, diag);
	if (r == 0)
		r = open_records(m, uri, diag);
	if (r == 0 && m->two_stages)
		r = pl_kafka_writer_topic(
			m->writer, m->topic, PL_QUERY_MEMBER_PARTIALS, BROKER_WAIT_MS, diag);
	if (r == 0 && m->writer != NULL)
		r = find_room(m, uri, diag);
	if (r == 0 && m->two_stages)
		r = open_partials(m, uri, diag);
	pl_kafka_uri_free(uri);
	return r;
}

void pl_query_member_close(struct pl_query_member *m)
{
	pl_kafka_consumer_close(m->records);
	pl_kafka_consumer_close(m->partials);
	pl_kafka_writer_close(m->writer);
	m->records = m->partials = NULL;
	m->writer = NULL;
	free(m->inputs);
	free(m->outputs);
	m->inputs = NULL;
	m->outputs = NULL;
	pl_buf_done(&m->key);
	pl_buf_done(&m->value);
}
