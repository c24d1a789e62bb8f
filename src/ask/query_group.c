/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a question as a member of a Kafka consumer group. */
#include "ask/query_group.h"

#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "base/hash.h"
#include "base/opt.h"
#include "kafka/kafka.h"
#include "query/partial.h"
#include "query/result_json.h"
#include "runtime/serve.h"
#include "service/query_member.h"
#include "show/query_out.h"
#include "show/stdout.h"

#define IDLE_NS  UINT64_C(5000000000)
#define AHEAD_NS UINT64_C(60000000000)

struct member {
	const struct pl_query_sql *args;
	struct pl_query_member_options o;
	struct pl_query_member service;
	struct pl_kafka_uri from, to;
	struct pl_query_out rows;
	struct pl_buf messages; /* rows, with --to - */
	bool as_messages, gone;
	int error;
	uint64_t n;
};

/* ---- rows ---- */

static void take_row(void *arg, const struct pl_query_row *row)
{
	struct member *m = arg;

	m->n++;
	if (!m->as_messages) {
		pl_query_out_add(&m->rows, row);
		return;
	}
	pl_query_result_json(m->o.query, m->o.name, row, NULL, &m->messages);
	pl_buf_chr(&m->messages, '\n');
}

static void turned(void *arg)
{
	struct member *m = arg;

	if (m->as_messages)
		pl_stdout_flush(&m->messages, &m->gone, &m->error);
	else
		pl_query_out_write(&m->rows);
}

static bool full(void *arg)
{
	const struct member *m = arg;

	if (m->as_messages)
		return m->gone || m->error != 0 || (m->args->count != 0 && m->n >= m->args->count);
	return pl_query_out_full(&m->rows);
}

static void tell_begin(void *arg)
{
	const struct pl_query_member *s = arg;

	pl_complain("asking %s as a member of group %s%s%s", s->name, s->o->group,
		s->two_stages ? ", partial results in " : "", s->two_stages ? s->topic : "");
}

/* ---- the options ---- */

/* Returns 0, or prints the error and returns an exit code. */
static int read_to(struct member *m)
{
	const char *to = m->args->to;
	struct pl_diag diag = { .text = "" };

	m->as_messages = to != NULL && strcmp(to, "-") == 0;
	if (to == NULL || m->as_messages)
		return 0;
	if (strncmp(to, PL_KAFKA_SCHEME, strlen(PL_KAFKA_SCHEME)) != 0)
		return pl_fail(PL_EXIT_USAGE,
			"query: rows of a member of a group go to kafka://HOST/TOPIC or -, not "
			"to %s",
			to);
	if (pl_kafka_uri_parse(&m->to, to, &diag) < 0) {
		pl_complain_diag(&diag);
		return PL_EXIT_USAGE;
	}
	if (strcmp(m->from.brokers, m->to.brokers) != 0 || m->to.n_properties > 0 ||
		m->to.properties_file != NULL)
		return pl_fail(PL_EXIT_USAGE,
			"query: --to %s: rows go to the brokers of the source, with its "
			"properties: give kafka://%s/%s",
			to, m->from.brokers, m->to.topic);
	m->o.results = m->to.topic;
	return 0;
}

static int check(struct member *m, const char *uri)
{
	const struct pl_query_sql *args = m->args;
	struct pl_diag diag = { .text = "" };
	const char *why;

	if (pl_kafka_uri_parse_topics(&m->from, uri, &diag) < 0) {
		pl_complain_diag(&diag);
		return PL_EXIT_USAGE;
	}
	if (pl_query_split(m->o.query, pl_query_member_places(&m->from), &why) == PL_QUERY_NO_SPLIT)
		return pl_fail(PL_EXIT_USAGE,
			"query: members of a group cannot share this question: %s", why);
	if (args->transactions && (args->to == NULL || strcmp(args->to, "-") == 0))
		return pl_fail(PL_EXIT_USAGE,
			"query: --transactions needs --to kafka://HOST/TOPIC: rows on standard "
			"output are no part of a transaction");
	if (args->transactions && pl_query_gives_early(m->o.query))
		return pl_fail(PL_EXIT_USAGE,
			"query: --transactions goes with rows of closed windows: write EMIT "
			"FINAL (of a question by name: emit=final), or keep a fold's rows by "
			"ORDER BY");
	return read_to(m);
}

static int serve(struct member *m)
{
	const struct pl_service service = { &pl_query_member_service, &m->service };
	const struct pl_runtime_options run = { .services = &service,
		.n = 1,
		.rights = { .user = m->args->user },
		.duration_ns = m->args->duration_ns,
		.web = m->args->web,
		.stats = m->args->stats,
		.tell = pl_stderr_print,
		.print = pl_stdout_print,
		.begun = tell_begin,
		.arg = &m->service };
	int code;

	m->service.o = &m->o;
	pl_query_out_init(&m->rows, m->o.query, m->args->form, m->args->stats, m->args->count);
	pl_buf_init(&m->messages);
	code = pl_serve(&run);
	pl_query_member_close(&m->service);
	if (m->error != 0)
		code = pl_fail(PL_EXIT_FAILED, "standard output: %s",
			strerror(m->error < 0 ? -m->error : m->error));
	if (m->as_messages || m->o.results != NULL || !m->service.began)
		m->rows.gone = true;
	if (!pl_query_out_end(&m->rows, NULL))
		code = PL_EXIT_FAILED;
	pl_buf_done(&m->messages);
	return code == 0 && m->service.rows == 0 ? PL_EXIT_NOTHING : code;
}

int pl_query_group(const struct pl_query_sql *args, const struct pl_query *query, const char *name,
	const char *uri, enum pl_flat_kind kind)
{
	struct member *m = calloc(1, sizeof(*m));
	int code;

	if (m == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	m->args = args;
	m->o = (struct pl_query_member_options){ .uri = uri,
		.group = args->group,
		.name = name[0] != '\0' ? name : args->group,
		.partials = args->partials,
		.transactions = args->transactions,
		.query = query,
		.kind = kind,
		.config = { .max_groups = (uint32_t)args->groups,
			.lateness_ns = args->lateness_ns == PL_OPT_NOT_GIVEN ? 0
				       : args->lateness_ns == 0              ? PL_QUERY_NO_LATENESS
									     : args->lateness_ns,
			.ahead_ns = args->ahead_ns == PL_OPT_NOT_GIVEN
					    ? AHEAD_NS
					    : args->ahead_ns + (args->ahead_ns == 0),
			.seed = pl_hash_seed() },
		.idle_ns = args->idle_ns == PL_OPT_NOT_GIVEN ? IDLE_NS : args->idle_ns,
		.row = take_row,
		.turned = turned,
		.full = full,
		.arg = m };
	code = check(m, uri);
	if (code == 0)
		code = serve(m);
	free(m);
	return code;
}
