/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SESSION windows: a session of a key goes from its first record to a gap behind its last one. Most
 * keys have one session at a time, in the entry of the key. Records out of order make others:
 * entries of the same key with a number in its first word, in a list from the key's entry on, until
 * a record between two of them makes them one.
 *
 * Sessions are in a heap by the time at which they end. A record that moves the end leaves the heap
 * unchanged; a session that reaches the top too early goes down again.
 */
#include <stdlib.h>
#include <string.h>

#include "query/origin.h"

struct due {
	int64_t end; /* or an earlier time */
	uint32_t entry;
};

int pl_query_sessions_init(struct pl_query_run *run, struct stage_run *s)
{
	s->groups.due = calloc(run->config.max_groups, sizeof(*s->groups.due));
	run->bytes += (uint64_t)run->config.max_groups * sizeof(*s->groups.due);
	return s->groups.due != NULL ? 0 : -ENOMEM;
}

static int64_t gap_of(const struct pl_query_run *run)
{
	return (int64_t)run->windows.spec.size_ns;
}

/* ---- the heap ---- */

static void put_due(struct stage_run *s, uint32_t at, struct due due)
{
	s->groups.due[at] = due;
	session_of(s, due.entry)->due_at = at;
}

static void move_up(struct stage_run *s, uint32_t at)
{
	const struct due due = s->groups.due[at];

	while (at > 0 && s->groups.due[(at - 1) / 2].end > due.end) {
		put_due(s, at, s->groups.due[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put_due(s, at, due);
}

static void move_down(struct stage_run *s, uint32_t at)
{
	const struct due due = s->groups.due[at], *all = s->groups.due;
	uint32_t child;

	while ((child = 2 * at + 1) < s->groups.n_due) {
		if (child + 1 < s->groups.n_due && all[child + 1].end < all[child].end)
			child++;
		if (all[child].end >= due.end)
			break;
		put_due(s, at, all[child]);
		at = child;
	}
	put_due(s, at, due);
}

static void add_due(struct stage_run *s, uint32_t entry, int64_t end)
{
	put_due(s, s->groups.n_due, (struct due){ end, entry });
	move_up(s, s->groups.n_due++);
}

static void remove_due(struct stage_run *s, uint32_t at)
{
	const struct due last = s->groups.due[--s->groups.n_due];

	if (at == s->groups.n_due)
		return;
	put_due(s, at, last);
	move_up(s, at);
	move_down(s, session_of(s, last.entry)->due_at);
}

/* ---- sessions of a key ---- */

static bool touches(const struct pl_query_run *run, const struct session *session, int64_t ts)
{
	return ts > session->first - gap_of(run) && ts < session->last + gap_of(run);
}

static void extend(struct session *session, int64_t ts)
{
	session->first = ts < session->first ? ts : session->first;
	session->last = ts > session->last ? ts : session->last;
}

static void begin(struct pl_query_run *run, struct stage_run *s, uint32_t entry, int64_t ts)
{
	struct session *session = session_of(s, entry);

	*session = (struct session){ .first = ts, .last = ts };
	link_of(s, entry)->linked = 1;
	link_of(s, entry)->first_ns = PL_QUERY_NO_TIME;
	link_of(s, entry)->exp = 0;
	add_due(s, entry, ts + gap_of(run));
}

/* Adds session `from` to `into`, and frees it. Both are of the key whose entry is `head`. */
static void unite(
	struct pl_query_run *run, struct stage_run *s, uint32_t head, uint32_t into, uint32_t from)
{
	struct session *a = session_of(s, into), *b = session_of(s, from);
	uint32_t before = head;

	while (session_of(s, before)->next != from + 1)
		before = session_of(s, before)->next - 1;
	session_of(s, before)->next = b->next;
	extend(a, b->first);
	extend(a, b->last);
	a->incomplete = a->incomplete || b->incomplete;
	link_of(s, into)->fired |= link_of(s, from)->fired;
	pl_query_groups_unite(run, s, from, into);
	remove_due(s, b->due_at);
	pl_query_groups_remove(s, from);
}

/* Begins another session of a key; TABLE_NONE: no room. */
static uint32_t begin_another(
	struct pl_query_run *run, struct stage_run *s, uint32_t head, int64_t ts)
{
	uint8_t key[8 + PL_QUERY_COLUMNS_MAX / 2 * CELL_BYTES];
	struct session *of_key = session_of(s, head);
	uint32_t number = 0, entry;

	/* The newest session is first, and has the greatest number. */
	if (of_key->next != 0)
		memcpy(&number, table_at(&s->groups.table, of_key->next - 1), sizeof(number));
	number++;
	memcpy(key, table_at(&s->groups.table, head), s->stage->key_bytes);
	memcpy(key, &number, sizeof(number));
	pl_query_table_add(&s->groups.table, key, 1, &entry);
	if (entry == TABLE_NONE)
		return TABLE_NONE;
	begin(run, s, entry, ts);
	session_of(s, entry)->next = of_key->next;
	of_key->next = entry + 1;
	return entry;
}

/* ---- records ---- */

/* Records of a batch with their sessions: `n`, of which the first `added` were added to them. */
struct batch {
	struct rows rows;
	uint32_t n, added, n_unused;
	uint32_t unused[PL_QUERY_BATCH]; /* entries made for late records */
};

static void add_some(struct pl_query_run *run, struct stage_run *s, struct batch *b)
{
	const struct rows rows = { b->rows.base, b->rows.stride, b->n - b->added,
		run->sel + b->added };

	if (rows.n > 0)
		pl_query_groups_accumulate(run, s, &rows, b->added);
	b->added = b->n;
}

static void note_refused(struct pl_query_run *run, int64_t ts)
{
	run->stats.groups_refused++;
	lacks_room(&run->eval, ts);
}

/* Unites the sessions of the key that the record touches, in the first of them in the list.
 * TABLE_NONE: it touches none. */
static uint32_t find_session(
	struct pl_query_run *run, struct stage_run *s, struct batch *b, uint32_t head, int64_t ts)
{
	uint32_t found = TABLE_NONE, next;

	for (uint32_t at = head + 1; at != 0; at = next) {
		const uint32_t entry = at - 1;

		next = session_of(s, entry)->next;
		if (!touches(run, session_of(s, entry), ts))
			continue;
		if (found == TABLE_NONE) {
			found = entry;
			continue;
		}
		add_some(run, s, b);
		unite(run, s, head, found, entry);
		for (uint32_t k = 0; k < b->n; k++)
			run->entries[k] = run->entries[k] == entry ? found : run->entries[k];
	}
	return found;
}

/* Finds the session of a record; TABLE_NONE: the record is left out. */
static uint32_t choose(
	struct pl_query_run *run, struct stage_run *s, struct batch *b, uint32_t head, int64_t ts)
{
	struct link *link;
	uint32_t entry;

	if (head == TABLE_NONE) {
		note_refused(run, ts);
		return TABLE_NONE;
	}
	link = link_of(s, head);
	entry = link->linked ? find_session(run, s, b, head, ts) : TABLE_NONE;
	if (entry != TABLE_NONE) {
		extend(session_of(s, entry), ts);
		return entry;
	}
	if (ts + gap_of(run) <= run->windows.watermark) {
		run->stats.late++;
		run->late_told += ts + gap_of(run) <= run->windows.resumed;
		if (!link->linked && !link->in_batch) {
			link->in_batch = 1;
			b->unused[b->n_unused++] = head;
		}
		return TABLE_NONE;
	}
	if (!link->linked) {
		begin(run, s, head, ts);
		return head;
	}
	entry = begin_another(run, s, head, ts);
	if (entry == TABLE_NONE)
		note_refused(run, ts);
	return entry;
}

uint32_t pl_query_sessions_add(struct pl_query_run *run, struct stage_run *s, struct rows *rows)
{
	struct batch b = { .rows = *rows };

	pl_query_groups_find(run, s, rows);
	for (uint32_t k = 0; k < rows->n; k++) {
		const uint64_t ts = run->ts[k];
		const uint32_t entry = choose(run, s, &b, run->entries[k], (int64_t)ts);

		if (entry == TABLE_NONE)
			continue;
		run->sel[b.n] = rows->sel != NULL ? rows->sel[k] : (uint16_t)k;
		run->ts[b.n] = ts;
		run->entries[b.n++] = entry;
	}
	add_some(run, s, &b);
	for (uint32_t i = 0; i < b.n_unused; i++) {
		struct link *link = link_of(s, b.unused[i]);

		link->in_batch = 0;
		if (!link->linked)
			pl_query_table_remove(&s->groups.table, b.unused[i]);
	}
	return b.n;
}

/* ---- sessions that end ---- */

void pl_query_session_window(struct pl_query_run *run, const struct stage_run *s, uint32_t entry,
	struct pl_query_row *row)
{
	const struct session *session = session_of(s, entry);

	row->windowed = true;
	row->start_ns = session->first;
	row->end_ns = session->last + gap_of(run);
	row->incomplete = session->incomplete || window_lacks(run, session->first, row->end_ns);
}

/* Frees a session that has ended. The key's entry gets the next session of the key. */
static void end_session(struct pl_query_run *run, struct stage_run *s, uint32_t entry)
{
	struct session *session = session_of(s, entry);
	uint32_t number, next = session->next;

	memcpy(&number, table_at(&s->groups.table, entry), sizeof(number));
	remove_due(s, session->due_at);
	if (number != 0) {
		uint8_t key[8 + PL_QUERY_COLUMNS_MAX / 2 * CELL_BYTES];
		uint32_t before;

		memcpy(key, table_at(&s->groups.table, entry), s->stage->key_bytes);
		memset(key, 0, sizeof(number));
		before = pl_query_table_find(&s->groups.table, key);
		while (session_of(s, before)->next != entry + 1)
			before = session_of(s, before)->next - 1;
		session_of(s, before)->next = next;
		pl_query_groups_remove(s, entry);
	} else if (next == 0) {
		pl_query_groups_remove(s, entry);
	} else {
		const uint32_t from = next - 1, due_at = session_of(s, from)->due_at;
		const uint8_t fired = link_of(s, from)->fired;

		pl_query_groups_clear(s, entry);
		*session = *session_of(s, from);
		pl_query_groups_unite(run, s, from, entry);
		link_of(s, entry)->fired = fired;
		s->groups.due[due_at].entry = entry;
		pl_query_groups_remove(s, from);
	}
}

/* Writes up to 1024 sessions that end at `goal` or before, in this order, to run->cells. */
static uint32_t finish_some(
	struct pl_query_run *run, struct stage_run *s, int64_t goal, struct pl_query_row *windows)
{
	uint32_t n = 0;

	while (n < PL_QUERY_BATCH && s->groups.n_due > 0 && s->groups.due[0].end <= goal) {
		const uint32_t entry = s->groups.due[0].entry;
		const int64_t end = session_of(s, entry)->last + gap_of(run);

		if (end > s->groups.due[0].end) {
			s->groups.due[0].end = end;
			move_down(s, 0);
			continue;
		}
		windows[n] = (struct pl_query_row){ .final = true, .late = late_since(run) };
		run->late_told = run->stats.late;
		pl_query_session_window(run, s, entry, &windows[n]);
		pl_query_folds_end(run, s, entry);
		pl_query_groups_finish_one(run, s, entry, n++);
		end_session(run, s, entry);
	}
	return n;
}

void pl_query_sessions_close(struct pl_query_run *run, struct stage_run *s, int64_t goal)
{
	const struct stage *stage = s->stage;
	struct pl_query_row windows[PL_QUERY_BATCH];
	uint32_t n;

	while ((n = finish_some(run, s, goal, windows)) > 0) {
		const struct rows rows = pl_query_rows_of_groups(run, stage, n, run->sel);

		run->stats.windows += n;
		for (uint32_t k = 0; k < rows.n; k++) {
			run->row = windows[rows.sel != NULL ? rows.sel[k] : k];
			s->limit_left = UINT64_MAX;
			pl_query_rows_give(run, s, run->out_cells + (size_t)k * stage->out.size, 1);
		}
	}
	run->windows.watermark = goal > run->windows.watermark ? goal : run->windows.watermark;
}
