/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "ask/query_keys.h"
#include "ask/region_values.h"
#include "base/num.h"
#include "base/test.h"

/* In hexadecimal; NULL: refused. */
static const struct {
	const char *text, *form, *key;
} keys[] = {
	{ "host7", "text", "686f737437" },
	{ "00ff", "text", "30306666" },
	{ "00fF", "hex", "00ff" },
	{ "0x0a000001", "u32", "0100000a" },
	{ "0x0a000001", "be32", "0a000001" },
	{ "4294967295", "u32", "ffffffff" },
	{ "4294967296", "u64", "0000000001000000" },
	{ "18446744073709551615", "u64", "ffffffffffffffff" },
	{ "", "text", NULL },
	{ "", "hex", NULL },
	{ "0", "hex", NULL },
	{ "000", "hex", NULL },
	{ "0g", "hex", NULL },
	{ "0x", "hex", NULL },
	{ " 0", "hex", NULL },
	{ "", "u32", NULL },
	{ "4294967296", "u32", NULL },
	{ "4294967296", "be32", NULL },
	{ "18446744073709551616", "u64", NULL },
	{ "-1", "u64", NULL },
	{ "1 ", "u64", NULL },
	{ "host7", "u32", NULL },
};

static void test_keys(void)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		uint8_t *key = NULL;
		size_t n = 0;
		char text[64];
		int r = pl_key_parse(keys[i].text, keys[i].form, &key, &n);

		if (keys[i].key == NULL) {
			ok(r == -EINVAL, "'%s' is no key of form %s", keys[i].text, keys[i].form);
		} else {
			ok(r == 0 && n * 2 == strlen(keys[i].key) &&
					strcmp(pl_hex_text(text, key, n), keys[i].key) == 0,
				"'%s' of form %s", keys[i].text, keys[i].form);
			free(key);
		}
	}
}

static void test_nodes(void)
{
	static const char *const wrong[] = { "", ",", "1,", ",1", "1-", "-1", "2-1", "a", "1-b",
		"1--2", "1-2-3", "0-1000000", "1-500000,500001-1000001", "18446744073709551615",
		"4294967296", "1 - 2" };
	struct pl_value_set set;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok(pl_nodes_parse(wrong[i], &set) < 0, "'%s' names no nodes", wrong[i]);
	ok(pl_nodes_parse("1-100,205", &set) == 0, "a range and a node");
	pl_value_set_done(&set);
	ok(pl_nodes_parse("1-500000,500001-1000000", &set) == 0, "a million nodes");
	pl_value_set_done(&set);
}

/* present: the protocol was given. */
static const struct {
	const char *text, *src, *dst;
	unsigned int sport, dport;
	int proto; /* -1: not given */
} flows[] = {
	{ "10.0.0.1:5000,10.0.0.2:80/tcp", "10.0.0.1", "10.0.0.2", 5000, 80, 6 },
	{ "10.0.0.1:5000>10.0.0.2:80", "10.0.0.1", "10.0.0.2", 5000, 80, -1 },
	{ "10.0.0.1,10.0.0.2/icmp", "10.0.0.1", "10.0.0.2", 0, 0, 1 },
	{ "[fd00::1]:5000,[fd00::2]:80/udp", "fd00::1", "fd00::2", 5000, 80, 17 },
	{ "fd00::1,fd00::2/255", "fd00::1", "fd00::2", 0, 0, 255 },
};

static void test_flows(void)
{
	static const char *const wrong[] = { "", ",", "10.0.0.1", "10.0.0.1,", ",10.0.0.2",
		"10.0.0.1:5000,10.0.0.2", "10.0.0.1,10.0.0.2:80", ":5000,:80",
		"10.0.0.1:5000,10.0.0.2:80/", "10.0.0.1:5000,10.0.0.2:80/256",
		"10.0.0.1:5000,10.0.0.2:80/TCP", "10.0.0.1:65536,10.0.0.2:80",
		"10.0.0.1:5000,10.0.0.2:80,10.0.0.3:1", "10.0.0.256,10.0.0.2", "10.0.0.1,fd00::1",
		"[fd00::1]:5000,10.0.0.2:80" };
	char longest[200];
	struct pl_path flow;

	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++) {
		struct pl_addr src, dst;

		if (!ok(pl_query_flow(flows[i].text, &flow) == 0, "%s", flows[i].text))
			continue;
		(void)pl_parse_addr(flows[i].src, &src);
		(void)pl_parse_addr(flows[i].dst, &dst);
		memeq(&flow.src, &src, sizeof(src), "its source");
		memeq(&flow.dst, &dst, sizeof(dst), "its destination");
		eq(flow.sport, flows[i].sport);
		eq(flow.dport, flows[i].dport);
		eq((flow.present & PL_PATH_HAS_proto) != 0, flows[i].proto >= 0);
		if (flows[i].proto >= 0)
			eq(flow.proto, flows[i].proto);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok(pl_query_flow(wrong[i], &flow) == -EINVAL, "'%s' is no flow", wrong[i]);
	memset(longest, '1', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ok(pl_query_flow(longest, &flow) == -EINVAL, "a text without an end is no flow");
}

static void test_numbers(void)
{
	static const char *const wrong[] = { "", "/", "3/", "/3", "3//4", "3/1/0/7", "a", "3/a",
		"3/4294967295", "18446744073709551616", " 3",
		"3/00000000000000000000000000000000000000000000000000000000000000001" };
	uint64_t n[3];

	ok(pl_query_numbers("3/1/0", n, 3) == 0 && n[0] == 3 && n[1] == 1 && n[2] == 0,
		"node, port, queue");
	ok(pl_query_numbers("3", n, 3) == 0 && n[0] == 3 && n[1] == PL_HISTORY_ANY &&
			n[2] == PL_HISTORY_ANY,
		"a node: any port, any queue");
	ok(pl_query_numbers("18446744073709551614/2", n, 3) == 0 && n[0] == UINT64_MAX - 1 &&
			n[1] == 2,
		"a node of 64 bits");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok(pl_query_numbers(wrong[i], n, 3) == -EINVAL, "'%s' is no queue", wrong[i]);
}

int main(void)
{
	test_keys();
	test_nodes();
	test_flows();
	test_numbers();
	return pl_test_done();
}
