/* SPDX-License-Identifier: BSD-2-Clause */
/* Links against their configuration: times, shares, accounts. */
#include "dataplane/link.h"

#include <errno.h>
#include <math.h>

#include "base/test.h"

#define MS UINT64_C(1000000)

static struct pl_dp_pool *pool;

/* Results of a run. */
struct run {
	uint64_t sent, lost, copies, arrived, changed_bits, backward;
	uint64_t least_ns, most_ns; /* from sending to arrival */
	uint64_t longest_loss;      /* most packets lost in a row */
	uint64_t lost_numbers[PL_DP_LOSE_MAX];
	uint64_t digest; /* hash of all arrivals in their order */
	bool balanced;
};

static bool closed(const struct pl_dp_link *l)
{
	const struct pl_dp_link_account *b = pl_dp_link_account(l);
	uint64_t lost = b->lost_random + b->lost_burst + b->lost_listed + b->lost_down +
			b->lost_full + b->lost_memory;

	return b->in_packets + b->duplicated == b->out_packets + lost + b->held_packets &&
	       b->in_bytes + b->duplicated_bytes == b->out_bytes + b->lost_bytes + b->held_bytes;
}

static void receive(struct pl_dp_link *l, uint64_t until_ns, struct run *r, uint64_t *highest)
{
	while (pl_dp_link_next(l) <= until_ns) {
		uint64_t at = pl_dp_link_next(l), took;
		struct pl_dp_packet *pkt = pl_dp_link_recv(l, at);

		took = at - pkt->born_ns;
		r->arrived++;
		r->least_ns = took < r->least_ns ? took : r->least_ns;
		r->most_ns = took > r->most_ns ? took : r->most_ns;
		r->backward += pkt->serial < *highest;
		*highest = pkt->serial > *highest ? pkt->serial : *highest;
		for (uint32_t i = 0; i < pkt->len; i++)
			r->changed_bits += (uint64_t)__builtin_popcount(pkt->data[i]);
		r->digest = (r->digest ^ (at + pkt->serial)) * 0x9e3779b97f4a7c15u;
		pl_dp_packet_free(pkt);
	}
	r->balanced = r->balanced && closed(l);
}

static void send_n(struct pl_dp_link *l, uint64_t n, uint64_t gap_ns, struct run *r)
{
	uint64_t now = 1000 * MS, highest = 0, in_a_row = 0;

	*r = (struct run){ .least_ns = UINT64_MAX, .balanced = true };
	for (; r->sent < n; r->sent++, now += gap_ns) {
		struct pl_dp_packet *pkt = pl_dp_packet_new(pool, 100), *copy;

		receive(l, now, r, &highest);
		if (pkt == NULL) {
			ok(false, "a packet");
			return;
		}
		memset(pkt->data, 0, pkt->len);
		pkt->serial = r->sent;
		pkt->born_ns = now;
		if (pl_dp_link_send(l, pkt, now, &copy)) {
			r->copies += copy != NULL;
			in_a_row = 0;
			continue;
		}
		if (pkt->drop != PL_DP_DROP_LINK)
			ok(false, "the drop of a lost packet");
		if (r->lost < PL_DP_LOSE_MAX)
			r->lost_numbers[r->lost] = r->sent;
		r->lost++;
		in_a_row++;
		r->longest_loss = in_a_row > r->longest_loss ? in_a_row : r->longest_loss;
		pl_dp_packet_free(pkt);
	}
	receive(l, UINT64_MAX - 1, r, &highest);
}

static struct pl_dp_link *run(
	struct pl_dp_link_cfg cfg, uint64_t seed, uint64_t n, uint64_t gap_ns, struct run *r)
{
	struct pl_dp_link *l = NULL;
	struct pl_diag diag = { .text = "" };

	if (!ok(pl_dp_link_new(&l, &cfg, seed, &diag) == 0, "a link %s", diag.text))
		exit(1);
	send_n(l, n, gap_ns, r);
	ok(r->balanced && pl_dp_link_account(l)->held_packets == 0, "the account agrees");
	eq(r->arrived, r->sent - r->lost + r->copies, "all that was not lost arrived");
	eq(pl_dp_pool_alive(pool), 0);
	return l;
}

static void test_refused(void)
{
	static const struct pl_dp_link_cfg bad[] = {
		{ .loss = 1.01 },
		{ .loss = -0.01 },
		{ .corrupt = NAN },
		{ .duplicate = 2 },
		{ .to_bad = 0.1 },
		{ .reorder = 0.1 },
		{ .n_hold = 1 },
		{ .n_copy = PL_DP_LOSE_MAX + 1 },
		{ .lose_period = 5, .lose_run = 6 },
		{ .n_lose = PL_DP_LOSE_MAX + 1 },
		{ .delay_ns = PL_DP_LINK_DELAY_MAX + 1 },
		{ .rate_bps = UINT64_C(1000000000001) },
	};
	struct pl_dp_link *l = NULL;

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct pl_diag diag = { .text = "" };

		eq(pl_dp_link_new(&l, &bad[i], 1, &diag), -EINVAL, "configuration %u", i);
		ok(l == NULL && diag.text[0] != '\0', "its text: %s", diag.text);
	}
}

static void test_times(void)
{
	struct run r;

	pl_dp_link_free(run((struct pl_dp_link_cfg){ .delay_ns = 5 * MS }, 1, 1000, MS, &r));
	ok(r.least_ns == 5 * MS && r.most_ns == 5 * MS && r.lost == 0, "the delay, exactly");
	pl_dp_link_free(run((struct pl_dp_link_cfg){ .delay_ns = 5 * MS,
				    .jitter = { PL_DIST_UNIFORM, 0, 1000000 } },
		1, 20000, MS / 10, &r));
	ok(r.least_ns >= 5 * MS && r.most_ns < 6 * MS && r.most_ns > 5900000, "jitter in bounds");
	eq(r.backward, 0, "jitter keeps the order");
	pl_dp_link_free(run((struct pl_dp_link_cfg){ .delay_ns = 5 * MS,
				    .jitter = { PL_DIST_UNIFORM, 0, 1000000 },
				    .jitter_reorders = true },
		1, 20000, MS / 10, &r));
	ok(r.backward > 1000, "or not: %" PRIu64, r.backward);

	/* 100 bytes at 1 Mb/s take 800 us: sent every 400 us, the last of 100 waits for them all. */
	pl_dp_link_free(run((struct pl_dp_link_cfg){ .rate_bps = 1000000 }, 1, 100, 400000, &r));
	eq(r.least_ns, 800000);
	eq(r.most_ns, 100 * 800000 - 99 * 400000);
	/* An odd rate and thousands of packets: fractions of a ns are not lost. */
	pl_dp_link_free(run((struct pl_dp_link_cfg){ .rate_bps = 7000007 }, 1, 4000, 0, &r));
	eq(r.most_ns, (uint64_t)4000 * 800 * 1000000000 / 7000007);
}

/* Returns true when the count is within four standard deviations of its share of n. */
static bool near_share(uint64_t got, uint64_t n, double share)
{
	double sd = sqrt((double)n * share * (1 - share));

	return fabs((double)got - (double)n * share) < 4 * sd;
}

static void test_shares(void)
{
	const uint64_t n = 200000;
	struct pl_dp_link *l;
	struct run r;

	for (unsigned int i = 0; i < 3; i++) {
		static const double shares[] = { 0.001, 0.05, 0.7 };

		l = run((struct pl_dp_link_cfg){ .loss = shares[i] }, i, n, 1000, &r);
		ok(near_share(r.lost, n, shares[i]), "%g lost: %" PRIu64, shares[i], r.lost);
		eq(pl_dp_link_account(l)->lost_random, r.lost);
		pl_dp_link_free(l);
	}
	l = run((struct pl_dp_link_cfg){ .loss = 1 }, 1, 1000, 1000, &r);
	eq(r.lost, 1000);
	pl_dp_link_free(l);

	l = run((struct pl_dp_link_cfg){ .duplicate = 0.1 }, 1, n, 1000, &r);
	ok(near_share(r.copies, n, 0.1), "%" PRIu64 " copies", r.copies);
	eq(pl_dp_link_account(l)->duplicated, r.copies);
	pl_dp_link_free(l);

	l = run((struct pl_dp_link_cfg){ .corrupt = 0.1 }, 1, n, 1000, &r);
	ok(near_share(pl_dp_link_account(l)->corrupted, n, 0.1), "corrupted");
	eq(r.changed_bits, pl_dp_link_account(l)->corrupted, "one bit each");
	pl_dp_link_free(l);

	/* Packets are held back for 10 successors. */
	l = run((struct pl_dp_link_cfg){ .reorder = 0.01, .reorder_ns = 10000 }, 1, n, 1000, &r);
	ok(near_share(pl_dp_link_account(l)->delayed, n, 0.01), "held back");
	eq(pl_dp_link_account(l)->reordered, r.backward, "reordered, as seen at the end");
	ok(r.backward > n / 200 && r.most_ns == 10000, "%" PRIu64 " overtaken", r.backward);
	pl_dp_link_free(l);
}

/* Gilbert-Elliott: the share of the bad state is p / (p + r), a burst lasts 1 / r packets. */
static void test_bursts(void)
{
	const uint64_t n = 400000;
	struct pl_dp_link *l;
	struct run r;
	double share;

	l = run((struct pl_dp_link_cfg){ .to_bad = 0.002, .to_good = 0.1, .bad_loss = 1 }, 9, n,
		1000, &r);
	share = (double)r.lost / (double)n;
	ok(fabs(share / (0.002 / 0.102) - 1) < 0.15, "share %g", share);
	ok(r.longest_loss > 30, "%" PRIu64 " in a row", r.longest_loss);
	eq(pl_dp_link_account(l)->lost_burst, r.lost);
	pl_dp_link_free(l);
	/* Random loss with the same share has no such bursts. */
	l = run((struct pl_dp_link_cfg){ .loss = share }, 9, n, 1000, &r);
	ok(r.longest_loss < 8, "%" PRIu64 " in a row at random", r.longest_loss);
	pl_dp_link_free(l);
}

static void test_by_number(void)
{
	struct pl_dp_link *l;
	struct run r;
	int wrong = 0;

	l = run((struct pl_dp_link_cfg){ .lose_first = 3, .lose_period = 100, .lose_run = 2 }, 1,
		1000, 1000, &r);
	eq(r.lost, 20);
	for (unsigned int i = 0; i < 20; i++)
		wrong += r.lost_numbers[i] != i / 2 * 100 + 3 + i % 2;
	eq(wrong, 0, "every hundredth and the one behind");
	eq(pl_dp_link_account(l)->lost_listed, 20);
	pl_dp_link_free(l);
	l = run((struct pl_dp_link_cfg){ .lose = { 0, 500, 123 }, .n_lose = 3 }, 1, 1000, 1000, &r);
	ok(r.lost == 3 && r.lost_numbers[0] == 0 && r.lost_numbers[1] == 123 &&
			r.lost_numbers[2] == 500,
		"a list");
	pl_dp_link_free(l);
	l = run((struct pl_dp_link_cfg){ .lose_first = 990, .lose_run = 5 }, 1, 2000, 1000, &r);
	ok(r.lost == 5 && r.lost_numbers[4] == 994, "once");
	pl_dp_link_free(l);
	l = run((struct pl_dp_link_cfg){ .delay_ns = MS, .limit_packets = 10 }, 1, 100, 1, &r);
	ok(r.lost == 90 && pl_dp_link_account(l)->lost_full == 90, "ten under way");
	pl_dp_link_free(l);
	/* One packet is copied, one takes 14.5 ms at a packet per ms: four overtake it. */
	l = run((struct pl_dp_link_cfg){ .delay_ns = 10 * MS,
			.copy = { 7 },
			.n_copy = 1,
			.hold = { 100 },
			.n_hold = 1,
			.reorder_ns = 4500000 },
		1, 1000, MS, &r);
	ok(r.copies == 1 && r.lost == 0, "the one that is copied");
	ok(r.most_ns == 14500000 && r.least_ns == 10 * MS && r.backward == 1, "and the one held");
	pl_dp_link_free(l);
}

/* The same seed gives the same results, another seed others; jitter does not change losses. */
static void test_seed(void)
{
	struct pl_dp_link_cfg cfg = { .delay_ns = MS,
		.jitter = { PL_DIST_EXP, 50000, 0 },
		.loss = 0.01,
		.duplicate = 0.01,
		.corrupt = 0.01 };
	struct run a, b, c, d;

	pl_dp_link_free(run(cfg, 77, 20000, 1000, &a));
	pl_dp_link_free(run(cfg, 77, 20000, 1000, &b));
	pl_dp_link_free(run(cfg, 78, 20000, 1000, &c));
	cfg.jitter.kind = PL_DIST_DEFAULT;
	pl_dp_link_free(run(cfg, 77, 20000, 1000, &d));
	ok(a.digest == b.digest && a.digest != c.digest, "by seed");
	ok(a.lost == d.lost && memcmp(a.lost_numbers, d.lost_numbers, sizeof(a.lost_numbers)) == 0,
		"the same are lost without jitter");
}

/* Changes with packets under way: down and up again, and slower. */
static void test_changed(void)
{
	struct pl_dp_link_cfg cfg = { .delay_ns = 10 };
	struct pl_dp_link *l = NULL;
	struct pl_dp_packet *p, *copy;
	uint64_t at;

	eq(pl_dp_link_new(&l, &cfg, 1, NULL), 0);
	ok(pl_dp_link_send(l, pl_dp_packet_new(pool, 60), 100, &copy), "up");
	cfg.down = true;
	eq(pl_dp_link_set(l, &cfg, NULL), 0);
	p = pl_dp_packet_new(pool, 60);
	ok(!pl_dp_link_send(l, p, 101, &copy), "down");
	pl_dp_packet_free(p);
	cfg.down = false;
	cfg.delay_ns = 20;
	eq(pl_dp_link_set(l, &cfg, NULL), 0);
	ok(pl_dp_link_send(l, pl_dp_packet_new(pool, 60), 102, &copy), "up again");
	cfg.loss = 3;
	eq(pl_dp_link_set(l, &cfg, NULL), -EINVAL);
	ok(pl_dp_link_get(l)->loss == 0, "and nothing changed");
	eq(pl_dp_link_next(l), 110);
	ok(pl_dp_link_recv(l, 109) == NULL, "not before its time");
	p = pl_dp_link_recv(l, 110);
	ok(p != NULL, "what was under way arrives");
	pl_dp_packet_free(p);
	eq(pl_dp_link_next(l), 122);
	eq(pl_dp_link_account(l)->lost_down, 1);
	/* The packet of 102 is still under way; a link that got faster holds no other for it. */
	cfg.loss = 0;
	cfg.delay_ns = 5;
	eq(pl_dp_link_set(l, &cfg, NULL), 0);
	ok(pl_dp_link_send(l, pl_dp_packet_new(pool, 60), 110, &copy), "faster");
	eq(pl_dp_link_next(l), 115);
	/* Another change leaves the order. */
	cfg.jitter = (struct pl_dist){ PL_DIST_UNIFORM, 50, 60 };
	eq(pl_dp_link_set(l, &cfg, NULL), 0);
	ok(pl_dp_link_send(l, pl_dp_packet_new(pool, 60), 110, &copy), "jitter");
	cfg.corrupt = 0.5;
	eq(pl_dp_link_set(l, &cfg, NULL), 0);
	while ((p = pl_dp_link_recv(l, 150)) != NULL)
		pl_dp_packet_free(p);
	at = pl_dp_link_next(l);
	ok(at >= 165, "after the jitter");
	for (int i = 0; i < 20; i++)
		(void)pl_dp_link_send(l, pl_dp_packet_new(pool, 60), 111, &copy);
	eq(pl_dp_link_next(l), at);
	ok(closed(l), "the account agrees");
	pl_dp_link_free(l);
	eq(pl_dp_pool_alive(pool), 0, "a link frees what is under way");
}

int main(void)
{
	if (pl_dp_pool_new(&pool, PL_DP_HEADROOM + 200, 10000) != 0)
		return EXIT_FAILURE;
	test_refused();
	test_times();
	test_shares();
	test_bursts();
	test_by_number();
	test_seed();
	test_changed();
	pl_dp_pool_free(pool);
	return pl_test_done();
}
