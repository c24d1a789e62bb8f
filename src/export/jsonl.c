/* SPDX-License-Identifier: BSD-2-Clause */
/* Appends records to a file of JSON lines. */
#include "export/jsonl.h"

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

#include "record/community_id.h"
#include "record/json.h"

#define KEEP_MAX     1000
#define REPAIR_BYTES (1 << 20)  /* most bytes searched for the begin of a torn last line */
#define CHUNK_BYTES  (64 << 10) /* text that is written at once in mid-batch */
#define HOPS_MAX     255

/*
 * `text` holds the lines not wholly in the file, beginning with the start of a line; its first
 * `torn` bytes are already in the file. So a line cut short by a full disk can be completed in the
 * same file, or cut off there and written again in another.
 */
struct jsonl {
	struct pl_export export;
	struct pl_jsonl_options options; /* with the defaults filled in */
	char *path;
	int fd;
	bool regular; /* false: a device, without rotation and repair */
	uint64_t file_bytes;
	uint64_t begun_ns;         /* when this file was created or found */
	uint64_t retry_at_ns;      /* no write before; 0: none failed */
	uint64_t rotate_at_ns;     /* after a failure, no rotation before */
	enum pl_export_drop cause; /* of the last failure */
	struct pl_buf text;
	size_t torn;
};

static struct jsonl *self(struct pl_export *e)
{
	return (struct jsonl *)e;
}

_Static_assert(offsetof(struct jsonl, export) == 0, "a driver begins with the common part");

/* --- the file --------------------------------------------------------------------------------- */

/*
 * Cuts off a last line without an end, as a crash leaves it. A line must begin like one of ours;
 * otherwise the file is refused.
 */
static int cut_torn_end(int fd, off_t size, const char *path, struct pl_diag *diag, off_t *ret_size)
{
	off_t from = size > REPAIR_BYTES ? size - REPAIR_BYTES : 0;
	size_t want = (size_t)(size - from), have = 0, begin;
	char *tail;
	int r = 0;

	tail = calloc(1, want + 1);
	if (tail == NULL)
		return -ENOMEM;
	while (have < want) {
		ssize_t n = pread(fd, tail + have, want - have, from + (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : -EIO;
			pl_diag_set(diag, "cannot read %s: %s", path, strerror(-r));
			goto out;
		}
		have += (size_t)n;
	}
	*ret_size = size;
	if (tail[want - 1] == '\n')
		goto out;
	begin = want;
	while (begin > 0 && tail[begin - 1] != '\n')
		begin--;
	if (tail[begin] != '{' || (begin == 0 && from > 0)) {
		r = -EINVAL;
		pl_diag_set(diag,
			"%s does not end with a complete line of JSON; not appending to it", path);
		goto out;
	}
	if (ftruncate(fd, from + (off_t)begin) < 0) {
		r = -errno;
		pl_diag_set(diag, "cannot cut the torn last line off %s: %s", path, strerror(-r));
		goto out;
	}
	*ret_size = from + (off_t)begin;
out:
	free(tail);
	return r;
}

/* Returns true when the path names this file: the lock's previous owner may have renamed it. */
static bool is_named(const struct stat *file, const char *path)
{
	struct stat there;

	return stat(path, &there) == 0 && there.st_dev == file->st_dev &&
	       there.st_ino == file->st_ino;
}

/* Opens the path in place of the present file; on failure that one stays. -EAGAIN: the path has
 * come to name another file. */
static int file_try(struct jsonl *j, uint64_t now_ns, struct pl_diag *diag)
{
	struct stat st, old;
	off_t size = 0;
	int fd, r;

	/* Without O_NONBLOCK, open would block at a FIFO without a reader. */
	fd = open(j->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		(mode_t)j->options.mode);
	if (fd < 0) {
		r = -errno;
		return pl_diag_fail(diag, r, "cannot open %s: %s", j->path, strerror(-r));
	}
	if (fstat(fd, &st) < 0) {
		r = -errno;
		pl_diag_set(diag, "cannot stat %s: %s", j->path, strerror(-r));
		goto fail;
	}
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) {
		r = -EINVAL;
		pl_diag_set(diag, "%s is neither a regular file nor a character device", j->path);
		goto fail;
	}
	if (j->fd >= 0 && fstat(j->fd, &old) == 0 && old.st_dev == st.st_dev &&
		old.st_ino == st.st_ino) {
		close(fd); /* the same file as before */
		return 0;
	}
	if (S_ISREG(st.st_mode)) {
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			r = errno == EWOULDBLOCK ? -EBUSY : -errno;
			pl_diag_set(diag, "cannot lock %s: %s", j->path,
				r == -EBUSY ? "another process has it open for writing"
					    : strerror(-r));
			goto fail;
		}
		if (!is_named(&st, j->path)) {
			r = -EAGAIN;
			pl_diag_set(diag, "cannot lock %s: another process renames it", j->path);
			goto fail;
		}
		/* Counts what was written before the lock was taken. */
		if (fstat(fd, &st) < 0) {
			r = -errno;
			pl_diag_set(diag, "cannot stat %s: %s", j->path, strerror(-r));
			goto fail;
		}
		size = st.st_size;
		if (size > 0) {
			r = cut_torn_end(fd, size, j->path, diag, &size);
			if (r < 0)
				goto fail;
		}
	}
	if (j->fd >= 0)
		close(j->fd);
	j->fd = fd;
	j->regular = S_ISREG(st.st_mode);
	j->file_bytes = (uint64_t)size;
	j->begun_ns = now_ns;
	return 0;
fail:
	close(fd);
	return r;
}

#define TRIES 10

static int file_open(struct jsonl *j, uint64_t now_ns, struct pl_diag *diag)
{
	int r = -EAGAIN;

	for (int i = 0; i < TRIES && r == -EAGAIN; i++)
		r = file_try(j, now_ns, diag);
	return r;
}

/* Leaves only whole lines in the present file; its begun line will be written again. */
static void untear(struct jsonl *j)
{
	if (j->torn == 0)
		return;
	if (j->fd >= 0 && j->regular && ftruncate(j->fd, (off_t)(j->file_bytes - j->torn)) == 0)
		j->file_bytes -= j->torn;
	j->torn = 0;
}

static void rotated_name(const struct jsonl *j, unsigned int number, char dst[PATH_MAX])
{
	if (number == 0)
		snprintf(dst, PATH_MAX, "%s", j->path);
	else
		snprintf(dst, PATH_MAX, "%s.%u", j->path, number);
}

/* Renames FILE.1 to FILE.2, and so on; the last one kept is replaced. Gaps are kept. */
static int shift_names(const struct jsonl *j)
{
	char from[PATH_MAX], to[PATH_MAX];

	for (unsigned int i = j->options.keep; i > 0; i--) {
		rotated_name(j, i - 1, from);
		rotated_name(j, i, to);
		if (rename(from, to) < 0 && errno != ENOENT)
			return -errno;
	}
	return 0;
}

static void attempt_failed(struct jsonl *j, int error)
{
	pl_count(&j->export.stats.errors, 1);
	atomic_store_explicit(&j->export.stats.last_error, error, memory_order_relaxed);
}

/* Makes an empty file FILE.0. It is made before names are shifted, which loses the oldest file: a
 * full disk or a folder without permission is noticed while all files are there. */
static int make_next(const struct jsonl *j, const char *next)
{
	int fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		(mode_t)j->options.mode);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static void rotate(struct jsonl *j, uint64_t now_ns)
{
	char first[PATH_MAX], next[PATH_MAX];
	struct stat st;
	int r;

	snprintf(next, sizeof(next), "%s.0", j->path);
	r = make_next(j, next);
	if (r == 0) {
		r = shift_names(j);
		if (r == 0 && rename(next, j->path) < 0)
			r = -errno;
		if (r == 0)
			r = file_open(j, now_ns, NULL);
		if (r == 0) {
			pl_count(&j->export.stats.rotations, 1);
			return;
		}
		(void)unlink(next);
		/* The present file gets its name back and is continued. */
		rotated_name(j, 1, first);
		if (fstat(j->fd, &st) == 0 && is_named(&st, first) && rename(first, j->path) < 0)
			attempt_failed(j, errno);
	}
	attempt_failed(j, -r);
	j->rotate_at_ns = now_ns + j->options.retry_ns;
}

/* --- writing ---------------------------------------------------------------------------------- */

static uint64_t count_lines(const char *text, size_t len)
{
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

static void account(struct jsonl *j)
{
	const struct pl_export_stats *s = &j->export.stats;
	uint64_t done = pl_counter_read(&s->delivered);

	for (unsigned int c = 0; c < PL_EXPORT_DROP_MAX; c++)
		done += pl_counter_read(&s->dropped[c]);
	atomic_store_explicit(&j->export.stats.queued, pl_counter_read(&s->accepted) - done,
		memory_order_relaxed);
}

/* Accounts for n more bytes of the text that are in the file. */
static void written(struct jsonl *j, size_t n)
{
	const char *text = j->text.data;
	size_t done = j->torn + n, whole = done;

	j->file_bytes += n;
	while (whole > 0 && text[whole - 1] != '\n')
		whole--;
	pl_count(&j->export.stats.delivered, count_lines(text, whole));
	pl_count(&j->export.stats.bytes, n);
	j->torn = done - whole;
	memmove(j->text.data, text + whole, j->text.len - whole);
	j->text.len -= whole;
	j->text.data[j->text.len] = '\0';
}

static bool rotation_due(const struct jsonl *j, size_t first_line, uint64_t now_ns)
{
	const struct pl_jsonl_options *o = &j->options;

	if (j->torn > 0 || !j->regular || j->file_bytes == 0 || now_ns < j->rotate_at_ns)
		return false;
	return (o->max_bytes != 0 && j->file_bytes + first_line > o->max_bytes) ||
	       (o->max_age_ns != 0 && now_ns - j->begun_ns >= o->max_age_ns);
}

/* Returns the bytes of text for the present file: whole lines, at least the first one. */
static size_t chunk_len(const struct jsonl *j, size_t first_line)
{
	uint64_t room;
	size_t len = j->text.len;

	if (!j->regular || j->options.max_bytes == 0)
		return len;
	room = j->options.max_bytes > j->file_bytes - j->torn
		       ? j->options.max_bytes - (j->file_bytes - j->torn)
		       : 0;
	if (len <= room)
		return len;
	for (len = (size_t)room; len > first_line && j->text.data[len - 1] != '\n'; len--)
		;
	return len > first_line ? len : first_line;
}

static void drain(struct jsonl *j, uint64_t now_ns, bool now)
{
	if (!now && now_ns < j->retry_at_ns)
		return;
	while (j->text.len > 0) {
		const char *end = memchr(j->text.data, '\n', j->text.len);
		size_t first_line, len;
		ssize_t n;

		assert(end != NULL);
		first_line = (size_t)(end - j->text.data) + 1;
		if (rotation_due(j, first_line, now_ns))
			rotate(j, now_ns);
		len = chunk_len(j, first_line);
		assert(len > j->torn);
		n = write(j->fd, j->text.data + j->torn, len - j->torn);
		if (n > 0) {
			written(j, (size_t)n);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		attempt_failed(j, n < 0 ? errno : EIO);
		j->cause = pl_export_drop_of(n < 0 ? -errno : -EIO);
		j->retry_at_ns = now_ns + j->options.retry_ns;
		return;
	}
	j->retry_at_ns = 0;
	atomic_store_explicit(&j->export.stats.last_error, 0, memory_order_relaxed);
}

/* Makes room for one line of at most n bytes with its newline; false: the entry is dropped. */
static bool begin_line(struct jsonl *j, size_t n, uint64_t now_ns)
{
	if (j->text.len + n > j->options.buffer_bytes)
		drain(j, now_ns, false);
	if (j->text.len + n <= j->options.buffer_bytes)
		return true;
	pl_count(&j->export.stats.dropped[j->cause], 1);
	return false;
}

static void end_line(struct jsonl *j)
{
	pl_buf_chr(&j->text, '\n');
	assert(!j->text.failed); /* the buffer was allocated when opened, and has room */
}

static void end_lines(struct jsonl *j, uint64_t now_ns)
{
	if (j->text.len >= CHUNK_BYTES)
		drain(j, now_ns, false);
	account(j);
}

static void jsonl_write_paths(
	struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	struct jsonl *j = self(e);

	pl_count(&e->stats.accepted, batch->n_paths);
	for (uint32_t i = 0; i < batch->n_paths; i++) {
		const struct pl_path *path = &batch->paths[i];

		if (!begin_line(j, pl_path_json_max(path->hop_count) + 1, now_ns))
			continue;
		pl_path_json(&j->text, path, batch->hops + batch->first_hop[i], path->hop_count);
		end_line(j);
	}
	end_lines(j, now_ns);
}

static void jsonl_write_events(
	struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	struct jsonl *j = self(e);

	pl_count(&e->stats.accepted, n);
	for (uint32_t i = 0; i < n; i++) {
		if (!begin_line(j, pl_event_json_max() + 1, now_ns))
			continue;
		pl_event_json(&j->text, &events[i]);
		end_line(j);
	}
	end_lines(j, now_ns);
}

static void jsonl_write_values(
	struct pl_export *e, const struct pl_value *values, uint32_t n, uint64_t now_ns)
{
	struct jsonl *j = self(e);

	pl_count(&e->stats.accepted, n);
	for (uint32_t i = 0; i < n; i++) {
		if (!begin_line(j, pl_value_json_max() + 1, now_ns))
			continue;
		pl_value_json(&j->text, &values[i]);
		end_line(j);
	}
	end_lines(j, now_ns);
}

static void jsonl_write_flat(struct pl_export *e, enum pl_flat_kind kind, const void *records,
	uint32_t n, uint32_t stride, uint64_t now_ns)
{
	struct jsonl *j = self(e);
	const uint8_t *p = records;

	pl_count(&e->stats.accepted, n);
	for (uint32_t i = 0; i < n; i++, p += stride) {
		if (!begin_line(j, pl_flat_json_max(kind) + 1, now_ns))
			continue;
		pl_flat_json(&j->text, kind, p);
		if (j->options.community_id)
			pl_community_id_json(&j->text, kind, p);
		end_line(j);
	}
	end_lines(j, now_ns);
}

static void jsonl_flush(struct pl_export *e, uint64_t now_ns, bool all)
{
	struct jsonl *j = self(e);

	if (j->text.len == 0 && rotation_due(j, 0, now_ns))
		rotate(j, now_ns); /* rotation by age, without new lines */
	drain(j, now_ns, all);
	account(j);
}

static int jsonl_reopen(struct pl_export *e, uint64_t now_ns, struct pl_diag *diag)
{
	struct jsonl *j = self(e);
	int r;

	drain(j, now_ns, true);
	untear(j);
	r = file_open(j, now_ns, diag);
	if (r < 0)
		attempt_failed(j, -r);
	else
		drain(j, now_ns, true);
	account(j);
	return r;
}

static void jsonl_close(struct pl_export *e)
{
	struct jsonl *j = self(e);

	untear(j);
	if (j->fd >= 0)
		close(j->fd);
	pl_buf_done(&j->text);
	free(j->path);
	free(j);
}

static void jsonl_words(struct pl_export *e, struct pl_export_words *ret)
{
	const int error = atomic_load_explicit(&e->stats.last_error, memory_order_relaxed);

	*ret = (struct pl_export_words){ .trouble = "" };
	if (error != 0)
		snprintf(ret->trouble, sizeof(ret->trouble), "%s", strerror(error));
}

static const struct pl_export_ops jsonl_ops = {
	.name = "jsonl",
	.write_paths = jsonl_write_paths,
	.write_events = jsonl_write_events,
	.write_values = jsonl_write_values,
	.write_flat = jsonl_write_flat,
	.flush = jsonl_flush,
	.reopen = jsonl_reopen,
	.words = jsonl_words,
	.close = jsonl_close,
};

static struct pl_jsonl_options with_defaults(const struct pl_jsonl_options *given)
{
	struct pl_jsonl_options o = *given;

	if (o.keep == 0)
		o.keep = 5;
	if (o.mode == 0)
		o.mode = 0640;
	if (o.buffer_bytes == 0)
		o.buffer_bytes = 1 << 20;
	if (o.retry_ns == 0)
		o.retry_ns = 1000000000;
	return o;
}

static int check_options(const struct pl_jsonl_options *o, struct pl_diag *diag)
{
	uint64_t least = pl_path_json_max(HOPS_MAX) + 1;

	if (o->path == NULL || o->path[0] == '\0' || strlen(o->path) > PATH_MAX - 16)
		return pl_diag_fail(diag, -EINVAL, "the path of the file is empty or too long");
	if (o->keep > KEEP_MAX)
		return pl_diag_fail(diag, -EINVAL, "%u rotated files are too many; the limit is %d",
			o->keep, KEEP_MAX);
	if (o->buffer_bytes < least || o->buffer_bytes > (uint64_t)1 << 32)
		return pl_diag_fail(diag, -EINVAL, "the buffer must have %llu bytes to 4 GiB",
			(unsigned long long)least);
	return 0;
}

int pl_jsonl_open(struct pl_export **ret, const struct pl_jsonl_options *options, uint64_t now_ns,
	struct pl_diag *diag)
{
	struct pl_jsonl_options o = with_defaults(options);
	struct jsonl *j;
	int r = check_options(&o, diag);

	if (r < 0)
		return r;
	j = calloc(1, sizeof(*j));
	if (j == NULL)
		return -ENOMEM;
	j->export.ops = &jsonl_ops;
	j->options = o;
	j->fd = -1;
	j->cause = PL_EXPORT_NO_SPACE;
	j->path = strdup(o.path);
	pl_buf_init(&j->text);
	if (j->path == NULL || pl_buf_reserve(&j->text, o.buffer_bytes) == NULL) {
		r = -ENOMEM;
		goto fail;
	}
	j->options.path = j->path;
	r = file_open(j, now_ns, diag);
	if (r < 0)
		goto fail;
	*ret = &j->export;
	return 0;
fail:
	jsonl_close(&j->export);
	return r;
}
