/* SPDX-License-Identifier: BSD-2-Clause */
/* Sorts a file of records of marked blocks into measurement points. */
#include "ask/mark_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/query_file.h"
#include "base/complain.h"

struct reading {
	struct pl_mark128 *records;
	size_t n, room;
	uint64_t bad;
	bool no_memory;
};

bool pl_mark_file_is(const char *path)
{
	return pl_query_file_kind(path) == PL_FLAT_MARK128;
}

/* ---- all records ---- */

static void feed(void *arg, uint32_t file, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct reading *q = arg;
	const struct pl_mark128 *r = records;

	(void)file;
	(void)kind;
	if (q->room - q->n < n) {
		const size_t room = 2 * q->room + n;
		struct pl_mark128 *more = realloc(q->records, room * sizeof(*more));

		if (more == NULL) {
			q->no_memory = true;
			return;
		}
		q->records = more;
		q->room = room;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (pl_mark_record_is_usable(&r[i]))
			q->records[q->n++] = r[i];
		else
			q->bad++;
	}
}

static bool reads(void *arg, enum pl_flat_kind kind)
{
	(void)arg;
	return kind == PL_FLAT_MARK128;
}

static bool full(void *arg)
{
	const struct reading *q = arg;

	return q->no_memory;
}

/* ---- points ---- */

/* Orders records by point, block and flow. */
static int compare(const void *left, const void *right)
{
	const struct pl_mark128 *a = left, *b = right;

	if (a->point == b->point)
		return pl_mark_compare(a, b);
	return a->point < b->point ? -1 : 1;
}

/* Keeps one record of a block that has two: a meter that was restarted saw a part of it, or a
 * datagram came twice. Returns how many were left out. */
static uint64_t leave_doubles(struct pl_mark_capture *c)
{
	size_t kept = 0;
	uint64_t left = 0;

	for (size_t i = 0; i < c->n_records; i++) {
		struct pl_mark128 *last = kept > 0 ? &c->records[kept - 1] : NULL;

		if (last == NULL || pl_mark_compare(last, &c->records[i]) != 0) {
			c->records[kept++] = c->records[i];
			continue;
		}
		left++;
		if (memcmp(last, &c->records[i], sizeof(*last)) != 0)
			last->mark_flags |= PL_MARK_IS_PARTIAL;
	}
	c->n_records = kept;
	return left;
}

/* Makes a capture of n records of one point. */
static bool make_point(struct pl_mark_capture *c, const struct pl_mark_capture *like,
	const struct pl_mark128 *records, size_t n, bool only)
{
	const uint32_t number = records[0].point;
	uint64_t left;

	c->records = malloc(n * sizeof(*c->records));
	if (c->records == NULL)
		return pl_fail(false, "%s: out of memory for its blocks", like->path);
	memcpy(c->records, records, n * sizeof(*c->records));
	c->of_file = true;
	c->number = number;
	c->options = like->options;
	c->path = like->path;
	c->n_records = n;
	c->absent_flags = PL_MARK_IS_SYNCED;
	for (size_t i = 0; i < n; i++) {
		const uint16_t flags = records[i].mark_flags;

		if ((flags & PL_MARK_IS_SYNCED) == 0)
			c->absent_flags &= (uint16_t)~PL_MARK_IS_SYNCED;
		c->absent_flags |= flags & (PL_MARK_NO_ROOM | PL_MARK_TERMS_MASK);
		c->records[i].point = c->point;
	}
	if (only)
		memcpy(c->name, like->name, sizeof(c->name));
	else
		snprintf(c->name, sizeof(c->name), "%" PRIu32, number);
	left = leave_doubles(c);
	if (left > 0)
		pl_complain("%s: %" PRIu64 " records of point %" PRIu32
			    " of a block and flow that it has already",
			c->path, left, number);
	return true;
}

/* Returns the first record behind those of the point of record i. Some of a point's records may
 * have the flag of a marker, and others not: then the point is a marker. */
static size_t next_point(const struct reading *q, size_t i, bool *ret_marker)
{
	const uint32_t point = q->records[i].point;

	*ret_marker = false;
	for (; i < q->n && q->records[i].point == point; i++)
		*ret_marker |= (q->records[i].mark_flags & PL_MARK_IS_MARKER) != 0;
	return i;
}

/* Makes a capture of each point that is a marker, or of each that is none. */
static bool make_points(struct pl_mark_capture *captures, size_t *n,
	const struct pl_mark_capture *like, const struct reading *q, bool markers)
{
	size_t next;

	for (size_t i = 0; i < q->n; i = next) {
		struct pl_mark_capture *c = &captures[*n];
		bool marker;

		next = next_point(q, i, &marker);
		if (marker != markers)
			continue;
		if (*n == PL_MARK_READ_MAX)
			return pl_fail(
				false, "%s: more than %d points", like->path, PL_MARK_READ_MAX);
		c->point = (uint32_t)++ * n;
		if (!make_point(c, like, &q->records[i], next - i, i == 0 && next == q->n))
			return false;
	}
	return true;
}

bool pl_mark_file_read(
	struct pl_mark_capture *captures, size_t *n, const struct pl_mark_capture *like)
{
	struct reading q = { .n = 0 };
	const struct pl_query_file to = { .reads = reads, .feed = feed, .full = full, .arg = &q };
	bool good = pl_query_file_all(&like->path, 1, &to) == 0;

	if (q.no_memory)
		pl_complain("%s: out of memory for its blocks", like->path);
	if (q.bad > 0)
		pl_complain(
			"%s: %" PRIu64 " records are none of a meter: left out", like->path, q.bad);
	good = good && !q.no_memory && q.bad == 0;
	qsort(q.records, q.n, sizeof(*q.records), compare);
	good = make_points(captures, n, like, &q, true) &&
	       make_points(captures, n, like, &q, false) && good;
	free(q.records);
	return good;
}
