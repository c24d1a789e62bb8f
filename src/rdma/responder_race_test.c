/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A responder executes writes into stores that others read meanwhile: lists whose heads are written
 * behind their entries, and last values. Every answer is one that was written, to the byte, and no
 * entry is missing that a head speaks of. Under the thread sanitizer it also shows that both sides
 * meet in atomic words only.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/rng.h"
#include "memory/append.h"
#include "memory/key_write.h"
#include "memory/words.h"
#include "rdma/test_responder.h"

#if defined(__SANITIZE_THREAD__)
#define ROUNDS 2000u
#else
#define ROUNDS 15000u
#endif
#define KEYS    8u
#define BATCH   4u
#define READERS 2
#define AT_ONCE 16u

struct race {
	struct bench b;
	struct pl_append list;
	struct pl_key_write kw;
	atomic_bool over;
	_Atomic uint64_t begun; /* the round that the writer is at */
	_Atomic unsigned int readers;
	_Atomic uint64_t read, wrong, damaged;
};

/* General: a rule beyond addresses keeps requests from the fast path. */
static void init_race(struct race *race, bool general)
{
	struct pl_rdma_qp c = qp_config(PL_ROCE_RC);

	c.min_ttl = general ? 1 : 0;
	init_with(&race->b, &c, PL_RDMA_WRITE, 5);
}

static void place(struct race *race, uint64_t offset, const void *bytes, uint32_t n)
{
	struct pl_roce p = request(&race->b, PL_ROCE_WRITE_ONLY, n);

	memcpy(data, bytes, n);
	p.va = VA + offset;
	give_request(&race->b, &p, n);
	if (race->b.cause != PL_RDMA_C_OK)
		abort();
}

static void run(struct race *race, void *(*reader)(void *), void (*write)(struct race *))
{
	pthread_t threads[READERS];

	for (int i = 0; i < READERS; i++)
		pthread_create(&threads[i], NULL, reader, race);
	while (atomic_load(&race->readers) < READERS)
		sched_yield();
	write(race);
	atomic_store(&race->over, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
}

static void judge(struct race *race, const char *what)
{
	printf("# %s: %" PRIu64 " read\n", what, atomic_load(&race->read));
	eq(atomic_load(&race->wrong), 0, "%s: nothing is wrong or torn", what);
	eq(atomic_load(&race->damaged), 0, "%s: nothing is there in half", what);
	ok(atomic_load(&race->read) > 0, "%s: while it was written", what);
	done(&race->b);
}

/* Bytes that all follow from a number, which is the first of them. */
static void bytes_of(uint64_t number, uint8_t *ret, size_t n)
{
	struct pl_rng rng;

	pl_rng_seed(&rng, number);
	for (size_t i = 0; i < n; i += 8) {
		const uint64_t word = i == 0 ? number : pl_rng_u64(&rng);

		memcpy(ret + i, &word, n - i < 8 ? n - i : 8);
	}
}

/* ---- lists ---- */

static void *read_list(void *arg)
{
	static _Thread_local uint8_t entries[AT_ONCE * 128], want[128];
	struct race *race = arg;
	struct pl_append_reader r;
	uint64_t numbers[AT_ONCE], n_read = 0, wrong = 0;
	bool over;

	atomic_fetch_add(&race->readers, 1);
	pl_append_reader_init(&r, &race->list, 0, 0);
	do {
		size_t n;

		over = atomic_load(&race->over);
		while ((n = pl_append_read(&r, entries, numbers, AT_ONCE)) > 0) {
			for (size_t i = 0; i < n; i++) {
				bytes_of(numbers[i] + 1, want, race->list.entry_bytes);
				wrong += memcmp(entries + i * race->list.entry_bytes, want,
						 race->list.entry_bytes) != 0;
			}
			n_read += n;
		}
	} while (!over);
	atomic_fetch_add(&race->read, n_read);
	atomic_fetch_add(&race->wrong, wrong);
	atomic_fetch_add(&race->damaged, r.damaged);
	return NULL;
}

/* Entries, then the head that counts them, as a translator writes them. */
static void write_list(struct race *race)
{
	const struct pl_append *a = &race->list;
	static uint8_t entry[128], images[BATCH * 136];

	for (uint64_t first = 0; first < BATCH * (uint64_t)ROUNDS; first += BATCH) {
		const uint64_t head = first + BATCH;
		struct pl_extent runs[2];
		unsigned int n = pl_append_place(a, 0, first, BATCH, runs);
		uint32_t at = 0;

		for (uint64_t i = 0; i < BATCH; i++) {
			bytes_of(first + i + 1, entry, a->entry_bytes);
			pl_append_image(a, 0, first + i, entry, images + i * a->entry_stride);
		}
		for (unsigned int k = 0; k < n; k++) {
			place(race, runs[k].offset, images + at, (uint32_t)runs[k].bytes);
			at += (uint32_t)runs[k].bytes;
		}
		place(race, pl_append_head_place(a, 0).offset, &head, sizeof(head));
		if (first % 64 == 0)
			sched_yield();
	}
}

static void lists(bool general, bool sealed, uint32_t entry_bytes)
{
	static struct race race;
	const struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.append = { .slots = 32,
			.lists = 1,
			.entry_bytes = entry_bytes,
			.batch_max = BATCH,
			.sealed = sealed } };
	char what[96];

	race = (struct race){ .over = false };
	init_race(&race, general);
	if (pl_append_init(&race.list, &params, region) < 0)
		abort();
	run(&race, read_list, write_list);
	snprintf(what, sizeof(what), "%s list of %u bytes, %s", sealed ? "sealed" : "unsealed",
		entry_bytes, general ? "the general way" : "the fast path");
	judge(&race, what);
}

/* ---- last values ---- */

static struct pl_key key_of(const struct race *race, uint32_t key)
{
	return pl_key_write_key(&race->kw, &key, sizeof(key));
}

static void *read_values(void *arg)
{
	static _Thread_local uint8_t value[PL_VALUE_MAX], want[PL_VALUE_MAX];
	struct race *race = arg;
	const uint32_t n = race->kw.value_bytes;
	uint64_t n_read = 0, wrong = 0, word;

	atomic_fetch_add(&race->readers, 1);
	while (!atomic_load(&race->over)) {
		for (uint32_t k = 0; k < KEYS; k++) {
			if (pl_key_write_get(&race->kw, key_of(race, k), 1, value).answer !=
				PL_FOUND)
				continue;
			memcpy(&word, value, sizeof(word));
			bytes_of(word, want, n);
			wrong += word % KEYS != k || word / KEYS > atomic_load(&race->begun) ||
				 memcmp(value, want, n) != 0;
			n_read++;
		}
	}
	atomic_fetch_add(&race->read, n_read);
	atomic_fetch_add(&race->wrong, wrong);
	return NULL;
}

static void write_values(struct race *race)
{
	static uint8_t value[PL_VALUE_MAX], image[PL_VALUE_MAX + 16];
	const struct pl_key_write *kw = &race->kw;

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		const uint32_t k = (uint32_t)(round % KEYS);
		const struct pl_key key = key_of(race, k);

		atomic_store(&race->begun, round);
		bytes_of(round * KEYS + k, value, kw->value_bytes);
		pl_key_write_image(kw, key, value, image);
		for (unsigned int copy = 0; copy < kw->copies; copy++)
			place(race, pl_key_write_offset(kw, key, copy), image, kw->write_bytes);
		if (round % 64 == 0)
			sched_yield();
	}
}

static void values(bool general, uint32_t value_bytes)
{
	static struct race race;
	const struct pl_store_params params = { .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.key_write = { .slots = 61, .value_bytes = value_bytes, .copies = 2 } };
	char what[96];

	race = (struct race){ .over = false };
	init_race(&race, general);
	if (pl_key_write_init(&race.kw, &params, region) < 0)
		abort();
	run(&race, read_values, write_values);
	snprintf(what, sizeof(what), "values of %u bytes, %s", value_bytes,
		general ? "the general way" : "the fast path");
	judge(&race, what);
}

/* ---- bytes at any place ---- */

/* What memcpy does, and no byte more. */
static void any_place(void)
{
	static _Alignas(16) uint8_t to[256], want[256];
	uint8_t from[256];
	unsigned int wrong = 0;

	bytes_of(1, from, sizeof(from));
	for (size_t at = 0; at < 24; at++) {
		for (size_t skip = 0; skip < 3; skip++) {
			for (size_t n = 0; n <= 200; n++) {
				memset(to, 0xee, sizeof(to));
				memset(want, 0xee, sizeof(want));
				memcpy(want + at, from + skip, n);
				pl_words_place(to + at, from + skip, n);
				wrong += memcmp(to, want, sizeof(to)) != 0;
			}
		}
	}
	eq(wrong, 0, "any bytes to any place");
}

int main(void)
{
	any_place();
	for (int general = 0; general < 2; general++) {
		lists(general, true, 24);
		lists(general, true, 100);
		lists(general, false, 8);
		lists(general, false, 20);
		values(general, 12);
		values(general, 60);
	}
	return pl_test_done();
}
