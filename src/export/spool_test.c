/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/test.h"
#include "base/test_folder.h"

/* ---- helpers ---- */

static struct pl_spool *spool_at(const char *path, const struct pl_spool_options *more)
{
	struct pl_spool_options o = more != NULL ? *more : (struct pl_spool_options){ 0 };
	struct pl_spool *s = NULL;
	struct pl_diag diag = { .text = "" };

	o.path = path;
	if (o.bytes == 0)
		o.bytes = 1 << 20;
	if (o.payload_max == 0)
		o.payload_max = 4096;
	if (pl_spool_open(&s, &o, &diag) < 0)
		printf("# %s\n", diag.text);
	return s;
}

/* Record i has i % 7 + 1 entries and a payload made of i. */
static uint32_t make_payload(uint8_t *dst, uint32_t i)
{
	uint32_t len = 5 + i * 13 % 60;
	struct pl_rng rng;

	pl_rng_seed(&rng, i);
	memcpy(dst, &i, 4);
	for (uint32_t k = 4; k < len; k++)
		dst[k] = (uint8_t)pl_rng_u64(&rng);
	return len;
}

static int put(struct pl_spool *s, uint32_t i)
{
	uint8_t payload[128];
	struct pl_spool_record r = { .entries = i % 7 + 1, .flags = i, .payload = payload };

	r.len = make_payload(payload, i);
	return pl_spool_put(s, &r);
}

/* Reads and settles the oldest record; returns its number, -1: there is none, -2: it is not as
 * put. */
static int64_t get(struct pl_spool *s)
{
	uint8_t want[128];
	struct pl_spool_record r;
	uint32_t i, len;

	if (pl_spool_peek(s, &r) < 0)
		return -1;
	if (r.len < 4)
		return -2;
	memcpy(&i, r.payload, 4);
	len = make_payload(want, i);
	if (r.len != len || memcmp(r.payload, want, len) != 0 || r.entries != i % 7 + 1 ||
		r.flags != i)
		return -2;
	pl_spool_next(s);
	return i;
}

static struct pl_spool_counts counts(const struct pl_spool *s)
{
	struct pl_spool_counts c;

	pl_spool_counts(s, &c);
	return c;
}

/* Returns the path of the spool's only segment. */
static const char *segment_of(const char *path)
{
	static char name[192];

	snprintf(name, sizeof(name), "%s/%016x.seg", path, 1);
	return name;
}

/* ---- tests ---- */

static void test_order(void)
{
	const char *path = pl_test_fresh("order");
	struct pl_spool *s = spool_at(path, NULL);
	uint64_t entries = 0;

	for (uint32_t i = 0; i < 50; i++) {
		eq(put(s, i), 0);
		entries += i % 7 + 1;
	}
	eq(counts(s).records, 50);
	eq(counts(s).entries, entries);
	for (uint32_t i = 0; i < 20; i++) {
		eq(get(s), i, "oldest first");
		entries -= i % 7 + 1;
	}
	eq(counts(s).entries, entries, "settled ones are not counted");
	pl_spool_close(s);
	s = spool_at(path, NULL);
	eq(counts(s).recovered, entries, "a restart finds what was not settled");
	eq(counts(s).records, 30);
	eq(put(s, 50), 0);
	for (uint32_t i = 20; i <= 50; i++)
		eq(get(s), i, "and goes on where reading was");
	eq(get(s), -1, "then it is empty");
	eq(counts(s).bytes, 0, "and takes no place");
	eq(put(s, 51), 0);
	pl_spool_close(s);
	s = spool_at(path, NULL);
	eq(get(s), 51, "nothing settled comes again");
	eq(get(s), -1);
	eq(counts(s).damaged_records, 0, "and nothing is missed");
	pl_spool_close(s);
}

static void test_limits(void)
{
	struct pl_spool_options o = {
		.bytes = 1 << 20, .segment_bytes = 64 << 10, .payload_max = 60000
	};
	static uint8_t big[60000];
	struct pl_spool_record r = { .entries = 3, .payload = big, .len = sizeof(big) }, got;
	struct pl_spool *s = spool_at(pl_test_fresh("oldest"), &o);
	struct pl_spool_counts c;

	for (uint32_t i = 0; i < 40; i++)
		eq(pl_spool_put(s, &r), 0);
	c = counts(s);
	ok(c.bytes <= 1 << 20, "the size is kept");
	eq(c.entries + c.dropped, 40 * 3, "what gave way is counted");
	ok(c.dropped >= 20 * 3, "and it was the oldest");
	eq(pl_spool_peek(s, &got), 0);
	eq(got.sequence, 1 + c.dropped / 3, "the oldest that is left");
	for (uint32_t i = 0; i < 40; i++)
		eq(pl_spool_put(s, &r), 0);
	c = counts(s);
	ok(memcmp(got.payload, big, sizeof(big)) == 0, "the one lent stays readable");
	eq(c.entries + c.dropped, 80 * 3, "and is counted where it is");
	pl_spool_next(s);
	eq(counts(s).entries + c.dropped, 79 * 3);
	pl_spool_close(s);

	o.drop_newest = true;
	s = spool_at(pl_test_fresh("newest"), &o);
	for (uint32_t i = 0; i < 17; i++)
		eq(pl_spool_put(s, &r), 0);
	eq(pl_spool_put(s, &r), -EXFULL, "full: the newest is refused");
	eq(counts(s).dropped, 0);
	eq(pl_spool_peek(s, &got), 0);
	pl_spool_next(s);
	eq(pl_spool_put(s, &r), 0, "and taken when there is room");
	pl_spool_close(s);
	o.payload_max = 1 << 20;
	ok(spool_at(pl_test_fresh("tiny"), &o) == NULL, "a spool with no room for four is refused");
}

static void test_lock(void)
{
	const char *path = pl_test_fresh("lock");
	struct pl_spool_options o = { .path = path, .bytes = 1 << 20, .payload_max = 4096 };
	struct pl_diag diag = { .text = "" };
	struct pl_spool *s = spool_at(path, NULL), *second = NULL;

	eq(pl_spool_open(&second, &o, &diag), -EBUSY, "a second one is refused");
	ok(strstr(diag.text, path) != NULL && strstr(diag.text, "uses it") != NULL,
		"and told why: %s", diag.text);
	pl_spool_close(s);
	eq(pl_spool_open(&second, &o, NULL), 0, "no lock is left behind");
	pl_spool_close(second);
}

/* The file is cut at every byte: each record that is still whole is found. */
static void test_cut(void)
{
	const char *path = pl_test_fresh("cut");
	uint64_t ends[9] = { 0 };
	struct pl_spool *s = spool_at(path, NULL);
	char *whole;
	size_t len;
	bool good = true;

	for (uint32_t i = 0; i < 8; i++) {
		put(s, i);
		ends[i + 1] = counts(s).bytes;
	}
	pl_spool_close(s);
	eq(pl_file_read(segment_of(path), 1 << 20, &whole, &len), 0);
	eq(len, ends[8]);
	for (size_t cut = 0; good && cut <= len; cut++) {
		uint32_t want = 0, have = 0;
		int64_t i;

		path = pl_test_fresh("cut");
		mkdir(path, 0700);
		pl_file_replace(segment_of(path), whole, cut, 0600);
		while (want < 8 && ends[want + 1] <= cut)
			want++;
		s = spool_at(path, NULL);
		good = s != NULL;
		while (good && (i = get(s)) >= 0)
			good = i == have++;
		good = good && have == want;
		/* New records follow those that are left. */
		good = good && put(s, 100) == 0 && get(s) == 100 && get(s) == -1;
		pl_spool_close(s);
		if (!good)
			printf("# cut after %zu bytes: %u records, wanted %u\n", cut, have, want);
	}
	ok(good, "cut after each of %zu bytes", len);
	free(whole);
}

static bool exists(const char *path, const char *file)
{
	char name[192];

	snprintf(name, sizeof(name), "%s/%s", path, file);
	return access(name, F_OK) == 0;
}

/* Returns true when the byte is in a payload, from the second record on. */
static bool of_payload(const char *segment, size_t len, size_t at)
{
	bool first = true;

	for (size_t begin = 0; begin < len; first = false) {
		uint32_t n;
		size_t end;

		memcpy(&n, segment + begin + 4, sizeof(n));
		end = begin + 40 + n;
		if (at < end)
			return at >= begin + 40 && !first;
		begin = end;
	}
	return false;
}

/* Each bit of the segment is flipped: in a header nothing is lost; in a payload its record is, and
 * counted. */
static void test_flip(void)
{
	const char *path = pl_test_fresh("flip");
	struct pl_spool *s = spool_at(path, NULL);
	char *whole, *cursor, name[192];
	size_t len, cursor_len;
	bool good = true;

	for (uint32_t i = 0; i < 6; i++)
		put(s, i);
	get(s);
	pl_spool_close(s);
	eq(pl_file_read(segment_of(path), 1 << 20, &whole, &len), 0);
	snprintf(name, sizeof(name), "%s/cursor", path);
	eq(pl_file_read(name, 1 << 20, &cursor, &cursor_len), 0);
	for (size_t bit = 0; good && bit < 8 * (len + cursor_len); bit++) {
		size_t at = bit / 8;
		char *of = at < len ? &whole[at] : &cursor[at - len];
		uint32_t have = 0;
		int64_t i, last = -1;
		struct pl_spool_counts c;

		*of ^= (char)(1 << bit % 8);
		path = pl_test_fresh("flip");
		mkdir(path, 0700);
		pl_file_replace(segment_of(path), whole, len, 0600);
		snprintf(name, sizeof(name), "%s/cursor", path);
		pl_file_replace(name, cursor, cursor_len, 0600);
		*of ^= (char)(1 << bit % 8);
		s = spool_at(path, NULL);
		good = s != NULL;
		if (!good)
			break;
		while ((i = get(s)) >= 0) {
			good = good && i > last;
			last = i;
			have++;
		}
		c = counts(s);
		good = good && i == -1 && c.entries == 0 && c.records == 0;
		/* With a lost cursor, settled records come again. */
		if (at < len && of_payload(whole, len, at))
			good = good && have == 4 && c.damaged_records == 1 &&
			       exists(path, "damaged");
		else
			good = good && have >= 5 && (at >= len || have == 5) &&
			       c.damaged_records == 0 && !exists(path, "damaged");
		pl_spool_close(s);
		if (!good)
			printf("# bit %zu: %u records read\n", bit, have);
	}
	ok(good, "each of %zu bits flipped", 8 * (len + cursor_len));
	free(whole);
	free(cursor);
}

/* A damaged record in the middle: counted with its entries and set aside; the others are read. */
static void test_damage(void)
{
	const char *path = pl_test_fresh("damage");
	struct pl_spool *s = spool_at(path, NULL);
	struct pl_spool_counts c;
	uint64_t second, third;
	char name[192];
	struct stat st;
	int fd;

	put(s, 0);
	second = counts(s).bytes;
	put(s, 1);
	third = counts(s).bytes;
	put(s, 2);
	fd = open(segment_of(path), O_WRONLY);
	eq(pwrite(fd, "X", 1, (off_t)second + 41), 1,
		"a payload is damaged while the spool is open");
	eq(get(s), 0);
	eq(get(s), 2, "it is left out");
	eq(get(s), -1);
	c = counts(s);
	eq(c.damaged_records, 1);
	eq(c.damaged_entries, 2, "its entries are known by its header");
	eq(c.entries, 0);
	close(fd);
	snprintf(name, sizeof(name), "%s/damaged", path);
	ok(stat(name, &st) == 0 && (uint64_t)st.st_size == third - second, "it is set aside");
	put(s, 3);
	put(s, 4);
	put(s, 5);
	snprintf(name, sizeof(name), "%s/%016x.seg", path, 4);
	fd = open(name, O_WRONLY);
	eq(pwrite(fd, "XXXX", 4, 0), 4, "a header is damaged while the spool is open");
	close(fd);
	eq(get(s), 4);
	eq(get(s), 5);
	eq(get(s), -1);
	c = counts(s);
	eq(c.damaged_records, 2);
	eq(c.damaged_entries, 2 + 4, "its entries are known, for they were put here");
	pl_spool_close(s);
}

/* Destroyed headers, at any place: counted and set aside; the records behind them are found. */
static void test_lost_headers(void)
{
	for (uint32_t lost = 0; lost < 6; lost++) {
		const char *path = pl_test_fresh("headers");
		struct pl_spool *s = spool_at(path, NULL);
		uint64_t begins[7] = { 0 };
		struct pl_spool_counts c;
		char name[192];
		struct stat st;
		uint32_t have = 0;
		int64_t i;
		int fd;

		for (uint32_t k = 0; k < 6; k++) {
			put(s, k);
			begins[k + 1] = counts(s).bytes;
		}
		pl_spool_close(s);
		fd = open(segment_of(path), O_WRONLY);
		eq(pwrite(fd, "XXXXXXXX", 8, (off_t)begins[lost]), 8);
		close(fd);
		s = spool_at(path, NULL);
		c = counts(s);
		eq(c.damaged_records, 1, "header %u: a damaged record", lost);
		eq(c.records, 5);
		snprintf(name, sizeof(name), "%s/damaged", path);
		ok(stat(name, &st) == 0 && (uint64_t)st.st_size == begins[lost + 1] - begins[lost],
			"its bytes are set aside");
		eq(put(s, 6), 0);
		while ((i = get(s)) >= 0)
			have += i != lost;
		eq(have, 6, "all others are read");
		pl_spool_close(s);
	}
}

/* Copies are neither counted nor read; after a crash, unsettled ones are. */
static void test_copies(void)
{
	const char *path = pl_test_fresh("copies");
	struct pl_spool *s = spool_at(path, NULL);
	struct pl_spool_copy settled, kept;
	uint8_t payload[128];
	struct pl_spool_record r = { .payload = payload };

	r.entries = 3 % 7 + 1;
	r.flags = 3;
	r.len = make_payload(payload, 3);
	eq(pl_spool_put_copy(s, &r, &kept), -ENODATA, "none where there is nothing to read");
	put(s, 0);
	put(s, 1);
	eq(pl_spool_put_copy(s, &r, &settled), 0);
	pl_spool_settle_copy(s, &settled);
	put(s, 2);
	eq(pl_spool_put_copy(s, &r, &kept), 0);
	eq(counts(s).records, 3, "they are not counted");
	eq(get(s), 0);
	eq(get(s), 1);
	pl_spool_close(s); /* the files on disk are as after a crash */
	s = spool_at(path, NULL);
	eq(counts(s).recovered, 2 % 7 + 1 + 3 % 7 + 1, "the one that was not settled is a record");
	eq(get(s), 2);
	eq(get(s), 3);
	eq(get(s), -1);
	eq(counts(s).damaged_records, 0);
	put(s, 4);
	eq(pl_spool_put_copy(s, &r, &settled), 0);
	pl_spool_settle_copy(s, &settled);
	eq(get(s), 4);
	eq(get(s), -1, "nor are they read");
	eq(counts(s).records + counts(s).entries + counts(s).bytes, 0, "nothing stays");
	pl_spool_close(s);
}

/* ---- failing system calls ---- */

static unsigned int calls, fail_at, fail_for;
static int fail_with; /* 0: first a short write */

static bool failing(void)
{
	calls++;
	return calls >= fail_at && calls < fail_at + fail_for;
}

static ssize_t bad_write(int fd, const void *data, size_t n)
{
	if (failing()) {
		ssize_t part = n > 1 ? write(fd, data, n / 2) : 0;

		if (fail_with == 0 && part > 0)
			return part;
		errno = fail_with != 0 ? fail_with : ENOSPC;
		return -1;
	}
	return write(fd, data, n);
}

static int bad_sync(int fd)
{
	if (failing()) {
		errno = EIO;
		return -1;
	}
	return fdatasync(fd);
}

/* Records settled while held come again, also those of finished segments; released ones do not. */
static void test_held(void)
{
	const struct pl_spool_options options = { .drop_newest = true, .segment_bytes = 512 };
	const char *path = pl_test_fresh("held");
	struct pl_spool *s = spool_at(path, &options);

	for (uint32_t i = 0; i < 50; i++)
		put(s, i);
	eq(get(s), 0);
	pl_spool_hold(s);
	for (uint32_t i = 1; i < 50; i++)
		eq(get(s), i);
	eq(get(s), -1);
	eq(counts(s).records + counts(s).entries + counts(s).bytes, 0, "as if they were gone");
	put(s, 50);
	put(s, 51);
	eq(get(s), 50);
	pl_spool_close(s); /* the files on disk are as after a crash */
	s = spool_at(path, &options);
	eq(counts(s).records, 51, "those behind the first are found");
	eq(counts(s).damaged_records, 0);
	pl_spool_hold(s);
	for (uint32_t i = 1; i < 40; i++)
		eq(get(s), i, "in their order");
	pl_spool_release(s);
	eq(get(s), 40, "then nothing is held");
	pl_spool_hold(s);
	pl_spool_release(s);
	pl_spool_close(s);
	s = spool_at(path, &options);
	for (uint32_t i = 41; i < 52; i++)
		eq(get(s), i, "what was released is gone");
	eq(get(s), -1);
	eq(counts(s).damaged_records, 0);
	pl_spool_close(s);
}

/* A reader goes on while what it settled before is released, also within a segment. */
static void test_places(void)
{
	const struct pl_spool_options options = { .drop_newest = true, .segment_bytes = 512 };
	struct pl_spool_place none, first, second;
	const char *path = pl_test_fresh("places");
	struct pl_spool *s = spool_at(path, &options);

	for (uint32_t i = 0; i < 60; i++)
		put(s, i);
	pl_spool_hold(s);
	none = pl_spool_place(s);
	for (uint32_t i = 0; i < 25; i++)
		eq(get(s), i);
	first = pl_spool_place(s);
	for (uint32_t i = 25; i < 43; i++)
		eq(get(s), i);
	pl_spool_release_to(s, &none);
	pl_spool_release_to(s, &first);
	for (uint32_t i = 43; i < 50; i++)
		eq(get(s), i);
	pl_spool_close(s); /* the files on disk are as after a crash */
	s = spool_at(path, &options);
	eq(counts(s).records, 35, "those behind the first place are found");
	pl_spool_hold(s);
	for (uint32_t i = 25; i < 43; i++)
		eq(get(s), i, "in their order");
	second = pl_spool_place(s);
	eq(get(s), 43);
	pl_spool_release_to(s, &second);
	pl_spool_close(s);
	s = spool_at(path, &options);
	for (uint32_t i = 43; i < 60; i++)
		eq(get(s), i, "those behind the second");
	eq(get(s), -1);
	eq(counts(s).damaged_records, 0);
	pl_spool_close(s);
}

/* A failed write ends a file: records put into it before are synced, or the next sync tells. */
static void test_failing_unsynced(void)
{
	static const struct pl_spool_sys sys = { bad_write, bad_sync };
	const struct pl_spool_options o = { .sys = &sys };
	struct pl_spool *s = spool_at(pl_test_fresh("unsynced"), &o);

	calls = 0;
	fail_with = ENOSPC;
	fail_at = 3; /* the second record's header; then the sync */
	fail_for = 2;
	eq(put(s, 0), 0);
	eq(put(s, 1), -ENOSPC);
	eq(pl_spool_sync(s), -EIO, "the first one is not on the device");
	eq(pl_spool_sync(s), 0, "which is told once");
	fail_for = 1;
	calls = 0;
	eq(put(s, 2), 0);
	eq(put(s, 3), -ENOSPC);
	eq(calls, 4, "a sync before the file ends");
	eq(pl_spool_sync(s), 0);
	eq(get(s), 0);
	eq(get(s), 2);
	eq(get(s), -1);
	pl_spool_close(s);
}

static void test_failing(void)
{
	static const struct pl_spool_sys sys = { bad_write, bad_sync };
	static const int errors[] = { ENOSPC, EIO, 0 };
	bool good = true;
	unsigned int n = 0;

	for (unsigned int e = 0; e < 3; e++) {
		for (fail_for = 1; fail_for <= 9; fail_for += 4) {
			for (fail_at = 1; good && fail_at < 60; fail_at++) {
				struct pl_spool_options o = { .sys = &sys, .segment_bytes = 400 };
				struct pl_spool *s;
				bool there[30] = { false };
				const char *path = pl_test_fresh("failing");

				calls = 0;
				fail_with = errors[e];
				s = spool_at(path, &o);
				for (uint32_t i = 0; i < 20; i++) {
					there[i] = put(s, i) == 0;
					if (i % 5 == 4)
						(void)pl_spool_sync(s);
				}
				/* A restart while calls fail must not matter. */
				if (fail_at % 2 == 0) {
					pl_spool_close(s);
					s = spool_at(path, &o);
				}
				for (uint32_t i = 0; i < 20; i++) {
					if (there[i])
						good = good && get(s) == i;
				}
				good = good && get(s) == -1 && counts(s).damaged_records == 0;
				/* Once calls work again, records are stored and read. */
				calls = 1000;
				good = good && put(s, 25) == 0 && get(s) == 25;
				pl_spool_close(s);
				n++;
				if (!good)
					printf("# call %u of %u failing with %d\n", fail_at,
						fail_for, errors[e]);
			}
		}
	}
	ok(good, "%u scripts with failing writes and syncs", n);
}

/* ---- kill -9 ---- */

static void test_kill(void)
{
	_Atomic uint32_t *done =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct pl_rng rng;
	bool good = true;
	uint64_t total = 0;

	pl_rng_seed(&rng, 42);
	for (unsigned int round = 0; good && round < 60; round++) {
		struct pl_spool_options o = { .segment_bytes = 4096, .bytes = 64 << 20 };
		const char *path = pl_test_fresh("kill");
		uint32_t put_ok, first;
		struct pl_spool *s;
		int64_t i, expect;
		pid_t child;

		done[0] = done[1] = 0;
		child = fork();
		if (child == 0) {
			s = spool_at(path, &o);
			for (uint32_t k = 0;; k++) {
				if (put(s, k) == 0)
					atomic_store(&done[0], k + 1);
				/* Reads and settles half as fast, at the same time. */
				if (k % 2 == 0 && get(s) == (int64_t)k / 2)
					atomic_store(&done[1], k / 2 + 1);
			}
		}
		usleep(2000 + (unsigned int)pl_rng_below(&rng, 20000));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		put_ok = atomic_load(&done[0]);
		first = atomic_load(&done[1]);
		s = spool_at(path, &o);
		good = s != NULL;
		expect = good ? get(s) : 0;
		if (good && expect == -1) {
			good = put_ok <= first + 1;
		} else if (good) {
			/* The record being settled may come again or be settled already. */
			good = expect + 1 >= (int64_t)first && expect <= (int64_t)first + 1;
			while (good && (i = get(s)) >= 0)
				good = i == ++expect;
			/* One more record than acknowledged may be stored whole. */
			good = good && (expect + 1 == put_ok || expect == put_ok);
		}
		if (!good)
			printf("# round %u: put %u, settled %u, read up to %lld\n", round, put_ok,
				first, (long long)expect);
		total += put_ok;
		pl_spool_close(s);
	}
	ok(good && total > 1000, "killed 60 times while writing and reading %llu records",
		(unsigned long long)total);
	munmap((void *)done, 4096);
}

static void test_hostile(void)
{
	const char *path = pl_test_fresh("hostile");
	char name[192];
	struct pl_spool *s;

	mkdir(path, 0700);
	snprintf(name, sizeof(name), "%s/ffffffffffffffff.seg", path);
	pl_file_replace(name, "x", 1, 0600);
	snprintf(name, sizeof(name), "%s/%016x.seg", path, 7);
	if (symlink("/etc/passwd", name) < 0)
		printf("# no link\n");
	ok(spool_at(path, NULL) == NULL, "a link in place of a segment is refused");
	unlink(name);
	s = spool_at(path, NULL);
	ok(s != NULL && put(s, 1) == 0 && get(s) == 1, "numbers out of reach are left alone");
	pl_spool_close(s);
}

int main(void)
{
	if (!pl_test_folder_make())
		return EXIT_FAILURE;
	test_order();
	test_limits();
	test_lock();
	test_cut();
	test_flip();
	test_damage();
	test_lost_headers();
	test_copies();
	test_held();
	test_places();
	test_failing_unsynced();
	test_failing();
	test_kill();
	test_hostile();
	pl_test_remove(pl_test_folder);
	return pl_test_done();
}
