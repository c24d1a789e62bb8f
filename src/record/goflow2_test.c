/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows as messages of goflow2, read by the numbers of their fields; protoc reads them in
 * tests/interop/streams. */
#include "base/rng.h"
#include "base/test.h"
#include "record/goflow2.h"

#define NUMBERS 128

struct message {
	uint64_t numbers[NUMBERS];
	uint8_t src[16], dst[16], sampler[16];
	size_t src_len, dst_len, sampler_len;
};

static struct pl_goflow2_source all = { .exporter = UINT32_MAX, .has_sampler = true };
static const struct pl_goflow2_source none, seven = { .exporter = 7 };

static uint64_t take(const uint8_t **p, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *p < end && shift < 64; shift += 7) {
		value |= (uint64_t)(**p & 127) << shift;
		if (*(*p)++ < 128)
			break;
	}
	return value;
}

/* False: it is no message, or a field comes twice or out of order. */
static bool read_message(struct message *ret, const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;
	uint64_t tag, last = 0, n;

	*ret = (struct message){ .src_len = 0 };
	if (take(&p, end) != (uint64_t)(end - p))
		return false;
	while (p < end) {
		tag = take(&p, end);
		n = take(&p, end);
		if (tag >> 3 <= last || tag >> 3 >= NUMBERS || n == 0)
			return false;
		last = tag >> 3;
		if ((tag & 7) == 0) {
			ret->numbers[last] = n;
			continue;
		}
		if ((tag & 7) != 2 || n > 16 || n > (size_t)(end - p) ||
			(last != 6 && last != 7 && last != 11))
			return false;
		memcpy(last == 6 ? ret->src : last == 7 ? ret->dst : ret->sampler, p, n);
		*(last == 6 ? &ret->src_len : last == 7 ? &ret->dst_len : &ret->sampler_len) = n;
		p += n;
	}
	return true;
}

static struct pl_flow288 flow(uint8_t proto)
{
	struct pl_flow288 f = { .first_ts = 1700000000000000001,
		.last_ts = 1700000009000000002,
		.sport = 8,
		.dport = 443,
		.proto = proto,
		.flags_fwd = 0x1b,
		.flags_rev = 0x12,
		.bytes_fwd = UINT64_MAX,
		.bytes_rev = 300,
		.pkts_fwd = UINT32_MAX,
		.pkts_rev = 3,
		.obs = 5 | PL_OBS_OUT,
		.obs_rev = 1023,
		.vlan = 4095,
		.flow_seq = UINT32_MAX };

	f.src = pl_addr_v4((const uint8_t[]){ 192, 0, 2, 1 });
	f.dst = pl_addr_v4((const uint8_t[]){ 192, 0, 2, 2 });
	return f;
}

static void test_both_ways(void)
{
	const struct pl_flow288 f = flow(6);
	struct message fwd, rev;
	uint8_t bytes[PL_GOFLOW2_MAX];
	size_t len = pl_goflow2_put(bytes, PL_FLAT_FLOW288, &f, false, &all);

	ok(read_message(&fwd, bytes, len), "a message forward, of %zu bytes", len);
	len = pl_goflow2_put(bytes, PL_FLAT_FLOW288, &f, true, &none);
	ok(read_message(&rev, bytes, len), "one in reverse");
	ok(fwd.src_len == 4 && memcmp(fwd.src, f.src.b + 12, 4) == 0 && fwd.dst_len == 4 &&
			memcmp(fwd.dst, f.dst.b + 12, 4) == 0,
		"IPv4 addresses have four bytes");
	ok(memcmp(rev.src, fwd.dst, 4) == 0 && memcmp(rev.dst, fwd.src, 4) == 0,
		"and change places");
	eq(fwd.numbers[9], UINT64_MAX);
	eq(rev.numbers[9], 300);
	eq(fwd.numbers[10], UINT32_MAX);
	eq(rev.numbers[10], 3);
	eq(fwd.numbers[21], 8);
	eq(fwd.numbers[22], 443);
	eq(rev.numbers[21], 443);
	eq(rev.numbers[22], 8);
	eq(fwd.numbers[26], 0x1b);
	eq(rev.numbers[26], 0x12);
	eq(fwd.numbers[71], 5, "the observation point, without flags");
	eq(rev.numbers[71], 1023, "of the way back");
	ok(fwd.sampler_len == 4 && memcmp(fwd.sampler, (const uint8_t[]){ 203, 0, 113, 9 }, 4) == 0,
		"the sampler's address");
	eq(rev.sampler_len, 0, "which may be absent");
	eq(fwd.numbers[70], UINT32_MAX, "the exporter");
	eq(rev.numbers[70], 0);
	eq(fwd.numbers[30], 0x0800);
	eq(fwd.numbers[3], 1);
	eq(fwd.numbers[4], UINT32_MAX);
	eq(fwd.numbers[29], 4095);
	eq(fwd.numbers[111], f.first_ts);
	eq(fwd.numbers[112], f.last_ts);
	eq(fwd.numbers[110], f.last_ts);
}

static void test_others(void)
{
	struct pl_flow288 f = flow(1);
	struct message m;
	uint8_t bytes[PL_GOFLOW2_MAX];

	f.dport = 3;
	ok(read_message(&m, bytes, pl_goflow2_put(bytes, PL_FLAT_FLOW128, &f, false, &seven)),
		"ICMP");
	eq(m.numbers[31], 8, "its type");
	eq(m.numbers[32], 3, "its code");
	eq(m.numbers[21], 0, "and no ports");
	ok(read_message(&m, bytes, pl_goflow2_put(bytes, PL_FLAT_FLOW128, &f, true, &seven)),
		"back");
	eq(m.numbers[31], 0, "whose type the record does not have");
	eq(m.numbers[71], 5, "flow128 has one observation point");
	f = flow(6);
	pl_goflow2_keep(&f, true);
	eq(pl_goflow2_put(bytes, PL_FLAT_FLOW288, &f, false, &seven), 0, "one way is left out");
	ok(pl_goflow2_put(bytes, PL_FLAT_FLOW288, &f, true, &seven) > 0, "the other one is kept");
	f.pkts_rev = 0;
	eq(pl_goflow2_put(bytes, PL_FLAT_FLOW288, &f, true, &seven), 0,
		"no packet back, no message");
	f.pkts_fwd = 0;
	eq(pl_goflow2_put(bytes, PL_FLAT_FLOW288, &f, false, &seven), 0, "nor forward");
}

/* Whatever the values are, a message is whole and below its bound. */
static void test_any(void)
{
	struct pl_rng rng;
	unsigned int wrong = 0;

	pl_rng_seed(&rng, 20261129);
	memset(&all.sampler, 255, sizeof(all.sampler));
	for (int i = 0; i < 2000; i++) {
		struct pl_flow288 f;
		uint8_t bytes[PL_GOFLOW2_MAX];
		struct message m;
		size_t len;

		for (size_t at = 0; at < sizeof(f); at += 8) {
			const uint64_t word = i == 0 ? UINT64_MAX : pl_rng_u64(&rng);

			memcpy((uint8_t *)&f + at, &word, 8);
		}
		len = pl_goflow2_put(bytes, PL_FLAT_FLOW288, &f, i % 2 == 1, &all);
		wrong += len > PL_GOFLOW2_MAX || !read_message(&m, bytes, len) || m.src_len != 16 ||
			 m.numbers[30] != 0x86dd;
	}
	eq(wrong, 0, "any bytes of a record make a message");
}

int main(void)
{
	all.sampler = pl_addr_v4((const uint8_t[]){ 203, 0, 113, 9 });
	test_both_ways();
	test_others();
	test_any();
	return pl_test_done();
}
