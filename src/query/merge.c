/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins partial results of several inputs and gives each window's rows once. */
#include "query/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "query/losses.h"
#include "wire/cursor.h"

#define MAGIC   0x58514c50u /* "PLQX" */
#define VERSION 2           /* of the pieces, too */
#define PIECE   1
#define MARK    2
#define IDLE    1u
#define GIVEN   64 /* remembered inputs of given windows, to tell repeated pieces from late ones */

struct head {
	uint32_t magic;
	uint16_t version, kind;
	uint64_t plan, attempt;
	uint32_t input, flags;
	int64_t time;
};

struct piece {
	STAILQ_ENTRY(piece) link;
	uint64_t attempt;
	uint32_t input;
	size_t len;
	uint8_t data[];
};

struct window {
	LIST_ENTRY(window) link;
	int64_t start, end;
	uint64_t offset;  /* of its first piece */
	uint64_t seen_ns; /* arrival of its first piece */
	bool incomplete;
	STAILQ_HEAD(pieces, piece) pieces;
	uint64_t *chosen; /* attempt of each input that counts; 0: none */
};

struct input {
	bool marked, idle;
	int64_t mark;
};

struct given {
	int64_t end;
	uint64_t *chosen;
};

struct pl_query_merge {
	const struct pl_query *query;
	struct pl_query_merge_config config;
	struct pl_query_run *run;
	uint64_t plan, bytes;
	int64_t given_ns;
	int64_t resumed_ns; /* windows up to this time were given by an earlier process */
	struct losses lost; /* ends of windows that had no room when a piece came */
	LIST_HEAD(windows, window) windows;
	struct input *inputs;
	struct given given[GIVEN];
	uint32_t next_given;
	struct pl_query_merge_stats stats;
};

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_query_merge_stats, __VA_ARGS__)
#include "query/merge_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_query_merge_list = { stat_rows, sizeof(stat_rows) / sizeof(stat_rows[0]) };

/* ---- messages ---- */

static void put_head(struct pl_buf *out, const struct pl_query_sender *from, uint16_t kind,
	uint32_t flags, int64_t time)
{
	const struct head head = { MAGIC, VERSION, kind, from->plan, from->attempt, from->input,
		flags, time };

	pl_buf_add(out, &head, sizeof(head));
}

void pl_query_piece_message(struct pl_buf *out, const struct pl_query_sender *from, int64_t end_ns,
	const void *piece, size_t len)
{
	put_head(out, from, PIECE, 0, end_ns);
	pl_buf_add(out, piece, len);
}

void pl_query_mark_message(
	struct pl_buf *out, const struct pl_query_sender *from, int64_t mark_ns, bool idle)
{
	put_head(out, from, MARK, idle ? IDLE : 0, mark_ns);
}

/* ---- made and freed ---- */

int pl_query_merge_new(struct pl_query_merge **ret, const struct pl_query *query,
	const struct pl_query_merge_config *config, pl_query_sink *sink, void *arg,
	struct pl_diag *diag)
{
	struct pl_query_merge *m = calloc(1, sizeof(*m));
	int r = -ENOMEM;

	if (m == NULL)
		return r;
	m->query = query;
	m->config = *config;
	m->config.run.partitions = 1;
	m->config.run.max_windows = 1;
	m->config.wait_ns = config->wait_ns != 0 ? config->wait_ns : UINT64_C(60000000000);
	m->config.max_bytes = config->max_bytes != 0 ? config->max_bytes : UINT64_C(1) << 30;
	m->given_ns = m->resumed_ns = INT64_MIN;
	m->lost.near = (int64_t)pl_query_step_ns(query);
	m->plan = pl_query_plan_hash(query);
	LIST_INIT(&m->windows);
	m->inputs = calloc(config->inputs + 1, sizeof(*m->inputs));
	if (m->inputs != NULL)
		r = pl_query_run_new(&m->run, query, &m->config.run, sink, arg, diag);
	if (r < 0) {
		pl_query_merge_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

/* Bytes of a waiting window, without its pieces. */
static size_t window_cost(const struct pl_query_merge *m)
{
	return sizeof(struct window) + m->config.inputs * sizeof(*(struct window){ 0 }.chosen);
}

static void free_pieces(struct pl_query_merge *m, struct window *w)
{
	struct piece *p;

	while ((p = STAILQ_FIRST(&w->pieces)) != NULL) {
		STAILQ_REMOVE_HEAD(&w->pieces, link);
		m->bytes -= p->len;
		free(p);
	}
}

static void free_window(struct pl_query_merge *m, struct window *w)
{
	m->bytes -= window_cost(m);
	free_pieces(m, w);
	free(w->chosen);
	free(w);
}

void pl_query_merge_free(struct pl_query_merge *m)
{
	struct window *w, *next;

	if (m == NULL)
		return;
	for (w = LIST_FIRST(&m->windows); w != NULL; w = next) {
		next = LIST_NEXT(w, link);
		free_window(m, w);
	}
	for (uint32_t i = 0; i < GIVEN; i++)
		free(m->given[i].chosen);
	pl_query_run_free(m->run);
	free(m->inputs);
	free(m);
}

void pl_query_merge_resume(struct pl_query_merge *m, int64_t given_ns)
{
	m->given_ns = m->resumed_ns = given_ns;
}

/* ---- taken ---- */

static struct window *window_of(
	struct pl_query_merge *m, int64_t start, int64_t end, uint64_t offset, uint64_t now_ns)
{
	struct window *w;

	for (w = LIST_FIRST(&m->windows); w != NULL; w = LIST_NEXT(w, link)) {
		if (w->end == end)
			return w;
	}
	if (m->bytes + window_cost(m) > m->config.max_bytes)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return NULL;
	w->chosen = calloc(m->config.inputs, sizeof(*w->chosen));
	if (w->chosen == NULL) {
		free(w);
		return NULL;
	}
	m->bytes += window_cost(m);
	w->start = start;
	w->end = end;
	w->offset = offset;
	w->seen_ns = now_ns;
	w->incomplete = pl_query_losses_within(&m->lost, end, end + 1);
	STAILQ_INIT(&w->pieces);
	LIST_INSERT_HEAD(&m->windows, w, link);
	return w;
}

/* Returns true when a given window had this input. A window before those that are remembered
 * was given before this process began, or long ago: its pieces are repetitions. One among
 * them was never given: the first piece of it came when the rows of later ones had not waited
 * for its input. */
static bool is_repeated(const struct pl_query_merge *m, int64_t end, uint32_t input)
{
	/* Windows are given in order: when all places are in use, the next one holds the oldest. */
	const struct given *oldest = &m->given[m->next_given % GIVEN];

	for (uint32_t i = 0; i < GIVEN; i++) {
		if (m->given[i].chosen != NULL && m->given[i].end == end)
			return m->given[i].chosen[input] != 0;
	}
	return end <= (oldest->chosen != NULL ? oldest->end : m->resumed_ns);
}

/* Remembers that a piece was left out whose window had no room, but may have it for other
 * pieces. */
static void note_lost(struct pl_query_merge *m, int64_t end)
{
	if (!pl_query_losses_within(&m->lost, m->given_ns, INT64_MAX))
		m->lost.n = 0;
	pl_query_losses_add(&m->lost, end, end);
}

static int take_piece(struct pl_query_merge *m, const struct head *head, struct pl_cursor in,
	uint64_t offset, uint64_t now_ns)
{
	const size_t len = pl_cursor_left(&in);
	const uint8_t *data = pl_cursor_take(&in, len);
	int64_t start, end;
	struct window *w;
	struct piece *p;

	if (pl_query_partial_check(m->query, data, len, &start, &end) < 0 || end != head->time) {
		m->stats.refused++;
		return -EBADMSG;
	}
	if (end <= m->given_ns) {
		if (is_repeated(m, end, head->input))
			m->stats.repeated++;
		else
			m->stats.late++;
		return 0;
	}
	w = window_of(m, start, end, offset, now_ns);
	if (w != NULL && w->chosen[head->input] != 0) {
		m->stats.repeated++;
		return 0;
	}
	p = w != NULL && m->bytes + len <= m->config.max_bytes ? malloc(sizeof(*p) + len) : NULL;
	if (p == NULL) {
		m->stats.no_room++;
		if (w != NULL)
			w->incomplete = true;
		else
			note_lost(m, end);
		return -ENOMEM;
	}
	p->attempt = head->attempt;
	p->input = head->input;
	p->len = len;
	memcpy(p->data, data, len);
	m->bytes += len;
	m->stats.pieces++;
	STAILQ_INSERT_TAIL(&w->pieces, p, link);
	return 0;
}

static void take_mark(struct pl_query_merge *m, const struct head *head)
{
	struct input *input = &m->inputs[head->input];
	struct window *w;
	struct piece *p;

	m->stats.marks++;
	for (w = LIST_FIRST(&m->windows); w != NULL; w = LIST_NEXT(w, link)) {
		if (w->end > head->time || w->chosen[head->input] != 0)
			continue;
		for (p = STAILQ_FIRST(&w->pieces); p != NULL; p = STAILQ_NEXT(p, link)) {
			if (p->input == head->input && p->attempt == head->attempt)
				w->chosen[head->input] = head->attempt;
		}
	}
	input->idle = (head->flags & IDLE) != 0;
	input->mark = !input->marked || head->time > input->mark ? head->time : input->mark;
	input->marked = true;
}

int pl_query_merge_take(
	struct pl_query_merge *m, const void *data, size_t len, uint64_t offset, uint64_t now_ns)
{
	struct pl_cursor in = pl_cursor(data, len);
	const uint8_t *p = pl_cursor_take(&in, sizeof(struct head));
	struct head head = { 0 };

	m->stats.messages++;
	if (p != NULL)
		memcpy(&head, p, sizeof(head));
	if (head.magic == MAGIC && head.version != VERSION && head.version != 0) {
		m->stats.refused++;
		return -EPROTONOSUPPORT;
	}
	if (head.magic != MAGIC || head.version != VERSION || head.plan != m->plan ||
		head.input >= m->config.inputs || head.attempt == 0 || head.flags > IDLE ||
		(head.kind != PIECE && head.kind != MARK)) {
		m->stats.refused++;
		return -EBADMSG;
	}
	if (head.kind == PIECE)
		return take_piece(m, &head, in, offset, now_ns);
	take_mark(m, &head);
	return 0;
}

/* ---- given ---- */

static void remember(struct pl_query_merge *m, struct window *w)
{
	struct given *g = &m->given[m->next_given++ % GIVEN];

	free(g->chosen);
	*g = (struct given){ w->end, w->chosen };
	w->chosen = NULL;
}

/* Gives rows in the order of inputs, so that the same pieces give the same rows, to the last
 * bit. */
static void give(struct pl_query_merge *m, struct window *w, bool timed_out)
{
	struct piece *p;

	for (uint32_t i = 0; i < m->config.inputs; i++) {
		for (p = STAILQ_FIRST(&w->pieces); p != NULL; p = STAILQ_NEXT(p, link)) {
			if (p->input != i || p->attempt != w->chosen[i])
				continue;
			if (pl_query_partial_add(m->run, p->data, p->len) < 0) {
				m->stats.refused++;
				m->stats.pieces--;
				w->incomplete = true;
			}
		}
	}
	m->stats.timed_out += timed_out;
	m->stats.windows++;
	pl_query_partial_close(m->run, w->start, w->end, w->incomplete || timed_out);
	m->given_ns = w->end > m->given_ns ? w->end : m->given_ns;
	remember(m, w);
	LIST_REMOVE(w, link);
	free_window(m, w);
}

static struct window *first_window(const struct pl_query_merge *m)
{
	struct window *w, *first = NULL;

	for (w = LIST_FIRST(&m->windows); w != NULL; w = LIST_NEXT(w, link)) {
		if (first == NULL || w->end < first->end)
			first = w;
	}
	return first;
}

/* Returns the time up to which all inputs that are not idle have marked. */
static int64_t least_mark(const struct pl_query_merge *m)
{
	int64_t least = INT64_MAX;

	for (uint32_t i = 0; i < m->config.inputs; i++) {
		const struct input *input = &m->inputs[i];

		if (!input->marked)
			return INT64_MIN;
		if (!input->idle && input->mark < least)
			least = input->mark;
	}
	return least;
}

/* Returns true when a window is complete. Pieces wait for their mark, also those of an input that
 * was idle before. */
static bool is_there(const struct pl_query_merge *m, const struct window *w, int64_t least)
{
	const struct piece *p;

	for (p = STAILQ_FIRST(&w->pieces); p != NULL; p = STAILQ_NEXT(p, link)) {
		if (!m->inputs[p->input].marked || m->inputs[p->input].mark < w->end)
			return false;
	}
	return w->end <= least;
}

void pl_query_merge_turn(struct pl_query_merge *m, uint64_t now_ns)
{
	const int64_t least = least_mark(m);
	struct window *w;

	while ((w = first_window(m)) != NULL) {
		const bool waited = now_ns > w->seen_ns && now_ns - w->seen_ns > m->config.wait_ns;

		const bool there = is_there(m, w, least);

		if (!there && !waited)
			break;
		give(m, w, !there);
	}
}

bool pl_query_merge_oldest(const struct pl_query_merge *m, uint64_t *ret)
{
	const struct window *w;

	*ret = UINT64_MAX;
	for (w = LIST_FIRST(&m->windows); w != NULL; w = LIST_NEXT(w, link))
		*ret = w->offset < *ret ? w->offset : *ret;
	return !LIST_EMPTY(&m->windows);
}

int64_t pl_query_merge_given(const struct pl_query_merge *m)
{
	return m->given_ns;
}

const struct pl_query_merge_stats *pl_query_merge_stats(const struct pl_query_merge *m)
{
	return &m->stats;
}
