/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the lists of a history in the order of time. */
#include "service/history_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "record/path_book.h"

static enum pl_history_store store_of(enum pl_record_kind kind)
{
	return kind == PL_KIND_PATH  ? PL_HISTORY_PATHS
	       : kind == PL_KIND_HOP ? PL_HISTORY_HOPS
				     : PL_HISTORY_EVENTS;
}

/* Returns the kinds that the history has lists of, as bits. */
static unsigned int kinds_of(const struct pl_history *h)
{
	unsigned int kinds = 0;

	for (unsigned int k = 0; k < PL_KINDS_KEPT; k++)
		kinds |= pl_history_region(h, store_of(k)) != NULL ? 1u << k : 0;
	return kinds;
}

/* Opens a reader for each kind. Returns 0 or negative errno. */
static int begin(struct pl_history_walk *w)
{
	w->n = 0;
	memset(w->has, 0, sizeof(w->has));
	for (unsigned int k = 0; k < PL_KINDS_KEPT; k++) {
		int r;

		if ((w->kinds & 1u << k) == 0)
			continue;
		r = pl_history_reader_init(&w->readers[w->n], w->history, store_of(k),
			w->options.list, w->options.first);
		if (r < 0)
			return r;
		w->n++;
	}
	return 0;
}

static unsigned int trouble_of(const struct pl_history *h)
{
	unsigned int stores = 0;

	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++)
		stores |= pl_history_trouble(h, s) != NULL ? 1u << s : 0;
	return stores;
}

bool pl_history_tell_troubles(const struct pl_history *h, unsigned int stores)
{
	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++) {
		if (pl_history_trouble(h, s) != NULL)
			pl_complain("%s: left out", pl_history_trouble(h, s));
	}
	return (trouble_of(h) & stores) != 0;
}

/* Returns the stores that a walk over these kinds reads, as bits; kinds 0: all kinds. */
static unsigned int stores_of(unsigned int kinds)
{
	unsigned int stores = 0;

	for (unsigned int k = 0; k < PL_KINDS_KEPT; k++)
		stores |= kinds == 0 || (kinds & 1u << k) != 0 ? 1u << store_of(k) : 0;
	return (kinds & 1u << PL_KIND_PATH) != 0 ? stores | 1u << PL_HISTORY_HOPS : stores;
}

int pl_history_walk_open(struct pl_history_walk *w, const struct pl_history_walk_options *options)
{
	struct pl_diag diag = { .text = "" };
	unsigned int has;
	int r;

	memset(w, 0, sizeof(*w));
	w->options = *options;
	/* A file truncated while it is read gives an error instead of SIGBUS. */
	(void)pl_region_guard();
	r = pl_history_open(&w->history, options->from, &diag);
	if (r < 0) {
		pl_complain("%s", diag.text[0] != '\0' ? diag.text : strerror(-r));
		return r == -EBUSY || r == -ENOENT ? PL_EXIT_UNAVAILABLE : PL_EXIT_FAILED;
	}
	w->partial = (trouble_of(w->history) & stores_of(options->kinds)) != 0;
	if (!options->told)
		(void)pl_history_tell_troubles(w->history, 0);
	has = kinds_of(w->history);
	w->kinds = options->kinds != 0 ? options->kinds & has : has & ~(1u << PL_KIND_HOP);
	if (w->kinds == 0 && options->kinds == 0)
		w->kinds = has;
	r = w->kinds != 0 ? begin(w) : -ENOENT;
	if (r == 0)
		return 0;
	/* An unreadable file was reported above, so it is not reported as absent. */
	if (!w->partial || r == -ERANGE)
		pl_complain(r == -ERANGE ? "%s: the file has no such list"
					 : "%s: the history has no such list",
			options->from);
	pl_history_walk_close(w);
	return w->partial ? PL_EXIT_FAILED : PL_EXIT_NOTHING;
}

void pl_history_walk_close(struct pl_history_walk *w)
{
	(void)pl_history_close(w->history);
	w->history = NULL;
}

static bool within(const struct pl_history_walk *w, const struct pl_history_record *record)
{
	uint64_t ns = pl_history_record_ns(record);

	return ns >= w->options.since_ns && (w->options.until_ns == 0 || ns < w->options.until_ns);
}

/* Remembers the nodes of a path for later events, which have only its id. */
static void note_path(const struct pl_history_record *record)
{
	struct pl_path_nodes nodes;

	if (record->kind != PL_KIND_PATH || (record->path.present & PL_PATH_HAS_path_id) == 0 ||
		record->n_hops != record->path.hop_count ||
		pl_path_book_find(record->path.path_id, &nodes))
		return;
	nodes = (struct pl_path_nodes){ .hops = record->n_hops };
	for (; nodes.n < nodes.hops && nodes.n < PL_PATH_NODES_MAX; nodes.n++)
		nodes.node[nodes.n] = record->hops[nodes.n].node;
	pl_path_book_note(record->path.path_id, &nodes);
}

const struct pl_history_record *pl_history_walk_next(struct pl_history_walk *w)
{
	struct pl_history_record *first = NULL;
	unsigned int at = 0;

	for (unsigned int i = 0; i < w->n; i++) {
		while (!w->has[i] && pl_history_next(&w->readers[i], &w->records[i])) {
			note_path(&w->records[i]);
			w->has[i] = within(w, &w->records[i]);
		}
		if (!w->has[i])
			continue;
		if (first == NULL ||
			pl_history_record_ns(&w->records[i]) < pl_history_record_ns(first)) {
			first = &w->records[i];
			at = i;
		}
	}
	if (first != NULL)
		w->has[at] = false;
	return first;
}

static void add_losses(struct pl_history_walk *into, const struct pl_history_walk *of)
{
	for (unsigned int i = 0; i < of->n; i++) {
		into->overrun += of->readers[i].list.overrun;
		into->damaged += of->readers[i].list.damaged;
		into->without_hops += of->readers[i].without_hops;
	}
}

bool pl_history_walk_renew(struct pl_history_walk *w)
{
	struct pl_history *fresh;
	uint64_t first = w->options.first;

	if (!pl_history_replaced(w->history) || pl_history_open(&fresh, w->options.from, NULL) < 0)
		return false;
	/* The new writer may not have created all files yet. */
	if ((kinds_of(fresh) & w->kinds) != w->kinds) {
		(void)pl_history_close(fresh);
		return false;
	}
	add_losses(w, w);
	w->restarts++;
	(void)pl_history_close(w->history);
	w->history = fresh;
	w->options.first = 0;
	(void)begin(w);
	w->options.first = first;
	return true;
}

uint64_t pl_history_walk_overrun(const struct pl_history_walk *w)
{
	uint64_t sum = w->overrun;

	for (unsigned int i = 0; i < w->n; i++)
		sum += w->readers[i].list.overrun;
	return sum;
}

uint64_t pl_history_walk_cursor(const struct pl_history_walk *w)
{
	const struct pl_history_reader *r = &w->readers[0];

	/* Entries that the reader fetched ahead are not read yet. */
	return r->at < r->n ? r->numbers[r->at] : r->list.cursor;
}

static uint64_t lost_pages(const struct pl_history *h)
{
	uint64_t sum = 0;

	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++) {
		struct pl_region_info info;

		if (pl_history_region(h, s) == NULL)
			continue;
		pl_region_get_info(pl_history_region(h, s), &info);
		sum += info.lost_pages;
	}
	return sum;
}

bool pl_history_walk_tell(const struct pl_history_walk *w)
{
	uint64_t overrun = pl_history_walk_overrun(w), damaged = w->damaged;
	uint64_t without_hops = w->without_hops, pages = lost_pages(w->history);

	for (unsigned int i = 0; i < w->n; i++) {
		damaged += w->readers[i].list.damaged;
		without_hops += w->readers[i].without_hops;
	}
	if (overrun > 0)
		pl_complain("%" PRIu64 " entries were overwritten before they were read", overrun);
	if (damaged > 0)
		pl_complain("%" PRIu64 " entries are damaged and left out", damaged);
	if (without_hops > 0)
		pl_complain("of %" PRIu64 " paths the hops were overwritten", without_hops);
	if (pages > 0)
		pl_complain("%" PRIu64 " pages were missing: files were truncated", pages);
	return damaged == 0 && pages == 0 && !w->partial;
}
