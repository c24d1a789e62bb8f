/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the packets of benchmarks in memory. */
#include "tests/bench/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/packet.h"
#include "tap/sender.h"
#include "wire/layers.h"

enum { SLOT = 2048, PAYLOAD = 200, SEQ_AT = 12 };

uint32_t pl_frames_make(uint8_t *dst, uint32_t cap, uint32_t i, uint8_t proto)
{
	struct pl_flow flow = { .proto = proto,
		.sport = (uint16_t)(1024 + i % 50000),
		.dport = 443,
		.have = PL_FLOW_PORTS };
	struct pl_build build = pl_build(dst, cap);
	size_t at;

	flow.src = pl_addr_v4((const uint8_t[4]){ 10, 0, (uint8_t)(i >> 8), (uint8_t)i });
	flow.dst = pl_addr_v4((const uint8_t[4]){ 192, 0, 2, 1 });
	pl_put_eth(&build, PL_ETH_IPV4, 0);
	at = pl_put_ip(&build, &flow, 64, proto == PL_IP_TCP ? 3 : 0);
	if (proto == PL_IP_TCP)
		pl_patch(&build, at + 40, "\1\1\x8\xa\0\1\2\3\0\4\5\6", 12);
	pl_put_zero(&build, PAYLOAD);
	pl_end_ip(&build, at);
	return (uint32_t)build.len;
}

static int allocate(struct pl_frames *f)
{
	uint8_t *memory = f->memory != NULL ? f->memory : malloc((size_t)PL_FRAMES_SLOTS * SLOT);

	*f = (struct pl_frames){ .memory = memory };
	return memory != NULL ? 0 : -ENOMEM;
}

int pl_frames_packets(struct pl_frames *f, uint8_t proto)
{
	if (allocate(f) < 0)
		return -ENOMEM;
	f->slots = PL_FRAMES_SLOTS;
	for (uint32_t i = 0; i < f->slots; i++)
		f->len = pl_frames_make(f->memory + (size_t)i * SLOT, SLOT, i, proto);
	return 0;
}

static void keep(void *arg, uint32_t lane, const void *datagram, uint32_t len, uint32_t records)
{
	struct pl_frames *f = arg;

	(void)lane;
	(void)records;
	memcpy(f->memory + (size_t)f->slots++ * SLOT, datagram, len);
	f->len = len;
}

int pl_frames_tmpkt(struct pl_frames *f, uint32_t each)
{
	const struct pl_tmpkt_sender_config config = {
		.kind = PL_FLAT_PKT64, .records = each, .lanes = 1, .send = keep, .arg = f
	};
	struct pl_pkt96 record = { .proto = PL_IP_TCP, .sport = 443, .dport = 443 };
	struct pl_tmpkt_sender *sender;
	int r = allocate(f);

	if (r == 0)
		r = pl_tmpkt_sender_new(&sender, &config);
	if (r < 0)
		return r;
	f->datagrams = true;
	for (uint32_t i = 0; i < PL_FRAMES_DATAGRAMS * each; i++) {
		memcpy(record.src.b + 12, &i, 4);
		record.flow_hash = i * UINT64_C(0x9e3779b97f4a7c15);
		pl_tmpkt_sender_put(sender, &record, 1);
	}
	pl_tmpkt_sender_free(sender);
	return 0;
}

void pl_frames_done(struct pl_frames *f)
{
	free(f->memory);
	f->memory = NULL;
}

void pl_frames_lend(struct pl_frames *f, struct pl_batch *batch)
{
	batch->n = PL_BATCH_MAX;
	for (uint32_t i = 0; i < PL_BATCH_MAX; i++) {
		uint8_t *slot = f->memory + (size_t)((f->at + i) % f->slots) * SLOT;

		if (f->datagrams) {
			memcpy(slot + SEQ_AT, &f->seq, 4);
			f->seq++;
		}
		batch->pkts[i] = (struct pl_packet){ .data = slot,
			.len = f->len,
			.wire_len = f->len,
			.ts_ns = 1,
			.link = f->datagrams ? PL_LINK_UDP : PL_LINK_ETHERNET };
	}
	f->at = (f->at + PL_BATCH_MAX) % f->slots;
}
