/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a run, with the memory that its limits need, and frees it. */
#include <stdlib.h>

#include "base/hash.h"
#include "query/origin.h"
#include "query/texts.h"

/* A flow cache gives the record of a flow at most one and a half idle timeouts after its last packet
 * (flow/cache.h); its idle timeout is 15 s by default. */
#define FLOWS_LATENESS_NS UINT64_C(25000000000)

/* Number of panes open at a time when records come in order: those behind the watermark, those of a
 * window, and one for each record of a batch. */
static uint32_t enough_windows(const struct pl_query_config *config, const struct pl_query *query)
{
	const struct ast_window *spec = &query->window;
	const uint64_t least = 256, most = 65536;
	uint64_t pane, n;

	if (spec->kind == W_NONE || spec->kind == W_SESSION)
		return 1;
	pane = pl_query_windows_pane(spec);
	n = config->lateness_ns / pane + spec->size_ns / pane + query->within_ns / pane;
	n = n < most ? n + PL_QUERY_BATCH + 2 : most;
	return (uint32_t)(n < least ? least : n < most ? n : most);
}

static bool reads_flows(const struct pl_query *query)
{
	return pl_query_reads(query, PL_FLAT_FLOW128) || pl_query_reads(query, PL_FLAT_FLOW288);
}

static int fill_in(struct pl_query_config *to, const struct pl_query *query,
	const struct pl_query_config *from, struct pl_diag *diag)
{
	const uint64_t ms = 1000000;

	if (from != NULL)
		*to = *from;
	to->max_groups = to->max_groups == 0 ? 1 << 18 : to->max_groups;
	if (to->max_groups > 1 << 28 || to->max_distinct > 1 << 30 || to->partitions > 65536 ||
		to->max_windows > 1 << 20) {
		pl_diag_set(diag, "a query has room for up to 2^28 groups, 2^30 distinct values, "
				  "2^20 windows and 65536 partitions");
		return -EINVAL;
	}
	if (to->max_distinct == 0)
		to->max_distinct = 4 * to->max_groups;
	to->partitions = to->partitions == 0 ? 1 : to->partitions;
	if (to->lateness_ns == PL_QUERY_NO_LATENESS)
		to->lateness_ns = 0;
	else if (to->lateness_ns == 0)
		to->lateness_ns = reads_flows(query) ? FLOWS_LATENESS_NS : 200 * ms;
	if (to->max_windows == 0)
		to->max_windows = enough_windows(to, query);
	to->seed = to->seed == 0 ? pl_hash_seed() : to->seed;
	to->idle_ns = to->idle_ns == 0 ? 5000 * ms : to->idle_ns;
	to->ahead_ns = to->ahead_ns == 0 ? PL_QUERY_AHEAD_NS : to->ahead_ns;
	return 0;
}

static void widen(uint32_t *most, uint32_t n)
{
	*most = n > *most ? n : *most;
}

static uint32_t distinct_key_bytes(const struct stage *stage)
{
	uint32_t n = 8;

	for (uint32_t i = 0; i < stage->n_aggs; i++)
		widen(&n, 8 + stage->aggs[i].n_args * CELL_BYTES);
	return n;
}

/* Allocates memory for a batch of the widest stage. */
static int make_room(struct pl_query_run *run)
{
	uint32_t key = 8, cells = 8, out = 8, folds = 0, inputs = 0, acc = 8;
	uint64_t items;

	for (uint32_t i = 0; i < run->query->n_stages; i++) {
		const struct stage *stage = run->query->stages[i];
		uint32_t lists = 0;

		widen(&key, stage->key_bytes);
		widen(&key, distinct_key_bytes(stage));
		for (uint32_t j = 1; j < stage->n_sources; j++)
			widen(&key, 8 + stage->sources[j].n_keys * CELL_BYTES);
		if (stage->pairs != NULL)
			widen(&key, stage->pairs->key_bytes);
		widen(&cells, stage->groups.size);
		widen(&acc, stage->acc_bytes);
		widen(&out, stage->out.size);
		for (uint32_t a = 0; a < stage->n_aggs; a++)
			lists += stage->aggs[a].type == PL_QUERY_LIST;
		for (uint32_t f = 0; f < stage->n_folds; f++)
			widen(&inputs, stage->folds[f]->n_inputs);
		folds += stage->n_folds;
		widen(&run->lists, lists);
	}
	if (folds > 0 && pl_query_folds_init(run, inputs, out) < 0)
		return -ENOMEM;
	if (run->query->texts && pl_query_texts_new(&run->eval.texts, run->config.seed) < 0)
		return -ENOMEM;
	run->bytes += run->query->texts ? pl_query_texts_bytes() : 0;
	items = (uint64_t)PL_QUERY_BATCH * LIST_MAX * run->lists;
	run->keys = calloc(PL_QUERY_BATCH, key);
	run->acc = calloc(1, acc);
	run->cells = calloc(PL_QUERY_BATCH, cells);
	run->out_cells = calloc(PL_QUERY_BATCH, out);
	run->items = calloc(items > 0 ? items : 1, sizeof(*run->items));
	run->eval.vectors = calloc(VECTORS_MAX + 1, sizeof(*run->eval.vectors));
	run->bytes += PL_QUERY_BATCH * ((uint64_t)key + cells + out) + items * sizeof(*run->items) +
		      (VECTORS_MAX + 1) * sizeof(*run->eval.vectors);
	return run->keys != NULL && run->acc != NULL && run->cells != NULL &&
			       run->out_cells != NULL && run->items != NULL &&
			       run->eval.vectors != NULL
		       ? 0
		       : -ENOMEM;
}

static int make_stage(struct pl_query_run *run, struct stage_run *s)
{
	int r = 0;

	s->limit_left = s->stage->has_limit ? s->stage->limit : UINT64_MAX;
	s->out = (struct row_list){ .max = run->config.max_groups, .size = s->stage->out.size };
	s->emitted = s->out;
	s->emitted.size += sizeof(uint64_t);
	if (s->stage->grouped)
		r = pl_query_groups_init(run, s);
	if (r == 0 && run->windows.spec.kind == W_SESSION)
		r = pl_query_sessions_init(run, s);
	if (r == 0 && s->stage->pairs != NULL)
		r = pl_query_pairs_init(run, s);
	if (s->stage->zip != NULL)
		pl_query_zip_init(run, s);
	return r == 0 ? pl_query_join_init(run, s) : r;
}

/* Returns the least length of time that window_lacks is asked about. */
static int64_t least_asked(const struct pl_query *query)
{
	const uint64_t least = query->window.size_ns + 2 * query->within_ns;

	return least > 0 && least < INT64_MAX ? (int64_t)least : INT64_MAX;
}

int pl_query_run_new(struct pl_query_run **ret, const struct pl_query *query,
	const struct pl_query_config *config, pl_query_sink *sink, void *arg, struct pl_diag *diag)
{
	struct pl_query_run *run = calloc(1, sizeof(*run));
	int r = run == NULL ? -ENOMEM : 0;

	if (run == NULL)
		goto failed;
	run->query = query;
	run->sink = sink;
	run->arg = arg;
	run->eval.losses.near = least_asked(query);
	r = fill_in(&run->config, query, config, diag);
	if (r == 0)
		r = pl_query_windows_init(&run->windows, query, &run->config);
	if (r == 0)
		r = make_room(run);
	for (uint32_t i = 0; i < query->n_stages && r == 0; i++) {
		run->stages[i].stage = query->stages[i];
		pl_query_origins_init(&run->stages[i]);
		r = make_stage(run, &run->stages[i]);
	}
	if (r == 0) {
		*ret = run;
		return 0;
	}
failed:
	if (r == -ENOMEM)
		pl_diag_set(diag,
			"not enough memory for the groups of the query: lower --groups (the key groups)");
	pl_query_run_free(run);
	return r;
}

/* Lists double their length (rows.c). */
static uint64_t list_bytes(const struct row_list *list)
{
	uint64_t cap = list->max > 0 ? 1024 : 0;

	while (cap < list->max)
		cap *= 2;
	return cap * list->size;
}

uint64_t pl_query_run_bytes(const struct pl_query_run *run)
{
	const struct windows *w = &run->windows;
	uint64_t bytes =
		sizeof(*run) + run->bytes + w->max * (uint64_t)sizeof(*w->panes) +
		(uint64_t)PL_QUERY_STREAMS * w->partitions * (sizeof(*w->feeds) + sizeof(*w->seen));

	for (uint32_t i = 0; i < run->query->n_stages; i++) {
		const struct stage_run *s = &run->stages[i];
		const bool kept = pl_query_rows_kept(run, s);

		bytes += list_bytes(&s->zipped);
		if (kept)
			bytes += list_bytes(&s->out);
		if (s->stage->emits && (kept || s->stage->has_limit))
			bytes += list_bytes(&s->emitted);
		for (uint32_t k = 1; k < s->stage->n_sources; k++)
			bytes += list_bytes(&s->joined[k]);
	}
	return bytes;
}

void pl_query_run_free(struct pl_query_run *run)
{
	if (run == NULL)
		return;
	for (uint32_t i = 0; i < run->query->n_stages; i++) {
		struct stage_run *s = &run->stages[i];

		if (s->stage == NULL)
			continue;
		if (s->stage->grouped)
			pl_query_groups_done(s);
		pl_query_join_done(s);
		pl_query_pairs_done(s);
		free(s->out.data);
		free(s->emitted.data);
		free(s->zipped.data);
	}
	pl_query_folds_done(run);
	pl_query_windows_done(&run->windows);
	free(run->keys);
	free(run->acc);
	free(run->cells);
	free(run->out_cells);
	free(run->items);
	free(run->eval.vectors);
	pl_query_texts_free(run->eval.texts);
	free(run);
}
