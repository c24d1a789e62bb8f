/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output to a file: records one behind the other and nothing else, the bytes that Kafka messages
 * have and that ClickHouse reads as RowBinary. A write that ends early keeps its whole records.
 * With header=yes the columns stand first (RowBinaryWithNamesAndTypes), with header=clock 64 bytes
 * that name the clock of the times.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "netio/uri.h"
#include "record/clickhouse.h"
#include "record/record_file.h"
#include "runtime/say.h"
#include "tapout/tap_out.h"

#define BUFFER_BYTES (96u * 4096)

struct file_stats {
#define PL_STAT PL_STAT_MEMBER
#include "tapout/tap_file_stats.def"
#undef PL_STAT
};

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct file_stats, __VA_ARGS__)
#include "tapout/tap_file_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

struct file_out {
	struct pl_tap_out out; /* first */
	int fd;
	enum pl_flat_kind kind;
	uint32_t given;        /* bytes of a record that is put */
	uint32_t size;         /* bytes of it written: pkt64/1 begins pkt96/1 */
	off_t end;             /* behind the last whole record */
	int error;             /* errno of the last write; 0: it was whole */
	bool header;           /* the columns stand first */
	bool clocked;          /* a header names the clocks (record/record_file.h) */
	uint32_t clocks, told; /* of the records so far, and in the header */
	size_t filled;
	struct file_stats stats;
	uint8_t buffer[BUFFER_BYTES];
};

static const char *const keys[] = { "kind", "header", NULL };

/* Returns the bytes that the file took; ret_error: errno that stopped it before the last, or 0. */
static size_t write_bytes(const struct file_out *self, int *ret_error)
{
	size_t done = 0;

	*ret_error = 0;
	while (done < self->filled) {
		const ssize_t n = pwrite(self->fd, self->buffer + done, self->filled - done,
			self->end + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			*ret_error = n < 0 ? errno : EIO;
			break;
		}
		done += (size_t)n;
	}
	return done;
}

static void write_buffer(struct file_out *self)
{
	const int before = self->error;
	const uint64_t records = self->filled / self->size,
		       whole = write_bytes(self, &self->error) / self->size;

	self->end += (off_t)(whole * self->size);
	self->stats.written += whole;
	self->stats.failed += records - whole;
	self->filled = 0;
	if (whole < records)
		(void)!ftruncate(self->fd, self->end);
	if (self->error != 0 && self->error != before)
		pl_say("%s: %s", self->out.name, strerror(self->error));
}

/* Continues behind the header and the `size` bytes of existing records. */
static int begin_at(
	struct file_out *self, const char *path, off_t header, off_t size, struct pl_diag *diag)
{
	if (size % self->size != 0)
		return pl_diag_fail(diag, -EINVAL,
			"%s has %lld bytes, no whole number of %s records: is it another kind "
			"of file?",
			path, (long long)size, pl_flat(self->kind)->name);
	self->end = header + size;
	return 0;
}

/* Writes the header of a new file, or checks that an existing one begins with it. */
static int begin_header(struct file_out *self, const char *path, off_t size, struct pl_diag *diag)
{
	char there[PL_CLICKHOUSE_HEADER_MAX];
	struct pl_buf header;
	bool same = false;
	int r = 0;

	pl_buf_init(&header);
	pl_clickhouse_header(&header, self->kind);
	if (!header.failed && size == 0)
		same = pwrite(self->fd, header.data, header.len, 0) == (ssize_t)header.len;
	else if (!header.failed)
		same = pread(self->fd, there, header.len, 0) == (ssize_t)header.len &&
		       memcmp(there, header.data, header.len) == 0;
	if (same) {
		r = begin_at(self, path, (off_t)header.len,
			size == 0 ? 0 : size - (off_t)header.len, diag);
	} else {
		pl_diag_set(diag,
			size == 0
				? "%s: its header cannot be written"
				: "%s does not begin with the header of %s: leave out header=yes, "
				  "or take another file",
			path, pl_flat(self->kind)->name);
		r = size == 0 ? -EIO : -EINVAL;
	}
	pl_buf_done(&header);
	return r;
}

/* Writes the header with clocks of a new file, or reads that of an existing one. */
static int begin_clocked(struct file_out *self, const char *path, off_t size, struct pl_diag *diag)
{
	enum pl_flat_kind kind = PL_FLAT_MAX;
	uint8_t header[PL_RECORD_FILE_BYTES];

	if (size == 0) {
		pl_record_file_make(header, self->kind, 0);
		if (pwrite(self->fd, header, sizeof(header), 0) == (ssize_t)sizeof(header))
			return begin_at(self, path, sizeof(header), 0, diag);
		return pl_diag_fail(diag, -EIO, "%s: its header cannot be written", path);
	}
	if (pread(self->fd, header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
		pl_record_file_read(header, &kind, &self->clocks) == PL_RECORD_FILE_GOOD &&
		kind == self->kind) {
		self->told = self->clocks;
		return begin_at(self, path, sizeof(header), size - (off_t)sizeof(header), diag);
	}
	return pl_diag_fail(diag, -EINVAL,
		"%s does not begin with a header for %s that says the clock: leave out header=clock, "
		"or take another file",
		path, pl_flat(self->kind)->name);
}

static int open_file(struct file_out *self, const char *path, struct pl_diag *diag)
{
	struct stat st;

	self->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (self->fd < 0 || fstat(self->fd, &st) < 0) {
		const int error = errno;

		return pl_diag_fail(diag, -error, "%s: %s", path, strerror(error));
	}
	if (!S_ISREG(st.st_mode))
		return pl_diag_fail(diag, -EINVAL, "%s is no regular file", path);
	if (self->clocked)
		return begin_clocked(self, path, st.st_size, diag);
	return self->header ? begin_header(self, path, st.st_size, diag)
			    : begin_at(self, path, 0, st.st_size, diag);
}

static void file_close(struct pl_tap_out *out)
{
	struct file_out *self = (struct file_out *)out;

	if (self->fd >= 0)
		close(self->fd);
}

/* Reads header=yes, no or clock. */
static int read_header(
	const struct pl_uri *uri, bool *ret_header, bool *ret_clocked, struct pl_diag *diag)
{
	const char *text = pl_uri_get(uri, "header");

	*ret_header = text != NULL && strcmp(text, "yes") == 0;
	*ret_clocked = text != NULL && strcmp(text, "clock") == 0;
	if (text == NULL || *ret_header || *ret_clocked || strcmp(text, "no") == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"'header=%s' in the URI: write header=yes, header=clock or header=no", text);
}

/* Returns the kind in the name of a file, NAME.flow288; PL_FLAT_MAX: there is none. */
static enum pl_flat_kind kind_of_name(const char *path)
{
	const char *dot = strrchr(path, '.');
	int kind = 0;

	while (kind < PL_FLAT_MAX &&
		(dot == NULL || strcmp(dot + 1, pl_flat((enum pl_flat_kind)kind)->name) != 0))
		kind++;
	return (enum pl_flat_kind)kind;
}

/* Takes the kind of kind=, else of the name; both must agree, as readers go by the name. */
static int take_kind(const struct pl_uri *uri, const struct pl_tap_out_settings *settings,
	enum pl_flat_kind *ret, struct pl_diag *diag)
{
	const enum pl_flat_kind named = kind_of_name(uri->target);
	const char *said = pl_uri_get(uri, "kind");
	int r;

	if (said == NULL && named == settings->kind && pl_flat_short(named) != named)
		said = pl_flat(named)->name;
	r = pl_tap_out_kind(said, settings, ret, diag);
	if (r < 0 || named == PL_FLAT_MAX || named == *ret)
		return r;
	return pl_diag_fail(diag, -EINVAL, "%s: its name says %s, and the records for it are %s",
		uri->target, pl_flat(named)->name, pl_flat(*ret)->name);
}

static int file_check(
	const struct pl_uri *uri, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	enum pl_flat_kind kind;
	bool header, clocked;
	int r = take_kind(uri, settings, &kind, diag);

	return r == 0 ? read_header(uri, &header, &clocked, diag) : r;
}

static int file_open(struct pl_tap_out *out, const struct pl_uri *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct file_out *self = (struct file_out *)out;
	int r;

	self->fd = -1;
	r = take_kind(uri, settings, &self->kind, diag);
	if (r == 0)
		r = read_header(uri, &self->header, &self->clocked, diag);
	self->size = pl_flat(self->kind)->size;
	self->given = pl_flat(settings->kind)->size;
	return r == 0 ? open_file(self, uri->target, diag) : r;
}

static int file_files(const struct pl_uri *uri, struct pl_confine *confine)
{
	return pl_confine_path(confine, uri->target, true);
}

/* Writes the clocks into the header, before the first record of a new clock; repeated when it
 * fails. */
static void write_clocks(struct file_out *self)
{
	uint8_t header[PL_RECORD_FILE_BYTES];

	if (!self->clocked || self->clocks == self->told)
		return;
	pl_record_file_make(header, self->kind, self->clocks);
	if (pwrite(self->fd, header + PL_RECORD_FILE_CLOCKS, 4, PL_RECORD_FILE_CLOCKS) == 4)
		self->told = self->clocks;
}

static void file_clock(struct pl_tap_out *out, enum pl_clock_kind clock)
{
	struct file_out *self = (struct file_out *)out;

	self->clocks |= pl_clock_bit(clock);
	write_clocks(self);
}

static void file_put(struct pl_tap_out *out, const void *records, uint32_t n)
{
	struct file_out *self = (struct file_out *)out;
	const uint8_t *p = records;

	self->stats.records += n;
	for (uint32_t i = 0; i < n; i++, p += self->given) {
		if (self->filled + self->size > sizeof(self->buffer))
			write_buffer(self);
		memcpy(self->buffer + self->filled, p, self->size);
		self->filled += self->size;
	}
}

static void file_finish(struct pl_tap_out *out)
{
	struct file_out *self = (struct file_out *)out;

	write_clocks(self);
	if (self->filled > 0)
		write_buffer(self);
}

static uint64_t file_turn(struct pl_tap_out *out, uint64_t now_ns)
{
	(void)now_ns;
	file_finish(out);
	return UINT64_MAX;
}

static uint64_t file_lost(const struct pl_tap_out *out)
{
	return ((const struct file_out *)out)->stats.failed;
}

static const void *file_counters(const struct pl_tap_out *out)
{
	return &((const struct file_out *)out)->stats;
}

const struct pl_tap_out_driver pl_tap_out_file = {
	.scheme = "file",
	.size = sizeof(struct file_out),
	.keys = keys,
	.files = file_files,
	.check = file_check,
	.open = file_open,
	.clock = file_clock,
	.put = file_put,
	.turn = file_turn,
	.finish = file_finish,
	.lost = file_lost,
	.numbers = { { &stats_list, file_counters } },
	.close = file_close,
};
