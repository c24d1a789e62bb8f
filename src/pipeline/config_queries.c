/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of standing queries. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/kafka.h"
#include "kafka/uri.h"
#include "lang/builtin.h"
#include "pipeline/config.h"
#include "pipeline/config_words.h"
#include "query/query.h"
#include "query/result_json.h"
#include "record/record.h"

static bool is_topic(const char *text)
{
	return strncmp(text, PL_KAFKA_SCHEME, strlen(PL_KAFKA_SCHEME)) == 0;
}

/* Checks that struct pl_text16 can hold the name. */
static int check_name(const char *value, struct pl_diag *diag)
{
	const size_t max = sizeof(struct pl_text16) - 1;
	const size_t n =
		strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

	if (n > 0 && n <= max && value[n] == '\0')
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"the name of a query has 1 to %zu letters, digits, '_', '-' and '.'", max);
}

int pl_config_query_parse(const char *text, struct pl_query **ret, struct pl_diag *diag)
{
	struct pl_diag inner = { .text = "" };
	struct pl_buf expanded;
	int r;

	pl_buf_init(&expanded);
	r = pl_query_builtin_text(&expanded, text, &inner);
	/* A text with blanks is a query, not a misspelt name. */
	if (r == -ENOENT && strpbrk(pl_query_behind_explain(text), " \t\n|") != NULL) {
		inner = (struct pl_diag){ .text = "" };
		r = pl_query_parse(ret, text, &inner);
	} else if (r == 0) {
		r = pl_query_parse(ret, expanded.data, &inner);
	}
	pl_buf_done(&expanded);
	if (r == 0 && pl_query_is_explain(*ret)) {
		pl_query_free(*ret);
		*ret = NULL;
		return pl_diag_fail(
			diag, -EINVAL, "EXPLAIN is of 'pathline query', which prints the plan");
	}
	if (r == 0 || r == -ENOMEM)
		return r;
	if (inner.column > 0)
		pl_diag_set(diag, "in the query at line %u, character %u: %s",
			inner.line > 0 ? inner.line : 1, inner.column, inner.text);
	else
		pl_diag_set(diag, "in the query: %s", inner.text);
	return -EINVAL;
}

static int check_query(const char *value, struct pl_diag *diag)
{
	struct pl_query *query = NULL;
	const int r = pl_config_query_parse(value, &query, diag);

	pl_query_free(query);
	return r;
}

/* Checks a topic for results. */
static int check_topic(const char *value, struct pl_diag *diag)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	int r = uri == NULL ? -ENOMEM : pl_kafka_check(diag);

	if (r == 0)
		r = pl_kafka_uri_parse(uri, value, diag);
	if (r == 0 && uri->format != PL_KAFKA_FORMAT_ANY && uri->format != PL_KAFKA_FORMAT_JSON)
		r = pl_diag_fail(
			diag, -EINVAL, "kafka: results are JSON objects: leave format= out");
	pl_kafka_uri_free(uri);
	return r;
}

static int check_to(const char *value, struct pl_diag *diag)
{
	if (strcmp(value, "events") == 0 || strcmp(value, "metrics") == 0 ||
		strcmp(value, "log") == 0 ||
		(strncmp(value, "file:", 5) == 0 && value[5] != '\0') ||
		strncmp(value, "influx://", 9) == 0 || strncmp(value, "clickhouse://", 13) == 0)
		return 0;
	if (is_topic(value))
		return check_topic(value, diag);
	return pl_diag_fail(diag, -EINVAL,
		"\"%s\": results go to events, metrics, log, file:PATH, kafka://HOST/TOPIC, influx://HOST/DATABASE or clickhouse://HOST/TABLE; outputs of records of a fixed form, and alerts, get their events",
		value);
}

static int check_from(const char *value, struct pl_diag *diag)
{
	struct pl_kafka_uri *uri;
	int r = is_topic(value) ? pl_kafka_check(diag) : 0;

	if (r < 0 || !is_topic(value))
		return r;
	uri = calloc(1, sizeof(*uri));
	r = uri == NULL ? -ENOMEM : pl_kafka_uri_parse_topics(uri, value, diag);
	pl_kafka_uri_free(uri);
	return r;
}

static const char *const reads[] = { "records", "rows", NULL };

/* clang-format off */
#define AT(member) .offset = offsetof(struct pl_config_query, member)
const struct pl_conf_row pl_config_query_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "ddos", .check = check_name,
	  .help = "Name of the query, in its events, metrics and messages." },
	{ .key = "query", .type = PL_CONF_STRING, AT(query), .required = true, .def = "ddos(threshold=45)", .check = check_query,
	  .help = "The query: a text, or one of \"pathline help queries\" by name with parameters." },
	{ .key = "from", .type = PL_CONF_STRINGS, AT(from), .required = true, .def = "eth0", .min = 1, .max = PL_CONFIG_FROM_MAX, .one = true, .check = check_from,
	  .help = "Where its records come from: the name of a tap of this file, kafka://HOST/TOPIC, or paths, hops or events, which are those of the reports that this process collects, or values, which it reads in regions; a list of several is one source, in the order of the records' times. A tap has all kinds of records that the query reads, a topic one: that which kind=pkt64, pkt96, dns64, flow128, flow288 or mark128 in the URI says." },
	{ .key = "reads", .type = PL_CONF_CHOICE, AT(reads), .def = "records", .choices = reads,
	  .help = "Contents of its topic: records, which are asked here, or rows of the question called as this query is, which members of a group gave (pathline query --group … --to kafka://…); rows only go on to its outputs." },
	{ .key = "group", .type = PL_CONF_STRING, AT(group),
	  .help = "reads: rows: the consumer group that keeps the position, so that a restart goes on there. A group without a position begins with the oldest row, unless auto.offset.reset is latest; without a group each start begins with new rows, unless it is earliest." },
	{ .key = "to", .type = PL_CONF_STRINGS, AT(to), .def = "[events]", .min = 1, .max = 8, .check = check_to,
	  .help = "Outputs of the query's results: events (to all outputs that take events, to alerts, tail and history), metrics (a gauge for each group), log, file:PATH (JSON lines), kafka://HOST/TOPIC (a JSON object in a message; with spool=FOLDER rows wait on disk while there is no broker), influx://HOST/DATABASE (a line: the group's columns are tags, the others fields), clickhouse://HOST/TABLE (a row; pathline schema clickhouse --query prints the table). Events and lines of the log come once for each group and window, and once more when the value has doubled." },
	{ .key = "value", .type = PL_CONF_STRING, AT(value),
	  .help = "Column of the result that is the value of its events; by default the first number that is not a key of the group." },
	{ .key = "groups", .type = PL_CONF_U64, AT(groups), .def = "65536", .min = 1, .max = 1 << 26,
	  .help = "Largest number of groups at a time; records of further ones are left out and counted." },
	{ .key = "lateness", .type = PL_CONF_DURATION, AT(lateness_ns), .min = 1, .max = UINT64_C(86400000000000),
	  .help = "How far a record's time may be behind that of the newest record. By default 200ms, and 25s if the query reads flows, whose records come when the flows are over." },
	{ .key = "ahead", .type = PL_CONF_DURATION, AT(ahead_ns), .def = "1m", .max = UINT64_C(3153600000000000000),
	  .help = "How far the time of a record may be ahead of this host's clock; others are left out and counted, because one of them would make all following records late." },
	{ .key = "series", .type = PL_CONF_U64, AT(series), .def = "100", .min = 1, .max = 10000,
	  .help = "metrics: most groups with gauges at a time; further ones are counted." },
	{ 0 },
};
#undef AT
/* clang-format on */

int pl_config_query_value(const struct pl_config_query *config, const struct pl_query *query,
	int *ret, struct pl_diag *diag)
{
	const struct pl_query_column *columns;
	const uint32_t n = pl_query_columns(query, &columns);
	bool keys[PL_QUERY_ITEMS_MAX];

	(void)pl_query_key_columns(query, keys);
	*ret = -1;
	for (uint32_t i = 0; i < n && *ret < 0; i++) {
		const bool number = columns[i].type <= PL_QUERY_DOUBLE;

		if (config->value != NULL ? strcmp(columns[i].name, config->value) == 0 && number
					  : number && !keys[i])
			*ret = (int)i;
	}
	if (*ret >= 0 || config->value == NULL)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"query %s: its result has no number \"%s\" (the key value)", config->name,
		config->value);
}

unsigned int pl_config_query_stream(const char *from)
{
	for (unsigned int stream = PL_FLAT_MAX; stream < PL_QUERY_STREAMS; stream++) {
		if (strcmp(from, pl_query_stream_name(stream)) == 0)
			return stream;
	}
	return PL_QUERY_STREAMS;
}

int pl_config_tap_named(const struct pl_config *config, const char *name)
{
	const struct pl_config_tap *t = config->taps.items;
	const struct pl_config_marks *m = config->marks.items;

	for (size_t i = 0; i < config->taps.n; i++) {
		if (strcmp(t[i].name, name) == 0)
			return (int)i;
	}
	for (size_t i = 0; i < config->marks.n; i++) {
		if (strcmp(m[i].name, name) == 0)
			return (int)(config->taps.n + i);
	}
	return -1;
}

/* Finds the kind of kind=; PL_FLAT_MAX: none. Returns -EINVAL with diag: unknown name. */
static int told_kind(const char *uri, enum pl_flat_kind *ret, struct pl_diag *diag)
{
	struct pl_kafka_uri *parsed = calloc(1, sizeof(*parsed));
	int r = parsed == NULL ? -ENOMEM : pl_kafka_uri_parse_topics(parsed, uri, diag), kind = 0;
	const char *name = r == 0 ? pl_kafka_uri_property(parsed, "kind") : NULL;

	*ret = PL_FLAT_MAX;
	while (name != NULL && kind < PL_FLAT_MAX &&
		strcmp(pl_flat((enum pl_flat_kind)kind)->name, name) != 0)
		kind++;
	if (name != NULL && kind == PL_FLAT_MAX) {
		r = pl_diag_fail(diag, -EINVAL,
			"'kind=%s' in the URI: pkt64, pkt96, dns64, flow128, flow288 or mark128",
			name);
	} else if (name != NULL) {
		*ret = (enum pl_flat_kind)kind;
	}
	pl_kafka_uri_free(parsed);
	return r;
}

int pl_config_query_topic(const struct pl_config_query *q, const struct pl_query *query,
	const char *uri, enum pl_flat_kind *ret, struct pl_diag *diag)
{
	struct pl_diag why = { .text = "" };
	unsigned int n = 0;
	int r = told_kind(uri, ret, &why);

	if (r < 0)
		return pl_diag_fail(diag, r, "query %s: %s", q->name, why.text);
	if (*ret != PL_FLAT_MAX) {
		if (pl_query_reads(query, *ret))
			return 0;
		return pl_diag_fail(diag, -EINVAL,
			"query %s: a topic has %s (kind= in its URI), which it does not read",
			q->name, pl_flat(*ret)->stream);
	}
	for (int kind = 0; kind < PL_FLAT_MAX; kind++) {
		if (!pl_query_reads(query, (enum pl_flat_kind)kind))
			continue;
		*ret = (enum pl_flat_kind)kind;
		n++;
	}
	if (n <= 1)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"query %s: a topic has records of one kind, and it reads several: say which by kind=pkt64, pkt96, dns64, flow128, flow288 or mark128 in the URI",
		q->name);
}

static bool names_stream(const struct pl_config_query *q, unsigned int stream)
{
	char *const *from = q->from.items;

	for (size_t i = 0; i < q->from.n; i++) {
		if (pl_config_query_stream(from[i]) == stream)
			return true;
	}
	return false;
}

/* Checks that `from` names all streams of the collector that the query reads, and no others. */
static int check_collector(
	const struct pl_config_query *q, const struct pl_query *query, struct pl_diag *diag)
{
	for (unsigned int stream = PL_FLAT_MAX; stream < PL_QUERY_STREAMS; stream++) {
		const char *name = pl_query_stream_name(stream);

		if (pl_query_reads(query, stream) == names_stream(q, stream))
			continue;
		if (pl_query_reads(query, stream))
			pl_diag_set(diag,
				"query %s: it reads %s, and the key from does not name them: add %s to it",
				q->name, name, name);
		else
			pl_diag_set(diag, "query %s: the key from names %s, which it does not read",
				q->name, name);
		return -EINVAL;
	}
	return 0;
}

static bool reads_flat(const struct pl_query *query)
{
	bool some = false;

	for (unsigned int kind = 0; kind < PL_FLAT_MAX; kind++)
		some |= pl_query_reads(query, kind);
	return some;
}

/* Refuses streams of the collector: members of a group have records of topics only. */
static int check_streams_of_rows(
	const struct pl_config_query *q, const struct pl_query *query, struct pl_diag *diag)
{
	for (unsigned int stream = PL_FLAT_MAX; stream < PL_QUERY_STREAMS; stream++) {
		if (!pl_query_reads(query, stream))
			continue;
		return pl_diag_fail(diag, -EINVAL,
			"query %s: it reads %s, and members of a group have the records of topics: packets, flows, dns, marks",
			q->name, pl_query_stream_name(stream));
	}
	return 0;
}

/* Removes Kafka's default port from a list of brokers. */
static void plain(char *brokers)
{
	static const char port[] = ":9092";
	const size_t n = strlen(port);

	for (char *at = strstr(brokers, port); at != NULL; at = strstr(at, port)) {
		if (at[n] == ',' || at[n] == '\0')
			memmove(at, at + n, strlen(at + n) + 1);
		else
			at += n;
	}
}

static bool have_common_topic(const struct pl_kafka_uri *one, const struct pl_kafka_uri *other)
{
	for (unsigned int i = 0; i < one->n_topics; i++) {
		for (unsigned int k = 0; k < other->n_topics; k++) {
			if (strcmp(one->topics[i], other->topics[k]) == 0)
				return true;
		}
	}
	return false;
}

/* Returns whether both URIs name the same topic of the same brokers. */
static bool same_topic(const char *one, const char *other)
{
	struct pl_kafka_uri *uris =
		is_topic(one) && is_topic(other) ? calloc(2, sizeof(*uris)) : NULL;
	bool same = uris != NULL && pl_kafka_uri_parse_topics(&uris[0], one, NULL) == 0 &&
		    pl_kafka_uri_parse_topics(&uris[1], other, NULL) == 0 &&
		    have_common_topic(&uris[0], &uris[1]);

	if (same) {
		plain(uris[0].brokers);
		plain(uris[1].brokers);
		same = strcmp(uris[0].brokers, uris[1].brokers) == 0;
	}
	free(uris);
	return same;
}

/* Length of a URI without its keys, which may be secret. */
static int without_keys(const char *uri)
{
	return (int)strcspn(uri, "?");
}

static unsigned int n_topics(const char *from, enum pl_kafka_format *ret_format)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	const unsigned int n =
		uri != NULL && is_topic(from) && pl_kafka_uri_parse_topics(uri, from, NULL) == 0
			? uri->n_topics
			: 0;

	*ret_format = n > 0 ? uri->format : PL_KAFKA_FORMAT_ANY;
	pl_kafka_uri_free(uri);
	return n;
}

static int check_names(
	const struct pl_config *c, const struct pl_config_query *q, struct pl_diag *diag)
{
	char *const *from = q->from.items;

	for (size_t i = 0; i < q->from.n; i++) {
		if (!is_topic(from[i]) && pl_config_query_stream(from[i]) == PL_QUERY_STREAMS &&
			pl_config_tap_named(c, from[i]) < 0)
			return pl_diag_fail(diag, -EINVAL,
				"query %s: \"%s\" (the key from) is neither the name of a tap (the key taps) or marking domain (marks), nor kafka://HOST/TOPIC, nor paths, hops, events or values",
				q->name, from[i]);
		for (size_t k = 0; k < i; k++) {
			if (strcmp(from[i], from[k]) != 0)
				continue;
			return pl_diag_fail(diag, -EINVAL,
				"query %s: \"%.*s\" stands twice in the key from", q->name,
				without_keys(from[i]), from[i]);
		}
	}
	return 0;
}

/* Checks that sources have all kinds that the query reads: a tap gives each, a topic one, the
 * collector none of these. */
static int check_kinds(
	const struct pl_config_query *q, const struct pl_query *query, struct pl_diag *diag)
{
	enum pl_flat_kind kinds[PL_CONFIG_FROM_MAX] = { 0 };
	char *const *from = q->from.items;
	uint32_t given = 0;
	bool topics = false;
	int r = check_collector(q, query, diag);

	for (size_t i = 0; r == 0 && i < q->from.n; i++) {
		enum pl_flat_kind kind = PL_FLAT_MAX;

		kinds[i] = kind;
		if (pl_config_query_stream(from[i]) != PL_QUERY_STREAMS)
			continue;
		if (!reads_flat(query))
			return pl_diag_fail(diag, -EINVAL,
				"query %s: it reads nothing that \"%.*s\" (the key from) has",
				q->name, without_keys(from[i]), from[i]);
		topics |= is_topic(from[i]);
		if (is_topic(from[i]))
			r = pl_config_query_topic(q, query, from[i], &kind, diag);
		given |= kind != PL_FLAT_MAX ? 1u << kind : UINT32_MAX;
		kinds[i] = kind;
		for (size_t k = 0; r == 0 && k < i; k++) {
			if (kinds[k] != kind || !same_topic(from[i], from[k]))
				continue;
			r = pl_diag_fail(diag, -EINVAL,
				"query %s: two sources in the key from are the same topic, %.*s: each record would be there twice",
				q->name, without_keys(from[i]), from[i]);
		}
	}
	for (int kind = 0; r == 0 && kind < PL_FLAT_MAX; kind++) {
		if (!pl_query_reads(query, (enum pl_flat_kind)kind) || (given & 1u << kind) != 0)
			continue;
		if (topics)
			pl_diag_set(diag,
				"query %s: it reads %s, and none of its topics has them (kind=%s)",
				q->name, pl_flat((enum pl_flat_kind)kind)->stream,
				pl_flat((enum pl_flat_kind)kind)->name);
		else
			pl_diag_set(diag,
				"query %s: it reads %s, and the key from names no tap and no topic that has them",
				q->name, pl_flat((enum pl_flat_kind)kind)->stream);
		r = -EINVAL;
	}
	return r;
}

/* Checks that rows come from one topic and do not go back to it. */
static int check_rows(const struct pl_config_query *q, struct pl_diag *diag)
{
	char *const *to = q->to.items, *const *from = q->from.items;
	enum pl_kafka_format format;

	if (q->reads == PL_QUERY_READS_RECORDS) {
		if (q->group == NULL)
			return 0;
		return pl_diag_fail(diag, -EINVAL,
			"query %s: the key group is for reads: rows; members of a group share the "
			"records of a topic by \"pathline query --group NAME\"",
			q->name);
	}
	if (q->from.n != 1 || n_topics(from[0], &format) != 1)
		return pl_diag_fail(diag, -EINVAL,
			"query %s: reads: rows takes one topic, from: kafka://HOST/TOPIC", q->name);
	if (format != PL_KAFKA_FORMAT_ANY)
		return pl_diag_fail(diag, -EINVAL,
			"query %s: rows are JSON objects: leave format= out", q->name);
	for (size_t i = 0; i < q->to.n; i++) {
		if (!is_topic(to[i]) || !same_topic(from[0], to[i]))
			continue;
		return pl_diag_fail(diag, -EINVAL,
			"query %s: rows of the topic %.*s would go back into it", q->name,
			without_keys(to[i]), to[i]);
	}
	return 0;
}

static int check_one(
	const struct pl_config *c, const struct pl_config_query *q, struct pl_diag *diag)
{
	struct pl_query *query = NULL;
	int r = check_names(c, q, diag), value;

	if (r == 0)
		r = check_rows(q, diag);
	if (r == 0)
		r = pl_config_query_parse(q->query, &query, diag);
	if (r == 0 && pl_query_into(query) != NULL)
		r = pl_diag_fail(diag, -EINVAL,
			"query %s: where its rows go stands in the key to, not in INTO", q->name);
	if (r == 0)
		r = q->reads == PL_QUERY_READS_ROWS ? check_streams_of_rows(q, query, diag)
						    : check_kinds(q, query, diag);
	if (r == 0 && q->reads == PL_QUERY_READS_RECORDS && pl_query_keeps_all(query))
		r = pl_diag_fail(diag, -EINVAL,
			"query %s: without a window it would keep its groups and rows until the end: add WINDOW 10s behind GROUP BY, or SESSION(ts, 30s) behind the stream",
			q->name);
	if (r == 0)
		r = pl_config_query_value(q, query, &value, diag);
	pl_query_free(query);
	return r;
}

/* Copies the path that only one output may use: a file, or the folder of a spool; empty: none. */
static void own(const char *to, char *ret, size_t cap)
{
	struct pl_kafka_uri *uri = is_topic(to) ? calloc(1, sizeof(*uri)) : NULL;
	const char *path = strncmp(to, "file:", 5) == 0 ? to + 5 : "";

	if (uri != NULL && pl_kafka_uri_parse(uri, to, NULL) == 0 &&
		pl_kafka_uri_property(uri, "spool") != NULL)
		path = pl_kafka_uri_property(uri, "spool");
	snprintf(ret, cap, "%s", path);
	pl_kafka_uri_free(uri);
}

static bool share_file(const struct pl_config_query *a, const struct pl_config_query *b)
{
	char *const *of_a = a->to.items, *const *of_b = b->to.items;
	char one[PL_KAFKA_URI_MAX], other[PL_KAFKA_URI_MAX];

	for (size_t i = 0; i < a->to.n; i++) {
		own(of_a[i], one, sizeof(one));
		/* Outputs of one query are compared with later ones. */
		for (size_t k = a == b ? i + 1 : 0; k < b->to.n; k++) {
			own(of_b[k], other, sizeof(other));
			if ((one[0] != '\0' && strcmp(one, other) == 0) ||
				(a == b && strcmp(of_a[i], of_b[k]) == 0))
				return true;
		}
	}
	return false;
}

/* Returns an output with the same topic as an earlier output, whatever the keys of its URI; NULL:
 * none. */
static const char *topic_twice(const struct pl_config_query *q)
{
	char *const *to = q->to.items;

	for (size_t i = 0; i < q->to.n; i++) {
		for (size_t k = 0; k < i; k++) {
			if (same_topic(to[i], to[k]))
				return to[i];
		}
	}
	return NULL;
}

int pl_config_check_queries(const struct pl_config *c, struct pl_diag *diag)
{
	const struct pl_config_query *q = c->queries.items;

	for (size_t i = 0; i < c->queries.n; i++) {
		const int r = check_one(c, &q[i], diag);

		if (r < 0)
			return r;
		if (share_file(&q[i], &q[i]))
			return pl_diag_fail(diag, -EINVAL,
				"query %s: an output stands twice in the key to", q[i].name);
		if (topic_twice(&q[i]) != NULL)
			return pl_diag_fail(diag, -EINVAL,
				"query %s: two outputs in the key to are the same topic, %.*s: each row would be there twice",
				q[i].name, without_keys(topic_twice(&q[i])), topic_twice(&q[i]));
		for (size_t k = 0; k < i; k++) {
			const bool name = strcmp(q[i].name, q[k].name) == 0;

			if (!name && !share_file(&q[i], &q[k]))
				continue;
			return pl_diag_fail(diag, -EINVAL, "queries %zu and %zu have the same %s",
				k + 1, i + 1, name ? "name" : "file");
		}
	}
	return 0;
}
