/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes over accounts, cells and counts of entries from the pipeline that a new one replaces. */
#include <stdlib.h>
#include <string.h>

#include "dataplane/pipeline_state.h"

/* ---- cells ---- */

/* Limits the buckets to their new sizes. */
static void fit_meter(struct pl_dp_meter *m, const struct pl_dp_meter_cfg *cfg)
{
	const uint64_t committed = cfg->burst * PL_DP_TOKENS_BYTE,
		       excess = cfg->peak_burst * PL_DP_TOKENS_BYTE;

	m->committed = m->committed < committed ? m->committed : committed;
	m->excess = m->excess < excess ? m->excess : excess;
}

/* Copies cells by name and index: actions hold pointers to their cells, so values are copied, not
 * memory. */
static void take_cells(struct pl_dp_pipeline *p, struct pl_dp_pipeline *old, enum pl_dp_cells kind)
{
	for (unsigned int i = 0; i < p->cells[kind].n; i++) {
		struct pl_dp_cells_state *to = p->cells[kind].items[i];
		const struct pl_dp_cells_state *from =
			pl_dp_cells_find(old, kind, to->name, strlen(to->name));
		size_t n;

		if (from == NULL)
			continue;
		n = from->size < to->size ? from->size : to->size;
		if (kind == PL_DP_COUNTERS)
			memcpy(to->counters, from->counters, n * sizeof(*to->counters));
		else if (kind == PL_DP_REGISTERS)
			memcpy(to->registers, from->registers, n * sizeof(*to->registers));
		for (size_t k = 0; kind == PL_DP_METERS && k < n; k++) {
			to->meters[k] = from->meters[k];
			fit_meter(&to->meters[k], &to->meter);
		}
	}
}

/* ---- entries ---- */

static int by_match(const void *x, const void *y)
{
	const struct pl_dp_match *a = &(*(struct pl_dp_entry *const *)x)->match,
				 *b = &(*(struct pl_dp_entry *const *)y)->match;
	int d = memcmp(a->value, b->value, sizeof(a->value));

	if (d == 0)
		d = memcmp(a->mask, b->mask, sizeof(a->mask));
	if (d == 0)
		d = (a->prefix > b->prefix) - (a->prefix < b->prefix);
	return d != 0 ? d : (a->priority > b->priority) - (a->priority < b->priority);
}

static bool same_key(const struct pl_dp_key *a, const struct pl_dp_key *b)
{
	return a->n == b->n && memcmp(a->fields, b->fields, a->n * sizeof(a->fields[0])) == 0;
}

/* Copies the counts of equal entries. The sorted old entries that differ only by bounds are
 * adjacent: a new one takes the counts of the first that is equal. */
static void take_counts(struct pl_dp_table *t, struct pl_dp_entry *const *olds, size_t n_olds)
{
	for (size_t i = 0; i < t->n; i++) {
		struct pl_dp_entry *e = t->entries[i];
		struct pl_dp_entry *const *at =
			n_olds > 0
				? bsearch(&e, olds, n_olds, sizeof(struct pl_dp_entry *), by_match)
				: NULL;

		if (at == NULL)
			continue;
		while (at > olds && by_match(at - 1, &e) == 0)
			at--;
		for (; at < olds + n_olds && by_match(at, &e) == 0; at++) {
			if (pl_dp_match_equal(&t->key, &(*at)->match, &e->match)) {
				e->packets = (*at)->packets;
				e->bytes = (*at)->bytes;
				break;
			}
		}
	}
}

static void take_tables(struct pl_dp_pipeline *p, struct pl_dp_pipeline *old)
{
	for (unsigned int i = 0; i < p->n_tables; i++) {
		struct pl_dp_table *t = p->tables[i], *from;
		const int at = pl_dp_table_index(old, t->name);

		if (at < 0)
			continue;
		from = old->tables[at];
		t->hits = from->hits;
		t->misses = from->misses;
		if (!same_key(&t->key, &from->key))
			continue;
		if (from->n > 0)
			qsort(from->entries, from->n, sizeof(struct pl_dp_entry *), by_match);
		take_counts(t, from->entries, from->n);
	}
}

void pl_dp_pipeline_inherit(struct pl_dp_pipeline *p, struct pl_dp_pipeline *old)
{
	memcpy(p->account, old->account, sizeof(p->account));
	for (unsigned int i = 0; i <= PL_DP_PORTS_MAX; i++)
		p->gates[i].up = p->gates[i].there && (!old->gates[i].there || old->gates[i].up);
	take_tables(p, old);
	take_cells(p, old, PL_DP_METERS);
	take_cells(p, old, PL_DP_REGISTERS);
	if (p->marking != NULL && old->marking != NULL)
		pl_dp_marking_inherit(p->marking, old->marking);
	/* Freeing the old actions adds what they still hold to their counters. */
	pl_dp_entries_free(old);
	take_cells(p, old, PL_DP_COUNTERS);
	pl_dp_pipeline_free(old);
}
