/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/pack.h"

#include <string.h>

#include "base/num.h"
#include "base/test.h"

static struct pl_path path;
static struct pl_hop hop;
static struct pl_event event;

static void make_records(void)
{
	path = (struct pl_path){ .present = PL_PATH_HAS_src | PL_PATH_HAS_sport | PL_PATH_HAS_node,
		.sport = 5000,
		.dport = 80,
		.proto = 17,
		.node = 9,
		.flags = PL_FLAG_CONGESTED,
		.hop_count = 2 };
	(void)pl_parse_addr("10.0.0.1", &path.src);
	(void)pl_parse_addr("10.0.0.2", &path.dst);
	hop = (struct pl_hop){ .present = PL_HOP_HAS_node | PL_HOP_HAS_queue |
					  PL_HOP_HAS_hop_latency_ns | PL_HOP_HAS_link_latency_ns,
		.node = UINT64_C(0x1122334455667788),
		.queue = 3,
		.hop_latency_ns = 0x01020304,
		.link_latency_ns = -1,
		.index = 1 };
	event = (struct pl_event){
		.present = PL_EVENT_HAS_src, .event = PL_EVENT_PACKET_DROP, .proto = 47
	};
	(void)pl_parse_addr("fd00::1", &event.src);
	(void)pl_parse_addr("fd00::2", &event.dst);
}

/* A pack of up to three fields, the last of them NULL. */
static struct pl_pack pack(enum pl_record_kind kind, const char *a, const char *b, const char *c)
{
	const char *const names[] = { a, b, c };
	struct pl_diag diag = { .text = "" };
	struct pl_pack p;

	if (pl_pack_init(&p, kind, names,
		    a == NULL   ? 0
		    : b == NULL ? 1
		    : c == NULL ? 2
				: 3,
		    &diag) < 0)
		abort();
	return p;
}

static struct pl_pack_record record(enum pl_record_kind kind)
{
	return (struct pl_pack_record){ kind == PL_KIND_PATH  ? (const void *)&path
					: kind == PL_KIND_HOP ? (const void *)&hop
							      : (const void *)&event,
		&path };
}

static void test_text(void)
{
	static const struct {
		enum pl_record_kind kind;
		const char *fields[3];
		const char *want; /* NULL: a value is missing */
	} cases[] = {
		{ PL_KIND_PATH, { "flow" }, "10.0.0.1:5000,10.0.0.2:80/udp" },
		{ PL_KIND_PATH, { "node" }, "9" },
		{ PL_KIND_PATH, { "flow.src", "flow.dport" }, "10.0.0.1/80" },
		{ PL_KIND_HOP, { "node", "queue" }, "1234605616436508552/3" },
		{ PL_KIND_HOP, { "flow", "index" }, "10.0.0.1:5000,10.0.0.2:80/udp/1" },
		{ PL_KIND_HOP, { "hop_count" }, "2" },
		{ PL_KIND_HOP, { "queue", "egress_port" }, NULL },
		{ PL_KIND_PATH, { "latency_ns" }, NULL },
		/* without ports, and with a protocol that has no name here */
		{ PL_KIND_EVENT, { "flow" }, "fd00::1,fd00::2/47" },
		{ PL_KIND_EVENT, { "event", "phase" }, "packet_drop/once" },
		{ PL_KIND_EVENT, { "node" }, NULL },
	};
	char text[PL_PACK_BYTES_MAX + 1];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_pack p = pack(
			cases[i].kind, cases[i].fields[0], cases[i].fields[1], cases[i].fields[2]);
		struct pl_pack_record r = record(cases[i].kind);
		size_t n = pl_pack_text(&p, &r, text);

		text[n] = '\0';
		ok(cases[i].want == NULL ? n == 0 : strcmp(text, cases[i].want) == 0,
			"text %zu: %s", i, n == 0 ? "missing" : text);
		ok(n <= pl_pack_text_max(&p), "no longer than said");
	}
	path.proto = 6;
	path.src = event.src;
	{
		struct pl_pack p = pack(PL_KIND_PATH, "flow", NULL, NULL);
		struct pl_pack_record r = record(PL_KIND_PATH);

		text[pl_pack_text(&p, &r, text)] = '\0';
		ok(strcmp(text, "[fd00::1]:5000,10.0.0.2:80/tcp") == 0, "IPv6 with ports: %s",
			text);
	}
	make_records();
}

static void test_packed(void)
{
	static const uint8_t big[] = { 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 3, 1, 2,
		3, 4 };
	static const uint8_t little[] = { 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 3, 0, 4,
		3, 2, 1 };
	static const uint8_t flow[37] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2, 0x13, 0x88, 0, 80, 17 };
	struct pl_pack p = pack(PL_KIND_HOP, "node", "queue", "hop_latency_ns");
	struct pl_pack_record r = record(PL_KIND_HOP);
	uint8_t bytes[PL_PACK_BYTES_MAX];

	ok(pl_pack_bytes(&p) == sizeof(big), "8, 2 and 4 bytes");
	ok(pl_pack_put(&p, &r, true, bytes) && memcmp(bytes, big, sizeof(big)) == 0, "big-endian");
	ok(pl_pack_put(&p, &r, false, bytes) && memcmp(bytes, little, sizeof(little)) == 0,
		"little-endian");
	p = pack(PL_KIND_HOP, "flow", NULL, NULL);
	ok(pl_pack_bytes(&p) == sizeof(flow), "a flow is 37 bytes");
	ok(pl_pack_put(&p, &r, true, bytes) && memcmp(bytes, flow, sizeof(flow)) == 0, "a flow");
	p = pack(PL_KIND_HOP, "node", "tx_util", NULL);
	ok(!pl_pack_put(&p, &r, true, bytes), "a value is missing");
	p = pack(PL_KIND_EVENT, "flow", NULL, NULL);
	r = record(PL_KIND_EVENT);
	ok(!pl_pack_put(&p, &r, true, bytes), "packed, a flow has ports");
}

static void test_number(void)
{
	struct pl_pack p = pack(PL_KIND_HOP, "hop_latency_ns", NULL, NULL);
	struct pl_pack_record r = record(PL_KIND_HOP);
	uint64_t v = 0;

	ok(pl_pack_number(&p, &r, &v) && v == 0x01020304, "a number");
	ok(pl_pack_is_number(&p, 32) && !pl_pack_is_number(&p, 16), "of 32 bits");
	p = pack(PL_KIND_HOP, "link_latency_ns", NULL, NULL);
	ok(!pl_pack_number(&p, &r, &v), "below zero");
	p = pack(PL_KIND_HOP, "tx_util", NULL, NULL);
	ok(!pl_pack_number(&p, &r, &v), "missing");
	p = pack(PL_KIND_HOP, "flow", NULL, NULL);
	ok(!pl_pack_is_number(&p, 64), "a flow is no number");
	p = pack(PL_KIND_PATH, "flow.src", NULL, NULL);
	ok(!pl_pack_is_number(&p, 64), "nor is an address");
	p = pack(PL_KIND_PATH, "flags", NULL, NULL);
	ok(pl_pack_has_flags(&p), "flags are seen");
}

static void test_wrong(void)
{
	static const char *const many[PL_PACK_FIELDS_MAX + 1] = { "node" };
	const char *const strange[] = { "" };
	const char *const of_hop[] = { "hop_latency_ns" };
	struct pl_diag diag = { .text = "" };
	struct pl_pack p;

	ok(pl_pack_init(&p, PL_KIND_PATH, strange, 1, &diag) < 0, "no name: %s", diag.text);
	ok(pl_pack_init(&p, PL_KIND_PATH, of_hop, 1, &diag) < 0, "of another kind: %s", diag.text);
	ok(pl_pack_init(&p, PL_KIND_PATH, many, PL_PACK_FIELDS_MAX + 1, &diag) < 0, "too many: %s",
		diag.text);
}

int main(void)
{
	make_records();
	test_text();
	test_packed();
	test_number();
	test_wrong();
	return pl_test_done();
}
