/* SPDX-License-Identifier: BSD-2-Clause */
/* RoCE frames of every kind for a witness: "CARRIER OPCODE HEX" lines, with the values that roce.py
 * knows. */
#include <stdio.h>
#include <stdlib.h>

#include "wire/cm.h"
#include "wire/roce.h"

static uint8_t memory[PL_ROCE_FRAME_MAX];

static void print_frame(const char *carrier, uint8_t opcode, const struct pl_build *b)
{
	if (b->full)
		abort();
	printf("%s %02x ", carrier, opcode);
	for (size_t i = 0; i < b->len; i++)
		printf("%02x", b->data[i]);
	printf("\n");
}

static struct pl_roce packet(const char *carrier, uint8_t opcode)
{
	struct pl_roce p = { .opcode = opcode,
		.solicited = true,
		.migrated = true,
		.ack_req = true,
		.pkey = 0x8123,
		.qpn = 0x123456,
		.psn = 0xabcdef,
		.va = 0x1122334455667788,
		.rkey = 0x99aabbcc,
		.length = 0x01020304,
		.swap_add = 0x0102030405060708,
		.compare = 0x1112131415161718,
		.syndrome = 0x62,
		.msn = 0x654321,
		.original = 0x2122232425262728,
		.imm = 0xcafef00d,
		.qkey = PL_CM_QKEY,
		.src_qpn = 0x777 };

	p.path = (struct pl_roce_path){ .src = pl_addr_v4("\12\0\0\1"),
		.dst = pl_addr_v4("\12\0\0\2"),
		.dmac = { 2, 0, 0, 0, 0, 2 },
		.smac = { 2, 0, 0, 0, 0, 1 },
		.tos = 0x6a,
		.ttl = 63,
		.sport = 50000,
		.ip_id = 0x4242,
		.flow_label = 0x12345 };
	if (carrier[1] == '6')
		p.path.src.b[0] = p.path.dst.b[0] = 0xfd;
	p.path.v1 = carrier[1] == '1';
	p.path.tagged = carrier[0] == 't';
	p.path.tci = 0x6005;
	return p;
}

static void put_cm(uint8_t kind)
{
	const struct pl_cm cm = { .kind = kind,
		.transaction = 0x3132333435363738,
		.local_id = 0x41424344,
		.remote_id = 0x51525354,
		.qpn = 0x616263,
		.psn = 0x717273,
		.service_id = PL_CM_SERVICE_TCP(1337),
		.resources = 5,
		.depth = 3,
		.transport = 1,
		.remote_timeout = 20,
		.local_timeout = 19,
		.retries = 7,
		.rnr_retries = 6,
		.cm_retries = 15,
		.pkey = 0xffff,
		.mtu = 3,
		.hop_limit = 64,
		.ack_timeout = 14,
		.src = pl_addr_v4("\12\0\0\1"),
		.dst = pl_addr_v4("\12\0\0\2"),
		.reason = 28,
		.about = PL_CM_ABOUT_REP };
	const struct pl_cm_ip ip = {
		.src_port = 50001, .src = pl_addr_v4("\12\0\0\1"), .dst = pl_addr_v4("\12\0\0\2")
	};
	uint8_t mad[PL_CM_BYTES], private[PL_CM_IP_BYTES];
	struct pl_build b = pl_build(private, sizeof(private)), m = pl_build(mad, sizeof(mad)),
			f = pl_build(memory, sizeof(memory));
	struct pl_roce p = packet("v4", PL_ROCE_UD | PL_ROCE_SEND_ONLY);

	pl_cm_put_ip(&b, &ip);
	pl_cm_put(&m, &cm, private, kind == PL_CM_REQ ? b.len : 0);
	p.qpn = p.src_qpn = PL_CM_QPN;
	pl_roce_put(&f, &p, mad, m.len);
	print_frame("cm", kind, &f);
}

int main(void)
{
	static const char *const carriers[] = { "v4", "v6", "v1", "tagged" };

	for (size_t c = 0; c < sizeof(carriers) / sizeof(carriers[0]); c++) {
		for (unsigned int opcode = 0; opcode < 0x80; opcode++) {
			struct pl_roce p = packet(carriers[c], (uint8_t)opcode);
			struct pl_build b = pl_build(memory, sizeof(memory));

			if (pl_roce_headers((uint8_t)opcode) < 0)
				continue;
			pl_roce_put(&b, &p, "some bytes", opcode % 11);
			print_frame(carriers[c], (uint8_t)opcode, &b);
		}
	}
	for (uint8_t kind = PL_CM_REQ; kind <= PL_CM_DREP; kind++)
		put_cm(kind);
	return EXIT_SUCCESS;
}
