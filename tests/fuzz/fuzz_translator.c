/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translator: the first byte chooses the published form and how it is configured, then records
 * of a time step, a sender and a datagram, two bytes of length before it; a length of all ones
 * changes a collector's state instead. No operation leaves its store, entries' heads never go back,
 * and every account closes after each step.
 */
#include "dta/translator.h"
#include "fuzz.h"
#include "wire/cursor.h"

#define STORES     8
#define COLLECTORS 3

static const struct pl_dta_store stores[STORES] = {
	{ .params = { .primitive = PL_KEY_WRITE,
		  .hash = PL_HASH_DTA,
		  .key_write = { .slots = 256, .value_bytes = 4, .copies = 4 } } },
	{ .params = { .primitive = PL_APPEND,
		  .hash = PL_HASH_DTA,
		  .append = { .slots = 16, .lists = 4, .entry_bytes = 4, .batch_max = 4 } } },
	{ .params = { .primitive = PL_COUNTERS,
		  .hash = PL_HASH_DTA,
		  .counters = { .width = 64, .rows = 4, .shared = 1 } },
		.cache_rows = 4 },
	{ .params = { .primitive = PL_POSTCARDS,
		  .hash = PL_HASH_DTA,
		  .postcards = { .chunks = 64, .hops = 5, .copies = 1 } },
		.cache_rows = 8 },
	{ .params = { .primitive = PL_SKETCH,
		  .hash = PL_HASH_PATHLINE,
		  .sketch = { .columns = 8,
			  .rows = 2,
			  .cell_bytes = 4,
			  .kind = PL_SKETCH_COUNT_MIN } },
		.reporters = 2,
		.columns_per_write = 3 },
	{ .params = { .primitive = PL_KEY_WRITE,
		  .hash = PL_HASH_PATHLINE,
		  .key_write = { .slots = 101, .value_bytes = 7, .copies = 8 } },
		.filter = { .on = true, .width = 3, .offset = 4, .above = 70000 },
		.quota = { .rate = 1000, .burst = 5 } },
	{ .params = { .primitive = PL_APPEND,
		  .hash = PL_HASH_PATHLINE,
		  .append = { .slots = 9,
			  .lists = 2,
			  .entry_bytes = 5,
			  .batch_max = 3,
			  .sealed = 1 } },
		.filter = { .on = true, .little_endian = true, .width = 1, .above = 3 } },
	{ .params = { .primitive = PL_POSTCARDS,
		  .hash = PL_HASH_PATHLINE,
		  .postcards = { .chunks = 33, .hops = 31, .copies = 8 } },
		.cache_rows = 4,
		.filter = { .on = true, .above = 100 },
		.partial = true },
};

struct seen {
	uint64_t bytes[STORES];
	uint64_t writes, adds;
};

static void look(void *arg, const struct pl_op *ops, size_t n)
{
	struct seen *s = arg;
	volatile uint8_t touched = 0;

	(void)touched;
	must(n > 0 && n <= PL_OPS_MAX);
	for (size_t i = 0; i < n; i++) {
		const struct pl_op *op = &ops[i];

		must(op->store < STORES && op->collector < COLLECTORS);
		must(op->bytes > 0 && op->bytes <= s->bytes[op->store]);
		must(op->offset <= s->bytes[op->store] - op->bytes);
		if (op->kind == PL_OP_ADD) {
			must(op->bytes == 8 && op->offset % 8 == 0);
			must(stores[op->store].params.primitive == PL_COUNTERS);
			s->adds++;
		} else {
			must(stores[op->store].params.primitive != PL_COUNTERS);
			must(op->offset % 4 == 0);
			for (uint32_t k = 0; k < op->bytes; k++)
				touched ^= op->data[k];
			s->writes++;
		}
		if (op->immediate)
			must(op->imm >> 28 == stores[op->store].params.primitive);
	}
}

static void look_nack(
	void *arg, const struct pl_addr *to, uint16_t port, const void *bytes, size_t n)
{
	struct pl_cursor c = pl_cursor(bytes, n);
	struct pl_dta_nack nack;

	(void)arg;
	(void)to;
	(void)port;
	must(pl_dta_nack_read(&c, &nack) == PL_DTA_OK);
}

static void accounts(const struct pl_translator *t, const struct seen *s)
{
	const struct pl_translator_counters *c = pl_translator_counters(t);
	struct pl_translator_held held = pl_translator_held(t);
	uint64_t sum = c->accepted + c->duplicates;

	for (int i = 0; i < PL_DTA_VERDICT_MAX; i++)
		sum += c->faults[i];
	for (int i = 0; i < PL_REFUSED_MAX; i++)
		sum += c->refused[i];
	must(c->reports == sum && c->datagrams <= c->reports);
	must(c->entries == c->entries_published + held.entries);
	must(c->by_primitive[PL_COUNTERS] == c->increments_merged + held.increments);
	must(c->by_primitive[PL_POSTCARDS] == c->postcards_written + c->postcards_left_out +
						      c->postcards_repeated + held.postcards);
	must(c->writes == s->writes && c->adds == s->adds);
	must((pl_translator_due_ns(t) == UINT64_MAX) ||
		held.entries + held.increments + held.postcards > 0 ||
		c->by_primitive[PL_SKETCH] > 0);
}

static void run(struct pl_translator *t, struct seen *s, const uint8_t *data, size_t size)
{
	struct pl_cursor c = pl_cursor(data, size);
	uint64_t now = 1;

	while (pl_cursor_left(&c) >= 4) {
		uint8_t step = pl_get_u8(&c), sender = pl_get_u8(&c);
		uint16_t n = pl_get_be16(&c);
		struct pl_addr from = { .b = { [15] = sender & 7 } };
		struct pl_cursor datagram;

		now += (uint64_t)1 << (step & 31);
		if (n == UINT16_MAX) {
			pl_translator_set_collector(t, sender % COLLECTORS,
				(enum pl_collector_state)(step % (PL_COLLECTOR_DOWN + 1)));
		} else {
			if (n > pl_cursor_left(&c))
				n = (uint16_t)pl_cursor_left(&c);
			datagram = pl_cursor_split(&c, n);
			pl_translator_push(t, now, &from, sender >> 3, datagram.pos, n);
			pl_translator_done(t);
		}
		accounts(t, s);
		pl_translator_tick(t, now);
		accounts(t, s);
	}
	for (unsigned int i = 0; i < COLLECTORS; i++)
		pl_translator_set_collector(t, i, PL_COLLECTOR_UP);
	pl_translator_flush(t, now);
	accounts(t, s);
	must(pl_translator_held(t).entries == 0 && pl_translator_held(t).postcards == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pl_prefix access[] = { { { { 0 } }, 126 } };
	struct pl_translator_config config = {
		.stores = stores,
		.n_stores = STORES,
		.collectors = COLLECTORS,
		.reporters = 8,
		.reporter_idle_ns = 1000000,
	};
	struct seen s = { { 0 }, 0, 0 };
	struct pl_op_sink sink = { look, look_nack, &s };
	struct pl_translator *t;

	if (size == 0)
		return 0;
	for (unsigned int i = 0; i < STORES; i++)
		must(pl_store_bytes(&stores[i].params, &s.bytes[i], NULL) == 0);
	config.form = data[0] & 1 ? PL_DTA_TRACKING : PL_DTA_PLAIN;
	config.nack_tries = data[0] >> 1 & 3;
	config.n_access = data[0] >> 3 & 1;
	config.access = access;
	if (data[0] >> 4 & 1)
		config.reporter_quota = (struct pl_dta_quota){ 100000, 3 };
	must(pl_translator_new(&t, &config, &sink, NULL) == 0);
	run(t, &s, data + 1, size - 1);
	pl_translator_free(t);
	return 0;
}
