/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections by librdmacm: the passive side. */
#include <errno.h>
#include <string.h>

#include "netio/sockaddr.h"
#include "verbs/verbs_internal.h"
#include "wire/roce.h"

#define BACKLOG 16

static struct verbs_connection *connection_of(struct pl_verbs *v, const struct rdma_cm_id *id)
{
	for (uint32_t i = 0; i < v->options.max_qps; i++) {
		if (v->connections[i].id == id)
			return &v->connections[i];
	}
	return NULL;
}

static struct verbs_connection *free_connection(struct pl_verbs *v)
{
	for (uint32_t i = 0; i < v->options.max_qps; i++) {
		if (v->connections[i].id == NULL)
			return &v->connections[i];
	}
	return NULL;
}

static struct verbs_connection *by_number(struct pl_verbs *v, uint32_t number)
{
	for (uint32_t i = 0; i < v->options.max_qps; i++) {
		if (v->connections[i].id != NULL && v->connections[i].number == number)
			return &v->connections[i];
	}
	return NULL;
}

static struct verbs_told *tell(
	struct pl_verbs *v, const struct verbs_connection *c, enum pl_connection_event_kind kind)
{
	struct verbs_told *told = verbs_tell(v, PL_VERBS_CONNECTION);

	if (told != NULL) {
		told->news.qpn = c->qpn;
		told->news.connection.id = c->number;
		told->news.connection.kind = (uint8_t)kind;
	}
	return told;
}

/*
 * Returns true when the connection's address was removed since its request, even if it came back:
 * then it has another place in the port's table, and the connection holds the old one. Soft-RoCE
 * (Linux 6.1) does not send from the old place, and worse: the attempt ends queue pair 1, and with
 * it the connection manager of the whole device. So nothing is sent for such a connection, and its
 * identifier, whose end would make the kernel send, is parked.
 */
static bool moved(struct pl_verbs *v, const struct verbs_connection *c)
{
	struct ibv_gid_entry now;

	return ibv_query_gid_ex(v->context, v->options.port, c->gid_index, &now, 0) != 0 ||
	       memcmp(now.gid.raw, c->own.b, sizeof(now.gid.raw)) != 0;
}

static void hang_up(struct pl_verbs *v, struct verbs_connection *c)
{
	if (!moved(v, c))
		(void)rdma_disconnect(c->id);
}

/* Frees queue pair and identifier, without an event. */
static void end(struct pl_verbs *v, struct verbs_connection *c)
{
	struct verbs_qp *q = c->qpn != 0 ? verbs_find(v, c->qpn) : NULL;

	if (q != NULL) {
		rdma_destroy_qp(c->id);
		q->qp = NULL;
		q->id = NULL;
	}
	if (moved(v, c)) {
		c->id->context = v->parked;
		v->parked = c->id;
	} else {
		rdma_destroy_id(c->id);
	}
	*c = (struct verbs_connection){ 0 };
}

void verbs_connection_end(struct pl_verbs *v, struct rdma_cm_id *id)
{
	struct verbs_connection *c = connection_of(v, id);

	if (c == NULL)
		return;
	hang_up(v, c);
	end(v, c);
}

/* Listens at our address. Returns negative errno. */
static int listen_at(struct pl_verbs *v, struct verbs_listener *l)
{
	const struct pl_addr *own = &v->gid.addr;
	struct pl_sockaddr place;
	struct rdma_cm_id *id;

	pl_sockaddr_set(&place, own, l->port);
	if (rdma_create_id(v->cm, &id, NULL, RDMA_PS_TCP) != 0)
		return -errno;
	if (rdma_bind_addr(id, (struct sockaddr *)&place.sa) != 0 ||
		rdma_listen(id, BACKLOG) != 0) {
		int error = errno;

		rdma_destroy_id(id);
		return -error;
	}
	l->id = id;
	l->at = *own;
	return 0;
}

int pl_verbs_listen(struct pl_verbs *v, uint16_t port, struct pl_diag *diag)
{
	struct verbs_listener l = { .port = port };
	int r;

	if (v->cm == NULL) {
		pl_diag_set(diag, "RDMA-CM is not available: modprobe rdma_ucm");
		return -ENOTSUP;
	}
	if (v->n_listeners == sizeof(v->listeners) / sizeof(v->listeners[0])) {
		pl_diag_set(diag, "at most %u ports", v->n_listeners);
		return -ENOSPC;
	}
	r = pl_verbs_address(v, diag);
	if (r < 0)
		return r;
	r = listen_at(v, &l);
	if (r < 0) {
		pl_diag_set(
			diag, "cannot listen for connections on port %u: %s", port, strerror(-r));
		return r;
	}
	v->listeners[v->n_listeners++] = l;
	return 0;
}

void verbs_listen_again(struct pl_verbs *v)
{
	v->deaf = false;
	for (unsigned int i = 0; i < v->n_listeners; i++) {
		struct verbs_listener *l = &v->listeners[i];

		if (l->id != NULL && pl_addr_equal(&l->at, &v->gid.addr))
			continue;
		if (l->id != NULL)
			rdma_destroy_id(l->id);
		l->id = NULL;
		if (v->cm == NULL || listen_at(v, l) < 0)
			v->deaf = true;
	}
}

static void take_request(struct pl_verbs *v, const struct rdma_cm_event *e)
{
	const struct rdma_conn_param *param = &e->param.conn;
	struct verbs_connection *c = free_connection(v);
	struct verbs_told *told;
	uint8_t n = param->private_data != NULL ? param->private_data_len : 0;

	pl_count(&v->counters.requests, 1);
	if (c != NULL && e->id->verbs == v->context) {
		*c = (struct verbs_connection){ .id = e->id,
			.number = ++v->next_number,
			.own = v->gid.addr,
			.gid_index = v->gid.index };
		told = tell(v, c, PL_CONNECTION_REQUEST);
		if (told != NULL) {
			struct pl_connection_event *ask = &told->news.connection;
			uint16_t peer;

			ask->path.src = pl_sockaddr_get(rdma_get_local_addr(e->id), &ask->port);
			ask->path.dst = pl_sockaddr_get(rdma_get_peer_addr(e->id), &peer);
			ask->terms = (struct pl_connection_terms){ .service = PL_ROCE_RC,
				.qpn = param->qp_num,
				.mtu = v->mtu,
				.resources = param->responder_resources,
				.depth = param->initiator_depth,
				.retries = param->retry_count,
				.rnr_retries = param->rnr_retry_count,
				.private_len =
					n < sizeof(told->private) ? n : sizeof(told->private) };
			if (n > 0)
				memcpy(told->private, param->private_data, ask->terms.private_len);
			return;
		}
		*c = (struct verbs_connection){ 0 };
	}
	/* There is no room for it. */
	pl_count(&v->counters.refused, 1);
	(void)rdma_reject(e->id, NULL, 0);
}

/* Handles an event. Returns true when the identifier must be destroyed, which has to wait until the
 * event is given back. */
static bool take_event(struct pl_verbs *v, const struct rdma_cm_event *e)
{
	struct verbs_connection *c = connection_of(v, e->id);

	switch (e->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		take_request(v, e);
		return connection_of(v, e->id) == NULL;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (c != NULL) {
			pl_count(&v->counters.connections, 1);
			tell(v, c, PL_CONNECTION_CONNECTED);
		}
		return false;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		if (c == NULL)
			return false;
		/* Its completions come before its end. */
		verbs_drain(v);
		pl_count(&v->counters.closed, 1);
		tell(v, c, PL_CONNECTION_CLOSED);
		hang_up(v, c);
		return true;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (!v->told_gone) {
			pl_count(&v->counters.device_gone, 1);
			v->told_gone = verbs_tell(v, PL_VERBS_GONE) != NULL;
		}
		return false;
	default:
		return false;
	}
}

void verbs_connections_step(struct pl_verbs *v)
{
	struct rdma_cm_event *e;

	while (rdma_get_cm_event(v->cm, &e) == 0) {
		struct rdma_cm_id *id = e->id;
		bool over = take_event(v, e);
		struct verbs_connection *c;

		rdma_ack_cm_event(e);
		if (!over)
			continue;
		c = connection_of(v, id);
		if (c != NULL)
			end(v, c);
		else
			rdma_destroy_id(id);
	}
}

int pl_verbs_connection_qp(struct pl_verbs *v, uint32_t number, const struct pl_rdma_qp *qp,
	uint32_t *ret_qpn, struct pl_diag *diag)
{
	struct verbs_connection *c = by_number(v, number);
	struct ibv_pd *pd = verbs_domain(v, qp->domain);
	struct verbs_qp *q = verbs_place(v);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { .qp_access_flags = verbs_access(qp->access) &
						       ~(unsigned int)IBV_ACCESS_LOCAL_WRITE };
	int error;

	if (c == NULL || c->qpn != 0)
		return c == NULL ? -ENOENT : -EINVAL;
	if (q == NULL) {
		pl_diag_set(diag, "the limit of %u queue pairs is reached", v->options.max_qps);
		return -ENOSPC;
	}
	verbs_init_attr(v, PL_ROCE_RC, &init);
	if (pd == NULL || rdma_create_qp(c->id, pd, &init) != 0)
		return verbs_failed(diag, "cannot make a queue pair", errno);
	q->qp = c->id->qp;
	q->qpn = c->qpn = q->qp->qp_num;
	q->id = c->id;
	error = ibv_modify_qp(q->qp, &attr, IBV_QP_ACCESS_FLAGS);
	if (error == 0)
		error = verbs_post(v, q, v->options.receives);
	if (error != 0) {
		rdma_destroy_qp(c->id);
		q->qp = NULL;
		c->qpn = 0;
		return verbs_failed(diag, "cannot make a queue pair ready", error);
	}
	pl_count(&v->counters.qps, 1);
	*ret_qpn = c->qpn;
	return 0;
}

int pl_verbs_accept(struct pl_verbs *v, uint32_t number, const struct pl_connection_terms *terms,
	struct pl_diag *diag)
{
	struct verbs_connection *c = by_number(v, number);
	struct rdma_conn_param param = {
		.private_data = terms->private,
		.private_data_len = (uint8_t)terms->private_len,
		.responder_resources = terms->resources < v->depth ? terms->resources : v->depth,
		.initiator_depth = terms->depth < v->depth ? terms->depth : v->depth,
		.rnr_retry_count = terms->rnr_retries,
	};
	int r = 0;

	if (c == NULL || c->qpn == 0 || terms->private_len > PL_CONNECTION_PRIVATE_MAX)
		return c == NULL ? -ENOENT : -EINVAL;
	if (rdma_accept(c->id, &param) != 0) {
		r = verbs_failed(diag, "the connection is not accepted", errno);
		pl_count(&v->counters.refused, 1);
		(void)rdma_reject(c->id, NULL, 0);
		end(v, c);
	}
	return r;
}

int pl_verbs_reject(struct pl_verbs *v, uint32_t number, const void *private, uint8_t n)
{
	struct verbs_connection *c = by_number(v, number);
	int r;

	if (c == NULL)
		return -ENOENT;
	pl_count(&v->counters.refused, 1);
	r = rdma_reject(c->id, private, n) != 0 ? -errno : 0;
	end(v, c);
	return r;
}

int pl_verbs_disconnect(struct pl_verbs *v, uint32_t number)
{
	struct verbs_connection *c = by_number(v, number);

	if (c == NULL)
		return -ENOENT;
	verbs_connection_end(v, c->id);
	return 0;
}

void verbs_connections_done(struct pl_verbs *v)
{
	for (uint32_t i = 0; v->connections != NULL && i < v->options.max_qps; i++) {
		if (v->connections[i].id != NULL)
			verbs_connection_end(v, v->connections[i].id);
	}
	while (v->parked != NULL) {
		struct rdma_cm_id *id = v->parked;

		v->parked = id->context;
		rdma_destroy_id(id);
	}
	for (unsigned int i = 0; i < v->n_listeners; i++) {
		if (v->listeners[i].id != NULL)
			rdma_destroy_id(v->listeners[i].id);
		v->listeners[i].id = NULL;
	}
}
