/* SPDX-License-Identifier: BSD-2-Clause */
/* Recovers the spool's files of an ended process: lists and scans them, truncates them to complete
 * records, and counts. */
#include "export/spool_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int compare_segments(const void *a, const void *b)
{
	uint64_t x = ((const struct pl_spool_segment *)a)->first,
		 y = ((const struct pl_spool_segment *)b)->first;

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
			s->segments[s->n_segments++] = (struct pl_spool_segment){ .first = first };
	}
	closedir(dir);
	qsort(s->segments, s->n_segments, sizeof(*s->segments), compare_segments);
	return r;
}

struct recovery {
	uint64_t cursor;
	uint64_t expect; /* the next sequence */
	bool known;      /* `expect` is known: from then on gaps are damaged records */
	bool last;       /* this is the last segment, which was being written */
};

/* Returns true when the bytes behind the last whole record are a record that was never whole: the
 * crash came during its write, or a power cut left room without bytes. Its put never returned 0. */
static bool is_unwritten(int fd, uint64_t from, uint64_t size)
{
	uint8_t buf[4096];
	struct pl_spool_header h;
	ssize_t n;

	if (size - from < sizeof(h))
		return true;
	if (pl_spool_read_at(fd, &h, sizeof(h), from) == sizeof(h) && pl_spool_header_good(&h, 0) &&
		h.len > size - from - sizeof(h))
		return true;
	for (; from < size && (n = pl_spool_read_at(fd, buf, sizeof(buf), from)) > 0;
		from += (uint64_t)n) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] != 0)
				return false;
		}
	}
	return true;
}

static void recover_record(struct pl_spool *s, struct pl_spool_segment *g,
	const struct pl_spool_header *h, uint64_t end, struct recovery *c)
{
	/* A gap consists of damaged records; those before the cursor were settled. */
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

/* Handles the bytes behind the last record of a segment, and cuts them off. */
static int recover_tail(
	struct pl_spool *s, struct pl_spool_segment *g, int fd, uint64_t size, struct recovery *c)
{
	if (g->size == size)
		return 0;
	if (!is_unwritten(fd, g->size, size)) {
		pl_spool_set_aside(s, fd, g->size, size);
		/* In an earlier segment they count as a gap in the sequence. */
		if (c->last) {
			s->counts.damaged_records++;
			c->expect++;
		}
	}
	return ftruncate(fd, (off_t)g->size) < 0 ? -errno : 0;
}

/* Walks the headers of a segment after a crash; bytes behind the last whole record are cut off. */
static int recover_segment(struct pl_spool *s, struct pl_spool_segment *g, struct recovery *c)
{
	struct pl_spool_header h, tail = { .len = 0 };
	struct stat st;
	uint64_t at = 0, size, begin = 0;
	char name[32];
	int fd, r = 0;

	pl_spool_segment_name(g, name);
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

		if (!pl_spool_find_header(s, fd, size, c->expect, &at, &h))
			break;
		if (at > from)
			pl_spool_set_aside(s, fd, from, at);
		tail = h;
		begin = at;
		at += sizeof(h) + h.len;
		recover_record(s, g, &h, at, c);
	}
	/* A power cut may leave a length without the bytes: the file ends there, too. */
	if (c->last && g->records > 0 && tail.settled != SETTLED &&
		!pl_spool_read_payload(s, fd, begin, &tail) &&
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

int pl_spool_recover(struct pl_spool *s, struct pl_diag *diag)
{
	struct recovery c = { .cursor = pl_spool_read_cursor(s) };
	int r = list_segments(s);

	if (r < 0)
		return pl_diag_fail(diag, r, "cannot list %s: %s", s->options.path, strerror(-r));
	if (s->n_segments > 0) {
		c.expect = s->segments[0].first;
		c.known = true;
	}
	for (uint32_t i = 0; i < s->n_segments;) {
		struct pl_spool_segment *g = &s->segments[i];

		c.last = i == s->n_segments - 1;
		r = recover_segment(s, g, &c);
		if (r < 0)
			return pl_diag_fail(diag, r,
				"cannot read the spool's file %016llx.seg in %s: %s",
				(unsigned long long)g->first, s->options.path, strerror(-r));
		s->counts.bytes += g->size;
		if (g->records == 0) {
			pl_spool_remove_segment(s, i);
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
