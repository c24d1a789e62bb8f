/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that begin a history at the same moment in the same folder, which is new, has a good
 * history, or a damaged one: one of them gets it, the others are told that it is being written, and
 * nothing that is good is set aside or removed. Locks are taken late here, so that windows are
 * wide. usage: history_race_test [ROUNDS]
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/test.h"
#include "memory/history.h"

#define STARTERS 3
#define ROUNDS   300

static struct pl_rng rng;
static char folder[] = "/tmp/pathline-race-XXXXXX";
static char path[64], first[96];
static unsigned int slow_us; /* at most so much later is each lock taken */

/* In place of the C library's. */
int flock(int fd, int operation)
{
	if (slow_us > 0 && (operation & LOCK_EX) != 0)
		usleep((useconds_t)pl_rng_below(&rng, slow_us));
	return (int)syscall(SYS_flock, fd, operation);
}

struct told {
	int result;
	ino_t ino; /* of the first list's file, where it is ours */
};

static const struct pl_history_options options = {
	.slots = { [PL_HISTORY_EVENTS] = 64, [PL_HISTORY_PATHS] = 64, [PL_HISTORY_HOPS] = 64 }
};

/* Begins when the first pipe ends, says what became of it, and keeps it until the second ends. */
static void starter(int begin, int say, int end, uint64_t seed)
{
	struct told told = { .result = 0 };
	struct pl_history *h = NULL;
	struct stat st;
	char byte;

	pl_rng_seed(&rng, seed);
	(void)!read(begin, &byte, 1);
	usleep((useconds_t)pl_rng_below(&rng, 1 + slow_us));
	told.result = pl_history_begin(&h, path, &options, NULL);
	if (told.result == 0 &&
		fstat(pl_region_fd(pl_history_region(h, PL_HISTORY_EVENTS)), &st) == 0)
		told.ino = st.st_ino;
	(void)!write(say, &told, sizeof(told));
	(void)!read(end, &byte, 1);
	_exit(told.result == 0 && pl_history_close(h) < 0);
}

/* Files of the folder with this in their names. */
static unsigned int files(const char *part)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	unsigned int n = 0;

	while (dir != NULL && (e = readdir(dir)) != NULL)
		n += e->d_name[0] != '.' && strstr(e->d_name, part) != NULL;
	if (dir != NULL)
		closedir(dir);
	return n;
}

static void empty(void)
{
	DIR *dir = opendir(path);
	const struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL)
		(void)unlinkat(dirfd(dir), e->d_name, 0);
	if (dir != NULL)
		closedir(dir);
	(void)rmdir(path);
}

static void damage(void)
{
	int fd = open(first, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ok(write(fd, "half of a header", 16) == 16, "a damaged file");
	close(fd);
}

/* What of several starters is told: how many began, how many were refused as they should be; the
 * winner's file. */
static void start_all(unsigned int *ret_won, unsigned int *ret_busy, ino_t *ret_ino)
{
	int begin[2], say[2], end[2];
	pid_t children[STARTERS];

	if (pipe(begin) < 0 || pipe(say) < 0 || pipe(end) < 0)
		abort();
	for (int i = 0; i < STARTERS; i++) {
		const uint64_t seed = pl_rng_u64(&rng);

		children[i] = fork();
		if (children[i] == 0) {
			close(begin[1]);
			close(end[1]);
			starter(begin[0], say[1], end[0], seed);
		}
	}
	close(begin[0]);
	close(end[0]);
	close(begin[1]);
	*ret_won = *ret_busy = 0;
	for (int i = 0; i < STARTERS; i++) {
		struct told told = { .result = -1 };

		if (read(say[0], &told, sizeof(told)) != sizeof(told))
			break;
		*ret_won += told.result == 0;
		*ret_busy += told.result == -EBUSY;
		if (told.result == 0)
			*ret_ino = told.ino;
	}
	close(say[0]);
	close(say[1]);
	close(end[1]);
	for (int i = 0; i < STARTERS; i++)
		(void)waitpid(children[i], NULL, 0);
}

static void race(unsigned int rounds)
{
	unsigned int one = 0, others = 0, kept = 0, aside = 0, damaged = 0, left = 0;

	for (unsigned int i = 0; i < rounds; i++) {
		unsigned int won, busy;
		struct stat st;
		ino_t ino = 0;

		/* New, with what the round before left, damaged. */
		if (i % 3 == 0)
			empty();
		if (i % 3 == 2) {
			damage();
			damaged++;
		}
		start_all(&won, &busy, &ino);
		one += won == 1;
		others += busy == STARTERS - 1;
		kept += stat(first, &st) == 0 && st.st_ino == ino;
		aside += files("damaged");
		left += files("") - files("damaged") != 3;
	}
	eq(one, rounds, "one of %d has it", STARTERS);
	eq(others, rounds, "the others are told that it is being written");
	eq(kept, rounds, "the file that it writes keeps its name");
	eq(aside, damaged, "what is damaged is set aside, once, and nothing else is");
	eq(left, 0, "no other file is left");
	empty();
}

int main(int argc, char **argv)
{
	const unsigned int rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : ROUNDS;

	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(path, sizeof(path), "%s/h", folder);
	snprintf(first, sizeof(first), "%s/events.region", path);
	pl_rng_seed(&rng, 17);
	slow_us = 2000;
	race(rounds);
	slow_us = 0;
	race(rounds);
	(void)rmdir(folder);
	return pl_test_done();
}
