/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline schema: tables and messages by which another system reads our records. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "base/num.h"
#include "cli/args.h"
#include "cli/command.h"
#include "export/clickhouse_rows.h"
#include "kafka/uri.h"
#include "pipeline/config.h"
#include "record/clickhouse.h"
#include "record/duckdb.h"
#include "record/flink.h"
#include "record/goflow2.h"
#include "record/protobuf.h"
#include "show/stdout.h"

#define N_SYSTEMS 5

static const char *const words[N_SYSTEMS + 1] = { "clickhouse", "flink", "duckdb", "protobuf",
	"goflow2", NULL };

static struct {
	const char *table, *kafka, *group, *query;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_STRING, 0, "table", &args.table, "NAME",
			"name of the table (default packets, packets96, dns or flows; for rows of "
			"a question: rows)",
			NULL },
		{ PL_OPT_STRING, 0, "kafka", &args.kafka, "URI",
			"fill the table from a topic: kafka://HOST:PORT/TOPIC, as tap --to has it",
			NULL },
		{ PL_OPT_STRING, 0, "group", &args.group, "NAME",
			"group of consumers that reads the topic (default clickhouse or flink)",
			NULL },
		{ PL_OPT_STRING, 0, "query", &args.query, "QUESTION",
			"clickhouse: instead of KIND, the table for the rows of a question", NULL },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	args.table = args.kafka = NULL;
	args.group = args.query = NULL;
	return table;
}

/* Returns the index of a word in a list of n; if the word is not in it, prints an error and returns
 * n. */
static unsigned int place_of(
	const char *what, const char *word, const char *const *list, unsigned int n)
{
	const char *near;
	unsigned int i;
	char all[96];
	size_t at = 0;

	for (i = 0; i < n; i++)
		if (strcmp(word, list[i]) == 0)
			return i;
	for (unsigned int k = 0; k < n && at < sizeof(all); k++)
		at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s",
			k == 0      ? ""
			: k + 1 < n ? ", "
				    : " or ",
			list[k]);
	near = pl_nearest(word, list, n);
	pl_complain("schema: no %s \"%s\"; use %s%s%s%s", what, word, all,
		near != NULL ? "; did you mean " : "", near != NULL ? near : "",
		near != NULL ? "?" : "");
	return n;
}

static enum pl_flat_kind kind_of(const char *word)
{
	const char *names[PL_FLAT_MAX];

	for (enum pl_flat_kind kind = 0; kind < PL_FLAT_MAX; kind++)
		names[kind] = pl_flat(kind)->name;
	return (enum pl_flat_kind)place_of("kind of record", word, names, PL_FLAT_MAX);
}

/* Returns false and prints the error when an option does not apply to the system. */
static bool options_fit(const char *system)
{
	if ((strcmp(system, "protobuf") == 0 || strcmp(system, "goflow2") == 0) &&
		(args.table != NULL || args.kafka != NULL || args.group != NULL))
		return pl_fail(false,
			"schema: %s belongs to clickhouse and flink; a .proto file has no tables",
			args.table != NULL   ? "--table"
			: args.kafka != NULL ? "--kafka"
					     : "--group");
	if (strcmp(system, "duckdb") == 0 && (args.kafka != NULL || args.group != NULL))
		return pl_fail(false,
			"schema: --%s belongs to clickhouse and flink; DuckDB reads files",
			args.kafka != NULL ? "kafka" : "group");
	if (strcmp(system, "flink") == 0 && args.kafka == NULL)
		return pl_fail(
			false, "schema: flink needs the topic: --kafka kafka://HOST:PORT/TOPIC");
	if (args.group != NULL && args.kafka == NULL)
		return pl_fail(false,
			"schema: --group reads a topic: add --kafka kafka://HOST:PORT/TOPIC");
	return true;
}

/* Returns 0 with *ret, which is NULL without --kafka; or prints the error and returns an exit
 * code. */
static int take_topic(struct pl_kafka_uri **ret)
{
	struct pl_diag diag = { .text = "" };

	*ret = NULL;
	if (args.kafka == NULL)
		return 0;
	*ret = malloc(sizeof(**ret));
	if (*ret != NULL && pl_kafka_uri_parse(*ret, args.kafka, &diag) == 0)
		return 0;
	pl_complain("--kafka: %s", *ret == NULL ? "not enough memory" : diag.text);
	pl_kafka_uri_free(*ret);
	return PL_EXIT_USAGE;
}

static void clickhouse(struct pl_buf *out, enum pl_flat_kind kind, const struct pl_kafka_uri *uri)
{
	const struct pl_clickhouse_topic topic = { uri != NULL ? uri->brokers : NULL,
		uri != NULL ? uri->topic : NULL, args.group != NULL ? args.group : "clickhouse" };

	pl_clickhouse_tables(out, kind, args.table != NULL ? args.table : pl_flat(kind)->stream,
		uri != NULL ? &topic : NULL);
}

static void flink(struct pl_buf *out, enum pl_flat_kind kind, const struct pl_kafka_uri *uri)
{
	const struct pl_flink_topic topic = { uri->brokers, uri->topic,
		args.group != NULL ? args.group : "flink", uri->format == PL_KAFKA_FORMAT_JSON };

	pl_flink_table(out, kind, args.table != NULL ? args.table : pl_flat(kind)->stream, &topic);
}

static int schema(const char *system, enum pl_flat_kind kind)
{
	struct pl_kafka_uri *uri;
	struct pl_buf out;
	int code;

	if (!options_fit(system))
		return PL_EXIT_USAGE;
	if (strcmp(system, "goflow2") == 0 && pl_flat_short(kind) != PL_FLAT_FLOW128)
		return pl_fail(PL_EXIT_USAGE, "schema: goflow2 has flows: flow128 or flow288");
	code = take_topic(&uri);
	if (code != 0)
		return code;
	pl_buf_init(&out);
	if (strcmp(system, "protobuf") == 0)
		pl_protobuf_schema(&out, kind);
	else if (strcmp(system, "goflow2") == 0)
		pl_goflow2_schema(&out);
	else if (strcmp(system, "duckdb") == 0)
		pl_duckdb_view(&out, kind, args.table != NULL ? args.table : pl_flat(kind)->stream);
	else if (strcmp(system, "flink") == 0 && uri != NULL)
		flink(&out, kind, uri);
	else
		clickhouse(&out, kind, uri);
	pl_kafka_uri_free(uri);
	return pl_stdout_all(&out);
}

/* The table for rows of a question, as 'query --into clickhouse://…' and standing queries write them. */
static int schema_of_rows(const struct pl_opt_list *operands)
{
	struct pl_diag diag = { .text = "" };
	struct pl_query *query = NULL;
	struct pl_buf out;

	if (operands->n != 1 || strcmp(operands->items[0], "clickhouse") != 0)
		return pl_fail(PL_EXIT_USAGE,
			"schema: rows of a question have a table of ClickHouse: "
			"schema clickhouse --query QUESTION");
	if (args.kafka != NULL || args.group != NULL)
		return pl_fail(PL_EXIT_USAGE,
			"schema: --%s reads records of a topic; --query makes a table for rows",
			args.kafka != NULL ? "kafka" : "group");
	if (pl_config_query_parse(args.query, &query, &diag) < 0)
		return pl_fail(PL_EXIT_USAGE, "schema: %s", diag.text);
	pl_buf_init(&out);
	pl_clickhouse_rows_table(
		query, "rows of a question", args.table != NULL ? args.table : "rows", &out);
	pl_query_free(query);
	return pl_stdout_all(&out);
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	enum pl_flat_kind kind = PL_FLAT_MAX;
	unsigned int system = N_SYSTEMS;
	int code;

	if (pl_command_parse(&pl_command_schema, argc, argv, &operands, &code) != 0)
		return code;
	if (args.query != NULL) {
		code = schema_of_rows(&operands);
		pl_opt_list_done(&operands);
		return code;
	}
	if (operands.n != 2)
		pl_complain(
			"schema: %s; use: schema clickhouse|flink|duckdb|protobuf|goflow2 "
			"pkt64|pkt96|dns64|flow128|mark128|seg192|link128|sent128|drop168|flow288",
			operands.n == 0   ? "missing system and kind of record"
			: operands.n == 1 ? "missing system or kind of record"
					  : "more than a system and a kind of record");
	else
		system = place_of("system", operands.items[0], words, N_SYSTEMS);
	if (system < N_SYSTEMS)
		kind = kind_of(operands.items[1]);
	pl_opt_list_done(&operands);
	return kind == PL_FLAT_MAX ? PL_EXIT_USAGE : schema(words[system], kind);
}

const struct pl_command pl_command_schema = {
	.name = "schema",
	.summary = "print tables and schemas with which other systems read records",
	.usage =
		"[OPTION]… clickhouse|flink|duckdb|protobuf|goflow2 KIND | clickhouse --query QUESTION",
	.description =
		"KIND is pkt64, pkt96, dns64, flow128, mark128, seg192, link128, sent128, drop168\n"
		"or flow288.\n"
		"\n"
		"clickhouse prints the statements that make a table for records as 'pathline tap' writes\n"
		"them into files and topics; their bytes are rows of RowBinary. With --kafka ClickHouse\n"
		"fills the table from the topic. flink prints a table over a topic, for messages of\n"
		"RowBinary (with PathlineFormatFactory.java, which is installed in\n"
		"share/pathline/flink) or, with format=json in the URI, of JSON. With --query clickhouse\n"
		"prints the table into which rows of the question go (--into and 'to:' with\n"
		"clickhouse://HOST/TABLE). duckdb prints a view\n"
		"over a file of JSON lines, NAME.jsonl of the table. protobuf prints the\n"
		".proto file of messages that 'tap --to kafka://HOST/TOPIC?format=protobuf' writes,\n"
		"goflow2 that of 'tap --flows --to kafka://HOST/TOPIC?format=goflow2'. 'pathline help fields'\n"
		"explains the columns.",
	.options = options,
	.examples =
		"  pathline schema clickhouse pkt64 | clickhouse-client -n\n"
		"  clickhouse-client -q 'INSERT INTO packets FORMAT RowBinary' < trace.pkt64\n"
		"  pathline schema --kafka kafka://10.0.0.3/packets clickhouse pkt64\n"
		"  pathline schema --kafka kafka://10.0.0.3/packets flink pkt64\n"
		"  pathline schema protobuf pkt64 > pkt64.proto\n"
		"  pathline schema clickhouse --query 'ddos(threshold=45)' --table ddos | clickhouse-client -n\n",
	.words = words,
	.run = run,
};
