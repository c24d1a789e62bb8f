/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the messages of connections for the connection manager. */
#include <string.h>

#include "base/hash.h"
#include "rdma/cm_state.h"

#define SECOND      UINT64_C(1000000000)
#define TIMEOUT_MAX (60 * SECOND) /* longest delay that an MRA may ask for */
#define CM_TIMEOUT  20            /* code: 4.3 s, as other implementations use */

/* ---- saying ---- */

static uint8_t mtu_code(uint16_t mtu)
{
	return (uint8_t)(__builtin_ctz(mtu) - 7);
}

static uint16_t mtu_of(uint8_t code)
{
	return code < 1 || code > 5 ? 0 : (uint16_t)(128u << code);
}

static struct pl_cm about(const struct pl_connection *conn, enum pl_cm_kind kind)
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

/* Sets the message that a connection sends from now on. */
static void say(struct pl_connector *c, struct pl_connection *conn, const struct pl_cm *cm,
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

/* Sends a message that belongs to no connection. */
static void note(struct pl_connector *c, const struct pl_roce_path *path, const struct pl_cm *cm)
{
	struct pl_cm_note *n = &c->notes[c->notes_n];

	if (c->notes_n == PL_CM_NOTES_MAX) {
		pl_count(&c->counters.unsent, 1);
		return;
	}
	c->notes_n++;
	n->path = *path;
	write_mad(n->mad, cm, NULL, 0);
}

void pl_connection_say_req(struct pl_connector *c, struct pl_connection *conn,
	const struct pl_connection_terms *t, uint64_t now_ns)
{
	uint8_t private[PL_CM_PRIVATE_MAX];
	struct pl_build b = pl_build(private, pl_cm_private_bytes(PL_CM_REQ));
	struct pl_cm cm = about(conn, PL_CM_REQ);

	cm.service_id = PL_CM_SERVICE_TCP(conn->port);
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
	cm.src = conn->path.src;
	cm.dst = conn->path.dst;
	cm.tclass = conn->path.tos;
	cm.hop_limit = conn->path.ttl;
	cm.ack_timeout = t->ack_timeout;
	pl_cm_put_ip(&b, &(struct pl_cm_ip){ .src_port = (uint16_t)(0xc000 | conn->id),
				 .src = conn->path.src,
				 .dst = conn->path.dst });
	pl_put(&b, t->private, t->private_len);
	say(c, conn, &cm, private, b.len, true, now_ns);
}

void pl_connection_say_rep(struct pl_connector *c, struct pl_connection *conn,
	const struct pl_connection_terms *t, uint64_t now_ns)
{
	struct pl_cm cm = about(conn, PL_CM_REP);

	cm.qpn = t->qpn;
	cm.psn = t->psn;
	cm.resources = t->resources;
	cm.depth = t->depth;
	cm.rnr_retries = t->rnr_retries;
	say(c, conn, &cm, t->private, t->private_len, true, now_ns);
}

void pl_connection_say_rej(
	struct pl_connector *c, struct pl_connection *conn, uint16_t reason, uint64_t now_ns)
{
	struct pl_cm cm = about(conn, PL_CM_REJ);

	cm.about = PL_CM_ABOUT_REQ;
	cm.reason = reason;
	say(c, conn, &cm, NULL, 0, false, now_ns);
}

void pl_connection_say_dreq(struct pl_connector *c, struct pl_connection *conn, uint64_t now_ns)
{
	struct pl_cm cm = about(conn, PL_CM_DREQ);

	cm.qpn = conn->peer.qpn;
	say(c, conn, &cm, NULL, 0, true, now_ns);
}

void pl_connector_put(struct pl_connector *c, const struct pl_roce_path *path, const uint8_t *mad,
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

/* ---- receiving ---- */

static void keep_private(struct pl_connection *conn, const struct pl_cursor *private)
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

/* Rejects a path MTU that does not exist, or is larger than this side's frames carry; the REJ has
 * the largest possible one. */
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

/* Finds the connection that this request made already. */
static struct pl_connection *made_by(
	struct pl_connector *c, const struct pl_cm *cm, const struct pl_addr *peer)
{
	for (uint32_t i = 0; i < c->options.max_connections; i++) {
		struct pl_connection *conn = &c->connections[i];

		if (conn->state != CM_FREE && !conn->active && conn->remote_id == cm->local_id &&
			conn->transaction == cm->transaction &&
			pl_addr_equal(&conn->path.dst, peer))
			return conn;
	}
	return NULL;
}

static void repeated_req(struct pl_connector *c, struct pl_connection *conn,
	const struct pl_cm *req, uint64_t now_ns)
{
	struct pl_cm cm;

	pl_count(&c->counters.repeated, 1);
	if (conn->state == CM_REQ_SEEN) {
		cm = about(conn, PL_CM_MRA);
		cm.about = PL_CM_ABOUT_REQ;
		cm.timeout = CM_TIMEOUT;
		note(c, &conn->path, &cm);
	} else if (conn->state == CM_REP_SENT) {
		conn->once = true;
		conn->at_ns = now_ns + conn->wait_ns;
	} else if (conn->state == CM_DONE && conn->rejected) {
		conn->once = true;
	} else if (conn->state == CM_DONE) {
		/* The answer to it had no effect, or the connection has ended. */
		refuse(c, &conn->path, req, PL_CM_ABOUT_REQ, PL_CM_NO_RESOURCES);
	}
}

static void receive_req(struct pl_connector *c, const struct pl_cm *cm,
	const struct pl_roce_path *from, uint64_t now_ns)
{
	const struct pl_roce_path path = path_back(c, from);
	struct pl_cursor private = cm->private;
	struct pl_connection *conn;
	struct pl_cm_ip ip;

	pl_connection_forget_old(c, now_ns);
	conn = made_by(c, cm, &from->src);
	if (conn != NULL) {
		repeated_req(c, conn, cm, now_ns);
		return;
	}
	if (c->requests >= c->options.requests_per_second) {
		pl_count(&c->counters.limited, 1);
		return;
	}
	c->requests++;
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
	conn = pl_connection_add(c, now_ns);
	if (conn == NULL) {
		pl_count(&c->counters.limited, 1);
		refuse(c, &path, cm, PL_CM_ABOUT_REQ, PL_CM_NO_RESOURCES);
		return;
	}
	conn->state = CM_REQ_SEEN;
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
	struct pl_connector *c, struct pl_connection *conn, const struct pl_cm *cm, uint64_t now_ns)
{
	const struct pl_cm rtu = { .kind = PL_CM_RTU,
		.transaction = conn->transaction,
		.local_id = conn->id,
		.remote_id = cm->local_id };

	if (!conn->active || conn->state != CM_REQ_SENT) {
		pl_count(&c->counters.repeated, 1);
		/* The peer did not get our RTU. */
		conn->once = conn->once || (conn->active && conn->state == CM_UP);
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
	conn->state = CM_UP;
	conn->event = PL_CONNECTION_CONNECTED;
	say(c, conn, &rtu, NULL, 0, false, now_ns);
}

static void receive_dreq(struct pl_connector *c, struct pl_connection *conn, uint64_t now_ns)
{
	const struct pl_cm drep = about(conn, PL_CM_DREP);

	if (conn->state == CM_DONE) {
		pl_count(&c->counters.repeated, 1);
		note(c, &conn->path, &drep);
		return;
	}
	say(c, conn, &drep, NULL, 0, false, now_ns);
	pl_connection_finish(c, conn, PL_CONNECTION_CLOSED, now_ns);
}

/* Puts the next try off: the peer needs longer. */
static void receive_mra(struct pl_connection *conn, const struct pl_cm *cm, uint64_t now_ns)
{
	const uint64_t wait_ns = UINT64_C(4096) << cm->timeout;

	if (conn->state == CM_REQ_SENT || conn->state == CM_REP_SENT)
		conn->at_ns = now_ns + (wait_ns < TIMEOUT_MAX ? wait_ns : TIMEOUT_MAX);
}

static void receive_of(
	struct pl_connector *c, struct pl_connection *conn, const struct pl_cm *cm, uint64_t now_ns)
{
	switch (cm->kind) {
	case PL_CM_REP:
		receive_rep(c, conn, cm, now_ns);
		break;
	case PL_CM_RTU:
		if (conn->state != CM_REP_SENT && conn->asked == 0)
			pl_count(&c->counters.repeated, 1);
		/* The RTU is late, and its sender believes in the connection. */
		if (conn->state == CM_DONE && !conn->active)
			refuse(c, &conn->path, cm, PL_CM_ABOUT_OTHER, PL_CM_INVALID_ID);
		pl_connector_heard(c, conn->id, now_ns);
		break;
	case PL_CM_REJ:
		/* The peer's answer to a probe: it knows no such connection. */
		if (conn->asked > 0 && conn->state == CM_UP && cm->reason == PL_CM_INVALID_ID) {
			pl_connection_give_up(c, conn, PL_CONNECTION_SILENT, now_ns);
			break;
		}
		/* Our RTU was late: the peer had given up. */
		if (conn->active && conn->state == CM_UP && cm->local_id == conn->remote_id) {
			pl_connection_finish(c, conn, PL_CONNECTION_CLOSED, now_ns);
			break;
		}
		if (conn->state != CM_REQ_SENT && conn->state != CM_REP_SENT &&
			conn->state != CM_REQ_SEEN) {
			pl_count(&c->counters.repeated, 1);
			break;
		}
		conn->reason = cm->reason;
		conn->largest_mtu =
			cm->reason == PL_CM_INVALID_MTU && cm->has_ari ? mtu_of(cm->ari) : 0;
		keep_private(conn, &cm->private);
		pl_connection_finish(c, conn, PL_CONNECTION_REJECTED, now_ns);
		break;
	case PL_CM_MRA:
		receive_mra(conn, cm, now_ns);
		break;
	case PL_CM_DREQ:
		receive_dreq(c, conn, now_ns);
		break;
	default: /* DREP */
		if (conn->state == CM_DREQ_SENT)
			pl_connection_finish(c, conn, PL_CONNECTION_CLOSED, now_ns);
		else
			pl_count(&c->counters.repeated, 1);
		break;
	}
}

/* ---- who may, and how often ---- */

static void begin_second(struct pl_connector *c, uint64_t now_ns)
{
	if (now_ns - c->second_ns < SECOND)
		return;
	c->second_ns = now_ns;
	c->requests = c->denials = 0;
	memset(c->by_source, 0, sizeof(c->by_source));
}

/* Counts the messages in this second of sources with these first bytes. Sources with the same
 * (unpredictable) hash share a count. */
static uint16_t *share_of(struct pl_connector *c, const struct pl_addr *source, size_t bytes)
{
	return &c->by_source[pl_hash(source->b, bytes, c->seed) % PL_CM_SOURCES];
}

/* Returns true when one more message of this source that is part of no connection is answered in
 * this second. A host of IPv6 has all addresses of its /64, which therefore has a share too: that
 * of four. */
static bool within_share(struct pl_connector *c, const struct pl_addr *source)
{
	uint16_t *own = share_of(c, source, 16);
	uint16_t *net = pl_addr_is_v4(source) ? NULL : share_of(c, source, 8);

	if (*own >= c->options.requests_each ||
		(net != NULL && *net >= 4 * c->options.requests_each)) {
		pl_count(&c->counters.limited, 1);
		return false;
	}
	(*own)++;
	if (net != NULL)
		(*net)++;
	return true;
}

/* Handles a message of a source that is not allowed: requests are rejected, a few in a second, so
 * that the builder of a network sees the reason; other messages are not answered, so that such a
 * source takes nothing from allowed ones. */
static void deny(struct pl_connector *c, const struct pl_roce_path *path, const struct pl_cm *cm)
{
	pl_count(&c->counters.denied, 1);
	if (cm->kind != PL_CM_REQ || c->denials == PL_CM_DENIALS)
		return;
	c->denials++;
	refuse(c, path, cm, PL_CM_ABOUT_REQ, PL_CM_CONSUMER);
}

/* Answers a message about an unknown connection: its sender waits for the end, or believes in the
 * connection. */
static void receive_unknown(
	struct pl_connector *c, const struct pl_cm *cm, const struct pl_roce_path *path)
{
	pl_count(&c->counters.unknown, 1);
	if ((cm->kind != PL_CM_DREQ && cm->kind != PL_CM_REP && cm->kind != PL_CM_RTU) ||
		!within_share(c, &path->dst))
		return;
	if (cm->kind == PL_CM_DREQ)
		note(c, path,
			&(struct pl_cm){ .kind = PL_CM_DREP,
				.transaction = cm->transaction,
				.local_id = cm->remote_id,
				.remote_id = cm->local_id });
	else
		refuse(c, path, cm, cm->kind == PL_CM_REP ? PL_CM_ABOUT_REP : PL_CM_ABOUT_OTHER,
			PL_CM_INVALID_ID);
}

void pl_connector_receive(struct pl_connector *c, const struct pl_roce *packet, uint64_t now_ns)
{
	const struct pl_roce_path path = path_back(c, &packet->path);
	struct pl_connection *conn;
	struct pl_cm cm;

	pl_count(&c->counters.received, 1);
	if (packet->opcode != (PL_ROCE_UD | PL_ROCE_SEND_ONLY) || packet->qpn != PL_CM_QPN ||
		packet->qkey != PL_CM_QKEY || !is_own(c, &packet->path.dst) ||
		pl_cm_parse(&cm, packet->payload) < 0) {
		pl_count(&c->counters.malformed, 1);
		return;
	}
	begin_second(c, now_ns);
	if (c->options.allowed != NULL && !c->options.allowed(c->options.arg, &packet->path.src)) {
		deny(c, &path, &cm);
		return;
	}
	if (cm.kind == PL_CM_REQ) {
		if (within_share(c, &packet->path.src))
			receive_req(c, &cm, &packet->path, now_ns);
		return;
	}
	conn = pl_connection_find(c, cm.remote_id);
	if (conn == NULL) {
		receive_unknown(c, &cm, &path);
		return;
	}
	/* A REJ may come from a peer whose number is unknown yet; every other message has both
	 * numbers. */
	if (!pl_addr_equal(&conn->path.dst, &packet->path.src) ||
		(conn->remote_id != 0 && cm.local_id != 0 && cm.local_id != conn->remote_id)) {
		pl_count(&c->counters.foreign, 1);
		return;
	}
	receive_of(c, conn, &cm, now_ns);
}
