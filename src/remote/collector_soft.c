/* SPDX-License-Identifier: BSD-2-Clause */
/* A collector's NIC in software: an interface, a responder, a connection manager. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/manage.h"
#include "remote/collector_nic.h"

#define REQUESTS 100 /* messages of RDMA-CM that may wait to be read, beside queue pairs */

struct collector_nic {
	struct pl_nic *nic;
	struct pl_responder *responder;
	const struct pl_collector_options *options;
	struct pl_manage manage; /* its connector is NULL when there is none */
	uint32_t max_qps;
	bool any_mac, may_read;
	uint64_t now_ns;
	struct pl_batch in;
	uint8_t causes[PL_BATCH_MAX];
	struct pl_frames out;
	uint8_t out_memory[64 * 1024];
};

static void soft_close(struct collector_nic *nic)
{
	pl_manage_close(&nic->manage);
	pl_nic_close(nic->nic);
	pl_responder_free(nic->responder);
	free(nic);
}

/* Drops frames to other MAC addresses than the interface's. An interface without a MAC address, as
 * lo, drops none. */
static void follow_mac(struct collector_nic *nic)
{
	static const uint8_t no_mac[6];
	const uint8_t *mac = pl_nic_mac(nic->nic);

	pl_responder_own_mac(
		nic->responder, nic->any_mac || memcmp(mac, no_mac, 6) == 0 ? NULL : mac);
}

static int soft_open(struct collector_nic **ret, const struct pl_collector_options *wanted,
	uint32_t max_qps, struct pl_diag *diag)
{
	const struct pl_responder_options options = { .max_qps = max_qps,
		.max_regions = max_qps,
		.max_completions = 2 * max_qps * COLLECTOR_RECEIVES };
	const struct pl_nic_options nic_options = { .rights = wanted->rights };
	struct collector_nic *nic = calloc(1, sizeof(*nic));
	int r = nic != NULL ? pl_responder_new(&nic->responder, &options) : -ENOMEM;

	if (r < 0) {
		pl_diag_set(diag, "%u peers: %s", max_qps, strerror(-r));
		free(nic);
		return r;
	}
	nic->max_qps = max_qps;
	nic->options = wanted;
	nic->any_mac = wanted->any_mac;
	nic->may_read = wanted->may_read || wanted->n_readers > 0;
	pl_frames_init(&nic->out, nic->out_memory, sizeof(nic->out_memory));
	r = pl_nic_open(&nic->nic, wanted->uri, &nic_options, diag);
	if (r == 0)
		r = pl_nic_fits(nic->nic, diag);
	if (r < 0) {
		soft_close(nic);
		return r;
	}
	*ret = nic;
	return 0;
}

static const char *soft_name(const struct collector_nic *nic)
{
	return pl_nic_name(nic->nic);
}

static const char *soft_note(const struct collector_nic *nic)
{
	return pl_nic_note(nic->nic);
}

static const uint8_t *soft_mac(const struct collector_nic *nic)
{
	return pl_nic_mac(nic->nic);
}

/* Answers other than those to READs have a header only. */
static uint16_t soft_mtu(const struct collector_nic *nic)
{
	return nic->may_read ? pl_nic_mtu(nic->nic) : pl_nic_receive_mtu(nic->nic);
}

static int soft_fits(const struct collector_nic *nic, struct pl_diag *diag)
{
	return pl_nic_fits(nic->nic, diag);
}

static int soft_fd(const struct collector_nic *nic)
{
	return pl_nic_fd(nic->nic);
}

/* 127.0.0.0/8 and ::1. */
static bool soft_is_loopback(const struct collector_nic *nic)
{
	struct pl_addr *own = NULL;
	uint32_t n = 0;
	bool all = pl_nic_addresses(nic->nic, &own, &n, NULL) == 0;

	for (uint32_t i = 0; all && i < n; i++)
		all = collector_has(collector_loopback, COLLECTOR_LOOPBACK, &own[i]);
	free(own);
	return all && n > 0;
}

static int soft_region_add(struct collector_nic *nic, const struct pl_rdma_region *region,
	uint32_t *ret_key, struct pl_diag *diag)
{
	int r = pl_responder_region_add(nic->responder, region, ret_key);

	if (r < 0)
		pl_diag_set(diag, "%s", strerror(-r));
	return r;
}

static void soft_region_remove(struct collector_nic *nic, uint32_t key)
{
	(void)pl_responder_region_remove(nic->responder, key);
}

static int soft_region_move(struct collector_nic *nic, uint32_t key, void *base)
{
	return pl_responder_region_move(nic->responder, key, base);
}

/* ---- queue pairs ---- */

/* Answers go to the source MAC address of requests, because a router's MAC address is not known
 * otherwise. */
static int soft_path(
	struct collector_nic *nic, const struct pl_addr *peer, struct pl_roce_path *ret)
{
	static const uint8_t no_mac[6];

	return pl_nic_path(nic->nic, peer, no_mac, ret, NULL);
}

static int soft_qp_add(struct collector_nic *nic, const struct pl_rdma_qp *qp,
	const uint32_t *connection, uint32_t *ret_qpn)
{
	int r = pl_responder_qp_add(nic->responder, qp, ret_qpn);

	(void)connection;
	for (uint32_t i = 0; r == 0 && i < COLLECTOR_RECEIVES; i++)
		(void)pl_responder_post(nic->responder, *ret_qpn, 0, NULL, 0);
	return r;
}

static void soft_qp_remove(struct collector_nic *nic, uint32_t qpn)
{
	(void)pl_responder_qp_remove(nic->responder, qpn);
}

static int soft_qp_status(
	const struct collector_nic *nic, uint32_t qpn, struct pl_rdma_qp_status *ret)
{
	return pl_responder_qp_status(nic->responder, qpn, ret);
}

static uint32_t soft_completions(
	struct collector_nic *nic, struct pl_rdma_completion *ret, uint32_t max)
{
	uint32_t n = pl_responder_completions(nic->responder, ret, max);

	for (uint32_t i = 0; i < n; i++) {
		if (ret[i].kind == PL_RDMA_DONE_WRITE || ret[i].kind == PL_RDMA_DONE_SEND)
			(void)pl_responder_post(nic->responder, ret[i].qpn, 0, NULL, 0);
	}
	return n;
}

/* ---- connections ---- */

static bool soft_allowed(void *arg, const struct pl_addr *peer)
{
	const struct collector_nic *nic = arg;

	return collector_has(nic->options->allow, nic->options->n_allow, peer) ||
	       collector_has(nic->options->readers, nic->options->n_readers, peer);
}

static int soft_listen(struct collector_nic *nic, uint16_t port, uint64_t silent_ns,
	struct pl_addr **ret_own, uint32_t *ret_n, struct pl_diag *diag)
{
	const struct pl_connector_options options = { .max_connections = nic->max_qps + REQUESTS,
		.allowed = soft_allowed,
		.arg = nic,
		.mtu = soft_mtu(nic),
		.silent_ns = silent_ns };
	int r = pl_manage_open(&nic->manage, nic->nic, options, ret_own, ret_n, diag);

	return r < 0 ? r : pl_connector_listen(nic->manage.connector, port);
}

static void soft_heard(struct collector_nic *nic, uint32_t id)
{
	(void)pl_connector_heard(nic->manage.connector, id, nic->now_ns);
}

static bool soft_event(struct collector_nic *nic, struct pl_connection_event *ret)
{
	return pl_connector_event(nic->manage.connector, ret);
}

static int soft_accept(
	struct collector_nic *nic, uint32_t id, const struct pl_connection_terms *terms)
{
	return pl_connector_accept(nic->manage.connector, id, terms, nic->now_ns);
}

static void soft_reject(struct collector_nic *nic, uint32_t id, uint16_t reason)
{
	(void)pl_connector_reject(nic->manage.connector, id, reason, nic->now_ns);
}

static void soft_disconnect(struct collector_nic *nic, uint32_t id)
{
	(void)pl_connector_disconnect(nic->manage.connector, id, nic->now_ns);
}

static int soft_forget(struct collector_nic *nic, uint32_t id)
{
	return pl_connector_forget(nic->manage.connector, id);
}

/* ---- one turn ---- */

/* Gives the connection manager the present addresses and path MTU of the interface. */
static void follow_interface(struct collector_nic *nic)
{
	if (nic->manage.connector != NULL && pl_manage_follow(&nic->manage))
		pl_connector_mtu(nic->manage.connector, soft_mtu(nic));
}

/* Gives management packets to the connection manager. */
static void manage(struct collector_nic *nic)
{
	for (uint32_t i = 0; i < nic->in.n; i++) {
		if (nic->causes[i] == PL_RDMA_C_MANAGEMENT)
			pl_manage_packet(&nic->manage, &nic->in.pkts[i], nic->now_ns);
	}
}

/* Frames that the interface refuses are lost as on a wire: peers repeat their requests. */
static void send_out(struct collector_nic *nic)
{
	if (pl_nic_send(nic->nic, &nic->out, NULL) == -ENETDOWN)
		pl_nic_drop(nic->nic, &nic->out);
}

static void soft_flush(struct collector_nic *nic)
{
	bool all;

	do {
		all = pl_responder_answers(nic->responder, &nic->out);
		send_out(nic);
	} while (!all);
	if (nic->manage.connector == NULL)
		return;
	do {
		all = pl_connector_send(nic->manage.connector, nic->now_ns, &nic->out);
		send_out(nic);
	} while (!all);
}

static int soft_step(struct collector_nic *nic, uint64_t now_ns, struct pl_diag *diag)
{
	int n = pl_nic_recv(nic->nic, &nic->in, 0, diag);

	nic->now_ns = now_ns;
	follow_mac(nic);
	follow_interface(nic);
	if (n <= 0)
		return n;
	pl_responder_now(nic->responder, now_ns);
	pl_responder_batch(nic->responder, &nic->in, nic->causes);
	if (nic->manage.connector != NULL)
		manage(nic);
	pl_nic_release(nic->nic, &nic->in);
	soft_flush(nic);
	return n;
}

static uint64_t soft_next_ns(const struct collector_nic *nic)
{
	return nic->manage.connector != NULL ? pl_connector_next_ns(nic->manage.connector)
					     : UINT64_MAX;
}

static uint64_t soft_alarms(const struct collector_nic *nic)
{
	return pl_counter_read(&pl_responder_counters(nic->responder)->alarms);
}

static bool soft_alarm(struct collector_nic *nic, struct pl_rdma_suspect *ret)
{
	return pl_responder_alarm(nic->responder, ret);
}

static void soft_stats(struct collector_nic *nic, struct pl_collector_stats *ret)
{
	pl_responder_now(nic->responder, nic->now_ns);
	ret->n_suspects =
		pl_responder_suspects(nic->responder, ret->suspects, PL_RDMA_SUSPECTS_MAX);
	ret->responder = pl_responder_counters(nic->responder);
	ret->cm =
		nic->manage.connector != NULL ? pl_connector_counters(nic->manage.connector) : NULL;
	ret->nic = pl_nic_counters(nic->nic);
	pl_nic_stats(nic->nic, &ret->port);
}

static const struct collector_connection_ops connections = {
	.listen = soft_listen,
	.heard = soft_heard,
	.event = soft_event,
	.accept = soft_accept,
	.reject = soft_reject,
	.disconnect = soft_disconnect,
	.forget = soft_forget,
	.flush = soft_flush,
};

const struct collector_nic_ops collector_soft = {
	.open = soft_open,
	.close = soft_close,
	.name = soft_name,
	.note = soft_note,
	.mac = soft_mac,
	.mtu = soft_mtu,
	.fits = soft_fits,
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
	.step = soft_step,
	.next_ns = soft_next_ns,
	.alarms = soft_alarms,
	.alarm = soft_alarm,
	.stats = soft_stats,
	.connections = &connections,
};
