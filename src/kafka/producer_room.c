/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the largest size of a producer's messages. A topic takes a batch of messages as a whole or
 * not at all, so batches have to fit too; a client of librdkafka has one batch size for all its
 * topics. */
#include "kafka/producer_room.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define ANSWER_MS 3000

/* Lowers the records, or bytes of entries, per message to what fits into `room`. */
static void cut(struct pl_kafka_producer *p, uint32_t room)
{
	const uint32_t value = room > PL_KAFKA_BESIDE ? room - PL_KAFKA_BESIDE : 0;

	if (p->mode == PL_KAFKA_MESSAGES || value >= p->batch_bytes || value < p->size)
		return;
	if (p->mode == PL_KAFKA_RECORDS) {
		assert(p->size > 0);
		p->records = value / p->size;
		p->batch_bytes = (size_t)p->records * p->size;
	} else {
		p->batch_bytes = value;
	}
}

/* Headers and framing come on top: librdkafka adds a message to a batch by the size of its value.
 * The first message of a batch is sent whatever its size, so 1 is a batch of one message. */
uint32_t pl_kafka_producer_batch_most(const struct pl_kafka_producer *p)
{
	return p->room.batch > PL_KAFKA_BESIDE ? p->room.batch - PL_KAFKA_BESIDE : 1;
}

bool pl_kafka_producer_batch_fits(const struct pl_kafka_producer *p)
{
	return pl_kafka_room_batch(rd_kafka_conf(p->rk)) <= pl_kafka_producer_batch_most(p);
}

static int take_room(struct pl_kafka_producer *p, struct pl_diag *diag)
{
	const uint32_t room = p->room.bytes;
	int r = 0;

	if (p->least > 0 && room < p->least + PL_KAFKA_BESIDE) {
		pl_diag_set(&p->misfit,
			"topic '%s' takes messages of %" PRIu32 " bytes, and %" PRIu32
			" are needed: raise %s",
			p->topic_name, room, p->least + PL_KAFKA_BESIDE, p->room.setting);
		r = pl_diag_fail(diag, -EMSGSIZE, "%s", p->misfit.text);
	}
	cut(p, room);
	if (!pl_kafka_producer_batch_fits(p))
		p->resize = pl_kafka_producer_batch_most(p);
	return r;
}

int pl_kafka_producer_find_room(struct pl_kafka_producer *p, uint32_t wait_ms, struct pl_diag *diag)
{
	p->room = pl_kafka_room_client(p->rk);
	if (wait_ms > 0) {
		p->room = pl_kafka_room_of(p->rk, p->topic_name, wait_ms);
		p->room_known = true;
	}
	return take_room(p, diag);
}

bool pl_kafka_producer_room_turn(struct pl_kafka_producer *p)
{
	if (p->room_known)
		return p->resize == 0;
	if (p->asked == NULL) {
		p->asked = pl_kafka_room_ask(p->rk, p->topic_name, ANSWER_MS);
		return false;
	}
	if (!pl_kafka_room_answer(p->asked, 0, &p->room))
		return false;
	pl_kafka_producer_room_end(p);
	p->room_known = true;
	(void)take_room(p, &p->trouble);
	return p->resize == 0;
}

void pl_kafka_producer_room_end(struct pl_kafka_producer *p)
{
	if (p->asked != NULL)
		rd_kafka_queue_destroy(p->asked);
	p->asked = NULL;
}

void pl_kafka_producer_resized(const struct pl_kafka_producer *p, rd_kafka_conf_t *conf)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu32, p->resize);
	(void)rd_kafka_conf_set(conf, "batch.size", text, NULL, 0);
}
