/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/spool.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

/* docs/formats/spool.md. Little-endian, naturally aligned. */
struct header {
	uint8_t magic[4];
	uint32_t len;
	uint32_t entries;
	uint32_t flags;
	uint64_t sequence;
	uint32_t head_check; /* low half of XXH3-64 over what is before it */
	uint32_t settled; /* not checked: SETTLED once a copy is not needed any more, else zero */
	uint64_t check;   /* XXH3-64 of the payload, seeded with that of what is before it */
};

_Static_assert(sizeof(struct header) == 40, "the format says so");

struct cursor {
	uint8_t magic[4];
	uint32_t zero;
	uint64_t sequence; /* of the first record not settled */
	uint64_t check;
};

#define SETTLED UINT32_C(0x6c746573) /* "setl" */

static const uint8_t record_magic[4] = { 'P', 'L', 'r', 1 };
static const uint8_t cursor_magic[4] = { 'P', 'L', 'c', 1 };

/* Out of reach for who counts from one, and far from where a 64-bit number wraps. */
#define SEQUENCE_END (UINT64_C(1) << 62)

enum {
	SEGMENTS_MAX = 4096,
	SCAN_BYTES = 64 << 10,
	ASIDE_BYTES = 16 << 20, /* of damaged bytes kept */
	BYTES_MIN = 1 << 20,
	SEGMENT_MAX = 64 << 20,
};

struct segment {
	uint64_t first;   /* sequence in its name */
	uint64_t size;    /* whole records up to here */
	uint64_t read;    /* settled up to here */
	uint64_t entries; /* not settled */
	uint64_t records;
};

struct pl_spool {
	struct pl_spool_options options;
	int folder, lock, cursor;
	int out; /* the last segment, when it may be added to; else -1 */
	int in;  /* the first segment, when open; else -1 */
	bool unsynced;
	uint64_t next_sequence;
	struct segment *segments;
	uint32_t n_segments;
	struct pl_spool_counts counts;
	/* The record lent. */
	bool peeked, detached; /* detached: its segment is gone */
	struct header head;
	uint8_t *payload;
	uint32_t payload_cap;
};

/* ---- small things ---- */

static const struct pl_spool_sys the_system = { .write = write, .sync = fdatasync };

static void segment_name(const struct segment *g, char dst[32])
{
	snprintf(dst, 32, "%016llx.seg", (unsigned long long)g->first);
}

static int write_all(struct pl_spool *s, int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = s->options.sys->write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* As many bytes as there are, at most len; -errno. */
static ssize_t read_at(int fd, void *dst, size_t len, uint64_t at)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = pread(fd, (char *)dst + have, len - have, (off_t)(at + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

static uint32_t head_check(const struct header *h)
{
	return (uint32_t)pl_hash(h, offsetof(struct header, head_check), 0);
}

static uint64_t full_check(const struct header *h, const void *payload)
{
	struct header clean = *h;

	clean.settled = 0;
	return pl_hash(payload, h->len, pl_hash(&clean, offsetof(struct header, check), 0));
}

/* Whether this can be the header of a record from `least` on. */
static bool header_good(const struct header *h, uint64_t least)
{
	return memcmp(h->magic, record_magic, sizeof(record_magic)) == 0 &&
	       h->head_check == head_check(h) && h->sequence >= least &&
	       h->sequence < SEQUENCE_END && h->len <= PL_SPOOL_PAYLOAD_MAX;
}

/* The payload of the record at `at` into s->payload; false when it is not what was written. */
static bool read_payload(struct pl_spool *s, int fd, uint64_t at, const struct header *h)
{
	if (h->len > s->payload_cap) {
		/* Written when batches were larger than they are now. */
		uint8_t *bigger = realloc(s->payload, (size_t)h->len + 1);

		if (bigger == NULL)
			return false;
		s->payload = bigger;
		s->payload_cap = h->len;
	}
	if (read_at(fd, s->payload, h->len, at + sizeof(*h)) != (ssize_t)h->len)
		return false;
	/* One bit off is a bit of the checksum itself: 64 of them do not come so close by chance. */
	return __builtin_popcountll(h->check ^ full_check(h, s->payload)) <= 1;
}

/* Damaged bytes are kept for whoever wants to look, as far as there is room. Best effort. */
static void set_aside(struct pl_spool *s, int fd, uint64_t from, uint64_t to)
{
	char buf[4096];
	struct stat st;
	int out = openat(
		s->folder, "damaged", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (out < 0)
		return;
	if (fstat(out, &st) == 0 && st.st_size < ASIDE_BYTES) {
		if (to - from > ASIDE_BYTES)
			to = from + ASIDE_BYTES;
		while (from < to) {
			size_t n = to - from < sizeof(buf) ? (size_t)(to - from) : sizeof(buf);
			ssize_t got = read_at(fd, buf, n, from);

			if (got <= 0 || write_all(s, out, buf, (size_t)got) < 0)
				break;
			from += (uint64_t)got;
		}
	}
	close(out);
}

/* ---- finding records ---- */

/*
 * A header of which one bit is not what was written: the one whose change makes both checksums right, that of the
 * header and that of the payload. False when there is none.
 */
static bool mend_header(
	struct pl_spool *s, int fd, uint64_t size, uint64_t least, uint64_t at, struct header *ret)
{
	struct header damaged, h;

	if (size - at < sizeof(h) || read_at(fd, &damaged, sizeof(damaged), at) != sizeof(damaged))
		return false;
	for (unsigned int bit = 0; bit < 8 * offsetof(struct header, settled); bit++) {
		h = damaged;
		((uint8_t *)&h)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (!header_good(&h, least) || h.len > size - at - sizeof(h) ||
			!read_payload(s, fd, at, &h))
			continue;
		*ret = h;
		return true;
	}
	return false;
}

/*
 * The first record header at or behind *at that lies in the file whole; *at moves there. False when there is
 * none before `size`. Usually it is at *at; one with a wrong bit is mended, and behind other damage the next one is
 * looked for byte by byte.
 */
static bool find_header(
	struct pl_spool *s, int fd, uint64_t size, uint64_t least, uint64_t *at, struct header *ret)
{
	uint8_t buf[SCAN_BYTES];
	uint64_t from = *at;

	if (size - from < sizeof(*ret))
		return false;
	if (read_at(fd, ret, sizeof(*ret), from) == (ssize_t)sizeof(*ret) &&
		header_good(ret, least) && ret->len <= size - from - sizeof(*ret))
		return true;
	if (mend_header(s, fd, size, least, from, ret))
		return true;
	for (from++; from < size && size - from >= sizeof(*ret);) {
		ssize_t n = read_at(fd, buf, sizeof(buf), from);

		if (n < (ssize_t)sizeof(*ret))
			return false;
		for (size_t i = 0; i + sizeof(*ret) <= (size_t)n; i++) {
			if (buf[i] != record_magic[0])
				continue;
			memcpy(ret, buf + i, sizeof(*ret));
			if (header_good(ret, least) && from + i < size &&
				ret->len <= size - from - i - sizeof(*ret)) {
				*at = from + i;
				return true;
			}
		}
		from += (uint64_t)n - sizeof(*ret) + 1;
	}
	return false;
}

/* ---- segments ---- */

static int compare_segments(const void *a, const void *b)
{
	uint64_t x = ((const struct segment *)a)->first, y = ((const struct segment *)b)->first;

	return x < y ? -1 : x > y;
}

static int list_segments(struct pl_spool *s)
{
	int fd = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (dir == NULL) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 &&
		(e = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe): own stream */
		char *end;
		unsigned long long first;

		if (strlen(e->d_name) != 20 || strcmp(e->d_name + 16, ".seg") != 0 ||
			strspn(e->d_name, "0123456789abcdef") != 16)
			continue;
		first = strtoull(e->d_name, &end, 16);
		if (first >= SEQUENCE_END)
			continue;
		if (s->n_segments == SEGMENTS_MAX)
			r = -E2BIG;
		else
			s->segments[s->n_segments++] = (struct segment){ .first = first };
	}
	closedir(dir);
	qsort(s->segments, s->n_segments, sizeof(*s->segments), compare_segments);
	return r;
}

/* Takes segment i off the list and off the disk; what it still held is the caller's to count. */
static void remove_segment(struct pl_spool *s, uint32_t i)
{
	struct segment *g = &s->segments[i];
	char name[32];

	segment_name(g, name);
	if (i == 0 && s->in >= 0) {
		close(s->in);
		s->in = -1;
	}
	if (i == s->n_segments - 1 && s->out >= 0) {
		close(s->out);
		s->out = -1;
	}
	unlinkat(s->folder, name, 0);
	s->counts.bytes -= g->size;
	s->n_segments--;
	memmove(g, g + 1, (s->n_segments - i) * sizeof(*g));
}

static void write_cursor(struct pl_spool *s, uint64_t sequence, bool sync)
{
	struct cursor c = { .sequence = sequence };

	memcpy(c.magic, cursor_magic, sizeof(cursor_magic));
	c.check = pl_hash(&c, offsetof(struct cursor, check), 0);
	/* Lost, records are read twice: no reason to stop. */
	if (pwrite(s->cursor, &c, sizeof(c), 0) == (ssize_t)sizeof(c) && sync)
		(void)s->options.sys->sync(s->cursor);
}

static uint64_t read_cursor(const struct pl_spool *s)
{
	struct cursor c;

	if (read_at(s->cursor, &c, sizeof(c), 0) != (ssize_t)sizeof(c) ||
		memcmp(c.magic, cursor_magic, sizeof(cursor_magic)) != 0 ||
		c.check != pl_hash(&c, offsetof(struct cursor, check), 0))
		return 0;
	return c.sequence;
}

struct recovery {
	uint64_t cursor;
	uint64_t expect; /* the sequence that should come next */
	bool known;      /* what `expect` is: from then on gaps are damaged records */
	bool last;       /* the segment that was being written */
};

/* Whether what is behind the last whole record is one that was never whole: the crash came while it was written, or a
 * power cut left room without bytes. Nobody was told that it is there. */
static bool is_unwritten(int fd, uint64_t from, uint64_t size)
{
	uint8_t buf[4096];
	struct header h;
	ssize_t n;

	if (size - from < sizeof(h))
		return true;
	if (read_at(fd, &h, sizeof(h), from) == sizeof(h) && header_good(&h, 0) &&
		h.len > size - from - sizeof(h))
		return true;
	for (; from < size && (n = read_at(fd, buf, sizeof(buf), from)) > 0; from += (uint64_t)n) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] != 0)
				return false;
		}
	}
	return true;
}

static void recover_record(struct pl_spool *s, struct segment *g, const struct header *h,
	uint64_t end, struct recovery *c)
{
	/* A gap is records that are damaged; those before the cursor were settled. */
	uint64_t expect = c->expect > c->cursor ? c->expect : c->cursor;

	if (c->known && h->sequence > expect)
		s->counts.damaged_records += h->sequence - expect;
	c->known = true;
	c->expect = h->sequence + 1;
	g->size = end;
	if (h->sequence < c->cursor || h->settled == SETTLED) {
		if (g->records == 0)
			g->read = end;
		return;
	}
	g->entries += h->entries;
	g->records++;
}

/* Behind the last record of a segment. */
static int recover_tail(
	struct pl_spool *s, struct segment *g, int fd, uint64_t size, struct recovery *c)
{
	if (g->size == size)
		return 0;
	if (!is_unwritten(fd, g->size, size)) {
		set_aside(s, fd, g->size, size);
		/* Before a later segment it is a gap of the sequence, and counted as that. */
		if (c->last) {
			s->counts.damaged_records++;
			c->expect++;
		}
	}
	return ftruncate(fd, (off_t)g->size) < 0 ? -errno : 0;
}

/* Walks the headers of a segment as a crash left it; what is behind the last whole record is cut off. */
static int recover_segment(struct pl_spool *s, struct segment *g, struct recovery *c)
{
	struct header h, tail = { .len = 0 };
	struct stat st;
	uint64_t at = 0, size, begin = 0;
	char name[32];
	int fd, r = 0;

	segment_name(g, name);
	fd = openat(s->folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		r = -EINVAL;
		goto out;
	}
	size = (uint64_t)st.st_size;
	while (true) {
		uint64_t from = at;

		if (!find_header(s, fd, size, c->expect, &at, &h))
			break;
		if (at > from)
			set_aside(s, fd, from, at);
		tail = h;
		begin = at;
		at += sizeof(h) + h.len;
		recover_record(s, g, &h, at, c);
	}
	/* A power cut leaves a length without the bytes: that is an end too. */
	if (c->last && g->records > 0 && tail.settled != SETTLED &&
		!read_payload(s, fd, begin, &tail) &&
		is_unwritten(fd, begin + sizeof(tail), size)) {
		g->size = begin;
		g->entries -= tail.entries;
		g->records--;
		c->expect--;
	}
	r = recover_tail(s, g, fd, size, c);
out:
	close(fd);
	return r;
}

static int recover(struct pl_spool *s, struct pl_diag *diag)
{
	struct recovery c = { .cursor = read_cursor(s) };
	int r = list_segments(s);

	if (r < 0) {
		pl_diag_set(diag, "cannot list %s: %s", s->options.path, strerror(-r));
		return r;
	}
	if (s->n_segments > 0) {
		c.expect = s->segments[0].first;
		c.known = true;
	}
	for (uint32_t i = 0; i < s->n_segments;) {
		struct segment *g = &s->segments[i];

		c.last = i == s->n_segments - 1;
		r = recover_segment(s, g, &c);
		if (r < 0) {
			pl_diag_set(diag, "cannot read the spool's file %016llx.seg in %s: %s",
				(unsigned long long)g->first, s->options.path, strerror(-r));
			return r;
		}
		s->counts.bytes += g->size;
		if (g->records == 0) {
			remove_segment(s, i);
			continue;
		}
		s->counts.entries += g->entries;
		s->counts.records += g->records;
		i++;
	}
	s->counts.recovered = s->counts.entries;
	s->next_sequence = c.expect > c.cursor ? c.expect : c.cursor;
	if (s->next_sequence == 0)
		s->next_sequence = 1;
	return 0;
}

/* ---- open, close ---- */

static int open_folder(struct pl_spool *s, struct pl_diag *diag)
{
	const char *path = s->options.path;
	int r;

	if (mkdir(path, 0700) < 0 && errno != EEXIST) {
		r = -errno;
		pl_diag_set(diag, "cannot make the spool's folder %s: %s", path, strerror(-r));
		return r;
	}
	s->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->folder < 0) {
		r = -errno;
		pl_diag_set(diag, "cannot open the spool's folder %s: %s", path, strerror(-r));
		return r;
	}
	s->lock = openat(s->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock < 0 || flock(s->lock, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? -EBUSY : -errno;
		pl_diag_set(diag, "cannot lock the spool in %s: %s", path,
			r == -EBUSY ? "another process, or another output, writes it"
				    : strerror(-r));
		return r;
	}
	s->cursor = openat(s->folder, "cursor", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->cursor < 0) {
		r = -errno;
		pl_diag_set(diag, "cannot open %s/cursor: %s", path, strerror(-r));
		return r;
	}
	return 0;
}

static int check_options(struct pl_spool_options *o, struct pl_diag *diag)
{
	uint64_t record = sizeof(struct header) + (uint64_t)o->payload_max;

	if (o->sys == NULL)
		o->sys = &the_system;
	if (o->path == NULL || o->path[0] == '\0' || strlen(o->path) >= PATH_MAX) {
		pl_diag_set(diag, "the path of the spool is empty or too long");
		return -EINVAL;
	}
	if (o->payload_max > PL_SPOOL_PAYLOAD_MAX || o->bytes < BYTES_MIN ||
		o->bytes / 4 < record) {
		pl_diag_set(diag, "a spool must have room for four batches, and %d bytes at least",
			BYTES_MIN);
		return -EINVAL;
	}
	if (o->segment_bytes == 0)
		o->segment_bytes = o->bytes / 16 < SEGMENT_MAX ? o->bytes / 16 : SEGMENT_MAX;
	return 0;
}

int pl_spool_open(
	struct pl_spool **ret, const struct pl_spool_options *options, struct pl_diag *diag)
{
	struct pl_spool_options o = *options;
	struct pl_spool *s;
	int r = check_options(&o, diag);

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->folder = s->lock = s->cursor = s->out = s->in = -1;
	s->options = o;
	s->options.path = strdup(o.path);
	s->segments = calloc(SEGMENTS_MAX, sizeof(*s->segments));
	s->payload = malloc((size_t)o.payload_max + 1);
	s->payload_cap = o.payload_max;
	if (s->options.path == NULL || s->segments == NULL || s->payload == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = open_folder(s, diag);
	if (r == 0)
		r = recover(s, diag);
	if (r < 0) {
		pl_spool_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void pl_spool_close(struct pl_spool *s)
{
	if (s == NULL)
		return;
	if (s->out >= 0)
		(void)pl_spool_sync(s);
	for (int i = 0, fds[] = { s->out, s->in, s->cursor, s->lock, s->folder }; i < 5; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	free((char *)s->options.path);
	free(s->segments);
	free(s->payload);
	free(s);
}

/* ---- writing ---- */

/* No more is added to the present file. */
static void seal(struct pl_spool *s)
{
	if (s->out >= 0)
		close(s->out);
	s->out = -1;
	s->unsynced = false;
}

int pl_spool_sync(struct pl_spool *s)
{
	int r = 0;

	if (s->out < 0 || !s->unsynced)
		return 0;
	if (s->options.sys->sync(s->out) < 0) {
		r = -errno;
		/* What was not written then will never be; nothing may build on this file. */
		seal(s);
	}
	s->unsynced = false;
	return r;
}

static int begin_segment(struct pl_spool *s)
{
	struct segment *g = &s->segments[s->n_segments];
	char name[32];

	*g = (struct segment){ .first = s->next_sequence };
	segment_name(g, name);
	s->out = openat(s->folder, name,
		O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->out < 0)
		return -errno;
	(void)fsync(s->folder);
	s->n_segments++;
	return 0;
}

static void drop_oldest(struct pl_spool *s)
{
	struct segment *g = &s->segments[0];
	uint64_t entries = g->entries, records = g->records;

	if (s->peeked && !s->detached) {
		/* The one that is being sent stays, in memory. */
		s->detached = true;
		entries -= s->head.entries;
		records--;
	}
	s->counts.dropped += entries;
	s->counts.entries -= entries;
	s->counts.records -= records;
	remove_segment(s, 0);
	write_cursor(s, s->n_segments > 0 ? s->segments[0].first : s->next_sequence, false);
}

/* Room for a record of `need` bytes. */
static int make_room(struct pl_spool *s, uint64_t need)
{
	if (s->out >= 0 && s->segments[s->n_segments - 1].size + need > s->options.segment_bytes) {
		(void)pl_spool_sync(s);
		seal(s);
	}
	while (s->counts.bytes + need > s->options.bytes || s->n_segments == SEGMENTS_MAX) {
		if (s->options.drop_newest || s->n_segments == 0)
			return -EXFULL;
		drop_oldest(s);
	}
	return s->out < 0 ? begin_segment(s) : 0;
}

/* Writes the record; *ret_at: where it begins in the last segment. What is there is not counted. */
static int append(struct pl_spool *s, struct pl_spool_record *record, uint64_t *ret_at)
{
	struct header h = {
		.len = record->len, .entries = record->entries, .flags = record->flags
	};
	struct segment *g;
	int r;

	assert(record->len <= PL_SPOOL_PAYLOAD_MAX);
	r = make_room(s, sizeof(h) + record->len);
	if (r < 0)
		return r;
	g = &s->segments[s->n_segments - 1];
	memcpy(h.magic, record_magic, sizeof(record_magic));
	h.sequence = s->next_sequence;
	h.head_check = head_check(&h);
	h.check = full_check(&h, record->payload);
	r = write_all(s, s->out, &h, sizeof(h));
	if (r == 0)
		r = write_all(s, s->out, record->payload, record->len);
	if (r < 0) {
		/* If it cannot be cut off now, it is cut off when the spool is opened next; and in a file
		 * that is not added to, it is behind the end. */
		(void)!ftruncate(s->out, (off_t)g->size);
		seal(s);
		if (g->size == 0)
			remove_segment(s, s->n_segments - 1);
		return r;
	}
	s->unsynced = true;
	record->sequence = s->next_sequence++;
	*ret_at = g->size;
	g->size += sizeof(h) + h.len;
	s->counts.bytes += sizeof(h) + h.len;
	return 0;
}

int pl_spool_put(struct pl_spool *s, struct pl_spool_record *record)
{
	struct segment *g;
	uint64_t at;
	int r = append(s, record, &at);

	if (r < 0)
		return r;
	g = &s->segments[s->n_segments - 1];
	g->entries += record->entries;
	g->records++;
	s->counts.entries += record->entries;
	s->counts.records++;
	return 0;
}

int pl_spool_put_copy(struct pl_spool *s, struct pl_spool_record *record, struct pl_spool_copy *ret)
{
	uint64_t at;
	int r;

	/* Where nothing is read, nothing would take it away again. */
	if (s->counts.records == 0)
		return -ENODATA;
	r = append(s, record, &at);
	if (r == 0)
		*ret = (struct pl_spool_copy){ .segment = s->segments[s->n_segments - 1].first,
			.at = at };
	return r;
}

void pl_spool_settle_copy(struct pl_spool *s, const struct pl_spool_copy *copy)
{
	const struct segment g = { .first = copy->segment };
	const uint32_t mark = SETTLED;
	char name[32];
	int fd;

	segment_name(&g, name);
	fd = openat(s->folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	/* Gone with its segment, or without a mark: then a crash has it sent again. */
	if (fd < 0)
		return;
	(void)!pwrite(
		fd, &mark, sizeof(mark), (off_t)(copy->at + offsetof(struct header, settled)));
	close(fd);
}

/* ---- reading ---- */

/* The first segment is at its end, or cannot be read any further: off with it, and what should have been
 * in it is counted. */
static void finish_first(struct pl_spool *s)
{
	struct segment *g = &s->segments[0];

	if (g->records > 0 && s->in >= 0)
		set_aside(s, s->in, g->read, g->size);
	s->counts.damaged_records += g->records;
	s->counts.damaged_entries += g->entries;
	s->counts.records -= g->records;
	s->counts.entries -= g->entries;
	/* The ledger first: a crash in between leaves a file of settled records, not a gap. */
	write_cursor(s, s->n_segments > 1 ? s->segments[1].first : s->next_sequence, true);
	remove_segment(s, 0);
}

static int open_first(struct pl_spool *s)
{
	char name[32];

	if (s->in >= 0)
		return 0;
	segment_name(&s->segments[0], name);
	s->in = openat(s->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return s->in < 0 ? -errno : 0;
}

/* The record at the first segment's position into s->head and s->payload; false when there is none that can be
 * read. *ret_entries and the position move over what is damaged. */
static bool read_record(struct pl_spool *s, struct segment *g)
{
	while (g->records > 0) {
		uint64_t at = g->read;

		if (!find_header(s, s->in, g->size, g->first, &at, &s->head))
			return false;
		if (at > g->read)
			set_aside(s, s->in, g->read, at);
		g->read = at;
		if (s->head.settled == SETTLED) {
			g->read += sizeof(s->head) + s->head.len;
			continue;
		}
		if (read_payload(s, s->in, at, &s->head))
			return true;
		set_aside(s, s->in, at, at + sizeof(s->head) + s->head.len);
		g->read = at + sizeof(s->head) + s->head.len;
		/* A forged header could claim more than there is. */
		if (s->head.entries > g->entries)
			return false;
		g->entries -= s->head.entries;
		g->records--;
		s->counts.entries -= s->head.entries;
		s->counts.records--;
		s->counts.damaged_records++;
		s->counts.damaged_entries += s->head.entries;
	}
	return false;
}

int pl_spool_peek(struct pl_spool *s, struct pl_spool_record *ret)
{
	while (!s->peeked) {
		struct segment *g = &s->segments[0];

		if (s->n_segments == 0)
			return -ENODATA;
		if (open_first(s) < 0 || !read_record(s, g) || s->head.entries > g->entries) {
			finish_first(s);
			continue;
		}
		s->peeked = true;
		s->detached = false;
	}
	*ret = (struct pl_spool_record){
		.entries = s->head.entries,
		.flags = s->head.flags,
		.sequence = s->head.sequence,
		.payload = s->payload,
		.len = s->head.len,
	};
	return 0;
}

void pl_spool_next(struct pl_spool *s)
{
	struct segment *g = &s->segments[0];

	assert(s->peeked);
	s->peeked = false;
	s->counts.entries -= s->head.entries;
	s->counts.records--;
	if (s->detached)
		return;
	g->read += sizeof(s->head) + s->head.len;
	g->entries -= s->head.entries;
	g->records--;
	if (g->records == 0)
		finish_first(s);
	else
		write_cursor(s, s->head.sequence + 1, false);
}

void pl_spool_counts(const struct pl_spool *s, struct pl_spool_counts *ret)
{
	*ret = s->counts;
}
