/* SPDX-License-Identifier: BSD-2-Clause */
/* A collector's card in software: an interface, a responder, a connection manager. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/collector_card.h"
#include "nic/manage.h"

#define REQUESTS 100 /* of RDMA-CM: so many may wait to be looked at, beside queue pairs */

struct collector_card {
	struct pl_nic *nic;
	struct pl_responder *responder;
	const struct pl_collector_options *options;
	struct pl_manage manage; /* its connector is NULL: none */
	uint32_t max_qps;
	bool any_mac, may_read;
	uint64_t now_ns;
	struct pl_batch in;
	uint8_t causes[PL_BATCH_MAX];
	struct pl_frames out;
	uint8_t out_memory[64 * 1024];
};

static void soft_close(struct collector_card *card)
{
	pl_manage_close(&card->manage);
	pl_nic_close(card->nic);
	pl_responder_free(card->responder);
	free(card);
}

/* Frames to others are none of its. Without an address of its own, as lo is, nothing can be told by it. */
static void follow_mac(struct collector_card *card)
{
	static const uint8_t no_mac[6];
	const uint8_t *mac = pl_nic_mac(card->nic);

	pl_responder_own_mac(
		card->responder, card->any_mac || memcmp(mac, no_mac, 6) == 0 ? NULL : mac);
}

static int soft_open(struct collector_card **ret, const struct pl_collector_options *wanted,
	uint32_t max_qps, struct pl_diag *diag)
{
	const struct pl_responder_options options = { .max_qps = max_qps,
		.max_regions = max_qps,
		.max_completions = 2 * max_qps * COLLECTOR_RECEIVES };
	const struct pl_nic_options nic = { .rights = wanted->rights };
	struct collector_card *card = calloc(1, sizeof(*card));
	int r = card != NULL ? pl_responder_new(&card->responder, &options) : -ENOMEM;

	if (r < 0) {
		pl_diag_set(diag, "%u peers: %s", max_qps, strerror(-r));
		free(card);
		return r;
	}
	card->max_qps = max_qps;
	card->options = wanted;
	card->any_mac = wanted->any_mac;
	card->may_read = wanted->may_read;
	pl_frames_init(&card->out, card->out_memory, sizeof(card->out_memory));
	r = pl_nic_open(&card->nic, wanted->uri, &nic, diag);
	if (r < 0) {
		soft_close(card);
		return r;
	}
	*ret = card;
	return 0;
}

static const char *soft_name(const struct collector_card *card)
{
	return pl_nic_name(card->nic);
}

static const uint8_t *soft_mac(const struct collector_card *card)
{
	return pl_nic_mac(card->nic);
}

/* But for READs no answer has more than a header. */
static uint16_t soft_mtu(const struct collector_card *card)
{
	return card->may_read ? pl_nic_mtu(card->nic) : pl_nic_receive_mtu(card->nic);
}

static int soft_fd(const struct collector_card *card)
{
	return pl_nic_fd(card->nic);
}

/* 127.0.0.0/8 and ::1. */
static bool soft_is_loopback(const struct collector_card *card)
{
	struct pl_addr *own = NULL;
	uint32_t n = 0;
	bool all = pl_nic_addresses(card->nic, &own, &n, NULL) == 0;

	for (uint32_t i = 0; all && i < n; i++)
		all = collector_has(collector_loopback, COLLECTOR_LOOPBACK, &own[i]);
	free(own);
	return all && n > 0;
}

static int soft_region_add(struct collector_card *card, const struct pl_rdma_region *region,
	uint32_t *ret_key, struct pl_diag *diag)
{
	int r = pl_responder_region_add(card->responder, region, ret_key);

	if (r < 0)
		pl_diag_set(diag, "%s", strerror(-r));
	return r;
}

static void soft_region_remove(struct collector_card *card, uint32_t key)
{
	(void)pl_responder_region_remove(card->responder, key);
}

static int soft_region_move(struct collector_card *card, uint32_t key, void *base)
{
	return pl_responder_region_move(card->responder, key, base);
}

/* ---- queue pairs ---- */

/* Answers go to where requests come from: a router's MAC address is none that anybody told us. */
static int soft_path(
	struct collector_card *card, const struct pl_addr *peer, struct pl_roce_path *ret)
{
	static const uint8_t no_mac[6];

	return pl_nic_path(card->nic, peer, no_mac, ret, NULL);
}

static int soft_qp_add(struct collector_card *card, const struct pl_rdma_qp *qp,
	const uint32_t *connection, uint32_t *ret_qpn)
{
	int r = pl_responder_qp_add(card->responder, qp, ret_qpn);

	(void)connection;
	for (uint32_t i = 0; r == 0 && i < COLLECTOR_RECEIVES; i++)
		(void)pl_responder_post(card->responder, *ret_qpn, 0, NULL, 0);
	return r;
}

static void soft_qp_remove(struct collector_card *card, uint32_t qpn)
{
	(void)pl_responder_qp_remove(card->responder, qpn);
}

static int soft_qp_status(
	const struct collector_card *card, uint32_t qpn, struct pl_rdma_qp_status *ret)
{
	return pl_responder_qp_status(card->responder, qpn, ret);
}

static uint32_t soft_completions(
	struct collector_card *card, struct pl_rdma_completion *ret, uint32_t max)
{
	uint32_t n = pl_responder_completions(card->responder, ret, max);

	for (uint32_t i = 0; i < n; i++) {
		if (ret[i].kind == PL_RDMA_DONE_WRITE || ret[i].kind == PL_RDMA_DONE_SEND)
			(void)pl_responder_post(card->responder, ret[i].qpn, 0, NULL, 0);
	}
	return n;
}

/* ---- connections ---- */

static bool soft_allowed(void *arg, const struct pl_addr *peer)
{
	const struct collector_card *card = arg;

	return collector_has(card->options->allow, card->options->n_allow, peer);
}

static int soft_listen(struct collector_card *card, uint16_t port, uint64_t silent_ns,
	struct pl_addr **ret_own, uint32_t *ret_n, struct pl_diag *diag)
{
	const struct pl_connector_options options = { .max_connections = card->max_qps + REQUESTS,
		.allowed = soft_allowed,
		.arg = card,
		.mtu = soft_mtu(card),
		.silent_ns = silent_ns };
	int r = pl_manage_open(&card->manage, card->nic, options, ret_own, ret_n, diag);

	return r < 0 ? r : pl_connector_listen(card->manage.connector, port);
}

static void soft_heard(struct collector_card *card, uint32_t id)
{
	(void)pl_connector_heard(card->manage.connector, id, card->now_ns);
}

static bool soft_event(struct collector_card *card, struct pl_connection_event *ret)
{
	return pl_connector_event(card->manage.connector, ret);
}

static int soft_accept(
	struct collector_card *card, uint32_t id, const struct pl_connection_terms *terms)
{
	return pl_connector_accept(card->manage.connector, id, terms, card->now_ns);
}

static void soft_reject(struct collector_card *card, uint32_t id, uint16_t reason)
{
	(void)pl_connector_reject(card->manage.connector, id, reason, card->now_ns);
}

static void soft_disconnect(struct collector_card *card, uint32_t id)
{
	(void)pl_connector_disconnect(card->manage.connector, id, card->now_ns);
}

static int soft_forget(struct collector_card *card, uint32_t id)
{
	return pl_connector_forget(card->manage.connector, id);
}

/* ---- one turn ---- */

/* The connection manager answers for the addresses that there are now, and takes the path MTUs. */
static void follow_interface(struct collector_card *card)
{
	if (card->manage.connector != NULL && pl_manage_follow(&card->manage))
		pl_connector_mtu(card->manage.connector, soft_mtu(card));
}

/* Management packets are the connection manager's. */
static void manage(struct collector_card *card)
{
	for (uint32_t i = 0; i < card->in.n; i++) {
		if (card->causes[i] == PL_RDMA_C_MANAGEMENT)
			pl_manage_packet(&card->manage, &card->in.pkts[i], card->now_ns);
	}
}

/* What is refused by the interface is lost as on any wire: peers repeat what they miss. */
static void send_out(struct collector_card *card)
{
	if (pl_nic_send(card->nic, &card->out, NULL) == -ENETDOWN)
		pl_nic_drop(card->nic, &card->out);
}

static void soft_flush(struct collector_card *card)
{
	bool all;

	do {
		all = pl_responder_answers(card->responder, &card->out);
		send_out(card);
	} while (!all);
	if (card->manage.connector == NULL)
		return;
	do {
		all = pl_connector_send(card->manage.connector, card->now_ns, &card->out);
		send_out(card);
	} while (!all);
}

static int soft_step(struct collector_card *card, uint64_t now_ns, struct pl_diag *diag)
{
	int n = pl_nic_recv(card->nic, &card->in, 0, diag);

	card->now_ns = now_ns;
	follow_mac(card);
	follow_interface(card);
	if (n <= 0)
		return n;
	pl_responder_now(card->responder, now_ns);
	pl_responder_batch(card->responder, &card->in, card->causes);
	if (card->manage.connector != NULL)
		manage(card);
	pl_nic_release(card->nic, &card->in);
	soft_flush(card);
	return n;
}

static uint64_t soft_next_ns(const struct collector_card *card)
{
	return card->manage.connector != NULL ? pl_connector_next_ns(card->manage.connector)
					      : UINT64_MAX;
}

static uint64_t soft_alarms(const struct collector_card *card)
{
	return pl_counter_read(&pl_responder_counters(card->responder)->alarms);
}

static bool soft_alarm(struct collector_card *card, struct pl_rdma_suspect *ret)
{
	return pl_responder_alarm(card->responder, ret);
}

static void soft_stats(struct collector_card *card, struct pl_collector_stats *ret)
{
	pl_responder_now(card->responder, card->now_ns);
	ret->n_suspects =
		pl_responder_suspects(card->responder, ret->suspects, PL_RDMA_SUSPECTS_MAX);
	ret->responder = pl_responder_counters(card->responder);
	ret->cm = card->manage.connector != NULL ? pl_connector_counters(card->manage.connector)
						 : NULL;
	ret->nic = pl_nic_counters(card->nic);
	pl_nic_stats(card->nic, &ret->port);
}

const struct collector_card_ops collector_soft = {
	.open = soft_open,
	.close = soft_close,
	.name = soft_name,
	.mac = soft_mac,
	.mtu = soft_mtu,
	.fd = soft_fd,
	.is_loopback = soft_is_loopback,
	.region_add = soft_region_add,
	.region_remove = soft_region_remove,
	.region_move = soft_region_move,
	.path = soft_path,
	.qp_add = soft_qp_add,
	.qp_remove = soft_qp_remove,
	.qp_status = soft_qp_status,
	.completions = soft_completions,
	.listen = soft_listen,
	.heard = soft_heard,
	.event = soft_event,
	.accept = soft_accept,
	.reject = soft_reject,
	.disconnect = soft_disconnect,
	.forget = soft_forget,
	.step = soft_step,
	.flush = soft_flush,
	.next_ns = soft_next_ns,
	.alarms = soft_alarms,
	.alarm = soft_alarm,
	.stats = soft_stats,
};
