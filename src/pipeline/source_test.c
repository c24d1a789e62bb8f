/* SPDX-License-Identifier: BSD-2-Clause */
/* Choice of a worker's processor. */
#include <errno.h>

#include "base/test.h"
#include "pipeline/state.h"

static cpu_set_t set_of(uint64_t bits)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned int i = 0; i < 64; i++) {
		if ((bits >> i & 1) != 0)
			CPU_SET(i, &set);
	}
	return set;
}

static uint64_t bits_of(const cpu_set_t *set)
{
	uint64_t bits = 0;

	for (unsigned int i = 0; i < 64; i++)
		bits |= (uint64_t)(CPU_ISSET(i, set) != 0) << i;
	return bits;
}

static void test_parse(void)
{
	static const struct {
		const char *text;
		int result;
		uint64_t bits;
	} rows[] = {
		{ "0", 0, 1 },
		{ "0-3\n", 0, 0xf },
		{ "0-1,8-9", 0, 0x303 },
		{ "63", 0, UINT64_C(1) << 63 },
		{ "\n", 0, 0 },
		{ "", 0, 0 },
		{ "x", -EINVAL, 0 },
		{ "3-", -EINVAL, 0 },
		{ "3-1", -EINVAL, 0 },
		{ "0-100000", -EINVAL, 0 },
		{ "1;2", -EINVAL, 0 },
		{ "99999999999999999999", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cpu_set_t set;
		int r = pl_source_parse_cpus(rows[i].text, &set);

		eq(-r, -rows[i].result, "cpus %zu", i);
		if (r == 0)
			eq(bits_of(&set), rows[i].bits, "cpus %zu: which", i);
	}
}

static void test_choose(void)
{
	static const struct {
		uint64_t allowed, near;
		unsigned int i;
		int cpu;
	} rows[] = {
		{ 0xf, 0, 0, 0 },     /* none is near: any */
		{ 0xf, 0, 5, 1 },     /* round and round */
		{ 0xf, 0xc, 0, 2 },   /* near ones first */
		{ 0xf, 0xc, 3, 3 },   /* only near ones */
		{ 0xf, 0xf0, 1, 1 },  /* near, but not allowed: any */
		{ 0xa0, 0xff, 1, 7 }, /* gaps */
		{ 0, 0xff, 0, -1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cpu_set_t allowed = set_of(rows[i].allowed), near = set_of(rows[i].near);
		int cpu =
			pl_source_choose_cpu(&allowed, rows[i].near != 0 ? &near : NULL, rows[i].i);

		ok(cpu == rows[i].cpu, "processor %zu: %d", i, cpu);
	}
}

static void test_rules(void)
{
	static const struct {
		const char *uri;
		enum pl_config_pin pin;
		bool pinned;
	} rows[] = {
		{ "udp://:1", PL_PIN_AUTO, false },
		{ "udp://:1", PL_PIN_TRUE, true },
		{ "packet:lo", PL_PIN_FALSE, false },
		{ "packet:lo", PL_PIN_TRUE, true },
		{ "afxdp:nosuch?queues=0", PL_PIN_TRUE, true },
		{ "pcap:x", PL_PIN_AUTO, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_worker w = { .uri = (char *)rows[i].uri, .of = 1, .id = 3 };

		ok((pl_source_cpu(&w, rows[i].pin) >= 0) == rows[i].pinned, "%s, pin %d",
			rows[i].uri, rows[i].pin);
	}
	ok(pl_source_cpu(&(struct pl_worker){ .uri = (char *)"packet:lo", .of = 100000 },
		   PL_PIN_AUTO) < 0,
		"not when no processor would be left over");
}

int main(void)
{
	test_parse();
	test_choose();
	test_rules();
	return pl_test_done();
}
