/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps records of a tap on disk while an output's receiver is away. */
#include "tapout/tap_spool.h"

#include <errno.h>
#include <string.h>

#define SYNC_NS UINT64_C(1000000000)

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_tap_spool_stats, __VA_ARGS__)
#include "tapout/tap_spool_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_tap_spool_list = { rows, sizeof(rows) / sizeof(rows[0]) };

static void count(struct pl_tap_spool *s)
{
	struct pl_spool_counts counts;

	pl_spool_counts(s->spool, &counts);
	s->stats.held = counts.entries - s->at;
	s->stats.damaged = counts.damaged_entries;
}

static const char *name_of(uint32_t kind)
{
	return kind > 0 && kind <= PL_FLAT_MAX ? pl_flat((enum pl_flat_kind)(kind - 1))->name
					       : "another output";
}

/* Refuses records of another kind, which would only be dropped. */
static int check_kind(struct pl_tap_spool *s, const char *path, struct pl_diag *diag)
{
	struct pl_spool_record record;

	if (pl_spool_peek(s->spool, &record) < 0 || record.flags == s->kind)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"the spool in %s holds records of %s, and the output's are %s: deliver them with "
		"the settings that they were written with, or name another folder",
		path, name_of(record.flags), name_of(s->kind));
}

int pl_tap_spool_open(struct pl_tap_spool *s, const char *path, uint64_t bytes,
	enum pl_flat_kind kind, struct pl_diag *diag)
{
	const uint32_t size = pl_flat(kind)->size;
	const struct pl_spool_options options = { .path = path,
		.bytes = bytes,
		.payload_max = PL_TAP_SPOOL_RECORDS * size,
		.drop_newest = true };
	struct pl_spool_counts counts;
	int r;

	*s = (struct pl_tap_spool){ .size = size, .kind = 1 + (uint32_t)kind };
	r = pl_spool_open(&s->spool, &options, diag);
	if (r < 0)
		return r;
	pl_spool_counts(s->spool, &counts);
	s->stats.found = counts.entries;
	r = check_kind(s, path, diag);
	count(s);
	return r;
}

void pl_tap_spool_close(struct pl_tap_spool *s)
{
	if (s->spool != NULL)
		pl_spool_close(s->spool);
	s->spool = NULL;
}

static bool put(struct pl_tap_spool *s, const void *records, uint32_t n, bool back)
{
	struct pl_spool_record record = {
		.entries = n, .flags = s->kind, .payload = records, .len = n * s->size
	};
	const int r = back ? pl_spool_put_back(s->spool, &record) : pl_spool_put(s->spool, &record);

	s->stats.spooled += n;
	if (r < 0) {
		s->stats.dropped += n;
		pl_diag_set(&s->trouble, "the spool takes no more: %s",
			r == -EXFULL ? "spool_bytes are full" : strerror(-r));
		return false;
	}
	s->dirty = true;
	count(s);
	return true;
}

bool pl_tap_spool_put(struct pl_tap_spool *s, const void *records, uint32_t n)
{
	return put(s, records, n, false);
}

/* Returns false for records of another kind, which may be behind the first one. */
static bool fits(const struct pl_tap_spool *s, const struct pl_spool_record *record)
{
	return record->flags == s->kind && record->len == (uint64_t)record->entries * s->size;
}

void pl_tap_spool_give(struct pl_tap_spool *s, uint32_t max,
	bool (*give)(void *arg, const void *record), void *arg)
{
	struct pl_spool_record record;
	bool more = true;

	pl_spool_hold(s->spool);
	while (more && max > 0 && pl_spool_peek(s->spool, &record) == 0) {
		const uint8_t *p = record.payload;

		if (!fits(s, &record)) {
			pl_diag_set(&s->trouble, "the spool has records of another kind");
			s->stats.dropped += record.entries;
			s->at = record.entries;
		}
		for (; s->at < record.entries && max > 0; max--) {
			more = give(arg, p + (size_t)s->at * s->size);
			if (!more)
				break;
			s->at++;
			s->stats.unspooled++;
		}
		if (s->at < record.entries)
			break;
		pl_spool_next(s->spool);
		s->at = 0;
	}
	count(s);
}

static void sync_now(struct pl_tap_spool *s)
{
	const int r = s->dirty ? pl_spool_sync(s->spool) : 0;

	if (r < 0)
		pl_diag_set(&s->trouble, "the spool cannot be written to disk: %s", strerror(-r));
	s->dirty = false;
}

bool pl_tap_spool_put_back(struct pl_tap_spool *s, const void *records, uint32_t n)
{
	s->back = true;
	return put(s, records, n, true);
}

bool pl_tap_spool_mark(struct pl_tap_spool *s)
{
	const struct pl_spool_place before = s->place;

	s->place = pl_spool_place(s->spool);
	return s->place.to != before.to;
}

void pl_tap_spool_release(struct pl_tap_spool *s)
{
	if (s->back)
		sync_now(s);
	s->back = false;
	pl_spool_release_to(s->spool, &s->place);
	s->place.passed = 0;
}

void pl_tap_spool_turn(struct pl_tap_spool *s, uint64_t now_ns)
{
	if (!s->dirty || now_ns - s->synced_ns < SYNC_NS)
		return;
	sync_now(s);
	s->synced_ns = now_ns;
}
