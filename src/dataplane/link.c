/* SPDX-License-Identifier: BSD-2-Clause */
/* Links: decides when packets arrive, and which are lost. */
#include "dataplane/link.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rng.h"

#define BITS_NS UINT64_C(8000000000)

/* Events with a random number generator each. */
enum { FATE_LOSS, FATE_STATE, FATE_JITTER, FATE_COPY, FATE_BIT, FATE_HOLD, FATES };

struct under_way {
	uint64_t at_ns;
	uint64_t number; /* order of sending: breaks ties, and shows reordering */
	struct pl_dp_packet *pkt;
};

struct pl_dp_link {
	struct pl_dp_link_cfg cfg;
	struct pl_rng rng[FATES];
	struct under_way *heap; /* ordered by arrival */
	uint32_t n, cap;
	bool bad;
	uint64_t index;              /* number of the next packet since the configuration was set */
	uint64_t sent;               /* packets sent so far */
	uint64_t arrived;            /* 1 + the highest number that arrived */
	uint64_t in_order_ns;        /* least arrival time of packets that keep their order */
	uint64_t busy_ns, busy_rest; /* sends until busy_ns + busy_rest / rate */
	struct pl_dp_link_account account;
};

const struct pl_stats pl_dp_link_stats = {
	.rows =
		(const struct pl_stat[]){
#define PL_STAT(...) PL_STAT_ROW(struct pl_dp_link_account, __VA_ARGS__)
#include "dataplane/link_stats.def"
#undef PL_STAT
		},
	.n = sizeof(struct pl_dp_link_account) / sizeof(uint64_t),
};

static int check(const struct pl_dp_link_cfg *c, struct pl_diag *diag)
{
	const struct {
		const char *name;
		double share;
	} shares[] = { { "loss", c->loss }, { "to_bad", c->to_bad }, { "to_good", c->to_good },
		{ "bad_loss", c->bad_loss }, { "duplicate", c->duplicate },
		{ "corrupt", c->corrupt }, { "reorder", c->reorder } };

	for (unsigned int i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		/* Written as a negation, so that NaN is refused. */
		if (!(shares[i].share >= 0 && shares[i].share <= 1)) {
			pl_diag_set(diag, "%s is a share from 0 to 1, not %g", shares[i].name,
				shares[i].share);
			return -EINVAL;
		}
	}
	if (c->to_bad > 0 && c->to_good == 0) {
		pl_diag_set(diag, "bursts of loss that never end: to_good is 0");
		return -EINVAL;
	}
	if ((c->reorder > 0 || c->n_hold != 0) && c->reorder_ns == 0) {
		pl_diag_set(diag,
			"reorder and hold need the time that a packet is held back: reorder_time");
		return -EINVAL;
	}
	if (c->lose_period != 0 && c->lose_run > c->lose_period) {
		pl_diag_set(diag, "lose_run is longer than lose_period");
		return -EINVAL;
	}
	if (c->n_lose > PL_DP_LOSE_MAX || c->n_copy > PL_DP_LOSE_MAX ||
		c->n_hold > PL_DP_LOSE_MAX) {
		pl_diag_set(diag, "a list of lose, copy or hold has at most %u numbers",
			PL_DP_LOSE_MAX);
		return -EINVAL;
	}
	if (c->delay_ns > PL_DP_LINK_DELAY_MAX || c->reorder_ns > PL_DP_LINK_DELAY_MAX) {
		pl_diag_set(diag, "a link holds a packet for an hour at most");
		return -EINVAL;
	}
	if (c->rate_bps > UINT64_C(1000000000000) || c->overhead_bytes > 1000) {
		pl_diag_set(diag, "a link's rate is at most 1 Tb/s, its overhead 1000 bytes");
		return -EINVAL;
	}
	return 0;
}

int pl_dp_link_new(struct pl_dp_link **ret, const struct pl_dp_link_cfg *cfg, uint64_t seed,
	struct pl_diag *diag)
{
	struct pl_dp_link *l;
	int r = check(cfg, diag);

	if (r != 0)
		return r;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->cfg = *cfg;
	for (unsigned int i = 0; i < FATES; i++)
		pl_rng_seed(&l->rng[i], seed * FATES + i);
	*ret = l;
	return 0;
}

void pl_dp_link_free(struct pl_dp_link *l)
{
	if (l == NULL)
		return;
	for (uint32_t i = 0; i < l->n; i++)
		pl_dp_packet_free(l->heap[i].pkt);
	free(l->heap);
	free(l);
}

int pl_dp_link_set(struct pl_dp_link *l, const struct pl_dp_link_cfg *cfg, struct pl_diag *diag)
{
	int r = check(cfg, diag);

	if (r != 0)
		return r;
	/* Packets must not wait for those that an earlier delay still holds, up to an hour. */
	if (cfg->delay_ns != l->cfg.delay_ns || !pl_dist_same(&cfg->jitter, &l->cfg.jitter))
		l->in_order_ns = 0;
	l->cfg = *cfg;
	l->index = 0;
	l->busy_rest = 0;
	if (cfg->to_bad == 0)
		l->bad = false;
	return 0;
}

const struct pl_dp_link_cfg *pl_dp_link_get(const struct pl_dp_link *l)
{
	return &l->cfg;
}

static bool before(const struct under_way *a, const struct under_way *b)
{
	return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->number < b->number);
}

static bool push(struct pl_dp_link *l, struct under_way w)
{
	uint32_t i = l->n;

	if (l->n == l->cap) {
		uint32_t cap = l->cap == 0 ? 16 : l->cap * 2;
		struct under_way *heap = reallocarray(l->heap, cap, sizeof(*heap));

		if (heap == NULL)
			return false;
		l->heap = heap;
		l->cap = cap;
	}
	l->n++;
	while (i > 0 && before(&w, &l->heap[(i - 1) / 2])) {
		l->heap[i] = l->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	l->heap[i] = w;
	l->account.held_packets++;
	l->account.held_bytes += w.pkt->len;
	return true;
}

static struct under_way pop(struct pl_dp_link *l)
{
	const struct under_way first = l->heap[0], w = l->heap[--l->n];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < l->n) {
		if (child + 1 < l->n && before(&l->heap[child + 1], &l->heap[child]))
			child++;
		if (!before(&l->heap[child], &w))
			break;
		l->heap[i] = l->heap[child];
		i = child;
	}
	l->heap[i] = w;
	l->account.held_packets--;
	l->account.held_bytes -= first.pkt->len;
	return first;
}

static bool chance(struct pl_rng *rng, double share)
{
	return share > 0 && pl_rng_unit(rng) < share;
}

static bool in_list(const uint64_t *list, uint32_t n, uint64_t index)
{
	for (uint32_t i = 0; i < n; i++) {
		if (list[i] == index)
			return true;
	}
	return false;
}

static bool listed(const struct pl_dp_link_cfg *c, uint64_t index)
{
	if (c->lose_run != 0 && index >= c->lose_first) {
		uint64_t i = index - c->lose_first;

		if ((c->lose_period != 0 ? i % c->lose_period : i) < c->lose_run)
			return true;
	}
	return in_list(c->lose, c->n_lose, index);
}

/* Returns the counter of the cause for which the packet is lost; NULL when it is not. */
static uint64_t *lost(struct pl_dp_link *l, uint64_t index)
{
	const struct pl_dp_link_cfg *c = &l->cfg;

	if (c->to_bad > 0 && chance(&l->rng[FATE_STATE], l->bad ? c->to_good : c->to_bad))
		l->bad = !l->bad;
	if (c->down)
		return &l->account.lost_down;
	if (listed(c, index))
		return &l->account.lost_listed;
	if (l->bad ? chance(&l->rng[FATE_LOSS], c->bad_loss) : chance(&l->rng[FATE_LOSS], c->loss))
		return l->bad ? &l->account.lost_burst : &l->account.lost_random;
	if (c->limit_packets != 0 && l->n >= c->limit_packets)
		return &l->account.lost_full;
	return NULL;
}

/* Returns when the last bit has been sent at the link's own rate. */
static uint64_t through(struct pl_dp_link *l, uint32_t len, uint64_t now_ns)
{
	uint64_t rest;

	if (l->cfg.rate_bps == 0)
		return now_ns;
	if (now_ns > l->busy_ns) {
		l->busy_ns = now_ns;
		l->busy_rest = 0;
	}
	rest = l->busy_rest + ((uint64_t)len + l->cfg.overhead_bytes) * BITS_NS;
	l->busy_ns += rest / l->cfg.rate_bps;
	l->busy_rest = rest % l->cfg.rate_bps;
	return l->busy_ns;
}

static uint64_t arrival(struct pl_dp_link *l, uint32_t len, uint64_t index, uint64_t now_ns)
{
	uint64_t at = through(l, len, now_ns) + l->cfg.delay_ns;

	if (l->cfg.jitter.kind != PL_DIST_DEFAULT)
		at += pl_dist_draw(&l->cfg.jitter, &l->rng[FATE_JITTER], PL_DP_LINK_DELAY_MAX);
	if (chance(&l->rng[FATE_HOLD], l->cfg.reorder) ||
		in_list(l->cfg.hold, l->cfg.n_hold, index)) {
		l->account.delayed++;
		return at + l->cfg.reorder_ns;
	}
	if (l->cfg.jitter_reorders)
		return at;
	if (at < l->in_order_ns)
		at = l->in_order_ns;
	l->in_order_ns = at;
	return at;
}

/* Flips a bit behind the MAC addresses, so that the packet still reaches its station. */
static void change_bit(struct pl_dp_link *l, struct pl_dp_packet *pkt)
{
	uint64_t bit;

	if (pkt->len <= 12)
		return;
	bit = 12 * 8 + pl_rng_below(&l->rng[FATE_BIT], (uint64_t)(pkt->len - 12) * 8);
	pkt->data[bit / 8] ^= (uint8_t)(0x80 >> (bit % 8));
	l->account.corrupted++;
}

static void copy(
	struct pl_dp_link *l, struct pl_dp_packet *pkt, uint64_t at_ns, struct pl_dp_packet **ret)
{
	struct pl_dp_packet *c = pl_dp_packet_clone(pkt);

	if (c == NULL || !push(l, (struct under_way){ at_ns, l->sent++, c })) {
		pl_dp_packet_free(c);
		l->account.not_duplicated++;
		return;
	}
	l->account.duplicated++;
	l->account.duplicated_bytes += c->len;
	*ret = c;
}

bool pl_dp_link_send(struct pl_dp_link *l, struct pl_dp_packet *pkt, uint64_t now_ns,
	struct pl_dp_packet **ret_copy)
{
	uint64_t *cause, at_ns, index = l->index++;

	*ret_copy = NULL;
	l->account.in_packets++;
	l->account.in_bytes += pkt->len;
	cause = lost(l, index);
	if (cause == NULL) {
		at_ns = arrival(l, pkt->len, index, now_ns);
		if (!push(l, (struct under_way){ at_ns, l->sent++, pkt }))
			cause = &l->account.lost_memory;
	}
	if (cause != NULL) {
		++*cause;
		l->account.lost_bytes += pkt->len;
		pkt->drop = PL_DP_DROP_LINK;
		return false;
	}
	if (chance(&l->rng[FATE_BIT], l->cfg.corrupt))
		change_bit(l, pkt);
	if (chance(&l->rng[FATE_COPY], l->cfg.duplicate) ||
		in_list(l->cfg.copy, l->cfg.n_copy, index))
		copy(l, pkt, at_ns, ret_copy);
	return true;
}

uint64_t pl_dp_link_next(const struct pl_dp_link *l)
{
	return l->n != 0 ? l->heap[0].at_ns : UINT64_MAX;
}

struct pl_dp_packet *pl_dp_link_recv(struct pl_dp_link *l, uint64_t now_ns)
{
	struct under_way w;

	if (l->n == 0 || l->heap[0].at_ns > now_ns)
		return NULL;
	w = pop(l);
	l->account.out_packets++;
	l->account.out_bytes += w.pkt->len;
	if (w.number < l->arrived)
		l->account.reordered++;
	else
		l->arrived = w.number + 1;
	return w.pkt;
}

const struct pl_dp_link_account *pl_dp_link_account(const struct pl_dp_link *l)
{
	return &l->account;
}
