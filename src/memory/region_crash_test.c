/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A writer is killed, at random instants and at every system call: the regions open, what they give
 * is whole, nothing that was acknowledged is missing, nothing is there that was never written.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/test.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/region.h"

enum { ROUNDS = 200, KEYS = 64, VALUE = 60, ENTRY = 60, COUNTED = 16 };

static char folder[] = "/tmp/pathline-crash-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[4][128];
	static unsigned int turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
	return p;
}

/* What the writer has said is done; it lives in memory that both processes have. */
struct ledger {
	uint64_t value[KEYS]; /* last number put under the key */
	uint64_t path[KEYS];
	uint64_t entries;
	uint64_t count[COUNTED];
	uint32_t writing; /* the present writer has begun */
};

static struct ledger *ledger;

/* Bytes that all follow from a number, the number first. */
static void bytes_of(uint64_t number, uint8_t *bytes, size_t n)
{
	struct pl_rng rng;

	pl_rng_seed(&rng, number);
	memcpy(bytes, &number, sizeof(number));
	for (size_t i = sizeof(number); i < n; i++)
		bytes[i] = (uint8_t)pl_rng_u64(&rng);
}

static const struct pl_store_params stores[] = {
	{ .primitive = PL_KEY_WRITE, .hash = PL_HASH_PATHLINE, .key_write = { 10007, VALUE, 2 } },
	{ .primitive = PL_APPEND, .hash = PL_HASH_PATHLINE, .append = { 512, 1, ENTRY, 8, 1 } },
	{ .primitive = PL_COUNTERS, .hash = PL_HASH_PATHLINE, .counters = { 4096, 2, 0 } },
	{ .primitive = PL_POSTCARDS, .hash = PL_HASH_PATHLINE, .postcards = { 10007, 7, 2 } },
};

enum { STORES = 4 };

struct open_stores {
	struct pl_region *region[STORES];
	struct pl_key_write kw;
	struct pl_append a;
	struct pl_counters c;
	struct pl_postcards p;
};

static int open_all(struct open_stores *o, enum pl_region_access access)
{
	void *base[STORES];

	for (int i = 0; i < STORES; i++) {
		int r = pl_region_open(&o->region[i],
			path_of(pl_primitive_name(stores[i].primitive)), access, NULL, NULL);

		if (r < 0)
			return r;
		base[i] = pl_region_store(o->region[i], pl_region_epoch(o->region[i]));
	}
	return pl_key_write_init(&o->kw, &stores[0], base[0]) +
	       pl_append_init(&o->a, &stores[1], base[1]) +
	       pl_counters_init(&o->c, &stores[2], base[2]) +
	       pl_postcards_init(&o->p, &stores[3], base[3]);
}

static void close_all(struct open_stores *o)
{
	for (int i = 0; i < STORES; i++)
		(void)pl_region_close(o->region[i]);
}

static void path_numbered(uint64_t number, uint32_t path[7])
{
	for (uint32_t i = 0; i < 7; i++)
		path[i] = (uint32_t)number + 1000000 * i;
}

/* Writes until it is killed, a put and then its line in the ledger. */
static void write_for_ever(uint64_t number)
{
	uint8_t bytes[8 * ENTRY];
	struct open_stores o;
	uint32_t path[7];

	if (open_all(&o, PL_REGION_WRITE) != 0)
		_exit(1);
	__atomic_store_n(&ledger->writing, 1, __ATOMIC_RELEASE);
	for (;; number++) {
		uint32_t k = number % KEYS, c = number % COUNTED;
		unsigned int batch = 1 + number % 8;

		bytes_of(number, bytes, VALUE);
		pl_key_write_put(&o.kw, pl_key_write_key(&o.kw, &k, 4), bytes, 2);
		__atomic_store_n(&ledger->value[k], number, __ATOMIC_RELEASE);
		for (unsigned int i = 0; i < batch; i++)
			bytes_of(ledger->entries + i, bytes + (size_t)i * ENTRY, ENTRY);
		/* Killed between the two, the list is ahead of the ledger: the numbers come from
		 * the list. */
		__atomic_store_n(&ledger->entries, pl_append_put(&o.a, 0, bytes, batch) + batch,
			__ATOMIC_RELEASE);
		pl_counters_add(&o.c, pl_counters_key(&o.c, &c, 4), 1);
		__atomic_store_n(&ledger->count[c], ledger->count[c] + 1, __ATOMIC_RELEASE);
		path_numbered(number, path);
		(void)pl_postcards_put(&o.p, pl_postcards_key(&o.p, &k, 4), path, 7);
		__atomic_store_n(&ledger->path[k], number, __ATOMIC_RELEASE);
	}
}

struct findings {
	unsigned int torn, missing, damaged, unopened, unclean, low, high, ahead;
};

/* What is there against what was acknowledged: no older, and newer only for the one that was being
 * written. */
static void settle(uint64_t found, uint64_t *acknowledged, struct findings *f, unsigned int *ahead)
{
	f->missing += found < *acknowledged;
	*ahead += found > *acknowledged;
	*acknowledged = found;
}

static void check_values(const struct open_stores *o, struct findings *f)
{
	unsigned int values_ahead = 0, paths_ahead = 0;

	for (uint32_t k = 0; k < KEYS; k++) {
		struct pl_key key = pl_key_write_key(&o->kw, &k, 4);
		uint8_t value[VALUE], want[VALUE];
		enum pl_answer answer = pl_key_write_get(&o->kw, key, 1, value).answer;
		uint32_t got[7], path[7];
		uint64_t number;

		if (answer == PL_FOUND) {
			memcpy(&number, value, sizeof(number));
			bytes_of(number, want, VALUE);
			f->torn += memcmp(value, want, VALUE) != 0 || number % KEYS != k;
			settle(number, &ledger->value[k], f, &values_ahead);
		} else {
			/* Ambiguous: one copy of the old value and one of the new, a vote each. (No
			 * key's slots are all taken by others with this seed.) */
			f->missing += answer == PL_NOT_FOUND && ledger->value[k] != 0;
		}
		key = pl_postcards_key(&o->p, &k, 4);
		if (pl_postcards_get(&o->p, key, NULL, got).answer == PL_FOUND) {
			path_numbered(got[0], path);
			f->torn += memcmp(got, path, sizeof(path)) != 0;
			settle(got[0], &ledger->path[k], f, &paths_ahead);
		}
	}
	f->ahead += values_ahead > 1 || paths_ahead > 1;
}

static void check_list(const struct open_stores *o, struct findings *f)
{
	uint8_t entries[64 * ENTRY], want[ENTRY];
	struct pl_append_reader r;
	uint64_t numbers[64], last = 0;
	size_t n;

	pl_append_reader_init(&r, &o->a, 0, pl_append_oldest(&o->a, 0));
	while ((n = pl_append_read(&r, entries, numbers, 64)) > 0) {
		for (size_t i = 0; i < n; i++) {
			bytes_of(numbers[i], want, ENTRY);
			f->torn += memcmp(entries + i * ENTRY, want, ENTRY) != 0;
			last = numbers[i] + 1;
		}
	}
	f->damaged += r.damaged != 0;
	f->missing += last < ledger->entries;
}

static void check_counts(const struct open_stores *o, struct findings *f)
{
	for (uint32_t c = 0; c < COUNTED; c++) {
		uint64_t count = pl_counters_get(&o->c, pl_counters_key(&o->c, &c, 4));

		f->low += count < ledger->count[c];
		/* Each death may leave one increment that was done and not noted. */
		f->high += count > ledger->count[c] + ROUNDS;
	}
}

static void kill_at_random(void)
{
	struct findings f = { .torn = 0 };
	uint64_t before, written = 0;
	struct pl_rng rng;

	for (int i = 0; i < STORES; i++) {
		struct pl_region *g;

		eq(pl_region_create(&g, path_of(pl_primitive_name(stores[i].primitive)), &stores[i],
			   NULL, NULL),
			0, "%s", pl_primitive_name(stores[i].primitive));
		pl_region_close(g);
	}
	pl_rng_seed(&rng, 9);
	fflush(stdout);
	for (int round = 0; round < ROUNDS; round++) {
		struct pl_region_info info;
		struct open_stores o;
		uint64_t number = KEYS;
		int pid;

		for (int k = 0; k < KEYS; k++)
			number = ledger->value[k] >= number ? ledger->value[k] + KEYS : number;
		number -= number % KEYS;
		/* Entries are numbered by the list, which a killed writer left ahead of the
		 * ledger. */
		before = number;
		if (open_all(&o, PL_REGION_READ) == 0) {
			ledger->entries = pl_append_head(&o.a, 0);
			close_all(&o);
		}
		ledger->writing = 0;
		pid = fork();
		if (pid == 0)
			write_for_ever(number);
		while (__atomic_load_n(&ledger->writing, __ATOMIC_ACQUIRE) == 0 &&
			waitpid(pid, NULL, WNOHANG) == 0)
			usleep(50);
		usleep((useconds_t)pl_rng_below(&rng, 3000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (open_all(&o, PL_REGION_READ) != 0) {
			f.unopened++;
			continue;
		}
		pl_region_get_info(o.region[1], &info);
		f.unclean += !info.clean;
		check_values(&o, &f);
		check_list(&o, &f);
		check_counts(&o, &f);
		close_all(&o);
		for (int k = 0; k < KEYS; k++)
			written += ledger->value[k] > before;
	}
	printf("# %" PRIu64 " keys changed, %" PRIu64 " entries\n", written, ledger->entries);
	ok(written > KEYS, "the writers wrote");
	eq(f.unopened, 0, "%d kills: the regions open", ROUNDS);
	ok(f.unclean > 0, "and say that they were not closed (%u times)", f.unclean);
	eq(f.torn, 0, "no value, path or entry is torn");
	eq(f.missing, 0, "nothing acknowledged is missing");
	eq(f.ahead, 0, "nor more than one there that was not acknowledged");
	eq(f.damaged, 0, "no published entry is damaged");
	eq(f.low, 0, "no count is too low");
	eq(f.high, 0, "nor higher than the deaths explain");
	for (int i = 0; i < STORES; i++)
		unlink(path_of(pl_primitive_name(stores[i].primitive)));
}

/* ---- at every system call ---- */

static void put_epoch(const struct pl_region *g)
{
	uint64_t epoch = pl_region_epoch(g);
	uint8_t value[VALUE];
	struct pl_key_write kw;

	if (pl_key_write_init(&kw, pl_region_params(g), pl_region_store(g, epoch)) < 0)
		_exit(2);
	bytes_of(epoch, value, VALUE);
	for (uint32_t k = 0; k < KEYS; k++)
		pl_key_write_put(&kw, pl_key_write_key(&kw, &k, 4), value, 2);
}

/* Files that a process left which died in the middle of a copy. */
static void unlink_parts(void)
{
	glob_t found;

	if (glob(path_of("cold.*.part"), 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			unlink(found.gl_pathv[i]);
		globfree(&found);
	}
}

/* Everything that changes files. */
static void script(void)
{
	struct pl_region_options two = { .halves = 2 };
	struct pl_region *g;

	if (pl_region_create(&g, path_of("script"), &stores[0], &two, NULL) < 0)
		_exit(3);
	put_epoch(g);
	if (pl_region_next_epoch(g, NULL) < 0)
		_exit(4);
	put_epoch(g);
	if (pl_region_spill(g, 0, path_of("cold"), NULL) < 0 || pl_region_next_epoch(g, NULL) < 0 ||
		pl_region_close(g) < 0)
		_exit(5);
	if (pl_region_open(&g, path_of("script"), PL_REGION_WRITE, NULL, NULL) < 0)
		_exit(6);
	put_epoch(g);
	if (pl_region_close(g) < 0)
		_exit(7);
}

/* The script, killed as it enters or leaves its n-th system call. True when it came to its end
 * first. */
static bool killed_at(unsigned int n)
{
	int status, pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		raise(SIGSTOP);
		script();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	for (unsigned int i = 0; i < n && WIFSTOPPED(status); i++) {
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		waitpid(pid, &status, 0);
	}
	if (!WIFSTOPPED(status)) {
		ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the script to its end: %#x",
			(unsigned int)status);
		return true;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return false;
}

/* Values of an epoch are of that epoch, or not there. */
static unsigned int strangers(const struct pl_region *g)
{
	unsigned int n = 0;

	for (uint64_t epoch = 0; epoch <= pl_region_epoch(g); epoch++) {
		void *base = pl_region_store(g, epoch);
		uint8_t value[VALUE], want[VALUE];
		struct pl_key_write kw;

		if (base == NULL || pl_key_write_init(&kw, pl_region_params(g), base) < 0)
			continue;
		bytes_of(epoch, want, VALUE);
		for (uint32_t k = 0; k < KEYS; k++) {
			if (pl_key_write_get(&kw, pl_key_write_key(&kw, &k, 4), 1, value).answer ==
				PL_FOUND)
				n += memcmp(value, want, VALUE) != 0;
		}
	}
	return n;
}

static void kill_at_each_call(void)
{
	unsigned int n = 0, bad = 0, foreign = 0, opened = 0, cold = 0;
	bool finished;

	fflush(stdout);
	do {
		struct pl_region *g;
		int r;

		finished = killed_at(n++);
		r = pl_region_open(&g, path_of("script"), PL_REGION_WRITE, NULL, NULL);
		/* Not there yet, or not created to its end, and said so. */
		bad += r != 0 && r != -ENOENT && r != -EBADMSG && r != -ERANGE;
		if (r == 0) {
			opened++;
			foreign += strangers(g);
			pl_region_close(g);
		}
		/* Under its name a spilled epoch is always whole. */
		r = pl_region_open(&g, path_of("cold"), PL_REGION_READ, NULL, NULL);
		bad += r != 0 && r != -ENOENT;
		if (r == 0) {
			struct pl_region_info info;

			cold++;
			pl_region_get_info(g, &info);
			bad += !info.clean || info.epoch != 0 || strangers(g) != 0;
			pl_region_close(g);
		}
		unlink(path_of("script"));
		unlink(path_of("cold"));
		unlink_parts();
	} while (!finished && n < 10000);
	printf("# %u places to die, region there %u times, spilled epoch %u times\n", n, opened,
		cold);
	ok(n > 50 && opened > 10 && cold > 5);
	eq(bad, 0, "files are absent, refused or good");
	eq(foreign, 0, "no epoch shows values of another");
}

int main(void)
{
	ledger = mmap(
		NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ledger == MAP_FAILED || mkdtemp(folder) == NULL)
		abort();
	kill_at_random();
	kill_at_each_call();
	rmdir(folder);
	ok(access(folder, F_OK) < 0, "nothing is left behind");
	return pl_test_done();
}
