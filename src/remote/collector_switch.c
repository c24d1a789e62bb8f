/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A switch that writes records itself (struct pl_collector_switch). It reads no acknowledgements
 * and never repeats, so its packets are treated as on an unreliable connection: after a loss the
 * next record is accepted again, and a wrong record affects no other.
 */
#include <errno.h>
#include <string.h>

#include "remote/announce.h"
#include "remote/collector_state.h"

#define CONTROLLER_MS 10000

static int make_list(struct pl_collector *c, struct pl_diag *diag)
{
	const struct collector_store *s = &c->stores[0];
	void *base = pl_region_store(s->region, s->info.epoch);

	if (pl_append_init(&c->switch_list, &s->info.params, base) == 0 && !c->switch_list.sealed &&
		c->switch_list.lists == 1)
		return 0;
	pl_diag_set(diag,
		"%s: a switch needs an append region of one list, created with --unsealed and --value-bytes equal to the size of its records",
		c->options.stores[0].path);
	return -EINVAL;
}

int collector_switch_open(struct pl_collector *c, struct pl_diag *diag)
{
	const struct pl_collector_switch *s = c->options.peer_switch;
	struct pl_exchange theirs = { .service = PL_ROCE_UC,
		.gid = s->gid,
		.pkey = PL_ROCE_PKEY,
		.qpn = s->qpn,
		.mtu = PL_ROCE_PATH_MTU,
		.access = PL_RDMA_WRITE },
			   ours;
	struct pl_roce_path path;
	const struct collector_request request = { .kind = COLLECTOR_SWITCH,
		.path = &path,
		.from = &s->gid,
		.theirs = &theirs,
		.psn = s->psn };
	struct collector_peer *p;
	int r = make_list(c, diag);

	if (r < 0)
		return r;
	if (c->ops != &collector_soft) {
		pl_diag_set(diag,
			"an RDMA NIC would wait for the records that a switch lost: use packet: or afxdp:");
		return -ENOTSUP;
	}
	r = c->ops->path(c->nic, &s->gid, &path);
	if (r < 0) {
		pl_diag_set(diag,
			"the address of the switch is not in the network of the interface: %s",
			strerror(-r));
		return r;
	}
	path.v1 = s->v1;
	memcpy(theirs.name, c->stores[0].name, sizeof(theirs.name));
	r = collector_make_peer(c, &request, &ours, &p);
	if (r != 0) {
		pl_diag_set(diag, "no queue pair for the switch: %s",
			r == PL_EXCHANGE_NO_RIGHT
				? "its address is not allowed (--allow 10.1.1.1/32)"
				: "its number is in use, or there is no room");
		return -EINVAL;
	}
	c->switch_qpn = p->qpn;
	/* This side writes the list's head. */
	ours.va += PL_APPEND_RING_AT;
	return pl_announce(s->controller, &ours, CONTROLLER_MS, diag);
}

void collector_switch_publish(struct pl_collector *c)
{
	const struct pl_append *a = &c->switch_list;
	const uint64_t ring = c->stores[0].va + PL_APPEND_RING_AT;
	struct pl_rdma_qp_status status;
	uint64_t head, slot;

	if (c->ops->qp_status(c->nic, c->switch_qpn, &status) < 0 || status.at <= ring)
		return;
	/* Number of complete entries before the last address written; a batch of packets is less
	 * than a round of the list. */
	slot = (status.at - ring) / a->entry_stride % a->slots;
	head = pl_append_head(a, 0);
	pl_append_publish(a, 0, head + (slot + a->slots - head % a->slots) % a->slots);
}
