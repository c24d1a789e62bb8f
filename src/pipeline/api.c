/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers requests of the API with tables and documents. */
#include "pipeline/api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "pipeline/api_tables.h"
#include "record/where.h"

#define FLOW_TRIES 3

/* ---- the tables as data ---- */

const struct pl_api_table *pl_api_table_at(unsigned int i)
{
	return i < pl_api_n_tables ? pl_api_tables[i] : NULL;
}

const struct pl_api_table *pl_api_table_find(const char *name)
{
	for (unsigned int i = 0; i < pl_api_n_tables; i++) {
		if (strcmp(pl_api_tables[i]->name, name) == 0)
			return pl_api_tables[i];
	}
	return NULL;
}

const char *pl_api_table_name(const struct pl_api_table *table)
{
	return table->name;
}

const char *pl_api_table_help(const struct pl_api_table *table)
{
	return table->help;
}

const struct pl_field *pl_api_table_fields(const struct pl_api_table *table, size_t *ret_n)
{
	*ret_n = table->n_fields;
	return table->fields;
}

/* ---- queries ---- */

struct plan {
	const struct pl_api_table *table;
	struct pl_where *where;
	const struct pl_field *sort;
	bool descending;
	uint32_t limit;
};

static int refuse(struct pl_api_problem *problem, const char *code)
{
	problem->status = 400;
	problem->code = code;
	return -EINVAL;
}

int pl_api_no_memory(struct pl_api_problem *problem)
{
	problem->status = 503;
	problem->code = "no_memory";
	return pl_diag_fail(&problem->diag, -ENOMEM, "there is no memory for the answer");
}

static int unknown_column(
	const struct pl_api_table *t, const char *name, struct pl_api_problem *problem)
{
	const char *names[64];
	size_t n = 0;

	for (size_t i = 0; i < t->n_fields && n < 64; i++) {
		if (t->fields[i].name[0] != '\0')
			names[n++] = t->fields[i].name;
	}
	pl_diag_set(&problem->diag, "%s have no column \"%s\"", t->name, name);
	pl_diag_nearest(&problem->diag, '"', name, names, n);
	return refuse(problem, "bad_sort");
}

static int prepare(struct plan *ret, const struct pl_api_table *t, const struct pl_api_query *q,
	struct pl_api_problem *problem)
{
	const char *sort = q->sort != NULL ? q->sort : t->sort;
	int r;

	*ret = (struct plan){ .table = t, .limit = PL_API_LIMIT_DEFAULT };
	if (q->limit > PL_API_LIMIT_MAX) {
		pl_diag_set(&problem->diag, "limit is at most %d", PL_API_LIMIT_MAX);
		return refuse(problem, "bad_limit");
	}
	if (q->limit > 0)
		ret->limit = (uint32_t)q->limit;
	ret->descending = sort[0] == '-';
	ret->sort = pl_row_field(t->fields, t->n_fields, sort + ret->descending);
	if (ret->sort == NULL)
		return unknown_column(t, sort + ret->descending, problem);
	if (q->where == NULL)
		return 0;
	r = pl_where_new_over(&ret->where, t->fields, t->n_fields, q->where, &problem->diag);
	if (r == -ENOMEM)
		return pl_api_no_memory(problem);
	return r < 0 ? refuse(problem, "bad_where") : 0;
}

int pl_api_check(const struct pl_api_table *table, const struct pl_api_query *query,
	struct pl_api_problem *problem)
{
	struct plan plan;
	int r = prepare(&plan, table, query, problem);

	if (r == 0)
		pl_where_free(plan.where);
	return r;
}

/* ---- the best rows ---- */

/* A heap of the `limit` best rows, with the worst of them on top. */
struct best {
	const struct plan *plan;
	char *rows;
	uint32_t n;
	uint64_t *order; /* order of arrival, which decides ties */
	uint32_t *heap;  /* indexes into rows */
};

static uint32_t present_of(const void *row)
{
	return ((const struct pl_api_row *)row)->present;
}

static const void *row_at(const struct best *b, uint32_t i)
{
	return b->rows + (size_t)i * b->plan->table->row_size;
}

/* Returns whether row x comes before row y. A row without a value comes after all others, in either
 * order. */
static bool before(const struct best *b, uint32_t x, uint32_t y)
{
	const struct pl_field *f = b->plan->sort;
	const void *rx = row_at(b, x), *ry = row_at(b, y);
	bool has_x = f->present == 0 || (present_of(rx) & f->present) != 0;
	bool has_y = f->present == 0 || (present_of(ry) & f->present) != 0;
	int c = pl_row_compare(f, rx, present_of(rx), ry, present_of(ry));

	if (has_x != has_y)
		return has_x;
	if (c == 0)
		return b->order[x] < b->order[y];
	return b->plan->descending ? c > 0 : c < 0;
}

static void sink(struct best *b, uint32_t at)
{
	for (;;) {
		uint32_t left = 2 * at + 1, right = left + 1, worst = at, tmp;

		if (left < b->n && before(b, b->heap[worst], b->heap[left]))
			worst = left;
		if (right < b->n && before(b, b->heap[worst], b->heap[right]))
			worst = right;
		if (worst == at)
			return;
		tmp = b->heap[at];
		b->heap[at] = b->heap[worst];
		b->heap[worst] = tmp;
		at = worst;
	}
}

static void rise(struct best *b, uint32_t at)
{
	while (at > 0 && before(b, b->heap[(at - 1) / 2], b->heap[at])) {
		uint32_t up = (at - 1) / 2, tmp = b->heap[at];

		b->heap[at] = b->heap[up];
		b->heap[up] = tmp;
		at = up;
	}
}

/* Keeps the row at *spare if it is among the best; *spare is a free row afterwards. */
static void consider(struct best *b, uint64_t order, uint32_t *spare)
{
	b->order[*spare] = order;
	if (b->n < b->plan->limit) {
		b->heap[b->n] = *spare;
		rise(b, b->n++);
		*spare = b->n;
	} else if (before(b, *spare, b->heap[0])) {
		uint32_t out = b->heap[0];

		b->heap[0] = *spare;
		*spare = out;
		sink(b, 0);
	}
}

/* Sorts the heap, best first. */
static void order_best(struct best *b)
{
	uint32_t n = b->n;

	while (b->n > 1) {
		uint32_t worst = b->heap[0];

		b->heap[0] = b->heap[--b->n];
		b->heap[b->n] = worst;
		sink(b, 0);
	}
	b->n = n;
}

struct counts {
	uint64_t total, matched, overflow;
	uint64_t age_ns; /* age of the workers' state; 0: they were not asked */
};

static int collect(struct best *b, struct pl_api_walk *walk, struct counts *ret)
{
	const struct plan *plan = b->plan;
	const struct pl_api_table *t = plan->table;
	uint32_t spare = 0;
	int r;

	walk->table = t;
	r = t->begin != NULL ? t->begin(walk) : 0;
	if (r < 0)
		return r;
	for (;;) {
		void *row = b->rows + (size_t)spare * t->row_size;

		memset(row, 0, t->row_size);
		if (!t->next(walk, row))
			break;
		ret->total++;
		if (plan->where != NULL && !pl_where_match_row(plan->where, row, present_of(row)))
			continue;
		consider(b, ret->matched++, &spare);
	}
	ret->overflow = walk->overflow;
	order_best(b);
	return 0;
}

static void write_rows(
	const struct best *b, const struct counts *c, uint64_t now_ns, struct pl_buf *out)
{
	const struct pl_api_table *t = b->plan->table;
	struct pl_json json;

	pl_json_init(&json, out);
	pl_json_object(&json);
	pl_json_time(&json, now_ns);
	pl_json_text(&json, "table", t->name);
	pl_json_number(&json, "total", c->total);
	pl_json_number(&json, "matched", c->matched);
	pl_json_number(&json, "overflow", c->overflow);
	if (c->age_ns != 0)
		pl_json_number(&json, "age_ns", c->age_ns);
	pl_json_key(&json, "rows");
	pl_json_array(&json);
	for (uint32_t i = 0; i < b->n; i++) {
		const void *row = row_at(b, b->heap[i]);

		pl_json_object(&json);
		pl_row_json(&json, t->fields, t->n_fields, row, present_of(row));
		pl_json_object_end(&json);
	}
	pl_json_array_end(&json);
	pl_json_object_end(&json);
	pl_buf_chr(out, '\n');
}

int pl_api_no_snapshot(int r, struct pl_api_problem *problem)
{
	problem->status = 503;
	problem->code = "not_running";
	return pl_diag_fail(&problem->diag, r, "the collector does not run");
}

static bool have_flows(const struct pl_pipeline *p)
{
	for (unsigned int i = 0; i < p->n_workers; i++) {
		if (!p->workers[i]->snap.has_top)
			return false;
	}
	return true;
}

/* Takes a snapshot with flows. Several tries, as workers may be answering a request without. */
static int snapshot_with_flows(struct pl_pipeline *p)
{
	int r = 0;

	for (unsigned int tries = 0; r == 0 && tries < FLOW_TRIES; tries++) {
		for (unsigned int i = 0; i < p->n_workers; i++)
			atomic_store_explicit(
				&p->workers[i]->top_wanted, true, memory_order_relaxed);
		p->snapshot_ns = 0;
		r = pl_pipeline_snapshot(p);
		if (p->behind || have_flows(p))
			break;
	}
	return r;
}

/* Collects the rows of a running pipeline, whose lock is held meanwhile. */
static int collect_live(struct pl_pipeline *p, const struct pl_api_table *table, struct best *best,
	struct pl_api_walk *walk, struct counts *counts, struct pl_api_problem *problem)
{
	int r;

	pthread_mutex_lock(&p->lock);
	r = table->flows ? snapshot_with_flows(p) : pl_pipeline_snapshot(p);
	counts->age_ns = pl_pipeline_age_ns(p);
	if (r == 0) {
		walk->aggregate = p->merged;
		r = collect(best, walk, counts);
		pthread_mutex_unlock(&p->lock);
		if (r < 0)
			pl_api_no_memory(problem);
	} else {
		pthread_mutex_unlock(&p->lock);
		pl_api_no_snapshot(r, problem);
	}
	return r;
}

/* Writes the table that `walk` names. */
static int write_table(struct pl_api_walk *walk, const struct pl_api_table *table,
	const struct pl_api_query *query, struct pl_buf *out, struct pl_api_problem *problem)
{
	struct counts counts = { 0 };
	struct plan plan;
	struct best best = { .plan = &plan };
	int r = prepare(&plan, table, query, problem);

	if (r < 0)
		return r;
	/* Room for one row more than the limit, in which the next row is made. */
	best.rows = calloc(plan.limit + 1, table->row_size);
	best.order = calloc(plan.limit + 1, sizeof(*best.order));
	best.heap = calloc(plan.limit + 1, sizeof(*best.heap));
	if (best.rows == NULL || best.order == NULL || best.heap == NULL)
		r = pl_api_no_memory(problem);
	else if (walk->pipeline != NULL)
		r = collect_live(walk->pipeline, table, &best, walk, &counts, problem);
	else if (collect(&best, walk, &counts) < 0)
		r = pl_api_no_memory(problem);
	free(walk->rows);
	if (r == 0)
		write_rows(&best, &counts,
			walk->records != NULL ? walk->records->now_ns : pl_clock_real_ns(), out);
	free(best.rows);
	free(best.order);
	free(best.heap);
	pl_where_free(plan.where);
	return r;
}

int pl_api_table_write(struct pl_pipeline *p, struct pl_watch *live,
	const struct pl_api_table *table, const struct pl_api_query *query, struct pl_buf *out,
	struct pl_api_problem *problem)
{
	struct pl_api_walk walk = { .pipeline = p, .live = live };

	return write_table(&walk, table, query, out, problem);
}

int pl_api_records_write(const struct pl_api_records *records, const struct pl_api_table *table,
	const struct pl_api_query *query, struct pl_buf *out, struct pl_api_problem *problem)
{
	struct pl_api_walk walk = { .records = records, .aggregate = records->aggregate };

	if (table->recorded)
		return write_table(&walk, table, query, out, problem);
	pl_diag_set(&problem->diag,
		"%s are known while the daemon runs: a history has queues, links, ports, paths and "
		"events",
		table->name);
	return refuse(problem, "not_recorded");
}

void pl_pipeline_add_families(
	struct pl_pipeline *p, void (*write)(void *pipeline, struct pl_exposition *page))
{
	p->families = write;
}

struct pl_output *pl_pipeline_find_output(struct pl_pipeline *p, const char *name)
{
	struct pl_output *found = NULL;

	pthread_mutex_lock(&p->lock);
	for (unsigned int i = 0; i < p->n_outputs && found == NULL; i++) {
		if (strcmp(pl_output_name(p->outputs[i]), name) == 0)
			found = p->outputs[i];
	}
	pthread_mutex_unlock(&p->lock);
	return found;
}
