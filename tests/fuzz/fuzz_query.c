/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries: the text up to the first NUL; what follows it are the bytes of records, given as every
 * kind in two parts. Text that is refused says where and why; other text has a plan, which runs, and
 * becomes rules and counts of a tap, parts of a group's members, and SQL of other systems, or says what
 * does not. */
#include <errno.h>

#include "fuzz.h"
#include "lang/export.h"
#include "lang/push.h"
#include "lang/push_counts.h"
#include "query/partial.h"
#include "query/query.h"

enum { RECORDS = 8, WIDEST = PL_FLAT_BYTES_MAX };

_Static_assert(sizeof(struct pl_query_hop) <= WIDEST, "every kind of record fits");

static void sink(void *arg, const struct pl_query_row *row)
{
	const struct pl_query *query = arg;
	const struct pl_query_column *columns;
	uint64_t sum = 0;

	must(row->n == pl_query_columns(query, &columns));
	must(row->windowed || (row->start_ns == 0 && row->end_ns == 0));
	must(!row->windowed || row->start_ns < row->end_ns);
	for (uint32_t i = 0; i < row->n; i++) {
		const struct pl_query_value *v = &row->values[i];

		must(v->type == columns[i].type);
		must(v->absent || v->type != PL_QUERY_DOUBLE || __builtin_isfinite(v->d));
		for (uint32_t k = 0; !v->absent && v->type == PL_QUERY_LIST && k < v->list.n; k++)
			sum += v->list.items[k].count;
	}
	must(sum <= UINT64_MAX / 2);
}

/* Records of any stream: the bytes, and hops that paths have. */
static const void *records_of(unsigned int stream, const uint64_t *bytes)
{
	static struct pl_query_path paths[RECORDS];
	static struct pl_hop hops[3];

	if (stream != PL_QUERY_PATHS)
		return bytes;
	memcpy(hops, bytes, sizeof(hops));
	for (uint32_t i = 0; i < RECORDS; i++) {
		memcpy(&paths[i].path, bytes + i * sizeof(struct pl_path) / sizeof(*bytes),
			sizeof(struct pl_path));
		paths[i].n_hops = i % 4;
		paths[i].hops = i % 4 > 0 ? hops : NULL;
	}
	return paths;
}

static void run(const struct pl_query *query, const uint8_t *data, size_t size)
{
	const struct pl_query_config config = {
		.max_groups = 16, .max_distinct = 32, .max_windows = 4, .partitions = 2
	};
	uint64_t records[RECORDS * WIDEST / sizeof(uint64_t)] = { 0 };
	uint64_t read = 0;
	const struct pl_query_stats *stats;
	struct pl_query_run *run = NULL;

	memcpy(records, data, size < sizeof(records) ? size : sizeof(records));
	must(pl_query_run_new(&run, query, &config, sink, (void *)(uintptr_t)query, NULL) == 0);
	for (uint32_t part = 0; part < 2; part++) {
		for (unsigned int k = 0; k < PL_QUERY_STREAMS; k++) {
			must(pl_query_feed(run, k, records_of(k, records), RECORDS, part) == 0);
			read += pl_query_reads(query, k) ? RECORDS : 0;
		}
		pl_query_advance(run, part * UINT64_C(10000000000));
	}
	pl_query_finish(run);
	stats = pl_query_run_stats(run);
	must(stats->records == read);
	pl_query_run_free(run);
}

static void translate(const struct pl_query *query, const char *text, size_t len)
{
	for (int dialect = 0; dialect < PL_QUERY_DIALECTS; dialect++) {
		struct pl_diag diag = { 0 };
		struct pl_buf out;
		int r;

		pl_buf_init(&out);
		r = pl_query_export(query, text, (enum pl_query_dialect)dialect, &out, &diag);
		must(r == 0 || r == -ENOTSUP);
		must(r < 0 || (out.len > 0 && out.data[out.len - 1] == '\n'));
		must(r == 0 || diag.text[0] != '\0');
		must(r == 0 || diag.column <= len + 1);
		pl_buf_done(&out);
	}
}

/* A plan in other hands: a kernel's tap, the members of a group. */
static void hand_on(const struct pl_query *query)
{
	static struct pl_query_push push;
	struct pl_tap_count_plan counts;
	const char *why = NULL;
	struct pl_buf out;

	pl_buf_init(&out);
	for (int pkt64 = 0; pkt64 < 2; pkt64++) {
		pl_query_push(query, pkt64 != 0, &push);
		must(push.n <= PL_TAP_RULES_MAX);
		pl_query_push_rest(query, pkt64 != 0, &out);
		if (pl_query_push_counts(query, pkt64 != 0, &counts) == NULL)
			pl_query_push_counts_text(query, &out);
	}
	must(!out.failed);
	pl_buf_done(&out);
	for (uint32_t topics = 1; topics < 3; topics++) {
		(void)pl_query_split(query, topics, &why);
		must(why != NULL && why[0] != '\0');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = memchr(data, 0, size);
	size_t len = nul != NULL ? (size_t)(nul - data) : size;
	char *text = malloc(len + 1);
	struct pl_diag diag = { 0 };
	struct pl_query *query = NULL;
	struct pl_buf plan;

	must(text != NULL);
	memcpy(text, data, len);
	text[len] = '\0';
	if (pl_query_parse(&query, text, &diag) < 0) {
		must(diag.text[0] != '\0');
		must(diag.line >= 1 && diag.column >= 1 && diag.column <= len + 1);
		must(query == NULL);
	} else {
		pl_buf_init(&plan);
		pl_query_explain(query, &plan);
		must(!plan.failed && plan.len > 0);
		pl_buf_done(&plan);
		translate(query, text, len);
		hand_on(query);
		run(query, data + len, size - len);
		pl_query_free(query);
	}
	free(text);
	return 0;
}
