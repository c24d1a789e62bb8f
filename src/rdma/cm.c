/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "rdma/cm.h"
#include "rdma/draw.h"

#define PORTS_MAX   16
#define NOTES_MAX   32 /* answers that belong to no connection */
#define SECOND      UINT64_C(1000000000)
#define TIMEOUT_MAX (60 * SECOND) /* what an MRA may ask for */
#define CM_TIMEOUT  20            /* code: 4.3 s, as others say */
#define REP_TRIES   4             /* each waits twice as long: who asked may be nobody */

enum state { FREE, REQ_SENT, REQ_SEEN, REP_SENT, UP, DREQ_SENT, DONE };

struct connection {
	enum state state;
	bool active;
	uint32_t id, remote_id;
	uint64_t transaction;
	uint16_t port, reason, largest_mtu;
	struct pl_roce_path path;
	struct pl_connection_terms own, peer;
	uint8_t private[PL_CONNECTION_PRIVATE_MAX]; /* the peer's */
	uint8_t event;                              /* enum pl_connection_event_kind; 0: none */

	uint8_t mad[PL_CM_BYTES]; /* what was sent last */
	bool once;                /* it is to be sent now, once */
	uint64_t
		at_ns; /* it is sent again then; UP, passive: to see who is there; DONE: forgotten then */
	uint64_t wait_ns; /* for the next time */
	uint8_t tries;
	bool again;         /* it was sent before */
	bool rejected;      /* what it says is a REJ */
	uint8_t cm_retries; /* passive: how often the peer wants its answer repeated */
	uint8_t asked;      /* UP, passive: so often in vain */
};

struct note {
	struct pl_roce_path path;
	uint8_t mad[PL_CM_BYTES];
};

struct pl_connector {
	struct pl_connector_options options;
	struct pl_addr *own; /* options.n_own */
	struct pl_rdma_index index;
	struct connection *connections;
	uint16_t ports[PORTS_MAX];
	uint32_t ports_n;
	struct note notes[NOTES_MAX];
	uint32_t notes_n;
	uint64_t second_ns; /* when the present second of requests began */
	uint32_t requests;  /* in it */
	uint32_t psn;
	struct pl_connector_counters counters;
};

int pl_connector_new(struct pl_connector **ret, const struct pl_connector_options *options)
{
	struct pl_connector_options o = *options;
	struct pl_connector *c;

	*ret = NULL;
	o.max_connections = o.max_connections == 0 ? 64 : o.max_connections;
	o.requests_per_second = o.requests_per_second == 0 ? 100 : o.requests_per_second;
	o.resend_ns = o.resend_ns == 0 ? SECOND / 2 : o.resend_ns;
	o.tries = o.tries == 0 ? 8 : o.tries;
	o.mtu = o.mtu == 0 ? PL_ROCE_PATH_MTU : o.mtu;
	if (o.max_connections > 65536 || o.n_own == 0)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->options = o;
	c->own = calloc(o.n_own, sizeof(*c->own));
	c->connections = calloc(o.max_connections, sizeof(*c->connections));
	if (c->own == NULL || c->connections == NULL ||
		!pl_rdma_index_init(&c->index, o.max_connections)) {
		pl_connector_free(c);
		return -ENOMEM;
	}
	memcpy(c->own, o.own, o.n_own * sizeof(*c->own));
	c->options.own = c->own;
	*ret = c;
	return 0;
}

void pl_connector_free(struct pl_connector *c)
{
	if (c == NULL)
		return;
	pl_rdma_index_done(&c->index);
	free(c->connections);
	free(c->own);
	free(c);
}

int pl_connector_own(struct pl_connector *c, const struct pl_addr *own, uint32_t n)
{
	struct pl_addr *copy = calloc(n + 1, sizeof(*copy));

	if (copy == NULL)
		return -ENOMEM;
	if (n > 0)
		memcpy(copy, own, n * sizeof(*copy));
	free(c->own);
	c->own = copy;
	c->options.own = copy;
	c->options.n_own = n;
	return 0;
}

void pl_connector_mtu(struct pl_connector *c, uint16_t mtu)
{
	c->options.mtu = mtu;
}

static struct connection *connection_of(struct pl_connector *c, uint32_t id)
{
	uint32_t place = id == 0 ? PL_RDMA_INDEX_NONE : pl_rdma_index_find(&c->index, id);

	return place == PL_RDMA_INDEX_NONE ? NULL : &c->connections[place];
}

static void forget(struct pl_connector *c, struct connection *conn)
{
	pl_rdma_index_remove(&c->index, conn->id);
	memset(conn, 0, sizeof(*conn));
}

/* One that was closed goes when its time is over and its event was fetched. */
static void forget_old(struct pl_connector *c, uint64_t now_ns)
{
	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		struct connection *conn = &c->connections[i];

		if (conn->state == DONE && now_ns >= conn->at_ns && conn->event == 0)
			forget(c, conn);
	}
}

/* A free place, or that of the one that was closed first. NULL: there is none. */
static struct connection *free_place(struct pl_connector *c)
{
	struct connection *oldest = NULL;

	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		struct connection *conn = &c->connections[i];

		if (conn->state == FREE)
			return conn;
		if (conn->state == DONE && conn->event == 0 &&
			(oldest == NULL || conn->at_ns < oldest->at_ns))
			oldest = conn;
	}
	if (oldest != NULL)
		forget(c, oldest);
	return oldest;
}

/* A new one with a number of its own; NULL: no room. */
static struct connection *add(struct pl_connector *c, uint64_t now_ns)
{
	struct connection *conn;
	uint32_t id;

	forget_old(c, now_ns);
	conn = free_place(c);
	if (conn == NULL)
		return NULL;
	id = pl_rdma_draw(&c->index, 0, UINT32_MAX);
	if (id == 0)
		return NULL;
	pl_rdma_index_add(&c->index, id, (uint32_t)(conn - c->connections));
	*conn = (struct connection){ .id = id };
	return conn;
}

static void finish(struct pl_connector *c, struct connection *conn, uint8_t event, uint64_t now_ns)
{
	conn->state = DONE;
	/* That it is over was told already. */
	if (conn->event != PL_CONNECTION_SILENT || event != PL_CONNECTION_CLOSED)
		conn->event = event;
	/* So long a message that is sent again may still come, and is answered. */
	conn->at_ns = now_ns + 2 * c->options.resend_ns;
}

/* ---- messages ---- */

static uint8_t mtu_code(uint16_t mtu)
{
	return (uint8_t)(__builtin_ctz(mtu) - 7);
}

static struct pl_cm about(const struct connection *conn, enum pl_cm_kind kind)
{
	return (struct pl_cm){ .kind = (uint8_t)kind,
		.transaction = conn->transaction,
		.local_id = conn->id,
		.remote_id = conn->remote_id };
}

static void write_mad(
	uint8_t mad[PL_CM_BYTES], const struct pl_cm *cm, const void *private, size_t len)
{
	struct pl_build b = pl_build(mad, PL_CM_BYTES);

	pl_cm_put(&b, cm, private, len);
}

/* The connection says this from now on. */
static void say(struct pl_connector *c, struct connection *conn, const struct pl_cm *cm,
	const void *private, size_t len, bool repeat, uint64_t now_ns)
{
	write_mad(conn->mad, cm, private, len);
	conn->once = !repeat;
	conn->tries = repeat ? c->options.tries : 0;
	conn->again = false;
	conn->rejected = cm->kind == PL_CM_REJ;
	conn->wait_ns = c->options.resend_ns;
	conn->at_ns = now_ns;
}

/* Something that no connection says. */
static void note(struct pl_connector *c, const struct pl_roce_path *path, const struct pl_cm *cm)
{
	struct note *n = &c->notes[c->notes_n];

	if (c->notes_n == NOTES_MAX) {
		pl_count(&c->counters.unsent, 1);
		return;
	}
	c->notes_n++;
	n->path = *path;
	write_mad(n->mad, cm, NULL, 0);
}

static bool terms_good(const struct pl_connection_terms *t, uint32_t private_max, bool active)
{
	const bool mtu = t->mtu >= 256 && t->mtu <= 4096 && (t->mtu & (t->mtu - 1)) == 0;

	if (active && (!mtu || (t->service != PL_ROCE_RC && t->service != PL_ROCE_UC)))
		return false;
	return t->qpn <= PL_ROCE_PSN_MASK && t->psn <= PL_ROCE_PSN_MASK && t->retries < 8 &&
	       t->rnr_retries < 8 && t->ack_timeout < 32 && t->private_len <= private_max;
}

int pl_connector_listen(struct pl_connector *c, uint16_t port)
{
	if (c->ports_n == PORTS_MAX)
		return -ENOSPC;
	c->ports[c->ports_n++] = port;
	return 0;
}

int pl_connector_connect(struct pl_connector *c, const struct pl_roce_path *path, uint16_t port,
	const struct pl_connection_terms *t, uint64_t now_ns, uint32_t *ret_id)
{
	uint8_t private[PL_CM_PRIVATE_MAX];
	struct pl_build b = pl_build(private, pl_cm_private_bytes(PL_CM_REQ));
	struct connection *conn;
	struct pl_cm cm;

	if (!terms_good(t, 92 - PL_CM_IP_BYTES, true))
		return -EINVAL;
	conn = add(c, now_ns);
	if (conn == NULL)
		return -ENOSPC;
	conn->active = true;
	conn->path = *path;
	conn->port = port;
	conn->own = *t;
	conn->own.private = NULL; /* the caller's; it is in the message */
	conn->transaction = conn->id;
	conn->state = REQ_SENT;
	cm = about(conn, PL_CM_REQ);
	cm.service_id = PL_CM_SERVICE_TCP(port);
	cm.qpn = t->qpn;
	cm.psn = t->psn;
	cm.resources = t->resources;
	cm.depth = t->depth;
	cm.transport = t->service == PL_ROCE_UC;
	cm.remote_timeout = cm.local_timeout = CM_TIMEOUT;
	cm.retries = t->retries;
	cm.rnr_retries = t->rnr_retries;
	cm.cm_retries = 15;
	cm.pkey = PL_ROCE_PKEY;
	cm.mtu = mtu_code(t->mtu);
	cm.local_lid = cm.remote_lid = 0xffff;
	cm.src = path->src;
	cm.dst = path->dst;
	cm.tclass = path->tos;
	cm.hop_limit = path->ttl;
	cm.ack_timeout = t->ack_timeout;
	pl_cm_put_ip(&b, &(struct pl_cm_ip){ .src_port = (uint16_t)(0xc000 | conn->id),
				 .src = path->src,
				 .dst = path->dst });
	pl_put(&b, t->private, t->private_len);
	say(c, conn, &cm, private, b.len, true, now_ns);
	*ret_id = conn->id;
	return 0;
}

int pl_connector_accept(
	struct pl_connector *c, uint32_t id, const struct pl_connection_terms *t, uint64_t now_ns)
{
	struct connection *conn = connection_of(c, id);
	struct pl_cm cm;

	if (conn == NULL)
		return -ENOENT;
	if (conn->state != REQ_SEEN || !terms_good(t, PL_CONNECTION_PRIVATE_MAX, false))
		return -EINVAL;
	conn->own = *t;
	conn->own.private = NULL; /* the caller's; it is in the message */
	cm = about(conn, PL_CM_REP);
	cm.qpn = t->qpn;
	cm.psn = t->psn;
	cm.resources = t->resources;
	cm.depth = t->depth;
	cm.rnr_retries = t->rnr_retries;
	conn->state = REP_SENT;
	say(c, conn, &cm, t->private, t->private_len, true, now_ns);
	conn->tries = conn->tries < REP_TRIES ? conn->tries : REP_TRIES;
	if (conn->tries > conn->cm_retries)
		conn->tries = (uint8_t)(conn->cm_retries + 1);
	return 0;
}

int pl_connector_reject(struct pl_connector *c, uint32_t id, uint16_t reason, uint64_t now_ns)
{
	struct connection *conn = connection_of(c, id);
	struct pl_cm cm;

	if (conn == NULL)
		return -ENOENT;
	if (conn->state != REQ_SEEN)
		return -EINVAL;
	cm = about(conn, PL_CM_REJ);
	cm.about = PL_CM_ABOUT_REQ;
	cm.reason = reason;
	say(c, conn, &cm, NULL, 0, false, now_ns);
	finish(c, conn, 0, now_ns);
	return 0;
}

int pl_connector_forget(struct pl_connector *c, uint32_t id)
{
	struct connection *conn = connection_of(c, id);

	if (conn == NULL)
		return -ENOENT;
	if (conn->active || conn->state == UP || conn->state == DREQ_SENT)
		return -EINVAL;
	forget(c, conn);
	return 0;
}

int pl_connector_disconnect(struct pl_connector *c, uint32_t id, uint64_t now_ns)
{
	struct connection *conn = connection_of(c, id);
	struct pl_cm cm;

	if (conn == NULL)
		return -ENOENT;
	if (conn->state != UP && conn->state != REP_SENT)
		return -EINVAL;
	cm = about(conn, PL_CM_DREQ);
	cm.qpn = conn->peer.qpn;
	conn->state = DREQ_SENT;
	say(c, conn, &cm, NULL, 0, true, now_ns);
	return 0;
}

/* Whether a connection is one whose peer's silence is noticed. */
static bool watched(const struct pl_connector *c, const struct connection *conn)
{
	return conn->state == UP && !conn->active && c->options.silent_ns > 0;
}

int pl_connector_heard(struct pl_connector *c, uint32_t id, uint64_t now_ns)
{
	struct connection *conn = connection_of(c, id);

	if (conn == NULL)
		return -ENOENT;
	if (conn->state == REP_SENT) {
		conn->state = UP;
		conn->event = PL_CONNECTION_CONNECTED;
		conn->tries = 0;
	}
	if (watched(c, conn)) {
		conn->at_ns = now_ns + c->options.silent_ns / 2;
		conn->asked = 0;
	}
	return 0;
}

/* The peer is given up. */
static void give_up(struct pl_connector *c, struct connection *conn, uint8_t event, uint64_t now_ns)
{
	struct pl_cm dreq = about(conn, PL_CM_DREQ);

	dreq.qpn = conn->peer.qpn;
	conn->state = DREQ_SENT;
	conn->event = event;
	say(c, conn, &dreq, NULL, 0, true, now_ns);
}

/* ---- receiving ---- */

static void keep_private(struct connection *conn, const struct pl_cursor *private)
{
	size_t n = pl_cursor_left(private);

	n = n < sizeof(conn->private) ? n : sizeof(conn->private);
	if (n > 0)
		memcpy(conn->private, private->pos, n);
	conn->peer.private = conn->private;
	conn->peer.private_len = (uint32_t)n;
}

static bool is_own(const struct pl_connector *c, const struct pl_addr *addr)
{
	for (uint32_t i = 0; i < c->options.n_own; i++) {
		if (pl_addr_equal(&c->own[i], addr))
			return true;
	}
	return false;
}

static bool listens(const struct pl_connector *c, uint64_t service_id)
{
	for (uint32_t i = 0; i < c->ports_n; i++) {
		if (service_id == PL_CM_SERVICE_TCP(c->ports[i]))
			return true;
	}
	return false;
}

static struct pl_roce_path path_back(const struct pl_connector *c, const struct pl_roce_path *from)
{
	struct pl_roce_path path = *from;

	path.src = from->dst;
	path.dst = from->src;
	memcpy(path.dmac, from->smac, 6);
	memcpy(path.smac, c->options.smac, 6);
	path.sport = 0xc000;
	path.ttl = 64;
	path.may_fragment = false;
	return path;
}

static void refuse(struct pl_connector *c, const struct pl_roce_path *path, const struct pl_cm *cm,
	uint8_t what, uint16_t reason)
{
	note(c, path,
		&(struct pl_cm){ .kind = PL_CM_REJ,
			.transaction = cm->transaction,
			.local_id = cm->remote_id,
			.remote_id = cm->local_id,
			.about = what,
			.reason = reason });
}

static uint16_t mtu_of(uint8_t code)
{
	return code < 1 || code > 5 ? 0 : (uint16_t)(128u << code);
}

/* A path MTU that is none, or larger than frames that this side carries. It is told what would do. */
static void refuse_mtu(
	struct pl_connector *c, const struct pl_roce_path *path, const struct pl_cm *cm)
{
	note(c, path,
		&(struct pl_cm){ .kind = PL_CM_REJ,
			.transaction = cm->transaction,
			.remote_id = cm->local_id,
			.about = PL_CM_ABOUT_REQ,
			.reason = PL_CM_INVALID_MTU,
			.has_ari = true,
			.ari = mtu_code(c->options.mtu) });
}

/* The connection that this request made already. */
static struct connection *made_by(
	struct pl_connector *c, const struct pl_cm *cm, const struct pl_addr *peer)
{
	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		struct connection *conn = &c->connections[i];

		if (conn->state != FREE && !conn->active && conn->remote_id == cm->local_id &&
			conn->transaction == cm->transaction &&
			pl_addr_equal(&conn->path.dst, peer))
			return conn;
	}
	return NULL;
}

/* One that stands, though its peer asks again by a number that it has there: it knows of it no more (12.9.8.3). */
static struct connection *find_stale(
	struct pl_connector *c, const struct pl_cm *cm, const struct pl_addr *peer)
{
	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		struct connection *conn = &c->connections[i];

		if (!conn->active &&
			(conn->state == REQ_SEEN || conn->state == REP_SENT || conn->state == UP) &&
			(conn->remote_id == cm->local_id || conn->peer.qpn == cm->qpn) &&
			pl_addr_equal(&conn->path.dst, peer))
			return conn;
	}
	return NULL;
}

/* It ends. Should the peer know of it all the same, a DREQ says so. */
static void end_stale(struct pl_connector *c, struct connection *conn, uint64_t now_ns)
{
	pl_count(&c->counters.stale, 1);
	if (conn->state == UP)
		give_up(c, conn, PL_CONNECTION_CLOSED, now_ns);
	else
		finish(c, conn, PL_CONNECTION_CLOSED, now_ns);
}

static void repeated_req(
	struct pl_connector *c, struct connection *conn, const struct pl_cm *req, uint64_t now_ns)
{
	struct pl_cm cm;

	pl_count(&c->counters.repeated, 1);
	if (conn->state == REQ_SEEN) {
		cm = about(conn, PL_CM_MRA);
		cm.about = PL_CM_ABOUT_REQ;
		cm.timeout = CM_TIMEOUT;
		note(c, &conn->path, &cm);
	} else if (conn->state == REP_SENT) {
		conn->once = true;
		conn->at_ns = now_ns + conn->wait_ns;
	} else if (conn->state == DONE && conn->rejected) {
		conn->once = true;
	} else if (conn->state == DONE) {
		/* It was answered in vain, or is over. */
		refuse(c, &conn->path, req, PL_CM_ABOUT_REQ, PL_CM_NO_RESOURCES);
	}
}

static void receive_req(struct pl_connector *c, const struct pl_cm *cm,
	const struct pl_roce_path *from, uint64_t now_ns)
{
	const struct pl_roce_path path = path_back(c, from);
	struct pl_cursor private = cm->private;
	struct connection *conn;
	struct pl_cm_ip ip;

	forget_old(c, now_ns);
	conn = made_by(c, cm, &from->src);
	if (conn != NULL) {
		repeated_req(c, conn, cm, now_ns);
		return;
	}
	if (now_ns - c->second_ns >= SECOND) {
		c->second_ns = now_ns;
		c->requests = 0;
	}
	if (++c->requests > c->options.requests_per_second) {
		pl_count(&c->counters.limited, 1);
		return;
	}
	if (!listens(c, cm->service_id) || !pl_cm_get_ip(&ip, &private)) {
		refuse(c, &path, cm, PL_CM_ABOUT_REQ, PL_CM_INVALID_SERVICE_ID);
		return;
	}
	if (cm->transport > 1) {
		refuse(c, &path, cm, PL_CM_ABOUT_REQ, PL_CM_INVALID_TRANSPORT);
		return;
	}
	if (mtu_of(cm->mtu) == 0 || mtu_of(cm->mtu) > c->options.mtu) {
		refuse_mtu(c, &path, cm);
		return;
	}
	conn = find_stale(c, cm, &from->src);
	if (conn != NULL) {
		end_stale(c, conn, now_ns);
		refuse(c, &path, cm, PL_CM_ABOUT_REQ, PL_CM_STALE);
		return;
	}
	conn = add(c, now_ns);
	if (conn == NULL) {
		pl_count(&c->counters.limited, 1);
		refuse(c, &path, cm, PL_CM_ABOUT_REQ, PL_CM_NO_RESOURCES);
		return;
	}
	conn->state = REQ_SEEN;
	conn->remote_id = cm->local_id;
	conn->transaction = cm->transaction;
	conn->path = path;
	conn->port = (uint16_t)cm->service_id;
	conn->cm_retries = cm->cm_retries;
	conn->peer = (struct pl_connection_terms){ .qpn = cm->qpn,
		.psn = cm->psn,
		.service = cm->transport == 1 ? PL_ROCE_UC : PL_ROCE_RC,
		.mtu = mtu_of(cm->mtu),
		.resources = cm->resources,
		.depth = cm->depth,
		.retries = cm->retries,
		.rnr_retries = cm->rnr_retries,
		.ack_timeout = cm->ack_timeout };
	keep_private(conn, &private);
	conn->event = PL_CONNECTION_REQUEST;
}

static void receive_rep(
	struct pl_connector *c, struct connection *conn, const struct pl_cm *cm, uint64_t now_ns)
{
	const struct pl_cm rtu = { .kind = PL_CM_RTU,
		.transaction = conn->transaction,
		.local_id = conn->id,
		.remote_id = cm->local_id };

	if (!conn->active || conn->state != REQ_SENT) {
		pl_count(&c->counters.repeated, 1);
		/* Our RTU was lost. */
		conn->once = conn->once || (conn->active && conn->state == UP);
		return;
	}
	conn->remote_id = cm->local_id;
	conn->peer = (struct pl_connection_terms){ .qpn = cm->qpn,
		.psn = cm->psn,
		.service = conn->own.service,
		.mtu = conn->own.mtu,
		.resources = cm->resources,
		.depth = cm->depth,
		.retries = conn->own.retries,
		.rnr_retries = cm->rnr_retries,
		.ack_timeout = conn->own.ack_timeout };
	keep_private(conn, &cm->private);
	conn->state = UP;
	conn->event = PL_CONNECTION_CONNECTED;
	say(c, conn, &rtu, NULL, 0, false, now_ns);
}

static void receive_dreq(struct pl_connector *c, struct connection *conn, uint64_t now_ns)
{
	const struct pl_cm drep = about(conn, PL_CM_DREP);

	if (conn->state == DONE) {
		pl_count(&c->counters.repeated, 1);
		note(c, &conn->path, &drep);
		return;
	}
	say(c, conn, &drep, NULL, 0, false, now_ns);
	finish(c, conn, PL_CONNECTION_CLOSED, now_ns);
}

/* It takes longer: the next try is put off. */
static void receive_mra(struct connection *conn, const struct pl_cm *cm, uint64_t now_ns)
{
	const uint64_t wait_ns = UINT64_C(4096) << cm->timeout;

	if (conn->state == REQ_SENT || conn->state == REP_SENT)
		conn->at_ns = now_ns + (wait_ns < TIMEOUT_MAX ? wait_ns : TIMEOUT_MAX);
}

static void receive_of(
	struct pl_connector *c, struct connection *conn, const struct pl_cm *cm, uint64_t now_ns)
{
	switch (cm->kind) {
	case PL_CM_REP:
		receive_rep(c, conn, cm, now_ns);
		break;
	case PL_CM_RTU:
		if (conn->state != REP_SENT && conn->asked == 0)
			pl_count(&c->counters.repeated, 1);
		/* It comes too late, and its sender believes in the connection. */
		if (conn->state == DONE && !conn->active)
			refuse(c, &conn->path, cm, PL_CM_ABOUT_OTHER, PL_CM_INVALID_ID);
		pl_connector_heard(c, conn->id, now_ns);
		break;
	case PL_CM_REJ:
		/* Asked, the peer says that it knows of no connection. */
		if (conn->asked > 0 && conn->state == UP && cm->reason == PL_CM_INVALID_ID) {
			give_up(c, conn, PL_CONNECTION_SILENT, now_ns);
			break;
		}
		/* Our RTU came too late: the other side had given up. */
		if (conn->active && conn->state == UP && cm->local_id == conn->remote_id) {
			finish(c, conn, PL_CONNECTION_CLOSED, now_ns);
			break;
		}
		if (conn->state != REQ_SENT && conn->state != REP_SENT && conn->state != REQ_SEEN) {
			pl_count(&c->counters.repeated, 1);
			break;
		}
		conn->reason = cm->reason;
		conn->largest_mtu =
			cm->reason == PL_CM_INVALID_MTU && cm->has_ari ? mtu_of(cm->ari) : 0;
		keep_private(conn, &cm->private);
		finish(c, conn, PL_CONNECTION_REJECTED, now_ns);
		break;
	case PL_CM_MRA:
		receive_mra(conn, cm, now_ns);
		break;
	case PL_CM_DREQ:
		receive_dreq(c, conn, now_ns);
		break;
	default: /* DREP */
		if (conn->state == DREQ_SENT)
			finish(c, conn, PL_CONNECTION_CLOSED, now_ns);
		else
			pl_count(&c->counters.repeated, 1);
		break;
	}
}

void pl_connector_receive(struct pl_connector *c, const struct pl_roce *packet, uint64_t now_ns)
{
	const struct pl_roce_path path = path_back(c, &packet->path);
	struct connection *conn;
	struct pl_cm cm;

	pl_count(&c->counters.received, 1);
	if (packet->opcode != (PL_ROCE_UD | PL_ROCE_SEND_ONLY) || packet->qpn != PL_CM_QPN ||
		packet->qkey != PL_CM_QKEY || !is_own(c, &packet->path.dst) ||
		pl_cm_parse(&cm, packet->payload) < 0) {
		pl_count(&c->counters.malformed, 1);
		return;
	}
	if (cm.kind == PL_CM_REQ) {
		receive_req(c, &cm, &packet->path, now_ns);
		return;
	}
	conn = connection_of(c, cm.remote_id);
	if (conn == NULL) {
		pl_count(&c->counters.unknown, 1);
		/* Somebody waits for an end of what we do not know, or believes in it. */
		if (cm.kind == PL_CM_DREQ)
			note(c, &path,
				&(struct pl_cm){ .kind = PL_CM_DREP,
					.transaction = cm.transaction,
					.local_id = cm.remote_id,
					.remote_id = cm.local_id });
		else if (cm.kind == PL_CM_REP)
			refuse(c, &path, &cm, PL_CM_ABOUT_REP, PL_CM_INVALID_ID);
		else if (cm.kind == PL_CM_RTU)
			refuse(c, &path, &cm, PL_CM_ABOUT_OTHER, PL_CM_INVALID_ID);
		return;
	}
	/* A REJ may come from whom we do not know by number yet; everything else names both. */
	if (!pl_addr_equal(&conn->path.dst, &packet->path.src) ||
		(conn->remote_id != 0 && cm.local_id != 0 && cm.local_id != conn->remote_id)) {
		pl_count(&c->counters.foreign, 1);
		return;
	}
	receive_of(c, conn, &cm, now_ns);
}

/* ---- sending ---- */

static void put(struct pl_connector *c, const struct pl_roce_path *path, const uint8_t *mad,
	struct pl_frames *out)
{
	const struct pl_roce packet = { .path = *path,
		.opcode = PL_ROCE_UD | PL_ROCE_SEND_ONLY,
		.pkey = PL_ROCE_PKEY,
		.qpn = PL_CM_QPN,
		.psn = c->psn,
		.qkey = PL_CM_QKEY,
		.src_qpn = PL_CM_QPN };

	c->psn = pl_psn_add(c->psn, 1);
	pl_frames_put(out, &packet, mad, PL_CM_BYTES);
	pl_count(&c->counters.sent, 1);
}

static bool waits(const struct connection *conn)
{
	return conn->state == REQ_SENT || conn->state == REP_SENT || conn->state == DREQ_SENT;
}

/* A peer that was silent so long is asked once more, or no more. What it was sent last is the REP. */
static void doubt(
	struct pl_connector *c, struct connection *conn, uint64_t now_ns, struct pl_frames *out)
{
	if (conn->asked == c->options.tries) {
		give_up(c, conn, PL_CONNECTION_SILENT, now_ns);
		return;
	}
	conn->asked++;
	/* From now, not from when it was due: whoever was asked late has as long to answer. */
	conn->at_ns = now_ns + c->options.silent_ns / 2 / c->options.tries;
	pl_count(&c->counters.asked, 1);
	put(c, &conn->path, conn->mad, out);
}

static void send_one(
	struct pl_connector *c, struct connection *conn, uint64_t now_ns, struct pl_frames *out)
{
	if (conn->once) {
		conn->once = false;
		put(c, &conn->path, conn->mad, out);
		return;
	}
	if (watched(c, conn) && now_ns >= conn->at_ns) {
		doubt(c, conn, now_ns, out);
		return;
	}
	if (!waits(conn) || now_ns < conn->at_ns)
		return;
	if (conn->tries == 0) {
		/* Nobody answered the end: it is one all the same. */
		finish(c, conn,
			conn->state == DREQ_SENT ? PL_CONNECTION_CLOSED : PL_CONNECTION_TIMEOUT,
			now_ns);
		return;
	}
	if (conn->again)
		pl_count(&c->counters.resent, 1);
	conn->again = true;
	conn->tries--;
	conn->at_ns = now_ns + conn->wait_ns;
	if (conn->state == REP_SENT)
		conn->wait_ns *= 2;
	put(c, &conn->path, conn->mad, out);
}

bool pl_connector_send(struct pl_connector *c, uint64_t now_ns, struct pl_frames *out)
{
	while (c->notes_n > 0) {
		if (!pl_frames_room(out, 1, PL_CM_BYTES))
			return false;
		c->notes_n--;
		put(c, &c->notes[c->notes_n].path, c->notes[c->notes_n].mad, out);
	}
	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		if (c->connections[i].state == FREE)
			continue;
		if (!pl_frames_room(out, 1, PL_CM_BYTES))
			return false;
		send_one(c, &c->connections[i], now_ns, out);
	}
	return true;
}

uint64_t pl_connector_next_ns(const struct pl_connector *c)
{
	uint64_t next = c->notes_n > 0 ? 0 : UINT64_MAX;

	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		const struct connection *conn = &c->connections[i];

		if (conn->once)
			return 0;
		if ((waits(conn) || watched(c, conn)) && conn->at_ns < next)
			next = conn->at_ns;
	}
	return next;
}

bool pl_connector_event(struct pl_connector *c, struct pl_connection_event *ret)
{
	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		struct connection *conn = &c->connections[i];

		if (conn->event == 0)
			continue;
		*ret = (struct pl_connection_event){ .id = conn->id,
			.kind = conn->event,
			.reason = conn->reason,
			.largest_mtu = conn->largest_mtu,
			.port = conn->port,
			.path = conn->path,
			.terms = conn->peer };
		conn->event = 0;
		return true;
	}
	return false;
}

const struct pl_connector_counters *pl_connector_counters(const struct pl_connector *c)
{
	return &c->counters;
}
