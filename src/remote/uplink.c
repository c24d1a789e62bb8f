/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns operations into RDMA work for collectors. */
#include "remote/uplink.h"
#include "base/stats.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "dta/translator.h"
#include "rdma/responder.h" /* PL_RDMA_* */

#define QUEUE_DEFAULT   4096u
#define WINDOW_DEFAULT  128u
#define TIMEOUT_DEFAULT UINT64_C(20000000)
#define RETRIES_DEFAULT 250
/* of all queues together: each packet has a place for its completion */
#define PACKETS_MAX     (1u << 22)
#define ATOMICS_MAX     128u /* under way; fewer when the peer takes fewer */

/* Layout of a completion's work->id. Bits 0 to 15 collector, 16 to 31 store. */
#define ID_LAST         (UINT64_C(1) << 32) /* last packet of an operation */
#define ID_ADD          (UINT64_C(1) << 33)
#define ID_READ         (UINT64_C(1) << 34) /* a READ, no operation */

struct lane {
	bool offered, ready;
	struct pl_requester_qp qp; /* as offered */
	uint32_t qpn;
	uint64_t va, bytes;
	uint32_t rkey;
};

struct collector {
	unsigned int ready; /* number of lanes ready */
	uint32_t reads;     /* READs under way */
	bool up, broken;
	struct pl_uplink_counters count;
};

struct pl_uplink {
	struct pl_uplink_options o;
	struct pl_requester *requester;
	struct collector *collectors;
	struct lane *lanes; /* [collector * n_stores + store] */
};

static struct lane *lane_of(const struct pl_uplink *u, unsigned int collector, unsigned int store)
{
	return &u->lanes[(size_t)collector * u->o.n_stores + store];
}

int pl_uplink_new(struct pl_uplink **ret, const struct pl_uplink_options *options)
{
	struct pl_uplink *u;
	const uint32_t queue = options->queue != 0 ? options->queue : QUEUE_DEFAULT;
	struct pl_requester_options ro;

	*ret = NULL;
	if (options->collectors == 0 || options->collectors > PL_COLLECTORS_MAX ||
		options->n_stores == 0 || options->n_stores > PL_DTA_STORES_MAX ||
		options->queue > PL_RDMA_WINDOW_MAX || options->window > PL_RDMA_WINDOW_MAX ||
		options->window == 1 ||
		(uint64_t)options->collectors * options->n_stores * queue > PACKETS_MAX)
		return -EINVAL;
	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return -ENOMEM;
	u->o = *options;
	u->o.queue = queue;
	u->o.window = u->o.window != 0 ? u->o.window : WINDOW_DEFAULT;
	u->o.timeout_ns = u->o.timeout_ns != 0 ? u->o.timeout_ns : TIMEOUT_DEFAULT;
	u->o.retries = u->o.retries != 0 ? u->o.retries : RETRIES_DEFAULT;
	ro.max_qps = u->o.collectors * u->o.n_stores;
	ro.max_completions = ro.max_qps * queue;
	u->collectors = calloc(u->o.collectors, sizeof(*u->collectors));
	u->lanes = calloc(ro.max_qps, sizeof(*u->lanes));
	if (u->collectors == NULL || u->lanes == NULL || pl_requester_new(&u->requester, &ro) < 0) {
		pl_uplink_free(u);
		return -ENOMEM;
	}
	*ret = u;
	return 0;
}

void pl_uplink_free(struct pl_uplink *u)
{
	if (u == NULL)
		return;
	pl_requester_free(u->requester);
	free(u->collectors);
	free(u->lanes);
	free(u);
}

uint8_t pl_uplink_service(const struct pl_store_params *p)
{
	if (p->primitive == PL_COUNTERS || p->primitive == PL_SKETCH ||
		(p->primitive == PL_APPEND && p->append.sealed == 0))
		return PL_ROCE_RC;
	return PL_ROCE_UC;
}

/* ---- completions ---- */

static void take_completions(struct pl_uplink *u)
{
	struct pl_rdma_completed done[64];
	uint32_t n;

	while ((n = pl_requester_completions(u->requester, done, 64)) > 0) {
		for (uint32_t i = 0; i < n; i++) {
			struct collector *c = &u->collectors[done[i].id & 0xffff];
			const bool ok = done[i].result == PL_RDMA_RESULT_OK;

			/* The requester returns the ids with which this file made the operations. */
			assert((done[i].id & 0xffff) < u->o.collectors);
			assert((done[i].id & ID_READ) == 0 || c->reads > 0);

			if (!ok && done[i].result != PL_RDMA_RESULT_FLUSHED)
				c->count.failures[done[i].result]++;
			c->broken |= !ok;
			c->reads -= (done[i].id & ID_READ) != 0;
			if ((done[i].id & ID_LAST) == 0)
				continue;
			c->count.done += ok;
			c->count.lost += !ok;
			c->count.adds += ok && (done[i].id & ID_ADD) != 0;
			c->count.writes += ok && (done[i].id & ID_ADD) == 0;
		}
	}
}

/* ---- connections ---- */

static void end_lane(struct pl_uplink *u, unsigned int collector, struct lane *l)
{
	if (!l->offered)
		return;
	/* Waiting packets complete as flushed. */
	(void)pl_requester_qp_ready(u->requester, l->qpn, 0, 0);
	take_completions(u);
	(void)pl_requester_qp_remove(u->requester, l->qpn);
	assert(u->collectors[collector].ready >= l->ready);
	u->collectors[collector].ready -= l->ready;
	*l = (struct lane){ 0 };
}

int pl_uplink_offer(struct pl_uplink *u, unsigned int collector, unsigned int store,
	uint8_t service, const struct pl_roce_path *path, uint16_t mtu, struct pl_exchange *ret)
{
	struct lane *l;
	uint32_t psn;
	int r;

	if (collector >= u->o.collectors || store >= u->o.n_stores)
		return -EINVAL;
	l = lane_of(u, collector, store);
	end_lane(u, collector, l);
	u->collectors[collector].up = false;
	if (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		return -EIO;
	l->qp = (struct pl_requester_qp){
		.service = service,
		.mtu = mtu,
		.pkey = PL_ROCE_PKEY,
		.path = *path,
		.messages = u->o.queue,
		.message_bytes = mtu,
		.window = u->o.window,
		.atomics = service == PL_ROCE_RC ? ATOMICS_MAX : 0,
		.timeout_ns = u->o.timeout_ns,
		.retries = u->o.retries,
		.rnr_retries = PL_RDMA_FOR_EVER,
	};
	r = pl_requester_qp_add(u->requester, &l->qp, &l->qpn);
	if (r < 0)
		return r == -EEXIST ? -EIO : r;
	l->offered = true;
	*ret = (struct pl_exchange){
		.service = service,
		.gid = path->src,
		.pkey = PL_ROCE_PKEY,
		.qpn = l->qpn,
		.psn = psn & PL_ROCE_PSN_MASK,
		.mtu = mtu,
		.depth = (uint8_t)l->qp.atomics,
	};
	memcpy(ret->mac, path->smac, 6);
	return 0;
}

static int refuse(struct pl_diag *diag, const char *what)
{
	pl_diag_set(diag, "%s", what);
	return -EPROTO;
}

int pl_uplink_answer(struct pl_uplink *u, unsigned int collector, unsigned int store,
	const struct pl_exchange *theirs, uint64_t bytes, bool adds, struct pl_diag *diag)
{
	struct lane *l;
	int r;

	if (collector >= u->o.collectors || store >= u->o.n_stores ||
		!lane_of(u, collector, store)->offered || lane_of(u, collector, store)->ready)
		return refuse(diag, "the collector offered no queue pair");
	l = lane_of(u, collector, store);
	if (theirs->service != l->qp.service)
		return refuse(diag, "the collector created another kind of queue pair");
	if (theirs->bytes < bytes)
		return refuse(diag, "the collector's memory is smaller than its store");
	if ((theirs->access & PL_RDMA_WRITE) == 0 ||
		(adds && (theirs->access & PL_RDMA_ATOMIC) == 0))
		return refuse(diag, "the collector does not allow writes there");
	if (adds && (theirs->depth == 0 || (theirs->va & 7) != 0))
		return refuse(diag, "the collector does not allow atomic additions there");
	l->qp.qpn = l->qpn;
	l->qp.peer_qpn = theirs->qpn;
	l->qp.psn = theirs->psn;
	l->qp.pkey = theirs->pkey;
	if (!pl_addr_is_unspecified(&theirs->gid))
		l->qp.path.dst = theirs->gid;
	l->qp.mtu = theirs->mtu < l->qp.mtu ? theirs->mtu : l->qp.mtu;
	l->qp.message_bytes = l->qp.mtu;
	l->qp.atomics = theirs->depth < l->qp.atomics ? theirs->depth : l->qp.atomics;
	(void)pl_requester_qp_remove(u->requester, l->qpn);
	r = pl_requester_qp_add(u->requester, &l->qp, &l->qpn);
	if (r < 0) {
		*l = (struct lane){ 0 };
		pl_diag_set(diag, "%s", strerror(-r));
		return r;
	}
	l->va = theirs->va;
	l->rkey = theirs->key;
	l->bytes = bytes;
	l->ready = true;
	u->collectors[collector].ready++;
	assert(u->collectors[collector].ready <= u->o.n_stores);
	return 0;
}

bool pl_uplink_up(struct pl_uplink *u, unsigned int collector)
{
	struct collector *c = &u->collectors[collector];

	if (c->ready < u->o.n_stores || c->broken)
		return false;
	c->count.connections += !c->up;
	c->up = true;
	return true;
}

int pl_uplink_read(struct pl_uplink *u, unsigned int collector, unsigned int store, uint64_t offset,
	uint64_t *into)
{
	const struct lane *l = lane_of(u, collector, store);
	const struct pl_rdma_work w = { .kind = PL_RDMA_WORK_READ,
		.id = collector | (uint64_t)store << 16 | ID_READ,
		.va = l->va + offset,
		.rkey = l->rkey,
		.bytes = sizeof(*into),
		.into = into };
	int r = l->ready ? pl_requester_post(u->requester, l->qpn, &w) : -ENOTCONN;

	u->collectors[collector].reads += r == 0;
	return r;
}

uint32_t pl_uplink_reads(const struct pl_uplink *u, unsigned int collector)
{
	return u->collectors[collector].reads;
}

bool pl_uplink_is_up(const struct pl_uplink *u, unsigned int collector)
{
	return u->collectors[collector].up;
}

bool pl_uplink_broken(const struct pl_uplink *u, unsigned int collector)
{
	return u->collectors[collector].broken;
}

void pl_uplink_down(struct pl_uplink *u, unsigned int collector)
{
	u->collectors[collector].up = false;
	for (unsigned int s = 0; s < u->o.n_stores; s++)
		end_lane(u, collector, lane_of(u, collector, s));
	u->collectors[collector].broken = false;
}

/* ---- operations ---- */

static uint32_t packets_of(const struct lane *l, const struct pl_op *op)
{
	return op->kind == PL_OP_ADD ? 1 : pl_roce_packets(op->bytes, l->qp.mtu);
}

/* Returns true when there is room for all packets of an operation: half an operation is never
 * posted. */
static bool has_room(const struct pl_uplink *u, const struct lane *l, const struct pl_op *op)
{
	struct pl_requester_status s;

	if (pl_requester_qp_status(u->requester, l->qpn, &s) < 0 || s.failed)
		return false;
	assert(s.posted <= u->o.queue);
	return u->o.queue - s.posted >= packets_of(l, op);
}

/* Posts the packet of an operation that begins `at` bytes behind its first byte. */
static int post_packet(
	struct pl_uplink *u, const struct lane *l, const struct pl_op *op, uint32_t at)
{
	const uint32_t left = op->bytes - at;
	const bool last = left <= l->qp.mtu || op->kind == PL_OP_ADD;
	struct pl_rdma_work w = {
		.kind = op->kind == PL_OP_ADD ? PL_RDMA_WORK_ADD : PL_RDMA_WORK_WRITE,
		.quiet = !last,
		.id = op->collector | (uint64_t)op->store << 16 | (last ? ID_LAST : 0) |
		      (op->kind == PL_OP_ADD ? ID_ADD : 0),
		.va = l->va + op->offset + at,
		.rkey = l->rkey,
		.bytes = last ? left : l->qp.mtu,
	};

	if (op->kind == PL_OP_ADD) {
		w.swap_add = op->add;
	} else {
		w.data = op->data + at;
		w.have_imm = w.solicited = last && op->immediate;
		w.imm = op->imm;
	}
	return pl_requester_post(u->requester, l->qpn, &w);
}

static bool post(struct pl_uplink *u, const struct lane *l, const struct pl_op *op)
{
	uint32_t at = 0;

	assert(l->ready && op->offset + op->bytes <= l->bytes);
	if (!has_room(u, l, op))
		return false;
	do {
		if (post_packet(u, l, op, at) < 0)
			return false;
		at += l->qp.mtu;
	} while (op->kind == PL_OP_WRITE && at < op->bytes);
	return true;
}

static bool inside(const struct lane *l, const struct pl_op *op)
{
	return op->bytes <= l->bytes && op->offset <= l->bytes - op->bytes;
}

static void take(struct pl_uplink *u, const struct pl_op *op)
{
	struct collector *c = &u->collectors[op->collector];
	struct lane *l = lane_of(u, op->collector, op->store);

	c->count.given++;
	if (!c->up) {
		c->count.down++;
		return;
	}
	if (!inside(l, op)) {
		c->count.outside++;
		return;
	}
	while (!post(u, l, op)) {
		if (u->o.wait == NULL || !u->o.wait(u->o.arg, op->collector) || !c->up) {
			c->count.full++;
			return;
		}
	}
	c->count.posted++;
	c->count.write_bytes += op->kind == PL_OP_WRITE ? op->bytes : 0;
	c->count.immediates += op->immediate;
}

void pl_uplink_ops(void *uplink, const struct pl_op *ops, size_t n)
{
	struct pl_uplink *u = uplink;

	for (size_t i = 0; i < n; i++) {
		if (ops[i].collector < u->o.collectors && ops[i].store < u->o.n_stores)
			take(u, &ops[i]);
	}
}

/* ---- frames ---- */

bool pl_uplink_send(struct pl_uplink *u, uint64_t now_ns, struct pl_frames *out)
{
	const bool all = pl_requester_send(u->requester, now_ns, out);

	take_completions(u);
	return all;
}

void pl_uplink_batch(struct pl_uplink *u, const struct pl_batch *in, uint64_t now_ns)
{
	pl_requester_batch(u->requester, in, NULL, now_ns);
	take_completions(u);
}

uint64_t pl_uplink_next_ns(const struct pl_uplink *u)
{
	return pl_requester_next_ns(u->requester);
}

uint32_t pl_uplink_queued(const struct pl_uplink *u, unsigned int collector)
{
	struct pl_requester_status s;
	uint32_t most = 0;

	for (unsigned int i = 0; i < u->o.n_stores; i++) {
		const struct lane *l = lane_of(u, collector, i);

		if (l->ready && pl_requester_qp_status(u->requester, l->qpn, &s) == 0 &&
			s.posted > most)
			most = s.posted;
	}
	return most;
}

uint32_t pl_uplink_slowed(const struct pl_uplink *u)
{
	struct pl_requester_status s;
	uint32_t n = 0;

	for (unsigned int i = 0; i < u->o.collectors * u->o.n_stores; i++) {
		if (u->lanes[i].ready &&
			pl_requester_qp_status(u->requester, u->lanes[i].qpn, &s) == 0)
			n += s.rate != 0;
	}
	return n;
}

/* ---- accounts ---- */

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_uplink_counters, __VA_ARGS__)
#include "remote/uplink_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_uplink_stats_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

const struct pl_uplink_counters *pl_uplink_counters(
	const struct pl_uplink *u, unsigned int collector)
{
	return &u->collectors[collector].count;
}

const struct pl_requester_counters *pl_uplink_packets(const struct pl_uplink *u)
{
	return pl_requester_counters(u->requester);
}

uint64_t pl_uplink_waiting(const struct pl_uplink *u, unsigned int collector)
{
	const struct pl_uplink_counters *c = &u->collectors[collector].count;

	return c->posted - c->done - c->lost;
}
