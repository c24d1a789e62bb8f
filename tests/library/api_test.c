/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libpathline as a program of somebody else sees it: compiled against the installed headers and
 * library alone. usage: api_test FOLDER [ADDRESS:PORT of a translator with a key-write, a list and
 * counters]
 */
#include <errno.h>
#include <pathline/pathline.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count, failed;

#define ok(good, what) check((good), what, __LINE__)

static void check(bool good, const char *what, int line)
{
	count++;
	failed += !good;
	printf("%s %d - %s\n", good ? "ok" : "not ok", count, what);
	if (!good)
		printf("# line %d\n", line);
}

static char path[4096];

static const char *in(const char *folder, const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void test_key_write(const char *folder)
{
	const struct pathline_shape shape = {
		.primitive = PATHLINE_KEY_WRITE, .slots = 1000, .value_bytes = 4
	};
	struct pathline_shape got;
	struct pathline_error error;
	struct pathline_region *w, *r;
	char value[4];

	ok(pathline_region_create(&w, in(folder, "last.plr"), &shape, &error) == 0,
		"a region is made");
	ok(error.text[0] == '\0', "and nothing is said");
	ok(pathline_region_create(&r, path, &shape, &error) == -EEXIST && error.text[0] != '\0',
		"there is one already, in words too");
	ok(pathline_region_open(&r, path, PATHLINE_WRITE, &error) == -EBUSY, "one writer");
	ok(pathline_region_open(&r, path, PATHLINE_READ, NULL) == 0, "a reader beside it");
	pathline_region_shape(r, &got);
	ok(got.slots == 1000 && got.value_bytes == 4 && got.copies == 2 && got.seed != 0,
		"sees the shape, with defaults filled in");
	ok(pathline_key_write_get(r, "a", 1, value, 4) == PATHLINE_NOT_FOUND, "nothing there");
	ok(pathline_key_write_put(w, "a", 1, "up--", 4) == 0, "a value");
	ok(pathline_key_write_get(r, "a", 1, value, 4) == PATHLINE_FOUND &&
			memcmp(value, "up--", 4) == 0,
		"is found by the reader");
	ok(pathline_key_write_put(w, "a", 1, "up", 2) == -EINVAL, "another length is refused");
	ok(pathline_key_write_put(r, "a", 1, "down", 4) == -EACCES, "a reader does not write");
	ok(pathline_append_put(w, 0, "down", 1, NULL) == -EINVAL, "it is no list");
	ok(pathline_counters_add(w, "a", 1, 1) == -EINVAL, "nor counters");
	ok(pathline_region_sync(w) == 0 && pathline_region_sync(r) == -EACCES,
		"synced by its writer");
	ok(pathline_region_close(r) == 0 && pathline_region_close(w) == 0, "closed");
	ok(pathline_region_close(NULL) == 0, "NULL is closed");
}

static void test_append(const char *folder)
{
	const struct pathline_shape shape = {
		.primitive = PATHLINE_APPEND, .slots = 8, .value_bytes = 8, .lists = 2
	};
	struct pathline_region *w;
	struct pathline_reader *reader;
	uint64_t entry, first, numbers[8], entries[8], overrun, damaged;
	int n;

	ok(pathline_region_create(&w, in(folder, "lists.plr"), &shape, NULL) == 0, "lists");
	ok(pathline_append_put(w, 2, &entry, 1, NULL) == -EINVAL, "no third list");
	ok(pathline_reader_open(&reader, w, 1, PATHLINE_OLDEST) == 0, "a reader of the second");
	ok(pathline_reader_next(reader, entries, numbers, 8) == 0, "nothing yet");
	for (entry = 0; entry < 20; entry++)
		pathline_append_put(w, 1, &entry, 1, &first);
	ok(first == 19, "entries are numbered from 0");
	n = pathline_reader_next(reader, entries, numbers, 8);
	pathline_reader_lost(reader, &overrun, &damaged);
	ok(n > 0 && overrun + (uint64_t)n == 20 && damaged == 0, "read or counted as overrun");
	ok(entries[n - 1] == 19 && numbers[n - 1] == 19 && entries[0] == numbers[0],
		"each by its number");
	pathline_reader_close(reader);
	ok(pathline_reader_open(&reader, w, 1, PATHLINE_NEXT) == 0 &&
			pathline_reader_next(reader, entries, NULL, 8) == 0,
		"from the end there is nothing");
	pathline_append_put(w, 1, &entry, 1, NULL);
	ok(pathline_reader_next(reader, entries, NULL, 8) == 1 && entries[0] == 20,
		"but what comes");
	pathline_reader_close(reader);
	ok(pathline_region_close(w) == 0, "closed");
}

static void test_counters(const char *folder)
{
	const struct pathline_shape shape = { .primitive = PATHLINE_COUNTERS, .slots = 256 };
	struct pathline_region *w;
	uint64_t sum;

	ok(pathline_region_create(&w, in(folder, "sums.plr"), &shape, NULL) == 0, "counters");
	ok(pathline_counters_add(w, "k", 1, 5) == 0 && pathline_counters_add(w, "k", 1, 7) == 0,
		"two increments");
	ok(pathline_counters_get(w, "k", 1, &sum) == 0 && sum == 12, "are summed");
	ok(pathline_counters_add(w, "k", 1, UINT64_MAX) == -EOVERFLOW,
		"none past the largest number");
	ok(pathline_counters_get(w, "k", 1, &sum) == 0 && sum == 12, "which adds nothing");
	ok(pathline_region_close(w) == 0, "closed");
}

static void test_refused(const char *folder)
{
	static const struct pathline_shape wrong[] = { { .primitive = 0 },
		{ .primitive = PATHLINE_SKETCH }, { .primitive = PATHLINE_KEY_WRITE, .slots = 10 },
		{ .primitive = PATHLINE_KEY_WRITE, .slots = 10, .value_bytes = 5000 },
		{ .primitive = PATHLINE_APPEND, .slots = 1, .value_bytes = 8 },
		{ .primitive = PATHLINE_COUNTERS, .slots = 10, .reserved = { 1 } } };
	struct pathline_region *r;
	struct pathline_error error;
	FILE *f;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok(pathline_region_create(&r, in(folder, "wrong.plr"), &wrong[i], &error) ==
					-EINVAL &&
				error.text[0] != '\0',
			"a shape that cannot be");
	ok(pathline_region_open(&r, path, PATHLINE_READ, &error) == -ENOENT, "no file is left");
	f = fopen(path, "w");
	fprintf(f, "%5000d", 0);
	fclose(f);
	ok(pathline_region_open(&r, path, PATHLINE_READ, &error) == -EBADMSG &&
			strstr(error.text, "wrong.plr") != NULL,
		"what is no region is named");
	f = fopen(path, "w");
	fprintf(f, "short");
	fclose(f);
	ok(pathline_region_open(&r, path, PATHLINE_READ, &error) == -EBADMSG,
		"and one that is too short to be one");
}

/* Offsets are those of docs/formats/records.md. */
static void test_record(void)
{
	unsigned char hop[PATHLINE_RECORD_BYTES + 1] = { 0 }, address[16];
	const int node = pathline_field_find(PATHLINE_HOP, "node"),
		  src = pathline_field_find(PATHLINE_PATH, "flow.src");
	uint64_t value = 7;
	char text[2048], brief[5];
	int n;

	ok(node >= 0 && strcmp(pathline_field_name(PATHLINE_HOP, node), "node") == 0,
		"a field by its name");
	ok(pathline_field_find(PATHLINE_HOP, "nodes") == -ENOENT, "none of another");
	ok(pathline_field_find((enum pathline_kind)9, "node") == -ENOENT &&
			pathline_field_count((enum pathline_kind)9) == -EINVAL &&
			pathline_field_name(PATHLINE_HOP, 999) == NULL,
		"no kind or field beyond the last");
	/* At an odd address, as in a list of entries. */
	ok(pathline_record_u64(PATHLINE_HOP, hop + 1, node, &value) == 0 && value == 7,
		"an absent value");
	ok(pathline_record_u64(PATHLINE_PATH, hop + 1, src, &value) == -EINVAL,
		"an address is no number");
	ok(pathline_record_address(PATHLINE_PATH, hop + 1, src, address) == 0, "and absent");
	n = pathline_record_json(PATHLINE_EVENT, hop + 1, text, sizeof(text));
	ok(n > 0 && (size_t)n == strlen(text) && strncmp(text, "{\"kind\":\"event\"", 15) == 0,
		"as JSON");
	ok(pathline_record_json(PATHLINE_EVENT, hop + 1, brief, sizeof(brief)) == n &&
			strlen(brief) == 4,
		"cut where there is no room, with the length it would have");
}

static void test_reporter(const char *to)
{
	const struct pathline_reporter_options wrong = { .unnumbered = 2 };
	struct pathline_reporter_counts counts;
	struct pathline_reporter *r;
	struct pathline_error error;
	const uint32_t entry = 0x01020304;

	ok(pathline_reporter_open(&r, "nowhere", NULL, &error) == -EINVAL && error.text[0] != '\0',
		"an address is wanted");
	ok(pathline_reporter_open(&r, "127.0.0.1:40040", &wrong, &error) == -EINVAL,
		"and options that are");
	if (to == NULL)
		return;
	ok(pathline_reporter_open(&r, to, NULL, &error) == 0, "a reporter");
	ok(pathline_reporter_key_write(r, 0, "host7", 0, "up--", 4) == -EINVAL, "no key");
	ok(pathline_reporter_key_write(r, 0, "host7", 5, path, 4000) == -EMSGSIZE,
		"too long a value");
	ok(pathline_reporter_key_write(r, 0, "host7", 5, "up--", 4) == 0, "a value");
	ok(pathline_reporter_append(r, 1, 0, &entry, 4) == 0, "an entry");
	ok(pathline_reporter_increment(r, 2, "k", 1, 41) == 0 &&
			pathline_reporter_increment(r, 2, "k", 1, 1) == 0,
		"increments");
	ok(pathline_reporter_finish(r, 20000) == 0, "the translator says that it has them");
	pathline_reporter_count(r, &counts);
	ok(counts.reports == 4 && counts.lost == 0 && counts.unsent == 0, "in the account");
	pathline_reporter_close(r);
	ok(pathline_reporter_open(&r, "127.0.0.1:9", NULL, &error) == 0 &&
			pathline_reporter_increment(r, 0, "k", 1, 1) == 0 &&
			pathline_reporter_finish(r, 50) == -ETIMEDOUT,
		"where nobody listens, nothing is confirmed");
	pathline_reporter_close(r);
	pathline_reporter_close(NULL);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	ok(strcmp(pathline_version(), PATHLINE_EXPECTED) == 0, "the version");
	test_key_write(argv[1]);
	test_append(argv[1]);
	test_counters(argv[1]);
	test_refused(argv[1]);
	test_record();
	test_reporter(argc > 2 ? argv[2] : NULL);
	printf("1..%d\n", count);
	return failed > 0;
}
