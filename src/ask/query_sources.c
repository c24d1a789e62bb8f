/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the records of sources to a question. */
#include "ask/query_sources.h"

#include <stdlib.h>
#include <string.h>

#include "ask/query_daemon.h"
#include "ask/query_file.h"
#include "ask/query_records.h"
#include "ask/query_region.h"
#include "ask/query_reports.h"
#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/opt.h"
#include "kafka/kafka.h"
#include "runtime/confine_reader.h"
#include "runtime/serve.h"
#include "service/kafka_source.h"
#include "service/query_push.h"
#include "service/tap.h"
#include "show/stdout.h"

/* ---- clocks ---- */

static void note_clocks(void *arg, uint32_t clocks)
{
	struct pl_asking *a = arg;
	struct pl_buf text;

	if (!pl_clocks_note(&a->clocks, clocks))
		return;
	pl_buf_init(&text);
	pl_clocks_text(&a->clocks, &text);
	pl_complain("%.*s", (int)text.len, text.data != NULL ? text.data : "");
	pl_buf_done(&text);
}

/* ---- from a tap ---- */

static void feed(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct pl_asking *a = arg;

	/* Flows are made of all captures together. */
	const bool flows = pl_flat_short(kind) == PL_FLAT_FLOW128;
	const bool one = a->tap == NULL || a->captures == 0 || flows;
	const uint32_t from = one ? 0 : a->tap->from;

	if (a->tap != NULL)
		note_clocks(a, a->tap->clocks);
	if (a->live)
		pl_query_clock(a->run, pl_clock_real_ns());
	if (!flows && n > 0)
		a->newest_ns[from] = pl_flat_time(
			kind, (const uint8_t *)records + (size_t)(n - 1) * pl_flat(kind)->size);
	(void)pl_query_feed_flat(a->run, kind, records, n, from);
}

/* Returns how far a capture is; of several its next packet's time, so that one without records of
 * the question delays no other. Records in datagrams are older than their packets. */
static uint64_t reached(const struct pl_asking *a, uint32_t i)
{
	return a->captures > 1 && !a->tap->datagrams[i] ? a->tap->reached_ns[i] : a->newest_ns[i];
}

/* Reports how far a capture is: nothing waits for a rare kind, or a capture that ended. */
static void capture_turned(struct pl_asking *a, uint32_t i)
{
	static const enum pl_flat_kind kinds[] = { PL_FLAT_PKT64, PL_FLAT_PKT96, PL_FLAT_DNS64 };
	const uint64_t reached_ns = reached(a, i);

	for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]) && !a->ended[i]; k++) {
		if (a->captures > 1 && a->tap->ended[i])
			(void)pl_query_ended(a->run, kinds[k], i);
		else if (a->captures == 1 || reached_ns > 0)
			(void)pl_query_passed(a->run, kinds[k], reached_ns, i);
	}
	a->ended[i] = a->captures > 1 && a->tap->ended[i];
}

static void passed(void *arg, uint64_t ts_ns)
{
	struct pl_asking *a = arg;

	/* Sets the clock, as no record may be fed: the time that passed must not be ahead of it. */
	pl_query_clock(a->run, pl_clock_real_ns());
	(void)pl_query_passed(a->run, PL_FLAT_PKT64, ts_ns, 0);
	(void)pl_query_passed(a->run, PL_FLAT_PKT96, ts_ns, 0);
}

static void feed_counts(void *arg, const struct pl_tap_count *counts, uint32_t n)
{
	struct pl_asking *a = arg;

	pl_query_clock(a->run, pl_clock_real_ns());
	(void)pl_query_feed_counts(a->run, counts, n);
}

static void counting(void *arg, bool on)
{
	pl_query_told(((const struct pl_asking *)arg)->run, on);
}

static void go_live(struct pl_asking *a)
{
	a->live = true;
	if (a->chart != NULL)
		pl_query_chart_follow(a->chart);
}

/* Prints once that a question that gives rows as records come has no more room for groups. */
static void tell_full(struct pl_asking *a)
{
	if (a->told_full || pl_query_run_stats(a->run)->groups_refused == 0 ||
		pl_query_window_ns(a->query) != 0 || !pl_query_gives_early(a->query))
		return;
	a->told_full = true;
	pl_complain(
		"query: there are as many groups as --groups says, and none ends without a window: records of others are left out from now on");
}

static void turned(void *arg)
{
	struct pl_asking *a = arg;

	tell_full(a);
	if (a->live)
		pl_query_advance(a->run, pl_clock_mono_ns());
	for (uint32_t i = 0; i < a->captures; i++)
		capture_turned(a, i);
	if (a->into != NULL)
		pl_query_into_turn(a->into);
	else if (a->chart != NULL)
		pl_query_chart_turn(a->chart);
	else
		pl_query_out_write(&a->rows);
}

static bool full(void *arg)
{
	const struct pl_asking *a = arg;

	return a->into != NULL    ? pl_query_into_full(a->into)
	       : a->chart != NULL ? a->chart->gone || a->chart->error != 0
				  : pl_query_out_full(&a->rows);
}

static void tell_begin(void *arg)
{
	const struct pl_tap_service *t = arg;

	if (t->live)
		pl_complain(
			"asking %s%s", t->o->sources[0], t->o->n_sources > 1 ? " and others" : "");
}

/* Runs the service that has the records, after the one that takes rows, if any. Returns an exit
 * code; prints errors. */
static int serve(
	const struct pl_asking *a, const struct pl_service *service, void (*begun)(void *arg))
{
	const struct pl_service both[] = { { &pl_query_into_service, a->into }, *service };
	const bool into = a->into != NULL;
	const struct pl_runtime_options run = { .services = into ? both : service,
		.n = into ? 2 : 1,
		.rights = { .user = a->args->user, .group = a->args->group },
		.duration_ns = a->args->duration_ns,
		.stats = a->args->stats,
		.tell = pl_stderr_print,
		.print = pl_stdout_print,
		.begun = begun,
		.arg = service->s };

	return pl_serve(&run);
}

/* Returns the kinds that the tap has to make, in their long forms. */
static uint32_t kinds_of(const struct pl_asking *a)
{
	uint32_t kinds = 0;

	for (int kind = 0; kind < PL_FLAT_MAX; kind++) {
		if (pl_query_reads(a->query, (enum pl_flat_kind)kind))
			kinds |= 1u << pl_flat_long((enum pl_flat_kind)kind);
	}
	return kinds;
}

/* Returns 0, or prints the error and returns an exit code. */
static int add_rules(const struct pl_asking *a, struct pl_tap_rules *to)
{
	struct pl_diag diag = { .text = "" };

	for (size_t i = 0; i < a->args->rules->n; i++) {
		if (pl_tap_rules_add(to, a->args->rules->items[i], &diag) < 0)
			return pl_fail(PL_EXIT_USAGE, "--rule %s: %s", a->args->rules->items[i],
				diag.text);
	}
	return 0;
}

static bool is_live(const char *source)
{
	return pl_tap_kernel_is(source) || pl_tap_drops_is(source) ||
	       (pl_port_uri_can(source) & PL_PORT_CAN_LIVE) != 0;
}

/* Returns false when records come as datagrams: made elsewhere, they may be marked. */
static bool marks_itself(const char *const *sources, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!pl_tap_kernel_is(sources[i]) &&
			(pl_port_uri_can(sources[i]) & PL_PORT_CAN_DATAGRAMS) != 0)
			return false;
	}
	return true;
}

/* Warns when no rule marks packets and the question asks for marked ones: it would find none. */
static void tell_marks(const struct pl_asking *a, const struct pl_tap_rules *rules,
	const char *const *sources, size_t n)
{
	if (!pl_query_reads_marks(a->query) || !marks_itself(sources, n))
		return;
	for (uint32_t i = 0; i < rules->n; i++) {
		if (rules->rules[i].action == PL_TAP_MARK)
			return;
	}
	pl_complain("the question asks for packets that a rule marked (rule), and no --rule marks "
		    "any: add one, such as --rule 'mark proto=tcp dport=23 contains=zorro'");
}

static void flows_ended(const struct pl_asking *a, uint32_t i)
{
	(void)pl_query_ended(a->run, PL_FLAT_FLOW128, i);
	(void)pl_query_ended(a->run, PL_FLAT_FLOW288, i);
}

static int ask_tap(struct pl_asking *a, const char *const *sources, size_t n)
{
	static struct pl_tap_options o;
	static struct pl_tap_count_plan plan;
	struct pl_tap_service *t = calloc(1, sizeof(*t));
	const struct pl_service service = { &pl_tap_service_ops, t };
	int code;

	if (t == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	if (is_live(sources[0]))
		go_live(a);
	a->captures = a->live ? 0 : n;
	a->tap = t;
	for (uint32_t i = 1; i < a->captures; i++)
		flows_ended(a, i);
	o = (struct pl_tap_options){ .sources = sources,
		.n_sources = n,
		.print = { feed, turned, full, a, passed, feed_counts, counting },
		.max_exporters = PL_TAP_EXPORTERS_LISTED,
		.inner = a->args->inner,
		.kinds = kinds_of(a),
		.out = (enum pl_flat_kind)__builtin_ctz(kinds_of(a)),
		.flow = PL_FLOW_CONFIG,
		.in_time = a->captures > 1,
		.rules.payloads = true };
	code = add_rules(a, &o.rules);
	if (code == 0)
		tell_marks(a, &o.rules, sources, n);
	/* Rules made from the question would stand after the user's own, which decide first. */
	if (!a->args->no_push_down && a->args->rules->n == 0) {
		pl_query_push_rules(a->query, sources, n, &o.rules);
		if (pl_query_push_plan(a->query, a->args->count > 0, sources, n, &plan, NULL))
			o.plan = &plan;
	}
	t->o = &o;
	if (code == 0)
		code = serve(a, &service, tell_begin);
	if (code == 0 && !pl_tap_complete(t))
		code = PL_EXIT_FAILED;
	pl_tap_service_close(t);
	free(t);
	return code;
}

/* ---- from a topic ---- */

static bool is_topic(const char *source)
{
	return strncmp(source, PL_KAFKA_SCHEME, strlen(PL_KAFKA_SCHEME)) == 0;
}

#if PL_HAVE_KAFKA
static void feed_partition(
	void *arg, uint32_t partition, const void *records, uint32_t n, uint64_t clock_ns)
{
	struct pl_asking *a = arg;

	pl_query_clock(a->run, clock_ns);
	(void)pl_query_behind(a->run, a->topic_kind, partition, true);
	(void)pl_query_feed(a->run, a->topic_kind, records, n, partition);
}

static void partition_at_end(void *arg, uint32_t partition)
{
	struct pl_asking *a = arg;

	(void)pl_query_behind(a->run, a->topic_kind, partition, false);
}

static void note_clock(void *arg, enum pl_clock_kind clock)
{
	note_clocks(arg, pl_clock_bit(clock));
}

static void tell_topic(void *arg)
{
	pl_complain("asking %s", ((const struct pl_kafka_source *)arg)->name);
}

static int ask_topic(struct pl_asking *a, const char *uri)
{
	static struct pl_kafka_source source;
	const struct pl_service service = { &pl_kafka_source_service, &source };
	const struct pl_kafka_source_options o = { .uri = uri,
		.kind = a->topic_kind,
		.records = feed_partition,
		.at_end = partition_at_end,
		.clock = note_clock,
		.turned = turned,
		.full = full,
		.arg = a };
	int code;

	go_live(a);
	source.o = &o;
	code = serve(a, &service, tell_topic);
	pl_kafka_source_close(&source);
	return code;
}
#else
static int ask_topic(struct pl_asking *a, const char *uri)
{
	struct pl_diag diag = { .text = "" };

	(void)a;
	(void)uri;
	(void)pl_kafka_check(&diag);
	pl_complain_diag(&diag);
	return PL_EXIT_UNAVAILABLE;
}
#endif

/* ---- from files of records ---- */

static void feed_file(
	void *arg, uint32_t file, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct pl_asking *a = arg;

	(void)pl_query_feed_flat(a->run, kind, records, n, file);
}

static void file_passed(void *arg, uint32_t file, enum pl_flat_kind kind, uint64_t ts_ns)
{
	struct pl_asking *a = arg;

	(void)pl_query_passed(a->run, kind, ts_ns, file);
	if (pl_flat_short(kind) != kind)
		(void)pl_query_passed(a->run, pl_flat_short(kind), ts_ns, file);
}

static void file_ended(void *arg, uint32_t file, enum pl_flat_kind kind)
{
	struct pl_asking *a = arg;

	(void)pl_query_ended(a->run, kind, file);
}

/* ---- from regions ---- */

static bool is_region(const char *source)
{
	return strncmp(source, PL_QUERY_REGION, strlen(PL_QUERY_REGION)) == 0;
}

static bool reads(void *arg, enum pl_flat_kind kind)
{
	const struct pl_asking *a = arg;

	return pl_query_reads(a->query, kind) || pl_query_reads(a->query, pl_flat_short(kind));
}

static int read_regions(struct pl_asking *a, const char *const *sources, size_t n)
{
	const struct pl_query_region to = { reads, feed, note_clocks, full, a };

	return pl_query_read_regions(sources, n, &to);
}

/* ---- from histories, captures and ports of reports ---- */

static void feed_reports(void *arg, const struct pl_record_batch *records)
{
	struct pl_asking *a = arg;

	pl_query_clock(a->run, pl_clock_real_ns());
	(void)pl_query_feed_reports(a->run, records, 0);
}

static void tell_reports(void *arg)
{
	const struct pl_query_reports *r = arg;

	pl_complain("asking %s%s", r->uris[0], r->n_uris > 1 ? " and others" : "");
}

static int ask_reports(struct pl_asking *a, const char *const *sources, size_t n)
{
	struct pl_query_reports *r = calloc(1, sizeof(*r));
	const struct pl_service service = { &pl_query_reports_service, r };
	int code;

	if (r == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	*r = (struct pl_query_reports){ .uris = sources,
		.n_uris = n,
		.decode = a->args->decode,
		.feed = feed_reports,
		.turned = turned,
		.full = full,
		.arg = a };
	go_live(a);
	code = serve(a, &service, tell_reports);
	pl_query_reports_close(r);
	free(r);
	return code;
}

/* Gives up privileges before the output, if there is one, starts threads. */
static int confine(void *arg)
{
	struct pl_asking *a = arg;
	int code;

	if (a->into == NULL)
		return pl_client_confine(a->args->client, NULL);
	code = pl_client_confine_writer(a->args->client, pl_query_into_service.files, a->into);
	return code == 0 ? pl_query_into_open(a->into) : code;
}

static int ask_daemon(struct pl_asking *a, const char *url)
{
	struct pl_query_daemon d = { .query = a->query,
		.run = a->run,
		.client = a->args->client,
		.confine = confine,
		.duration_ns = a->args->duration_ns,
		.turned = turned,
		.full = full,
		.arg = a };

	go_live(a);
	return pl_query_daemon_read(&d, url);
}

static int read_records(struct pl_asking *a, const char *const *sources, size_t n)
{
	const struct pl_query_records records = { .query = a->query,
		.run = a->run,
		.decode = a->args->decode,
		.full = full,
		.turned = turned,
		.arg = a };

	return pl_query_is_daemon(sources[0]) ? ask_daemon(a, sources[0])
	       : a->reports                   ? ask_reports(a, sources, n)
					      : pl_query_records_read(&records, sources, n);
}

/* ---- all of them ---- */

bool pl_query_is_member(const struct pl_asking *a, const char *const *sources, size_t n)
{
	return n > 0 && is_topic(sources[0]) && a->args->group != NULL;
}

int pl_query_sources_check(struct pl_asking *a, const char *const *sources, size_t n)
{
	enum pl_flat_kind kind;
	size_t files = 0, regions = 0;

	if (n == 0)
		return pl_fail(PL_EXIT_USAGE,
			pl_query_reads_records(a->query)
				? "query: missing SOURCE: the folder of a history, a capture, or udp://HOST:PORT where reports arrive"
				: "query: missing SOURCE: a capture, packet:IFACE, tc:IFACE, xdp:IFACE, afxdp:IFACE, drops:, udp://HOST:PORT, kafka://HOST/TOPIC, region:PATH or a file of records");
	if (!pl_query_is_member(a, sources, n) &&
		(a->args->to != NULL || a->args->partials != NULL || a->args->transactions))
		return pl_fail(PL_EXIT_USAGE,
			"query: --to, --partials and --transactions are of members of a group: "
			"kafka://HOST/TOPIC with --group NAME%s",
			a->args->to != NULL ? "; rows of others go --into an output" : "");
	if (a->args->rules->n > 0 && (pl_query_reads_records(a->query) || is_topic(sources[0]) ||
					     !pl_query_is_served(a, sources[0])))
		return pl_fail(PL_EXIT_USAGE,
			"query: --rule is of packets that this command takes itself, from a capture, an "
			"interface or udp://HOST:PORT; the records of %s were made before: give --rule "
			"to the tap that makes them",
			sources[0]);
	if (!pl_query_daemon_check(a->query, sources, n))
		return PL_EXIT_USAGE;
	if (pl_query_reads_records(a->query) && !is_topic(sources[0]))
		return pl_query_records_live(a->query, sources, n, &a->reports);
	if (a->args->decode_given)
		return pl_fail(PL_EXIT_USAGE,
			"query: the question reads no paths or hops, and --report-port, --dialect "
			"and the like say how these are decoded");
	for (size_t i = 0; i < n; i++)
		files += pl_query_file_kind(sources[i]) != PL_FLAT_MAX;
	for (size_t i = 0; i < n; i++)
		regions += is_region(sources[i]);
	if (is_topic(sources[0]) && pl_query_reads_records(a->query))
		return pl_fail(PL_EXIT_USAGE,
			"query: a topic has records of packets, DNS messages or flows: paths, hops and events are read from a history, values from a daemon");
	if (is_topic(sources[0]) && (n > 1 || pl_query_kinds_read(a, &kind) > 1))
		return pl_fail(PL_EXIT_USAGE,
			n > 1 ? "query: a topic must be the only source of a question"
			      : "query: a topic has records of one kind, and the question reads several");
	if (is_topic(sources[0]))
		return 0;
	if (files == 0 && regions == 0 && !pl_query_is_daemon(sources[0]) &&
		marks_itself(sources, n) && !pl_query_made_of_packets(a->query))
		return PL_EXIT_USAGE;
	if ((files != 0 && files != n) || (regions != 0 && regions != n))
		return pl_fail(PL_EXIT_USAGE,
			"query: %s cannot be read together with other sources",
			files != 0 ? "files of records" : "regions");
	return 0;
}

bool pl_query_is_served(const struct pl_asking *a, const char *source)
{
	if (pl_query_reads_records(a->query))
		return a->reports;
	return !is_region(source) && !pl_query_is_daemon(source) &&
	       (is_topic(source) || pl_query_file_kind(source) == PL_FLAT_MAX);
}

uint32_t pl_query_sources_partitions(
	const struct pl_asking *a, const char *const *sources, size_t n)
{
	if (is_topic(sources[0]))
		return PL_KAFKA_SOURCE_PARTITIONS;
	if (pl_query_reads_records(a->query))
		return a->reports ? 1 : pl_query_records_partitions(n);
	if (is_region(sources[0]) || n > PL_TAP_PORTS_MAX)
		return 1;
	return pl_query_file_kind(sources[0]) != PL_FLAT_MAX || !is_live(sources[0]) ? (uint32_t)n
										     : 1;
}

int pl_query_sources_read(struct pl_asking *a, const char *const *sources, size_t n)
{
	const struct pl_query_file files = { reads, feed_file, file_passed, file_ended, note_clocks,
		full, a };
	const bool served = pl_query_is_served(a, sources[0]);
	/* Daemons and runtimes need no privileges for their sources, and open them later. */
	const bool opens = a->into != NULL && !served && !pl_query_is_daemon(sources[0]);
	int code = opens ? pl_query_into_open(a->into) : 0;

	(void)pl_query_kinds_read(a, &a->topic_kind);
	if (code != 0)
		return code;
	return pl_query_reads_records(a->query) ? read_records(a, sources, n)
	       : is_topic(sources[0])           ? ask_topic(a, sources[0])
	       : is_region(sources[0])          ? read_regions(a, sources, n)
	       : pl_query_is_daemon(sources[0]) ? ask_daemon(a, sources[0])
	       : served                         ? ask_tap(a, sources, n)
						: pl_query_file_all(sources, n, &files);
}
