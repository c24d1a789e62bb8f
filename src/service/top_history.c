/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes the tables of top from a history. */
#include "service/top_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "base/num.h"
#include "pipeline/api.h"
#include "service/history_walk.h"
#include "web/client.h"

#define PREFIX      "/api/v1/"
#define EVENTS_MAX  1024u /* as many as the daemon shows */
#define BATCH_PATHS 64u
#define RECORDS_MAX (UINT64_C(1) << 22) /* of one answer: a writer may be faster */

struct pl_top_history {
	const char *from;
	struct pl_history_walk walk;
	struct pl_aggregate *aggregate;
	struct pl_record_batch batch;
	struct pl_event events[EVENTS_MAX], ordered[EVENTS_MAX];
	uint64_t n_events, n_paths;
	uint64_t first_ns, last_ns; /* of the records; 0: none */
};

/* ---- records ---- */

static void settle(struct pl_top_history *h)
{
	pl_aggregate_tick(h->aggregate, h->last_ns);
	pl_aggregate_batch(h->aggregate, &h->batch);
	pl_record_batch_clear(&h->batch);
}

static void take_path(struct pl_top_history *h, const struct pl_history_record *record)
{
	struct pl_record_batch *b = &h->batch;

	if (b->n_paths == b->cap_paths || b->cap_hops - b->n_hops < record->n_hops)
		settle(h);
	b->paths[b->n_paths] = record->path;
	/* Hops that were overwritten are not counted. */
	b->paths[b->n_paths].hop_count = (uint8_t)record->n_hops;
	b->first_hop[b->n_paths] = b->n_hops;
	b->pkt[b->n_paths++] = 0;
	memcpy(&b->hops[b->n_hops], record->hops, record->n_hops * sizeof(record->hops[0]));
	b->n_hops += record->n_hops;
	h->n_paths++;
}

static void take_in(struct pl_top_history *h)
{
	const struct pl_history_record *record;

	(void)pl_history_walk_renew(&h->walk);
	for (uint64_t i = 0; i < RECORDS_MAX; i++) {
		record = pl_history_walk_next(&h->walk);
		if (record == NULL)
			break;
		h->last_ns = pl_history_record_ns(record);
		if (h->first_ns == 0)
			h->first_ns = h->last_ns;
		if (record->kind == PL_KIND_PATH)
			take_path(h, record);
		else if (record->kind == PL_KIND_EVENT)
			h->events[h->n_events++ % EVENTS_MAX] = record->event;
	}
	settle(h);
}

/* ---- requests ---- */

/* Decodes in place, as pl_client_parameter encodes. */
static void decode(char *text)
{
	char *to = text;

	for (; *text != '\0'; text++) {
		const int byte = *text == '%' ? pl_parse_percent(text) : -1;

		if (byte >= 0) {
			*to++ = (char)byte;
			text += 2;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

static const struct pl_api_table *read_question(char *path, struct pl_api_query *ret)
{
	char *query = strchr(path, '?'), *pair;

	*ret = (struct pl_api_query){ .sort = NULL };
	if (query != NULL)
		*query++ = '\0';
	while ((pair = strsep(&query, "&")) != NULL) {
		char *value = strchr(pair, '=');

		if (value == NULL)
			continue;
		*value++ = '\0';
		decode(value);
		if (strcmp(pair, "sort") == 0)
			ret->sort = value;
		else if (strcmp(pair, "where") == 0)
			ret->where = value;
		else if (strcmp(pair, "limit") == 0)
			(void)pl_parse_u64(value, &ret->limit); /* our own client made it */
	}
	return strncmp(path, PREFIX, strlen(PREFIX)) == 0 ? pl_api_table_find(path + strlen(PREFIX))
							  : NULL;
}

static json_t *make_status(const struct pl_top_history *h)
{
	struct pl_json json;
	struct pl_buf buf;
	json_t *doc = NULL;

	pl_buf_init(&buf);
	pl_json_init(&json, &buf);
	pl_json_object(&json);
	pl_json_time(&json, h->last_ns);
	pl_json_key(&json, "history");
	pl_json_object(&json);
	pl_json_number(&json, "seconds", (h->last_ns - h->first_ns) / 1000000000u);
	pl_json_number(&json, "reports", h->n_paths);
	pl_json_number(&json, "events", h->n_events);
	pl_json_number(&json, "overwritten", pl_history_walk_overrun(&h->walk));
	pl_json_object_end(&json);
	pl_json_object_end(&json);
	if (!buf.failed)
		doc = pl_client_json(buf.data, buf.len);
	pl_buf_done(&buf);
	return doc;
}

static int write_table(struct pl_top_history *h, const struct pl_api_table *table,
	const struct pl_api_query *query, struct pl_buf *out, struct pl_api_problem *problem)
{
	struct pl_api_records records = {
		.aggregate = h->aggregate, .now_ns = h->last_ns, .events = h->ordered
	};
	const uint64_t first = h->n_events > EVENTS_MAX ? h->n_events - EVENTS_MAX : 0;

	for (uint64_t i = first; i < h->n_events; i++)
		h->ordered[records.n_events++] = h->events[i % EVENTS_MAX];
	records.events_before = first;
	return pl_api_records_write(&records, table, query, out, problem);
}

int pl_top_history_get(struct pl_top_history *h, const char *path, json_t **ret_status,
	json_t **ret_table, struct pl_diag *diag)
{
	struct pl_api_problem problem = { .status = 0 };
	struct pl_api_query query;
	struct pl_buf out;
	char *copy = strdup(path);
	const struct pl_api_table *table = copy != NULL ? read_question(copy, &query) : NULL;
	int code = 0;

	pl_buf_init(&out);
	take_in(h);
	if (table == NULL) {
		pl_diag_set(diag, "out of memory, or no table: %s", path);
		code = PL_EXIT_FAILED;
	} else if (write_table(h, table, &query, &out, &problem) < 0) {
		*diag = problem.diag;
		code = problem.status == 400 ? PL_EXIT_USAGE : PL_EXIT_FAILED;
	} else {
		*ret_status = make_status(h);
		*ret_table = out.failed ? NULL : pl_client_json(out.data, out.len);
		if (*ret_status == NULL || *ret_table == NULL) {
			pl_diag_set(diag, "out of memory");
			code = PL_EXIT_FAILED;
		}
	}
	pl_buf_done(&out);
	free(copy);
	return code;
}

/* ---- opening ---- */

void pl_top_history_close(struct pl_top_history *h)
{
	if (h == NULL)
		return;
	if (h->walk.history != NULL) {
		(void)pl_history_walk_tell(&h->walk);
		pl_history_walk_close(&h->walk);
	}
	pl_record_batch_done(&h->batch);
	pl_aggregate_free(h->aggregate);
	free(h);
}

int pl_top_history_open(struct pl_top_history **ret, const char *from, uint64_t since_ns)
{
	const struct pl_history_walk_options walk = { .from = from,
		.kinds = 1u << PL_KIND_PATH | 1u << PL_KIND_EVENT,
		.since_ns = since_ns };
	/* A single slot covers all records, so the largest value is that of the whole history. */
	const struct pl_aggregate_options options = { .idle_ns = UINT64_MAX,
		.slot_ns = UINT64_MAX };
	struct pl_top_history *h = calloc(1, sizeof(*h));
	int code;

	if (h == NULL || pl_aggregate_new(&h->aggregate, &options) < 0 ||
		pl_record_batch_init(&h->batch, BATCH_PATHS, BATCH_PATHS * PL_BATCH_HOPS_MIN) < 0) {
		pl_complain("out of memory");
		pl_top_history_close(h);
		return PL_EXIT_FAILED;
	}
	h->from = from;
	code = pl_history_walk_open(&h->walk, &walk);
	if (code != 0) {
		pl_top_history_close(h);
		return code;
	}
	*ret = h;
	return 0;
}
