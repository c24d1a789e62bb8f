/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects to a collector by RDMA-CM. */
#include "remote/caller.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/manage.h"
#include "rdma/responder.h" /* PL_RDMA_* */
#include "wire/cm.h"

#define ACK_TIMEOUT 14 /* code: 67 ms */
#define BEYOND      16 /* connections besides the calls: those that are being ended */

struct pl_call {
	struct pl_caller *caller;
	bool used, writes;    /* writes: it requested write access */
	uint32_t id;          /* of the connection */
	bool connected;       /* there is a connection to end */
	int result;           /* 0: under way */
	uint16_t largest_mtu; /* of -EMSGSIZE */
	struct pl_exchange theirs;
	const char *server; /* borrowed from the opener */
	struct pl_diag why; /* of a result below zero */
};

struct pl_caller {
	struct pl_manage manage;
	uint32_t max;
	struct pl_call calls[];
};

int pl_caller_new(
	struct pl_caller **ret, struct pl_nic *nic, uint32_t max_calls, struct pl_diag *diag)
{
	const struct pl_connector_options options = { .max_connections = 2 * max_calls + BEYOND };
	struct pl_caller *c = calloc(1, sizeof(*c) + (size_t)max_calls * sizeof(c->calls[0]));
	struct pl_addr *own = NULL;
	uint32_t n;
	int r;

	if (c == NULL)
		return -ENOMEM;
	c->max = max_calls;
	r = pl_manage_open(&c->manage, nic, options, &own, &n, diag);
	free(own);
	if (r < 0)
		pl_caller_free(c);
	else
		*ret = c;
	return r;
}

void pl_caller_free(struct pl_caller *c)
{
	if (c == NULL)
		return;
	pl_manage_close(&c->manage);
	free(c);
}

/* ---- what happens ---- */

static void fail(struct pl_call *call, int error, const char *text)
{
	call->result = error;
	pl_diag_set(&call->why, "%s: %s", call->server, text);
}

static void rejected(struct pl_call *call, const struct pl_connection_event *e)
{
	switch (e->reason) {
	case PL_CM_NO_RESOURCES:
		fail(call, -EACCES, "the collector has no room for another queue pair");
		break;
	case PL_CM_INVALID_SERVICE_ID:
		fail(call, -EACCES, "no collector listens on this RDMA-CM port");
		break;
	case PL_CM_INVALID_TRANSPORT:
		fail(call, -EACCES, "the collector does not support the requested parameters");
		break;
	case PL_CM_STALE:
		fail(call, -EACCES,
			"the collector had an old connection of this host and has ended it");
		break;
	case PL_CM_INVALID_MTU:
		call->largest_mtu = e->largest_mtu;
		fail(call, -EMSGSIZE, "the path MTU is too large for the collector");
		break;
	case PL_CM_CONSUMER:
		fail(call, -EACCES, "the collector has no such store, or does not allow this host");
		break;
	default:
		call->result = -EACCES;
		pl_diag_set(&call->why, "%s: rejected, reason %u", call->server, e->reason);
		break;
	}
}

/* The reply has the first packet number twice. The one of RDMA-CM counts: a kernel that connects
 * draws the number itself, after the message was made. */
static void connected(struct pl_call *call, const struct pl_connection_event *e)
{
	const struct pl_connection_terms *t = &e->terms;
	size_t used;

	call->connected = true;
	if (call->result != 0)
		return;
	if (t->private == NULL ||
		pl_exchange_get(&call->theirs, pl_cursor(t->private, t->private_len), &used) != 1)
		fail(call, -EBADMSG, "the collector replied with parameters that are no store");
	else if (call->theirs.refusal != 0)
		fail(call, -EACCES, pl_exchange_refusal_text(call->theirs.refusal));
	else if (call->theirs.qpn != t->qpn)
		fail(call, -EBADMSG, "the collector replied with two different queue pairs");
	else
		call->result = 1;
	call->theirs.psn = t->psn;
}

static struct pl_call *call_of(struct pl_caller *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->max; i++) {
		if (c->calls[i].used && c->calls[i].id == id)
			return &c->calls[i];
	}
	return NULL;
}

static void take_events(struct pl_caller *c, uint64_t now_ns)
{
	struct pl_connection_event e;

	while (pl_connector_event(c->manage.connector, &e)) {
		struct pl_call *call = call_of(c, e.id);

		switch (e.kind) {
		case PL_CONNECTION_CONNECTED:
			/* The call was closed meanwhile. */
			if (call == NULL)
				(void)pl_connector_disconnect(c->manage.connector, e.id, now_ns);
			else
				connected(call, &e);
			break;
		case PL_CONNECTION_REJECTED:
			if (call != NULL)
				rejected(call, &e);
			break;
		case PL_CONNECTION_TIMEOUT:
			if (call != NULL)
				fail(call, -ETIMEDOUT, "no answer");
			break;
		default:
			if (call == NULL)
				break;
			call->connected = false;
			fail(call, -ECONNRESET, "the collector ended the connection");
			break;
		}
	}
}

void pl_caller_batch(struct pl_caller *c, const struct pl_batch *in, uint64_t now_ns)
{
	for (uint32_t i = 0; i < in->n; i++)
		pl_manage_packet(&c->manage, &in->pkts[i], now_ns);
	take_events(c, now_ns);
}

bool pl_caller_send(struct pl_caller *c, uint64_t now_ns, struct pl_frames *out)
{
	bool all;

	(void)pl_manage_follow(&c->manage);
	all = pl_connector_send(c->manage.connector, now_ns, out);
	take_events(c, now_ns); /* timeouts: calls whose tries are used up */
	return all;
}

uint64_t pl_caller_next_ns(const struct pl_caller *c)
{
	return pl_connector_next_ns(c->manage.connector);
}

/* ---- calls ---- */

int pl_call_open(struct pl_call **ret, struct pl_caller *c, const char *server,
	const struct pl_roce_path *path, uint16_t port, const struct pl_exchange *ours,
	uint64_t now_ns, struct pl_diag *diag)
{
	uint8_t private[PL_EXCHANGE_NAME_MAX + 1] = { 0 };
	const struct pl_connection_terms terms = { .qpn = ours->qpn,
		.psn = ours->psn,
		.service = ours->service,
		.mtu = ours->mtu,
		.depth = ours->depth,
		.retries = 7,
		.rnr_retries = 7 /* without end */,
		.ack_timeout = ACK_TIMEOUT,
		.private = private,
		.private_len = sizeof(private) };
	struct pl_call *call = NULL;
	int r = -ENOSPC;

	/* Older collectors read only the name, and give all rights. */
	memcpy(private, ours->name, strnlen(ours->name, PL_EXCHANGE_NAME_MAX));
	private[PL_EXCHANGE_NAME_MAX] = ours->access;

	for (uint32_t i = 0; i < c->max && call == NULL; i++)
		call = c->calls[i].used ? NULL : &c->calls[i];
	if (call != NULL) {
		*call = (struct pl_call){
			.caller = c, .writes = (ours->access & PL_RDMA_WRITE) != 0, .server = server
		};
		r = pl_connector_connect(
			c->manage.connector, path, port, &terms, now_ns, &call->id);
	}
	if (r < 0) {
		pl_diag_set(diag, "%s: %s", server, strerror(-r));
		return r;
	}
	call->used = true;
	*ret = call;
	return 0;
}

void pl_call_close(struct pl_call *call, uint64_t now_ns)
{
	if (call == NULL)
		return;
	/* A connection without an answer yet is ended when the answer comes. */
	if (call->connected)
		(void)pl_connector_disconnect(call->caller->manage.connector, call->id, now_ns);
	call->used = false;
}

int pl_call_step(
	struct pl_call *call, struct pl_exchange *ret, uint16_t *ret_largest, struct pl_diag *diag)
{
	if (call->result == 1)
		*ret = call->theirs;
	if (call->result == -EMSGSIZE)
		*ret_largest = call->largest_mtu;
	if (call->result < 0 && diag != NULL)
		*diag = call->why;
	return call->result;
}
