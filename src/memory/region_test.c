/* SPDX-License-Identifier: BSD-2-Clause */
/* Region files: what is created, what is refused, who may write, epochs, and files cut under a
 * mapping. */
#include "memory/region.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32.h"
#include "base/test.h"
#include "memory/append.h"
#include "memory/key_write.h"

static char folder[] = "/tmp/pathline-region-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[4][128];
	static unsigned int turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
	return p;
}

static struct pl_store_params params_of(uint64_t slots)
{
	return (struct pl_store_params){ .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 1,
		.key_write = { slots, 20, 2 } };
}

/* Region `name` of so many slots in `halves` halves, written once and closed. */
static void make(const char *name, uint64_t slots, unsigned int halves)
{
	struct pl_store_params params = params_of(slots);
	struct pl_region_options options = { .halves = halves };
	struct pl_diag diag = { .text = "" };
	struct pl_region *g;
	int r = pl_region_create(&g, path_of(name), &params, &options, &diag);

	ok(r == 0, "%s created%s", name, diag.text);
	if (r == 0)
		eq(pl_region_close(g), 0, "and closed");
}

static int open_error(const char *name, struct pl_diag *diag)
{
	struct pl_region *g;
	int r = pl_region_open(&g, path_of(name), PL_REGION_READ, NULL, diag);

	if (r == 0)
		(void)pl_region_close(g);
	return -r;
}

/* ---- created and read ---- */

static void put_number(const struct pl_region *g, uint64_t epoch, uint32_t n)
{
	struct pl_key_write kw;
	uint8_t value[20] = { 0 };

	memcpy(value, &n, sizeof(n));
	if (pl_key_write_init(&kw, pl_region_params(g), pl_region_store(g, epoch)) == 0)
		pl_key_write_put(&kw, pl_key_write_key(&kw, "k", 1), value, 2);
}

/* The number of key "k" in an epoch; UINT32_MAX when it is not there. */
static uint32_t number_in(const struct pl_region *g, uint64_t epoch)
{
	struct pl_key_write kw;
	uint8_t value[20];
	uint32_t n;

	if (pl_region_store(g, epoch) == NULL ||
		pl_key_write_init(&kw, pl_region_params(g), pl_region_store(g, epoch)) < 0 ||
		pl_key_write_get(&kw, pl_key_write_key(&kw, "k", 1), 1, value).answer != PL_FOUND)
		return UINT32_MAX;
	memcpy(&n, value, sizeof(n));
	return n;
}

static void life(uint64_t slots)
{
	struct pl_store_params params = params_of(slots);
	struct pl_region *w, *r;
	struct pl_region_info info;
	struct stat st;

	eq(pl_region_create(&w, path_of("life"), &params, NULL, NULL), 0, "%" PRIu64 " slots",
		slots);
	put_number(w, 0, 7);
	eq(pl_region_open(&r, path_of("life"), PL_REGION_READ, NULL, NULL), 0, "read while open");
	eq(number_in(r, 0), 7, "the reader sees what is written");
	put_number(w, 0, 8);
	eq(number_in(r, 0), 8, "as it is written");
	memeq(pl_region_params(r), &params, sizeof(params));
	pl_region_get_info(r, &info);
	ok(!info.clean && info.writer_pid == (uint32_t)getpid() && info.epoch == 0 && !info.both);
	eq(info.store_bytes, 32 * slots);
	eq(info.data_offset, slots * 32 >= 2 << 20 ? 2 << 20 : 4096, "the data begins apart");
	eq(stat(path_of("life"), &st), 0);
	eq(st.st_size, info.file_bytes);
	ok((uint64_t)st.st_blocks * 512 >= info.file_bytes, "all of it is allocated");
	eq(st.st_mode & 0777, 0640);
	eq(-pl_region_sync(r), EACCES, "a reader does not write");
	eq(-pl_region_next_epoch(r, NULL), EACCES);
	eq(-pl_region_create(&w, path_of("life"), &params, NULL, NULL), EEXIST,
		"not created twice");
	eq(pl_region_close(w), 0);
	eq(pl_region_close(r), 0);
	eq(pl_region_open(&r, path_of("life"), PL_REGION_WRITE, NULL, NULL), 0);
	pl_region_get_info(r, &info);
	ok(info.clean, "was closed well");
	eq(number_in(r, 0), 8, "and kept");
	eq(pl_region_close(r), 0);
	unlink(path_of("life"));
}

/* ---- refused ---- */

static void bad_parameters(void)
{
	struct pl_store_params params = params_of(0);
	struct pl_region_options three = { .halves = 3 };
	struct pl_diag diag = { .text = "" };
	struct pl_region *g;

	eq(-pl_region_create(&g, path_of("bad"), &params, NULL, &diag), EINVAL, "no slots");
	streq(diag.text, "a key-write store needs at least one slot");
	params = params_of(10);
	eq(-pl_region_create(&g, path_of("bad"), &params, &three, &diag), EINVAL, "three halves");
	params = params_of(UINT64_C(1) << 50);
	ok(pl_region_create(&g, path_of("bad"), &params, NULL, &diag) < 0, "32 PiB: %s", diag.text);
	ok(strstr(diag.text, path_of("bad")) != NULL, "with the file's name");
	ok(access(path_of("bad"), F_OK) < 0 && errno == ENOENT, "no file is left");
	eq(-pl_region_create(&g, path_of("none/bad"), &params, NULL, &diag), ENOENT, "no folder");
}

static void change(const char *name, off_t at, const void *bytes, size_t n)
{
	int fd = open(path_of(name), O_RDWR | O_CLOEXEC);

	if (fd < 0 || pwrite(fd, bytes, n, at) != (ssize_t)n)
		ok(false, "cannot change %s", name);
	close(fd);
}

static void fetch(const char *name, void *bytes, size_t n)
{
	int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);

	if (fd < 0 || pread(fd, bytes, n, 0) != (ssize_t)n)
		ok(false, "cannot read %s", name);
	close(fd);
}

static void damaged_header(void)
{
	unsigned int refused = 0, opened = 0;
	uint8_t header[4096], changed[4096];

	make("damage", 50, 1);
	fetch("damage", header, sizeof(header));
	for (unsigned int bit = 0; bit < 512 * 8; bit++) {
		int e;

		memcpy(changed, header, sizeof(header));
		changed[bit / 8] ^= (uint8_t)(1 << bit % 8);
		change("damage", 0, changed, 512);
		e = open_error("damage", NULL);
		refused += e == EBADMSG || (e == EPROTO && bit / 32 == 2);
	}
	eq(refused, 512 * 8, "each bit of the header that is checked");
	change("damage", 0, header, 512);
	for (unsigned int bit = 512 * 8; bit < 544 * 8; bit++) {
		memcpy(changed, header, sizeof(header));
		changed[bit / 8] ^= (uint8_t)(1 << bit % 8);
		change("damage", 0, changed, sizeof(changed));
		opened += open_error("damage", NULL) == 0;
	}
	eq(opened, 32 * 8, "no bit of what changes keeps it from opening");
	unlink(path_of("damage"));
}

/* Sealed again, so that only the contradiction is left to be seen. */
static void forge(const char *name, size_t at, uint64_t value, size_t n)
{
	uint8_t header[512];
	uint32_t check;

	fetch(name, header, sizeof(header));
	memcpy(header + at, &value, n);
	memset(header + 16, 0, 4);
	check = pl_crc32(0, header, sizeof(header));
	memcpy(header + 16, &check, 4);
	change(name, 0, header, sizeof(header));
}

static void contradictions(void)
{
	static const struct {
		const char *what;
		size_t at;
		uint64_t value;
		size_t n;
		int want;
	} forged[] = {
		{ "another version", 8, 2, 4, EPROTO },
		{ "version 0", 8, 0, 4, EBADMSG },
		{ "the other byte order", 12, 0x04030201, 4, EBADMSG },
		{ "no halves", 20, 0, 4, EBADMSG },
		{ "three halves", 20, 3, 4, EBADMSG },
		{ "two halves in a file of one", 20, 2, 4, EBADMSG },
		{ "data within the header", 40, 0, 8, EBADMSG },
		{ "data at no power of two", 40, 12288, 8, EBADMSG },
		{ "data beyond the file", 40, UINT64_C(1) << 40, 8, EBADMSG },
		{ "a store that is larger", 48, 3200, 8, EBADMSG },
		{ "a file that is larger", 56, UINT64_C(1) << 62, 8, EBADMSG },
		{ "a file that is smaller", 56, 4096, 8, EBADMSG },
		{ "no primitive", 64, 0, 4, EBADMSG },
		{ "another primitive", 64, PL_COUNTERS, 4, EBADMSG },
		{ "a hash that is not", 68, 3, 4, EBADMSG },
		{ "more slots", 88, UINT64_MAX, 8, EBADMSG },
		{ "more slots than the file has", 88, 51000, 8, EBADMSG },
		{ "longer values", 96, 28 + 1, 4, EBADMSG },
		{ "a byte behind the parameters", 127, 1, 1, EBADMSG },
		{ "a byte behind the header", 300, 1, 1, EBADMSG },
	};

	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct pl_diag diag = { .text = "" };
		char name[20];
		int e;

		snprintf(name, sizeof(name), "forged%zu", i);
		{
			struct pl_store_params params = params_of(50);
			struct pl_region *g;

			if (pl_region_create(&g, path_of(name), &params, NULL, NULL) == 0)
				pl_region_close(g);
		}
		eq(open_error(name, NULL), 0);
		forge(name, forged[i].at, forged[i].value, forged[i].n);
		e = open_error(name, &diag);
		ok(e == forged[i].want, "%s: %d, %s", forged[i].what, e, diag.text);
		unlink(path_of(name));
	}
}

static void not_regions(void)
{
	struct pl_diag diag = { .text = "" };
	struct pl_region *g;
	static const off_t cuts[] = { 0, 1, 511, 4095, 4096, 8000, 8191 };

	eq(open_error("none", &diag), ENOENT, "nothing there");
	make("cut", 100, 1);
	for (size_t i = sizeof(cuts) / sizeof(cuts[0]); i-- > 0;) {
		eq(truncate(path_of("cut"), cuts[i]), 0);
		eq(open_error("cut", &diag), ERANGE, "cut to %ld: %s", (long)cuts[i], diag.text);
	}
	eq(truncate(path_of("cut"), 8192), 0);
	eq(open_error("cut", &diag), EBADMSG, "zeros");
	ok(strstr(diag.text, "cut: the region is incomplete") != NULL, "%s", diag.text);
	unlink(path_of("cut"));
	eq(-pl_region_open(&g, "/tmp", PL_REGION_READ, NULL, &diag), EBADMSG, "a folder");
	eq(-pl_region_open(&g, "/dev/zero", PL_REGION_READ, NULL, &diag), EBADMSG, "a device");
	eq(mkfifo(path_of("fifo"), 0600), 0);
	eq(-pl_region_open(&g, path_of("fifo"), PL_REGION_READ, NULL, &diag), EBADMSG,
		"a pipe that nobody writes");
	unlink(path_of("fifo"));
}

/* In a file system of 1 MiB of its own. */
static void full_disk(void)
{
	int status, pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct pl_store_params big = params_of(1 << 20), small = params_of(1000);
		struct pl_diag diag = { .text = "" };
		struct pl_region *g;

		if ((unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) ||
			mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			mount("none", folder, "tmpfs", 0, "size=1m") < 0)
			_exit(77);
		if (pl_region_create(&g, path_of("big"), &big, NULL, &diag) != -ENOSPC)
			_exit(1);
		if (strstr(diag.text, path_of("big")) == NULL)
			_exit(4);
		if (access(path_of("big"), F_OK) == 0)
			_exit(2);
		_exit(pl_region_create(&g, path_of("small"), &small, NULL, NULL) == 0 ? 0 : 3);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("# no file system of our own can be mounted here: a full one is not tried\n");
		return;
	}
	eq(status, 0, "a full file system is an error, leaves no file, and a smaller region fits");
}

/* ---- one writer ---- */

static void one_writer(void)
{
	struct pl_diag diag = { .text = "" };
	struct pl_region *a, *b;
	char want[64];

	make("lock", 50, 1);
	eq(pl_region_open(&a, path_of("lock"), PL_REGION_WRITE, NULL, NULL), 0);
	eq(-pl_region_open(&b, path_of("lock"), PL_REGION_WRITE, NULL, &diag), EBUSY,
		"a second one");
	snprintf(want, sizeof(want), "is being written by process %d", (int)getpid());
	ok(strstr(diag.text, want) != NULL, "%s", diag.text);
	eq(pl_region_open(&b, path_of("lock"), PL_REGION_READ, NULL, NULL), 0, "reading is free");
	pl_region_close(b);
	pl_region_close(a);
	eq(pl_region_open(&b, path_of("lock"), PL_REGION_WRITE, NULL, NULL), 0,
		"when it is closed");
	pl_region_close(b);
}

/* Children that try at the same time; whoever wins is killed. */
static void racing_writers(void)
{
	enum { ROUNDS = 200 };
	unsigned int once = 0, stale = 0;

	fflush(stdout);
	for (int i = 0; i < ROUNDS; i++) {
		int start[2], told[2], won = 0, pid[2];
		struct pl_region *g;
		char c = 0;

		if (pipe(start) < 0 || pipe(told) < 0)
			abort();
		for (int k = 0; k < 2; k++) {
			pid[k] = fork();
			if (pid[k] == 0) {
				close(start[1]);
				c = read(start[0], &c, 1) == 0 &&
						    pl_region_open(&g, path_of("lock"),
							    PL_REGION_WRITE, NULL, NULL) == 0
					    ? 'w'
					    : 'l';
				if (write(told[1], &c, 1) == 1)
					pause();
				_exit(0);
			}
		}
		close(start[0]);
		close(start[1]);
		for (int k = 0; k < 2; k++)
			won += read(told[0], &c, 1) == 1 && c == 'w';
		once += won == 1;
		for (int k = 0; k < 2; k++) {
			kill(pid[k], SIGKILL);
			waitpid(pid[k], NULL, 0);
		}
		close(told[0]);
		close(told[1]);
		if (pl_region_open(&g, path_of("lock"), PL_REGION_WRITE, NULL, NULL) == 0)
			pl_region_close(g);
		else
			stale++;
	}
	eq(once, ROUNDS, "of two that start together one wins, each time");
	eq(stale, 0, "and no lock outlives a killed holder");
	unlink(path_of("lock"));
}

/* ---- epochs ---- */

static bool no_parts(void)
{
	glob_t found;
	const int r = glob(path_of("*.part"), 0, NULL, &found);

	if (r == 0)
		globfree(&found);
	return r == GLOB_NOMATCH;
}

static void epochs(void)
{
	struct pl_store_params params = params_of(1000);
	struct pl_region_options two = { .halves = 2 };
	struct pl_diag diag = { .text = "" };
	struct pl_region_info info;
	struct pl_region *g, *old, *saved = NULL;

	eq(pl_region_create(&g, path_of("epochs"), &params, &two, NULL), 0, "two halves");
	put_number(g, 0, 100);
	ok(pl_region_store(g, 1) == NULL && !pl_region_has_epoch(g, UINT64_MAX),
		"no other epoch yet");
	eq(pl_region_next_epoch(g, NULL), 0);
	eq(pl_region_epoch(g), 1);
	eq(number_in(g, 0), 100, "the epoch before is readable");
	eq(number_in(g, 1), UINT32_MAX, "the new one is empty");
	put_number(g, 1, 101);
	eq(number_in(g, 0), 100, "and separate");
	eq(pl_region_spill(g, 0, path_of("cold"), &diag), 0, "spilled");
	eq(-pl_region_spill(g, 0, path_of("cold"), &diag), EEXIST, "not over another");
	eq(-pl_region_spill(g, 5, path_of("five"), &diag), ENOENT, "not what is not there");
	eq(pl_region_save(g, path_of("saved"), &diag), 0, "saved");
	eq(pl_region_save(g, path_of("saved"), &diag), 0, "over the one before");
	eq(-pl_region_save(g, path_of("no/folder"), &diag), ENOENT, "nowhere");
	eq(pl_region_open(&saved, path_of("saved"), PL_REGION_READ, NULL, &diag), 0, "is a region");
	eq(saved != NULL ? pl_region_epoch(saved) : UINT64_MAX, pl_region_epoch(g),
		"of the present epoch");
	ok(saved != NULL && pl_region_store(saved, pl_region_epoch(g)) != NULL &&
			memcmp(pl_region_store(saved, pl_region_epoch(g)),
				pl_region_store(g, pl_region_epoch(g)), 4096) == 0,
		"with its bytes");
	pl_region_close(saved);
	eq(pl_region_next_epoch(g, NULL), 0);
	ok(pl_region_store(g, 0) == NULL, "two epochs on it is gone");
	eq(number_in(g, 1), 101);
	eq(number_in(g, 2), UINT32_MAX, "its half was emptied");
	eq(pl_region_close(g), 0);
	eq(pl_region_open(&g, path_of("epochs"), PL_REGION_WRITE, NULL, NULL), 0, "opened again");
	pl_region_get_info(g, &info);
	ok(info.epoch == 2 && info.both && info.halves == 2);
	eq(number_in(g, 1), 101);
	pl_region_close(g);
	eq(pl_region_open(&old, path_of("cold"), PL_REGION_READ, NULL, NULL), 0, "the cold one");
	pl_region_get_info(old, &info);
	ok(info.epoch == 0 && info.clean && info.halves == 1);
	eq(number_in(old, 0), 100, "still answers");
	pl_region_close(old);
	ok(no_parts() && access(path_of("five"), F_OK) < 0, "nothing half made is left");
	unlink(path_of("cold"));
	unlink(path_of("saved"));
	unlink(path_of("epochs"));
}

/* Processes that save to one path at the same time: each succeeds, and the file is always whole. */
static void saved_by_several(void)
{
	enum { SAVERS = 4, TIMES = 100 };
	struct pl_store_params params = params_of(1000);
	struct pl_region *g, *saved;
	unsigned int good = 0, bad = 0;
	pid_t savers[SAVERS];
	int status;

	eq(pl_region_create(&g, path_of("shared"), &params, NULL, NULL), 0);
	eq(pl_region_save(g, path_of("copy"), NULL), 0);
	for (unsigned int i = 0; i < SAVERS; i++) {
		savers[i] = fork();
		if (savers[i] != 0)
			continue;
		for (unsigned int k = 0; k < TIMES; k++) {
			if (pl_region_save(g, path_of("copy"), NULL) < 0)
				_exit(1);
		}
		_exit(0);
	}
	for (unsigned int k = 0; k < TIMES; k++) {
		saved = NULL;
		bad += pl_region_open(&saved, path_of("copy"), PL_REGION_READ, NULL, NULL) < 0;
		pl_region_close(saved);
	}
	for (unsigned int i = 0; i < SAVERS; i++)
		good += waitpid(savers[i], &status, 0) == savers[i] && status == 0;
	eq(good, SAVERS, "each of them saves");
	eq(bad, 0, "what is there is whole");
	pl_region_close(g);
	unlink(path_of("shared"));
	unlink(path_of("copy"));
}

struct list_writer {
	struct pl_append a;
	_Atomic bool over;
};

static uint32_t bare_entry(uint64_t number)
{
	return (uint32_t)number * 2 + 1; /* never 0 */
}

static void *write_list(void *arg)
{
	struct list_writer *w = arg;
	uint32_t entries[64];
	uint64_t number = 0;

	while (!atomic_load(&w->over)) {
		for (unsigned int i = 0; i < 64; i++)
			entries[i] = bare_entry(number++);
		pl_append_put(&w->a, 0, entries, 64);
	}
	return NULL;
}

/* Counts the entries of a copy that are those of their numbers, in ret[0]; empty ones; others. */
static void judge_copy(const char *path, uint64_t ret[3])
{
	struct pl_region *copy = NULL;
	struct pl_append a;
	uint32_t entry;

	if (pl_region_open(&copy, path, PL_REGION_READ, NULL, NULL) < 0 ||
		pl_append_init(&a, pl_region_params(copy), pl_region_store(copy, 0)) < 0)
		abort();
	for (uint64_t i = pl_append_oldest(&a, 0); i < pl_append_head(&a, 0); i++) {
		memcpy(&entry, a.base + PL_APPEND_RING_AT + i % a.slots * sizeof(entry),
			sizeof(entry));
		ret[entry == bare_entry(i) ? 0 : entry == 0 ? 1 : 2]++;
	}
	pl_region_close(copy);
}

/* Entries without seals do not contain their numbers: a copy must have them in their places. */
static void list_saved_while_written(void)
{
	struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.append = { .slots = 1 << 18, .lists = 1, .entry_bytes = 4, .batch_max = 64 } };
	struct list_writer w = { .over = false };
	uint64_t entries[3] = { 0 };
	struct pl_region *g;
	pthread_t thread;

	if (pl_region_create(&g, path_of("written"), &params, NULL, NULL) < 0 ||
		pl_append_init(&w.a, &params, pl_region_store(g, 0)) < 0 ||
		pthread_create(&thread, NULL, write_list, &w) != 0)
		abort();
	while (pl_append_head(&w.a, 0) < 2 * w.a.slots)
		sched_yield();
	for (unsigned int i = 0; i < 20; i++) {
		if (pl_region_save(g, path_of("list"), NULL) < 0)
			abort();
		judge_copy(path_of("list"), entries);
	}
	atomic_store(&w.over, true);
	pthread_join(thread, NULL);
	printf("# %" PRIu64 " entries, %" PRIu64 " of them empty\n", entries[0] + entries[1],
		entries[1]);
	eq(entries[2], 0, "no entry of a copy has another's number");
	ok(entries[0] > 0, "they are there");
	pl_region_close(g);
	unlink(path_of("list"));
	unlink(path_of("written"));
}

/* The half is emptied beforehand: while the present epoch is still written, and the turn finds it
 * so. */
static void epochs_prepared(void)
{
	struct pl_store_params params = params_of(1000);
	struct pl_region_options two = { .halves = 2 };
	struct pl_region *g, *reader = NULL;

	eq(pl_region_create(&g, path_of("prepared"), &params, &two, NULL), 0);
	put_number(g, 0, 100);
	eq(pl_region_next_epoch(g, NULL), 0);
	put_number(g, 1, 101);
	eq(pl_region_prepare_epoch(g, NULL), 0);
	ok(pl_region_epoch(g) == 1 && pl_region_store(g, 0) == NULL, "the one before is gone");
	eq(number_in(g, 1), 101, "the present one is not");
	put_number(g, 1, 102);
	eq(pl_region_next_epoch(g, NULL), 0);
	eq(number_in(g, 1), 102, "what was written meanwhile is in the old one");
	eq(number_in(g, 2), UINT32_MAX, "the new one is empty");
	put_number(g, 2, 103);
	eq(pl_region_next_epoch(g, NULL), 0);
	eq(number_in(g, 3), UINT32_MAX, "also when nobody prepared it");
	eq(number_in(g, 2), 103);
	eq(pl_region_open(&reader, path_of("prepared"), PL_REGION_READ, NULL, NULL), 0);
	eq(-pl_region_prepare_epoch(reader, NULL), EACCES, "a reader prepares nothing");
	pl_region_close(reader);
	/* Ended between the two: the epoch goes on. */
	eq(pl_region_prepare_epoch(g, NULL), 0);
	pl_region_close(g);
	eq(pl_region_open(&g, path_of("prepared"), PL_REGION_WRITE, NULL, NULL), 0);
	eq(pl_region_epoch(g), 3);
	put_number(g, 3, 104);
	eq(pl_region_next_epoch(g, NULL), 0);
	ok(number_in(g, 3) == 104 && number_in(g, 4) == UINT32_MAX);
	pl_region_close(g);
	unlink(path_of("prepared"));
}

static void epochs_in_place(void)
{
	struct pl_store_params params = params_of(1000);
	struct pl_region *g;

	eq(pl_region_create(&g, path_of("single"), &params, NULL, NULL), 0, "one half");
	put_number(g, 0, 1);
	eq(-pl_region_prepare_epoch(g, NULL), EINVAL, "there is nothing to prepare");
	eq(pl_region_next_epoch(g, NULL), 0);
	ok(pl_region_store(g, 0) == NULL, "the epoch before is gone at once");
	eq(number_in(g, 1), UINT32_MAX, "and the new one empty");
	pl_region_close(g);
	unlink(path_of("single"));
}

/* ---- group commit ---- */

static uint64_t synced(const struct pl_region *g)
{
	struct pl_region_info info;

	pl_region_get_info(g, &info);
	return info.synced_ns;
}

static void commits(void)
{
	struct pl_store_params params = params_of(1000);
	struct pl_region_options options = { .sync_ns = 1000000 };
	struct pl_region_info info;
	uint64_t first = 0;
	struct pl_region *g;

	eq(pl_region_create(&g, path_of("commit"), &params, &options, NULL), 0);
	ok(eventually((first = synced(g)) != 0) && eventually(synced(g) != first),
		"written to disk again and again");
	pl_region_get_info(g, &info);
	eq(info.sync_failures, 0);
	eq(pl_region_close(g), 0);
	unlink(path_of("commit"));
}

/* ---- cut under the mapping ---- */

static int cut_and_read(bool guarded)
{
	struct pl_store_params params = params_of(10000);
	struct pl_region_info info;
	int status, pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct pl_region *w, *r;
		bool good;

		signal(SIGBUS, SIG_DFL); /* a sanitizer has its own */
		if (guarded && pl_region_guard() < 0)
			_exit(10);
		if (pl_region_create(&w, path_of("cut"), &params, NULL, NULL) < 0 ||
			pl_region_open(&r, path_of("cut"), PL_REGION_READ, NULL, NULL) < 0)
			_exit(11);
		put_number(w, 0, 5);
		good = number_in(r, 0) == 5;
		if (truncate(path_of("cut"), 4096) < 0)
			_exit(12);
		good &= number_in(r, 0) == UINT32_MAX; /* zeros: not found, no signal */
		put_number(w, 0, 6);
		good &= number_in(w, 0) == 6; /* written to nowhere, and no signal */
		pl_region_get_info(r, &info);
		good &= info.lost_pages > 0;
		pl_region_get_info(w, &info);
		good &= info.lost_pages > 0;
		(void)pl_region_close(w);
		(void)pl_region_close(r);
		_exit(good && open_error("cut", NULL) == ERANGE ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	unlink(path_of("cut"));
	return status;
}

static void cut_under_mapping(void)
{
	int status = cut_and_read(true);

	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		"a file cut under its readers and writer: counted, refused afterwards, no signal (%#x)",
		(unsigned int)status);
	status = cut_and_read(false);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS,
		"which without the guard ends the process (%#x)", (unsigned int)status);
}

int main(void)
{
	if (mkdtemp(folder) == NULL)
		abort();
	life(100);
	life(100000);
	bad_parameters();
	damaged_header();
	contradictions();
	not_regions();
	full_disk();
	one_writer();
	racing_writers();
	epochs();
	saved_by_several();
	list_saved_while_written();
	epochs_prepared();
	epochs_in_place();
	commits();
	cut_under_mapping();
	rmdir(folder);
	ok(access(folder, F_OK) < 0, "nothing is left behind");
	return pl_test_done();
}
