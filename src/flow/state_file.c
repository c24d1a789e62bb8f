/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, checks, renames and creates the file of a flow state. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32.h"
#include "flow/cache_state.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define TRIES   100

/* ---- the header ---- */

uint32_t pl_flow_kept_check(const struct pl_flow_kept *k)
{
	uint32_t crc = pl_crc32(0, k->magic, sizeof(k->magic));

	crc = pl_crc32(crc, &k->version, sizeof(k->version));
	crc = pl_crc32(crc, &k->n_buckets, sizeof(k->n_buckets));
	crc = pl_crc32(crc, k->boot, sizeof(k->boot));
	return pl_crc32(crc, k->seed, sizeof(k->seed));
}

/* 32 digits, with dashes between them. */
static int read_boot(uint8_t ret[16], struct pl_diag *diag)
{
	char text[64] = "";
	unsigned int n = 0;
	FILE *file = fopen(BOOT_ID, "re");

	if (file != NULL) {
		(void)(fgets(text, sizeof(text), file) != NULL);
		(void)fclose(file);
	}
	for (const char *p = text; n < 16 && p[0] != '\0' && p[1] != '\0';) {
		unsigned int byte;

		if (*p == '-') {
			p++;
			continue;
		}
		if (sscanf(p, "%2x", &byte) != 1)
			break;
		ret[n++] = (uint8_t)byte;
		p += 2;
	}
	if (n == 16)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"%s cannot be read: a flow state is of one boot of the machine", BOOT_ID);
}

static int failed(struct pl_diag *diag, const char *what, const char *path, int error)
{
	return pl_diag_fail(
		diag, -error, "cannot %s the flow state %s: %s", what, path, strerror(error));
}

/* ---- making ---- */

static void unmap(struct pl_flow_state *s)
{
	if (s->guard.map == NULL)
		return;
	pl_map_guard_leave(&s->guard);
	munmap(s->guard.map, s->guard.bytes);
	s->guard.map = NULL;
	s->kept = NULL;
}

static int map(struct pl_flow_state *s, uint32_t n_buckets, struct pl_diag *diag)
{
	const size_t bytes = pl_flow_layout(n_buckets).bytes;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s->fd, 0);
	int r;

	if (at == MAP_FAILED)
		return failed(diag, "map", s->path, errno);
	s->guard.map = at;
	s->guard.bytes = bytes;
	s->guard.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	r = pl_map_guard_install();
	if (r == 0)
		r = pl_map_guard_enter(&s->guard);
	if (r < 0) {
		munmap(at, bytes);
		s->guard.map = NULL;
		return failed(diag, "map", s->path, -r);
	}
	s->kept = at;
	return 0;
}

/* Allocates all blocks now: a page without room at its first write would raise a signal. */
static int allocate(const struct pl_flow_state *s, size_t bytes, struct pl_diag *diag)
{
	int r;

	do {
		r = fallocate(s->fd, 0, 0, (off_t)bytes) < 0 ? errno : 0;
	} while (r == EINTR);
	if (r == EOPNOTSUPP)
		r = posix_fallocate(s->fd, 0, (off_t)bytes);
	if (r != 0)
		pl_diag_set(
			diag, "the flow state %s takes %zu bytes: %s", s->path, bytes, strerror(r));
	return -r;
}

/* A process killed here leaves a file whose header says that it is not complete. */
static int make_room(struct pl_flow_state *s, size_t bytes, struct pl_diag *diag)
{
	struct {
		char magic[8];
		uint32_t version;
	} begun = { PL_FLOW_STATE_MAGIC, PL_FLOW_STATE_MAKING };
	int r;

	if (ftruncate(s->fd, 0) < 0)
		return failed(diag, "empty", s->path, errno);
	if (pwrite(s->fd, &begun, 12, 0) != 12)
		return failed(diag, "write", s->path, errno != 0 ? errno : EIO);
	r = allocate(s, bytes, diag);
	if (r < 0)
		(void)(ftruncate(s->fd, 0) < 0);
	return r;
}

int pl_flow_state_make(
	struct pl_flow_state *s, uint32_t n_buckets, const uint64_t seed[4], struct pl_diag *diag)
{
	int r;

	unmap(s);
	r = make_room(s, pl_flow_layout(n_buckets).bytes, diag);
	if (r == 0)
		r = map(s, n_buckets, diag);
	if (r < 0)
		return r;
	assert(s->kept != NULL);
	memcpy(s->kept->boot, s->boot, sizeof(s->boot));
	memcpy(s->kept->seed, seed, sizeof(s->kept->seed));
	s->kept->n_buckets = n_buckets;
	s->kept->version = PL_FLOW_STATE_VERSION;
	s->kept->check = pl_flow_kept_check(s->kept);
	s->kept->version = PL_FLOW_STATE_MAKING;
	memcpy(s->kept->points, s->points, sizeof(s->points));
	s->kept->n_points = s->n_points;
	PL_FLOW_FENCE();
	s->kept->version = PL_FLOW_STATE_VERSION;
	return 0;
}

/* ---- opening ---- */

static int lock(struct pl_flow_state *s, struct pl_diag *diag)
{
	int r;

	do {
		r = flock(s->fd, LOCK_EX | LOCK_NB) < 0 ? errno : 0;
	} while (r == EINTR);
	if (r != EWOULDBLOCK)
		return r == 0 ? 0 : failed(diag, "lock", s->path, r);
	return pl_diag_fail(diag, -EBUSY,
		"the flow state %s is in use by another tap: each has a file of its own", s->path);
}

/* True when the path still names the open file: the process that had the file may have renamed
 * it. */
static bool is_named(const struct pl_flow_state *s, const struct stat *st)
{
	struct stat there;

	return lstat(s->path, &there) == 0 && there.st_ino == st->st_ino &&
	       there.st_dev == st->st_dev;
}

/* Returns 1 when the file is open, 0 when the path names another file by now, or a negative
 * errno. */
static int open_once(struct pl_flow_state *s, struct stat *st, struct pl_diag *diag)
{
	int r;

	/* Without O_NONBLOCK a FIFO would be waited for. */
	s->fd = open(
		s->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	if (s->fd < 0 && errno == ELOOP)
		return pl_diag_fail(
			diag, -ELOOP, "%s is a symbolic link: name the flow state itself", s->path);
	if (s->fd < 0)
		return failed(diag, "open", s->path, errno);
	if (fstat(s->fd, st) < 0)
		return failed(diag, "open", s->path, errno);
	if (!S_ISREG(st->st_mode))
		return pl_diag_fail(diag, -EINVAL, "the flow state %s is no regular file", s->path);
	/* Another user with write access to the file could make this process use any value as an
	 * index. */
	if (st->st_uid != geteuid() || (st->st_mode & 022) != 0)
		return pl_diag_fail(diag, -EKEYREJECTED,
			"the flow state %s belongs to another user, or others may write it: it must be this user's alone",
			s->path);
	r = lock(s, diag);
	if (r < 0)
		return r;
	if (is_named(s, st) && fstat(s->fd, st) == 0)
		return 1;
	close(s->fd);
	s->fd = -1;
	return 0;
}

static int open_file(struct pl_flow_state *s, struct stat *st, struct pl_diag *diag)
{
	int r = 0;

	for (int i = 0; i < TRIES && r == 0; i++)
		r = open_once(s, st, diag);
	return r == 0 ? failed(diag, "open", s->path, EBUSY) : r < 0 ? r : 0;
}

/* ---- looking ---- */

static bool same_points(const struct pl_flow_state *s)
{
	const struct pl_flow_kept *k = s->kept;

	return k->n_points == s->n_points &&
	       memcmp(k->points, s->points, s->n_points * sizeof(s->points[0])) == 0;
}

/* Reason why the state cannot be taken; NULL when it can. `k` has the first bytes of the file, the
 * rest is 0. */
static const char *why_lost(const struct pl_flow_kept *k, off_t bytes, const uint8_t boot[16])
{
	if (k->version != PL_FLOW_STATE_VERSION)
		return "another version of pathline left it";
	if (k->check != pl_flow_kept_check(k) || k->n_buckets == 0 ||
		k->n_buckets > PL_FLOW_MAX_FLOWS / PL_FLOW_WAYS)
		return "its header is damaged";
	/* A file is longer than its layout when a process was killed while it made it larger. */
	if ((size_t)bytes < pl_flow_layout(k->n_buckets).bytes)
		return "it was cut";
	if (memcmp(k->boot, boot, 16) != 0)
		return "it is of before the machine was started again";
	return NULL;
}

/* The file's name becomes PATH.old, and the name is free. */
static int put_aside(struct pl_flow_state *s, struct pl_diag *diag)
{
	char *old;
	int r;

	if (asprintf(&old, "%s.old", s->path) < 0)
		return -ENOMEM;
	r = rename(s->path, old) < 0 ? errno : 0;
	free(old);
	close(s->fd);
	s->fd = -1;
	return r == 0 ? 0 : failed(diag, "put aside", s->path, r);
}

static int make_new(struct pl_flow_state *s, uint32_t n_buckets, struct pl_diag *diag)
{
	uint64_t seed[4];

	pl_flow_new_seed(seed, s);
	return pl_flow_state_make(s, n_buckets, seed, diag);
}

/* Takes the state of the file: its flows go on, or all end. */
static int take(struct pl_flow_state *s, const struct pl_flow_kept *k, uint32_t n_buckets,
	struct pl_diag *diag)
{
	int r = k->n_buckets != n_buckets ? allocate(s, pl_flow_layout(n_buckets).bytes, diag) : 0;

	if (r == 0)
		r = map(s, k->n_buckets, diag);
	if (r < 0)
		return r;
	s->was_there = true;
	if (k->n_buckets != n_buckets)
		s->found.differs = "the flow table has another size now";
	else if (!same_points(s))
		s->found.differs = "the interfaces or their observation points are others now";
	return 0;
}

/* Returns 1 when the state in the file was taken, 0 when a new one is to be made, or a negative
 * errno. */
static int look(
	struct pl_flow_state *s, const struct stat *st, uint32_t n_buckets, struct pl_diag *diag)
{
	struct pl_flow_kept k = { .version = 0 };
	ssize_t n = pread(s->fd, &k, offsetof(struct pl_flow_kept, clock_ns), 0);
	int r;

	if (n < 0)
		return failed(diag, "read", s->path, errno);
	if (n == 0)
		return 0;
	if (n < 12 || memcmp(k.magic, PL_FLOW_STATE_MAGIC, sizeof(k.magic)) != 0)
		return pl_diag_fail(diag, -EINVAL,
			"%s is no flow state, and stays as it is: name another file", s->path);
	if (k.version == PL_FLOW_STATE_MAKING)
		return 0;
	s->found.lost = why_lost(&k, st->st_size, s->boot);
	if (s->found.lost == NULL) {
		r = take(s, &k, n_buckets, diag);
		return r < 0 ? r : 1;
	}
	s->found.flows = k.live;
	s->found.packets = k.held;
	r = put_aside(s, diag);
	if (r == 0)
		r = open_file(s, &(struct stat){ 0 }, diag);
	return r;
}

int pl_flow_state_open(struct pl_flow_state **ret, const struct pl_flow_state_options *options,
	const struct pl_flow_config *config, struct pl_diag *diag)
{
	const uint32_t n_buckets = pl_flow_buckets_for(config);
	struct pl_flow_state *s;
	struct stat st;
	int r = pl_flow_config_check(config, diag);

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->fd = -1;
	s->path = strdup(options->path);
	s->n_points = options->n_points;
	memcpy(s->points, options->points, options->n_points * sizeof(s->points[0]));
	r = s->path != NULL ? read_boot(s->boot, diag) : -ENOMEM;
	if (r == 0)
		r = open_file(s, &st, diag);
	if (r == 0)
		r = look(s, &st, n_buckets, diag);
	if (r == 0)
		r = make_new(s, n_buckets, diag);
	if (r < 0) {
		pl_flow_state_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void pl_flow_state_close(struct pl_flow_state *s)
{
	if (s == NULL)
		return;
	unmap(s);
	if (s->fd >= 0)
		close(s->fd);
	free(s->path);
	free(s);
}

const struct pl_flow_found *pl_flow_state_found(const struct pl_flow_state *s)
{
	return &s->found;
}

void pl_flow_state_points(struct pl_flow_state *s, const struct pl_flow_point *points, uint32_t n)
{
	memcpy(s->points, points, n * sizeof(s->points[0]));
	s->n_points = n;
	memcpy(s->kept->points, s->points, n * sizeof(s->points[0]));
	s->kept->n_points = n;
}
