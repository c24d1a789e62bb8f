/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates and frees a pipeline, its actions outside of entries, and reads it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "dataplane/pipeline_state.h"

int pl_dp_pipeline_new(struct pl_dp_pipeline **ret, const struct pl_dp_pipeline_options *options)
{
	struct pl_dp_pipeline *p;

	if (options->pool == NULL || options->ops.out == NULL ||
		strlen(options->name) > PL_DP_NAME_MAX)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	snprintf(p->name, sizeof(p->name), "%s", options->name);
	p->node_id = options->node_id;
	p->node_key = pl_hash_mix(options->node_id, 0);
	p->seed = options->seed != 0 ? options->seed : pl_hash_seed();
	p->first_number = (uint32_t)pl_hash_mix(
		p->seed, options->seed != 0 ? options->node_id : (uintptr_t)p);
	p->pool = options->pool;
	p->ops = options->ops;
	p->externs = options->externs;
	*ret = p;
	return 0;
}

static void free_entries(struct pl_dp_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		pl_dp_entry_free(t->entries[i]);
	t->n = 0;
	pl_dp_actions_free(t->miss);
	t->miss = NULL;
}

static void free_table(struct pl_dp_table *t)
{
	free_entries(t);
	free(t->entries);
	pl_dp_lookup_free(t->lookup);
	free(t);
}

void pl_dp_entries_free(struct pl_dp_pipeline *p)
{
	for (unsigned int i = 0; i < p->n_tables; i++)
		free_entries(p->tables[i]);
	for (unsigned int i = 0; i < p->n_groups; i++) {
		while (p->groups[i]->n > 0)
			pl_dp_actions_free(p->groups[i]->members[--p->groups[i]->n]);
	}
}

void pl_dp_pipeline_free(struct pl_dp_pipeline *p)
{
	if (p == NULL)
		return;
	pl_dp_entries_free(p);
	for (unsigned int i = 0; i < p->n_tables; i++)
		free_table(p->tables[i]);
	for (unsigned int i = 0; i < p->n_groups; i++)
		free(p->groups[i]);
	for (unsigned int kind = 0; kind < 3; kind++) {
		for (unsigned int i = 0; i < p->cells[kind].n; i++)
			pl_dp_cells_free(p->cells[kind].items[i]);
	}
	pl_dp_own_free(p->own);
	pl_dp_marking_free(p->marking);
	free(p->watchers);
	free(p);
}

/* ---- ports ---- */

int pl_dp_pipeline_address(
	struct pl_dp_pipeline *p, unsigned int port, const char *address, struct pl_diag *diag)
{
	int r = 0;

	if (port > PL_DP_PORTS_MAX || !p->gates[port].there) {
		pl_diag_set(diag, "there is no port %u", port);
		return -EINVAL;
	}
	if (p->own == NULL)
		r = pl_dp_own_new(&p->own, p, diag);
	return r == 0 ? pl_dp_own_add(p->own, port, address, diag) : r;
}

void pl_dp_pipeline_icmp(struct pl_dp_pipeline *p, unsigned int port, uint32_t per_second)
{
	if (p->own != NULL && port <= PL_DP_PORTS_MAX)
		pl_dp_own_rate(p->own, port, per_second);
}

/* ---- alternate marking ---- */

int pl_dp_pipeline_marking(
	struct pl_dp_pipeline *p, const struct pl_dp_marking_cfg *cfg, struct pl_diag *diag)
{
	if (p->marking == NULL)
		return pl_dp_marking_new(&p->marking, p, cfg, diag);
	pl_diag_set(diag, "the switch has settings of alternate marking already");
	return -EINVAL;
}

struct pl_dp_marking *pl_dp_pipeline_points(const struct pl_dp_pipeline *p)
{
	return p->marking;
}

uint64_t pl_dp_pipeline_due(const struct pl_dp_pipeline *p)
{
	return p->marking != NULL ? pl_dp_marking_due(p->marking) : UINT64_MAX;
}

void pl_dp_pipeline_turn(struct pl_dp_pipeline *p, uint64_t now_ns)
{
	const struct pl_dp_call call = { .pipeline = p, .stage = PL_DP_INGRESS, .now_ns = now_ns };

	if (p->marking != NULL)
		pl_dp_marking_turn(p->marking, &call);
}

/* ---- actions of groups and misses ---- */

int pl_dp_pipeline_member(
	struct pl_dp_pipeline *p, const char *group, const char *actions, struct pl_diag *diag)
{
	struct pl_dp_group *g = pl_dp_group_find(p, group);
	int r;

	if (g == NULL || g->n == PL_DP_MEMBERS_MAX) {
		pl_diag_set(
			diag, "no group \"%s\", or it has %d members", group, PL_DP_MEMBERS_MAX);
		return -EINVAL;
	}
	r = pl_dp_actions_parse(p, -1, actions, &g->members[g->n], diag);
	if (r == 0)
		g->n++;
	return r;
}

int pl_dp_pipeline_miss(
	struct pl_dp_pipeline *p, const char *table, const char *actions, struct pl_diag *diag)
{
	const int i = pl_dp_table_index(p, table);
	struct pl_dp_actions *miss, *before;
	int r;

	if (i < 0) {
		pl_diag_set(diag, "there is no table \"%s\"", table);
		return -ENOENT;
	}
	r = pl_dp_actions_parse(p, i, actions, &miss, diag);
	if (r < 0)
		return r;
	before = p->tables[i]->miss;
	p->tables[i]->miss = miss;
	r = pl_dp_watchers_make(p);
	/* On failure the watchers of the former actions stay. */
	if (r < 0)
		p->tables[i]->miss = before;
	pl_dp_actions_free(r < 0 ? miss : before);
	return r;
}

/* ---- reading ---- */

const struct pl_dp_account *pl_dp_pipeline_account(
	const struct pl_dp_pipeline *p, enum pl_dp_stage stage)
{
	return &p->account[stage];
}

static int by_serial(const void *x, const void *y)
{
	const struct pl_dp_entry *const *a = x, *const *b = y;

	return (*a)->serial < (*b)->serial ? -1 : (*a)->serial > (*b)->serial;
}

int pl_dp_pipeline_dump(const struct pl_dp_pipeline *p, const char *table,
	void (*each)(void *arg, const char *entry, uint64_t packets, uint64_t bytes), void *arg,
	struct pl_diag *diag)
{
	const int i = pl_dp_table_index(p, table);
	const struct pl_dp_table *t;
	struct pl_dp_entry **sorted;
	struct pl_buf text;

	if (i < 0) {
		pl_diag_set(diag, "there is no table \"%s\"", table);
		return -ENOENT;
	}
	t = p->tables[i];
	sorted = malloc((t->n + 1) * sizeof(struct pl_dp_entry *));
	if (sorted == NULL)
		return -ENOMEM;
	if (t->n > 0)
		memcpy(sorted, t->entries, t->n * sizeof(struct pl_dp_entry *));
	qsort(sorted, t->n, sizeof(struct pl_dp_entry *), by_serial);
	pl_buf_init(&text);
	for (size_t k = 0; k < t->n; k++) {
		const struct pl_dp_entry *e = sorted[k];

		pl_buf_reset(&text);
		pl_dp_match_put(&t->key, &e->match, &text);
		pl_buf_printf(&text, "%s-> %s", text.len > 0 ? " " : "",
			((const struct pl_dp_actions *)e->actions)->text);
		if (!text.failed)
			each(arg, text.data, e->packets, e->bytes);
	}
	pl_buf_done(&text);
	free(sorted);
	return 0;
}
