/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports made of records, and configurations that are refused. */
#include "export/dta_map.h"

#include <errno.h>

#include "base/test.h"

static const char *const node[] = { "node" }, *const queue[] = { "node", "queue" },
			 *const depth[] = { "queue_depth", "queue" }, *const util[] = { "tx_util" },
			 *const flow[] = { "flow" }, *const flags[] = { "flags" },
			 *const strange[] = { "color" },
			 *const long_key[] = { "flow", "flow", "flow" };

static const struct pl_path path = { .present = PL_PATH_HAS_src | PL_PATH_HAS_sport,
	.src = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1 } },
	.dst = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2 } },
	.sport = 5000,
	.dport = 80,
	.proto = 6,
	.hop_count = 3 };
static const struct pl_hop hop = { .present = PL_HOP_HAS_node | PL_HOP_HAS_queue |
					      PL_HOP_HAS_queue_depth,
	.node = 0x01020304,
	.queue = 7,
	.queue_depth = 55,
	.index = 1 };
static const struct pl_pack_record record = { &hop, &path };

static struct pl_dta_map map;
static struct pl_dta_report report;

static enum pl_dta_map_answer make(const struct pl_dta_map_options *o)
{
	struct pl_diag diag = { .text = "" };

	if (!ok(pl_dta_map_init(&map, o, &diag) == 0, "can be: %s", diag.text))
		return PL_DTA_MAP_MISSING;
	return pl_dta_map_report(&map, &record, &report);
}

static void test_key_write(void)
{
	struct pl_dta_map_options o = {
		.op = PL_DTA_KEY_WRITE, .record = PL_KIND_HOP, .key = queue, .n_key = 2
	};

	ok(make(&o) == PL_DTA_MAP_MADE && report.op == PL_DTA_KEY_WRITE, "key-write");
	ok(report.key_bytes == 10 && memcmp(report.key, "16909060/7", 10) == 0, "key in text");
	ok(report.data_bytes == 128 && memcmp(report.data, &hop, 128) == 0, "the whole record");
	o.value = depth;
	o.n_value = 2;
	o.big_endian = true;
	ok(make(&o) == PL_DTA_MAP_MADE && report.data_bytes == 6, "chosen fields");
	ok(memcmp(report.data, "\0\0\0\x37\0\x07", 6) == 0, "in big-endian order");
	o.key_form = PL_KEY_HEX;
	ok(make(&o) == PL_DTA_MAP_MADE && report.key_bytes == 10, "key of 8 and 2 bytes");
	ok(memcmp(report.key, "\0\0\0\0\x01\x02\x03\x04\0\x07", 10) == 0, "packed");
	o.value = util;
	o.n_value = 1;
	ok(make(&o) == PL_DTA_MAP_MISSING, "a value that the hop does not have");
}

static void test_key_forms(void)
{
	static const struct {
		enum pl_key_form form;
		uint8_t n;
		const char *bytes;
	} cases[] = {
		{ PL_KEY_U32, 4, "\x04\x03\x02\x01" },
		{ PL_KEY_BE32, 4, "\x01\x02\x03\x04" },
		{ PL_KEY_U64, 8, "\x04\x03\x02\x01\0\0\0\0" },
	};
	struct pl_dta_map_options o = {
		.op = PL_DTA_INCREMENT, .record = PL_KIND_HOP, .key = node, .n_key = 1
	};
	struct pl_hop large = hop;
	struct pl_pack_record r = { &large, &path };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		o.key_form = cases[i].form;
		ok(make(&o) == PL_DTA_MAP_MADE && report.key_bytes == cases[i].n, "form %zu", i);
		ok(memcmp(report.key, cases[i].bytes, cases[i].n) == 0, "its bytes");
	}
	large.node = UINT64_C(1) << 32;
	ok(pl_dta_map_report(&map, &r, &report) == PL_DTA_MAP_MADE, "64 bits have room");
	o.key_form = PL_KEY_U32;
	(void)make(&o);
	ok(pl_dta_map_report(&map, &r, &report) == PL_DTA_MAP_RANGE, "32 bits have not");
}

static void test_increment(void)
{
	struct pl_dta_map_options o = {
		.op = PL_DTA_INCREMENT, .record = PL_KIND_HOP, .key = flow, .n_key = 1
	};

	ok(make(&o) == PL_DTA_MAP_MADE && report.increment == 1, "one for each record");
	ok(report.key_bytes == 29 && memcmp(report.key, "10.0.0.1:5000,10.0.0.2:80/tcp", 29) == 0,
		"key of the hop's path");
	o.value = depth;
	o.n_value = 1;
	ok(make(&o) == PL_DTA_MAP_MADE && report.increment == 55, "or a field");
}

static void test_append(void)
{
	const struct pl_dta_map_options o = {
		.op = PL_DTA_APPEND, .record = PL_KIND_HOP, .list = 5, .store = 2
	};

	ok(make(&o) == PL_DTA_MAP_MADE && report.list == 5 && report.store == 2, "list and store");
	ok(report.key_bytes == 0 && report.data_bytes == 128, "an entry");
}

static void test_postcard(void)
{
	const struct pl_dta_map_options o = {
		.op = PL_DTA_POSTCARD, .record = PL_KIND_HOP, .key = flow, .n_key = 1
	};
	struct pl_hop other = hop;
	struct pl_pack_record r = { &other, &path };

	ok(make(&o) == PL_DTA_MAP_MADE && report.hop == 2 && report.path_length == 3 &&
			report.value == 0x01020304,
		"the second of three, with its node");
	other.node = UINT32_MAX;
	ok(pl_dta_map_report(&map, &r, &report) == PL_DTA_MAP_RANGE, "the blank is no node");
	other.node = 1;
	other.index = 3;
	ok(pl_dta_map_report(&map, &r, &report) == PL_DTA_MAP_RANGE, "behind the path's end");
}

static void test_wrong(void)
{
	const struct pl_dta_map_options cases[] = {
		{ PL_DTA_KEY_WRITE, PL_KIND_HOP, .n_key = 0 },
		{ PL_DTA_KEY_WRITE, PL_KIND_HOP, strange, 1 },
		{ PL_DTA_KEY_WRITE, PL_KIND_HOP, node, 1, .value = strange, .n_value = 1 },
		{ PL_DTA_KEY_WRITE, PL_KIND_HOP, queue, 2, PL_KEY_U32 },
		{ PL_DTA_KEY_WRITE, PL_KIND_PATH, flags, 1 },
		{ PL_DTA_KEY_WRITE, PL_KIND_PATH, long_key, 3 },
		{ PL_DTA_APPEND, PL_KIND_HOP, node, 1 },
		{ PL_DTA_INCREMENT, PL_KIND_HOP, node, 1, .value = queue, .n_value = 2 },
		{ PL_DTA_POSTCARD, PL_KIND_PATH, node, 1 },
		{ PL_DTA_POSTCARD, PL_KIND_HOP, node, 1, .value = queue, .n_value = 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_diag diag = { .text = "" };

		ok(pl_dta_map_init(&map, &cases[i], &diag) == -EINVAL && diag.text[0] != '\0',
			"refused: %s", diag.text);
	}
}

int main(void)
{
	test_key_write();
	test_key_forms();
	test_increment();
	test_append();
	test_postcard();
	test_wrong();
	return pl_test_done();
}
