/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields at their offsets; genuine messages are in tests/rdma/captures_test.c. */
#include "wire/cm.h"

#include "base/test.h"

static uint8_t mad[PL_CM_BYTES];

static void put(const struct pl_cm *cm, const void *private, size_t len)
{
	struct pl_build b = pl_build(mad, sizeof(mad));

	pl_cm_put(&b, cm, private, len);
	ok(!b.full && b.len == PL_CM_BYTES, "%s: 256 bytes", pl_cm_kind_name(cm->kind));
}

/* Offsets count from behind the management header, as the architecture's tables do. */
static void at(size_t offset, const char *hex)
{
	uint8_t want[64];
	const size_t n = pl_test_hex(want, sizeof(want), hex);

	memeq(mad + 24 + offset, want, n, "offset %zu", offset);
}

static void test_req(void)
{
	const struct pl_cm_ip ip = { .src_port = 0xd079,
		.src = pl_addr_v4("\12\0\0\145"),
		.dst = pl_addr_v4("\12\0\0\63") };
	struct pl_cm cm = { .kind = PL_CM_REQ,
		.transaction = 0x1122334455667788,
		.local_id = 0x11aa,
		.service_id = PL_CM_SERVICE_TCP(1337),
		.ca_guid = 0x99,
		.qpn = 0x123456,
		.resources = 5,
		.depth = 3,
		.remote_timeout = 0x16,
		.transport = 1,
		.psn = 0xe6fb20,
		.local_timeout = 0x15,
		.retries = 3,
		.pkey = 0xffff,
		.mtu = 3,
		.rnr_retries = 6,
		.cm_retries = 15,
		.local_lid = 0xffff,
		.remote_lid = 0xffff,
		.src = pl_addr_v4("\12\0\0\145"),
		.dst = pl_addr_v4("\12\0\0\63"),
		.flow_label = 0xabcde,
		.rate = 0x14,
		.tclass = 7,
		.hop_limit = 64,
		.ack_timeout = 0x13 };
	uint8_t private[92];
	struct pl_build b = pl_build(private, sizeof(private));
	struct pl_cm_ip got;
	struct pl_cm out;

	pl_cm_put_ip(&b, &ip);
	eq(b.len, PL_CM_IP_BYTES);
	pl_put(&b, "hello", 5);
	put(&cm, private, b.len);
	memeq(mad, "\1\7\2\3\0\0\0\0\x11\x22\x33\x44\x55\x66\x77\x88\0\x10\0\0\0\0\0\0", 24,
		"MAD header");
	at(0, "000011aa 00000000 0000000001060539 0000000000000099");
	at(32, "123456 05 000000 03 000000 b2 e6fb20 ab ffff 36 f0 ffff ffff");
	at(56, "00000000000000000000ffff0a000065 00000000000000000000ffff0a000033");
	at(88, "abcde014 07 40 00 98");
	at(140, "00 40 d079 000000000000000000000000 0a000065 000000000000000000000000 0a000033");
	at(176, "68656c6c6f00");
	eq(pl_cm_parse(&out, pl_cursor(mad, sizeof(mad))), 0);
	ok(out.kind == PL_CM_REQ && out.local_id == 0x11aa && out.qpn == cm.qpn &&
			out.psn == cm.psn && out.service_id == cm.service_id &&
			out.resources == 5 && out.depth == 3 && out.transport == 1 &&
			out.remote_timeout == 0x16 && out.local_timeout == 0x15 &&
			out.retries == 3 && out.mtu == 3 && out.rnr_retries == 6 &&
			out.cm_retries == 15 && out.flow_label == 0xabcde && out.rate == 0x14 &&
			out.ack_timeout == 0x13 && out.hop_limit == 64 && out.tclass == 7 &&
			pl_addr_equal(&out.dst, &cm.dst),
		"and back");
	ok(pl_cm_get_ip(&got, &out.private) && got.src_port == 0xd079 &&
			pl_addr_equal(&got.src, &ip.src) && pl_addr_equal(&got.dst, &ip.dst) &&
			memcmp(out.private.pos, "hello", 5) == 0,
		"addresses");
}

static void test_others(void)
{
	struct pl_cm cm = { .kind = PL_CM_REP,
		.local_id = 1,
		.remote_id = 2,
		.qpn = 0xabcdef,
		.psn = 0x123456,
		.resources = 4,
		.depth = 2,
		.ack_delay = 15,
		.failover = 1,
		.flow_control = true,
		.rnr_retries = 7,
		.srq = true,
		.ca_guid = 0x55 };
	struct pl_cm out;
	struct pl_build b;

	put(&cm, "x", 1);
	at(0, "00000001 00000002 00000000 abcdef 00 00000000 123456 00 04 02 7b f0");
	at(28, "0000000000000055 78");
	pl_cm_parse(&out, pl_cursor(mad, sizeof(mad)));
	ok(out.qpn == cm.qpn && out.psn == cm.psn && out.ack_delay == 15 && out.failover == 1 &&
			out.flow_control && out.rnr_retries == 7 && out.srq && out.ca_guid == 0x55,
		"REP");
	cm = (struct pl_cm){
		.kind = PL_CM_REJ, .remote_id = 9, .about = PL_CM_ABOUT_REP, .reason = 28
	};
	put(&cm, "no", 2);
	at(8, "40 00 001c");
	at(84, "6e6f");
	pl_cm_parse(&out, pl_cursor(mad, sizeof(mad)));
	ok(out.about == PL_CM_ABOUT_REP && out.reason == 28 && !out.has_ari, "REJ");
	cm = (struct pl_cm){ .kind = PL_CM_REJ, .reason = 26, .has_ari = true, .ari = 3 };
	put(&cm, "no", 2);
	at(8, "00 02 001a 03 00");
	at(84, "6e6f");
	pl_cm_parse(&out, pl_cursor(mad, sizeof(mad)));
	ok(out.reason == 26 && out.has_ari && out.ari == 3, "REJ with additional information");
	cm = (struct pl_cm){ .kind = PL_CM_MRA, .about = PL_CM_ABOUT_OTHER, .timeout = 20 };
	put(&cm, NULL, 0);
	at(8, "80 a0");
	cm = (struct pl_cm){ .kind = PL_CM_DREQ, .qpn = 0x111213 };
	put(&cm, NULL, 0);
	at(8, "111213 00");
	for (unsigned int kind = 0; kind < 0x20; kind++) {
		static uint8_t many[PL_CM_PRIVATE_MAX + 1];

		cm.kind = (uint8_t)kind;
		b = pl_build(mad, sizeof(mad));
		pl_cm_put(&b, &cm, many, pl_cm_private_bytes((enum pl_cm_kind)kind) + 1);
		ok(b.full, "kind %02x: a byte too many", kind);
	}
}

static void test_refused(void)
{
	static const struct {
		const char *name;
		size_t at;
		uint8_t value;
	} cases[] = { { "base version", 0, 2 }, { "class", 1, 4 }, { "class version", 2, 1 },
		{ "method", 3, 1 }, { "kind", 17, 0x17 }, { "kind, upper byte", 16, 1 } };
	struct pl_cm cm = { .kind = PL_CM_RTU }, out;

	put(&cm, NULL, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t was = mad[cases[i].at];

		mad[cases[i].at] = cases[i].value;
		ok(pl_cm_parse(&out, pl_cursor(mad, sizeof(mad))) < 0, "another %s", cases[i].name);
		mad[cases[i].at] = was;
	}
	ok(pl_cm_parse(&out, pl_cursor(mad, sizeof(mad) - 1)) < 0, "255 bytes");
	eq(pl_cm_parse(&out, pl_cursor(mad, sizeof(mad))), 0);
}

int main(void)
{
	test_req();
	test_others();
	test_refused();
	return pl_test_done();
}
