/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequence accounting: situations written out, then a random stream against a plain ledger. */
#include "base/rng.h"
#include "base/test.h"
#include "decode/sequence.h"

struct situation {
	const char *what;
	unsigned int bits;
	uint64_t lost, reordered, duplicates, restarts, stragglers;
	unsigned int n;
	uint32_t seq[16];
};

static void situations(void)
{
	static const struct situation rows[] = {
		{ "in order", 32, 0, 0, 0, 0, 0, 5, { 1, 2, 3, 4, 5 } },
		{ "one lost", 32, 1, 0, 0, 0, 0, 4, { 1, 2, 4, 5 } },
		{ "ten lost", 32, 10, 0, 0, 0, 0, 3, { 1, 2, 13 } },
		{ "two swapped", 32, 0, 1, 0, 0, 0, 5, { 1, 2, 4, 3, 5 } },
		{ "one twice", 32, 0, 0, 1, 0, 0, 5, { 1, 2, 3, 3, 4 } },
		{ "late, then again", 32, 0, 1, 1, 0, 0, 6, { 1, 2, 4, 3, 3, 5 } },
		{ "wrap of 32 bits", 32, 0, 0, 0, 0, 0, 4, { 0xfffffffe, 0xffffffff, 0, 1 } },
		{ "wrap of 22 bits", 22, 0, 0, 0, 0, 0, 4, { 0x3ffffe, 0x3fffff, 0, 1 } },
		{ "loss across the wrap", 22, 2, 0, 0, 0, 0, 3, { 0x3ffffe, 0x3fffff, 2 } },
		{ "restart", 32, 0, 0, 0, 1, 0, 6, { 5000, 5001, 5002, 1, 2, 3 } },
		{ "restart with a jump ahead", 32, 0, 0, 0, 1, 0, 5,
			{ 1, 2, 9000000, 9000001, 9000002 } },
		{ "restart, then a loss", 32, 1, 0, 0, 1, 0, 6, { 5000, 5001, 1, 2, 4, 5 } },
		{ "one straggler is no restart", 32, 0, 0, 0, 0, 1, 6,
			{ 5000, 5001, 1, 5002, 5003, 5004 } },
		{ "two restarts", 32, 0, 0, 0, 2, 0, 6, { 5000, 5001, 1, 2, 7000000, 7000001 } },
		{ "before the first", 32, 0, 1, 0, 0, 0, 4, { 10, 9, 11, 12 } },
		{ "constant", 32, 0, 0, 0, 0, 0, 5, { 0, 0, 0, 0, 0 } },
		{ "constant, then it counts", 32, 1, 0, 0, 0, 0, 7, { 7, 7, 7, 7, 8, 9, 11 } },
		{ "twice at the start", 32, 0, 0, 1, 0, 0, 4, { 7, 7, 8, 9 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct situation *t = &rows[i];
		struct pl_sequence s = { 0 };

		for (unsigned int k = 0; k < t->n; k++)
			pl_sequence_update(&s, t->seq[k], t->bits, 65536);
		eq(s.reports, t->n, "%s: reports", t->what);
		eq(s.lost, t->lost, "%s: lost", t->what);
		eq(s.skipped - s.recovered, s.lost, "%s: the account of losses", t->what);
		eq(s.reordered, t->reordered, "%s: reordered", t->what);
		eq(s.duplicates, t->duplicates, "%s: duplicates", t->what);
		eq(s.restarts, t->restarts, "%s: restarts", t->what);
		eq(s.stragglers, t->stragglers, "%s: stragglers", t->what);
	}
}

/* Which numbers go together. */
static void proof(void)
{
	static const struct {
		const char *what;
		unsigned int n, at; /* proven by which number; 0: by none */
		uint32_t seq[6];
	} rows[] = {
		{ "one number", 1, 0, { 5 } },
		{ "the next one", 2, 2, { 5, 6 } },
		{ "one after a loss", 2, 2, { 5, 132 } },
		{ "the window's end", 3, 0, { 5, 133, 200000 } },
		{ "one before it", 2, 2, { 5, 4 } },
		{ "the same", 2, 2, { 0, 0 } },
		{ "far ahead, twice", 3, 3, { 5, 5000, 9000 } },
		{ "far ahead, once", 3, 0, { 5, 5000, 4000000000 } },
		{ "random ones", 5, 0, { 5, 3000000000, 1000000000, 700000, 2500000000 } },
		{ "an exporter behind a random number", 4, 3, { 3000000000, 7, 8, 9 } },
		{ "around the wrap", 2, 2, { 0xffffffff, 3 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_sequence s = { 0 };
		unsigned int at = 0;

		for (unsigned int k = 0; k < rows[i].n; k++) {
			pl_sequence_update(&s, rows[i].seq[k], 32, 65536);
			if (s.proven && at == 0)
				at = k + 1;
			ok(s.proven || !s.steady, "%s: what is not proven is looked at",
				rows[i].what);
		}
		eq(at, rows[i].at, "proof: %s", rows[i].what);
	}
}

/* Numbers sent once each, some dropped, some delayed by up to 40, some repeated soon: the account
 * must say exactly that. */
static void random_stream(void)
{
	enum { N = 200000 };
	const uint64_t seed = 7;
	static uint32_t stream[2 * N];
	static uint64_t when[2 * N];
	struct pl_sequence s = { 0 };
	struct pl_rng rng;
	uint64_t dropped = 0, repeated = 0;
	uint32_t n = 0, first = 0x3fff00;

	pl_rng_seed(&rng, seed);
	for (uint32_t i = 0; i < N; i++) {
		bool edge = i < 64 || i > N - 64; /* so that nothing is lost outside the ends */

		if (!edge && pl_rng_below(&rng, 50) == 0) {
			dropped++;
			continue;
		}
		when[n] = (uint64_t)i +
			  (!edge && pl_rng_below(&rng, 20) == 0 ? pl_rng_below(&rng, 40) : 0);
		stream[n++] = (first + i) & 0x3fffff;
		if (!edge && pl_rng_below(&rng, 100) == 0) {
			when[n] = when[n - 1] + pl_rng_below(&rng, 40);
			stream[n] = stream[n - 1];
			n++;
			repeated++;
		}
	}
	/* Insertion sort by time: nearly sorted already. */
	for (uint32_t i = 1; i < n; i++) {
		uint64_t w = when[i];
		uint32_t q = stream[i], k = i;

		for (; k > 0 && when[k - 1] > w; k--) {
			when[k] = when[k - 1];
			stream[k] = stream[k - 1];
		}
		when[k] = w;
		stream[k] = q;
	}
	for (uint32_t i = 0; i < n; i++)
		pl_sequence_update(&s, stream[i], 22, 65536);
	eq(s.lost, dropped, "lost (seed %" PRIu64 ")", seed);
	eq(s.duplicates, repeated, "duplicates");
	ok(s.reordered > 1000, "some came late");
	eq(s.restarts, 0);
	eq(s.stragglers, 0);
}

/* One number for more reports than 32 bits count: still no loss, no double, no restart. */
static void constant_for_long(void)
{
	struct pl_sequence s = { 0 };

	for (int i = 0; i < 5; i++)
		pl_sequence_update(&s, 7, 32, 65536);
	s.reports += UINT64_C(1) << 32;
	for (int i = 0; i < 5; i++)
		pl_sequence_update(&s, 7, 32, 65536);
	ok(s.constant && pl_sequence_calm(&s, 7, UINT32_MAX, 65536), "it does not count");
	eq(s.lost + s.duplicates + s.restarts + s.stragglers, 0, "and lost nothing");
	pl_sequence_update(&s, 8, 32, 65536);
	ok(!s.constant, "until it counts");
}

/* What is calm, counted the short way, leaves the same account; of a gap that is allowed all of it
 * is calm. */
static void short_way(unsigned int bits, uint32_t gap_max, uint64_t seed)
{
	const uint32_t mask = bits == 32 ? UINT32_MAX : (1u << bits) - 1;
	struct pl_sequence a = { 0 }, b = { 0 };
	uint32_t seq = mask - 1000, calm = 0, gaps = 0, differ = 0, shared = 0;
	struct pl_rng rng;

	pl_rng_seed(&rng, seed);
	for (unsigned int i = 0; i < 200000; i++) {
		const uint64_t kind = pl_rng_below(&rng, 100);

		if (kind < 60)
			seq++;
		else if (kind < 85)
			seq += (uint32_t)pl_rng_below(&rng, i % 512 == 0 ? 300 : 120);
		else if (kind < 92)
			seq -= (uint32_t)pl_rng_below(&rng, i % 512 == 0 ? 150 : 60);
		else if (kind < 94)
			seq += gap_max + (uint32_t)pl_rng_below(&rng, 3) - 1;
		else if (kind < 95)
			seq = (uint32_t)pl_rng_u64(&rng);
		seq &= mask;
		pl_sequence_update(&a, seq, bits, gap_max);
		if (pl_sequence_calm(&b, seq, mask, gap_max)) {
			gaps += ((seq - b.highest) & mask) > 1;
			pl_sequence_again(&b, seq, mask);
			calm++;
		} else {
			pl_sequence_update(&b, seq, bits, gap_max);
		}
		shared += a.shared;
		differ += memcmp(&a, &b, sizeof(a)) != 0;
	}
	eq(differ, 0, "%u bits, gaps up to %u, seed %" PRIu64, bits, gap_max, seed);
	/* Where no gap is allowed every one is a change of place. */
	ok(shared == 0 || gap_max == 0, "it passes for one sender");
	ok(calm > 40000 && (gap_max == 0 || gaps > 10000), "%u calm, %u behind a gap", calm, gaps);
}

/* Two or more senders that count each for itself, in bursts of all lengths. Whoever is first loses
 * nothing by it, and what is missing is not told. */
static void several_senders(void)
{
	static const struct {
		const char *what;
		unsigned int bits, senders, burst;
		uint32_t apart;
	} rows[] = {
		{ "two in turn, near", 32, 2, 1, 500 },
		{ "two in turn, far", 32, 2, 1, 4000000 },
		{ "two in turn, beyond the largest gap", 22, 2, 1, 0x1fffff },
		{ "two in bursts, near", 32, 2, 40, 20000 },
		{ "two in bursts, far", 32, 2, 300, 1000000000 },
		{ "two in short bursts", 22, 2, 2, 60000 },
		{ "three in turn", 32, 3, 1, 30000 },
		{ "four in bursts", 32, 4, 20, 50000 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint32_t mask = rows[i].bits == 32 ? UINT32_MAX : (1u << rows[i].bits) - 1;
		struct pl_sequence s = { 0 };
		uint32_t next[4], after = 0;
		struct pl_rng rng;

		pl_rng_seed(&rng, 11);
		for (uint32_t k = 0; k < rows[i].senders; k++)
			next[k] = k * rows[i].apart;
		for (uint32_t n = 0, k = 0; n < 20000; k = (k + 1) % rows[i].senders) {
			const uint64_t burst =
				rows[i].burst > 1 ? 1 + pl_rng_below(&rng, 2 * rows[i].burst) : 1;

			for (uint64_t b = 0; b < burst; b++, n++)
				pl_sequence_update(&s, next[k]++ & mask, rows[i].bits, 65536);
			after = after == 0 && s.shared ? n : after;
		}
		ok(s.shared && after < 40 * rows[i].burst + 100, "%s: noticed after %u reports",
			rows[i].what, after);
		eq(s.lost, 0, "%s: nothing is told to be missing", rows[i].what);
		eq(s.skipped - s.recovered, s.lost, "%s: the account of losses", rows[i].what);
		/* One of them ends. */
		for (uint32_t n = 0; n < 66000; n++)
			pl_sequence_update(&s, next[0]++ & mask, rows[i].bits, 65536);
		ok(!s.shared && s.steady, "%s: one of them alone is believed again", rows[i].what);
		next[0] += 3;
		pl_sequence_update(&s, next[0]++ & mask, rows[i].bits, 65536);
		eq(s.lost, 3, "%s: and its losses told", rows[i].what);
	}
}

/* One sender, however it behaves. */
static void one_sender(void)
{
	static const struct {
		const char *what;
		uint32_t restart_after, jump_every, jump, late_every, late_by;
	} rows[] = {
		{ "a loss of thousands, often", 0, 700, 5000, 0, 0 },
		{ "restarts, again and again", 900, 0, 0, 0, 0 },
		{ "restarts that lose their first reports", 900, 0, 0, 0, 0 },
		{ "stragglers", 0, 0, 0, 500, 200 },
		{ "restarts, of which few reports come", 900, 0, 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_sequence s = { 0 };
		uint32_t seq = 1000;

		for (uint32_t n = 1; n < 50000; n++) {
			if (rows[i].restart_after != 0 && n % rows[i].restart_after == 0)
				seq = i == 2 ? n / rows[i].restart_after % 3 : 0;
			if (rows[i].jump_every != 0 && n % rows[i].jump_every == 0)
				seq += rows[i].jump;
			if (rows[i].late_every != 0 && n % rows[i].late_every == 0)
				pl_sequence_update(&s, seq - rows[i].late_by, 32, 65536);
			/* Two in three are lost, of any three one. */
			if (i != 4 || n % 900 > 90 || n % 3 == 0)
				pl_sequence_update(&s, seq, 32, 65536);
			seq++;
		}
		ok(!s.shared, "%s: one sender", rows[i].what);
		if (i == 4)
			continue;
		eq(s.lost, rows[i].jump_every != 0 ? 49999 / 700 * 5000 : 0, "%s: its losses",
			rows[i].what);
	}
}

int main(void)
{
	several_senders();
	one_sender();
	short_way(32, 65536, 1);
	short_way(22, 65536, 2);
	short_way(22, UINT32_MAX, 3);
	short_way(32, 100, 4);
	short_way(32, 0, 5);

	situations();
	constant_for_long();
	proof();
	random_stream();
	return pl_test_done();
}
