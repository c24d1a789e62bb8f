/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ICRC of RoCEv2 packets over IPv4 in memory: as the responder and the requester have it
 * (carry-less multiplication where the processor has it), by tables, and by zlib, which everybody
 * has. Against a loop that adds up the packets' words. Headers through the BTH, RETH and 16, 64 or
 * 1024 bytes of payload; 4096 packets one behind the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/complain.h"
#include "base/crc32.h"
#include "base/rng.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "wire/roce.h"

#define PACKETS 4096u
#define HEADERS (20u + 8 + 12 + 16)
#define BEFORE  14u /* an Ethernet header */

struct icrc_bench {
	uint8_t *memory;
	size_t bytes, stride;
	uint64_t sum; /* so that nothing is left out */
};

typedef uint64_t icrc_fn(const uint8_t *net, size_t n);

static int timed(
	struct icrc_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret, icrc_fn *each)
{
	const uint64_t start = pl_cpu_thread_ns();

	do {
		for (uint32_t i = 0; i < PACKETS; i++)
			b->sum += each(b->memory + BEFORE + i * b->stride, b->bytes);
		ret->items += PACKETS;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static uint64_t ours(const uint8_t *net, size_t n)
{
	return pl_roce_icrc_ip4(net, n);
}

/* As annex A17.3.3 says it: eight bytes of ones, the packet with ones where it may change. */
static uint64_t masked(const uint8_t *net, size_t n, uint32_t (*crc)(const uint8_t *p, size_t n))
{
	static const uint8_t places[] = { 1, 8, 10, 11, 26, 27, 32 };
	uint8_t p[8 + HEADERS + 1024];

	memset(p, 0xff, 8);
	memcpy(p + 8, net, n);
	for (size_t i = 0; i < sizeof(places); i++)
		p[8 + places[i]] = 0xff;
	return crc(p, n + 8);
}

static uint32_t by_zlib(const uint8_t *p, size_t n)
{
	return (uint32_t)crc32(0, p, (uInt)n);
}

static uint32_t by_tables(const uint8_t *p, size_t n)
{
	return pl_crc32_plain(0, p, n);
}

static uint64_t zlibs(const uint8_t *net, size_t n)
{
	return masked(net, n, by_zlib);
}

static uint64_t tables(const uint8_t *net, size_t n)
{
	return masked(net, n, by_tables);
}

static uint64_t words(const uint8_t *net, size_t n)
{
	uint64_t sum = 0, w;

	for (size_t i = 0; i + 8 <= n; i += 8) {
		memcpy(&w, net + i, 8);
		sum += w;
	}
	return sum;
}

#define RUN(name)                                                                                  \
	static int run_##name(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)          \
	{                                                                                          \
		return timed(arg, budget_ns, ret, name);                                           \
	}

RUN(ours)
RUN(zlibs)
RUN(tables)
RUN(words)

/* Three definitions of one thing. */
static bool agree(const struct icrc_bench *b)
{
	for (uint32_t i = 0; i < PACKETS; i++) {
		const uint8_t *net = b->memory + BEFORE + i * b->stride;

		if (ours(net, b->bytes) != zlibs(net, b->bytes) ||
			ours(net, b->bytes) != tables(net, b->bytes))
			return false;
	}
	return true;
}

static int run(struct pl_bench_ctx *ctx)
{
	static const struct {
		const char *name;
		pl_bench_fn *subject;
		uint32_t payload;
	} cases[] = { { "icrc/16-bytes", run_ours, 16 }, { "icrc/16-bytes-zlib", run_zlibs, 16 },
		{ "icrc/16-bytes-tables", run_tables, 16 }, { "icrc/64-bytes", run_ours, 64 },
		{ "icrc/64-bytes-zlib", run_zlibs, 64 }, { "icrc/1024-bytes", run_ours, 1024 },
		{ "icrc/1024-bytes-zlib", run_zlibs, 1024 } };
	struct icrc_bench b = { .stride = (BEFORE + HEADERS + 1024 + 63) & ~63u };
	struct pl_rng rng;
	int r = 0;

	pl_rng_seed(&rng, 1);
	b.memory = aligned_alloc(64, PACKETS * b.stride);
	if (b.memory == NULL) {
		pl_complain("benchmark icrc: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	for (size_t i = 0; i < PACKETS * b.stride; i++)
		b.memory[i] = (uint8_t)pl_rng_u64(&rng);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && r == 0; i++) {
		const struct pl_bench_case c = { .name = cases[i].name,
			.ceiling_name = "words added up",
			.subject = cases[i].subject,
			.ceiling = run_words,
			.arg = &b };

		b.bytes = HEADERS + cases[i].payload;
		r = agree(&b) ? pl_bench_compare(ctx, &c) : -EBADMSG;
	}
	if (r == -EBADMSG)
		pl_complain("benchmark icrc: the ways do not agree");
	free(b.memory);
	return r;
}

const struct pl_bench pl_bench_icrc = {
	.name = "icrc",
	.summary =
		"the ICRC of packets in memory, and zlib's way to it, against adding up their words",
	.run = run,
};
