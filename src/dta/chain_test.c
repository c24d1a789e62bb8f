/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The chain under a bad link: reporters, a link that loses, doubles, delays and reorders in both
 * directions, the translator, memory, queries. Time is the simulation's; a seed is a run. What was
 * put must be there as it was put, and every account must close. PL_SEED=n runs one seed,
 * PL_SEEDS=n so many.
 */
#include <errno.h>
#include <math.h>

#include "base/hash.h"
#include "base/rng.h"
#include "base/test.h"
#include "dta/apply.h"
#include "dta/reporter.h"
#include "dta/translator.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/sketch.h"

#define REPORTERS 3u
#define KEYS      60u
#define LISTS     4u
#define FLOWS     40u
#define HOPS      5u
#define COLUMNS   96u
#define ROUNDS    120u
#define IN_FLIGHT 4096u
#define US        UINT64_C(1000)
#define MS        UINT64_C(1000000)

enum { KEY_WRITE, APPEND, COUNTERS, POSTCARDS, SKETCH, STORES };

/* An entry of a list says who put it and which one it is. */
struct entry {
	uint32_t reporter, number;
};

struct datagram {
	uint64_t at_ns;
	uint32_t reporter;
	bool nack;
	uint32_t bytes;
	uint8_t data[512];
};

static struct sim {
	struct pl_rng rng;
	uint64_t now;
	double loss, twice, late;
	struct pl_reporter *reporters[REPORTERS];
	struct pl_translator *translator;
	struct pl_apply apply;
	struct pl_apply_store memory[STORES];
	struct datagram flight[IN_FLIGHT];
	unsigned int n_flight;
	uint64_t overflow; /* of the simulated link: counts as loss */
	/* the truth */
	uint32_t value[REPORTERS][KEYS]; /* last one put; 0: none */
	uint32_t appended[REPORTERS][LISTS];
	uint64_t sums[KEYS];
	uint32_t cells[COLUMNS][2];
	uint64_t put;
} sim;

/* So large that all copies of a key are overwritten in one of some ten thousand runs. */
static struct pl_dta_store stores[STORES] = {
	[KEY_WRITE] = { .params = { .primitive = PL_KEY_WRITE,
				.hash = PL_HASH_PATHLINE,
				.seed = 5,
				.key_write = { .slots = 20011, .value_bytes = 8, .copies = 4 } } },
	[APPEND] = { .params = { .primitive = PL_APPEND,
			     .hash = PL_HASH_PATHLINE,
			     .append = { .slots = 1024,
				     .lists = LISTS,
				     .entry_bytes = sizeof(struct entry),
				     .batch_max = 8,
				     .sealed = 1 } },
		.flush_ns = MS,
		.batch = 8 },
	[COUNTERS] = { .params = { .primitive = PL_COUNTERS,
			       .hash = PL_HASH_PATHLINE,
			       .counters = { .width = 2003, .rows = 4 } },
		.flush_ns = MS,
		.cache_rows = 8,
		.merge_max = 5 },
	[POSTCARDS] = { .params = { .primitive = PL_POSTCARDS,
				.hash = PL_HASH_PATHLINE,
				.postcards = { .chunks = 20011, .hops = HOPS, .copies = 3 } },
		.flush_ns = 50 * MS,
		.cache_rows = 4 * FLOWS },
	[SKETCH] = { .params = { .primitive = PL_SKETCH,
			     .hash = PL_HASH_PATHLINE,
			     .sketch = { .columns = COLUMNS,
				     .rows = 2,
				     .cell_bytes = 4,
				     .kind = PL_SKETCH_COUNT_MIN } },
		.reporters = REPORTERS,
		.flush_ns = 10000 * MS },
};

/* ---- the link ---- */

static void fly(uint32_t reporter, bool nack, const void *bytes, size_t n)
{
	unsigned int times = pl_rng_unit(&sim.rng) < sim.twice ? 2 : 1;

	while (times-- > 0) {
		struct datagram *d = &sim.flight[sim.n_flight];
		uint64_t delay = 20 * US + pl_rng_below(&sim.rng, 5 * US);

		if (pl_rng_unit(&sim.rng) < sim.loss)
			continue;
		if (sim.n_flight == IN_FLIGHT || n > sizeof(d->data)) {
			sim.overflow++;
			continue;
		}
		if (pl_rng_unit(&sim.rng) < sim.late)
			delay += pl_rng_below(&sim.rng, 2 * MS);
		*d = (struct datagram){ sim.now + delay, reporter, nack, (uint32_t)n, { 0 } };
		memcpy(d->data, bytes, n);
		sim.n_flight++;
	}
}

static void from_reporter(void *arg, const void *bytes, size_t n)
{
	fly((uint32_t)(uintptr_t)arg, false, bytes, n);
}

static const struct pl_addr here = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1 } };

static void from_translator(
	void *arg, const struct pl_addr *to, uint16_t port, const void *bytes, size_t n)
{
	(void)arg;
	if (pl_addr_equal(to, &here) && port < REPORTERS)
		fly(port, true, bytes, n);
}

static void arrive(void)
{
	for (unsigned int i = 0; i < sim.n_flight;) {
		struct datagram d = sim.flight[i];

		if (d.at_ns > sim.now) {
			i++;
			continue;
		}
		sim.flight[i] = sim.flight[--sim.n_flight];
		if (d.nack) {
			pl_reporter_nack(sim.reporters[d.reporter], sim.now, d.data, d.bytes);
		} else {
			pl_translator_push(sim.translator, sim.now, &here, (uint16_t)d.reporter,
				d.data, d.bytes);
			pl_translator_done(sim.translator);
		}
	}
}

static void step(uint64_t ns)
{
	sim.now += ns;
	arrive();
	for (unsigned int i = 0; i < REPORTERS; i++)
		pl_reporter_tick(sim.reporters[i], sim.now);
	pl_translator_tick(sim.translator, sim.now);
}

/* ---- what is put ---- */

/* Until the reporter takes it. */
#define PUT(call)                                                                                  \
	do {                                                                                       \
		int put_error;                                                                     \
		while ((put_error = (call)) == -EAGAIN)                                            \
			step(100 * US);                                                            \
		if (put_error != 0)                                                                \
			ok(false, "put: %d", put_error);                                           \
		sim.put++;                                                                         \
	} while (0)

/* Key k of reporter r is of this reporter alone: among several the last one is not defined. */
static void put_value(uint32_t r, uint32_t k)
{
	const uint32_t key[2] = { r, k };
	uint32_t value[2] = { ++sim.value[r][k], r ^ k };

	PUT(pl_reporter_key_write(
		sim.reporters[r], sim.now, KEY_WRITE, key, sizeof(key), value, sizeof(value)));
}

static void put_entries(uint32_t r, uint32_t list)
{
	struct entry e[3];
	uint32_t n = 1 + (uint32_t)pl_rng_below(&sim.rng, 3);

	for (uint32_t i = 0; i < n; i++)
		e[i] = (struct entry){ r, sim.appended[r][list]++ };
	PUT(pl_reporter_append(
		sim.reporters[r], sim.now, APPEND, list, e, n * (uint32_t)sizeof(e[0])));
}

static void put_increment(uint32_t r, uint32_t k)
{
	uint64_t by = pl_rng_below(&sim.rng, 1000);

	sim.sums[k] += by;
	PUT(pl_reporter_increment(sim.reporters[r], sim.now, COUNTERS, &k, sizeof(k), by));
}

static uint32_t node(uint32_t flow, uint32_t hop)
{
	return 1000 * flow + hop;
}

static uint32_t path_length(uint32_t flow)
{
	return 1 + flow % HOPS;
}

/* Each hop by another reporter, as it is in a network. */
static void put_path(uint32_t flow)
{
	for (uint32_t hop = 1; hop <= path_length(flow); hop++)
		PUT(pl_reporter_postcard(sim.reporters[(flow + hop) % REPORTERS], sim.now,
			POSTCARDS, &flow, sizeof(flow), (uint8_t)hop, (uint8_t)path_length(flow),
			node(flow, hop)));
}

static void put_columns(uint32_t r, uint32_t first, uint32_t n)
{
	uint32_t cells[COLUMNS][2];

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t row = 0; row < 2; row++) {
			uint32_t v = (uint32_t)pl_rng_below(&sim.rng, 100);

			sim.cells[first + i][row] += v;
			cells[i][row] = __builtin_bswap32(v);
		}
	}
	PUT(pl_reporter_put(sim.reporters[r], sim.now,
		&(const struct pl_dta_report){ .op = PL_DTA_SKETCH,
			.store = SKETCH,
			.epoch = 1,
			.first_column = first,
			.data = (const void *)cells,
			.data_bytes = n * 8 }));
}

static void put_all(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t r = (uint32_t)pl_rng_below(&sim.rng, REPORTERS);

		put_value(r, (uint32_t)pl_rng_below(&sim.rng, KEYS));
		put_entries(r, (uint32_t)pl_rng_below(&sim.rng, LISTS));
		put_increment(r, (uint32_t)pl_rng_below(&sim.rng, KEYS));
		if (i < FLOWS)
			put_path(i);
		if (i % 4 == 0 && i / 4 * 4 < COLUMNS) {
			for (r = 0; r < REPORTERS; r++)
				put_columns(r, i, 4);
		}
		if (pl_rng_below(&sim.rng, 4) == 0)
			pl_reporter_flush(sim.reporters[r % REPORTERS], sim.now);
		step(pl_rng_below(&sim.rng, 200 * US));
	}
}

/* ---- what is there ---- */

static uint64_t wrong_values(uint64_t *missing)
{
	struct pl_key_write kw;
	uint64_t wrong = 0;

	(void)pl_key_write_init(&kw, &stores[KEY_WRITE].params, sim.memory[KEY_WRITE].base);
	for (uint32_t r = 0; r < REPORTERS; r++) {
		for (uint32_t k = 0; k < KEYS; k++) {
			const uint32_t key[2] = { r, k };
			uint32_t value[2] = { 0 };
			struct pl_key_write_result got = pl_key_write_get(
				&kw, pl_key_write_key(&kw, key, sizeof(key)), 1, value);

			if (sim.value[r][k] == 0)
				wrong += got.answer != PL_NOT_FOUND;
			else if (got.answer != PL_FOUND)
				(*missing)++;
			else
				wrong += value[0] != sim.value[r][k] || value[1] != (r ^ k);
		}
	}
	return wrong;
}

/* Each reporter's entries of each list, each once, in their order. */
static uint64_t wrong_entries(uint64_t *missing)
{
	struct pl_append a;
	uint64_t wrong = 0;

	(void)pl_append_init(&a, &stores[APPEND].params, sim.memory[APPEND].base);
	for (uint32_t list = 0; list < LISTS; list++) {
		uint32_t next[REPORTERS] = { 0 };
		struct pl_append_reader reader;
		struct entry e;

		pl_append_reader_init(&reader, &a, list, 0);
		while (pl_append_read(&reader, &e, NULL, 1) == 1)
			wrong += e.reporter >= REPORTERS || e.number != next[e.reporter]++;
		wrong += reader.damaged + reader.overrun;
		for (uint32_t r = 0; r < REPORTERS; r++)
			*missing += sim.appended[r][list] - next[r];
	}
	return wrong;
}

static uint64_t wrong_sums(void)
{
	struct pl_counters c;
	uint64_t wrong = 0, total = 0;

	(void)pl_counters_init(&c, &stores[COUNTERS].params, sim.memory[COUNTERS].base);
	for (uint32_t k = 0; k < KEYS; k++) {
		wrong += pl_counters_get(&c, pl_counters_key(&c, &k, sizeof(k))) < sim.sums[k];
		total += sim.sums[k];
	}
	return wrong + (fabs(pl_counters_total(&c) - (double)total) > 0.5);
}

static uint64_t wrong_paths(uint64_t *missing)
{
	struct pl_postcards p;
	uint64_t wrong = 0;

	(void)pl_postcards_init(&p, &stores[POSTCARDS].params, sim.memory[POSTCARDS].base);
	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		uint32_t values[HOPS];
		struct pl_postcards_result got = pl_postcards_get(
			&p, pl_postcards_key(&p, &flow, sizeof(flow)), NULL, values);

		if (got.answer != PL_FOUND) {
			(*missing)++;
			continue;
		}
		wrong += got.n != path_length(flow);
		for (uint32_t hop = 1; hop <= got.n; hop++)
			wrong += values[hop - 1] != node(flow, hop);
	}
	return wrong;
}

static uint64_t wrong_cells(uint64_t *missing)
{
	struct pl_sketch s;
	const uint8_t *cells = (const uint8_t *)sim.memory[SKETCH].base + PL_SKETCH_CELLS_AT;

	(void)pl_sketch_init(&s, &stores[SKETCH].params, sim.memory[SKETCH].base);
	*missing += COLUMNS - pl_sketch_completed(&s);
	return memcmp(cells, sim.cells, pl_sketch_completed(&s) * 8) != 0;
}

/* ---- a run ---- */

static bool start(uint64_t seed, bool sequenced)
{
	const struct pl_translator_config config = { .stores = stores,
		.n_stores = STORES,
		.nack_interval_ns = 200 * US,
		.nack_tries = sequenced ? 1000 : 0 };
	const struct pl_reporter_config reporter = { .form = PL_DTA_PATHLINE,
		.sequenced = sequenced,
		.datagram_bytes = 400,
		.linger_ns = 300 * US,
		.ring = 256,
		.rate = 20000,
		.probe_ns = MS,
		.probes = 60 };
	struct pl_op_sink sink = { pl_apply_ops, from_translator, &sim.apply };
	bool good;

	for (unsigned int i = 0; i < STORES; i++) {
		struct pl_apply_store *m = &sim.memory[i];

		if (m->base == NULL) {
			(void)pl_store_bytes(&stores[i].params, &m->bytes, NULL);
			m->base = aligned_alloc(64, m->bytes);
		}
		memset(m->base, 0, m->bytes);
	}
	memset(&sim.apply, 0, sizeof(sim.apply));
	sim.apply.stores = sim.memory;
	sim.apply.collectors = 1;
	sim.apply.n_stores = STORES;
	sim.n_flight = 0;
	sim.overflow = sim.put = 0;
	memset(sim.value, 0, sizeof(sim.value));
	memset(sim.appended, 0, sizeof(sim.appended));
	memset(sim.sums, 0, sizeof(sim.sums));
	memset(sim.cells, 0, sizeof(sim.cells));
	pl_rng_seed(&sim.rng, seed);
	sim.now = MS;
	sim.loss = pl_rng_unit(&sim.rng) * 0.2;
	sim.twice = pl_rng_unit(&sim.rng) * 0.1;
	sim.late = pl_rng_unit(&sim.rng) * 0.3;
	good = pl_translator_new(&sim.translator, &config, &sink, NULL) == 0;
	for (uintptr_t i = 0; i < REPORTERS; i++)
		good = good && pl_reporter_new(&sim.reporters[i], &reporter, from_reporter,
				       (void *)i, NULL) == 0;
	return good;
}

static void stop(void)
{
	pl_translator_free(sim.translator);
	for (unsigned int i = 0; i < REPORTERS; i++)
		pl_reporter_free(sim.reporters[i]);
}

/* Until everything has arrived, or for so long that it never will. */
static void settle(void)
{
	for (unsigned int i = 0; i < REPORTERS; i++)
		pl_reporter_flush(sim.reporters[i], sim.now);
	for (unsigned int i = 0; i < 2000; i++)
		step(100 * US);
	pl_translator_flush(sim.translator, sim.now);
}

static uint64_t open_accounts(void)
{
	const struct pl_translator_counters *c = pl_translator_counters(sim.translator);
	struct pl_translator_held held = pl_translator_held(sim.translator);
	uint64_t sum = c->accepted + c->duplicates, open = 0;

	for (int i = 0; i < PL_DTA_VERDICT_MAX; i++)
		sum += c->faults[i];
	for (int i = 0; i < PL_REFUSED_MAX; i++)
		sum += c->refused[i];
	open += c->reports != sum;
	open += held.entries + held.increments + held.postcards;
	open += c->entries != c->entries_published;
	open += c->by_primitive[PL_COUNTERS] != c->increments_merged;
	open += c->by_primitive[PL_POSTCARDS] !=
		c->postcards_written + c->postcards_left_out + c->postcards_repeated;
	open += c->writes != sim.apply.writes || c->adds != sim.apply.adds;
	open += sim.apply.outside + sim.apply.no_store + sim.apply.overflows;
	return open;
}

struct totals {
	uint64_t wrong, missing, open, lost, refused_gap, duplicates, put;
};

static bool run(uint64_t seed, bool sequenced, struct totals *sum)
{
	uint64_t wrong = 0, missing = 0, open;
	const struct pl_translator_counters *c;

	if (!start(seed, sequenced))
		return false;
	put_all();
	settle();
	c = pl_translator_counters(sim.translator);
	open = open_accounts();
	if (sequenced) {
		/* Each report once, each in its turn. */
		open += c->accepted != sim.put;
		wrong += wrong_values(&missing) + wrong_entries(&missing) + wrong_sums() +
			 wrong_paths(&missing) + wrong_cells(&missing);
	} else {
		/* Without numbers there is loss and there are doubles; what an answer says must
		 * still be one that was put. Values may be older ones; paths and columns may be
		 * missing. */
		wrong += wrong_paths(&missing);
		missing = 0;
	}
	sum->wrong += wrong;
	sum->missing += missing;
	sum->open += open;
	sum->lost += c->lost;
	sum->refused_gap += c->refused[PL_REFUSED_GAP];
	sum->duplicates += c->duplicates;
	sum->put += sim.put;
	if (wrong + missing + open + c->lost > 0)
		printf("# seed %" PRIu64 ": %" PRIu64 " wrong, %" PRIu64 " missing, %" PRIu64
		       " accounts open, %" PRIu64 " lost, %" PRIu64 " of %" PRIu64 " accepted\n",
			seed, wrong, missing, open, c->lost, c->accepted, sim.put);
	stop();
	return true;
}

static uint64_t number_of(const char *variable, uint64_t fallback)
{
	const char *text = getenv(variable);

	return text != NULL ? strtoull(text, NULL, 10) : fallback;
}

int main(void)
{
	uint64_t first = number_of("PL_SEED", 1);
	uint64_t n = getenv("PL_SEED") != NULL ? 1 : number_of("PL_SEEDS", 2000);
	struct totals with = { 0 }, without = { 0 };

	for (uint64_t seed = first; seed < first + n; seed++) {
		if (!run(seed, true, &with) || !run(seed, false, &without))
			return EXIT_FAILURE;
	}
	printf("# seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " reports; %" PRIu64
	       " came out of turn, %" PRIu64 " twice\n",
		first, first + n - 1, with.put, with.refused_gap, with.duplicates);
	ok(with.refused_gap > 0 && with.duplicates > 0, "the link was bad");
	eq(with.wrong, 0, "numbered: no wrong answer");
	eq(with.missing, 0, "numbered: nothing missing");
	eq(with.lost, 0, "numbered: every gap was filled");
	eq(with.open, 0, "numbered: accounts close, each report accepted once");
	eq(without.wrong, 0, "not numbered: no path that never was");
	eq(without.open, 0, "not numbered: accounts close");
	return pl_test_done();
}
