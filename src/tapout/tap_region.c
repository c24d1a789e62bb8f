/* SPDX-License-Identifier: BSD-2-Clause */
/* Output to a region of lists (memory/append.h): each record is an entry, both directions of a flow
 * are in one list. New entries replace the oldest. A region that does not exist is created. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "memory/append.h"
#include "memory/region.h"
#include "netio/uri.h"
#include "record/flow_hash.h"
#include "tapout/tap_out.h"

#define ENTRIES_DEFAULT (UINT64_C(1) << 20)
#define ENTRIES_MOST    (UINT64_C(1) << 40)
#define BATCH           256u
#define ENTRIES_LEAST   (2 * BATCH)
#define LISTS_MOST      65536u
#define LOOK_NS         UINT64_C(1000000000)

struct region_stats {
#define PL_STAT PL_STAT_MEMBER
#include "tapout/tap_region_stats.def"
#undef PL_STAT
};

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct region_stats, __VA_ARGS__)
#include "tapout/tap_region_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

struct region_out {
	struct pl_tap_out out; /* first */
	struct pl_region *region;
	struct pl_append lists;
	enum pl_flat_kind kind;       /* of the entries */
	enum pl_flat_kind given_kind; /* of the records that are put */
	uint32_t given, size;         /* bytes of each */
	uint64_t look_ns;
	bool cut, gone;
	struct region_stats stats;
	_Alignas(8) uint8_t batch[BATCH * PL_FLAT_BYTES_MAX];
};

static const char *const keys[] = { "kind", "entries", "lists", NULL };

/* ---- opening ---- */

/* Reads the keys entries and lists. Entries are published in batches; a list holds whole ones. */
static int numbers(
	const struct pl_uri *uri, uint64_t *ret_entries, uint64_t *ret_lists, struct pl_diag *diag)
{
	const char *entries = pl_uri_get(uri, "entries"), *lists = pl_uri_get(uri, "lists");

	*ret_entries = ENTRIES_DEFAULT;
	*ret_lists = 1;
	if (entries != NULL &&
		(pl_parse_u64(entries, ret_entries) < 0 || *ret_entries < ENTRIES_LEAST ||
			*ret_entries > ENTRIES_MOST || *ret_entries % BATCH != 0))
		return pl_diag_fail(diag, -EINVAL,
			"'entries=%s' in the URI: write a multiple of %u from %u on, without a unit, "
			"such as 1024 or 1048576",
			entries, BATCH, ENTRIES_LEAST);
	if (lists != NULL &&
		(pl_parse_u64(lists, ret_lists) < 0 || *ret_lists == 0 || *ret_lists > LISTS_MOST))
		return pl_diag_fail(diag, -EINVAL,
			"'lists=%s' in the URI: write a number from 1 to %u", lists, LISTS_MOST);
	return 0;
}

static int region_check(
	const struct pl_uri *uri, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	uint64_t entries, lists;
	enum pl_flat_kind kind;
	int r = pl_tap_out_kind(pl_uri_get(uri, "kind"), settings, &kind, diag);

	return r == 0 ? numbers(uri, &entries, &lists, diag) : r;
}

static int create(struct region_out *self, const struct pl_uri *uri, struct pl_diag *diag)
{
	struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = pl_hash_seed(),
		.content = PL_CONTENT_FLAT + self->kind };
	uint64_t entries, lists;

	if (numbers(uri, &entries, &lists, diag) < 0)
		return -EINVAL;
	params.append.slots = entries;
	params.append.lists = (uint32_t)lists;
	params.append.entry_bytes = self->size;
	params.append.batch_max = BATCH;
	params.append.sealed = 1;
	return pl_region_create(&self->region, uri->target, &params, NULL, diag);
}

/* Checks that an existing region is for this kind of records. */
static int fits(const struct region_out *self, const char *path, struct pl_diag *diag)
{
	const struct pl_store_params *p = pl_region_params(self->region);

	if (p->primitive == PL_APPEND && p->content == PL_CONTENT_FLAT + (uint32_t)self->kind &&
		p->append.entry_bytes == self->size)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"%s holds other entries: it was not made for %s (region create --primitive append "
		"--content %s)",
		path, pl_flat(self->kind)->name, pl_flat(self->kind)->name);
}

static int open_region(struct region_out *self, const struct pl_uri *uri, struct pl_diag *diag)
{
	int r = pl_region_open(&self->region, uri->target, PL_REGION_WRITE, NULL, diag);

	if (r == -ENOENT)
		r = create(self, uri, diag);
	if (r == 0)
		r = fits(self, uri->target, diag);
	if (r == 0)
		r = pl_append_init(&self->lists, pl_region_params(self->region),
			pl_region_store(self->region, pl_region_epoch(self->region)));
	return r;
}

static void region_close(struct pl_tap_out *out)
{
	(void)pl_region_close(((struct region_out *)out)->region);
}

static int region_open(struct pl_tap_out *out, const struct pl_uri *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct region_out *self = (struct region_out *)out;
	int r = pl_tap_out_kind(pl_uri_get(uri, "kind"), settings, &self->kind, diag);

	self->given_kind = settings->kind;
	self->given = pl_flat(settings->kind)->size;
	self->size = pl_flat(self->kind)->size;
	return r == 0 ? open_region(self, uri, diag) : r;
}

static int region_files(const struct pl_uri *uri, struct pl_confine *confine)
{
	return pl_confine_path(confine, uri->target, true);
}

/* ---- records ---- */

/* Returns the list of a record; with one list the hash is not computed. */
static uint32_t list_of(const struct region_out *self, const uint8_t *record)
{
	return self->lists.lists == 1 ? 0
				      : (uint32_t)(pl_flow_hash_record(self->given_kind, record) %
						   self->lists.lists);
}

/* Successive records of one list are published together. */
static void region_put(struct pl_tap_out *out, const void *records, uint32_t n)
{
	struct region_out *self = (struct region_out *)out;
	const uint8_t *p = records;
	uint32_t held = 0, list = 0;

	self->stats.records += n;
	if (self->cut) {
		self->stats.failed += n;
		return;
	}
	for (uint32_t i = 0; i < n; i++, p += self->given) {
		const uint32_t of = list_of(self, p);

		if (held > 0 && (of != list || held == self->lists.batch_max || held == BATCH)) {
			(void)pl_append_put(&self->lists, list, self->batch, held);
			held = 0;
		}
		list = of;
		memcpy(self->batch + (size_t)held++ * self->size, p, self->size);
	}
	if (held > 0)
		(void)pl_append_put(&self->lists, list, self->batch, held);
	self->stats.written += n;
}

/* The output's name is "region:PATH". */
static const char *path_of(const struct region_out *self)
{
	return strchr(self->out.name, ':') + 1;
}

static uint64_t region_turn(struct pl_tap_out *out, uint64_t now_ns)
{
	struct region_out *self = (struct region_out *)out;

	if (now_ns < self->look_ns)
		return self->look_ns;
	self->look_ns = now_ns + LOOK_NS;
	self->cut = self->cut || pl_region_is_cut(self->region);
	self->gone = !pl_region_is_at(self->region, path_of(self));
	return self->look_ns;
}

static void region_conditions(
	const struct pl_tap_out *out, const char *tap, struct pl_conditions *ret)
{
	const struct region_out *self = (const struct region_out *)out;

	if (self->cut)
		pl_condition_add(ret, PL_CONDITION_FAULT, "region_truncated",
			"tap %s: region %s was truncated: its records are lost; create it again and restart",
			tap, path_of(self));
	if (self->gone)
		pl_condition_add(ret, PL_CONDITION_FAULT, "region_removed",
			"tap %s: region %s was removed or made anew: records are in no file of that name; restart to write into a new one",
			tap, path_of(self));
}

static void region_finish(struct pl_tap_out *out)
{
	(void)out;
}

static uint64_t region_lost(const struct pl_tap_out *out)
{
	return ((const struct region_out *)out)->stats.failed;
}

static const void *region_counters(const struct pl_tap_out *out)
{
	return &((const struct region_out *)out)->stats;
}

static void region_clock(struct pl_tap_out *out, enum pl_clock_kind clock)
{
	pl_region_note_clocks(((struct region_out *)out)->region, pl_clock_bit(clock));
}

const struct pl_tap_out_driver pl_tap_out_region = {
	.scheme = "region",
	.size = sizeof(struct region_out),
	.keys = keys,
	.files = region_files,
	.check = region_check,
	.open = region_open,
	.clock = region_clock,
	.put = region_put,
	.turn = region_turn,
	.finish = region_finish,
	.lost = region_lost,
	.conditions = region_conditions,
	.numbers = { { &stats_list, region_counters } },
	.close = region_close,
};
