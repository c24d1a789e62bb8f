/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of a collector: makes them for peers that may have one, ends them with their
 * connections, keeps their accounts. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "dta/op.h"
#include "remote/collector_state.h"
#include "wire/cm.h"

#define RNR_TIMER     8  /* code: 160 us, until the slips that immediates use up are posted again */
#define DEPTH_DEFAULT 16 /* READs and atomics of a peer at a time */

/* Returns true when this address may write. */
static bool allows(const struct pl_collector *c, const struct pl_addr *addr)
{
	return collector_has(c->options.allow, c->options.n_allow, addr);
}

/* Returns true for a configured reader: it may READ, and write only when it is allowed too. */
static bool is_reader(const struct pl_collector *c, const struct pl_addr *addr)
{
	return collector_has(c->options.readers, c->options.n_readers, addr);
}

static bool is_proxy(const struct pl_collector *c, const struct pl_addr *addr)
{
	return collector_has(c->options.proxies, c->options.n_proxies, addr);
}

bool collector_may_connect(void *arg, const struct pl_addr *peer)
{
	const struct pl_collector *c = arg;

	return allows(c, peer) || is_reader(c, peer) || is_proxy(c, peer);
}

/* ---- accounts ---- */

static uint32_t account_of(struct pl_collector *c, const struct pl_addr *peer, uint32_t store)
{
	uint32_t i;

	for (i = 0; i < c->n_accounts; i++) {
		if (c->accounts[i].store == store && pl_addr_equal(&c->accounts[i].peer, peer))
			return i;
	}
	if (i == PL_COLLECTOR_ACCOUNTS_MAX) {
		c->forgotten++;
		return UINT32_MAX;
	}
	c->accounts[c->n_accounts++] =
		(struct pl_collector_account){ .peer = *peer, .store = store };
	return i;
}

static void add_status(const struct pl_collector *c, const struct collector_peer *p,
	struct pl_collector_account *a)
{
	struct pl_rdma_qp_status s;

	if (c->ops->qp_status(c->nic, p->qpn, &s) < 0)
		return;
	a->packets += s.packets;
	a->refused += s.refused;
}

/* ---- made and ended ---- */

static int find_store(const struct pl_collector *c, const char *name)
{
	for (uint32_t i = 0; i < c->n_stores; i++) {
		if (strcmp(c->stores[i].name, name) == 0)
			return (int)i;
	}
	return -1;
}

/* Number of queue pairs that are not settled; of this address, or of all (NULL). */
static uint32_t count_unsettled(const struct pl_collector *c, const struct pl_addr *from)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_peers; i++) {
		const struct collector_peer *p = &c->peers[i];

		n += p->used && !p->settled && (from == NULL || pl_addr_equal(&p->from, from));
	}
	return n;
}

/* Returns true for a settled peer with this queue pair at this address. */
static bool is_twin(const struct collector_peer *p, const struct pl_addr *addr, uint32_t peer_qpn)
{
	return p->used && p->settled && p->exclusive && p->peer_qpn == peer_qpn &&
	       pl_addr_equal(&p->addr, addr);
}

/* Returns true when one more queue pair of `addr`, asked for by `from`, may be settled; counts the
 * reason when not. Queue pairs that the new one replaces (drop_twins) do not count. */
static bool may_settle(struct pl_collector *c, const struct pl_addr *from,
	const struct pl_addr *addr, uint32_t twin_qpn)
{
	uint32_t all = 0, own = 0;

	for (uint32_t i = 0; i < c->n_peers; i++) {
		const struct collector_peer *p = &c->peers[i];

		if (!p->used || !p->settled || (twin_qpn != 0 && is_twin(p, addr, twin_qpn)))
			continue;
		all++;
		own += pl_addr_equal(&p->from, from);
	}
	if (all >= c->max_peers)
		c->no_room++;
	else if (own >= c->max_each)
		c->crowded++;
	else
		return true;
	return false;
}

static struct collector_peer *free_peer(struct pl_collector *c)
{
	for (uint32_t i = 0; i < c->n_peers; i++) {
		if (!c->peers[i].used)
			return &c->peers[i];
	}
	return NULL;
}

void collector_end_peer(struct pl_collector *c, struct collector_peer *p)
{
	assert(p->used);
	if (p->account != UINT32_MAX) {
		struct pl_collector_account *a = &c->accounts[p->account];

		assert(p->account < c->n_accounts && a->connected > 0);
		add_status(c, p, a);
		a->connected--;
	}
	c->ops->qp_remove(c->nic, p->qpn);
	if (p->key != 0)
		c->ops->region_remove(c->nic, p->key);
	p->used = false;
}

/* Ends a peer and its connection, so that the peer notices and connects anew. */
static void drop_peer(struct pl_collector *c, struct collector_peer *p)
{
	if (p->by_cm)
		c->ops->connections->disconnect(c->nic, p->cm_id);
	else
		pl_exchange_server_drop(c->server, (uint64_t)(p - c->peers) + 1);
	collector_end_peer(c, p);
}

/* Makes the peer a settled one. Before this the address of the request may have been forged. */
static void settle(struct pl_collector *c, struct collector_peer *p)
{
	struct pl_collector_account *a;

	assert(p->used && !p->settled && p->account == UINT32_MAX);
	p->settled = true;
	p->account = account_of(c, &p->addr, p->store);
	if (p->account == UINT32_MAX)
		return;
	a = &c->accounts[p->account];
	a->connected++;
	a->cm += p->by_cm;
	a->tcp += !p->by_cm && p->qpn != c->switch_qpn;
}

/* Drops older queue pairs to the same queue pair of the same peer: the peer has restarted, and they
 * are stale. */
static void drop_twins(struct pl_collector *c, const struct collector_peer *p)
{
	for (uint32_t i = 0; p->exclusive && i < c->n_peers; i++) {
		struct collector_peer *other = &c->peers[i];

		if (other == p || !is_twin(other, &p->addr, p->peer_qpn))
			continue;
		c->stale++;
		drop_peer(c, other);
	}
}

/* The room that there was at the request may be taken by now. */
void collector_confirm(struct pl_collector *c, struct collector_peer *p)
{
	if (p->settled)
		return;
	drop_twins(c, p);
	if (may_settle(c, &p->from, &p->addr, 0)) {
		settle(c, p);
		return;
	}
	c->ops->connections->disconnect(c->nic, p->cm_id);
	collector_end_peer(c, p);
}

/* Finds the oldest unconfirmed queue pair; of this address, or of all (NULL). */
static struct collector_peer *oldest_unsettled(
	const struct pl_collector *c, const struct pl_addr *from)
{
	struct collector_peer *oldest = NULL;

	for (uint32_t i = 0; i < c->n_peers; i++) {
		struct collector_peer *p = &c->peers[i];

		if (p->used && !p->settled && (from == NULL || pl_addr_equal(&p->from, from)) &&
			(oldest == NULL || p->number < oldest->number))
			oldest = p;
	}
	return oldest;
}

/* Finds the queue pair that must give way to a request of this address: its own oldest unconfirmed
 * one when the address has its share, else the oldest of all. */
static struct collector_peer *in_the_way(struct pl_collector *c, const struct pl_addr *from)
{
	if (count_unsettled(c, from) >= (c->max_unsettled + 1) / 2)
		return oldest_unsettled(c, from);
	return count_unsettled(c, NULL) < c->max_unsettled ? NULL : oldest_unsettled(c, NULL);
}

/* Returns the access for a queue pair of an address, within the requested access; 0: none. The
 * answers to READs are larger than the requests, so only hosts that requested the queue pair
 * themselves get them. */
static uint8_t access_for(const struct pl_collector *c, const struct pl_addr *addr,
	const struct pl_addr *from, uint8_t wanted)
{
	const bool writes = allows(c, addr), reads = is_reader(c, addr);
	const bool may_read = (c->options.may_read || reads) && pl_addr_equal(from, addr);

	return (uint8_t)((writes ? PL_RDMA_WRITE | PL_RDMA_ATOMIC : 0) |
			 (may_read ? PL_RDMA_READ : 0)) &
	       wanted;
}

/* Makes room for one more unconfirmed queue pair: removes the oldest one; of the requesting
 * address, when that address has its full share. */
static void make_way(struct pl_collector *c, const struct pl_addr *from)
{
	struct collector_peer *p;

	if (c->ops->connections->heard != NULL)
		collector_signs_of_life(c);
	while ((p = in_the_way(c, from)) != NULL) {
		if (c->ops->connections->forget == NULL) {
			c->ops->connections->disconnect(c->nic, p->cm_id);
		} else if (c->ops->connections->forget(c->nic, p->cm_id) == -EINVAL) {
			/* an event that is not fetched yet will confirm it */
			collector_confirm(c, p);
			continue;
		}
		collector_end_peer(c, p);
		c->displaced++;
	}
}

static bool right_vlan(const struct pl_collector_rules *rules, const struct pl_roce_path *path)
{
	return !rules->check_vlan || (path->tagged ? path->tci & 0xfff : 0) == rules->vlan;
}

static void set_rules(struct pl_rdma_qp *qp, const struct pl_collector_rules *rules, bool by_cm)
{
	/* Answers go to the source MAC address of requests, because a connection over TCP does not
	 * reveal a router's MAC address. */
	if (!by_cm || !rules->check_mac)
		memset(qp->path.dmac, 0, sizeof(qp->path.dmac));
	qp->check_mac = rules->check_mac;
	qp->min_ttl = rules->min_ttl;
	qp->max_jump = qp->service == PL_ROCE_UC ? rules->max_jump : 0;
	if (rules->check_vlan) {
		qp->path.tagged = rules->vlan != 0;
		qp->path.tci = rules->vlan;
	}
}

/* Refusal for an error of the NIC: PL_EXCHANGE_NO_ROOM and the like. */
static int refusal_of(int error)
{
	switch (-error) {
	case EINVAL:
		return PL_EXCHANGE_NO_TERMS;
	case ENOSPC:
	case ENOMEM:
		return PL_EXCHANGE_NO_ROOM;
	case ENODEV:
	case ENETDOWN:
	case EADDRNOTAVAIL:
		return PL_EXCHANGE_NO_NIC;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ETIMEDOUT:
		return PL_EXCHANGE_NO_WAY;
	default:
		return PL_EXCHANGE_FAILED;
	}
}

/* Registers the store's memory under a key that only this queue pair can use, in a domain of its
 * own; *ret_key stays 0 when the NIC has one key for all. */
static int own_key(struct pl_collector *c, const struct collector_store *s,
	const struct collector_peer *p, struct pl_rdma_qp *qp, uint32_t *ret_key)
{
	const struct pl_rdma_region region = { .base = pl_region_store(s->region, s->info.epoch),
		.bytes = s->info.store_bytes,
		.va = s->va,
		.domain = (uint32_t)(p - c->peers) + 1,
		.access = qp->access };

	if (c->ops->region_remove == NULL)
		return 0;
	qp->domain = region.domain;
	return c->ops->region_add(c->nic, &region, ret_key, NULL);
}

/* Fills in the queue pair that a request asks for. */
static void make_qp(const struct pl_collector *c, const struct collector_request *q,
	const struct collector_store *s, uint8_t access, uint32_t psn, struct pl_rdma_qp *ret)
{
	const struct pl_exchange *theirs = q->theirs;

	*ret = (struct pl_rdma_qp){ .service = theirs->service,
		.access = access,
		.state = PL_RDMA_READY,
		.rnr_timer = RNR_TIMER,
		.depth = theirs->depth,
		.mtu = theirs->mtu < c->ops->mtu(c->nic) ? theirs->mtu : c->ops->mtu(c->nic),
		.pkey = theirs->pkey,
		.domain = s->domain,
		.psn = psn & PL_ROCE_PSN_MASK,
		.peer_qpn = theirs->qpn,
		.receives = COLLECTOR_RECEIVES,
		.rc_opcodes = q->kind == COLLECTOR_SWITCH,
		.path = *q->path };
	if (theirs->service == PL_ROCE_UC) {
		ret->access &= PL_RDMA_WRITE;
		ret->depth = 0;
	} else if (ret->depth == 0 || ret->depth > PL_RDMA_DEPTH_MAX) {
		ret->depth = DEPTH_DEFAULT;
	}
	/* The answer tells the peer how many it may send at a time. */
	if (c->ops->depth != NULL && ret->depth > c->ops->depth(c->nic))
		ret->depth = c->ops->depth(c->nic);
	set_rules(ret, &c->options.rules, q->kind == COLLECTOR_CM);
}

/* Fills in the answer: what the peer needs to write into the store. key: of this queue pair; 0: the
 * store's. */
static void make_answer(const struct pl_collector *c, const struct pl_roce_path *path,
	const struct collector_store *s, const struct pl_rdma_qp *qp, uint32_t key,
	struct pl_exchange *ret)
{
	*ret = (struct pl_exchange){ .service = qp->service,
		.gid = path->src,
		.pkey = qp->pkey,
		.va = s->va,
		.bytes = s->info.store_bytes,
		.key = key != 0 ? key : s->key,
		.qpn = qp->qpn,
		.psn = qp->psn,
		.mtu = qp->mtu,
		.depth = qp->depth,
		.access = qp->access,
		.has_store = true,
		.epoch = s->info.epoch,
		.region_id = s->info.id,
		.store = s->info.params };
	memcpy(ret->mac, c->ops->mac(c->nic), sizeof(ret->mac));
	memcpy(ret->name, s->name, sizeof(ret->name));
}

int collector_make_peer(struct pl_collector *c, const struct collector_request *q,
	struct pl_exchange *ret_ours, struct collector_peer **ret)
{
	const bool by_cm = q->kind == COLLECTOR_CM;
	const struct pl_addr *addr = &q->path->dst;
	const uint8_t access = access_for(c, addr, q->from, q->theirs->access);
	const int store = find_store(c, q->theirs->name);
	const struct collector_store *s;
	struct collector_peer *p;
	struct pl_rdma_qp qp;
	uint32_t psn, key = 0;
	int r;

	/* A host that may write, but gets none of the requested operations, learns that from the
	 * answer. */
	if (access == 0 && !allows(c, addr))
		return PL_EXCHANGE_NO_RIGHT;
	if (store < 0)
		return PL_EXCHANGE_NO_STORE;
	if (by_cm && !right_vlan(&c->options.rules, q->path))
		return PL_EXCHANGE_NO_RIGHT;
	if (!may_settle(c, q->from, addr, by_cm ? q->theirs->qpn : 0))
		return PL_EXCHANGE_NO_ROOM;
	if (by_cm)
		make_way(c, q->from);
	p = free_peer(c);
	if (p == NULL || getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		return PL_EXCHANGE_NO_ROOM;
	s = &c->stores[store];
	make_qp(c, q, s, access, q->kind == COLLECTOR_SWITCH ? q->psn : psn, &qp);
	r = own_key(c, s, p, &qp, &key);
	if (r == 0)
		r = c->ops->qp_add(c->nic, &qp, by_cm ? &q->connection : NULL, &qp.qpn);
	if (r < 0) {
		if (key != 0)
			c->ops->region_remove(c->nic, key);
		return refusal_of(r);
	}
	*p = (struct collector_peer){ .used = true,
		.by_cm = by_cm,
		.from = *q->from,
		.addr = *addr,
		.number = c->numbers++,
		.qpn = qp.qpn,
		.key = key,
		.peer_qpn = qp.peer_qpn,
		.exclusive = by_cm || qp.service == PL_ROCE_RC,
		.store = (uint32_t)store,
		.account = UINT32_MAX };
	if (!by_cm)
		settle(c, p);
	make_answer(c, q->path, s, &qp, key, ret_ours);
	*ret = p;
	return 0;
}

/* ---- over TCP ---- */

/*
 * A reliable queue pair has one peer. A peer that offers its own queue pair again has restarted,
 * and its old one here ends as stale, whoever had requested it. A proxy can end only queue pairs
 * that it requested itself; a request by another proxy, or twice by one connection, is a mistake.
 * The sender of unreliable writes is never answered, and many switches have no queue pair number.
 * Returns false when the request is a mistake.
 */
static bool end_stale(
	struct pl_collector *c, const struct pl_addr *from, const struct pl_exchange *theirs)
{
	for (uint32_t i = 0; i < c->n_peers && theirs->service == PL_ROCE_RC; i++) {
		struct collector_peer *p = &c->peers[i];

		if (!is_twin(p, &theirs->gid, theirs->qpn))
			continue;
		if ((!pl_addr_equal(&theirs->gid, from) && !pl_addr_equal(&p->from, from)) ||
			pl_exchange_server_asks(c->server, (uint64_t)i + 1))
			return false;
		c->stale++;
		drop_peer(c, p);
	}
	return true;
}

int collector_ask(void *arg, const struct pl_addr *peer, const struct pl_exchange *theirs,
	struct pl_exchange *ret_ours, uint64_t *ret_id)
{
	struct pl_collector *c = arg;
	struct pl_roce_path path;
	const struct collector_request request = {
		.kind = COLLECTOR_TCP, .path = &path, .from = peer, .theirs = theirs
	};
	struct collector_peer *p;
	int r;

	if (!pl_addr_equal(peer, &theirs->gid) && !is_proxy(c, peer))
		return PL_EXCHANGE_NO_PROOF;
	/* The peer may connect; the address that it names may still not be allowed to write. */
	r = c->ops->path(c->nic, &theirs->gid, &path);
	if (r < 0)
		return refusal_of(r);
	/* Checked before a queue pair of another address is ended. */
	if (!allows(c, &theirs->gid) && !is_reader(c, &theirs->gid))
		return PL_EXCHANGE_NO_RIGHT;
	if (!end_stale(c, peer, theirs))
		return PL_EXCHANGE_NO_TERMS;
	r = collector_make_peer(c, &request, ret_ours, &p);
	if (r == 0)
		*ret_id = (uint64_t)(p - c->peers) + 1;
	return r;
}

void collector_ended(void *arg, uint64_t id)
{
	struct pl_collector *c = arg;

	assert(id > 0 && id <= c->n_peers);
	if (c->peers[id - 1].used)
		collector_end_peer(c, &c->peers[id - 1]);
}

/* ---- completions ---- */

static struct collector_peer *peer_of_qp(struct pl_collector *c, uint32_t qpn)
{
	for (uint32_t i = 0; i < c->n_peers; i++) {
		if (c->peers[i].used && c->peers[i].qpn == qpn)
			return &c->peers[i];
	}
	return NULL;
}

uint32_t collector_lose_peers(struct pl_collector *c)
{
	uint32_t n = 0;

	/* Checked before any queue pair is ended, because others requested by the same connection
	 * may end with it. */
	for (uint32_t i = 0; i < c->n_peers; i++)
		n += c->peers[i].used;
	for (uint32_t i = 0; i < c->n_peers; i++) {
		if (c->peers[i].used)
			drop_peer(c, &c->peers[i]);
	}
	c->lost += n;
	return n;
}

void collector_completions(struct pl_collector *c)
{
	struct pl_rdma_completion done[64];
	uint32_t n;

	do {
		n = c->ops->completions(c->nic, done, 64);
		for (uint32_t i = 0; i < n; i++) {
			struct collector_peer *p = peer_of_qp(c, done[i].qpn);

			if (p == NULL) {
				c->lost_signals += done[i].kind == PL_RDMA_DONE_WRITE ||
						   done[i].kind == PL_RDMA_DONE_SEND;
				continue;
			}
			if (done[i].kind == PL_RDMA_DONE_ERROR) {
				/* The queue pair executes nothing more. */
				c->failed++;
				drop_peer(c, p);
				continue;
			}
			if (done[i].kind == PL_RDMA_DONE_FLUSHED)
				continue;
			c->signals++;
			if (c->options.signal != NULL)
				c->options.signal(c->options.arg,
					&(struct pl_collector_signal){ .store = p->store,
						/* An immediate of the switch itself means nothing
						 * here. */
						.imm = done[i].qpn == c->switch_qpn
							       ? pl_op_imm(PL_APPEND, 0)
							       : done[i].imm,
						.have_imm = done[i].have_imm,
						.ns = c->now_ns });
		}
	} while (n > 0);
}

/* ---- what became of it ---- */

void pl_collector_get_stats(struct pl_collector *c, struct pl_collector_stats *ret)
{
	*ret = (struct pl_collector_stats){
		.exchange = c->server != NULL ? pl_exchange_server_counters(c->server) : NULL,
		.signals = c->signals,
		.lost_signals = c->lost_signals,
		.failed = c->failed,
		.silent = c->silent,
		.no_room = c->no_room,
		.crowded = c->crowded,
		.displaced = c->displaced,
		.lost = c->lost,
		.returns = c->returns,
		.stale = c->stale,
		.forgotten = c->forgotten,
		.n_accounts = c->n_accounts
	};
	c->ops->stats(c->nic, ret);
	memcpy(ret->accounts, c->accounts, sizeof(ret->accounts));
	for (uint32_t i = 0; i < c->n_peers; i++) {
		const struct collector_peer *p = &c->peers[i];

		if (p->used && p->account != UINT32_MAX)
			add_status(c, p, &ret->accounts[p->account]);
	}
}
