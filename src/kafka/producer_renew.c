/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces the client after new certificates on disk, after a fatal fault of the client, or when a
 * topic takes smaller batches than the first client gathers: a second client is opened while the
 * first one continues. When a broker has described the topic to the second client, it gets all
 * further messages, and the first one is closed when its own are acknowledged. A client that cannot
 * connect is given up; the next check tries again. */
#include "kafka/producer_renew.h"

#include <string.h>

#include "base/thread.h"
#include "kafka/producer_room.h"

static void close_client(struct pl_kafka_side *side)
{
	if (side->topic != NULL)
		rd_kafka_topic_destroy(side->topic);
	if (side->rk != NULL)
		rd_kafka_destroy(side->rk);
	*side = (struct pl_kafka_side){ .rk = NULL };
}

static void *run_closer(void *arg)
{
	struct pl_kafka_producer *p = arg;

	close_client(&p->closed);
	atomic_store(&p->closing, false);
	return NULL;
}

static void end_closer(struct pl_kafka_producer *p)
{
	if (p->has_closer)
		pthread_join(p->closer, NULL);
	p->has_closer = false;
}

/* Closes a client in a thread of its own: that waits for the client's threads, and so for as long as
 * the system looks up the name of a broker, while the producer's thread may be one that receives.
 * No other client is opened meanwhile, so there is one to be closed at a time. */
static void close_aside(struct pl_kafka_producer *p, struct pl_kafka_side *side)
{
	if (side->rk == NULL)
		return;
	end_closer(p);
	p->closed = *side;
	*side = (struct pl_kafka_side){ .rk = NULL };
	atomic_store(&p->closing, true);
	p->has_closer = pl_thread_start(&p->closer, "pl-kafka-close", run_closer, p) == 0;
	if (!p->has_closer)
		run_closer(p);
}

/* Returns true after an error that a client with idempotence cannot go on from: it takes no message
 * any more. */
static bool is_fatal(const struct pl_kafka_producer *p)
{
	char text[256];

	return rd_kafka_fatal_error(p->rk, text, sizeof(text)) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void give_up(struct pl_kafka_producer *p, const char *why)
{
	p->stats.renewals_failed += p->renew.pending;
	pl_diag_set(&p->trouble, "%s: %s",
		p->renew.pending ? "new certificates are not taken up"
		: is_fatal(p)    ? "no second client, for one that cannot go on"
				 : "no second client, for smaller batches",
		why);
	close_aside(p, &p->next);
}

static void open_next(struct pl_kafka_producer *p, uint64_t now_ns)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_dup(rd_kafka_conf(p->rk));
	char text[256] = "";

	p->next_trouble = (struct pl_diag){ .text = "" };
	p->next_ns = now_ns;
	p->next_ready = false;
	if (p->resize != 0)
		pl_kafka_producer_resized(p, conf);
	p->next.rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (p->next.rk == NULL) {
		/* A key may not belong to the certificate, as while only one of both was
		 * renewed. */
		rd_kafka_conf_destroy(conf);
		give_up(p, text);
		return;
	}
	p->next.topic = rd_kafka_topic_new(p->next.rk, p->topic_name, NULL);
	if (p->next.topic == NULL)
		give_up(p, rd_kafka_err2str(rd_kafka_last_error()));
}

static void take_over(struct pl_kafka_producer *p)
{
	p->old = (struct pl_kafka_side){ .rk = p->rk, .topic = p->topic };
	p->rk = p->next.rk;
	p->topic = p->next.topic;
	p->next = (struct pl_kafka_side){ .rk = NULL };
	p->stats.renewals += p->renew.pending;
	p->renew.pending = false;
	if (p->room_known && pl_kafka_producer_batch_fits(p))
		p->resize = 0;
	pl_kafka_producer_room_end(p); /* ends a request that the old client had sent */
}

/* Returns true when another client is to be opened now. One that could not be opened, or cannot go on
 * either, is not tried at every turn. */
static bool is_due(struct pl_kafka_producer *p, uint64_t now_ns)
{
	const bool lately = p->next_ns != 0 && now_ns - p->next_ns < PL_KAFKA_RENEW_LOOK_NS;

	if (p->old.rk != NULL || atomic_load(&p->closing))
		return false;
	return pl_kafka_renew_due(&p->renew, now_ns) ||
	       (!lately && (p->resize != 0 || is_fatal(p)));
}

void pl_kafka_producer_renew(struct pl_kafka_producer *p, uint64_t now_ns)
{
	if (p->old.rk != NULL) {
		rd_kafka_poll(p->old.rk, 0);
		if (rd_kafka_outq_len(p->old.rk) == 0)
			close_aside(p, &p->old);
	}
	if (p->next.rk != NULL) {
		rd_kafka_poll(p->next.rk, 0);
		if (p->next_ready)
			take_over(p);
		else if (now_ns - p->next_ns > PL_KAFKA_RENEW_TRY_NS)
			give_up(p, p->next_trouble.text[0] != '\0' ? p->next_trouble.text
								   : "no broker answered");
		return;
	}
	if (is_due(p, now_ns))
		open_next(p, now_ns);
}

void pl_kafka_producer_renew_end(struct pl_kafka_producer *p, int timeout_ms)
{
	close_client(&p->next);
	if (p->old.rk == NULL)
		return;
	rd_kafka_flush(p->old.rk, timeout_ms);
	rd_kafka_purge(p->old.rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	rd_kafka_flush(p->old.rk, timeout_ms < 2000 ? timeout_ms : 2000);
}

void pl_kafka_producer_renew_done(struct pl_kafka_producer *p)
{
	end_closer(p);
	close_client(&p->next);
	close_client(&p->old);
	pl_kafka_renew_done(&p->renew);
}
