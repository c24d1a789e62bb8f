/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a history for keys, for "pathline lookup". */
#include "ask/lookup_history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "service/history_walk.h"
#include "show/record_out.h"
#include "show/row_out.h"

#define GROUP 64u /* keys looked up at once */

/* ---- keys ---- */

/* A group of keys with the texts they came from. A flow without protocol has one text for several
 * keys. */
struct group {
	const struct pl_history *h;
	struct pl_record_out out;
	unsigned int n, texts;
	struct pl_key keys[GROUP];
	unsigned int text_of[GROUP];
	char *text[GROUP];
	bool found[GROUP]; /* by text */
	bool all;          /* all keys so far were found */
	struct pl_key_write_result results[GROUP];
	struct pl_history_flow flows[GROUP];
	struct pl_hop hops[GROUP];
	struct pl_history_record record;
};

/* Returns true when a key has an answer; prints an error when its copies disagree. */
static bool answered(struct group *g, unsigned int i)
{
	if (g->results[i].answer == PL_AMBIGUOUS)
		pl_complain("%s: its copies disagree", g->text[g->text_of[i]]);
	if (g->results[i].answer != PL_FOUND)
		return false;
	g->found[g->text_of[i]] = true;
	return true;
}

static void ask_flows(struct group *g)
{
	pl_history_flows(g->h, g->keys, g->n, g->results, g->flows);
	for (unsigned int i = 0; i < g->n; i++) {
		if (!answered(g, i))
			continue;
		pl_history_flow_record(g->h, &g->flows[i], &g->record);
		if (g->record.n_hops < g->record.path.hop_count)
			pl_complain("%s: %u of its %u hops are present", g->text[g->text_of[i]],
				g->record.n_hops, g->record.path.hop_count);
		pl_record_out_path(&g->out, &g->record.path, g->record.hops, g->record.n_hops);
	}
}

static void ask_queues(struct group *g)
{
	pl_history_queues(g->h, g->keys, g->n, g->results, g->hops);
	for (unsigned int i = 0; i < g->n; i++) {
		if (answered(g, i))
			pl_record_out_hop(&g->out, &g->hops[i]);
	}
}

static void ask_group(struct group *g, bool flows)
{
	if (flows)
		ask_flows(g);
	else
		ask_queues(g);
	for (unsigned int t = 0; t < g->texts; t++) {
		if (!g->found[t])
			pl_complain("%s: not found", g->text[t]);
		g->all &= g->found[t];
		free(g->text[t]);
	}
	g->n = g->texts = 0;
	memset(g->found, 0, sizeof(g->found));
}

static const uint8_t usual_protocols[] = { 6, 17, 1, 58, 132 };

/* Adds the keys of a flow; returns false for a text that is no flow. */
static bool add_flow(struct group *g, const char *text)
{
	struct pl_path flow;
	bool given;

	if (pl_query_flow(text, &flow) < 0)
		return false;
	given = (flow.present & PL_PATH_HAS_proto) != 0;
	for (size_t i = 0; i < (given ? 1 : sizeof(usual_protocols)); i++) {
		if (!given)
			flow.proto = usual_protocols[i];
		g->text_of[g->n] = g->texts;
		g->keys[g->n++] = pl_history_flow_key(g->h, &flow);
	}
	return true;
}

static bool add_queue(struct group *g, const char *text)
{
	uint64_t n[3];

	if (pl_query_numbers(text, n, 3) < 0 || (n[2] != PL_HISTORY_ANY && n[2] >= UINT16_MAX))
		return false;
	g->text_of[g->n] = g->texts;
	g->keys[g->n++] = pl_history_queue_key(g->h, n[0], (uint32_t)n[1], (uint32_t)n[2]);
	return true;
}

/* An exit code, 0 while all is well. */
static int ask_all(struct group *g, struct pl_key_source *source, bool flows)
{
	const char *text;

	while ((text = pl_key_source_next(source)) != NULL && !pl_record_out_full(&g->out)) {
		if (!(flows ? add_flow(g, text) : add_queue(g, text)))
			return pl_fail(PL_EXIT_USAGE,
				flows ? "'%s' is no flow, such as 10.0.0.1:5000,10.0.0.2:80/tcp"
				      : "'%s' is no NODE, NODE/PORT or NODE/PORT/QUEUE",
				text);
		g->text[g->texts] = strdup(text);
		if (g->text[g->texts++] == NULL)
			return pl_fail(PL_EXIT_FAILED, "out of memory");
		if (g->n > GROUP - sizeof(usual_protocols))
			ask_group(g, flows);
	}
	return 0;
}

static int ask_last(const struct pl_history *h, const struct pl_lookup_history *args, bool flows)
{
	struct group *g = calloc(1, sizeof(*g));
	int code;

	if (g == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	g->h = h;
	g->all = true;
	code = pl_record_out_init_kinds(
		&g->out, args->form, flows ? PL_OUT_PATHS : PL_OUT_HOPS, args->where, 0);
	if (code == 0) {
		code = ask_all(g, args->source, flows);
		ask_group(g, flows);
		pl_record_out_end(&g->out);
		if (!pl_record_out_good(&g->out))
			code = PL_EXIT_FAILED;
		else if (code == 0 && !g->all)
			code = PL_EXIT_NOTHING;
	}
	pl_record_out_done(&g->out);
	free(g);
	return code;
}

/* ---- drops ---- */

static const struct pl_column drops_columns[] = {
	{ "node", 20, true, false },
	{ "reason", 6, true, false },
	{ "value", 20, true, false },
	{ "error", 12, true, false },
	{ "confidence", 10, true, false },
};

static void add_drops(struct pl_row_out *out, const uint64_t *key, const struct pl_estimate *e)
{
	char text[5][32];
	const char *values[] = { text[0], key[1] != PL_HISTORY_ANY ? text[1] : NULL, text[2],
		text[3], text[4] };

	snprintf(text[0], sizeof(text[0]), "%" PRIu64, key[0]);
	snprintf(text[1], sizeof(text[1]), "%" PRIu64, key[1]);
	snprintf(text[2], sizeof(text[2]), "%" PRIu64, e->value);
	snprintf(text[3], sizeof(text[3]), "%.1f", e->error);
	snprintf(text[4], sizeof(text[4]), "%.4f", e->confidence);
	pl_row_out_add(out, values);
}

static int ask_drops(const struct pl_history *h, const struct pl_lookup_history *args)
{
	double total = pl_history_drops_total(h);
	struct pl_row_out out;
	const char *text;
	bool any = false;
	int code = 0;

	pl_row_out_init(
		&out, args->form, drops_columns, sizeof(drops_columns) / sizeof(drops_columns[0]));
	while (code == 0 && (text = pl_key_source_next(args->source)) != NULL) {
		struct pl_estimate e;
		uint64_t n[2];

		if (pl_query_numbers(text, n, 2) < 0 ||
			(n[1] != PL_HISTORY_ANY && n[1] > UINT8_MAX)) {
			code = pl_fail(PL_EXIT_USAGE, "'%s' is no NODE or NODE/REASON", text);
			break;
		}
		e = pl_history_drops(h, pl_history_drops_key(h, n[0], (uint32_t)n[1]), total);
		any |= e.value > 0;
		add_drops(&out, n, &e);
	}
	if (!pl_row_out_end(&out))
		return PL_EXIT_FAILED;
	return code != 0 ? code : any ? PL_EXIT_OK : PL_EXIT_NOTHING;
}

/* ---- the history ---- */

int pl_lookup_history(const struct pl_lookup_history *args)
{
	const enum pl_history_store store = args->store;
	struct pl_diag diag = { .text = "" };
	struct pl_history *h;
	bool partial;
	int code;

	(void)pl_region_guard();
	code = pl_history_open(&h, args->from, &diag);
	if (code < 0) {
		pl_complain("%s", diag.text[0] != '\0' ? diag.text : strerror(-code));
		return code == -ENOENT ? PL_EXIT_UNAVAILABLE : PL_EXIT_FAILED;
	}
	/* The last hops of a long path are in the store of hops. */
	partial = pl_history_tell_troubles(
		h, 1u << store | (store == PL_HISTORY_FLOWS ? 1u << PL_HISTORY_HOPS : 0));
	if (pl_history_region(h, store) == NULL) {
		if (pl_history_trouble(h, store) == NULL)
			pl_complain("%s: this history does not keep %s", args->from,
				pl_history_store_name(store));
		code = PL_EXIT_NOTHING;
	} else if (store == PL_HISTORY_DROPS) {
		code = ask_drops(h, args);
	} else {
		code = ask_last(h, args, store == PL_HISTORY_FLOWS);
	}
	(void)pl_history_close(h);
	return partial && (code == PL_EXIT_OK || code == PL_EXIT_NOTHING) ? PL_EXIT_FAILED : code;
}
