/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/collect_stats.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/num.h"
#include "verbs/verbs.h"

static void put_responder(const struct pl_account *a, const struct pl_responder_counters *n)
{
	PL_COUNT(a, "rdma_", "packets", "RoCE packets that came for the responder.",
		pl_counter_read(&n->packets));
	PL_SPLIT(a, "rdma_", "causes", "RoCE packets by what became of them: ok, or why not.");
	for (int i = 0; i < PL_RDMA_CAUSE_MAX; i++)
		pl_account_part(a, "cause", pl_rdma_cause_name((enum pl_rdma_cause)i),
			pl_counter_read(&n->causes[i]));
	pl_account_split_end(a);
	PL_COUNT(a, "rdma_", "writes", "WRITE requests executed.", pl_counter_read(&n->writes));
	PL_COUNT(a, "rdma_", "write_bytes", "Bytes of these.", pl_counter_read(&n->write_bytes));
	PL_COUNT(a, "rdma_", "sends", "SEND requests executed.", pl_counter_read(&n->sends));
	PL_COUNT(a, "rdma_", "reads", "READ requests executed.", pl_counter_read(&n->reads));
	PL_COUNT(a, "rdma_", "adds", "Fetch-and-add requests executed.", pl_counter_read(&n->adds));
	PL_COUNT(a, "rdma_", "swaps", "Compare-and-swap requests executed.",
		pl_counter_read(&n->swaps));
	PL_COUNT(a, "rdma_", "guesses",
		"Requests refused that may be guesses of queue pairs, keys or numbers.",
		pl_counter_read(&n->guesses));
	PL_COUNT(a, "rdma_", "alarms", "Times that a source guessed too often.",
		pl_counter_read(&n->alarms));
	PL_COUNT(a, "rdma_", "acks", "Acknowledgements sent.", pl_counter_read(&n->acks));
	PL_COUNT(a, "rdma_", "naks", "Negative acknowledgements sent.", pl_counter_read(&n->naks));
	PL_COUNT(a, "rdma_", "rnr_naks",
		"Negative acknowledgements sent because the receiver was not ready.",
		pl_counter_read(&n->rnr_naks));
	PL_COUNT(a, "rdma_", "atomic_acks", "Acknowledgements of atomics sent.",
		pl_counter_read(&n->atomic_acks));
	PL_COUNT(a, "rdma_", "read_responses", "Responses to READ sent.",
		pl_counter_read(&n->read_responses));
	PL_COUNT(a, "rdma_", "marked", "Packets that a switch marked for congestion.",
		pl_counter_read(&n->marked));
	PL_COUNT(a, "rdma_", "cnps", "Congestion notifications sent.", pl_counter_read(&n->cnps));
}

static void put_control(const struct pl_account *a, const struct pl_collector_stats *s)
{
	if (s->exchange != NULL) {
		pl_account_object(a, "control");
		PL_COUNT(a, "rdma_control_", "connections", "Connections to the control server.",
			pl_counter_read(&s->exchange->connections));
		PL_COUNT(a, "rdma_control_", "denied",
			"Of these, from addresses that may not connect.",
			pl_counter_read(&s->exchange->denied));
		PL_COUNT(a, "rdma_control_", "full",
			"Of these, not taken because there were too many.",
			pl_counter_read(&s->exchange->full));
		PL_COUNT(a, "rdma_control_", "crowded",
			"Of these, not taken because their address had too many.",
			pl_counter_read(&s->exchange->crowded));
		PL_COUNT(a, "rdma_control_", "agreed", "Queue pairs that were agreed on.",
			pl_counter_read(&s->exchange->agreed));
		PL_COUNT(a, "rdma_control_", "refused",
			"Requests for queue pairs that were refused.",
			pl_counter_read(&s->exchange->refused));
		PL_COUNT(a, "rdma_control_", "garbage", "Requests that could not be read.",
			pl_counter_read(&s->exchange->garbage));
		PL_COUNT(a, "rdma_control_", "timeouts",
			"Connections ended because no request came in time.",
			pl_counter_read(&s->exchange->timeouts));
		PL_COUNT(a, "rdma_control_", "ended",
			"Connections that ended, with their queue pairs.",
			pl_counter_read(&s->exchange->ended));
		pl_account_object_end(a);
	}
	if (s->cm == NULL)
		return;
	pl_account_object(a, "cm");
	PL_COUNT(a, "rdma_cm_", "received", "Messages of RDMA-CM received.",
		pl_counter_read(&s->cm->received));
	PL_COUNT(a, "rdma_cm_", "sent", "Messages of RDMA-CM sent.", pl_counter_read(&s->cm->sent));
	PL_COUNT(a, "rdma_cm_", "resent", "Of these, sent again.", pl_counter_read(&s->cm->resent));
	PL_COUNT(a, "rdma_cm_", "malformed", "Messages that could not be read.",
		pl_counter_read(&s->cm->malformed));
	PL_COUNT(a, "rdma_cm_", "foreign", "Messages for other services.",
		pl_counter_read(&s->cm->foreign));
	PL_COUNT(a, "rdma_cm_", "unknown", "Messages about connections that are not there.",
		pl_counter_read(&s->cm->unknown));
	PL_COUNT(a, "rdma_cm_", "repeated", "Messages that had come before.",
		pl_counter_read(&s->cm->repeated));
	PL_COUNT(a, "rdma_cm_", "stale", "Messages about connections of an earlier life.",
		pl_counter_read(&s->cm->stale));
	PL_COUNT(a, "rdma_cm_", "asked", "Peers that were silent and were asked.",
		pl_counter_read(&s->cm->asked));
	PL_COUNT(a, "rdma_cm_", "denied", "Requests from addresses that may not connect.",
		pl_counter_read(&s->cm->denied));
	PL_COUNT(a, "rdma_cm_", "limited", "Requests not answered because there were too many.",
		pl_counter_read(&s->cm->limited));
	PL_COUNT(a, "rdma_cm_", "unsent", "Messages that could not be sent.",
		pl_counter_read(&s->cm->unsent));
	pl_account_object_end(a);
}

static void put_port(const struct pl_account *a, const struct pl_collector_stats *s)
{
	pl_account_object(a, "port");
	PL_COUNT(a, "rdma_port_", "packets", "Packets received from the interface.",
		s->port.packets);
	PL_COUNT(a, "rdma_port_", "kernel_drops",
		"Packets that the kernel dropped: nobody came to read them.", s->port.kernel_drops);
	PL_COUNT(a, "rdma_port_", "no_socket",
		"Packets that came while there was no socket for them.", s->port.no_socket);
	PL_COUNT(a, "rdma_port_", "left_to_host", "Packets that were left to the host.",
		s->port.filtered);
	PL_COUNT(a, "rdma_port_", "fragments", "IP fragments, which are not put together.",
		s->port.fragments);
	PL_COUNT(a, "rdma_port_", "outages", "Times that the interface was away or down.",
		s->port.outages);
	PL_COUNT(a, "rdma_port_", "cut", "Frames that were cut by the capture.", s->port.cut);
	PL_COUNT(a, "rdma_port_", "sent", "Frames sent.", pl_counter_read(&s->nic->sent));
	PL_COUNT(a, "rdma_port_", "unsent", "Frames that could not be sent.",
		pl_counter_read(&s->nic->unsent));
	PL_COUNT(a, "rdma_port_", "ring_sent", "Frames sent by the ring of an AF_XDP socket.",
		s->port.ring_sent);
	PL_COUNT(a, "rdma_port_", "ring_full", "Times that this ring was full.", s->port.ring_full);
	PL_COUNT(a, "rdma_port_", "ring_drops", "Frames not sent because this ring stayed full.",
		s->port.ring_drops);
	pl_account_object_end(a);
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
static void tell_number(void *account, const char *name, uint64_t n)
{
	pl_account_part(account, "counter", name, n);
}

/* What the driver of the NIC and the NIC say. */
static void put_nic(
	const struct pl_account *a, const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	const struct pl_verbs_counters *n = pl_verbs_counters(v);

	pl_account_object(a, "nic");
	PL_COUNT(a, "rdma_nic_", "immediates", "Immediates that the NIC signalled.",
		pl_counter_read(&n->immediates));
	PL_COUNT(a, "rdma_nic_", "immediates_lost",
		"Immediates lost because they were not read in time.",
		pl_counter_read(&n->immediates_lost));
	PL_COUNT(a, "rdma_nic_", "queue_pairs", "Queue pairs created.", pl_counter_read(&n->qps));
	PL_COUNT(a, "rdma_nic_", "broken", "Queue pairs that failed.", pl_counter_read(&n->broken));
	PL_COUNT(a, "rdma_nic_", "flushed", "Receives returned by a queue pair that ended.",
		pl_counter_read(&n->flushed));
	PL_COUNT(a, "rdma_nic_", "failed", "Receives that failed.", pl_counter_read(&n->failed));
	PL_COUNT(a, "rdma_nic_", "unposted", "Receives that could not be posted.",
		pl_counter_read(&n->unposted));
	PL_COUNT(a, "rdma_nic_", "news_lost",
		"Events of queue pairs that were dropped for lack of room.",
		pl_counter_read(&n->news_lost));
	PL_COUNT(a, "rdma_nic_", "requests", "Requests of RDMA-CM.", pl_counter_read(&n->requests));
	PL_COUNT(a, "rdma_nic_", "refused", "Requests of RDMA-CM that were refused.",
		pl_counter_read(&n->refused));
	PL_COUNT(a, "rdma_nic_", "connections", "Connections established by RDMA-CM.",
		pl_counter_read(&n->connections));
	PL_COUNT(a, "rdma_nic_", "closed", "Connections of RDMA-CM that ended.",
		pl_counter_read(&n->closed));
	PL_COUNT(a, "rdma_nic_", "lost", "Queue pairs that ended with the device.", s->lost);
	PL_COUNT(a, "rdma_nic_", "returns", "Times that the device was back.", s->returns);
#define PL_VERBS_EVENT(id, name, help)                                                             \
	PL_COUNT(a, "rdma_nic_", name, help, pl_counter_read(&n->id));
#include "verbs/events.def"
#undef PL_VERBS_EVENT
	pl_account_object_end(a);
	PL_SPLIT(a, "rdma_", "hardware", "Counters of the RDMA NIC, by the names of its driver.");
	pl_verbs_hw_counters(v, tell_number, (void *)(uintptr_t)a);
	pl_account_split_end(a);
}

static void tell_nic(
	struct pl_buf *out, const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	const struct pl_verbs_counters *n = pl_verbs_counters(v);

	pl_buf_printf(out,
		"%" PRIu64 " queue pairs, %" PRIu64 " of them failed, %" PRIu64
		" lost with the device; %" PRIu64 " signals",
		pl_counter_read(&n->qps), pl_counter_read(&n->broken), s->lost, s->signals);
}
#else
static void put_nic(
	const struct pl_account *a, const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	(void)a;
	(void)v;
	(void)s;
}

static void tell_nic(
	struct pl_buf *out, const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	(void)out;
	(void)v;
	(void)s;
}
#endif

void pl_collect_account(const struct pl_account *a, struct pl_collector *c,
	const struct pl_collector_options *options)
{
	struct pl_collector_stats *s = malloc(sizeof(*s));

	if (s == NULL)
		return;
	pl_collector_get_stats(c, s);
	if (s->responder != NULL)
		put_responder(a, s->responder);
	if (s->verbs != NULL)
		put_nic(a, s->verbs, s);
	PL_COUNT(a, "rdma_", "signals",
		"Writes with immediate and sends that peers wanted noticed.", s->signals);
	PL_COUNT(a, "rdma_", "lost_signals",
		"Of these, lost: the queue pair ended before they were looked at.",
		s->lost_signals);
	PL_COUNT(a, "rdma_", "failed",
		"Queue pairs that went to error, and were ended with their connections.",
		s->failed);
	PL_COUNT(a, "rdma_", "silent", "Queue pairs whose peers fell silent.", s->silent);
	PL_COUNT(a, "rdma_", "no_room", "Requests for queue pairs refused: there are too many.",
		s->no_room);
	PL_COUNT(a, "rdma_", "crowded",
		"Requests for queue pairs refused: their address has too many.", s->crowded);
	PL_COUNT(a, "rdma_", "displaced",
		"Requests of RDMA-CM that nobody confirmed, gone for newer ones.", s->displaced);
	PL_COUNT(a, "rdma_", "stale", "Queue pairs ended because their peer offered its own anew.",
		s->stale);
	PL_COUNT(a, "rdma_", "forgotten", "Peers for which there was no account left.",
		s->forgotten);
	/* By address: too many for families. */
	if (a->json != NULL)
		put_peers(a->json, s, options);
	if (a->json != NULL && s->responder != NULL)
		put_suspects(a->json, s);
	put_control(a, s);
	if (s->nic != NULL)
		put_port(a, s);
	free(s);
}

void pl_collect_tell(struct pl_collector *c, struct pl_buf *out)
{
	struct pl_collector_stats *s = malloc(sizeof(*s));

	if (s == NULL)
		return;
	pl_collector_get_stats(c, s);
	if (s->verbs != NULL) {
		tell_nic(out, s->verbs, s);
		free(s);
		return;
	}
	pl_buf_printf(out,
		"%" PRIu64 " packets: %" PRIu64 " writes, %" PRIu64 " atomics, %" PRIu64
		" reads, %" PRIu64 " sends",
		pl_counter_read(&s->responder->packets), pl_counter_read(&s->responder->writes),
		pl_counter_read(&s->responder->adds) + pl_counter_read(&s->responder->swaps),
		pl_counter_read(&s->responder->reads), pl_counter_read(&s->responder->sends));
	for (int i = 0; i < PL_RDMA_CAUSE_MAX; i++) {
		const uint64_t n = pl_counter_read(&s->responder->causes[i]);

		if (i != PL_RDMA_C_OK && n > 0)
			pl_buf_printf(out, ", %" PRIu64 " %s", n,
				pl_rdma_cause_name((enum pl_rdma_cause)i));
	}
	if (s->port.kernel_drops > 0)
		pl_buf_printf(out, "; %" PRIu64 " dropped by the kernel", s->port.kernel_drops);
	free(s);
}
