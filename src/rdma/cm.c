/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection manager: connections, their states and their timers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/stats.h"
#include "rdma/cm_state.h"
#include "rdma/draw.h"

#define SECOND    UINT64_C(1000000000)

/* Each try waits twice as long as the one before. The address of a request may be forged, and its
 * real owner gets no more than three times the bytes of the request (as RFC 9000, 8.1, has it). */
#define REP_TRIES 3

int pl_connector_new(struct pl_connector **ret, const struct pl_connector_options *options)
{
	struct pl_connector_options o = *options;
	struct pl_connector *c;

	*ret = NULL;
	o.max_connections = o.max_connections == 0 ? 64 : o.max_connections;
	o.requests_per_second = o.requests_per_second == 0 ? 400 : o.requests_per_second;
	o.requests_each = o.requests_each == 0 ? 50 : o.requests_each;
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
	c->seed = o.seed == 0 ? pl_hash_seed() : o.seed;
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

/* ---- the table ---- */

struct pl_connection *pl_connection_find(struct pl_connector *c, uint32_t id)
{
	uint32_t place = id == 0 ? PL_RDMA_INDEX_NONE : pl_rdma_index_find(&c->index, id);

	return place == PL_RDMA_INDEX_NONE ? NULL : &c->connections[place];
}

static void forget(struct pl_connector *c, struct pl_connection *conn)
{
	pl_rdma_index_remove(&c->index, conn->id);
	memset(conn, 0, sizeof(*conn));
}

void pl_connection_forget_old(struct pl_connector *c, uint64_t now_ns)
{
	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		struct pl_connection *conn = &c->connections[i];

		if (conn->state == CM_DONE && now_ns >= conn->at_ns && conn->event == 0)
			forget(c, conn);
	}
}

/* Finds a free place, or that of the connection closed first. NULL: none. */
static struct pl_connection *free_place(struct pl_connector *c)
{
	struct pl_connection *oldest = NULL;

	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		struct pl_connection *conn = &c->connections[i];

		if (conn->state == CM_FREE)
			return conn;
		if (conn->state == CM_DONE && conn->event == 0 &&
			(oldest == NULL || conn->at_ns < oldest->at_ns))
			oldest = conn;
	}
	if (oldest != NULL)
		forget(c, oldest);
	return oldest;
}

struct pl_connection *pl_connection_add(struct pl_connector *c, uint64_t now_ns)
{
	struct pl_connection *conn;
	uint32_t id;

	pl_connection_forget_old(c, now_ns);
	conn = free_place(c);
	if (conn == NULL)
		return NULL;
	id = pl_rdma_draw(&c->index, 0, UINT32_MAX);
	if (id == 0)
		return NULL;
	pl_rdma_index_add(&c->index, id, (uint32_t)(conn - c->connections));
	*conn = (struct pl_connection){ .id = id };
	return conn;
}

void pl_connection_finish(
	struct pl_connector *c, struct pl_connection *conn, uint8_t event, uint64_t now_ns)
{
	conn->state = CM_DONE;
	/* The end was reported to the owner already. */
	if (conn->event != PL_CONNECTION_SILENT || event != PL_CONNECTION_CLOSED)
		conn->event = event;
	/* A repeated message may still come for this long, and is answered. */
	conn->at_ns = now_ns + 2 * c->options.resend_ns;
}

/* ---- what is asked of them ---- */

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
	if (c->ports_n == PL_CM_PORTS_MAX)
		return -ENOSPC;
	c->ports[c->ports_n++] = port;
	return 0;
}

int pl_connector_connect(struct pl_connector *c, const struct pl_roce_path *path, uint16_t port,
	const struct pl_connection_terms *t, uint64_t now_ns, uint32_t *ret_id)
{
	struct pl_connection *conn;

	if (!terms_good(t, 92 - PL_CM_IP_BYTES, true))
		return -EINVAL;
	conn = pl_connection_add(c, now_ns);
	if (conn == NULL)
		return -ENOSPC;
	conn->active = true;
	conn->path = *path;
	conn->port = port;
	conn->own = *t;
	conn->own.private = NULL; /* the caller's; it is in the message */
	conn->transaction = conn->id;
	conn->state = CM_REQ_SENT;
	pl_connection_say_req(c, conn, t, now_ns);
	*ret_id = conn->id;
	return 0;
}

int pl_connector_accept(
	struct pl_connector *c, uint32_t id, const struct pl_connection_terms *t, uint64_t now_ns)
{
	struct pl_connection *conn = pl_connection_find(c, id);

	if (conn == NULL)
		return -ENOENT;
	if (conn->state != CM_REQ_SEEN || !terms_good(t, PL_CONNECTION_PRIVATE_MAX, false))
		return -EINVAL;
	conn->own = *t;
	conn->own.private = NULL; /* the caller's; it is in the message */
	conn->state = CM_REP_SENT;
	pl_connection_say_rep(c, conn, t, now_ns);
	conn->tries = conn->tries < REP_TRIES ? conn->tries : REP_TRIES;
	if (conn->tries > conn->cm_retries)
		conn->tries = (uint8_t)(conn->cm_retries + 1);
	return 0;
}

int pl_connector_reject(struct pl_connector *c, uint32_t id, uint16_t reason, uint64_t now_ns)
{
	struct pl_connection *conn = pl_connection_find(c, id);

	if (conn == NULL)
		return -ENOENT;
	if (conn->state != CM_REQ_SEEN)
		return -EINVAL;
	pl_connection_say_rej(c, conn, reason, now_ns);
	pl_connection_finish(c, conn, 0, now_ns);
	return 0;
}

int pl_connector_forget(struct pl_connector *c, uint32_t id)
{
	struct pl_connection *conn = pl_connection_find(c, id);

	if (conn == NULL)
		return -ENOENT;
	if (conn->active || conn->state == CM_UP || conn->state == CM_DREQ_SENT)
		return -EINVAL;
	forget(c, conn);
	return 0;
}

int pl_connector_disconnect(struct pl_connector *c, uint32_t id, uint64_t now_ns)
{
	struct pl_connection *conn = pl_connection_find(c, id);

	if (conn == NULL)
		return -ENOENT;
	if (conn->state != CM_UP && conn->state != CM_REP_SENT)
		return -EINVAL;
	conn->state = CM_DREQ_SENT;
	pl_connection_say_dreq(c, conn, now_ns);
	return 0;
}

/* Returns true when the silence of this connection's peer is watched. */
static bool watched(const struct pl_connector *c, const struct pl_connection *conn)
{
	return conn->state == CM_UP && !conn->active && c->options.silent_ns > 0;
}

static void end_stale(struct pl_connector *c, struct pl_connection *conn, uint64_t now_ns)
{
	pl_count(&c->counters.stale, 1);
	/* Sends a DREQ, in case the peer knows of the connection. */
	if (conn->state == CM_UP)
		pl_connection_give_up(c, conn, PL_CONNECTION_CLOSED, now_ns);
	else
		pl_connection_finish(c, conn, PL_CONNECTION_CLOSED, now_ns);
}

/* Confirms a connection: older connections of the same peer with one of its numbers are stale, and
 * end. */
static void confirm(struct pl_connector *c, struct pl_connection *conn, uint64_t now_ns)
{
	conn->state = CM_UP;
	conn->event = PL_CONNECTION_CONNECTED;
	conn->tries = 0;
	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		struct pl_connection *other = &c->connections[i];

		if (other != conn && !other->active &&
			(other->state == CM_REQ_SEEN || other->state == CM_REP_SENT ||
				other->state == CM_UP) &&
			(other->remote_id == conn->remote_id ||
				other->peer.qpn == conn->peer.qpn) &&
			pl_addr_equal(&other->path.dst, &conn->path.dst))
			end_stale(c, other, now_ns);
	}
}

int pl_connector_heard(struct pl_connector *c, uint32_t id, uint64_t now_ns)
{
	struct pl_connection *conn = pl_connection_find(c, id);

	if (conn == NULL)
		return -ENOENT;
	if (conn->state == CM_REP_SENT)
		confirm(c, conn, now_ns);
	if (watched(c, conn)) {
		conn->at_ns = now_ns + c->options.silent_ns / 2;
		conn->asked = 0;
	}
	return 0;
}

void pl_connection_give_up(
	struct pl_connector *c, struct pl_connection *conn, uint8_t event, uint64_t now_ns)
{
	conn->state = CM_DREQ_SENT;
	conn->event = event;
	pl_connection_say_dreq(c, conn, now_ns);
}

/* ---- their times ---- */

static bool waits(const struct pl_connection *conn)
{
	return conn->state == CM_REQ_SENT || conn->state == CM_REP_SENT ||
	       conn->state == CM_DREQ_SENT;
}

/* Asks a silent peer once more, or gives it up. The message sent last is the REP. */
static void doubt(
	struct pl_connector *c, struct pl_connection *conn, uint64_t now_ns, struct pl_frames *out)
{
	if (conn->asked == c->options.tries) {
		pl_connection_give_up(c, conn, PL_CONNECTION_SILENT, now_ns);
		return;
	}
	conn->asked++;
	/* Counted from now, not from the due time, so that after a late probe the peer has the full
	 * time to answer. */
	conn->at_ns = now_ns + c->options.silent_ns / 2 / c->options.tries;
	pl_count(&c->counters.asked, 1);
	pl_connector_put(c, &conn->path, conn->mad, out);
}

static void send_one(
	struct pl_connector *c, struct pl_connection *conn, uint64_t now_ns, struct pl_frames *out)
{
	if (conn->once) {
		conn->once = false;
		pl_connector_put(c, &conn->path, conn->mad, out);
		return;
	}
	if (watched(c, conn) && now_ns >= conn->at_ns) {
		doubt(c, conn, now_ns, out);
		return;
	}
	if (!waits(conn) || now_ns < conn->at_ns)
		return;
	if (conn->tries == 0) {
		/* The DREQ got no answer: the connection ends nevertheless. */
		pl_connection_finish(c, conn,
			conn->state == CM_DREQ_SENT ? PL_CONNECTION_CLOSED : PL_CONNECTION_TIMEOUT,
			now_ns);
		return;
	}
	if (conn->again)
		pl_count(&c->counters.resent, 1);
	conn->again = true;
	conn->tries--;
	conn->at_ns = now_ns + conn->wait_ns;
	if (conn->state == CM_REP_SENT)
		conn->wait_ns *= 2;
	pl_connector_put(c, &conn->path, conn->mad, out);
}

bool pl_connector_send(struct pl_connector *c, uint64_t now_ns, struct pl_frames *out)
{
	while (c->notes_n > 0) {
		if (!pl_frames_room(out, 1, PL_CM_BYTES))
			return false;
		c->notes_n--;
		pl_connector_put(c, &c->notes[c->notes_n].path, c->notes[c->notes_n].mad, out);
	}
	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		if (c->connections[i].state == CM_FREE)
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
		const struct pl_connection *conn = &c->connections[i];

		if (conn->once)
			return 0;
		if ((waits(conn) || watched(c, conn)) && conn->at_ns < next)
			next = conn->at_ns;
	}
	return next;
}

/* Finds a connection with an event; ends come before beginnings, because those may need the room.
 * NULL: none. */
static struct pl_connection *next_event(struct pl_connector *c)
{
	struct pl_connection *begins = NULL;

	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		struct pl_connection *conn = &c->connections[i];

		if (conn->event >= PL_CONNECTION_REJECTED)
			return conn;
		if (conn->event != 0 && begins == NULL)
			begins = conn;
	}
	return begins;
}

bool pl_connector_event(struct pl_connector *c, struct pl_connection_event *ret)
{
	struct pl_connection *conn = next_event(c);

	if (conn == NULL)
		return false;
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

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_connector_counters, __VA_ARGS__)
#include "rdma/cm_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_connector_stats_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

const struct pl_connector_counters *pl_connector_counters(const struct pl_connector *c)
{
	return &c->counters;
}
