/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of a run. A file calls those behind it in this list, and none before it:
 *
 *   feed.c     takes records and the time     partial.c   gives and takes parts of results
 *   run.c      closes windows                 join.c      joins rows
 *   pairs.c    joins records                  zip.c       pairs rows of one record
 *   scan.c     takes records into a stage     session.c   has windows that end with their records
 *   group_add.c, fold.c   accumulate          group.c     has the groups; distinct.c, sets of values
 *   rows.c     makes rows of the result       origin.c, keys.c, counts.c, pairs_places.c
 */
#pragma once

#include <string.h>

#include "query/aggregate.h"
#include "query/partial.h"
#include "query/table.h"
#include "query/window.h"

/* Groups of a stage. An entry of the table is the key (its first word: slot of the pane, and bits
 * of absent keys), a struct link, the accumulators. */
struct link {
	uint32_t next; /* next entry of the same pane; + 1 */
	uint32_t linked : 1, fired : 1, in_batch : 1;
	/* points, as in struct row_origin; 0: none, or only the run's first point */
	uint32_t exp : 29;
	uint64_t first_ns;
};

#define EXP_ALL ((1u << 29) - 1)

/* Observation points of a run's records, and those of the last row. */
struct points {
	uint32_t n, n_told, told;
	uint16_t of_bit[PL_QUERY_EXP_MAX], list[PL_QUERY_EXP_MAX];
	uint8_t bit_of[PL_OBS_POINT_MASK + 1]; /* + 1 */
};

static inline struct row_origin row_origin(const uint8_t *row)
{
	struct row_origin o;

	memcpy(&o, row + 8, sizeof(o));
	return o;
}

static inline void row_set_origin(uint8_t *row, struct row_origin o)
{
	memcpy(row + 8, &o, sizeof(o));
}

/* Header of a session, behind the link with SESSION windows. */
struct session {
	int64_t first, last; /* times of records */
	uint32_t next;       /* next session of the same key; + 1 */
	uint32_t due_at;     /* index in the heap */
	uint64_t incomplete;
};

struct due;

#define DROP_AT_ONCE 256

struct groups {
	struct table table;
	struct table *distinct;  /* for each aggregate; unused ones are empty */
	uint32_t *heads, *tails; /* entries of each slot; + 1 */
	uint32_t link_offset, acc_offset;
	struct due *due; /* of SESSION windows: sessions by their ends, a heap */
	uint32_t n_due;
};

/* Rows of ROW_HEAD + 16 * columns bytes; the list grows up to `max`. */
struct row_list {
	uint8_t *data;
	uint32_t n, cap, max, size;
};

#define NO_POINT (-1)

struct stage_run {
	const struct stage *stage;
	bool headed; /* its input has heads: it is not a stream */
	/* offset of the observation point in records of its stream; NO_POINT: none */
	int32_t obs_at;
	struct groups groups;
	struct row_list out;            /* rows of the closing window, when they are kept */
	struct table join[JOINS_MAX];   /* keys of the right side of a join */
	uint32_t *join_next[JOINS_MAX]; /* next row of the same key; + 1 */
	struct row_list joined[JOINS_MAX];
	struct stage_run *pairs_of; /* for a side of pairs: the stage that reads them */
	struct pair_room *pairs;    /* for the stage that reads pairs */
	struct stage_run *zip_of;   /* for a side of a zip: the stage that reads both */
	/* for a side of a zip: rows of a batch, with a struct zip_head */
	struct row_list zipped;
	/* rows that a fold emitted, kept for their windows; their slot comes first */
	struct row_list emitted;
	uint64_t limit_left; /* rows of records that LIMIT leaves */
};

/* Memory in which folds work. */
struct fold_room {
	uint8_t *row;      /* the fold's cells */
	uint8_t *inputs;   /* inputs of a batch */
	uint8_t *kept;     /* a row to be kept, with its slot */
	uint32_t *entries; /* groups whose rows wait in the run's cells */
	uint32_t *records; /* numbers in the batch of the records that made these rows */
	uint32_t record;
	uint16_t *sel;
	uint32_t n;
};

struct pl_query_run {
	const struct pl_query *query;
	struct pl_query_config config;
	pl_query_sink *sink;
	void *arg;
	struct windows windows;
	struct stage_run stages[STAGES_MAX];
	struct stage_run *paired[STAGES_MAX]; /* the stages that read pairs */
	uint32_t n_paired;
	struct pl_query_stats stats;
	/* part of stats.late that rows have reported already, or that belongs to windows of another
	 * run */
	uint64_t late_told;
	struct points points;
	struct evaluator eval;
	pl_query_record_sink *records; /* takes records instead of rows; NULL: rows are given */
	bool finished, closing;        /* closing: rows are of the closing window */
	struct fold_room fold;
	/* the closing window, or the pane of a first crossing */
	struct pl_query_row row;
	struct pl_query_value values[PL_QUERY_ITEMS_MAX];
	/* for one batch */
	uint16_t sel[PL_QUERY_BATCH];
	bool one_slot;                     /* all slots of the batch are the same */
	bool told;                         /* times of records do not move the watermark */
	const struct pl_tap_count *counts; /* the batch has these counts; NULL: records */
	uint32_t slots[PL_QUERY_BATCH], entries[PL_QUERY_BATCH];
	uint8_t *accs[PL_QUERY_BATCH];
	uint64_t ts[PL_QUERY_BATCH];
	uint8_t *keys;               /* keys of groups, distinct values and joins */
	uint8_t *cells;              /* rows of finished groups */
	uint8_t *out_cells;          /* rows of the result */
	struct pl_query_item *items; /* LIST_MAX for each list of each row of a batch */
	uint32_t lists;
	/* for partial results */
	pl_query_partial_sink *partial; /* NULL: rows are given */
	void *partial_arg;
	void (*give_partial)(struct pl_query_run *run, const struct stage_run *s, uint32_t first);
	uint64_t plan; /* pl_query_plan_hash; valid after the first use */
	uint32_t piece_max;
	uint8_t *acc; /* memory for the widest accumulators */
	bool merged_incomplete;
	uint64_t merged_late;
	bool pairs_incomplete; /* the pairs that are scanned are incomplete */
	uint64_t bytes;        /* bytes allocated */
};

static inline struct link *link_of(const struct stage_run *s, uint32_t entry)
{
	return (struct link *)(void *)(table_at(&s->groups.table, entry) + s->groups.link_offset);
}

static inline struct session *session_of(const struct stage_run *s, uint32_t entry)
{
	return (struct session *)(void *)(link_of(s, entry) + 1);
}

/* Counts values that became absent since the last call. */
static inline void note_absent(struct pl_query_run *run)
{
	run->stats.absent += run->eval.absent;
	run->stats.texts_refused += run->eval.no_text;
	run->eval.absent = run->eval.no_text = 0;
}

/* Number of records that were late since the last window closed. */
static inline uint64_t late_since(const struct pl_query_run *run)
{
	return run->stats.late - run->late_told;
}

/* Returns whether something of [start, end) had no room, but for groups and partners. Without windows
 * the only window is [0, 0). */
static inline bool window_lacks(const struct pl_query_run *run, int64_t start, int64_t end)
{
	const int64_t within = (int64_t)run->query->within_ns;

	if (start == 0 && end == 0)
		return run->eval.losses.n > 0;
	return pl_query_losses_within(&run->eval.losses, start - within, end + within);
}

/* Sets the place of the times of the rows that are evaluated next. */
static inline void at_times_of(struct pl_query_run *run, const struct stage *stage)
{
	const bool windows = run->windows.spec.kind != W_NONE;

	run->eval.time_at = stage->time->offset;
	run->eval.latest = windows ? run->windows.latest : PL_QUERY_TIME_MAX;
}

/* keys.c */
/* True for a column that a key of this width can be copied from. */
bool pl_query_key_is_plain(const struct node *node, uint32_t width);
/* Writes the keys of the rows to run->keys, `stride` bytes apart. Their first word is the slot (0
 * when slots is NULL) and a bit for each absent value. */
void pl_query_keys_make(struct pl_query_run *run, const struct key *of, uint32_t n, uint32_t stride,
	const struct rows *rows, const uint32_t *slots);
/* Copies a column, in `width` bytes, from the rows to this place of each key in run->keys. Returns
 * false when the node is not a column. */
bool pl_query_keys_copy(struct pl_query_run *run, const struct node *node, uint8_t width,
	uint32_t offset, uint32_t stride, const struct rows *rows);

/* group.c */
int pl_query_groups_init(struct pl_query_run *run, struct stage_run *s);
void pl_query_groups_done(struct stage_run *s);
/* Writes the entries of the rows' keys, in slot 0, to run->entries; TABLE_NONE: no room. */
void pl_query_groups_find(struct pl_query_run *run, struct stage_run *s, const struct rows *rows);
/* Adds an entry to those of a slot. */
void pl_query_groups_link(struct stage_run *s, uint32_t entry, uint32_t slot);
/* Adds the accumulators of an entry to those of another. */
void pl_query_groups_unite(
	struct pl_query_run *run, struct stage_run *s, uint32_t from, uint32_t into);
/* Clears the values of an entry; removes an entry from the table. */
void pl_query_groups_clear(struct stage_run *s, uint32_t entry);
void pl_query_groups_remove(struct stage_run *s, uint32_t entry);
/* Joins the groups of a pane into those of another slot. */
void pl_query_groups_merge(
	struct pl_query_run *run, struct stage_run *s, uint32_t from, uint32_t into);
void pl_query_groups_drop(struct stage_run *s, uint32_t slot);
/* Finds or adds the group of the key at run->keys, in the slot; TABLE_NONE: no room, counted. */
uint32_t pl_query_groups_enter(struct pl_query_run *run, struct stage_run *s, uint32_t slot);
/* Next entry of the same slot; both + 1. */
uint32_t pl_query_groups_next(const struct stage_run *s, uint32_t entry);
/* Writes up to 1024 finished groups to run->cells, from entry *next on (+ 1), and sets *next to the
 * following entry; 0 at the end. Their numbers go to run->entries. */
uint32_t pl_query_groups_finish(struct pl_query_run *run, struct stage_run *s, uint32_t *next);
void pl_query_groups_finish_one(
	struct pl_query_run *run, struct stage_run *s, uint32_t entry, uint32_t row);

/* group_add.c */
/* Adds the rows to their groups; rows->sel is run->sel or NULL, the pane of row k is slots[k], or
 * slot 0 when slots is NULL. */
void pl_query_groups_add(
	struct pl_query_run *run, struct stage_run *s, struct rows *rows, uint32_t *slots);
/* Adds the rows to the accumulators of run->entries[from] and so on; their times are
 * run->ts[from]. */
void pl_query_groups_accumulate(
	struct pl_query_run *run, struct stage_run *s, const struct rows *rows, uint32_t from);

/* counts.c */
/* Adds the counts that are fed to the accumulators run->accs of an aggregate that adds up. Returns
 * false for another aggregate, which takes the records in the counts. */
bool pl_query_counts_add(
	const struct pl_query_run *run, const struct agg *agg, const struct rows *rows);
/* Number of packets in row k; 1 for a record. */
uint64_t pl_query_counts_packets(
	const struct pl_query_run *run, const struct rows *rows, uint32_t k);

/* Earliest time of the packets in row k; run->counts is not NULL. */
uint64_t pl_query_counts_first(const struct pl_query_run *run, const struct rows *rows, uint32_t k);

/* session.c */
int pl_query_sessions_init(struct pl_query_run *run, struct stage_run *s);
/* Adds the rows, whose times are in run->ts, to sessions. Returns the number of rows that are not
 * left out; run->entries has their sessions. */
uint32_t pl_query_sessions_add(struct pl_query_run *run, struct stage_run *s, struct rows *rows);
/* Reads the begin and the end of the session as far as known, and whether it is complete. */
void pl_query_session_window(struct pl_query_run *run, const struct stage_run *s, uint32_t entry,
	struct pl_query_row *row);
/* Gives rows of the sessions that end at `goal` or before, and sets the watermark to it. */
void pl_query_sessions_close(struct pl_query_run *run, struct stage_run *s, int64_t goal);

/* fold.c */
/* inputs: the largest number that a fold has. */
int pl_query_folds_init(struct pl_query_run *run, uint32_t inputs, uint32_t row_size);
void pl_query_folds_done(struct pl_query_run *run);
/* Adds the rows, in their order, with these times, to the groups of these entries. */
void pl_query_folds_add(struct pl_query_run *run, struct stage_run *s, const struct rows *rows,
	const uint64_t *ts, const uint32_t *entries);
/* Makes the last steps of a group; of the groups from an entry on (+ 1). */
void pl_query_folds_end(struct pl_query_run *run, struct stage_run *s, uint32_t entry);
void pl_query_folds_close(struct pl_query_run *run, struct stage_run *s, uint32_t next);
/* Gives the rows emitted in a pane of the closing window. */
void pl_query_folds_kept(struct pl_query_run *run, struct stage_run *s, uint32_t slot);

/* distinct.c */
int pl_query_distinct_init(struct pl_query_run *run, struct stage_run *s, uint32_t i);
void pl_query_distinct_add(struct pl_query_run *run, struct stage_run *s, const struct agg *agg,
	const struct rows *rows, const uint32_t *entries);
void pl_query_distinct_merge(struct pl_query_run *run, struct stage_run *s, const struct agg *agg,
	uint32_t from, uint32_t into);
/* Drops the sets of n groups, up to DROP_AT_ONCE. */
void pl_query_distinct_drop(
	struct stage_run *s, const struct agg *agg, const uint32_t *entries, uint32_t n);

/* Iterates over the values of a set: the first one, + 1; then the value at *at, which is set to the
 * next one. */
uint32_t pl_query_distinct_first(const struct stage_run *s, const struct agg *agg, uint32_t entry);
const uint8_t *pl_query_distinct_walk(
	const struct stage_run *s, const struct agg *agg, uint32_t *at);
/* Adds values to the set of a group. */
void pl_query_distinct_enter(struct pl_query_run *run, struct stage_run *s, const struct agg *agg,
	uint32_t entry, const uint8_t *values);

/* zip.c */
/* Head of a row of a side: the number of its record in the batch. */
struct zip_head {
	uint32_t record, incomplete;
};

void pl_query_zip_init(struct pl_query_run *run, struct stage_run *s);
/* Gives the pairs of rows of a batch of these records, and empties both sides. */
void pl_query_zip_give(struct pl_query_run *run, struct stage_run *s, const uint8_t *records);

/* pairs.c */
int pl_query_pairs_init(struct pl_query_run *run, struct stage_run *s);
void pl_query_pairs_done(struct stage_run *s);
/* Adds records of a side that satisfy its filter: they wait for their partners. */
void pl_query_pairs_add(
	struct pl_query_run *run, struct stage_run *side, const uint8_t *records, uint32_t n);
/* Gives the pairs of left records whose partners have all come when the watermark is at `goal`, in
 * the order of their times; records that are not needed any more are forgotten. */
void pl_query_pairs_until(struct pl_query_run *run, struct stage_run *s, int64_t goal);
/* Forgets left-out records before `goal`: the windows of pairs up to it have closed. */
void pl_query_pairs_closed(const struct pl_query_run *run, struct stage_run *s, int64_t goal);
/* Reads the least position of a record that pairs or windows of pairs still need, or of one a
 * little older. Returns false when there is none. */
bool pl_query_pairs_oldest(const struct stage_run *s, uint64_t *ret);
/* Time up to which pairs were given, by this run or by the one before it. */
int64_t pl_query_pairs_watermark(const struct stage_run *s);
void pl_query_pairs_resume(struct stage_run *s, int64_t watermark);
/* Restarts the watermark; no record is waiting. */
void pl_query_pairs_restart(struct stage_run *s, int64_t watermark);
/* Time of the last waiting left record; INT64_MIN: none. */
int64_t pl_query_pairs_last(const struct stage_run *s);
/* Time of the first waiting left record; INT64_MAX: none. */
int64_t pl_query_pairs_next(const struct stage_run *s);
/* Returns true when a record of pairs, if the stage reads them, was left out that may be missing in
 * [start, end). */
bool pl_query_pairs_incomplete(const struct stage_run *s, int64_t start, int64_t end);

/* scan.c */
/* Returns the records that satisfy the filter of the stage. */
struct rows pl_query_scan_where(
	struct pl_query_run *run, const struct stage *stage, const uint8_t *records, uint32_t n);
/* Filters records of the stage's input, and adds them to its groups or makes rows of them. */
void pl_query_scan(
	struct pl_query_run *run, struct stage_run *s, const uint8_t *records, uint32_t n);
/* Adds counts, up to PL_QUERY_BATCH, to the groups of the one stage. */
void pl_query_scan_counts(struct pl_query_run *run, const struct pl_tap_count *counts, uint32_t n);

/* run.c */
/* Runs the stages of the window that run->row names. `merging`: groups were added to the slot of
 * joined panes. */
void pl_query_run_stages(struct pl_query_run *run, bool merging);
/* Closes the windows that end at `goal` or before. */
void pl_query_run_until(struct pl_query_run *run, int64_t goal);

/* rows.c */
/* Makes rows of ROW_HEAD + 16 * n bytes at `to` from n expressions. */
void pl_query_rows_make(struct pl_query_run *run, const struct node *const *items, uint32_t n,
	const struct rows *rows, uint8_t *to);
/* Keeps the rows that satisfy the filter of the stage; their numbers are in run->sel. */
void pl_query_rows_where(struct pl_query_run *run, const struct stage *stage, struct rows *rows);
/* Makes rows of the result, in run->out_cells, of rows with a head. */
void pl_query_rows_result(
	struct pl_query_run *run, const struct stage *stage, const struct rows *rows);
/* Makes rows of the result of those of the n groups in run->cells that satisfy HAVING, and returns
 * these. `sel`: memory for their numbers. */
struct rows pl_query_rows_of_groups(
	struct pl_query_run *run, const struct stage *stage, uint32_t n, uint16_t *sel);
/* A row of a pane that has not closed. */
struct pl_query_row pl_query_row_of_pane(
	const struct pl_query_run *run, const struct stage_run *s, uint32_t slot);
/* Keeps a row of a side of a zip. */
void pl_query_rows_zip(struct pl_query_run *run, struct stage_run *side, uint32_t record,
	bool incomplete, const uint8_t *row);
/* Gives rows to the sink, or keeps them for a later stage. */
void pl_query_rows_give(
	struct pl_query_run *run, struct stage_run *s, const uint8_t *data, uint32_t n);
/* Gives the records themselves to the sink of records. */
void pl_query_rows_whole(struct pl_query_run *run, struct stage_run *s, const struct rows *rows);
/* Orders the kept rows, and gives them to the sink when the stage is the last. */
void pl_query_rows_flush(struct pl_query_run *run, struct stage_run *s);
bool pl_query_rows_add(
	struct pl_query_run *run, struct row_list *list, const uint8_t *data, uint32_t n);
bool pl_query_rows_kept(const struct pl_query_run *run, const struct stage_run *s);

/* join.c */
int pl_query_join_init(struct pl_query_run *run, struct stage_run *s);
void pl_query_join_done(struct stage_run *s);
/* Joins the rows of the stage's sources. */
const struct row_list *pl_query_join_rows(struct pl_query_run *run, struct stage_run *s);
