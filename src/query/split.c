/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides how the members of a group share a query: by partitions, in two stages, or not at all. */
#include <string.h>

#include "lang/plan.h"
#include "query/partial.h"
#include "query/serial.h"

/* Returns the name of a key's column when that is one of these n columns, else NULL. */
static const char *name_of(const struct key *key, const struct column *columns, uint32_t n)
{
	const struct node *node = key->node;

	if (node->op != N_COLUMN || node->column < columns || node->column >= columns + n)
		return NULL;
	return node->column->name;
}

static bool has_key(
	const struct stage *stage, const char *name, const struct column *columns, uint32_t n)
{
	for (uint32_t i = 0; i < stage->n_keys; i++) {
		const char *key = name_of(&stage->keys[i], columns, n);

		if (key != NULL && strcmp(key, name) == 0)
			return true;
	}
	return false;
}

/* Columns that the flow hash is made of. */
static const char *const of_packets[] = { "src", "dst", "sport", "dport", "proto" };
static const char *const of_dns[] = { "client", "server" };

/* Returns true when the keys have all columns of the flow hash: records of a group are then in one
 * partition. */
static bool keys_name_flow(
	const struct stage *stage, unsigned int kind, const struct column *columns, uint32_t n)
{
	const char *const *names = kind == PL_FLAT_DNS64 ? of_dns : of_packets;
	unsigned int i = kind == PL_FLAT_DNS64 ? 2 : 5;

	if (kind != PL_FLAT_DNS64 && has_key(stage, "flow_hash", columns, n))
		return true;
	while (i > 0 && has_key(stage, names[i - 1], columns, n))
		i--;
	return i == 0;
}

/* Returns true when the group keys have all columns of the flow hash, of either record of a
 * pair. */
static bool groups_name_flow(const struct stage *stage)
{
	const struct pairs *pairs = stage->pairs;
	const struct column *columns = stage->input.columns;
	uint32_t left;

	if (pairs == NULL)
		return keys_name_flow(stage, stage->kind, columns, stage->input.n);
	left = pairs->sides[0]->input.n;
	return keys_name_flow(stage, pairs->sides[0]->kind, columns, left) ||
	       (stage->input.n > left && pairs->kind == J_INNER &&
		       keys_name_flow(stage, pairs->sides[1]->kind, columns + left,
			       stage->input.n - left));
}

/* Returns true when both records of a pair have the same value in these columns. */
static bool equates(const struct pairs *pairs, const char *left, const char *right)
{
	const struct schema *a = &pairs->sides[0]->input, *b = &pairs->sides[1]->input;

	for (uint32_t i = 0; i < pairs->n_keys; i++) {
		const char *x = name_of(&pairs->keys[0][i], a->columns, a->n);
		const char *y = name_of(&pairs->keys[1][i], b->columns, b->n);

		if (x != NULL && y != NULL && strcmp(x, left) == 0 && strcmp(y, right) == 0)
			return true;
	}
	return false;
}

/* Returns true when both records of a pair are of one flow, in the same direction or not, and so in
 * one partition. */
static bool pairs_name_flow(const struct pairs *pairs)
{
	if (pairs->sides[0]->kind != pairs->sides[1]->kind)
		return false;
	if (pairs->sides[0]->kind == PL_FLAT_DNS64)
		return equates(pairs, "client", "client") && equates(pairs, "server", "server");
	if (equates(pairs, "flow_hash", "flow_hash"))
		return true;
	if (!equates(pairs, "proto", "proto"))
		return false;
	return (equates(pairs, "src", "src") && equates(pairs, "dst", "dst") &&
		       equates(pairs, "sport", "sport") && equates(pairs, "dport", "dport")) ||
	       (equates(pairs, "src", "dst") && equates(pairs, "dst", "src") &&
		       equates(pairs, "sport", "dport") && equates(pairs, "dport", "sport"));
}

/* Returns true when groups have texts: each process has them at other addresses. */
static bool has_texts(const struct stage *stage)
{
	bool some = false;

	for (uint32_t i = 0; i < stage->n_keys; i++)
		some = some || stage->keys[i].node->type == PL_QUERY_TEXT;
	for (uint32_t a = 0; a < stage->n_aggs; a++) {
		for (uint32_t i = 0; i < stage->aggs[a].n_args; i++)
			some = some || stage->aggs[a].args[i]->type == PL_QUERY_TEXT;
	}
	return some;
}

/* Returns the reason why records of different partitions have to meet one by one; NULL: they need
 * not. */
static const char *why_together(const struct pl_query *query, uint32_t topics)
{
	for (uint32_t i = 0; i < query->n_stages; i++) {
		const struct stage *stage = query->stages[i];

		for (unsigned int k = 0; stage->zip != NULL && k < 2; k++) {
			const struct stage *side = stage->zip->sides[k];

			if (side->grouped && (topics > 1 || !groups_name_flow(side) ||
						     query->window.kind == W_NONE))
				return "a fold in a zip needs the records of a key in their order: "
				       "group both sides by src, dst, sport, dport and proto, with "
				       "TUMBLE(ts, 1s), and read one topic";
		}
		if (stage->pairs == NULL)
			continue;
		if (topics > 1)
			return "the two records of a pair may be in different topics: write both "
			       "to one topic";
		if (!pairs_name_flow(stage->pairs))
			return "the two records of a pair may be in different partitions: join ON "
			       "src, dst, sport, dport, proto (or a.src = b.dst and so on; packets96: "
			       "flow_hash; dns: client, server), or leave --group out";
	}
	return NULL;
}

/* Returns true when only the last stage makes groups, of records or of pairs of records. */
static bool is_single(const struct pl_query *query)
{
	const struct stage *last = query->stages[query->n_stages - 1];

	return last->n_sources == 0 &&
	       query->n_stages == (last->pairs != NULL || last->zip != NULL ? 3 : 1);
}

/* Returns true when a side of a zip makes groups. Otherwise its rows are made in the process of the
 * record, and may be grouped there as records are. */
static bool folds_in_zip(const struct pl_query *query)
{
	for (uint32_t i = 0; i < query->n_stages; i++) {
		const struct zip *zip = query->stages[i]->zip;

		if (zip != NULL && (zip->sides[0]->grouped || zip->sides[1]->grouped))
			return true;
	}
	return false;
}

enum pl_query_split pl_query_split(
	const struct pl_query *query, uint32_t topics, const char **ret_why)
{
	const struct stage *last = query->stages[query->n_stages - 1];
	const char *unused = NULL;

	ret_why = ret_why != NULL ? ret_why : &unused;
	*ret_why = why_together(query, topics);
	if (*ret_why != NULL)
		return PL_QUERY_NO_SPLIT;
	if (!last->grouped && last->n_sources == 0) {
		*ret_why = last->has_limit ? "LIMIT without a window is of all records together"
					   : "each record is a row";
		return last->has_limit ? PL_QUERY_NO_SPLIT : PL_QUERY_BY_PARTITION;
	}
	if (query->window.kind != W_TUMBLE && query->window.kind != W_HOP) {
		*ret_why = "a group shares queries with windows: add TUMBLE(ts, 1s) or HOP";
		return PL_QUERY_NO_SPLIT;
	}
	if (topics == 1 && is_single(query) && last->zip == NULL && last->order < 0 &&
		!last->has_limit && groups_name_flow(last)) {
		*ret_why = "a key has the whole flow, so each group is in one partition";
		return PL_QUERY_BY_PARTITION;
	}
	if (folds_in_zip(query)) {
		*ret_why =
			"GROUP BY over a ZIP whose side is a fold needs the fold's rows together with "
			"the records that made them: leave --group out, so that one process "
			"answers, or write each side without a fold";
		return PL_QUERY_NO_SPLIT;
	}
	for (uint32_t i = 0; i < query->n_stages; i++) {
		const struct stage *stage = query->stages[i];

		if (stage->n_folds > 0) {
			*ret_why =
				"a fold needs the records of a key in their order: group by src, "
				"dst, sport, dport and proto, and read one topic";
			return PL_QUERY_NO_SPLIT;
		}
		if (has_texts(stage)) {
			*ret_why = "each member keeps texts for itself: group by other columns, or "
				   "leave --group out";
			return PL_QUERY_NO_SPLIT;
		}
		if (stage->emit_first) {
			*ret_why =
				"EMIT FIRST needs all records of a key in one member: write EMIT FINAL "
				"(of a question by name: emit=final), or GROUP BY src, dst, sport, "
				"dport, proto of one topic";
			return PL_QUERY_NO_SPLIT;
		}
		for (uint32_t a = 0; stage->n_sources == 0 && a < stage->n_aggs; a++) {
			if (!pl_query_serial_can(&stage->aggs[a])) {
				*ret_why = "one of its aggregates needs the records in their order";
				return PL_QUERY_NO_SPLIT;
			}
		}
	}
	*ret_why = "members put partial results together";
	return PL_QUERY_TWO_STAGES;
}
