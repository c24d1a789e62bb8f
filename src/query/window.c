/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the panes of records, and the windows that a watermark closes. */
#include "query/window.h"

#include <stdlib.h>

static int64_t floor_to(int64_t ts, int64_t step)
{
	int64_t rest = ts % step;

	return ts - rest - (rest < 0 ? step : 0);
}

/* Returns true for windows made of panes; sessions are windows of their keys (session.c). */
static bool has_panes(const struct ast_window *spec)
{
	return spec->kind == W_TUMBLE || spec->kind == W_HOP;
}

int pl_query_windows_init(
	struct windows *w, const struct pl_query *query, const struct pl_query_config *config)
{
	*w = (struct windows){ .spec = query->window,
		.watermark = INT64_MIN,
		.resumed = INT64_MIN,
		.latest = PL_QUERY_TIME_MAX,
		.idle_ns = config->idle_ns,
		.max = has_panes(&query->window) ? config->max_windows : 1,
		.partitions = config->partitions };
	w->lateness = config->lateness_ns > INT64_MAX ? INT64_MAX : (int64_t)config->lateness_ns;
	if (w->spec.kind != W_NONE)
		w->pane_ns = (int64_t)pl_query_windows_pane(&w->spec);
	w->panes = calloc(w->max, sizeof(*w->panes));
	w->feeds = calloc((size_t)PL_QUERY_STREAMS * w->partitions, sizeof(*w->feeds));
	w->seen = calloc((size_t)PL_QUERY_STREAMS * w->partitions, sizeof(*w->seen));
	if (w->panes == NULL || w->feeds == NULL || w->seen == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < PL_QUERY_STREAMS * w->partitions; i++) {
		w->feeds[i].used = pl_query_reads(query, i / w->partitions);
		w->feeds[i].before = INT64_MIN;
		w->n_unseen += w->feeds[i].used;
	}
	return 0;
}

void pl_query_windows_done(struct windows *w)
{
	free(w->panes);
	free(w->feeds);
	free(w->seen);
}

/* Returns the end of the last window that has the pane. */
static int64_t last_end(const struct windows *w, int64_t start)
{
	return floor_to(start, (int64_t)w->spec.step_ns) + (int64_t)w->spec.size_ns;
}

/* Returns the slot of an open pane; w->max: there is none. */
static uint32_t find_pane(const struct windows *w, int64_t start)
{
	uint32_t seen = 0;

	/* Low slots are used first, so the loop is short. */
	for (uint32_t slot = 0; seen < w->n_open; slot++) {
		if (!w->panes[slot].open)
			continue;
		if (w->panes[slot].start == start)
			return slot;
		seen++;
	}
	return w->max;
}

static uint32_t open_pane(struct windows *w, int64_t start)
{
	uint32_t slot = 0;

	if (w->n_open == w->max)
		return SLOT_FULL;
	while (w->panes[slot].open)
		slot++;
	w->panes[slot] = (struct pane){
		.start = start, .open = true, .position = w->position, .batch = w->batch
	};
	w->n_open++;
	return slot;
}

uint32_t pl_query_windows_slot(struct windows *w, int64_t ts)
{
	int64_t start = w->spec.kind == W_NONE ? 0 : floor_to(ts, w->pane_ns);
	const struct pane *last = &w->panes[w->last];
	uint32_t slot;

	if (last->open && last->start == start)
		return w->last;
	/* Before the panes are searched: there may be many late records. */
	if (w->spec.kind != W_NONE && last_end(w, start) <= w->watermark)
		return SLOT_LATE;
	slot = find_pane(w, start);
	if (slot == w->max)
		slot = open_pane(w, start);
	if (slot < w->max)
		w->last = slot;
	return slot;
}

bool pl_query_windows_resumed(const struct windows *w, int64_t ts)
{
	return w->spec.kind != W_NONE && last_end(w, floor_to(ts, w->pane_ns)) <= w->resumed;
}

void pl_query_windows_of_slot(
	const struct windows *w, uint32_t slot, int64_t *ret_start, int64_t *ret_end)
{
	*ret_start = w->panes[slot].start;
	*ret_end = w->panes[slot].start + w->pane_ns;
}

/* ---- the watermark ---- */

bool pl_query_windows_past(const struct windows *w, int64_t ts)
{
	if (w->spec.kind == W_SESSION)
		return ts + (int64_t)w->spec.size_ns <= w->watermark;
	return w->spec.kind != W_NONE && last_end(w, floor_to(ts, w->pane_ns)) <= w->watermark;
}

static bool is_idle(const struct windows *w, const struct feed *feed)
{
	return w->now_known && !feed->behind && w->now_ns - feed->last_ns > w->idle_ns;
}

static bool went_back(const struct windows *w, const struct feed *feed)
{
	return feed->back && w->now_ns - feed->back_ns > w->idle_ns;
}

/* Records whether all records of a partition are late and behind its own mark. A partition that was
 * away and delivers old records is late, but not behind its own mark. */
static void note_back(const struct windows *w, struct feed *feed, int64_t greatest, bool late)
{
	const bool was = feed->back;

	feed->latest = greatest;
	feed->back = late && feed->seen && w->now_known && greatest < feed->greatest - w->lateness;
	if (feed->back && !was)
		feed->back_ns = w->now_ns;
}

/* Returns whether the time of some partition still advances: its windows would wait for the
 * partitions that went back. */
static bool goes_on(const struct windows *w)
{
	for (uint32_t i = 0; i < w->n_seen; i++) {
		const struct feed *feed = &w->feeds[w->seen[i]];

		if (feed->used && !feed->back && !is_idle(w, feed))
			return true;
	}
	return false;
}

bool pl_query_windows_note(
	struct windows *w, unsigned int kind, uint32_t partition, int64_t greatest, bool late)
{
	const uint32_t number = (uint32_t)kind * w->partitions + partition;
	struct feed *feed = &w->feeds[number];

	note_back(w, feed, greatest, late);
	if (!feed->seen) {
		w->seen[w->n_seen++] = number;
		w->n_unseen -= feed->used;
	}
	if (!feed->seen || greatest > feed->greatest)
		feed->greatest = greatest;
	if (feed->greatest >= feed->before)
		feed->before = INT64_MIN;
	feed->seen = true;
	feed->last_ns = w->now_ns;
	return went_back(w, feed) && !goes_on(w);
}

void pl_query_windows_restart(struct windows *w)
{
	for (uint32_t i = 0; i < w->n_seen; i++) {
		struct feed *feed = &w->feeds[w->seen[i]];

		if (!feed->back)
			continue;
		feed->before = feed->greatest > feed->before ? feed->greatest : feed->before;
		feed->greatest = feed->latest;
		feed->back = false;
	}
	w->watermark = pl_query_windows_goal(w);
}

uint64_t pl_query_windows_went_back(const struct windows *w)
{
	int64_t most = 0;

	for (uint32_t i = 0; i < w->n_seen; i++) {
		const struct feed *feed = &w->feeds[w->seen[i]];
		int64_t back = 0;

		if (went_back(w, feed))
			back = feed->greatest - feed->latest;
		else if (feed->before > INT64_MIN)
			back = feed->before - feed->greatest;
		most = back > most ? back : most;
	}
	return (uint64_t)most;
}

void pl_query_windows_ended(struct windows *w, unsigned int kind, uint32_t partition)
{
	struct feed *feed = &w->feeds[(uint32_t)kind * w->partitions + partition];

	w->n_unseen -= feed->used && !feed->seen;
	feed->used = false;
}

/* The idle time begins when all stored records were fed. */
void pl_query_windows_behind(struct windows *w, unsigned int kind, uint32_t partition, bool behind)
{
	struct feed *feed = &w->feeds[(uint32_t)kind * w->partitions + partition];

	if (feed->behind && !behind)
		feed->last_ns = w->now_ns;
	feed->behind = behind;
}

void pl_query_windows_tell(struct windows *w, uint64_t now_ns)
{
	if (!w->now_known) {
		/* Records that came before count as if they came now. */
		for (uint32_t i = 0; i < PL_QUERY_STREAMS * w->partitions; i++)
			w->feeds[i].last_ns = now_ns;
		w->began_ns = now_ns;
	}
	w->now_known = true;
	w->now_ns = now_ns > w->now_ns ? now_ns : w->now_ns;
}

/* Returns the mark of an idle partition, as if its records' time had gone on with the clock. */
static int64_t moved(const struct windows *w, const struct feed *feed, int64_t mark)
{
	const uint64_t since = w->now_ns - feed->last_ns;
	int64_t at;

	if (since > INT64_MAX || __builtin_add_overflow(mark, (int64_t)since, &at))
		return mark;
	return at;
}

/* The least mark of the partitions that are not idle; when all are idle, the greatest one that they
 * would have reached, so that windows close when no more records come. */
int64_t pl_query_windows_goal(const struct windows *w)
{
	int64_t least = INT64_MAX, greatest = INT64_MIN;
	bool busy = false;

	if (w->n_unseen > 0 && !(w->now_known && w->now_ns - w->began_ns > w->idle_ns)) {
		busy = true;
		least = INT64_MIN;
	}
	for (uint32_t i = 0; i < w->n_seen; i++) {
		const struct feed *feed = &w->feeds[w->seen[i]];
		int64_t mark;

		if (!feed->used)
			continue;
		if (__builtin_sub_overflow(feed->greatest, w->lateness, &mark))
			mark = INT64_MIN;
		if (is_idle(w, feed)) {
			mark = moved(w, feed, mark);
			greatest = mark > greatest ? mark : greatest;
			continue;
		}
		busy = true;
		least = mark < least ? mark : least;
	}
	return busy ? least : greatest;
}

/* ---- closing ---- */

/* Returns the end of the first open window that has the pane. */
static int64_t first_end(const struct windows *w, int64_t start)
{
	const int64_t size = (int64_t)w->spec.size_ns, step = (int64_t)w->spec.step_ns;
	/* Windows with the pane begin at start + pane - size or later. */
	int64_t begin = start + w->pane_ns - size, least;

	if (w->watermark > INT64_MIN + size && begin < w->watermark - size + 1)
		begin = w->watermark - size + 1;
	least = floor_to(begin, step);
	return (least < begin ? least + step : least) + size;
}

bool pl_query_windows_next(struct windows *w, int64_t goal, int64_t *ret_start, int64_t *ret_end)
{
	int64_t end = INT64_MAX;
	uint32_t seen = 0;

	if (w->spec.kind == W_NONE) {
		*ret_start = *ret_end = 0;
		return goal == INT64_MAX && w->panes[0].open;
	}
	/* Low slots are used first, so the loop is short. */
	for (uint32_t i = 0; seen < w->n_open; i++) {
		if (w->panes[i].open) {
			int64_t first = first_end(w, w->panes[i].start);

			end = first < end ? first : end;
			seen++;
		}
	}
	if (seen == 0 || end > goal) {
		w->watermark = goal > w->watermark ? goal : w->watermark;
		return false;
	}
	*ret_end = end;
	*ret_start = end - (int64_t)w->spec.size_ns;
	return true;
}

uint64_t pl_query_windows_oldest(const struct windows *w)
{
	uint64_t oldest = w->batch + 1;
	uint32_t seen = 0;

	for (uint32_t i = 0; seen < w->n_open; i++) {
		if (!w->panes[i].open)
			continue;
		oldest = w->panes[i].batch < oldest ? w->panes[i].batch : oldest;
		seen++;
	}
	return oldest;
}

int64_t pl_query_windows_last_end(const struct windows *w)
{
	int64_t end = w->watermark;

	for (uint32_t i = 0; i < w->max; i++) {
		if (w->spec.kind != W_NONE && w->panes[i].open &&
			last_end(w, w->panes[i].start) > end)
			end = last_end(w, w->panes[i].start);
	}
	return end;
}

void pl_query_windows_closed(
	struct windows *w, int64_t end, void (*drop)(void *arg, uint32_t slot), void *arg)
{
	w->watermark = end > w->watermark ? end : w->watermark;
	for (uint32_t i = 0; i < w->max; i++) {
		if (!w->panes[i].open ||
			(w->spec.kind != W_NONE && last_end(w, w->panes[i].start) > end))
			continue;
		drop(arg, i);
		w->panes[i].open = false;
		w->n_open--;
	}
}
