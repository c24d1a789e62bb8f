/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of a spool: open, write, read. */
#include "export/spool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/spool_state.h"

_Static_assert(sizeof(struct pl_spool_header) == 40, "the format says so");

/* ---- helpers ---- */

static const struct pl_spool_sys the_system = { .write = write, .sync = fdatasync };

void pl_spool_segment_name(const struct pl_spool_segment *g, char dst[32])
{
	snprintf(dst, 32, "%016llx.seg", (unsigned long long)g->first);
}

void pl_spool_remove_segment(struct pl_spool *s, uint32_t i)
{
	struct pl_spool_segment *g = &s->segments[i];
	char name[32];

	pl_spool_segment_name(g, name);
	if (i == 0 && s->in >= 0) {
		close(s->in);
		s->in = -1;
	}
	if (i == s->n_segments - 1 && s->out >= 0) {
		close(s->out);
		s->out = -1;
	}
	if (s->holding && i == 0 && g->size > 0)
		s->passed[s->n_passed++] = g->first;
	else
		unlinkat(s->folder, name, 0);
	s->counts.bytes -= g->size;
	s->n_segments--;
	memmove(g, g + 1, (s->n_segments - i) * sizeof(*g));
}

/* ---- open, close ---- */

static int open_folder(struct pl_spool *s, struct pl_diag *diag)
{
	const char *path = s->options.path;
	int r;

	if (mkdir(path, 0700) < 0 && errno != EEXIST) {
		r = -errno;
		return pl_diag_fail(diag, r, "cannot create the folder of the spool %s: %s", path,
			strerror(-r));
	}
	s->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->folder < 0) {
		r = -errno;
		return pl_diag_fail(
			diag, r, "cannot open the folder of the spool %s: %s", path, strerror(-r));
	}
	s->lock = openat(s->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock < 0 || flock(s->lock, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? -EBUSY : -errno;
		return pl_diag_fail(diag, r, "cannot lock the spool in %s: %s", path,
			r == -EBUSY ? "another process or another output uses it" : strerror(-r));
	}
	s->cursor = openat(s->folder, "cursor", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->cursor < 0) {
		r = -errno;
		return pl_diag_fail(diag, r, "cannot open %s/cursor: %s", path, strerror(-r));
	}
	return 0;
}

static int check_options(struct pl_spool_options *o, struct pl_diag *diag)
{
	uint64_t record = sizeof(struct pl_spool_header) + (uint64_t)o->payload_max;

	if (o->sys == NULL)
		o->sys = &the_system;
	if (o->path == NULL || o->path[0] == '\0' || strlen(o->path) >= PATH_MAX)
		return pl_diag_fail(diag, -EINVAL, "the path of the spool is empty or too long");
	if (o->payload_max > PL_SPOOL_PAYLOAD_MAX || o->bytes < BYTES_MIN || o->bytes / 4 < record)
		return pl_diag_fail(diag, -EINVAL,
			"the spool must have room for four batches and at least %d bytes",
			BYTES_MIN);
	if (o->segment_bytes == 0)
		o->segment_bytes = o->bytes / 16 < SEGMENT_MAX ? o->bytes / 16 : SEGMENT_MAX;
	/* A large spool has larger segments: there are at most SEGMENTS_MAX. */
	if (o->segment_bytes < o->bytes / (SEGMENTS_MAX / 2))
		o->segment_bytes = o->bytes / (SEGMENTS_MAX / 2);
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
	s->passed = calloc(SEGMENTS_MAX, sizeof(*s->passed));
	s->payload = malloc((size_t)o.payload_max + 1);
	s->payload_cap = o.payload_max;
	if (s->options.path == NULL || s->segments == NULL || s->passed == NULL ||
		s->payload == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = open_folder(s, diag);
	if (r == 0)
		r = pl_spool_recover(s, diag);
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
	free(s->passed);
	free(s->payload);
	free(s);
}

/* ---- writing ---- */

int pl_spool_sync(struct pl_spool *s)
{
	int r = s->lost;

	s->lost = 0;
	if (s->out >= 0 && s->unsynced && s->options.sys->sync(s->out) < 0) {
		r = -errno;
		/* A failed sync loses its data for good: nothing may be added to this file. */
		close(s->out);
		s->out = -1;
	}
	s->unsynced = false;
	return r;
}

/* Ends writing to the present file: its records are on the device, or the next sync fails. */
static void seal(struct pl_spool *s)
{
	s->lost = pl_spool_sync(s);
	if (s->out >= 0)
		close(s->out);
	s->out = -1;
}

static int begin_segment(struct pl_spool *s)
{
	struct pl_spool_segment *g = &s->segments[s->n_segments];
	char name[32];

	*g = (struct pl_spool_segment){ .first = s->next_sequence };
	pl_spool_segment_name(g, name);
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
	struct pl_spool_segment *g = &s->segments[0];
	uint64_t entries = g->entries, records = g->records;

	if (s->peeked && !s->detached) {
		/* The record lent to the reader stays valid, in memory. */
		s->detached = true;
		entries -= s->head.entries;
		records--;
	}
	s->counts.dropped += entries;
	s->counts.entries -= entries;
	s->counts.records -= records;
	pl_spool_remove_segment(s, 0);
	pl_spool_write_cursor(
		s, s->n_segments > 0 ? s->segments[0].first : s->next_sequence, false);
}

/* Makes room for a record of `need` bytes, and opens a segment for it. back: a record comes back, and
 * needs no room within the spool's size. */
static int make_room(struct pl_spool *s, uint64_t need, bool back)
{
	if (s->out >= 0 && s->segments[s->n_segments - 1].size + need > s->options.segment_bytes)
		seal(s);
	while ((!back && s->counts.bytes + need > s->options.bytes) ||
		s->n_segments + s->n_passed == SEGMENTS_MAX) {
		if (s->options.drop_newest || s->n_segments == 0)
			return -EXFULL;
		drop_oldest(s);
	}
	return s->out < 0 ? begin_segment(s) : 0;
}

/* Writes the record to the last segment, at *ret_at. Does not count entries and records. */
static int append(struct pl_spool *s, struct pl_spool_record *record, bool back, uint64_t *ret_at)
{
	struct pl_spool_header h = {
		.len = record->len, .entries = record->entries, .flags = record->flags
	};
	struct pl_spool_segment *g;
	int r;

	assert(record->len <= PL_SPOOL_PAYLOAD_MAX);
	r = make_room(s, sizeof(h) + record->len, back);
	if (r < 0)
		return r;
	g = &s->segments[s->n_segments - 1];
	memcpy(h.magic, record_magic, sizeof(record_magic));
	h.sequence = s->next_sequence;
	h.head_check = pl_spool_head_check(&h);
	h.check = pl_spool_full_check(&h, record->payload);
	r = pl_spool_write_all(s, s->out, &h, sizeof(h));
	if (r == 0)
		r = pl_spool_write_all(s, s->out, record->payload, record->len);
	if (r < 0) {
		/* If it cannot be cut off now, the next opening cuts it off; until then it is
		 * behind the end of a file to which nothing is added. */
		(void)!ftruncate(s->out, (off_t)g->size);
		seal(s);
		if (g->size == 0)
			pl_spool_remove_segment(s, s->n_segments - 1);
		return r;
	}
	s->unsynced = true;
	record->sequence = s->next_sequence++;
	*ret_at = g->size;
	g->size += sizeof(h) + h.len;
	s->counts.bytes += sizeof(h) + h.len;
	return 0;
}

static int put(struct pl_spool *s, struct pl_spool_record *record, bool back)
{
	struct pl_spool_segment *g;
	uint64_t at;
	int r = append(s, record, back, &at);

	if (r < 0)
		return r;
	g = &s->segments[s->n_segments - 1];
	g->entries += record->entries;
	g->records++;
	s->counts.entries += record->entries;
	s->counts.records++;
	return 0;
}

int pl_spool_put(struct pl_spool *s, struct pl_spool_record *record)
{
	return put(s, record, false);
}

int pl_spool_put_back(struct pl_spool *s, struct pl_spool_record *record)
{
	return put(s, record, true);
}

int pl_spool_put_copy(struct pl_spool *s, struct pl_spool_record *record, struct pl_spool_copy *ret)
{
	uint64_t at;
	int r;

	/* A spool without records is never read, so the copy would stay in it. */
	if (s->counts.records == 0)
		return -ENODATA;
	r = append(s, record, false, &at);
	if (r == 0)
		*ret = (struct pl_spool_copy){ .segment = s->segments[s->n_segments - 1].first,
			.at = at };
	return r;
}

void pl_spool_settle_copy(struct pl_spool *s, const struct pl_spool_copy *copy)
{
	const struct pl_spool_segment g = { .first = copy->segment };
	const uint32_t mark = SETTLED;
	char name[32];
	int fd;

	pl_spool_segment_name(&g, name);
	fd = openat(s->folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	/* Its segment may be gone already; without a mark, a crash has the copy sent again. */
	if (fd < 0)
		return;
	(void)!pwrite(fd, &mark, sizeof(mark),
		(off_t)(copy->at + offsetof(struct pl_spool_header, settled)));
	close(fd);
}

/* ---- reading ---- */

/* Moves the cursor to this record; while records are held, only notes the position. */
static void advance(struct pl_spool *s, uint64_t sequence, bool sync)
{
	if (s->holding)
		s->passed_to = sequence;
	else
		pl_spool_write_cursor(s, sequence, sync);
}

/* Removes the first segment at its end, or when it is unreadable; records that should have been in
 * it count as damaged. */
static void finish_first(struct pl_spool *s)
{
	struct pl_spool_segment *g = &s->segments[0];

	if (g->records > 0 && s->in >= 0)
		pl_spool_set_aside(s, s->in, g->read, g->size);
	s->counts.damaged_records += g->records;
	s->counts.damaged_entries += g->entries;
	s->counts.records -= g->records;
	s->counts.entries -= g->entries;
	/* The cursor is written first: a crash in between then leaves a file of settled records
	 * instead of a gap. */
	advance(s, s->n_segments > 1 ? s->segments[1].first : s->next_sequence, true);
	pl_spool_remove_segment(s, 0);
}

static int open_first(struct pl_spool *s)
{
	char name[32];

	if (s->in >= 0)
		return 0;
	pl_spool_segment_name(&s->segments[0], name);
	s->in = openat(s->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return s->in < 0 ? -errno : 0;
}

/* Reads the record at the first segment's position into s->head and s->payload; returns false when
 * none is readable. Damaged records on the way are counted and set aside. */
static bool read_record(struct pl_spool *s, struct pl_spool_segment *g)
{
	while (g->records > 0) {
		uint64_t at = g->read;

		if (!pl_spool_find_header(s, s->in, g->size, g->first, &at, &s->head))
			return false;
		if (at > g->read)
			pl_spool_set_aside(s, s->in, g->read, at);
		g->read = at;
		if (s->head.settled == SETTLED) {
			g->read += sizeof(s->head) + s->head.len;
			continue;
		}
		if (pl_spool_read_payload(s, s->in, at, &s->head))
			return true;
		pl_spool_set_aside(s, s->in, at, at + sizeof(s->head) + s->head.len);
		g->read = at + sizeof(s->head) + s->head.len;
		/* A forged header could claim more entries than there are. */
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
		struct pl_spool_segment *g = &s->segments[0];

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

bool pl_spool_lent_only(const struct pl_spool *s)
{
	return s->peeked && s->detached;
}

void pl_spool_next(struct pl_spool *s)
{
	struct pl_spool_segment *g = &s->segments[0];

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
		advance(s, s->head.sequence + 1, false);
}

void pl_spool_hold(struct pl_spool *s)
{
	/* Otherwise dropping the oldest segment would lose held records. */
	assert(s->options.drop_newest);
	if (!s->holding)
		s->passed_to = 0;
	s->holding = true;
}

struct pl_spool_place pl_spool_place(const struct pl_spool *s)
{
	return (struct pl_spool_place){ .to = s->holding ? s->passed_to : 0,
		.passed = s->n_passed };
}

void pl_spool_release_to(struct pl_spool *s, const struct pl_spool_place *place)
{
	char name[32];

	assert(place->passed <= s->n_passed);
	if (place->to > 0)
		pl_spool_write_cursor(s, place->to, place->passed > 0);
	for (uint32_t i = 0; i < place->passed; i++) {
		const struct pl_spool_segment g = { .first = s->passed[i] };

		pl_spool_segment_name(&g, name);
		unlinkat(s->folder, name, 0);
	}
	s->n_passed -= place->passed;
	memmove(s->passed, s->passed + place->passed, s->n_passed * sizeof(*s->passed));
}

void pl_spool_release(struct pl_spool *s)
{
	const struct pl_spool_place all = pl_spool_place(s);

	pl_spool_release_to(s, &all);
	s->holding = false;
}

void pl_spool_counts(const struct pl_spool *s, struct pl_spool_counts *ret)
{
	*ret = s->counts;
}
