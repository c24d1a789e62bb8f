/* SPDX-License-Identifier: BSD-2-Clause */
/* For the tests of flow/: packets of one pair of hosts, and a sink that keeps what it gets. */
#pragma once

#include "base/diag.h"
#include "base/test.h"
#include "flow/cache.h"

#define SECOND UINT64_C(1000000000)
#define EPOCH  UINT64_C(1700000000000000000)

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, ECE = 64, CWR = 128, SACK = SYN | ACK };

struct kept {
	struct pl_flow288 *records;
	uint32_t n, max, calls;
};

static void keep(void *arg, const struct pl_flow288 *records, uint32_t n)
{
	struct kept *k = arg;

	if (n == 0 || n > PL_FLOW_RECORDS)
		abort();
	if (k->n + n > k->max) {
		k->max = 2 * (k->n + n);
		k->records = realloc(k->records, k->max * sizeof(*k->records));
		if (k->records == NULL)
			abort();
	}
	memcpy(k->records + k->n, records, n * sizeof(*records));
	k->n += n;
	k->calls++;
}

__attribute__((unused)) static struct pl_flow_cache *new_cache(
	const struct pl_flow_config *config, struct kept *kept)
{
	struct pl_flow_cache *cache = NULL;
	struct pl_diag diag = { .text = "" };

	*kept = (struct kept){ 0 };
	if (pl_flow_cache_new(&cache, config, keep, kept, &diag) < 0) {
		printf("# %s\n", diag.text);
		abort();
	}
	return cache;
}

/* A packet with 40 bytes of headers, from 192.0.2.1:`port` to 192.0.2.2:443, or back. */
static struct pl_pkt96 packet(uint64_t ts_ns, unsigned int back, uint16_t port, uint8_t proto)
{
	const struct pl_addr a = pl_addr_v4((const uint8_t[4]){ 192, 0, 2, 1 });
	const struct pl_addr b = pl_addr_v4((const uint8_t[4]){ 192, 0, 2, 2 });

	return (struct pl_pkt96){ .ts_ns = ts_ns,
		.src = back ? b : a,
		.dst = back ? a : b,
		.sport = back ? 443 : port,
		.dport = back ? port : 443,
		.proto = proto,
		.wire_len = 40,
		.tcp_win = 1000 };
}
