/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explicit flow measurement: the scenarios Q1 to Q6 of the reference with their exact results, the
 * example of RFC 9506 3.1.3, and connections with loss and reordering against what their ends know.
 */
#include <math.h>

#include "base/rng.h"
#include "base/test.h"
#include "mark/efm.h"

#define MS UINT64_C(1000000)

enum { SPIN = 0x20, Q = 0x10, L = 0x08, D = 0x04, R = 0x02, T = 0x01, E = 0x40 };

static const struct pl_efm_config all = { .masks = { SPIN, D, Q, L, R, T, E },
	.threshold = PL_EFM_THRESHOLD };

static bool near(double a, double b, double error)
{
	return fabs(a - b) <= error;
}

/* ---- blocks ---- */

/* A connection with these blocks of a bit, in whole; one in a hundred packets in front. */
static void put_blocks(struct pl_efm *e, uint8_t bit, const unsigned int *blocks, unsigned int n,
	unsigned int loss_in_20)
{
	uint64_t at = 1000 * MS;
	unsigned int k = 0;

	for (unsigned int i = 0; i < 3; i++)
		pl_efm_take(e, &all, 0, at++, bit, false);
	for (unsigned int b = 0; b < n; b++) {
		for (unsigned int i = 0; i < blocks[b]; i++, k++)
			pl_efm_take(e, &all, 0, at += MS,
				(uint8_t)((b & 1 ? bit : 0) | (k % 20 < loss_in_20 ? L : 0)),
				false);
	}
	/* The last block ends when the next one is past its edge. */
	for (unsigned int i = 0; i < 40; i++)
		pl_efm_take(e, &all, 0, at += MS, n & 1 ? bit : 0, false);
	pl_efm_finish(e);
}

static void squares(void)
{
	static const struct {
		const char *name;
		unsigned int n, blocks[6];
		uint64_t sent, packets, merged;
		double uloss;
	} rows[] = {
		{ "Q1", 4, { 64, 60, 64, 62 }, 256, 250, 0, 0.0234375 },
		{ "Q2, 128", 1, { 128 }, 192, 128, 1, 64.0 / 192 },
		{ "Q2, 120", 1, { 120 }, 192, 120, 1, 72.0 / 192 },
		{ "Q2 among others", 5, { 64, 64, 120, 64, 64 }, 448, 376, 1, 72.0 / 448 },
		{ "reordering moves one over", 4, { 65, 63, 64, 64 }, 256, 256, 0, 0 },
		{ "blocks of 128", 4, { 128, 127, 128, 125 }, 512, 508, 0, 4.0 / 512 },
		{ "no loss", 3, { 64, 64, 64 }, 192, 192, 0, 0 },
	};
	static const unsigned int one[] = { 64 }, odd[] = { 9, 7, 12, 8, 9 };
	static struct pl_efm e;
	struct pl_efm_result r;

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_efm_loss l;

		memset(&e, 0, sizeof(e));
		put_blocks(&e, Q, rows[i].blocks, rows[i].n, 0);
		l = pl_efm_loss_of(&e.ways[0].square.blocks, i == 5 ? 128 : 64);
		eq(l.sent, rows[i].sent, "%s: sent", rows[i].name);
		eq(l.packets, rows[i].packets, "%s: came", rows[i].name);
		eq(l.merged, rows[i].merged, "%s: blocks lost", rows[i].name);
		ok(near(pl_efm_loss_ratio(&l), rows[i].uloss, 1e-12), "%s: uloss %g", rows[i].name,
			pl_efm_loss_ratio(&l));
	}
	memset(&e, 0, sizeof(e));
	put_blocks(&e, Q, rows[5].blocks, 4, 0);
	eq(pl_efm_square_of(&e.ways[0].square.blocks), 128, "N is that of most blocks");
	memset(&e, 0, sizeof(e));
	put_blocks(&e, Q, one, 1, 0);
	eq(pl_efm_square_of(&e.ways[0].square.blocks), 64, "of one block, too");
	memset(&e, 0, sizeof(e));
	put_blocks(&e, Q, odd, 5, 0);
	pl_efm_result(&r, &e, &all, 0);
	ok((r.has & PL_EFM_HAS_ULOSS) == 0 && (r.notes & PL_EFM_NOTE_NO_SQUARE) != 0,
		"a bit without blocks of a length is no square");
}

static void events(void)
{
	static const unsigned int blocks[] = { 64, 60, 64, 62 };
	static struct pl_efm e;
	struct pl_efm_result r;

	/* Q1: the share of L is 5 %, or 2 %. */
	memset(&e, 0, sizeof(e));
	put_blocks(&e, Q, blocks, 4, 0);
	e.ways[0].packets = 1000;
	e.ways[0].loss = 50;
	pl_efm_result(&r, &e, &all, 0);
	eq(r.has & 7, PL_EFM_HAS_ULOSS | PL_EFM_HAS_ELOSS | PL_EFM_HAS_DLOSS, "Q1: all three");
	ok(near(r.uloss, 0.0234375, 1e-12) && near(r.eloss, 0.05, 1e-12), "Q1: uloss, eloss");
	ok(near(r.dloss, 0.0272, 1e-12), "Q1: dloss is 2.72 %%, %g", r.dloss);
	e.ways[0].loss = 20;
	pl_efm_result(&r, &e, &all, 0);
	ok(near(r.uloss, 0.02, 1e-12) && near(r.dloss, 0, 1e-12), "Q1: lowered to eloss");
	ok((r.notes & PL_EFM_NOTE_LOWERED) != 0, "and said so");
	e.ways[0].echo = 30;
	pl_efm_result(&r, &e, &all, 0);
	ok((r.has & PL_EFM_HAS_ECHO) != 0 && near(r.echo, 0.03, 1e-12), "E is a share as L is");
	/* Four round-trip times at least. */
	e.ways[0].delay_rtt = (struct pl_efm_stat){ 1, 200 * MS, 200 * MS, 200 * MS };
	pl_efm_result(&r, &e, &all, 0);
	ok((r.has & PL_EFM_HAS_DLOSS) == 0 && (r.notes & PL_EFM_NOTE_SHORT) != 0,
		"a short connection has no dloss");
	ok(near(r.uloss, 0.0234375, 1e-12), "and uloss as it is");
}

static void reflections(void)
{
	static const unsigned int q[] = { 64, 60, 64, 62 }, r_blocks[] = { 60, 59, 61, 60 };
	static const unsigned int odd[] = { 20, 19, 30, 18, 25 };
	static struct pl_efm e;
	static struct pl_efm other;
	struct pl_efm_config qr = all;
	struct pl_efm_result r;

	qr.masks[PL_EFM_LOSS] = 0;

	memset(&e, 0, sizeof(e));
	put_blocks(&e, Q, q, 4, 0);
	put_blocks(&other, R, r_blocks, 4, 0);
	e.ways[0].reflection = other.ways[0].reflection;
	pl_efm_result(&r, &e, &qr, 0);
	ok(near(r.tqloss, 0.0625, 1e-12), "Q3: tqloss is 6.25 %%, %g", r.tqloss);
	ok(near(r.reverse, 0.04, 1e-12), "Q3: 4 %% from end to end the other way, %g", r.reverse);
	eq(r.has & (PL_EFM_HAS_HALF | PL_EFM_HAS_DLOSS), 0, "half a trip takes the other way's R");
	e.ways[1] = e.ways[0];
	pl_efm_result(&r, &e, &qr, 0);
	ok((r.has & PL_EFM_HAS_HALF) != 0 && near(r.half_loss, 0.04, 1e-12), "which is there now");
	ok((r.has & PL_EFM_HAS_DLOSS) != 0 && near(r.dloss, pl_efm_rest(0.04, 0.0234375), 1e-12),
		"and loss behind the observer, without L");
	/* A square bit that never changes has no N, to which loss of R could be reckoned. */
	memset(&e, 0, sizeof(e));
	put_blocks(&e, R, odd, 5, 0);
	pl_efm_result(&r, &e, &qr, 0);
	eq(r.has & (PL_EFM_HAS_ULOSS | PL_EFM_HAS_TQLOSS | PL_EFM_HAS_REVERSE), 0,
		"reflections without a square bit say nothing");
}

/* The rule of R for a sender (RFC 9506 3.4.1): M = round(avg + carry), half up. */
static unsigned int reflect(double average, double *carry)
{
	const double exact = average + *carry;
	const unsigned int m = (unsigned int)floor(exact + 0.5);

	*carry = exact - m;
	return m;
}

static void carries(void)
{
	static const unsigned int want[] = { 62, 61, 62, 61 };
	double carry = 0;

	for (unsigned int i = 0; i < 4; i++)
		eq(reflect(61.5, &carry), want[i], "Q4: block %u", i);
}

/* ---- spin and delay ---- */

static void spins(void)
{
	static const unsigned int edges[] = { 0, 40, 81, 120 };
	static struct pl_efm e;
	struct pl_efm_result r;
	unsigned int spin = 0;

	memset(&e, 0, sizeof(e));
	for (unsigned int ms = 0, next = 0; ms < 125; ms++) {
		if (next < 4 && ms == edges[next]) {
			spin ^= SPIN;
			next++;
		}
		if (ms == 0)
			pl_efm_take(&e, &all, 0, 999 * MS, 0, false);
		pl_efm_take(&e, &all, 0, (1000 + ms) * MS, (uint8_t)spin, false);
	}
	pl_efm_finish(&e);
	pl_efm_result(&r, &e, &all, 0);
	eq(r.spins, PL_EFM_SPINS, "Q5: it spins");
	ok(r.rtt.n == 3 && r.rtt.least == 39 * MS && r.rtt.most == 41 * MS && r.rtt.sum == 120 * MS,
		"Q5: 40, 41, 39 ms");
}

static void delays(void)
{
	static const unsigned int samples[] = { 0, 30, 60, 220, 250 };
	static struct pl_efm e;
	struct pl_efm_result r;

	memset(&e, 0, sizeof(e));
	for (unsigned int i = 0; i < 5; i++) {
		pl_efm_take(&e, &all, 0, (1000 + samples[i]) * MS, D, false);
		if (i == 3) {
			eq(e.ways[0].delay_rtt.n, 2, "Q6: two before the loss");
			eq(e.ways[0].delay_rtt.sum, 60 * MS, "Q6: 30 ms each");
			eq(e.ways[0].far_apart, 1, "Q6: 160 ms is 144 ms and more");
		}
	}
	pl_efm_finish(&e);
	pl_efm_result(&r, &e, &all, 0);
	ok(r.by_delay && r.rtt.n == 3 && r.rtt.most == 30 * MS, "and it goes on");
	/* By 143 ms it would have been one. */
	memset(&e, 0, sizeof(e));
	pl_efm_take(&e, &all, 0, 1000 * MS, D, false);
	pl_efm_take(&e, &all, 0, 1030 * MS, D, false);
	pl_efm_take(&e, &all, 1, 1040 * MS, D, false);
	pl_efm_take(&e, &all, 0, 1173 * MS, D, false);
	eq(e.ways[0].delay_rtt.n, 2, "143 ms is below T_max - K");
	ok(e.ways[0].delay_half.n == 1 && e.ways[0].delay_half.sum == 10 * MS,
		"half a round trip by the other direction's sample");
	ok(e.ways[1].delay_half.n == 1 && e.ways[1].delay_half.sum == 133 * MS, "and the other");
}

/* RFC 9506, figure 8: spin and T of packets; 5 generated, 4 reflected. */
static void trains(void)
{
	static const char figure[] =
		"01 01 00 01 11 10 11 00 00 10 10 10 01 00 01 01 10 11 10 00 00 10";
	static struct pl_efm e;
	struct pl_efm_result r;
	uint64_t at = 1000 * MS;

	memset(&e, 0, sizeof(e));
	e.from_start = true;
	for (const char *p = figure; *p != '\0'; p += p[2] == '\0' ? 2 : 3)
		pl_efm_take(&e, &all, 0, at += 10 * MS,
			(uint8_t)((p[0] == '1' ? SPIN : 0) | (p[1] == '1' ? T : 0)), false);
	pl_efm_finish(&e);
	pl_efm_result(&r, &e, &all, 0);
	eq(r.trains, 2, "two trains");
	ok((r.has & PL_EFM_HAS_TRIP) != 0 && near(r.trip, 0.2, 1e-12), "one of five lost, %g",
		r.trip);
}

/* A spin bit that is off is recognised, and gives no round-trip time. */
static void no_spin(void)
{
	static const char *const names[] = { "constant", "random", "one packet of each value",
		"three" };
	struct pl_rng rng;

	pl_rng_seed(&rng, 7);
	for (unsigned int kind = 0; kind < 4; kind++) {
		static struct pl_efm e;
		struct pl_efm_result r;

		memset(&e, 0, sizeof(e));
		for (unsigned int i = 0; i < 400; i++) {
			const unsigned int spin = kind == 0   ? 1
						  : kind == 1 ? (unsigned int)pl_rng_below(&rng, 2)
						  : kind == 2 ? i & 1
							      : i / 3 & 1;

			pl_efm_take(&e, &all, 0, (1000 + 10 * i) * MS, spin ? SPIN : 0, false);
		}
		pl_efm_finish(&e);
		pl_efm_result(&r, &e, &all, 0);
		eq(r.spins,
			kind == 0   ? PL_EFM_CONSTANT
			: kind == 1 ? PL_EFM_RANDOM
				    : PL_EFM_SPINS,
			"%s", names[kind]);
		eq(r.rtt.n > 0, kind >= 2);
		eq((r.notes & PL_EFM_NOTE_NO_SPIN) != 0, kind < 2);
	}
}

static void breaks(void)
{
	static struct pl_efm e;

	memset(&e, 0, sizeof(e));
	for (unsigned int i = 0; i < 100; i++) {
		if (i == 45)
			pl_efm_break(&e, 0, (1000 + i) * MS);
		pl_efm_take(&e, &all, 0, (1000 + i) * MS,
			(uint8_t)((i >= 45 ? i - 45 : i) / 10 & 1 ? SPIN : 0), false);
	}
	pl_efm_finish(&e);
	eq(e.ways[0].spin_rtt.n, 3 + 4, "no interval over a change of the connection id");
	eq(e.ways[0].spin_rtt.least, 10 * MS);
	eq(e.ways[0].spin_rtt.most, 10 * MS);
}

/* ---- connections ---- */

/* A packet on its way, as both ends and the observer between see it. */
struct packet {
	uint64_t due_ns;
	uint32_t number;
	uint8_t byte, way, hop; /* hop 0: to the observer; 1: to the receiver */
};

struct end {
	uint32_t next, largest;
	bool any;
	unsigned int spin, delay;
	uint64_t unreported; /* losses to be told by L */
	uint64_t sent_in_block;
	unsigned int q;
	/* Packets that came of each block of Q; sum and number of blocks since the last block of R. */
	uint64_t came[512], sum;
	uint32_t block, n;
	double average, carry; /* 0: no block came yet, nothing is reflected */
	unsigned int r, r_left;
};

struct connection {
	struct pl_rng rng;
	struct packet queue[512]; /* not in order */
	unsigned int n;
	struct end ends[2];
	uint64_t hop_ns[2], jitter_ns; /* from end i to the observer, and back */
	unsigned int loss[2];          /* per thousand, in hop 0 and 1 */
	struct pl_efm e;
	/* Truth, known by packet numbers. */
	uint64_t arrived[2][512]; /* packets of block b that the observer saw */
	uint64_t edge_ns[2];
	bool has_edge[2];
	uint32_t seen[2];
	unsigned int seen_spin[2];
	double true_sum[2];
	uint64_t true_n[2], lost[2], sent[2];
};

static void put(struct connection *c, const struct packet *p)
{
	if (pl_rng_below(&c->rng, 1000) < c->loss[p->hop]) {
		c->ends[p->way].unreported++;
		c->lost[p->way]++;
		return;
	}
	if (c->n < sizeof(c->queue) / sizeof(c->queue[0]))
		c->queue[c->n++] = *p;
	else
		abort();
}

/* The bit R of the next packet: a block of R is as long as those of Q were that came since the one
 * before began. */
static unsigned int reflection(struct end *s)
{
	if (s->r_left == 0) {
		if (s->n > 0)
			s->average = (double)s->sum / s->n;
		s->sum = s->n = 0;
		if (s->average < 1)
			return 0;
		s->r ^= 1;
		s->r_left = reflect(s->average, &s->carry);
	}
	s->r_left--;
	return s->r;
}

/* Counts a packet of the other end; a block of Q is complete when the next one has come by a part. */
static void count_block(struct end *r, uint32_t number)
{
	r->came[number / 64]++;
	for (; number >= (r->block + 1) * 64 + 20; r->block++) {
		r->sum += r->came[r->block];
		r->n++;
	}
}

static void send_one(struct connection *c, unsigned int way, uint64_t now)
{
	struct end *s = &c->ends[way];
	struct packet p = { .number = s->next++, .way = (uint8_t)way };

	p.byte = (uint8_t)((s->spin ? SPIN : 0) | (s->q ? Q : 0) | (s->unreported > 0 ? L : 0) |
			   (reflection(s) ? R : 0));
	s->unreported -= s->unreported > 0;
	if (++s->sent_in_block == 64) {
		s->sent_in_block = 0;
		s->q ^= 1;
	}
	c->sent[way]++;
	p.due_ns = now + c->hop_ns[way] + pl_rng_below(&c->rng, c->jitter_ns + 1);
	put(c, &p);
}

/* By packet numbers, slowly: edges are of packets that are the largest so far. */
static void observe_by_number(struct connection *c, const struct packet *p)
{
	const unsigned int way = p->way, spin = (p->byte & SPIN) != 0;

	c->arrived[way][p->number / 64]++;
	if (c->seen[way] > p->number)
		return;
	if (c->seen[way] > 0 && spin != c->seen_spin[way]) {
		if (c->has_edge[way]) {
			c->true_sum[way] += (double)(p->due_ns - c->edge_ns[way]);
			c->true_n[way]++;
		}
		c->has_edge[way] = true;
		c->edge_ns[way] = p->due_ns;
	}
	c->seen[way] = p->number + 1;
	c->seen_spin[way] = spin;
}

static void arrive(struct connection *c, const struct packet *p)
{
	struct packet on = *p;

	if (p->hop == 0) {
		observe_by_number(c, p);
		pl_efm_take(&c->e, &all, p->way, p->due_ns, p->byte, false);
		on.hop = 1;
		on.due_ns += c->hop_ns[p->way ^ 1];
		put(c, &on);
		return;
	}
	struct end *r = &c->ends[p->way ^ 1];

	count_block(r, p->number);
	if (r->any && p->number < r->largest)
		return;
	r->any = true;
	r->largest = p->number;
	/* Way 0 is the client's: the server copies. */
	r->spin = p->way == 0 ? (p->byte & SPIN) != 0 : (p->byte & SPIN) == 0;
}

static void run(struct connection *c, uint64_t gap_ns, uint64_t last_ns)
{
	uint64_t send_ns[2] = { 1000 * MS, 1000 * MS + gap_ns / 2 };

	for (;;) {
		unsigned int least = c->n, way = send_ns[0] <= send_ns[1] ? 0 : 1;

		for (unsigned int i = 0; i < c->n; i++)
			if (least == c->n || c->queue[i].due_ns < c->queue[least].due_ns)
				least = i;
		if (least < c->n && c->queue[least].due_ns <= send_ns[way]) {
			const struct packet p = c->queue[least];

			c->queue[least] = c->queue[--c->n];
			arrive(c, &p);
			continue;
		}
		if (send_ns[way] > last_ns)
			break;
		send_one(c, way, send_ns[way]);
		send_ns[way] += gap_ns;
	}
	pl_efm_finish(&c->e);
}

static void check_blocks(const struct connection *c, unsigned int way, unsigned int i)
{
	const uint32_t last = c->seen[way] / 64;
	uint64_t sent = 0, packets = 0;
	struct pl_efm_loss l = pl_efm_loss_of(&c->e.ways[way].square.blocks, 64);

	/* The first is not counted, nor one whose end is not past by enough packets. */
	for (uint32_t b = 1; b < last; b++) {
		if (b + 1 == last && c->arrived[way][last] < 40)
			continue;
		sent += 64;
		packets += c->arrived[way][b];
	}
	if (c->arrived[way][last] < 40 && l.sent == sent + 64) {
		sent += 64;
		packets += c->arrived[way][last - 1];
	}
	eq(l.sent, sent, "connection %u, way %u: blocks", i, way);
	eq(l.packets, packets, "connection %u, way %u: packets that came", i, way);
}

static void connections(void)
{
	static const struct {
		unsigned int gap_us, jitter_us, loss0, loss1;
		double error; /* of the mean round-trip time, a part of it */
	} rows[] = {
		{ 1000, 0, 0, 0, 0.001 },
		{ 1000, 0, 20, 20, 0.02 },
		{ 1000, 3000, 0, 0, 0.02 },
		{ 1000, 8000, 0, 0, 0.05 },
		{ 500, 4000, 20, 10, 0.05 },
		{ 2000, 5000, 50, 50, 0.05 },
	};
	static struct connection c;

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double truth, got, half, back;

		memset(&c, 0, sizeof(c));
		pl_rng_seed(&c.rng, 100 + i);
		c.hop_ns[0] = 12 * MS;
		c.hop_ns[1] = 20 * MS;
		c.jitter_ns = rows[i].jitter_us * UINT64_C(1000);
		c.loss[0] = rows[i].loss0;
		c.loss[1] = rows[i].loss1;
		run(&c, rows[i].gap_us * UINT64_C(1000), 10000 * MS);
		for (unsigned int way = 0; way < 2; way++) {
			struct pl_efm_result r;

			pl_efm_result(&r, &c.e, &all, way);
			eq(r.spins, PL_EFM_SPINS, "connection %u, way %u spins", i, way);
			eq(r.is_client, way == 0, "the client is known by what it inverts");
			eq(r.is_server, way == 1);
			truth = c.true_sum[way] / (double)c.true_n[way];
			got = (double)r.rtt.sum / (double)r.rtt.n;
			ok(near(got / truth, 1, rows[i].error),
				"connection %u, way %u: %.3f ms, by packet numbers %.3f ms", i, way,
				got / 1e6, truth / 1e6);
			ok(r.rtt.n * 10 >= c.true_n[way] * 8, "%" PRIu64 " of %" PRIu64, r.rtt.n,
				c.true_n[way]);
			half = (double)r.half.sum / (double)r.half.n;
			ok(half > 2e0 * (double)c.hop_ns[way ^ 1] - 1e6 &&
					half < 2e0 * (double)c.hop_ns[way ^ 1] + 6e6 +
							(double)c.jitter_ns,
				"half a round trip beyond the observer: %.3f ms", half / 1e6);
			check_blocks(&c, way, i);
			ok(near(r.eloss, (double)c.lost[way] / (double)c.sent[way], 0.01),
				"from end to end %g", r.eloss);
			ok(near(r.uloss, rows[i].loss0 / 1e3, 0.012) &&
					near(r.dloss, rows[i].loss1 / 1e3, 0.02),
				"before it %g, behind it %g", r.uloss, r.dloss);
			back = (double)c.lost[way ^ 1] / (double)c.sent[way ^ 1];
			ok((r.has & PL_EFM_HAS_TQLOSS) != 0 &&
					near(r.tqloss, 1 - (1 - back) * (1 - rows[i].loss0 / 1e3),
						0.015),
				"of the other way and on to it %g, %g was lost there", r.tqloss,
				back);
		}
	}
}

int main(void)
{
	squares();
	events();
	reflections();
	carries();
	spins();
	delays();
	trains();
	no_spin();
	breaks();
	connections();
	return pl_test_done();
}
