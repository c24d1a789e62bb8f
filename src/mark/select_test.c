/* SPDX-License-Identifier: BSD-2-Clause */
/* Selection by hash: what the hash is of, and samples of two points with losses and copies between. */
#include "base/rng.h"
#include "base/test.h"
#include "mark/select.h"

#define ROOM 16u

/* Written from the description again, with the words by name. */
static uint32_t again(const uint8_t *k, uint32_t n, uint32_t start)
{
	uint32_t a = 0x9e3779b9, b = 0x9e3779b9, c = start, at = 0;
	uint8_t last[12] = { 0 };

	for (;;) {
		const bool end = n - at < 12;
		const uint8_t *p = end ? last : k + at;

		if (end) {
			memcpy(last, k + at, n - at < 8 ? n - at : 8);
			if (n - at > 8)
				memcpy(last + 9, k + at + 8, n - at - 8);
			c += n;
		}
		a += (uint32_t)(p[0] | p[1] << 8 | p[2] << 16) | (uint32_t)p[3] << 24;
		b += (uint32_t)(p[4] | p[5] << 8 | p[6] << 16) | (uint32_t)p[7] << 24;
		c += (uint32_t)(p[8] | p[9] << 8 | p[10] << 16) | (uint32_t)p[11] << 24;
		a -= b, a -= c, a ^= c >> 13;
		b -= c, b -= a, b ^= a << 8;
		c -= a, c -= b, c ^= b >> 13;
		a -= b, a -= c, a ^= c >> 12;
		b -= c, b -= a, b ^= a << 16;
		c -= a, c -= b, c ^= b >> 5;
		a -= b, a -= c, a ^= c >> 3;
		b -= c, b -= a, b ^= a << 10;
		c -= a, c -= b, c ^= b >> 15;
		if (end)
			return c;
		at += 12;
	}
}

static void hashes(void)
{
	struct pl_rng rng;
	unsigned int wrong = 0, ones = 0;

	pl_rng_seed(&rng, 5475);
	for (uint32_t n = 0; n < 64; n++) {
		uint8_t bytes[64];

		for (uint32_t i = 0; i < n; i++)
			bytes[i] = (uint8_t)pl_rng_u64(&rng);
		wrong += pl_mark_bob(bytes, n, n * 7) != again(bytes, n, n * 7);
	}
	eq(wrong, 0, "BOB, of any length");
	for (uint32_t i = 0; i < 4096; i++)
		ones += (pl_mark_bob((const uint8_t *)&i, 4, 0) & 15) == 0;
	ok(ones > 150 && ones < 370, "low bits are evenly spread (%u of 4096)", ones);
}

static uint32_t hash_of(uint8_t at, uint8_t value)
{
	uint8_t ip[40] = { 0x45, 0, 0, 40, 1, 2, 0x40, 0, 64, 17, 9, 9, 10, 0, 0, 1, 10, 0, 0, 2 };
	struct pl_layers layers = { .network = ip, .ip_version = 4 };

	ip[at] = value;
	layers.transport = pl_cursor(ip + 20, 20);
	return pl_mark_select_hash(&layers, 0);
}

static void invariance(void)
{
	const uint32_t one = hash_of(0, 0x45);

	ok(hash_of(1, 0xff) == one && hash_of(8, 3) == one && hash_of(10, 3) == one &&
			hash_of(6, 0xc0) == one && hash_of(2, 9) == one,
		"type of service, TTL, checksum, reserved bit and length change nothing");
	ok(hash_of(5, 3) != one && hash_of(12, 3) != one && hash_of(19, 3) != one &&
			hash_of(20, 3) != one && hash_of(35, 3) != one,
		"identification, addresses and payload do");
}

/* Hash of a packet of Segment Routing on its way to one segment, of a flow to another one. */
static uint32_t routed_hash(uint8_t now, uint8_t last)
{
	const uint8_t ip[40] = { 0x60, [39] = now }, segment[16] = { [15] = last };
	struct pl_layers layers = {
		.network = ip, .ip_version = 6, .flags = PL_LAYERS_ROUTED, .last_segment = segment
	};

	layers.transport = pl_cursor(ip, 20);
	return pl_mark_select_hash(&layers, 0);
}

static void segments(void)
{
	ok(routed_hash(1, 9) == routed_hash(2, 9), "each segment has the same hash");
	ok(routed_hash(1, 9) != routed_hash(1, 8), "which is of the last one");
}

/* Hash of a packet with this byte of the transport protocol set. */
static uint32_t transport_hash(uint8_t proto, uint8_t flags, uint8_t at)
{
	uint8_t ip[40] = { 0x45, 0, 0, 40, 1, 2, 0x40, 0, 64, proto };
	struct pl_layers layers = {
		.network = ip, .ip_version = 4, .flow.proto = proto, .flags = flags
	};

	ip[20 + at] = 0xa5;
	layers.transport = pl_cursor(ip + 20, 20);
	return pl_mark_select_hash(&layers, 0);
}

static void checksums(void)
{
	static const struct {
		uint8_t proto, flags, from, to; /* bytes that change nothing */
		const char *what;
	} rows[] = {
		{ 17, 0, 6, 8, "UDP" },
		{ 132, 0, 8, 12, "SCTP" },
		{ 6, 0, 16, 20, "TCP, whose checksum is further behind" },
		{ 17, PL_LAYERS_FRAGMENT, 16, 20, "a fragment, which has no header" },
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint32_t same = transport_hash(rows[i].proto, rows[i].flags, rows[i].from);
		unsigned int wrong = 0;

		for (uint8_t at = 0; at < 20; at++)
			wrong += (transport_hash(rows[i].proto, rows[i].flags, at) == same) !=
				 ((at >= rows[i].from && at < rows[i].to) || at >= 16);
		eq(wrong, 0, "unfinished checksums of %s", rows[i].what);
	}
}

static void samples(void)
{
	struct pl_rng rng;
	unsigned int bad_room = 0, bad_delays = 0, few = 0;

	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct pl_mark_sample rooms[2][ROOM];
		struct pl_mark_samples s[2];
		int64_t delays[ROOM];
		uint32_t n;

		pl_rng_seed(&rng, seed);
		pl_mark_samples_init(&s[0], rooms[0], ROOM);
		pl_mark_samples_init(&s[1], rooms[1], ROOM);
		for (uint64_t i = 0; i < 1000; i++) {
			const uint32_t hash = (uint32_t)pl_rng_u64(&rng);

			pl_mark_samples_add(&s[0], hash, 1000 * i);
			/* One in ten is lost. */
			if (pl_rng_below(&rng, 10) != 0)
				pl_mark_samples_add(&s[1], hash, 1000 * i + 77);
		}
		bad_room += s[0].n > ROOM || s[0].n < ROOM / 4 || s[0].bits < 5 || s[0].bits > 8;
		n = pl_mark_samples_delays(delays, &s[0], &s[1]);
		few += n < 2;
		for (uint32_t i = 0; i < n; i++)
			bad_delays += delays[i] != 77;
	}
	eq(bad_room, 0,
		"H1: 1000 packets, room for 16: bits and samples are as many as they should");
	eq(bad_delays, 0, "packets that both have are paired");
	ok(few < 25, "of which there are some (%u of 500 without)", few);
}

/* H1 with distinct hashes that are evenly spread: of 1000 packets 16 have six bits of 0. The other point
 * has 1500, of which 12 have seven: then seven count at both. */
static void exactly(void)
{
	struct pl_mark_sample rooms[2][ROOM];
	struct pl_mark_samples s[2];
	int64_t delays[ROOM];
	uint32_t n, wrong = 0;

	pl_mark_samples_init(&s[0], rooms[0], ROOM);
	pl_mark_samples_init(&s[1], rooms[1], ROOM);
	for (uint32_t i = 0; i < 1500; i++) {
		const uint32_t hash = i * 7 % 1500; /* each once */

		if (hash < 1000)
			pl_mark_samples_add(&s[0], hash, hash);
		pl_mark_samples_add(&s[1], hash, hash + UINT64_C(5000));
	}
	ok(s[0].bits == 6 && s[0].n == 16, "H1: %u bits, %u samples", s[0].bits, s[0].n);
	ok(s[1].bits == 7 && s[1].n == 12, "a point that has more packets: %u bits, %u samples",
		s[1].bits, s[1].n);
	n = pl_mark_samples_delays(delays, &s[0], &s[1]);
	for (uint32_t i = 0; i < n; i++)
		wrong += delays[i] != 5000;
	ok(n == 8 && wrong == 0, "both agree by the larger number of bits: %u delays", n);
}

static void twice(void)
{
	struct pl_mark_sample rooms[2][ROOM];
	struct pl_mark_samples a, b;
	int64_t delays[ROOM];

	pl_mark_samples_init(&a, rooms[0], ROOM);
	pl_mark_samples_init(&b, rooms[1], ROOM);
	pl_mark_samples_add(&a, 8, 100);
	pl_mark_samples_add(&a, 24, 200);
	pl_mark_samples_add(&b, 24, 260);
	pl_mark_samples_add(&b, 8, 150);
	pl_mark_samples_add(&b, 8, 170);
	eq(pl_mark_samples_delays(delays, &a, &b), 1, "a hash that is there twice is left out");
	eq(delays[0], 60);
	pl_mark_samples_init(&a, rooms[0], 2);
	for (unsigned int i = 0; i < 100; i++)
		pl_mark_samples_add(&a, 0, i);
	ok(a.n <= 2 && a.bits <= 32, "packets that are all alike do no harm");
}

int main(void)
{
	hashes();
	invariance();
	segments();
	checksums();
	samples();
	exactly();
	twice();
	return pl_test_done();
}
