/* SPDX-License-Identifier: BSD-2-Clause */
/* Appends records to the lists of a history. */
#include "export/region_out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct region_out {
	struct pl_export export;
	char *folder;
	struct pl_history_options options;
	struct pl_history *history;
	uint64_t failures; /* failed writes to disk, at the last check */
	_Atomic bool holes;
};

_Static_assert(offsetof(struct region_out, export) == 0, "a driver begins with the common part");

static struct region_out *self(struct pl_export *e)
{
	return (struct region_out *)e;
}

/* Returns true when the regions can take the entries; else counts them as lost. */
static bool take(struct region_out *o, uint32_t entries, uint64_t records)
{
	struct pl_export_stats *s = &o->export.stats;

	pl_count(&s->accepted, entries);
	if (atomic_load_explicit(&o->holes, memory_order_relaxed)) {
		pl_count(&s->dropped[PL_EXPORT_IO], entries);
		return false;
	}
	pl_count(&s->delivered, entries);
	pl_count(&s->bytes, records * sizeof(struct pl_path));
	return true;
}

static void write_paths(struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	uint64_t records = batch->n_paths;

	(void)now_ns;
	for (uint32_t i = 0; i < batch->n_paths; i++)
		records += batch->paths[i].hop_count;
	if (take(self(e), batch->n_paths, records))
		pl_history_put_paths(self(e)->history, batch);
}

static void write_events(
	struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	(void)now_ns;
	if (take(self(e), n, n))
		pl_history_put_events(self(e)->history, events, n);
}

/* Sums over all regions: failed writes to disk, and pages that were cut off. */
static void faults_of(const struct pl_history *h, uint64_t *ret_failures, uint64_t *ret_lost)
{
	*ret_failures = *ret_lost = 0;
	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++) {
		const struct pl_region *g = pl_history_region(h, s);
		struct pl_region_info info;

		if (g == NULL)
			continue;
		pl_region_get_info(g, &info);
		*ret_failures += info.sync_failures;
		*ret_lost += info.lost_pages;
	}
}

static void flush(struct pl_export *e, uint64_t now_ns, bool all)
{
	struct region_out *o = self(e);
	uint64_t failures, lost;

	(void)now_ns;
	(void)all;
	faults_of(o->history, &failures, &lost);
	atomic_store_explicit(&o->holes, lost > 0, memory_order_relaxed);
	atomic_store_explicit(&e->stats.last_error, lost > 0 || failures > o->failures ? EIO : 0,
		memory_order_relaxed);
	pl_count(&e->stats.errors, failures - o->failures);
	o->failures = failures;
}

static int reopen(struct pl_export *e, uint64_t now_ns, struct pl_diag *diag)
{
	struct region_out *o = self(e);
	int r = pl_history_renew(o->history, &o->options, diag);
	uint64_t lost;

	/* Failures of the new files count from here on. */
	faults_of(o->history, &o->failures, &lost);
	flush(e, now_ns, false);
	return r;
}

static void words(struct pl_export *e, struct pl_export_words *ret)
{
	struct region_out *o = self(e);

	ret->refusal[0] = ret->trouble[0] = '\0';
	if (atomic_load_explicit(&o->holes, memory_order_relaxed))
		snprintf(ret->trouble, sizeof(ret->trouble),
			"a region in %s was truncated while it was open; remove it and send SIGHUP",
			o->folder);
	else if (atomic_load_explicit(&e->stats.last_error, memory_order_relaxed) != 0)
		snprintf(ret->trouble, sizeof(ret->trouble),
			"regions in %s cannot be written to disk", o->folder);
}

static void close_regions(struct pl_export *e)
{
	struct region_out *o = self(e);

	(void)pl_history_close(o->history);
	free(o->folder);
	free(o);
}

static const struct pl_export_ops ops = {
	.name = "region",
	.write_paths = write_paths,
	.write_events = write_events,
	.flush = flush,
	.reopen = reopen,
	.words = words,
	.close = close_regions,
};

int pl_region_out_open(
	struct pl_export **ret, const struct pl_region_out_options *options, struct pl_diag *diag)
{
	struct region_out *o = calloc(1, sizeof(*o));
	uint64_t lost;
	int r = -ENOMEM;

	if (o == NULL)
		return -ENOMEM;
	o->export.ops = &ops;
	o->options = options->history;
	o->folder = strdup(options->folder);
	if (o->folder != NULL)
		r = pl_history_begin(&o->history, options->folder, &options->history, diag);
	if (r < 0) {
		close_regions(&o->export);
		return r;
	}
	faults_of(o->history, &o->failures, &lost);
	*ret = &o->export;
	return 0;
}
