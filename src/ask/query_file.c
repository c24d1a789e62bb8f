/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads records from files of records for a question. */
#include "ask/query_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "record/clickhouse.h"
#include "record/record_file.h"

#define READ_RECORDS 1024 /* in blocks of all files, which bound how far one is ahead */

_Static_assert(READ_RECORDS / PL_QUERY_FILES_MAX > 0, "each has some of them");
_Static_assert(PL_CLICKHOUSE_HEADER_MAX >= PL_FLAT_BYTES_MAX, "a record is read first");
_Static_assert(PL_CLICKHOUSE_HEADER_MAX <= READ_RECORDS * sizeof(struct pl_pkt64), "there is room");

enum pl_flat_kind pl_query_file_kind(const char *path)
{
	const char *dot = strrchr(path, '.');
	int kind = 0;

	while (kind < PL_FLAT_MAX &&
		(dot == NULL || strcmp(dot + 1, pl_flat((enum pl_flat_kind)kind)->name) != 0))
		kind++;
	return (enum pl_flat_kind)kind;
}

/* Skips the columns that 'tap --to file:PATH?header=yes' writes first. Without them, the bytes read
 * are the first ones of records, and are given to the caller, as a pipe cannot be read again.
 * Returns how many. */
static size_t skip_header(FILE *f, enum pl_flat_kind kind, uint8_t ret[PL_CLICKHOUSE_HEADER_MAX])
{
	struct pl_buf header;
	size_t n = 0;

	pl_buf_init(&header);
	pl_clickhouse_header(&header, kind);
	if (!header.failed && header.len <= PL_CLICKHOUSE_HEADER_MAX)
		n = fread(ret, 1, header.len, f);
	if (n > 0 && n == header.len && memcmp(ret, header.data, n) == 0)
		n = 0;
	pl_buf_done(&header);
	return n;
}

/* Removes the header with clocks from the first n bytes. Returns 0, or an exit code. */
static int take_clocks(const char *path, enum pl_flat_kind kind, uint8_t *first, size_t *n,
	const struct pl_query_file *to)
{
	enum pl_flat_kind of = kind;
	uint32_t clocks = 0;
	enum pl_record_file_verdict verdict;

	if (*n < PL_RECORD_FILE_BYTES)
		return 0;
	verdict = pl_record_file_read(first, &of, &clocks);
	if (verdict == PL_RECORD_FILE_NONE)
		return 0;
	if (verdict == PL_RECORD_FILE_BAD || of != kind)
		return pl_fail(PL_EXIT_USAGE,
			"%s: its header is of %s; files of records are named by their kind", path,
			verdict == PL_RECORD_FILE_BAD ? "another version of pathline"
						      : pl_flat(of)->name);
	*n -= PL_RECORD_FILE_BYTES;
	memmove(first, first + PL_RECORD_FILE_BYTES, *n);
	if (to->clocks != NULL)
		to->clocks(to->arg, clocks);
	return 0;
}

/* A file being read. */
struct file {
	const char *path;
	FILE *f;
	enum pl_flat_kind kind;
	uint64_t reached_ns; /* of its first record, then of its last one */
	bool bad;
	/* First bytes of records, read already. */
	size_t n;
	uint8_t first[PL_CLICKHOUSE_HEADER_MAX];
};

static int open_file(struct file *f, const char *path, const struct pl_query_file *to)
{
	*f = (struct file){
		.path = path, .f = fopen(path, "re"), .kind = pl_query_file_kind(path)
	};
	if (f->f == NULL)
		return pl_fail(PL_EXIT_UNAVAILABLE, "%s: %s", path, strerror(errno));
	f->n = skip_header(f->f, f->kind, f->first);
	return take_clocks(path, f->kind, f->first, &f->n, to);
}

/* Reports the time of the file's first record, so that no other file waits for one that begins
 * later. */
static void read_first(struct file *f, uint32_t number, const struct pl_query_file *to)
{
	const uint32_t size = pl_flat(f->kind)->size;

	if (f->n < size)
		f->n += fread(f->first + f->n, 1, size - f->n, f->f);
	if (f->n < size)
		return;
	f->reached_ns = pl_flat_time(f->kind, f->first);
	if (to->passed != NULL)
		to->passed(to->arg, number, f->kind, f->reached_ns);
}

static void close_file(struct file *f, uint32_t number, size_t rest, const struct pl_query_file *to)
{
	const bool failed = ferror(f->f) != 0;

	fclose(f->f);
	f->f = NULL;
	f->bad = failed || rest > 0;
	if (failed)
		pl_complain("%s: it cannot be read to its end", f->path);
	else if (rest > 0)
		pl_complain("%s: its last %zu bytes are no whole %s record", f->path, rest,
			pl_flat(f->kind)->name);
	for (int kind = 0; kind < PL_FLAT_MAX && to->ended != NULL; kind++)
		to->ended(to->arg, number, (enum pl_flat_kind)kind);
}

/* Reads a block of at most `most` records; closes the file at its end. */
static void read_block(
	struct file *f, uint32_t number, uint32_t most, const struct pl_query_file *to)
{
	static _Alignas(64) uint8_t records[READ_RECORDS * PL_FLAT_BYTES_MAX];
	const uint32_t size = pl_flat(f->kind)->size;
	size_t n = f->n, whole = (size_t)most * size;

	/* The first bytes may be more than a block. */
	whole = n > whole ? (n + size - 1) / size * size : whole;
	memcpy(records, f->first, n);
	f->n = 0;
	n += fread(records + n, 1, whole - n, f->f);
	if (n >= size) {
		f->reached_ns = pl_flat_time(f->kind, records + (n / size - 1) * size);
		to->feed(to->arg, number, f->kind, records, (uint32_t)(n / size));
	}
	if (n < whole)
		close_file(f, number, n % size, to);
}

void pl_query_complain_unread(const char *path, enum pl_flat_kind kind,
	bool (*reads)(void *arg, enum pl_flat_kind kind), void *arg)
{
	const struct pl_flat *has = pl_flat(kind), *longer = pl_flat(pl_flat_long(kind));

	if (longer != has && reads(arg, pl_flat_long(kind)))
		pl_complain(
			"%s has records of %s (%s), and the question reads %s (%s), which have more: "
			"ask FROM %s, or have the records written with kind=%s",
			path, has->stream, has->name, longer->stream, longer->name, has->stream,
			longer->name);
	else
		pl_complain("%s: the question does not read %s", path, has->stream);
}

static struct file *behind_others(struct file *files, size_t n)
{
	struct file *least = NULL;

	for (size_t i = 0; i < n; i++) {
		if (files[i].f != NULL &&
			(least == NULL || files[i].reached_ns < least->reached_ns))
			least = &files[i];
	}
	return least;
}

static int open_wanted(struct file *f, const char *path, const struct pl_query_file *to)
{
	const enum pl_flat_kind kind = pl_query_file_kind(path);

	if (to->reads(to->arg, kind))
		return open_file(f, path, to);
	pl_query_complain_unread(path, kind, to->reads, to->arg);
	return PL_EXIT_USAGE;
}

static int open_all(
	struct file *files, const char *const *paths, size_t n, const struct pl_query_file *to)
{
	int code = 0;

	for (size_t i = 0; i < n && code == 0; i++) {
		const enum pl_flat_kind kind = pl_query_file_kind(paths[i]);

		code = open_wanted(&files[i], paths[i], to);
		if (code == 0 && n > 1)
			read_first(&files[i], (uint32_t)i, to);
		for (int other = 0; other < PL_FLAT_MAX && to->ended != NULL; other++) {
			/* Packets of 96 bytes serve as packets of 64, and likewise flows. */
			if (other != (int)kind && other != (int)pl_flat_short(kind))
				to->ended(to->arg, (uint32_t)i, (enum pl_flat_kind)other);
		}
	}
	return code;
}

int pl_query_file_all(const char *const *paths, size_t n, const struct pl_query_file *to)
{
	static struct file files[PL_QUERY_FILES_MAX];
	struct file *f;
	int code;

	if (n > PL_QUERY_FILES_MAX)
		return pl_fail(PL_EXIT_USAGE, "query: %zu files of records; %d is the limit", n,
			PL_QUERY_FILES_MAX);
	memset(files, 0, sizeof(files));
	code = open_all(files, paths, n, to);
	while (code == 0 && !to->full(to->arg) && (f = behind_others(files, n)) != NULL)
		read_block(f, (uint32_t)(f - files), READ_RECORDS / (uint32_t)n, to);
	for (size_t i = 0; i < n; i++) {
		if (files[i].f != NULL)
			fclose(files[i].f);
		code = code == 0 && files[i].bad ? PL_EXIT_FAILED : code;
	}
	return code;
}

/* ---- one file beside other sources ---- */

struct pl_query_one_file {
	struct file file;
};

int pl_query_file_open(
	struct pl_query_one_file **ret, const char *path, const struct pl_query_file *to)
{
	*ret = calloc(1, sizeof(**ret));
	if (*ret != NULL)
		return open_wanted(&(*ret)->file, path, to);
	return pl_fail(PL_EXIT_FAILED, "out of memory");
}

bool pl_query_file_step(struct pl_query_one_file *f, uint32_t most, const struct pl_query_file *to)
{
	read_block(&f->file, 0, most, to);
	return f->file.f != NULL;
}

int pl_query_file_close(struct pl_query_one_file *f)
{
	int code;

	if (f == NULL)
		return 0;
	code = f->file.bad ? PL_EXIT_FAILED : 0;
	if (f->file.f != NULL)
		fclose(f->file.f);
	free(f);
	return code;
}
