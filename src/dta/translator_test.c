/* SPDX-License-Identifier: BSD-2-Clause */
/* The translator report by report: which operations come of it, and when. */
#include "dta/translator.h"

#include <errno.h>

#include "base/hash.h"
#include "dta/test_translator.h"
#include "dta/translator_state.h"

#define SLOT 8

/* With one store and nothing else. */
static struct pl_translator *make(const struct pl_dta_store *store)
{
	return make_with(store, (struct pl_translator_config){ .stores = NULL });
}

/* Conformance 1: the positions and the payload that the published hash gives key 1 (reference 3.2,
 * 3.3). */
static void test_published_key_write(void)
{
	static const uint8_t report[] = { 1, 0x55, 0x00, 4, 0, 0, 0, 1, 0xde, 0xad, 0xbe, 0xef };
	static const uint64_t slots[] = { 173, 59, 129, 23 };
	static const uint8_t slot[] = { 0x79, 0xb8, 0xf8, 0x99, 0xde, 0xad, 0xbe, 0xef };
	const struct pl_dta_store store = PUBLISHED_KEY_WRITE;
	struct pl_translator *t =
		make_with(&store, (struct pl_translator_config){ .form = PL_DTA_TRACKING });

	send_bytes(t, 1, report, sizeof(report));
	eq(n_ops, 4);
	for (size_t i = 0; i < n_ops; i++) {
		eq(ops[i].offset, slots[i] * SLOT, "copy %zu", i);
		eq(ops[i].bytes, sizeof(slot));
		memeq(written[i], slot, sizeof(slot));
		ok(!ops[i].immediate);
	}
	closed(t, "key-write");
	pl_translator_free(t);
}

/* Conformance 3 and reference 3.5: little-endian in memory, 0 4 8 12 0 4 … without the batch lost
 * at the wrap. */
static void test_published_append(void)
{
	const struct pl_dta_store store = {
		.params = { .primitive = PL_APPEND,
			.hash = PL_HASH_DTA,
			.append = { .slots = 16, .lists = 2, .entry_bytes = 4, .batch_max = 4 } },
		.batch = 4,
	};
	struct pl_translator *t =
		make_with(&store, (struct pl_translator_config){ .form = PL_DTA_PLAIN });
	uint8_t report[] = { 2, 0, 0, 0, 0, 1, 0, 0, 0, 0 };
	uint64_t stride, total;

	(void)pl_store_bytes(&store.params, &total, NULL);
	stride = total / 2;
	for (uint8_t i = 0; i < 24; i++) {
		report[9] = i;
		report[6] = 0xaa;
		send_bytes(t, i, report, sizeof(report));
		eq(n_ops, (i + 1u) / 4 * 2, "after entry %u", i);
	}
	for (size_t i = 0; i < n_ops; i += 2) {
		const uint8_t first[] = { (uint8_t)(2 * i), 0, 0, 0xaa };
		uint64_t head = 2 * i + 4;

		eq(ops[i].offset, stride + 64 + (2 * i % 16) * 4, "batch %zu", i / 2);
		eq(ops[i].bytes, 16);
		memeq(written[i], first, 4);
		eq(ops[i + 1].offset, stride, "its head follows");
		memeq(written[i + 1], &head, 8);
	}
	closed(t, "append");
	pl_translator_free(t);
}

static struct pl_dta_report entry(uint32_t list, const void *data, uint32_t n)
{
	return (struct pl_dta_report){ .form = PL_DTA_PATHLINE,
		.op = PL_DTA_APPEND,
		.list = list,
		.data = data,
		.data_bytes = n };
}

/* The flush timer, the immediate flag, a report with several entries across the ring's end, a list
 * taken up again. */
static void test_append(void)
{
	const struct pl_dta_store store = {
		.params = { .primitive = PL_APPEND,
			.hash = PL_HASH_PATHLINE,
			.append = { .slots = 8, .lists = 3, .entry_bytes = 4, .batch_max = 4 } },
		.flush_ns = 5 * MS,
	};
	struct pl_translator *t = make(&store);
	static const uint8_t data[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct pl_dta_report r = entry(2, data, 4);
	uint64_t head = 7;

	eq(pl_translator_resume_list(t, 0, 0, 2, 6), 0);
	eq(pl_translator_resume_list(t, 0, 0, 3, 6), (uint64_t)-EINVAL);
	eq(pl_translator_due_ns(t), UINT64_MAX);
	send_report(t, MS, &r);
	eq(n_ops, 0, "one entry waits");
	eq(pl_translator_due_ns(t), 6 * MS);
	pl_translator_tick(t, 6 * MS - 1);
	eq(n_ops, 0, "not yet");
	pl_translator_tick(t, 6 * MS);
	eq(n_ops, 2, "its time is up");
	memeq(written[1], &head, 8);
	eq(pl_translator_due_ns(t), UINT64_MAX);

	n_ops = 0;
	r = entry(2, data, 12);
	r.immediate = true;
	send_report(t, 7 * MS, &r);
	eq(n_ops, 3, "three entries at once, around the end, and the head");
	eq(ops[0].bytes, 4);
	eq(ops[1].bytes, 8);
	memeq(written[1], data + 4, 8);
	ok(!ops[0].immediate && !ops[1].immediate && ops[2].immediate);
	eq(ops[2].imm, 0x20000002);

	r = entry(3, data, 4);
	send_report(t, 8 * MS, &r);
	r = entry(0, data, 5);
	send_report(t, 8 * MS, &r);
	eq(pl_translator_counters(t)->refused[PL_REFUSED_LIST], 1);
	eq(pl_translator_counters(t)->refused[PL_REFUSED_ENTRY_SIZE], 1);
	closed(t, "append");
	pl_translator_free(t);
}

static void test_counters(void)
{
	const struct pl_dta_store store = {
		.params = { .primitive = PL_COUNTERS,
			.hash = PL_HASH_PATHLINE,
			.counters = { .width = 1000, .rows = 3 } },
		.cache_rows = 4,
		.merge_max = 3,
		.flush_ns = 10 * MS,
	};
	struct pl_translator *t = make(&store);
	struct pl_counters g;
	struct pl_dta_report r = { .form = PL_DTA_PATHLINE,
		.op = PL_DTA_INCREMENT,
		.key = (const uint8_t *)"a",
		.key_bytes = 1,
		.increment = 10 };

	eq(pl_counters_init(&g, &store.params, NULL), 0);
	send_report(t, 1, &r);
	send_report(t, 2, &r);
	eq(n_ops, 0, "two are held");
	send_report(t, 3, &r);
	eq(n_ops, 3, "three make one addition to each row");
	for (unsigned int row = 0; row < 3; row++) {
		eq(ops[row].kind, PL_OP_ADD);
		eq(ops[row].add, 30);
		eq(ops[row].offset, pl_counters_offset(&g, pl_counters_key(&g, "a", 1), row));
	}
	n_ops = 0;
	r.increment = UINT64_MAX;
	send_report(t, 4, &r);
	send_report(t, 5, &r);
	eq(n_ops, 3, "a sum that would not fit leaves first");
	eq(ops[0].add, UINT64_MAX);
	pl_translator_tick(t, 10 * MS + 5);
	eq(n_ops, 6, "the rest when its time is up");
	n_ops = 0;
	for (uint8_t i = 0; i < 5; i++) {
		const uint8_t key[] = { i };

		r = (struct pl_dta_report){ .form = PL_DTA_PATHLINE,
			.op = PL_DTA_INCREMENT,
			.key = key,
			.key_bytes = 1,
			.increment = i + 1u };
		send_report(t, 20 * MS + i, &r);
	}
	eq(n_ops, 3, "the fifth key of four rows: the oldest makes room");
	eq(ops[0].add, 1);
	eq(pl_translator_counters(t)->increments_evicted, 1);
	r.copies = 2;
	r.key = (const uint8_t *)"k";
	send_report(t, 30 * MS, &r);
	eq(pl_translator_counters(t)->refused[PL_REFUSED_COUNT_OF_COPIES], 1,
		"fewer rows would make answers too low");
	closed(t, "counters");
	pl_translator_flush(t, 30 * MS);
	eq(pl_translator_held(t).increments, 0);
	closed(t, "counters, flushed");
	pl_translator_free(t);
}

static void card(struct pl_translator *t, uint64_t now, const char *key, uint8_t hop,
	uint8_t length, uint32_t value)
{
	const struct pl_dta_report r = { .form = PL_DTA_PATHLINE,
		.op = PL_DTA_POSTCARD,
		.key = (const uint8_t *)key,
		.key_bytes = (uint8_t)strlen(key),
		.hop = hop,
		.path_length = length,
		.value = value };

	send_report(t, now, &r);
}

static struct pl_postcards postcards;

/* Whether the last operations are `n` hops of the key in all copies. */
static void wrote(const char *key, const uint32_t *values, unsigned int n, const char *what)
{
	struct pl_key k = pl_postcards_key(&postcards, key, strlen(key));
	uint8_t chunk[128];

	if (!ok(n_ops == postcards.copies, "%s: %zu operations", what, n_ops))
		return;
	eq(pl_postcards_image(&postcards, k, values, n, chunk), 0);
	for (unsigned int c = 0; c < postcards.copies; c++) {
		eq(ops[c].offset, pl_postcards_offset(&postcards, k, c),
			"%s: to the chunk of its own flow", what);
		memeq(written[c], chunk, postcards.write_bytes);
	}
	n_ops = 0;
}

/* An urgent postcard does not cut its path, which wakes the collector when it is complete. */
static void urgent_postcard(struct pl_translator *t, uint64_t now)
{
	struct pl_dta_report r = { .form = PL_DTA_PATHLINE,
		.op = PL_DTA_POSTCARD,
		.key = (const uint8_t *)"urgent",
		.key_bytes = 6,
		.hop = 1,
		.path_length = 2,
		.value = 71,
		.immediate = true };

	send_report(t, now, &r);
	eq(n_ops, 0, "an urgent postcard waits for the rest of its path");
	card(t, now, "urgent", 2, 2, 72);
	ok(n_ops == postcards.copies && !ops[0].immediate && ops[n_ops - 1].immediate,
		"which wakes the collector");
	wrote("urgent", (uint32_t[]){ 71, 72 }, 2, "with both hops");
}

static void test_postcards(void)
{
	const struct pl_dta_store store = {
		.params = { .primitive = PL_POSTCARDS,
			.hash = PL_HASH_PATHLINE,
			.seed = 9,
			.postcards = { .chunks = 1000, .hops = 5, .copies = 2 } },
		.cache_rows = 4,
		.flush_ns = 10 * MS,
	};
	struct pl_translator *t = make(&store);
	const struct pl_translator_counters *c = pl_translator_counters(t);

	eq(pl_postcards_init(&postcards, &store.params, NULL), 0);
	for (uint8_t hop = 5; hop >= 1; hop--)
		card(t, 1, "full", hop, 0, 100u + hop);
	wrote("full", (uint32_t[]){ 101, 102, 103, 104, 105 }, 5, "five hops");
	card(t, 2, "short", 2, 2, 12);
	eq(n_ops, 0);
	card(t, 2, "short", 1, 0, 11);
	wrote("short", (uint32_t[]){ 11, 12 }, 2, "a length that one postcard told");
	eq(c->paths_complete, 2);

	card(t, 3, "idle", 1, 0, 21);
	card(t, 4, "idle", 2, 0, 22);
	card(t, 5, "idle", 2, 0, 22);
	eq(c->postcards_repeated, 1);
	pl_translator_tick(t, 10 * MS + 5);
	wrote("idle", (uint32_t[]){ 21, 22 }, 2, "nothing more came");

	card(t, 20 * MS, "gap", 1, 0, 31);
	card(t, 20 * MS, "gap", 3, 0, 33);
	pl_translator_tick(t, 30 * MS);
	wrote("gap", (uint32_t[]){ 31 }, 1, "what is behind a gap is left out");
	eq(c->postcards_left_out, 1);

	card(t, 40 * MS, "cut", 1, 3, 31);
	card(t, 40 * MS, "cut", 2, 3, 32);
	card(t, 40 * MS, "tail", 2, 0, 42);
	pl_translator_tick(t, 50 * MS);
	eq(n_ops, 0, "neither a path known to be cut nor one without its head is written");
	eq(c->paths_short, 1);
	eq(c->paths_without_head, 1);

	card(t, 60 * MS, "next", 1, 0, 51);
	card(t, 60 * MS, "next", 1, 0, 52);
	wrote("next", (uint32_t[]){ 51 }, 1, "another value begins another path");
	eq(c->paths_displaced, 1);
	closed(t, "postcards");
	urgent_postcard(t, 60 * MS);

	for (int i = 0; i < 4; i++) {
		const char *keys[] = { "a", "b", "c", "d" };

		card(t, 61 * MS + (uint64_t)i, keys[i], 1, 0, 60u + (unsigned int)i);
	}
	eq(c->paths_evicted, 1);
	wrote("next", (uint32_t[]){ 52 }, 1, "who makes room goes to its own chunk");
	card(t, 62 * MS, "a", 6, 0, 1);
	card(t, 62 * MS, "a", 1, 0, PL_POSTCARD_BLANK);
	eq(c->refused[PL_REFUSED_HOPS], 1);
	eq(c->refused[PL_REFUSED_BLANK], 1);
	closed(t, "postcards");
	pl_translator_free(t);
}

static const struct pl_addr *sender = &from; /* of columns */

static void columns(struct pl_translator *t, uint64_t now, uint16_t port, uint32_t epoch,
	uint32_t first, uint32_t n, uint32_t value)
{
	uint8_t cells[64 * 4 * 2], out[2048];
	struct pl_dta_report r = { .form = PL_DTA_PATHLINE,
		.op = PL_DTA_SKETCH,
		.epoch = epoch,
		.first_column = first,
		.data = cells,
		.data_bytes = n * 8 };
	struct pl_build b = pl_build(out, sizeof(out));

	for (uint32_t i = 0; i < 2 * n; i++) {
		uint32_t be = __builtin_bswap32(value + i);

		memcpy(cells + 4 * (size_t)i, &be, 4);
	}
	ok(pl_dta_put(&b, &r) == 0);
	pl_translator_push(t, now, sender, port, out, b.len);
	pl_translator_done(t);
}

/* Registers from a stranger: one above what any key makes is refused, with its report. */
static void test_registers(void)
{
	const struct pl_dta_store store = {
		.params = { .primitive = PL_SKETCH,
			.hash = PL_HASH_PATHLINE,
			.sketch = { .columns = 16,
				.rows = 1,
				.cell_bytes = 1,
				.kind = PL_SKETCH_HYPERLOGLOG } },
	};
	struct pl_translator *t = make(&store);
	const struct pl_translator_counters *c = pl_translator_counters(t);
	uint8_t out[256], cells[16] = { [3] = PL_SKETCH_RANK_MAX + 1 };
	const struct pl_dta_report r = { .form = PL_DTA_PATHLINE,
		.op = PL_DTA_SKETCH,
		.epoch = 1,
		.data = cells,
		.data_bytes = sizeof(cells) };

	for (int i = 0; i < 2; i++) {
		struct pl_build b = pl_build(out, sizeof(out));

		ok(pl_dta_put(&b, &r) == 0);
		pl_translator_push(t, MS, &from, 1, out, b.len);
		pl_translator_done(t);
		eq(c->refused[PL_REFUSED_REGISTER], 1);
		eq(c->accepted, (uint64_t)i);
		eq(c->columns_merged, (uint64_t)i * 16);
		cells[3] = PL_SKETCH_RANK_MAX;
	}
	closed(t, "registers");
	pl_translator_free(t);
}

static void test_sketch(void)
{
	const struct pl_dta_store store = {
		.params = { .primitive = PL_SKETCH,
			.hash = PL_HASH_PATHLINE,
			.sketch = { .columns = 8,
				.rows = 2,
				.cell_bytes = 4,
				.kind = PL_SKETCH_COUNT_MIN } },
		.reporters = 2,
		.columns_per_write = 4,
		.flush_ns = 10 * MS,
	};
	struct pl_translator *t = make(&store);
	const struct pl_translator_counters *c = pl_translator_counters(t);
	uint32_t cell;

	columns(t, MS, 1, 7, 0, 8, 100);
	eq(n_ops, 1, "an epoch begins with nothing complete");
	eq(ops[0].offset, 0);
	columns(t, MS, 2, 7, 0, 4, 1000);
	eq(n_ops, 3, "four columns of both in one write, then how many there are");
	eq(ops[1].offset, 64);
	eq(ops[1].bytes, 32);
	memcpy(&cell, written[1] + 4, 4);
	eq(cell, 101 + 1001, "merged");
	memeq(written[2], &(uint64_t){ 4 }, 8);
	columns(t, MS, 2, 7, 0, 4, 1000);
	eq(c->duplicates, 1, "a repeat");
	columns(t, MS, 2, 7, 5, 3, 1000);
	eq(c->refused[PL_REFUSED_COLUMN_GAP], 1);
	columns(t, MS, 3, 7, 0, 8, 1000);
	eq(c->refused[PL_REFUSED_SKETCH_REPORTERS], 1);
	columns(t, MS, 2, 7, 2, 6, 1000);
	eq(n_ops, 5, "half a repeat: only what is new is merged");
	memcpy(&cell, written[3], 4);
	eq(cell, 108 + 1004);
	ok(ops[4].immediate && ops[4].imm == 0x50000007, "the last one wakes with the epoch");
	eq(c->epochs_complete, 1);
	columns(t, MS, 1, 6, 0, 8, 1);
	eq(c->refused[PL_REFUSED_EPOCH], 1, "an older one");

	n_ops = 0;
	columns(t, 2 * MS, 1, 8, 0, 3, 1);
	columns(t, 2 * MS, 2, 8, 0, 2, 1);
	eq(pl_translator_due_ns(t), 12 * MS);
	pl_translator_tick(t, 12 * MS);
	eq(n_ops, 3, "what is complete at the end of its time");
	eq(ops[1].bytes, 16);
	eq(c->epochs_incomplete, 1);
	columns(t, 13 * MS, 2, 8, 2, 2, 1);
	eq(c->refused[PL_REFUSED_EPOCH], 2, "too late");
	closed(t, "sketch");
	pl_translator_free(t);
}

/* One source with many ports has the sketch to itself for one epoch at most. */
static void test_sketch_shares(void)
{
	const struct pl_dta_store store = {
		.params = { .primitive = PL_SKETCH,
			.hash = PL_HASH_PATHLINE,
			.sketch = { .columns = 8,
				.rows = 2,
				.cell_bytes = 4,
				.kind = PL_SKETCH_COUNT_MIN } },
		.reporters = 4,
		.flush_ns = 10 * MS,
	};
	const struct pl_addr hosts[] = { pl_addr_v4((const uint8_t[]){ 192, 0, 2, 71 }),
		pl_addr_v4((const uint8_t[]){ 192, 0, 2, 72 }),
		pl_addr_v4((const uint8_t[]){ 192, 0, 2, 73 }) };
	struct pl_translator *t = make(&store);
	const struct pl_translator_counters *c = pl_translator_counters(t);
	uint64_t refused = 0;

	for (uint32_t epoch = 1; epoch <= 3; epoch++) {
		for (uint16_t port = 1; port <= 8; port++)
			columns(t, epoch * MS, port, epoch, 0, 8, 1);
		for (unsigned int i = 0; i < 3; i++) {
			sender = &hosts[i];
			columns(t, epoch * MS, 9, epoch, 0, 8, 1);
		}
		sender = &from;
		refused = c->refused[PL_REFUSED_SKETCH_REPORTERS] - refused;
		if (epoch == 1)
			eq(refused, 7, "the first of an epoch that nobody knows takes all");
	}
	eq(c->refused[PL_REFUSED_SKETCH_REPORTERS], 7 + 7 + 7, "then each source has its own");
	eq(c->epochs_complete, 3);
	eq(c->columns_merged, UINT64_C(3) * 4 * 8);
	/* Several of one source are no harm where there is room. */
	for (uint16_t port = 1; port <= 4; port++) {
		columns(t, 4 * MS, port, 4, 0, 8, 1);
		columns(t, 4 * MS, port, 4, 0, 8, 1);
	}
	eq(c->epochs_complete, 3, "places are kept for the others");
	for (uint16_t port = 1; port <= 4; port++)
		columns(t, 5 * MS, port, 5, 0, 8, 1);
	eq(c->epochs_complete, 4, "who do not come any more");
	closed(t, "shares of a sketch");
	pl_translator_free(t);
}

/* One report of an epoch far away, whatever it is: those that follow each other are taken, soon at
 * the latest. */
static void test_far_epoch(void)
{
	const struct pl_dta_store store = {
		.params = { .primitive = PL_SKETCH,
			.hash = PL_HASH_PATHLINE,
			.sketch = { .columns = 8,
				.rows = 2,
				.cell_bytes = 4,
				.kind = PL_SKETCH_COUNT_MIN } },
		.flush_ns = 10 * MS,
	};
	struct pl_translator *t = make(&store);
	const struct pl_translator_counters *c = pl_translator_counters(t);
	uint64_t now = MS;

	columns(t, now, 1, INT32_MAX, 0, 1, 1);
	eq(c->accepted, 1, "any number may be the first");
	for (uint32_t epoch = 1; epoch < 20; epoch++, now += MS) {
		pl_translator_tick(t, now);
		columns(t, now, 2, epoch, 0, 8, 1);
	}
	eq(c->refused[PL_REFUSED_EPOCH_FAR], 10, "until the bad one's time is up");
	eq(c->epochs_complete, 9);
	eq(c->epochs_incomplete, 1);
	columns(t, now, 1, INT32_MAX, 0, 8, 1);
	columns(t, now, 1, 19 + 17, 0, 8, 1);
	columns(t, now, 1, (uint32_t)-1, 0, 8, 1);
	eq(c->refused[PL_REFUSED_EPOCH_FAR], 13, "meanwhile none far away is taken");
	columns(t, now, 2, 19 + 16, 0, 8, 1);
	eq(c->epochs_complete, 10, "some may be left out");
	columns(t, now, 2, 34, 0, 8, 1);
	eq(c->refused[PL_REFUSED_EPOCH], 1);
	columns(t, now + 10 * MS, 2, 34, 0, 8, 1);
	eq(c->refused[PL_REFUSED_EPOCH], 2, "one that is over stays so");
	columns(t, now + 10 * MS, 2, 1, 0, 8, 1);
	eq(c->epochs_complete, 11, "who counts anew is heard after a pause");
	columns(t, now + 11 * MS, 2, 0, 0, 8, 1);
	eq(c->refused[PL_REFUSED_EPOCH], 3);
	columns(t, now + 30 * MS, 2, UINT32_MAX - 3, 0, 8, 1);
	eq(c->refused[PL_REFUSED_EPOCH], 4);
	columns(t, now + 30 * MS, 2, 17, 0, 8, 1);
	eq(c->epochs_complete, 12);
	closed(t, "far epochs");
	pl_translator_free(t);
}

/* One of ten collectors goes: its keys move, no other does, and all have about the same. */
static void test_choose(void)
{
	unsigned int has[10] = { 0 }, moved = 0, wrong = 0;

	for (uint64_t k = 0; k < 100000; k++) {
		uint64_t h = pl_hash(&k, sizeof(k), 1);
		int before = pl_collector_choose(3, h, 0x3ff, 10);
		int after = pl_collector_choose(3, h, 0x3ff & ~(1u << 4), 10);

		has[before]++;
		moved += before != after;
		wrong += before != after && before != 4;
	}
	eq(wrong, 0);
	eq(moved, has[4]);
	for (int i = 0; i < 10; i++)
		ok(has[i] > 9500 && has[i] < 10500, "collector %d has %u of 100000", i, has[i]);
	ok(pl_collector_choose(0, 1, 0, 10) == -1);
}

static void test_refused_config(void)
{
	struct pl_dta_store store = PUBLISHED_KEY_WRITE;
	struct pl_translator_config config = { .stores = &store, .n_stores = 1 };
	const struct pl_op_sink sink = { .ops = keep, .nack = keep_nack };
	struct pl_diag diag = { .text = "" };
	struct pl_translator *t;

	store.filter = (struct pl_dta_filter){ .on = true, .width = 4, .offset = 1 };
	ok(pl_translator_new(&t, &config, &sink, &diag) == -EINVAL && t == NULL, "%s", diag.text);
	store.filter.on = false;
	store.params.key_write.slots = 100;
	ok(pl_translator_new(&t, &config, &sink, &diag) == -EINVAL, "%s", diag.text);
	config.n_stores = 0;
	ok(pl_translator_new(&t, &config, &sink, &diag) == -EINVAL, "%s", diag.text);
}

int main(void)
{
	test_published_key_write();
	test_published_append();
	test_append();
	test_counters();
	test_postcards();
	test_registers();
	test_sketch();
	test_sketch_shares();
	test_far_epoch();
	test_choose();
	test_refused_config();
	return pl_test_done();
}
