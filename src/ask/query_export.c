/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs "pathline query --export". */
#include "ask/query_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "kafka/uri.h"
#include "lang/export.h"
#include "record/clickhouse.h"
#include "record/duckdb.h"
#include "record/flink.h"
#include "show/stdout.h"

const char *const pl_query_export_systems[] = { "clickhouse", "flink", "duckdb", NULL };

static int kinds_read(const struct pl_query *query)
{
	int n = 0;

	for (int kind = 0; kind < PL_FLAT_MAX; kind++)
		n += pl_query_reads(query, (enum pl_flat_kind)kind);
	return n;
}

static void put_table(struct pl_buf *out, enum pl_query_dialect dialect, enum pl_flat_kind kind,
	const struct pl_kafka_uri *uri)
{
	const char *table = pl_flat(kind)->stream;

	if (dialect == PL_QUERY_CLICKHOUSE) {
		const struct pl_clickhouse_topic topic = { uri != NULL ? uri->brokers : NULL,
			uri != NULL ? uri->topic : NULL, "clickhouse" };

		pl_clickhouse_tables(out, kind, table, uri != NULL ? &topic : NULL);
		pl_buf_chr(out, '\n');
	} else if (dialect == PL_QUERY_DUCKDB) {
		pl_duckdb_view(out, kind, table);
		pl_buf_chr(out, '\n');
	} else if (uri != NULL) {
		const struct pl_flink_topic topic = { uri->brokers, uri->topic, "flink",
			uri->format == PL_KAFKA_FORMAT_JSON };

		pl_flink_table(out, kind, table, &topic);
		pl_buf_chr(out, '\n');
	} else {
		pl_buf_printf(out,
			"-- It reads the table of: pathline schema --kafka URI flink %s\n",
			pl_flat(kind)->name);
	}
}

static void put_tables(struct pl_buf *out, enum pl_query_dialect dialect,
	const struct pl_query *query, const struct pl_kafka_uri *uri)
{
	for (int kind = 0; kind < PL_FLAT_MAX; kind++) {
		if (pl_query_reads(query, (enum pl_flat_kind)kind))
			put_table(out, dialect, (enum pl_flat_kind)kind, uri);
	}
}

/* Returns 0 with *ret, NULL without a source; or an exit code after printing the error. */
static int take_topic(struct pl_kafka_uri **ret, const struct pl_query *query,
	const char *const *sources, size_t n)
{
	struct pl_diag diag = { .text = "" };

	*ret = NULL;
	if (n == 0)
		return 0;
	if (n > 1 || kinds_read(query) > 1)
		return pl_fail(PL_EXIT_USAGE,
			n > 1 ? "query: --export takes one topic at most"
			      : "query: a topic has records of one kind, and the question reads "
				"several; leave it out, and fill the tables by "
				"'pathline schema --kafka'");
	*ret = malloc(sizeof(**ret));
	if (*ret != NULL && pl_kafka_uri_parse(*ret, sources[0], &diag) == 0)
		return 0;
	pl_complain("query: --export: %s", *ret == NULL ? "not enough memory" : diag.text);
	pl_kafka_uri_free(*ret);
	return PL_EXIT_USAGE;
}

int pl_query_export_print(const struct pl_query *query, const char *question, const char *system,
	const char *const *sources, size_t n)
{
	enum pl_query_dialect dialect = PL_QUERY_CLICKHOUSE;
	struct pl_diag diag = { .text = "" };
	struct pl_kafka_uri *uri;
	struct pl_buf out;
	int code = take_topic(&uri, query, sources, n);

	if (code != 0)
		return code;
	while (strcmp(pl_query_dialect_name(dialect), system) != 0)
		dialect++;
	if (dialect == PL_QUERY_DUCKDB && uri != NULL) {
		pl_kafka_uri_free(uri);
		return pl_fail(
			PL_EXIT_USAGE, "query: DuckDB reads no topics: leave the source out");
	}
	if (pl_query_into(query) != NULL)
		pl_complain("query: INTO '%s' is left out: %s writes its result where INSERT INTO "
			    "says",
			pl_query_into(query), system);
	pl_buf_init(&out);
	put_tables(&out, dialect, query, uri);
	pl_kafka_uri_free(uri);
	if (pl_query_export(query, question, dialect, &out, &diag) == 0) {
		/* Removes the line end. */
		if (out.len > 0)
			out.len--;
		pl_buf_str(&out, ";\n");
		return pl_stdout_all(&out);
	}
	pl_buf_done(&out);
	pl_complain_question(question, &diag);
	return PL_EXIT_USAGE;
}
