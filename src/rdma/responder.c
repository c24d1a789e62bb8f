/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a responder: regions, queue pairs, receives, completions. */
#include <errno.h>
#include <string.h>

#include "base/stats.h"
#include "rdma/draw.h"
#include "rdma/responder_state.h"

#define TABLE_MAX (1u << 20)

static const struct {
	const char *name, *help;
	uint8_t nak;
} causes[PL_RDMA_CAUSE_MAX] = {
#define PL_RDMA_CAUSE(id, text, syndrome, words) [PL_RDMA_C_##id] = { text, words, syndrome },
#include "rdma/causes.def"
#undef PL_RDMA_CAUSE
};

const char *pl_rdma_cause_name(enum pl_rdma_cause cause)
{
	return causes[cause].name;
}

const char *pl_rdma_cause_help(enum pl_rdma_cause cause)
{
	return causes[cause].help;
}

uint8_t pl_rdma_cause_nak(enum pl_rdma_cause cause)
{
	return causes[cause].nak;
}

/* Number of completions beyond those of receives: each queue pair may report once that it is in
 * error, reports of removed queue pairs may still wait, and no queue pair is made while there are
 * that many of them (pl_responder_qp_add). */
static uint32_t completions_room(const struct pl_responder *r)
{
	return r->options.max_completions + 2 * r->options.max_qps;
}

int pl_responder_new(struct pl_responder **ret, const struct pl_responder_options *options)
{
	struct pl_responder_options o = *options;
	struct pl_responder *r;

	*ret = NULL;
	o.max_qps = o.max_qps == 0 ? 64 : o.max_qps;
	o.max_regions = o.max_regions == 0 ? 64 : o.max_regions;
	o.max_completions = o.max_completions == 0 ? 4096 : o.max_completions;
	if (o.max_qps > TABLE_MAX || o.max_regions > TABLE_MAX ||
		o.max_completions > TABLE_MAX * 16)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	r->options = o;
	r->guard.seed = o.seed == 0 ? pl_hash_seed() : o.seed;
	r->due_first = r->due_last = PL_RDMA_INDEX_NONE;
	r->qps = calloc(o.max_qps, sizeof(*r->qps));
	r->regions = calloc(o.max_regions, sizeof(*r->regions));
	r->completions = calloc(completions_room(r), sizeof(*r->completions));
	if (r->qps == NULL || r->regions == NULL || r->completions == NULL ||
		!pl_rdma_index_init(&r->qp_index, o.max_qps) ||
		!pl_rdma_index_init(&r->region_index, o.max_regions)) {
		pl_responder_free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

static void qp_done(struct pl_responder_qp *qp)
{
	free(qp->receives);
	free(qp->answers);
	free(qp->memory);
	memset(qp, 0, sizeof(*qp));
}

void pl_responder_free(struct pl_responder *r)
{
	if (r == NULL)
		return;
	for (uint32_t i = 0; r->qps != NULL && i < r->options.max_qps; i++)
		qp_done(&r->qps[i]);
	pl_rdma_index_done(&r->qp_index);
	pl_rdma_index_done(&r->region_index);
	free(r->qps);
	free(r->regions);
	free(r->completions);
	free(r);
}

static bool region_good(const struct pl_rdma_region *region)
{
	if (region->base == NULL || region->bytes == 0 ||
		region->va + (region->bytes - 1) < region->va)
		return false;
	return (region->access & PL_RDMA_ATOMIC) == 0 ||
	       (((uintptr_t)region->base ^ region->va) & 7) == 0;
}

int pl_responder_region_add(
	struct pl_responder *r, const struct pl_rdma_region *region, uint32_t *ret_key)
{
	uint32_t key, place = 0;

	if (!region_good(region))
		return -EINVAL;
	key = pl_rdma_draw(&r->region_index, region->key, UINT32_MAX);
	if (key == 0)
		return -EEXIST;
	while (place < r->options.max_regions && r->regions[place].base != NULL)
		place++;
	if (place == r->options.max_regions)
		return -ENOSPC;
	r->regions[place] = *region;
	r->regions[place].key = key;
	pl_rdma_index_add(&r->region_index, key, place);
	*ret_key = key;
	return 0;
}

int pl_responder_region_remove(struct pl_responder *r, uint32_t key)
{
	uint32_t place = pl_rdma_index_find(&r->region_index, key);

	if (key == 0 || place == PL_RDMA_INDEX_NONE)
		return -ENOENT;
	pl_rdma_index_remove(&r->region_index, key);
	memset(&r->regions[place], 0, sizeof(r->regions[place]));
	return 0;
}

int pl_responder_region_move(struct pl_responder *r, uint32_t key, void *base)
{
	const uint32_t place = pl_rdma_index_find(&r->region_index, key);
	struct pl_rdma_region moved;

	if (key == 0 || place == PL_RDMA_INDEX_NONE)
		return -ENOENT;
	moved = r->regions[place];
	moved.base = base;
	if (!region_good(&moved))
		return -EINVAL;
	r->regions[place].base = base;
	return 0;
}

static bool qp_good(const struct pl_rdma_qp *c)
{
	const bool mtu =
		c->mtu >= 256 && c->mtu <= PL_ROCE_PATH_MTU && (c->mtu & (c->mtu - 1)) == 0;
	const bool service =
		c->service == PL_ROCE_RC || c->service == PL_ROCE_UC || c->service == PL_ROCE_UD;

	return mtu && service && (!c->rc_opcodes || c->service == PL_ROCE_UC) && c->qpn != 1 &&
	       c->qpn <= PL_ROCE_PSN_MASK && c->psn <= PL_ROCE_PSN_MASK &&
	       c->peer_qpn <= PL_ROCE_PSN_MASK && c->rnr_timer < 32 &&
	       c->depth <= PL_RDMA_DEPTH_MAX && c->receives <= PL_RDMA_RECEIVE_MAX &&
	       c->state <= PL_RDMA_READY;
}

/* Sets `plain`: the fast path may handle requests that are untagged, IPv4, without rules beyond
 * addresses. The fast path keeps no numbers of a switch's records (rc_opcodes). */
static void qp_plain(struct pl_responder_qp *qp)
{
	static const uint8_t no_mac[6];
	const struct pl_rdma_qp *c = &qp->c;

	qp->plain = !c->path.v1 && !c->path.tagged && pl_addr_is_v4(&c->path.src) &&
		    pl_addr_is_v4(&c->path.dst) && !c->check_mac && c->min_ttl == 0 &&
		    c->max_jump == 0 && c->service != PL_ROCE_UD && !c->rc_opcodes;
	qp->learn = memcmp(c->path.dmac, no_mac, 6) == 0;
	memcpy(&qp->addrs, c->path.dst.b + 12, 4);
	memcpy((uint8_t *)&qp->addrs + 4, c->path.src.b + 12, 4);
}

int pl_responder_qp_add(struct pl_responder *r, const struct pl_rdma_qp *c, uint32_t *ret_qpn)
{
	struct pl_responder_qp *qp;
	uint32_t qpn, place = 0;

	if (!qp_good(c))
		return -EINVAL;
	qpn = pl_rdma_draw(&r->qp_index, c->qpn, PL_ROCE_PSN_MASK);
	if (qpn == 0)
		return -EEXIST;
	while (place < r->options.max_qps && r->qps[place].used)
		place++;
	if (place == r->options.max_qps || r->errors_waiting >= r->options.max_qps)
		return -ENOSPC;
	qp = &r->qps[place];
	*qp = (struct pl_responder_qp){ .c = *c, .psn = c->psn, .used = true };
	memset(qp->came, 0xff, sizeof(qp->came)); /* none before the first is late */
	qp->c.qpn = qpn;
	qp->state = (enum pl_rdma_state)c->state;
	/* READs and atomics, an ACK between any two, a NAK. */
	qp->answer_room = 2 * c->depth + 4u;
	qp->receives = calloc(c->receives + 1, sizeof(*qp->receives));
	qp->answers = calloc(qp->answer_room, sizeof(*qp->answers));
	qp->memory = calloc(c->depth + 1u, sizeof(*qp->memory));
	if (qp->receives == NULL || qp->answers == NULL || qp->memory == NULL) {
		qp_done(qp);
		return -ENOMEM;
	}
	qp_plain(qp);
	pl_rdma_index_add(&r->qp_index, qpn, place);
	*ret_qpn = qpn;
	return 0;
}

/* Takes the queue pair out of the queue of those with answers. */
static void undue(struct pl_responder *r, struct pl_responder_qp *qp)
{
	const uint32_t place = (uint32_t)(qp - r->qps);
	uint32_t *link = &r->due_first, last = PL_RDMA_INDEX_NONE;

	while (*link != place && *link != PL_RDMA_INDEX_NONE) {
		last = *link;
		link = &r->qps[*link].next_due;
	}
	if (*link == PL_RDMA_INDEX_NONE)
		return;
	*link = qp->next_due;
	if (r->due_last == place)
		r->due_last = last;
	qp->due = false;
}

int pl_responder_qp_remove(struct pl_responder *r, uint32_t qpn)
{
	struct pl_responder_qp *qp = pl_responder_qp_of(r, qpn);

	if (qpn == 0 || qp == NULL)
		return -ENOENT;
	undue(r, qp);
	assert(r->completions_promised >= qp->posted);
	r->completions_promised -= qp->posted;
	pl_rdma_index_remove(&r->qp_index, qpn);
	qp_done(qp);
	return 0;
}

/* Returns true when a completion that was not fetched yet reports the failure of this queue
 * pair. */
static bool failure_waits(const struct pl_responder *r, uint32_t qpn)
{
	const uint32_t room = completions_room(r);

	for (uint32_t i = 0; i < r->completions_n; i++) {
		const struct pl_rdma_completion *done =
			&r->completions[(r->completions_first + i) % room];

		if (done->kind == PL_RDMA_DONE_ERROR && done->qpn == qpn)
			return true;
	}
	return false;
}

int pl_responder_qp_ready(struct pl_responder *r, uint32_t qpn, uint32_t psn)
{
	struct pl_responder_qp *qp = pl_responder_qp_of(r, qpn);

	if (qpn == 0 || qp == NULL)
		return -ENOENT;
	if (failure_waits(r, qpn))
		return -ENOSPC;
	undue(r, qp);
	qp->answers_n = 0;
	qp->notify = false;
	qp->remembered = 0;
	memset(qp->memory, 0, (qp->c.depth + 1u) * sizeof(*qp->memory));
	memset(qp->came, 0xff, sizeof(qp->came));
	qp->in = PL_RDMA_NONE;
	qp->told = false;
	qp->psn = psn & PL_ROCE_PSN_MASK;
	qp->msn = 0;
	qp->state = PL_RDMA_READY;
	return 0;
}

int pl_responder_qp_status(
	const struct pl_responder *r, uint32_t qpn, struct pl_rdma_qp_status *ret)
{
	const struct pl_responder_qp *qp = pl_responder_qp_of(r, qpn);

	if (qpn == 0 || qp == NULL)
		return -ENOENT;
	*ret = (struct pl_rdma_qp_status){ qp->state, qp->psn, qp->msn, qp->posted, qp->packets,
		qp->refused, qp->c.rc_opcodes ? qp->at : 0 };
	return 0;
}

int pl_responder_post(
	struct pl_responder *r, uint32_t qpn, uint64_t id, void *buffer, uint32_t bytes)
{
	struct pl_responder_qp *qp = pl_responder_qp_of(r, qpn);

	if (qpn == 0 || qp == NULL)
		return -ENOENT;
	if (qp->posted == qp->c.receives ||
		r->completions_n + r->completions_promised >= r->options.max_completions)
		return -ENOSPC;
	qp->receives[(qp->first + qp->posted) % qp->c.receives] =
		(struct pl_rdma_receive){ id, buffer, bytes };
	qp->posted++;
	r->completions_promised++;
	return 0;
}

void pl_responder_complete(struct pl_responder *r, const struct pl_rdma_completion *done)
{
	const uint32_t room = completions_room(r);

	assert(r->completions_n < room);
	assert(done->kind == PL_RDMA_DONE_ERROR || r->completions_promised > 0);
	r->completions[(r->completions_first + r->completions_n) % room] = *done;
	r->completions_n++;
	if (done->kind == PL_RDMA_DONE_ERROR)
		r->errors_waiting++;
	else
		r->completions_promised--;
}

void pl_responder_fail(struct pl_responder *r, struct pl_responder_qp *qp, enum pl_rdma_cause cause)
{
	struct pl_rdma_completion done = {
		.qpn = qp->c.qpn, .kind = PL_RDMA_DONE_ERROR, .cause = (uint8_t)cause
	};

	qp->state = PL_RDMA_ERROR;
	qp->in = PL_RDMA_NONE;
	pl_responder_complete(r, &done);
	done.kind = PL_RDMA_DONE_FLUSHED;
	for (; qp->posted > 0; qp->posted--) {
		done.id = qp->receives[qp->first].id;
		qp->first = (qp->first + 1) % qp->c.receives;
		pl_responder_complete(r, &done);
	}
}

uint32_t pl_responder_completions(
	struct pl_responder *r, struct pl_rdma_completion *ret, uint32_t max)
{
	const uint32_t room = completions_room(r);
	uint32_t n = 0;

	for (; n < max && r->completions_n > 0; n++) {
		ret[n] = r->completions[r->completions_first];
		r->completions_first = (r->completions_first + 1) % room;
		r->completions_n--;
		if (ret[n].kind == PL_RDMA_DONE_ERROR) {
			assert(r->errors_waiting > 0);
			r->errors_waiting--;
		}
	}
	return n;
}

void pl_responder_own_mac(struct pl_responder *r, const uint8_t mac[6])
{
	r->own_mac = mac != NULL ? (uint64_t)pl_be16(mac) << 32 | pl_be32(mac + 2) : 0;
}

void pl_responder_now(struct pl_responder *r, uint64_t now_ns)
{
	r->now_ns = now_ns;
}

static void tell_suspect(
	const struct pl_responder *r, const struct pl_guard_source *s, struct pl_rdma_suspect *ret)
{
	*ret = (struct pl_rdma_suspect){ .addr = s->addr,
		.guesses = s->total,
		.now = r->now_ns - s->last_ns < PL_GUARD_QUIET_NS };
	memcpy(ret->kinds, s->kinds, sizeof(ret->kinds));
}

uint32_t pl_responder_suspects(
	const struct pl_responder *r, struct pl_rdma_suspect *ret, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < PL_GUARD_SOURCES && n < max; i++) {
		const struct pl_guard_source *s = &r->guard.sources[i];

		if (s->suspect)
			tell_suspect(r, s, &ret[n++]);
	}
	return n;
}

bool pl_responder_alarm(struct pl_responder *r, struct pl_rdma_suspect *ret)
{
	for (uint32_t i = 0; i < PL_GUARD_SOURCES; i++) {
		struct pl_guard_source *s = &r->guard.sources[i];

		if (!s->suspect || s->told)
			continue;
		s->told = true;
		tell_suspect(r, s, ret);
		return true;
	}
	return false;
}

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_responder_counters, __VA_ARGS__)
#include "rdma/responder_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_responder_stats_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

const struct pl_responder_counters *pl_responder_counters(const struct pl_responder *r)
{
	return &r->counters;
}
