/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a run: feed.c takes records, run.c closes windows, group.c has the groups, rows.c
 * makes rows of the result, join.c joins rows, pairs.c records, session.c has windows that end with
 * their records. */
#pragma once

#include <string.h>

#include "query/aggregate.h"
#include "query/partial.h"
#include "query/table.h"
#include "query/window.h"

/* Groups of a stage. An entry of the table is the key (its first word: the slot of the pane, and
 * which keys are absent), a struct link, the accumulators. */
struct link {
	uint32_t next; /* of the same pane; + 1 */
	uint32_t linked : 1, fired : 1, in_batch : 1;
	uint32_t exp : 29; /* as in struct row_origin; 0 also: all of the run's first point */
	uint64_t first_ns;
};

#define EXP_ALL ((1u << 29) - 1)

/* The observation points of a run's records, and those of the row that was given last. */
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

/* Behind the link with SESSION windows. */
struct session {
	int64_t first, last; /* times of records */
	uint32_t next;       /* of the same key; + 1 */
	uint32_t due_at;     /* in the heap */
	uint64_t incomplete;
};

struct due;

#define DROP_AT_ONCE 256

struct groups {
	struct table table;
	struct table *distinct;  /* for each aggregate; unused ones are empty */
	uint32_t *heads, *tails; /* of each slot's entries; + 1 */
	uint32_t link_offset, acc_offset;
	struct due *due; /* of SESSION windows: sessions by their ends, a heap */
	uint32_t n_due;
};

/* Rows of 8 + 16 * columns bytes; grows up to `max`. */
struct row_list {
	uint8_t *data;
	uint32_t n, cap, max, size;
};

#define NO_POINT (-1)

struct stage_run {
	const struct stage *stage;
	bool headed;    /* its input has heads, and is no stream */
	int32_t obs_at; /* where records of its stream have their point; NO_POINT: nowhere */
	struct groups groups;
	struct row_list out;            /* of the window that closes, where they are kept */
	struct table join[JOINS_MAX];   /* keys of the right side */
	uint32_t *join_next[JOINS_MAX]; /* rows of the same key; + 1 */
	struct row_list joined[JOINS_MAX];
	struct stage_run *pairs_of; /* a side of pairs: the stage that reads them */
	struct pair_room *pairs;    /* of the stage that reads them */
	struct stage_run *zip_of;   /* a side of a zip: the stage that reads both */
	struct row_list zipped;     /* of a side: the rows of a batch, with a struct zip_head */
	struct row_list emitted;    /* by a fold, kept for their windows; the slot in front */
	uint64_t limit_left;        /* of rows of records */
};

/* Where folds work. */
struct fold_room {
	uint8_t *row;      /* of the fold's cells */
	uint8_t *inputs;   /* of a batch */
	uint8_t *kept;     /* a row with its slot */
	uint32_t *entries; /* of the groups whose rows wait in the run's cells */
	uint32_t *records; /* number in the batch of the records that made them */
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
	struct pl_query_stats stats;
	uint64_t late_told; /* of stats.late, in rows, or of windows that another run has given */
	struct points points;
	struct evaluator eval;
	pl_query_record_sink *records; /* takes records in the place of rows; NULL: none does */
	bool finished, closing;        /* closing: rows are of the window that closes */
	struct fold_room fold;
	/* the window that closes, or the pane of a first crossing */
	struct pl_query_row row;
	struct pl_query_value values[PL_QUERY_ITEMS_MAX];
	/* for a batch */
	uint16_t sel[PL_QUERY_BATCH];
	bool one_slot;                     /* the batch's slots are all the same */
	bool told;                         /* times of records do not move the watermark */
	const struct pl_tap_count *counts; /* the batch is of these; NULL: of records */
	uint32_t slots[PL_QUERY_BATCH], entries[PL_QUERY_BATCH];
	uint8_t *accs[PL_QUERY_BATCH];
	uint64_t ts[PL_QUERY_BATCH];
	uint8_t *keys;               /* of groups, distinct values and joins */
	uint8_t *cells;              /* rows of groups, finished */
	uint8_t *out_cells;          /* rows of the result */
	struct pl_query_item *items; /* of each row of a batch `lists` times LIST_MAX */
	uint32_t lists;
	/* of partial results */
	pl_query_partial_sink *partial; /* NULL: rows are given */
	void *partial_arg;
	uint64_t plan; /* pl_query_plan_hash, once it was asked for */
	uint32_t piece_max;
	uint8_t *acc; /* room for the widest accumulators */
	bool merged_incomplete;
	uint64_t merged_late;
	bool pairs_incomplete; /* of the pairs that are scanned */
	uint64_t bytes;        /* set aside */
	/* times of records without room for their session */
	int64_t refused_from, refused_to;
};

static inline struct link *link_of(const struct stage_run *s, uint32_t entry)
{
	return (struct link *)(void *)(table_at(&s->groups.table, entry) + s->groups.link_offset);
}

static inline struct session *session_of(const struct stage_run *s, uint32_t entry)
{
	return (struct session *)(void *)(link_of(s, entry) + 1);
}

/* Values that became absent since the last time. */
static inline void note_absent(struct pl_query_run *run)
{
	run->stats.absent += run->eval.absent;
	run->stats.texts_refused += run->eval.no_text;
	run->eval.absent = run->eval.no_text = 0;
}

/* Records that were late since a window closed last. */
static inline uint64_t late_since(const struct pl_query_run *run)
{
	return run->stats.late - run->late_told;
}

/* group.c */
int pl_query_groups_init(struct pl_query_run *run, struct stage_run *s);
void pl_query_groups_done(struct stage_run *s);
/* The keys of the rows to run->keys, `stride` bytes apart. Their first word is the slot, or 0 with
 * slots NULL, and behind it a bit for each value that is absent. */
void pl_query_keys_make(struct pl_query_run *run, const struct key *of, uint32_t n, uint32_t stride,
	const struct rows *rows, const uint32_t *slots);
/* A column as it stands in the rows, in `width` bytes, to that place of each key in run->keys; false
 * where the node is something else. */
bool pl_query_keys_copy(struct pl_query_run *run, const struct node *node, uint8_t width,
	uint32_t offset, uint32_t stride, const struct rows *rows);
/* The rows into their groups; rows->sel is run->sel or NULL, the pane of row k is slots[k], or
 * slot 0 when slots is NULL. */
void pl_query_groups_add(
	struct pl_query_run *run, struct stage_run *s, struct rows *rows, uint32_t *slots);
/* The entries of the rows' keys, in slot 0, to run->entries; TABLE_NONE where there was no room. */
void pl_query_groups_find(struct pl_query_run *run, struct stage_run *s, const struct rows *rows);
/* The rows into the accumulators of run->entries[from] and so on; their times are run->ts[from]. */
void pl_query_groups_accumulate(
	struct pl_query_run *run, struct stage_run *s, const struct rows *rows, uint32_t from);
/* Adds the accumulators of an entry to those of another. */
void pl_query_groups_unite(
	struct pl_query_run *run, struct stage_run *s, uint32_t from, uint32_t into);
/* An entry without values, or without its place in the table. */
void pl_query_groups_clear(struct stage_run *s, uint32_t entry);
void pl_query_groups_remove(struct stage_run *s, uint32_t entry);
/* Joins the groups of a pane into those of another slot. */
void pl_query_groups_merge(
	struct pl_query_run *run, struct stage_run *s, uint32_t from, uint32_t into);
/* The last steps of the folds of the groups from an entry on (+ 1). */
void pl_query_groups_end(struct pl_query_run *run, struct stage_run *s, uint32_t next);
void pl_query_groups_drop(struct stage_run *s, uint32_t slot);
/* The group of the key at run->keys, in the slot; TABLE_NONE: there was no room, which is counted. */
uint32_t pl_query_groups_enter(struct pl_query_run *run, struct stage_run *s, uint32_t slot);
/* The entry behind one of the same slot; both + 1. */
uint32_t pl_query_groups_next(const struct stage_run *s, uint32_t entry);
/* Writes up to 1024 finished groups to run->cells, from entry *next on (+ 1), which becomes where
 * to go on; 0 at the end. Their numbers go to run->entries. */
uint32_t pl_query_groups_finish(struct pl_query_run *run, struct stage_run *s, uint32_t *next);
void pl_query_groups_finish_one(
	struct pl_query_run *run, struct stage_run *s, uint32_t entry, uint32_t row);

/* counts.c */
/* The counts that are fed into the accumulators run->accs of an aggregate that adds up; false: it is
 * another, which takes the records that counts have. */
bool pl_query_counts_add(
	const struct pl_query_run *run, const struct agg *agg, const struct rows *rows);
/* Packets that row k is of: 1 when it is a record. */
uint64_t pl_query_counts_packets(
	const struct pl_query_run *run, const struct rows *rows, uint32_t k);

/* The earliest time of the packets that row k is of; run->counts is not NULL. */
uint64_t pl_query_counts_first(const struct pl_query_run *run, const struct rows *rows, uint32_t k);

/* session.c */
int pl_query_sessions_init(struct pl_query_run *run, struct stage_run *s);
/* The rows, whose times are in run->ts, into sessions. Returns how many are not left out;
 * run->entries has their sessions. */
uint32_t pl_query_sessions_add(struct pl_query_run *run, struct stage_run *s, struct rows *rows);
/* From when to when the session lasts as far as is known, and whether it is whole. */
void pl_query_session_window(struct pl_query_run *run, const struct stage_run *s, uint32_t entry,
	struct pl_query_row *row);
/* Rows of the sessions that end at `goal` or before; the watermark is there afterwards. */
void pl_query_sessions_close(struct pl_query_run *run, struct stage_run *s, int64_t goal);

/* fold.c */
/* inputs: the most that a fold has. */
int pl_query_folds_init(struct pl_query_run *run, uint32_t inputs, uint32_t row_size);
void pl_query_folds_done(struct pl_query_run *run);
/* The rows, in their order, of these times, into the groups of these entries. */
void pl_query_folds_add(struct pl_query_run *run, struct stage_run *s, const struct rows *rows,
	const uint64_t *ts, const uint32_t *entries);
/* The last steps of a group. */
void pl_query_folds_end(struct pl_query_run *run, struct stage_run *s, uint32_t entry);
/* Gives the rows that were emitted since: 1024 wait at most. */
void pl_query_folds_give(struct pl_query_run *run, struct stage_run *s);
/* Gives what was emitted in a pane of the window that closes. */
void pl_query_folds_kept(struct pl_query_run *run, struct stage_run *s, uint32_t slot);

/* distinct.c */
int pl_query_distinct_init(struct pl_query_run *run, struct stage_run *s, uint32_t i);
void pl_query_distinct_add(struct pl_query_run *run, struct stage_run *s, const struct agg *agg,
	const struct rows *rows, const uint32_t *entries);
void pl_query_distinct_merge(struct pl_query_run *run, struct stage_run *s, const struct agg *agg,
	uint32_t from, uint32_t into);
/* The sets of n groups, up to DROP_AT_ONCE. */
void pl_query_distinct_drop(
	struct stage_run *s, const struct agg *agg, const uint32_t *entries, uint32_t n);

/* The first value of a set, + 1; the values at *at, which becomes the next. */
uint32_t pl_query_distinct_first(const struct stage_run *s, const struct agg *agg, uint32_t entry);
const uint8_t *pl_query_distinct_walk(
	const struct stage_run *s, const struct agg *agg, uint32_t *at);
/* Values into the set of a group. */
void pl_query_distinct_enter(struct pl_query_run *run, struct stage_run *s, const struct agg *agg,
	uint32_t entry, const uint8_t *values);

/* zip.c */
/* In front of a row of a side: the number of its record in the batch. */
struct zip_head {
	uint32_t record, incomplete;
};

int pl_query_zip_init(struct pl_query_run *run, struct stage_run *s);
void pl_query_zip_add(struct pl_query_run *run, struct stage_run *side, uint32_t record,
	bool incomplete, const uint8_t *row);
/* The rows of a batch of these records, in pairs; then there are none. */
void pl_query_zip_give(struct pl_query_run *run, struct stage_run *s, const uint8_t *records);

/* pairs.c */
int pl_query_pairs_init(struct pl_query_run *run, struct stage_run *s);
void pl_query_pairs_done(struct stage_run *s);
/* Records of the left (0) or the right (1), which wait for their partners. */
void pl_query_pairs_add(
	struct pl_query_run *run, struct stage_run *s, unsigned int side, struct rows *rows);
/* The pairs of the records of the left whose partners are all there when the watermark is at
 * `goal`, in the order of their times; records that are needed no more are forgotten. */
void pl_query_pairs_until(struct pl_query_run *run, struct stage_run *s, int64_t goal);
/* The windows that the pairs up to `goal` are of have closed: records that were left out before
 * them are forgotten. */
void pl_query_pairs_closed(const struct pl_query_run *run, struct stage_run *s, int64_t goal);
/* The least place of a record that pairs or windows of pairs still need, or of one a little older.
 * False: none is. */
bool pl_query_pairs_oldest(const struct stage_run *s, uint64_t *ret);
/* Pairs up to the watermark were given, by this run or by the one before it. */
int64_t pl_query_pairs_watermark(const struct stage_run *s);
void pl_query_pairs_resume(struct stage_run *s, int64_t watermark);
/* The time of the last record of the left that waits; INT64_MIN: there is none. */
int64_t pl_query_pairs_last(const struct stage_run *s);
/* The time of the first record of the left that waits; INT64_MAX: there is none. */
int64_t pl_query_pairs_next(const struct stage_run *s);
/* What was looked at so far to find places of records of the right, for the test. */
uint64_t pl_query_pairs_steps(const struct stage_run *s);
/* Whether a record was left out that may be missing in [start, end). */
bool pl_query_pairs_incomplete(const struct stage_run *s, int64_t start, int64_t end);

/* run.c */
/* Records of the stage's input, filtered, into its groups or to rows. */
void pl_query_run_scan(
	struct pl_query_run *run, struct stage_run *s, const uint8_t *records, uint32_t n);
/* The stages of the window that run->row tells of. `merging`: groups were added to the slot of
 * joined panes. */
void pl_query_run_stages(struct pl_query_run *run, bool merging);
/* Closes the windows that end at `goal` or before. */
void pl_query_run_until(struct pl_query_run *run, int64_t goal);

/* partial.c: the groups from entry `first` on (+ 1) as a partial result. */
void pl_query_partial_give(struct pl_query_run *run, const struct stage_run *s, uint32_t first);

/* rows.c */
/* Columns of rows as 8 + 16 * n bytes at `to`, from expressions. */
void pl_query_rows_make(struct pl_query_run *run, const struct node *const *items, uint32_t n,
	const struct rows *rows, uint8_t *to);
/* Gives rows to the sink, or keeps them where a stage behind needs them. */
void pl_query_rows_give(
	struct pl_query_run *run, struct stage_run *s, const uint8_t *data, uint32_t n);
/* The records themselves, to the sink of records. */
void pl_query_rows_whole(struct pl_query_run *run, struct stage_run *s, const struct rows *rows);
/* What is kept, in order: to the sink, when the stage is the last. */
void pl_query_rows_flush(struct pl_query_run *run, struct stage_run *s);
bool pl_query_rows_add(
	struct pl_query_run *run, struct row_list *list, const uint8_t *data, uint32_t n);
bool pl_query_rows_kept(const struct pl_query_run *run, const struct stage_run *s);

/* join.c */
int pl_query_join_init(struct pl_query_run *run, struct stage_run *s);
void pl_query_join_done(struct stage_run *s);
/* The rows of the stage's sources, joined. */
const struct row_list *pl_query_join_rows(struct pl_query_run *run, struct stage_run *s);
