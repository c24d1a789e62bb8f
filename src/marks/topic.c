/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads block records from a topic. */
#include "marks/topic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/consumer.h"
#include "runtime/kafka_files.h"

#define MESSAGES_A_TURN 64
#define GATHER_MS       10        /* in the brokers: the domain waits half a second for records */
#define HAS_SEQUENCE    (1u << 3) /* bit in pl_kafka_message.given */

/* ---- messages ---- */

/* Returns the sender of a message; NULL: there are too many. */
static struct pl_marks_sender *sender_of(
	struct pl_marks_topic *t, const struct pl_kafka_message *m, uint32_t point)
{
	for (unsigned int i = 0; i < t->n_senders; i++) {
		if (t->senders[i].exporter == m->exporter && t->senders[i].point == point)
			return &t->senders[i];
	}
	if (t->n_senders == PL_MARK_POINTS_MAX)
		return NULL;
	t->senders[t->n_senders] =
		(struct pl_marks_sender){ .exporter = m->exporter, .point = point };
	return &t->senders[t->n_senders++];
}

/* Returns true when earlier messages are missing. Topics lose nothing: they were not sent, wait for
 * another partition's leader, or are read later. Without a number a message is torn. */
static bool is_torn(struct pl_marks_topic *t, const struct pl_kafka_message *m, uint32_t point)
{
	struct pl_marks_sender *s = sender_of(t, m, point);
	bool torn;

	if (s == NULL || (m->given & HAS_SEQUENCE) == 0)
		return true;
	torn = !s->used || m->sequence != s->next || m->dropped != s->dropped;
	s->used = true;
	s->next = m->sequence + 1;
	s->dropped = m->dropped;
	return torn;
}

static void take(struct pl_marks_topic *t, const struct pl_kafka_block *block,
	pl_marks_topic_sink *sink, void *arg)
{
	const struct pl_mark128 *records = block->records;
	bool torn;

	if (block->at_end)
		return;
	t->stats.messages++;
	if (records == NULL) {
		t->stats.bad++;
		return;
	}
	t->stats.good++;
	t->stats.records += block->message.n;
	torn = is_torn(t, &block->message, records[0].point);
	t->stats.torn += torn;
	sink(arg, records, block->message.n, torn);
}

bool pl_marks_topic_turn(struct pl_marks_topic *t, pl_marks_topic_sink *sink, void *arg)
{
	int n = 0;

	if (t->consumer == NULL)
		return false;
	for (; n < MESSAGES_A_TURN; n++) {
		struct pl_kafka_block block;

		if (pl_kafka_consumer_recv(t->consumer, &block, 0) <= 0)
			break;
		take(t, &block, sink, arg);
	}
	t->stats.errors = pl_kafka_consumer_stats(t->consumer)->errors;
	snprintf(t->trouble, sizeof(t->trouble), "%s", pl_kafka_consumer_trouble(t->consumer));
	return n == MESSAGES_A_TURN;
}

const char *pl_marks_topic_trouble(const struct pl_marks_topic *t)
{
	const bool tells = t->consumer != NULL && t->trouble[0] != '\0';

	return tells && pl_kafka_consumer_cut_off(t->consumer) ? t->trouble : NULL;
}

/* ---- life ---- */

int pl_marks_topic_files(const char *uri, struct pl_confine *confine)
{
	return pl_kafka_files(uri, confine);
}

int pl_marks_topic_open(struct pl_marks_topic *t, const char *text, struct pl_diag *diag)
{
	const struct pl_kafka_reader reader = { .uri = text, .alone = true };
	const struct pl_kafka_consumer_config config = { .kind = PL_FLAT_MARK128,
		.gather_ms = GATHER_MS };

	snprintf(t->name, sizeof(t->name), "%.*s", (int)strcspn(text, "?"), text);
	return pl_kafka_reader_open(&t->consumer, &reader, &config, NULL, diag);
}

void pl_marks_topic_close(struct pl_marks_topic *t)
{
	pl_kafka_consumer_close(t->consumer);
	t->consumer = NULL;
}
