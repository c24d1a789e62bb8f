/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/collect_stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "verbs/verbs.h"

static void counter(struct pl_json *json, const char *key, const struct pl_counter *c)
{
	pl_json_number(json, key, pl_counter_read(c));
}

static void put_responder(struct pl_json *json, const struct pl_responder_counters *n)
{
	counter(json, "packets", &n->packets);
	pl_json_key(json, "causes");
	pl_json_object(json);
	for (int i = 0; i < PL_RDMA_CAUSE_MAX; i++)
		counter(json, pl_rdma_cause_name((enum pl_rdma_cause)i), &n->causes[i]);
	pl_json_object_end(json);
	counter(json, "writes", &n->writes);
	counter(json, "write_bytes", &n->write_bytes);
	counter(json, "sends", &n->sends);
	counter(json, "reads", &n->reads);
	counter(json, "adds", &n->adds);
	counter(json, "swaps", &n->swaps);
	counter(json, "guesses", &n->guesses);
	counter(json, "alarms", &n->alarms);
	counter(json, "acks", &n->acks);
	counter(json, "naks", &n->naks);
	counter(json, "rnr_naks", &n->rnr_naks);
	counter(json, "atomic_acks", &n->atomic_acks);
	counter(json, "read_responses", &n->read_responses);
	counter(json, "marked", &n->marked);
	counter(json, "cnps", &n->cnps);
}

static void put_control(struct pl_json *json, const struct pl_collector_stats *s)
{
	if (s->exchange != NULL) {
		pl_json_key(json, "control");
		pl_json_object(json);
		counter(json, "connections", &s->exchange->connections);
		counter(json, "denied", &s->exchange->denied);
		counter(json, "full", &s->exchange->full);
		counter(json, "crowded", &s->exchange->crowded);
		counter(json, "agreed", &s->exchange->agreed);
		counter(json, "refused", &s->exchange->refused);
		counter(json, "garbage", &s->exchange->garbage);
		counter(json, "timeouts", &s->exchange->timeouts);
		counter(json, "ended", &s->exchange->ended);
		pl_json_object_end(json);
	}
	if (s->cm == NULL)
		return;
	pl_json_key(json, "cm");
	pl_json_object(json);
	counter(json, "received", &s->cm->received);
	counter(json, "sent", &s->cm->sent);
	counter(json, "resent", &s->cm->resent);
	counter(json, "malformed", &s->cm->malformed);
	counter(json, "foreign", &s->cm->foreign);
	counter(json, "unknown", &s->cm->unknown);
	counter(json, "repeated", &s->cm->repeated);
	counter(json, "stale", &s->cm->stale);
	counter(json, "asked", &s->cm->asked);
	counter(json, "denied", &s->cm->denied);
	counter(json, "limited", &s->cm->limited);
	counter(json, "unsent", &s->cm->unsent);
	pl_json_object_end(json);
}

static void put_port(struct pl_json *json, const struct pl_collector_stats *s)
{
	pl_json_key(json, "port");
	pl_json_object(json);
	pl_json_number(json, "packets", s->port.packets);
	pl_json_number(json, "kernel_drops", s->port.kernel_drops);
	pl_json_number(json, "no_socket", s->port.no_socket);
	pl_json_number(json, "left_to_host", s->port.filtered);
	pl_json_number(json, "fragments", s->port.fragments);
	pl_json_number(json, "outages", s->port.outages);
	pl_json_number(json, "cut", s->port.cut);
	counter(json, "sent", &s->nic->sent);
	counter(json, "unsent", &s->nic->unsent);
	pl_json_object_end(json);
}

static void put_peers(struct pl_json *json, const struct pl_collector_stats *s,
	const struct pl_collector_options *options)
{
	char text[PL_ADDR_TEXT_MAX];

	pl_json_key(json, "peers");
	pl_json_array(json);
	for (uint32_t i = 0; i < s->n_accounts; i++) {
		const struct pl_collector_account *a = &s->accounts[i];

		pl_format_addr(text, &a->peer);
		pl_json_object(json);
		pl_json_key(json, "peer");
		pl_json_str(json, text);
		pl_json_key(json, "store");
		pl_json_str(json, options->stores[a->store].name);
		pl_json_number(json, "connected", a->connected);
		pl_json_number(json, "tcp", a->tcp);
		pl_json_number(json, "cm", a->cm);
		pl_json_number(json, "packets", a->packets);
		pl_json_number(json, "refused", a->refused);
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
}

static void put_suspects(struct pl_json *json, const struct pl_collector_stats *s)
{
	static const char *const kinds[PL_RDMA_GUESSES] = { "unknown_qp", "peer", "key", "number" };
	char text[PL_ADDR_TEXT_MAX];

	pl_json_key(json, "suspects");
	pl_json_array(json);
	for (uint32_t i = 0; i < s->n_suspects; i++) {
		const struct pl_rdma_suspect *who = &s->suspects[i];

		pl_format_addr(text, &who->addr);
		pl_json_object(json);
		pl_json_key(json, "address");
		pl_json_str(json, text);
		pl_json_key(json, "now");
		pl_json_bool(json, who->now);
		pl_json_number(json, "guesses", who->guesses);
		for (int k = 0; k < PL_RDMA_GUESSES; k++)
			pl_json_number(json, kinds[k], who->kinds[k]);
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
}

#if PL_HAVE_VERBS
static void tell_number(void *json, const char *name, uint64_t n)
{
	pl_json_number(json, name, n);
}

/* What the driver of the card and the card say. */
static void put_card(
	struct pl_json *json, const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	const struct pl_verbs_counters *n = pl_verbs_counters(v);

	pl_json_key(json, "card");
	pl_json_object(json);
	counter(json, "immediates", &n->immediates);
	counter(json, "immediates_lost", &n->immediates_lost);
	counter(json, "queue_pairs", &n->qps);
	counter(json, "broken", &n->broken);
	counter(json, "flushed", &n->flushed);
	counter(json, "failed", &n->failed);
	counter(json, "unposted", &n->unposted);
	counter(json, "news_lost", &n->news_lost);
	counter(json, "requests", &n->requests);
	counter(json, "refused", &n->refused);
	counter(json, "connections", &n->connections);
	counter(json, "closed", &n->closed);
	pl_json_number(json, "lost", s->lost);
	pl_json_number(json, "returns", s->returns);
#define PL_VERBS_EVENT(id, name, help) counter(json, name, &n->id);
#include "verbs/events.def"
#undef PL_VERBS_EVENT
	pl_json_object_end(json);
	pl_json_key(json, "hardware");
	pl_json_object(json);
	pl_verbs_hw_counters(v, tell_number, json);
	pl_json_object_end(json);
}

static void tell_card(const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	const struct pl_verbs_counters *n = pl_verbs_counters(v);

	fprintf(stderr,
		"%" PRIu64 " queue pairs, %" PRIu64 " of them failed, %" PRIu64
		" lost with the device; %" PRIu64 " signals\n",
		pl_counter_read(&n->qps), pl_counter_read(&n->broken), s->lost, s->signals);
}
#else
static void put_card(
	struct pl_json *json, const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	(void)json;
	(void)v;
	(void)s;
}

static void tell_card(const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	(void)v;
	(void)s;
}
#endif

void pl_collect_stats(
	struct pl_json *json, struct pl_collector *c, const struct pl_collector_options *options)
{
	struct pl_collector_stats *s = malloc(sizeof(*s));

	if (s == NULL)
		return;
	pl_collector_get_stats(c, s);
	if (s->responder != NULL)
		put_responder(json, s->responder);
	if (s->verbs != NULL)
		put_card(json, s->verbs, s);
	pl_json_number(json, "signals", s->signals);
	pl_json_number(json, "lost_signals", s->lost_signals);
	pl_json_number(json, "failed", s->failed);
	pl_json_number(json, "silent", s->silent);
	pl_json_number(json, "no_room", s->no_room);
	pl_json_number(json, "crowded", s->crowded);
	pl_json_number(json, "displaced", s->displaced);
	pl_json_number(json, "stale", s->stale);
	pl_json_number(json, "forgotten", s->forgotten);
	put_peers(json, s, options);
	if (s->responder != NULL)
		put_suspects(json, s);
	put_control(json, s);
	if (s->nic != NULL)
		put_port(json, s);
	free(s);
}

void pl_collect_tell(struct pl_collector *c)
{
	struct pl_collector_stats *s = malloc(sizeof(*s));

	if (s == NULL)
		return;
	pl_collector_get_stats(c, s);
	if (s->verbs != NULL) {
		tell_card(s->verbs, s);
		free(s);
		return;
	}
	fprintf(stderr,
		"%" PRIu64 " packets: %" PRIu64 " writes, %" PRIu64 " atomics, %" PRIu64
		" reads, %" PRIu64 " sends",
		pl_counter_read(&s->responder->packets), pl_counter_read(&s->responder->writes),
		pl_counter_read(&s->responder->adds) + pl_counter_read(&s->responder->swaps),
		pl_counter_read(&s->responder->reads), pl_counter_read(&s->responder->sends));
	for (int i = 0; i < PL_RDMA_CAUSE_MAX; i++) {
		const uint64_t n = pl_counter_read(&s->responder->causes[i]);

		if (i != PL_RDMA_C_OK && n > 0)
			fprintf(stderr, ", %" PRIu64 " %s", n,
				pl_rdma_cause_name((enum pl_rdma_cause)i));
	}
	if (s->port.kernel_drops > 0)
		fprintf(stderr, "; %" PRIu64 " dropped by the kernel", s->port.kernel_drops);
	fputc('\n', stderr);
	free(s);
}
