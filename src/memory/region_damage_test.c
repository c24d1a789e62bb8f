/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What damage costs. Every bit of small stores is turned, one at a time: the entry it hits is told
 * to be gone, never given back changed, and all others stay. And power is cut: of the sectors
 * written after the last write to disk some are there and some are not, entries that lie across two
 * are torn; what was on disk by then is whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/test.h"
#include "memory/append.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/region.h"

static char folder[] = "/tmp/pathline-damage-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* Bytes that all follow from a number. */
static void bytes_of(uint64_t number, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(number * 131 + i * 7 + (number >> 8));
	memcpy(bytes, &number, n < sizeof(number) ? n : sizeof(number));
}

static uint8_t *memory_for(const struct pl_store_params *params, uint64_t *ret_bytes)
{
	uint8_t *base;

	if (pl_store_bytes(params, ret_bytes, NULL) < 0)
		abort();
	base = aligned_alloc(64, *ret_bytes);
	if (base == NULL)
		abort();
	memset(base, 0, *ret_bytes);
	return base;
}

/* ---- one bit ---- */

/* What came of all turns of a bit: entries gone, entries given back changed, turns that cost more
 * than one entry. */
struct cost {
	uint64_t gone, changed, more;
};

enum { KEYS = 12, VALUE = 20 };

static struct cost key_write_cost(const struct pl_key_write *kw, uint64_t bytes)
{
	struct cost cost = { 0, 0, 0 };

	for (uint64_t bit = 0; bit < bytes * 8; bit++) {
		unsigned int gone = 0;

		kw->base[bit / 8] ^= (uint8_t)(1 << bit % 8);
		for (uint32_t k = 0; k < KEYS; k++) {
			uint8_t want[VALUE], got[VALUE];

			bytes_of(k, want, VALUE);
			if (pl_key_write_get(kw, pl_key_write_key(kw, &k, 4), 1, got).answer !=
				PL_FOUND)
				gone++;
			else
				cost.changed += memcmp(want, got, VALUE) != 0;
		}
		kw->base[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cost.gone += gone;
		cost.more += gone > 1;
	}
	return cost;
}

static void bits_of_key_write(void)
{
	const struct pl_store_params params = { .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 5,
		.key_write = { 1024, VALUE, 1 } };
	struct pl_key_write kw;
	unsigned int there = 0;
	struct cost cost;
	uint64_t bytes;
	uint8_t *base = memory_for(&params, &bytes), value[VALUE], slot[64];

	if (pl_key_write_init(&kw, &params, base) < 0)
		abort();
	for (uint32_t k = 0; k < KEYS; k++) {
		bytes_of(k, value, VALUE);
		pl_key_write_put(&kw, pl_key_write_key(&kw, &k, 4), value, 1);
	}
	for (uint32_t k = 0; k < KEYS; k++)
		there += pl_key_write_get(&kw, pl_key_write_key(&kw, &k, 4), 1, slot).answer ==
			 PL_FOUND;
	eq(there, KEYS, "key-write: all are there");
	cost = key_write_cost(&kw, bytes);
	eq(cost.gone, KEYS * (4 + VALUE) * 8, "each bit of check values and values costs its key");
	eq(cost.changed, 0, "none comes back changed");
	eq(cost.more, 0, "nor takes another one with it");
	free(base);
}

static void bits_of_append(void)
{
	enum { SLOTS = 16, N = 11, ENTRY = 20 };
	const struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 5,
		.append = { .slots = SLOTS,
			.lists = 1,
			.entry_bytes = ENTRY,
			.batch_max = 4,
			.sealed = true } };
	struct cost head = { 0, 0, 0 }, entries = { 0, 0, 0 };
	struct pl_append a;
	uint64_t bytes, lied = 0;
	uint8_t *base = memory_for(&params, &bytes), entry[ENTRY];

	if (pl_append_init(&a, &params, base) < 0)
		abort();
	for (uint64_t i = 0; i < N; i++) {
		bytes_of(i, entry, ENTRY);
		pl_append_put(&a, 0, entry, 1);
	}
	for (uint64_t bit = 0; bit < bytes * 8; bit++) {
		struct cost *cost = bit < 64 ? &head : &entries;
		uint8_t got[SLOTS * ENTRY];
		uint64_t number[SLOTS];
		struct pl_append_reader r;
		size_t n;

		base[bit / 8] ^= (uint8_t)(1 << bit % 8);
		pl_append_reader_init(&r, &a, 0, 0);
		n = pl_append_read(&r, got, number, SLOTS);
		base[bit / 8] ^= (uint8_t)(1 << bit % 8);
		for (size_t i = 0; i < n; i++) {
			bytes_of(number[i], entry, ENTRY);
			cost->changed +=
				number[i] >= N || memcmp(entry, got + i * ENTRY, ENTRY) != 0;
		}
		cost->gone += n < N ? N - n : 0;
		cost->more += n + 1 < N;
		lied += bit >= 64 && r.damaged != N - n;
	}
	eq(head.changed, 0, "append: with whatever head nothing comes back changed");
	/* 20 bytes, 4 of padding, number and check value. */
	eq(entries.gone, (uint64_t)N * 32 * 8, "each bit of an entry costs that entry");
	eq(entries.changed + entries.more, 0, "and nothing else");
	eq(lied, 0, "and is counted as damaged");
	free(base);
}

static void bits_of_postcards(void)
{
	enum { FLOWS = 9, HOPS = 5 };
	const struct pl_store_params params = { .primitive = PL_POSTCARDS,
		.hash = PL_HASH_PATHLINE,
		.seed = 5,
		.postcards = { 1024, HOPS, 1 } };
	struct cost cost = { 0, 0, 0 };
	struct pl_postcards p;
	uint64_t bytes;
	uint8_t *base = memory_for(&params, &bytes);

	if (pl_postcards_init(&p, &params, base) < 0)
		abort();
	for (uint32_t f = 0; f < FLOWS; f++) {
		const uint32_t path[HOPS] = { f, f + 1, f + 2, f + 3, f + 4 };

		(void)pl_postcards_put(&p, pl_postcards_key(&p, &f, 4), path, 1 + f % HOPS);
	}
	for (uint64_t bit = 0; bit < bytes * 8; bit++) {
		unsigned int gone = 0;

		base[bit / 8] ^= (uint8_t)(1 << bit % 8);
		for (uint32_t f = 0; f < FLOWS; f++) {
			uint32_t got[HOPS];
			struct pl_postcards_result r =
				pl_postcards_get(&p, pl_postcards_key(&p, &f, 4), NULL, got);

			gone += r.answer != PL_FOUND;
			for (unsigned int i = 0; i < r.n; i++)
				cost.changed += r.n != 1 + f % HOPS || got[i] != f + i;
		}
		base[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cost.gone += gone;
		cost.more += gone > 1;
	}
	eq(cost.gone, (uint64_t)FLOWS * (4 * HOPS + 4) * 8, "postcards: each bit costs its flow");
	eq(cost.changed + cost.more, 0, "and nothing else");
	free(base);
}

/* ---- power cut ---- */

enum { SECTOR = 512, BEFORE = 40, AFTER = 40, ENTRY = 300, LARGE = 900, CUTS = 400 };

struct image {
	uint8_t *bytes;
	size_t n;
};

static struct image file_of(const char *path)
{
	struct image image = { NULL, 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		abort();
	image.n = (size_t)st.st_size;
	image.bytes = malloc(image.n);
	if (image.bytes == NULL || pread(fd, image.bytes, image.n, 0) != (ssize_t)image.n)
		abort();
	close(fd);
	return image;
}

/* Each sector that differs is the one or the other. */
static void write_cut(
	const char *path, const struct image *old, const struct image *new, struct pl_rng *rng)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		abort();
	for (size_t at = 0; at < old->n; at += SECTOR) {
		const uint8_t *from = pl_rng_below(rng, 2) == 0 ? old->bytes : new->bytes;

		if (pwrite(fd, from + at, SECTOR, (off_t)at) != SECTOR)
			abort();
	}
	close(fd);
}

/* The region as it was on disk, and as it is in memory; `put` writes entry or value number i of the
 * given round. */
static void write_twice(const char *name, const struct pl_store_params *params,
	void (*put)(void *base, const struct pl_store_params *params, unsigned int round),
	struct image *ret_disk, struct image *ret_memory)
{
	char path[128];
	struct pl_region *g;

	snprintf(path, sizeof(path), "%s", path_of(name));
	if (pl_region_create(&g, path, params, NULL, NULL) < 0)
		abort();
	put(pl_region_store(g, 0), params, 0);
	eq(pl_region_sync(g), 0, "%s: on disk", name);
	*ret_disk = file_of(path);
	put(pl_region_store(g, 0), params, 1);
	*ret_memory = file_of(path);
	eq(ret_disk->n % SECTOR + (ret_disk->n ^ ret_memory->n), 0, "whole sectors");
	(void)pl_region_close(g);
}

static const void *opened(const char *path, struct pl_region **ret)
{
	struct pl_diag diag = { .text = "" };

	if (pl_region_open(ret, path, PL_REGION_READ, NULL, &diag) < 0) {
		ok(false, "a cut region opens: %s", diag.text);
		exit(pl_test_done());
	}
	return pl_region_store(*ret, pl_region_epoch(*ret));
}

static void put_entries(void *base, const struct pl_store_params *params, unsigned int round)
{
	uint8_t entry[ENTRY];
	struct pl_append a;

	if (pl_append_init(&a, params, base) < 0)
		abort();
	for (unsigned int i = 0; i < (round == 0 ? BEFORE : AFTER); i++) {
		bytes_of(pl_append_head(&a, 0), entry, ENTRY);
		pl_append_put(&a, 0, entry, 1);
	}
}

static void cut_append(void)
{
	const struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 5,
		.append = { .slots = 128,
			.lists = 1,
			.entry_bytes = ENTRY,
			.batch_max = 4,
			.sealed = true } };
	uint64_t wrong = 0, missing = 0, torn = 0, late = 0;
	struct image disk, memory;
	struct pl_rng rng;

	pl_rng_seed(&rng, 1);
	write_twice("append", &params, put_entries, &disk, &memory);
	for (int cut = 0; cut < CUTS; cut++) {
		static uint8_t got[128 * ENTRY];
		uint64_t number[128], seen = 0;
		struct pl_append_reader r;
		struct pl_region *g;
		struct pl_append a;
		const void *base;

		write_cut(path_of("cut"), &disk, &memory, &rng);
		base = opened(path_of("cut"), &g);
		if (pl_append_init(&a, &params, (void *)(uintptr_t)base) < 0)
			abort();
		pl_append_reader_init(&r, &a, 0, 0);
		for (size_t i = 0, n = pl_append_read(&r, got, number, 128); i < n; i++) {
			uint8_t want[ENTRY];

			bytes_of(number[i], want, ENTRY);
			wrong += number[i] >= BEFORE + AFTER ||
				 memcmp(want, got + i * ENTRY, ENTRY) != 0;
			seen += number[i] < BEFORE;
			late += number[i] >= BEFORE;
		}
		missing += BEFORE - seen;
		torn += r.damaged;
		(void)pl_region_close(g);
	}
	eq(wrong, 0, "power cut: no entry is another than was written");
	eq(missing, 0, "none that was on disk is missing");
	ok(torn > CUTS && late > CUTS,
		"others are there, or torn and counted: %" PRIu64 ", %" PRIu64, late, torn);
	free(disk.bytes);
	free(memory.bytes);
}

/* Keys 0 … BEFORE - 1, then half of them again and as many new ones. */
static void put_values(void *base, const struct pl_store_params *params, unsigned int round)
{
	uint8_t value[LARGE];
	struct pl_key_write kw;

	if (pl_key_write_init(&kw, params, base) < 0)
		abort();
	for (uint32_t i = 0; i < BEFORE; i++) {
		uint32_t k = round * BEFORE / 2 + i;

		bytes_of(k | (uint64_t)round << 32, value, LARGE);
		pl_key_write_put(&kw, pl_key_write_key(&kw, &k, 4), value, 1);
	}
}

static void cut_key_write(void)
{
	const struct pl_store_params params = { .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 5,
		.key_write = { 256, LARGE, 1 } };
	uint64_t wrong = 0, missing = 0, gone = 0;
	struct image disk, memory;
	struct pl_region_info info;
	struct pl_rng rng;

	pl_rng_seed(&rng, 2);
	write_twice("values", &params, put_values, &disk, &memory);
	if (pl_region_check(disk.bytes, disk.n, disk.n, &info, NULL) < 0)
		abort();
	for (int cut = 0; cut < CUTS; cut++) {
		struct pl_region *g;
		struct pl_key_write kw, on_disk;
		const void *base;

		write_cut(path_of("cut"), &disk, &memory, &rng);
		base = opened(path_of("cut"), &g);
		if (pl_key_write_init(&kw, &params, (void *)(uintptr_t)base) < 0 ||
			pl_key_write_init(&on_disk, &params, disk.bytes + info.data_offset) < 0)
			abort();
		for (uint32_t k = 0; k < 2 * BEFORE; k++) {
			struct pl_key key = pl_key_write_key(&kw, &k, 4);
			uint64_t at = info.data_offset + pl_key_write_offset(&kw, key, 0);
			bool touched =
				memcmp(disk.bytes + at, memory.bytes + at, kw.slot_bytes) != 0;
			uint8_t got[LARGE], old[LARGE], new[LARGE];

			bytes_of(k, old, LARGE);
			bytes_of(k | UINT64_C(1) << 32, new, LARGE);
			if (pl_key_write_get(&kw, key, 1, got).answer == PL_FOUND)
				wrong += memcmp(got, old, LARGE) != 0 &&
					 memcmp(got, new, LARGE) != 0;
			else if (touched)
				gone++;
			else
				missing +=
					pl_key_write_get(&on_disk, key, 1, got).answer == PL_FOUND;
		}
		(void)pl_region_close(g);
	}
	eq(wrong, 0, "no value is another than was written");
	eq(missing, 0, "what was on disk and not written again is there");
	ok(gone > CUTS, "torn ones are not found: %" PRIu64, gone);
	free(disk.bytes);
	free(memory.bytes);
}

/* ---- heads of lists ---- */

/* A head in the file is changed between two writers: the second one says so and goes on where the
 * entries end. */
static void mended_heads(void)
{
	const struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 9,
		.append = { 64, 3, VALUE, 16, 1 } };
	static const uint64_t heads[] = { (UINT64_C(1) << 40) + 50, 2, 0, 44, UINT64_MAX };
	uint8_t value[VALUE], got[64][VALUE];
	struct pl_region_info info;
	struct pl_region *g;
	struct pl_append a;

	if (pl_region_create(&g, path_of("heads"), &params, NULL, NULL) < 0 ||
		pl_append_init(&a, &params, pl_region_store(g, 0)) < 0)
		abort();
	for (uint64_t i = 0; i < 50; i++) {
		bytes_of(i, value, VALUE);
		pl_append_put(&a, 1, value, 1);
	}
	pl_region_get_info(g, &info);
	pl_region_close(g);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct pl_diag diag = { .text = "" };
		struct pl_append_reader r;
		int fd = open(path_of("heads"), O_WRONLY);
		char was[40];

		eq(pwrite(fd, &heads[i], 8, (off_t)(info.data_offset + a.list_stride)), 8);
		close(fd);
		if (pl_region_open(&g, path_of("heads"), PL_REGION_WRITE, NULL, NULL) < 0 ||
			pl_append_init(&a, &params, pl_region_store(g, 0)) < 0)
			abort();
		eq(pl_region_mended(g, &diag), 1, "one head is mended");
		snprintf(was, sizeof(was), "list 1 was %llu,", (unsigned long long)heads[i]);
		ok(strstr(diag.text, was) != NULL, "%s", diag.text);
		eq(pl_append_head(&a, 1), 50 + i, "it is where entries end");
		pl_append_reader_init(&r, &a, 1, 2 + i);
		eq(pl_append_read(&r, got, NULL, 64), 48, "and they are read");
		bytes_of(50 + i, value, VALUE);
		pl_append_put(&a, 1, value, 1);
		pl_region_close(g);
	}
	if (pl_region_open(&g, path_of("heads"), PL_REGION_WRITE, NULL, NULL) < 0)
		abort();
	eq(pl_region_mended(g, NULL), 0, "a head that fits is left alone");
	pl_region_close(g);
	unlink(path_of("heads"));
}

/* ---- cut while it is opened ---- */

#define OPENS 20000

/* Another process cuts the file and writes its header again, over and over. */
static pid_t start_cutter(const char *path)
{
	uint8_t head[PL_REGION_HEADER_BYTES];
	struct stat st;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	pid_t pid;

	if (fd < 0 || fstat(fd, &st) < 0 || pread(fd, head, sizeof(head), 0) != sizeof(head))
		abort();
	pid = fork();
	while (pid == 0) {
		if (getppid() == 1 || ftruncate(fd, 0) < 0 || ftruncate(fd, st.st_size) < 0 ||
			pwrite(fd, head, sizeof(head), 0) != sizeof(head))
			_exit(1);
	}
	close(fd);
	return pid;
}

static void cut_while_opened(void)
{
	const struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.append = { .slots = 64, .lists = 1, .entry_bytes = 8, .batch_max = 1 } };
	unsigned int good = 0, refused = 0;
	struct pl_region *g;
	pid_t cutter;

	unlink(path_of("cut"));
	ok(pl_region_guard() == 0 &&
			pl_region_create(&g, path_of("cut"), &params, NULL, NULL) == 0 &&
			pl_region_close(g) == 0,
		"a region that others cut");
	cutter = start_cutter(path_of("cut"));
	for (int i = 0; i < OPENS; i++) {
		struct pl_diag diag = { .text = "" };
		int r = pl_region_open(&g, path_of("cut"), PL_REGION_READ, NULL, &diag);

		good += r == 0;
		refused += r == -EBADMSG || r == -ERANGE;
		if (r == 0)
			(void)pl_region_close(g);
	}
	(void)kill(cutter, SIGKILL);
	(void)waitpid(cutter, NULL, 0);
	eq(good + refused, OPENS, "opened or refused, as it is at the moment (%u refused)",
		refused);
	ok(refused > 0, "and cut at the wrong moment at times");
	unlink(path_of("cut"));
}

int main(void)
{
	if (mkdtemp(folder) == NULL)
		return pl_test_skip("no folder under /tmp");
	bits_of_key_write();
	bits_of_append();
	bits_of_postcards();
	cut_append();
	cut_key_write();
	cut_while_opened();
	mended_heads();
	for (size_t i = 0; i < 3; i++)
		unlink(path_of((const char *const[]){ "append", "values", "cut" }[i]));
	rmdir(folder);
	return pl_test_done();
}
