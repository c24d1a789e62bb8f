/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Append: addresses as published (without the loss at the wrap), rings read while they are written,
 * and what a reader says of entries that were overwritten, lost on the way, torn, or written and
 * never published.
 */
#include "memory/append.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "base/rng.h"
#include "base/test.h"
#include "memory/test_memory.h"

struct list {
	struct pl_append a;
	uint8_t *base;
	uint64_t bytes;
};

static struct list make(
	uint64_t slots, uint32_t lists, uint32_t entry_bytes, uint32_t batch_max, bool sealed)
{
	struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 5,
		.append = { slots, lists, entry_bytes, batch_max, sealed } };
	struct list l;

	if (pl_store_bytes(&params, &l.bytes, NULL) < 0)
		abort();
	l.base = memory_for(&params);
	if (pl_append_init(&l.a, &params, l.base) < 0)
		abort();
	return l;
}

/* An entry whose bytes all follow from its number. */
static void entry_of(uint64_t number, uint8_t *entry, uint32_t bytes)
{
	struct pl_rng rng;

	pl_rng_seed(&rng, number);
	for (uint32_t i = 0; i < bytes; i += 4) {
		uint64_t v = pl_rng_u64(&rng);

		memcpy(entry + i, &v, bytes - i < 4 ? bytes - i : 4);
	}
}

static void put(const struct list *l, uint32_t list, uint64_t first, size_t n)
{
	uint8_t *entries = malloc(n * l->a.entry_bytes + 1);

	for (size_t i = 0; i < n; i++)
		entry_of(first + i, entries + i * l->a.entry_bytes, l->a.entry_bytes);
	eq(pl_append_put(&l->a, list, entries, n), first, "%zu entries from number %" PRIu64, n,
		first);
	free(entries);
}

/* Reads all there is; how many of what came out is not what was put in under that number. */
static size_t drain(struct pl_append_reader *r, unsigned int *wrong)
{
	uint8_t entries[50 * 128], want[128];
	uint64_t numbers[50];
	size_t got, all = 0;

	while ((got = pl_append_read(r, entries, numbers, 50)) > 0) {
		for (size_t i = 0; i < got; i++) {
			entry_of(numbers[i], want, r->a->entry_bytes);
			*wrong += memcmp(entries + i * r->a->entry_bytes, want,
					  r->a->entry_bytes) != 0;
		}
		all += got;
	}
	return all;
}

static void addresses(void)
{
	static const unsigned int want[] = { 0, 4, 8, 12, 0, 4, 8, 12, 0 };
	struct list l = make(16, 4, 4, 4, false);
	struct pl_extent e[2];

	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		eq(pl_append_place(&l.a, 2, (uint64_t)4 * i, 4, e), 1);
		eq(e[0].offset, 2 * l.a.list_stride + 64 + 4 * want[i], "batch %u at slot %u", i,
			want[i]);
		eq(e[0].bytes, 16);
	}
	eq(pl_append_place(&l.a, 0, 14, 4, e), 2, "around the end in two runs");
	ok(e[0].offset == 64 + 14 * 4 && e[0].bytes == 8 && e[1].offset == 64 && e[1].bytes == 8);
	eq(pl_append_place(&l.a, 0, 16, 16, e), 1, "a whole round in one");
	free(l.base);
}

static void dta_bytes(void)
{
	static const uint32_t entries[4] = { 0x11223344, 2, 3, 4 };
	struct list l = make(16, 1, 4, 4, false);

	pl_append_put(&l.a, 0, entries, 4);
	memeq(l.base + 64, "\x44\x33\x22\x11\x02\0\0\0\x03\0\0\0\x04\0\0\0", 16,
		"little-endian words");
	memeq(l.base, "\x04\0\0\0\0\0\0\0", 8, "and the head");
	free(l.base);
}

static void images(void)
{
	static const uint32_t sizes[] = { 1, 13, 14, 18, 64, 128 };

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		struct list l = make(64, 2, sizes[s], 8, true),
			    remote = make(64, 2, sizes[s], 8, true);
		uint8_t entry[128], image[136];
		struct pl_extent e[2];

		put(&l, 1, 0, 70);
		for (uint64_t i = 0; i < 70; i++) {
			entry_of(i, entry, sizes[s]);
			pl_append_image(&remote.a, 1, i, entry, image);
			pl_append_place(&remote.a, 1, i, 1, e);
			memcpy(remote.base + e[0].offset, image, e[0].bytes);
		}
		e[0] = pl_append_head_place(&remote.a, 1);
		memcpy(remote.base + e[0].offset, "\x46\0\0\0\0\0\0", 8);
		memeq(remote.base, l.base, l.bytes,
			"entries of %u bytes: who writes by geometry writes the same", sizes[s]);
		free(l.base);
		free(remote.base);
	}
}

static void rounds(bool sealed)
{
	struct list l = make(64, 2, 16, 8, sealed);
	struct pl_append_reader r;
	unsigned int wrong = 0;

	pl_append_reader_init(&r, &l.a, 0, 0);
	eq(drain(&r, &wrong), 0, "nothing yet");
	put(&l, 0, 0, 3);
	put(&l, 0, 3, 30);
	eq(drain(&r, &wrong), 33, "%s: all of it", sealed ? "sealed" : "bare");
	put(&l, 0, 33, 56);
	eq(drain(&r, &wrong), 56, "around the end");
	put(&l, 0, 89, 57);
	eq(drain(&r, &wrong), 56, "one more than is kept");
	eq(r.overrun, 1, "is an overrun of one");
	put(&l, 0, 146, 1000);
	eq(drain(&r, &wrong), 56);
	eq(r.overrun, 945, "many rounds");
	eq(wrong, 0, "what came was what was put");
	eq(r.damaged + r.head_resets, 0);
	eq(pl_append_oldest(&l.a, 0), 1146 - 56);
	pl_append_reader_init(&r, &l.a, 0, 1100);
	eq(drain(&r, &wrong), 46, "from a number");
	eq(pl_append_head(&l.a, 1), 0, "the other list is empty");
	free(l.base);
}

/* A sealed entry that never arrived, though the head went on, is of an older round: it is not
 * given. */
static void lost_on_the_way(void)
{
	struct list l = make(16, 1, 16, 4, true);
	struct pl_append_reader r;
	unsigned int wrong = 0;
	uint64_t head = 20;

	put(&l, 0, 0, 16);
	memcpy(l.base, &head, 8);
	pl_append_reader_init(&r, &l.a, 0, 12);
	eq(drain(&r, &wrong), 4, "those before");
	eq(r.damaged, 4, "those that are of the round before count as damaged");
	eq(r.cursor, 20);
	eq(wrong, 0);
	free(l.base);
}

/* Every bit of a published entry, its number and its check value. */
static void torn(void)
{
	struct list l = make(16, 1, 20, 4, true);
	unsigned int seen = 0, wrong = 0;

	put(&l, 0, 0, 2);
	for (unsigned int bit = 0; bit < 8 * l.a.entry_stride; bit++) {
		struct pl_append_reader r;
		uint8_t *at = l.base + 64 + bit / 8;

		/* Zeros that fill up are not the entry's. */
		if (bit / 8 >= 20 && bit / 8 < 24)
			continue;
		*at ^= (uint8_t)(1 << bit % 8);
		pl_append_reader_init(&r, &l.a, 0, 0);
		seen += drain(&r, &wrong) == 1 && r.damaged == 1 && r.cursor == 2;
		*at ^= (uint8_t)(1 << bit % 8);
	}
	eq(seen, 28 * 8, "each bit of an entry is told, and the next one is read");
	eq(wrong, 0);
	free(l.base);
}

static void killed_writer(void)
{
	struct list l = make(64, 1, 16, 8, true);
	uint8_t entry[16], image[24];
	struct pl_append_reader r;
	unsigned int wrong = 0;
	struct pl_extent e[2];

	put(&l, 0, 0, 60);
	for (uint64_t i = 60; i < 66; i++) { /* written, and then it was killed */
		entry_of(i, entry, 16);
		pl_append_image(&l.a, 0, i, entry, image);
		pl_append_place(&l.a, 0, i, 1, e);
		memcpy(l.base + e[0].offset, image, i == 65 ? 12 : 24);
	}
	eq(pl_append_unpublished(&l.a, 0), 5, "five whole, the sixth half");
	pl_append_reader_init(&r, &l.a, 0, 0);
	eq(drain(&r, &wrong), 56, "readers have what was published and is not being overwritten");
	eq(r.damaged, 0);
	put(&l, 0, 60, 8);
	eq(drain(&r, &wrong), 8, "the next writer goes on at the head");
	eq(wrong, 0);
	free(l.base);
}

static void new_list_in_its_place(void)
{
	struct list l = make(16, 1, 16, 4, true);
	struct pl_append_reader r;
	unsigned int wrong = 0;

	put(&l, 0, 0, 10);
	pl_append_reader_init(&r, &l.a, 0, 0);
	eq(drain(&r, &wrong), 10);
	memset(l.base, 0, l.bytes);
	put(&l, 0, 0, 3);
	eq(drain(&r, &wrong), 3, "read from its beginning");
	eq(r.head_resets, 1, "and counted");
	free(l.base);
}

/* ---- while it is written ---- */

struct race {
	struct list l;
	uint64_t n;
	uint64_t got, overrun, damaged, wrong;
};

static void *race_reader(void *arg)
{
	struct race *race = arg;
	struct pl_append_reader r;
	unsigned int wrong = 0;

	pl_append_reader_init(&r, &race->l.a, 0, 0);
	while (r.cursor < race->n)
		__atomic_fetch_add(&race->got, drain(&r, &wrong), __ATOMIC_RELAXED);
	__atomic_fetch_add(&race->overrun, r.overrun, __ATOMIC_RELAXED);
	__atomic_fetch_add(&race->damaged, r.damaged, __ATOMIC_RELAXED);
	__atomic_fetch_add(&race->wrong, wrong, __ATOMIC_RELAXED);
	return NULL;
}

static void while_written(bool sealed, uint64_t seed)
{
	struct race race = { .l = make(4096, 1, 32, 16, sealed), .n = 300000 };
	static uint8_t entries[40 * 32];
	pthread_t readers[2];
	struct pl_rng rng;

	pl_rng_seed(&rng, seed);
	for (int i = 0; i < 2; i++)
		pthread_create(&readers[i], NULL, race_reader, &race);
	for (uint64_t done = 0; done < race.n;) {
		size_t n = 1 + pl_rng_below(&rng, 40);

		n = n < race.n - done ? n : race.n - done;
		for (size_t i = 0; i < n; i++)
			entry_of(done + i, entries + i * 32, 32);
		pl_append_put(&race.l.a, 0, entries, n);
		done += n;
		/* So that readers come to run on a busy machine too, in the middle of things. */
		if (pl_rng_below(&rng, 64) == 0)
			sched_yield();
	}
	for (int i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	printf("# seed %" PRIu64 ": %" PRIu64 " read, %" PRIu64 " overrun\n", seed, race.got,
		race.overrun);
	eq(race.wrong, 0, "%s: two readers never saw a torn or old entry",
		sealed ? "sealed" : "bare");
	eq(race.damaged, 0, "nor took one for damaged");
	eq(race.got + race.overrun, 2 * race.n, "read + overrun = written");
	ok(race.got > 0);
	free(race.l.base);
}

/* ---- heads that are not what the entries say ---- */

static const struct {
	uint64_t slots, first, n;
	uint32_t batch;
} situations[] = {
	{ 64, 0, 1, 4 },
	{ 64, 0, 50, 16 },
	{ 64, 0, 64, 4 },
	{ 64, 0, 5000, 4 },
	{ 48, 0, 47, 4 },
	{ 48, 0, 5000, 4 },
	{ 4096, 0, 3000, 64 },
	{ 64, (UINT64_C(1) << 32) - 20, 50, 4 },
	{ 48, (UINT64_C(1) << 32) - 200, 500, 4 },
	{ 48, (UINT64_C(77) << 40) + 12345, 30, 4 },
};

/* Each byte of the head changed, one at a time: told whenever it can be. */
static void wrong_heads(void)
{
	static const uint8_t masks[] = { 1, 0x10, 0x80, 0xff };
	uint64_t head, end, is, must;
	unsigned int wrong = 0, low = 0, high = 0;

	for (size_t i = 0; i < sizeof(situations) / sizeof(situations[0]); i++) {
		struct list l = make(situations[i].slots, 2, 20, situations[i].batch, true);
		uint64_t kept = l.a.slots - l.a.batch_max;

		end = situations[i].first + situations[i].n;
		pl_append_publish(&l.a, 1, situations[i].first);
		put(&l, 1, situations[i].first, situations[i].n);
		eq(pl_append_examine(&l.a, 1, 0, &is, &must), PL_HEAD_FITS, "a head that fits");
		eq(pl_append_examine(&l.a, 0, 0, &is, &must), PL_HEAD_FITS, "an empty list's");
		for (unsigned int k = 0; k < 8 * sizeof(masks); k++) {
			enum pl_append_head_is want, got;

			head = end ^ (uint64_t)masks[k % sizeof(masks)] << 8 * (k / sizeof(masks));
			want = head < end           ? PL_HEAD_LOW
			       : head - end >= kept ? PL_HEAD_HIGH
						    : PL_HEAD_FITS;
			pl_append_publish(&l.a, 1, head);
			got = pl_append_examine(&l.a, 1, 0, &is, &must);
			wrong +=
				got != want || (got != PL_HEAD_FITS && (is != head || must != end));
			low += got == PL_HEAD_LOW;
			high += got == PL_HEAD_HIGH;
		}
		free(l.base);
	}
	eq(wrong, 0, "each byte of a head changed: told, with what it was");
	ok(low > 20 && high > 200, "%u too low, %u too high", low, high);
}

/* What a writer or the way leaves behind is no wrong head. */
static void right_heads(void)
{
	struct list l = make(64, 1, 20, 4, true), bare = make(64, 1, 20, 4, false);
	uint64_t is = 7, must = 7;
	struct pl_rng rng;

	put(&l, 0, 0, 30);
	pl_append_publish(&l.a, 0, 27);
	eq(pl_append_examine(&l.a, 0, 4, &is, &must), PL_HEAD_FITS,
		"three not published by who was killed");
	eq(pl_append_examine(&l.a, 0, 0, &is, &must), PL_HEAD_LOW, "nobody closes a list so");
	eq(must, 30);
	pl_append_publish(&l.a, 0, 25);
	eq(pl_append_examine(&l.a, 0, 4, &is, &must), PL_HEAD_LOW, "five are more than a batch");
	pl_append_publish(&l.a, 0, 30 + 50);
	eq(pl_append_examine(&l.a, 0, 4, &is, &must), PL_HEAD_FITS,
		"fifty entries lost on the way");
	pl_append_publish(&l.a, 0, 30);
	l.base[64 + 29 * l.a.entry_stride] ^= 1;
	eq(pl_append_examine(&l.a, 0, 0, &is, &must), PL_HEAD_FITS, "the last one damaged");
	pl_rng_seed(&rng, 3);
	for (uint64_t i = 64; i < l.bytes; i++)
		l.base[i] = (uint8_t)pl_rng_u64(&rng);
	eq(pl_append_examine(&l.a, 0, 0, &is, &must), PL_HEAD_FITS,
		"nothing proves itself: it cannot be told");
	pl_append_publish(&bare.a, 0, UINT64_MAX);
	eq(pl_append_examine(&bare.a, 0, 0, &is, &must), PL_HEAD_FITS, "nor without seals");
	free(l.base);
	free(bare.base);
}

int main(void)
{
	addresses();
	dta_bytes();
	images();
	rounds(false);
	rounds(true);
	lost_on_the_way();
	torn();
	killed_writer();
	new_list_in_its_place();
	wrong_heads();
	right_heads();
	while_written(true, 1);
	while_written(false, 2);
	return pl_test_done();
}
