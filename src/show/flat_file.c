/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the new records of a file of records. */
#include "show/flat_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "record/clickhouse.h"
#include "record/record_file.h"

bool pl_flat_file_is(const char *path, enum pl_flat_kind kind)
{
	const char *point = strrchr(path, '.');

	return point != NULL && strcmp(point + 1, pl_flat(kind)->name) == 0;
}

/* Returns the bytes of the header before the records; -EINVAL: it is of another kind. */
static int64_t header_of(const struct pl_flat_file *f)
{
	uint8_t first[PL_CLICKHOUSE_HEADER_MAX];
	const ssize_t n = pread(f->fd, first, sizeof(first), 0);
	enum pl_flat_kind kind;
	struct pl_buf columns;
	uint32_t clocks;
	int64_t bytes = 0;

	if (n < 0)
		return -errno;
	if ((size_t)n >= PL_RECORD_FILE_BYTES) {
		const enum pl_record_file_verdict verdict =
			pl_record_file_read(first, &kind, &clocks);

		if (verdict == PL_RECORD_FILE_GOOD)
			return kind == f->kind ? (int64_t)PL_RECORD_FILE_BYTES : -EINVAL;
		if (verdict == PL_RECORD_FILE_BAD)
			return -EINVAL;
	}
	pl_buf_init(&columns);
	pl_clickhouse_header(&columns, f->kind);
	if (!columns.failed && (size_t)n >= columns.len &&
		memcmp(first, columns.data, columns.len) == 0)
		bytes = (int64_t)columns.len;
	pl_buf_done(&columns);
	return bytes;
}

int pl_flat_file_open(
	struct pl_flat_file *ret, const char *path, enum pl_flat_kind kind, struct pl_diag *diag)
{
	int64_t header;

	*ret = (struct pl_flat_file){ .kind = kind, .fd = open(path, O_RDONLY | O_CLOEXEC) };
	header = ret->fd < 0 ? -errno : header_of(ret);
	if (header >= 0) {
		ret->at = (uint64_t)header;
		return 0;
	}
	if (header == -EINVAL)
		pl_diag_set(diag, "%s begins with a header of other records than %s", path,
			pl_flat(kind)->name);
	else
		pl_diag_set(diag, "%s: %s", path, strerror((int)-header));
	pl_flat_file_close(ret);
	return (int)header;
}

void pl_flat_file_close(struct pl_flat_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

int64_t pl_flat_file_read(struct pl_flat_file *f, void *records, uint32_t room)
{
	const uint32_t size = pl_flat(f->kind)->size;
	const ssize_t n = pread(f->fd, records, (size_t)room * size, (off_t)f->at);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	/* The rest of a record that is being written is read next time. */
	f->at += (uint64_t)n / size * size;
	return n / (ssize_t)size;
}
