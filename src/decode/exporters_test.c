/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is followed as an exporter: what proves it, and whose tables are full. */
#include "base/test.h"
#include "decode/decode.h"
#include "wire/report.h"

static struct pl_record_batch out;
static uint8_t frame[256];
static uint64_t now_ns = UINT64_C(1700000000000000000);

static struct pl_addr address(unsigned int source)
{
	const uint8_t b[4] = { 10, 9, 0, (uint8_t)source };

	return pl_addr_v4(b);
}

/* The flag of a report of that node with that number, from 10.9.0.source. */
static uint16_t hear(struct pl_decode *d, unsigned int source, uint32_t node, uint32_t seq)
{
	const struct pl_report_head h = { .version = PL_REPORT_V10,
		.tracked = true,
		.node = node,
		.seq = seq,
		.md_bits = 0x20,
		.inner_link = PL_LINK_UNKNOWN };
	const struct pl_int_hop hop = { .node = node };
	static struct pl_batch batch = { .n = 1 };
	struct pl_build b = pl_build(frame, sizeof(frame));
	size_t at;

	pl_report_put_group(&b, &h);
	at = pl_report_put(&b, &h, &hop);
	pl_report_end(&b, &h, at);
	batch.pkts[0] = (struct pl_packet){ .data = frame,
		.len = (uint32_t)b.len,
		.wire_len = (uint32_t)b.len,
		.ts_ns = now_ns,
		.link = PL_LINK_UDP,
		.sport = 40000,
		.dport = 32766,
		.src = address(source) };
	pl_record_batch_clear(&out);
	pl_decode_batch(d, &batch, &out);
	eq(out.n_paths, 1);
	return out.paths[0].flags & PL_FLAG_UNPROVEN;
}

static unsigned int followed(const struct pl_decode *d, unsigned int source)
{
	const struct pl_addr addr = address(source);
	struct pl_exporter e;
	uint32_t pos = 0;
	unsigned int n = 0;

	while (pl_decode_exporter(d, &pos, &e))
		n += pl_addr_equal(&e.addr, &addr);
	return n;
}

static void proof(void)
{
	const struct pl_decode_options options = {
		.max_exporters = 16, .max_paths = 16, .prove_exporters = true
	};
	struct pl_path_info path;
	struct pl_decode *d;
	unsigned int lost = 0;

	ok(pl_decode_new(&d, &options) == 0);
	ok(hear(d, 1, 7, 100) != 0 && followed(d, 1) == 0, "a first report proves nothing");
	ok(!pl_decode_path(d, 0, &path), "and leaves no path behind");
	ok(hear(d, 1, 7, 103) == 0 && followed(d, 1) == 1, "a second one does");
	ok(pl_decode_path(d, 0, &path) && path.reports == 1);
	eq(pl_counter_read(&pl_decode_counters(d)->lost), 2, "what was lost between them counts");
	for (uint32_t i = 0; i < 1000; i++)
		lost += hear(d, 2, 1000 + i, i * 2654435761u) == 0;
	eq(lost, 0, "a thousand that are heard once are not followed");
	eq(followed(d, 2), 0);
	ok(hear(d, 1, 7, 104) == 0, "nor do they displace who is");
	ok(hear(d, 3, 9, 5) != 0 && hear(d, 2, 3, 77777777) != 0 && hear(d, 3, 9, 6) == 0,
		"nor keep another from it");
	eq(pl_counter_read(&pl_decode_counters(d)->unproven), 1003);
	eq(pl_counter_read(&pl_decode_counters(d)->exporters_full), 0);
	pl_decode_free(d);
}

/* One source with many nodes that number their reports well, beside others. */
static void shares(void)
{
	const struct pl_decode_options options = { .max_exporters = 16,
		.max_paths = 16,
		.prove_exporters = true,
		.exporter_idle_ns = 1000000 };
	struct pl_decode *d;
	unsigned int unknown = 0;

	ok(pl_decode_new(&d, &options) == 0);
	for (uint32_t i = 0; i < 100; i++) {
		(void)hear(d, 1, i, 10);
		(void)hear(d, 1, i, 11);
	}
	eq(followed(d, 1), 16, "alone it has all there is");
	eq(pl_counter_read(&pl_decode_counters(d)->exporters_full), 84, "the rest is told");
	for (unsigned int source = 2; source < 10; source++) {
		(void)hear(d, source, 1, 10);
		unknown += hear(d, source, 1, 13) != 0;
	}
	eq(unknown, 0);
	for (unsigned int source = 2; source < 10; source++)
		eq(followed(d, source), 1, "source %u is followed beside it", source);
	eq(pl_counter_read(&pl_decode_counters(d)->exporters_full), 84);
	eq(pl_counter_read(&pl_decode_counters(d)->exporters_gone), 8);
	for (uint32_t i = 200; i < 300; i++) {
		(void)hear(d, 1, i, 10);
		(void)hear(d, 1, i, 11);
	}
	for (unsigned int source = 2; source < 10; source++)
		eq(followed(d, source), 1, "and stays so");
	eq(followed(d, 1), 8);
	now_ns += 2000000;
	(void)hear(d, 1, 400, 10);
	(void)hear(d, 1, 400, 11);
	eq(pl_counter_read(&pl_decode_counters(d)->exporters_gone), 9,
		"who was not heard of for long makes room for anybody");
	pl_decode_free(d);
}

/* An exporter that is proven when there is no room is known as late once there is. */
static void late(void)
{
	const struct pl_decode_options options = { .max_exporters = 2,
		.max_paths = 16,
		.prove_exporters = true,
		.exporter_idle_ns = 1000000 };
	struct pl_decode *d;
	struct pl_exporter e;
	unsigned int n = 0;

	ok(pl_decode_new(&d, &options) == 0);
	for (uint32_t node = 1; node <= 3; node++) {
		(void)hear(d, 1, node, 10);
		(void)hear(d, 1, node, 11);
	}
	for (uint32_t pos = 0; pl_decode_exporter(d, &pos, &e); n++)
		ok(e.node < 3 && !e.late, "node %u was in time", (unsigned int)e.node);
	eq(n, 2, "the third finds no room");
	now_ns += 2000000;
	(void)hear(d, 1, 3, 20);
	n = 0;
	for (uint32_t pos = 0; pl_decode_exporter(d, &pos, &e);)
		n += e.node == 3 && e.late && e.lost == 8;
	eq(n, 1, "it is late, and all that it lost counts");
	pl_decode_free(d);
}

int main(void)
{
	if (pl_record_batch_init(&out, 64, 1024) < 0)
		return 1;
	proof();
	shares();
	late();
	pl_record_batch_done(&out);
	return pl_test_done();
}
