/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers of a collector that connect by RDMA-CM, over queue pair 1. */
#include <string.h>

#include "remote/collector_state.h"
#include "wire/cm.h"

static struct collector_peer *peer_of_cm(struct pl_collector *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->n_peers; i++) {
		if (c->peers[i].used && c->peers[i].by_cm && c->peers[i].cm_id == id)
			return &c->peers[i];
	}
	return NULL;
}

static void cm_request(struct pl_collector *c, const struct pl_connection_event *e)
{
	const struct pl_connection_terms *t = &e->terms;
	struct pl_exchange theirs = { .service = t->service,
		.pkey = PL_ROCE_PKEY,
		.qpn = t->qpn,
		.psn = t->psn,
		.mtu = t->mtu,
		.depth = t->depth,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC },
			   ours;
	uint8_t told[PL_EXCHANGE_STORE_BYTES];
	struct pl_build b = pl_build(told, sizeof(told));
	struct pl_connection_terms terms;
	const struct collector_request request = { .kind = COLLECTOR_CM,
		.path = &e->path,
		.from = &e->path.dst,
		.theirs = &theirs,
		.connection = e->id };
	struct collector_peer *p;
	const uint8_t *wanted = t->private;
	size_t n = t->private != NULL ? t->private_len : 0;
	int r;

	/* Private data are a name and zeros behind it. With one store the name may be missing. */
	if (n > 0)
		memcpy(theirs.name, t->private,
			n < PL_EXCHANGE_NAME_MAX ? n : PL_EXCHANGE_NAME_MAX);
	/* Behind the name is the requested access; 0, which padding with zeros gives, means all. */
	if (n > PL_EXCHANGE_NAME_MAX && (wanted[PL_EXCHANGE_NAME_MAX] & theirs.access) != 0)
		theirs.access &= wanted[PL_EXCHANGE_NAME_MAX];
	if (theirs.name[0] == '\0' && c->n_stores == 1)
		memcpy(theirs.name, c->stores[0].name, sizeof(theirs.name));
	r = collector_make_peer(c, &request, &ours, &p);
	if (r != 0) {
		c->ops->connections->reject(c->nic, e->id,
			r == PL_EXCHANGE_NO_ROOM    ? PL_CM_NO_RESOURCES
			: r == PL_EXCHANGE_NO_TERMS ? PL_CM_INVALID_TRANSPORT
						    : PL_CM_CONSUMER);
		return;
	}
	p->cm_id = e->id;
	pl_exchange_put(&b, &ours);
	terms = (struct pl_connection_terms){ .qpn = ours.qpn,
		.psn = ours.psn,
		.service = ours.service,
		.mtu = ours.mtu,
		.resources = ours.depth,
		.rnr_retries = 7 /* without end */,
		.private = told,
		.private_len = (uint32_t)b.len };
	if (c->ops->connections->accept(c->nic, e->id, &terms) < 0)
		collector_end_peer(c, p);
}

void collector_signs_of_life(struct pl_collector *c)
{
	struct pl_rdma_qp_status s;

	c->lively_ns = c->now_ns;
	for (uint32_t i = 0; i < c->n_peers; i++) {
		struct collector_peer *p = &c->peers[i];

		if (!p->used || !p->by_cm || c->ops->qp_status(c->nic, p->qpn, &s) < 0 ||
			s.packets - s.refused == p->executed)
			continue;
		p->executed = s.packets - s.refused;
		/* If this confirms a connection, an event follows. */
		c->ops->connections->heard(c->nic, p->cm_id);
	}
}

void collector_cm_events(struct pl_collector *c)
{
	struct pl_connection_event e;
	struct collector_peer *p;

	while (c->ops->connections->event(c->nic, &e)) {
		switch (e.kind) {
		case PL_CONNECTION_REQUEST:
			cm_request(c, &e);
			break;
		case PL_CONNECTION_CONNECTED:
			p = peer_of_cm(c, e.id);
			if (p != NULL)
				collector_confirm(c, p);
			break;
		case PL_CONNECTION_REJECTED:
		case PL_CONNECTION_TIMEOUT:
		case PL_CONNECTION_CLOSED:
			p = peer_of_cm(c, e.id);
			if (p != NULL)
				collector_end_peer(c, p);
			break;
		case PL_CONNECTION_SILENT:
			p = peer_of_cm(c, e.id);
			if (p == NULL)
				break;
			collector_end_peer(c, p);
			c->silent++;
			c->silent_addr = e.path.dst;
			break;
		default:
			break;
		}
	}
}

void collector_say_goodbye(struct pl_collector *c)
{
	for (uint32_t i = 0; c->peers != NULL && i < c->n_peers; i++) {
		if (c->peers[i].used && c->peers[i].by_cm)
			c->ops->connections->disconnect(c->nic, c->peers[i].cm_id);
	}
	c->ops->connections->flush(c->nic);
}
