/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose paths are remembered when there are more than there is room for. */
#include "base/rng.h"
#include "base/test.h"
#include "decode/decode.h"
#include "wire/report.h"

enum { ROOM = 64 };

static struct pl_record_batch out;
static uint64_t now_ns = UINT64_C(1700000000000000000);

/* A report from 10.9.0.source whose path has that one node; the path's id. */
static uint64_t hear(struct pl_decode *d, unsigned int source, uint32_t node)
{
	const struct pl_report_head h = { .version = PL_REPORT_V10,
		.tracked = true,
		.node = node,
		.md_bits = 0x20,
		.inner_link = PL_LINK_UNKNOWN };
	const struct pl_int_hop hop = { .node = node };
	const uint8_t address[4] = { 10, 9, (uint8_t)(source >> 8), (uint8_t)source };
	static struct pl_batch batch = { .n = 1 };
	static uint8_t frame[256];
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
		.src = pl_addr_v4(address) };
	now_ns += 1000;
	pl_record_batch_clear(&out);
	pl_decode_batch(d, &batch, &out);
	if (out.n_paths != 1)
		return 0;
	return out.paths[0].path_id;
}

static bool known(const struct pl_decode *d, uint64_t path_id, uint64_t node)
{
	struct pl_path_info p;

	return pl_decode_path_find(d, path_id, &p) && p.path_id == path_id && p.hop_count == 1 &&
	       p.steps[0].node == node;
}

static struct pl_decode *decoder(void)
{
	struct pl_decode *d;

	ok(pl_decode_new(&d, &(struct pl_decode_options){ .max_paths = ROOM }) == 0);
	return d;
}

static uint64_t counted(const struct pl_decode *d)
{
	const struct pl_decode_counters *c = pl_decode_counters(d);

	return pl_counter_read(&c->paths_full) + pl_counter_read(&c->paths_displaced);
}

static void others_have_room(void)
{
	struct pl_decode *d = decoder();
	unsigned int known_now = 0, still = 0;
	uint64_t ids[8];

	for (uint32_t i = 0; i < 200; i++)
		(void)hear(d, 1, 1000 + i);
	eq(counted(d), 200 - ROOM, "each path that is not remembered is counted");
	for (uint32_t i = 0; i < 8; i++) {
		ids[i] = hear(d, 2, i + 1);
		known_now += known(d, ids[i], i + 1);
	}
	eq(known_now, 8, "the paths of another exporter are remembered beside 200 of one");
	for (uint32_t i = 0; i < 1000; i++)
		(void)hear(d, 1, 2000 + i);
	for (uint32_t i = 0; i < 8; i++)
		still += known(d, ids[i], i + 1);
	eq(still, 8, "and stay so while that one goes on");
	pl_decode_free(d);
}

/* What the only exporter sees now is worth more than what it saw first. */
static void newest_of_one(void)
{
	struct pl_decode *d = decoder();
	unsigned int n = 0;

	for (uint32_t i = 0; i < 200; i++) {
		uint64_t id = hear(d, 1, 1000 + i);

		n += known(d, id, 1000 + i);
	}
	eq(n, 200, "each is known when it comes");
	eq(pl_counter_read(&pl_decode_counters(d)->paths_full), 0);
	pl_decode_free(d);
}

static void idle_makes_room(void)
{
	struct pl_decode *d = decoder();
	uint64_t id;

	for (unsigned int source = 1; source <= ROOM; source++)
		(void)hear(d, source, source);
	id = hear(d, 500, 500);
	ok(!known(d, id, 500), "where everybody has one, nobody gives it up");
	eq(pl_counter_read(&pl_decode_counters(d)->paths_full), 1);
	now_ns += UINT64_C(120) * 1000 * 1000 * 1000;
	id = hear(d, 500, 500);
	ok(known(d, id, 500), "but for an idle one");
	pl_decode_free(d);
}

/* Against a list of everything heard: what is remembered is right, found, and within bounds. */
static void held_against_a_list(void)
{
	enum { SOURCES = 12, NODES = 300 };
	static uint64_t ids[NODES];
	struct pl_decode *d = decoder();
	struct pl_path_info p;
	struct pl_rng rng;
	unsigned int wrong = 0, lost = 0;

	pl_rng_seed(&rng, 7);
	for (unsigned int i = 0; i < 20000; i++) {
		uint32_t node = 1 + (uint32_t)pl_rng_below(&rng, NODES - 1);

		ids[node] = hear(d, 1 + node % SOURCES, node);
		for (uint32_t k = 0; pl_decode_path(d, k, &p); k++) {
			wrong += k >= ROOM || p.hop_count != 1 || p.steps[0].node >= NODES ||
				 ids[p.steps[0].node] != p.path_id;
			lost += !known(d, p.path_id, p.steps[0].node);
		}
	}
	eq(wrong, 0);
	eq(lost, 0, "what is listed is found");
	ok(pl_decode_path(d, ROOM - 1, &p) && !pl_decode_path(d, ROOM, &p), "the table stays full");
	pl_decode_free(d);
}

int main(void)
{
	if (pl_record_batch_init(&out, 64, 1024) < 0)
		return 1;
	others_have_room();
	newest_of_one();
	idle_makes_room();
	held_against_a_list();
	pl_record_batch_done(&out);
	return pl_test_done();
}
