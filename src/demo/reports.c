/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The demonstration of reports: a network, a collector, the screen of top, and their totals. Below the
 * events stands what marking finds on links, beside the truth and what reports tell of it.
 */
#include "demo/demo.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "demo/traffic.h"
#include "runtime/confine_reader.h"
#include "runtime/signals.h"
#include "service/daemon.h"
#include "show/json_line.h"
#include "show/top_draw.h"
#include "show/top_terminal.h"

#define SECOND_NS   UINT64_C(1000000000)
#define STORY_NS    (40 * SECOND_NS)
#define SETTLE_NS   (2 * SECOND_NS)
#define DRAIN_NS    (3 * SECOND_NS)
#define PRINT_NS    (5 * SECOND_NS)
#define PRINT_ROWS  20
#define QUEUE_DEPTH 5000
#define NODES       8 /* switches of the network have 1 to 6, ports as few */
#define COLS        80
#define BELOW_LINES 5

struct demo {
	const struct pl_demo_options *options;
	struct pl_daemon daemon;
	struct pl_confine confine;
	struct pl_demo_traffic *traffic;
	struct pl_aggregate *aggregate;
	struct pl_pipeline_stats stats;
	struct pl_demo_account account;
	struct pl_demo_losses_sum losses;
	uint64_t began_ns, lasted_ns, left;
	int signals;
	bool over; /* a signal came */
};

/* ---- drops that reports tell of ---- */

/* By node and port; the output's thread writes. */
static _Atomic uint64_t drops[NODES][NODES];

static void write_paths(struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	(void)now_ns;
	for (uint32_t i = 0; i < batch->n_paths; i++) {
		const struct pl_path *path = &batch->paths[i];
		const struct pl_hop *last;

		if ((path->flags & PL_FLAG_DROPPED) == 0 || path->hop_count == 0)
			continue;
		last = &batch->hops[batch->first_hop[i] + path->hop_count - 1];
		if (last->node < NODES && last->egress_port < NODES)
			atomic_fetch_add(&drops[last->node][last->egress_port], 1);
	}
	pl_count(&e->stats.accepted, batch->n_paths);
	pl_count(&e->stats.delivered, batch->n_paths);
}

static void write_events(
	struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	(void)events;
	(void)now_ns;
	pl_count(&e->stats.accepted, n);
	pl_count(&e->stats.delivered, n);
}

static void close_export(struct pl_export *e)
{
	free(e);
}

static int add_drops(void *arg, struct pl_pipeline *pipeline, struct pl_diag *diag)
{
	static const struct pl_export_ops ops = {
		.name = "drops",
		.write_paths = write_paths,
		.write_events = write_events,
		.close = close_export,
	};

	struct pl_export *e = calloc(1, sizeof(*e));

	(void)arg;
	if (e == NULL)
		return -ENOMEM;
	e->ops = &ops;
	return pl_pipeline_add_output(pipeline, "drops", e, 65536, diag);
}

/* ---- setting up ---- */

static int replace(char **text, const char *with)
{
	char *copy = strdup(with);

	if (copy == NULL)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

/* One source on a free port of loopback, and thresholds that fit the network that is shown. */
static int make_config(struct pl_config *ret, const char *listen)
{
	static const char text[] = "sources:\n  - uri: udp://127.0.0.1:0\n";
	int r = pl_config_parse(ret, "demo", text, sizeof(text) - 1, NULL);

	if (r < 0)
		return r;
	ret->detect.queue_depth.threshold = QUEUE_DEPTH;
	ret->detect.hop_latency.on = false;
	return replace(&ret->web.listen, listen);
}

static int open_daemon(struct demo *d, struct pl_diag *diag)
{
	const struct pl_daemon_hooks hooks = { .ready = add_drops, .arg = d, .alone = true };
	/* The usual address, or a free port when something else is there. */
	static const char *const listens[] = { "127.0.0.1:8400", "127.0.0.1:0" };
	int r = -EADDRINUSE;

	for (size_t i = 0; r == -EADDRINUSE && i < sizeof(listens) / sizeof(listens[0]); i++) {
		struct pl_config config;

		r = make_config(&config, listens[i]);
		if (r == 0)
			r = pl_daemon_new(&d->daemon, &config, NULL, diag);
		if (r < 0) {
			pl_config_done(&config);
			return r;
		}
		/* Sockets are open: nothing more is needed. */
		r = pl_confine_terminal(&d->confine);
		if (r == 0)
			r = pl_confine(&d->confine, diag);
		if (r == 0)
			r = pl_daemon_open(&d->daemon, &hooks, diag);
		if (r < 0)
			pl_daemon_done(&d->daemon);
	}
	return r;
}

static int open_demo(struct demo *d, struct pl_diag *diag)
{
	struct pl_demo_traffic_options traffic = {
		.rate = d->options->rate,
		.story_ns = d->options->duration_ns > 0 && d->options->duration_ns < STORY_NS
				    ? d->options->duration_ns
				    : STORY_NS,
		.seed = d->options->seed,
	};
	struct pl_aggregate_options aggregate;
	char uri[32];
	uint16_t port;
	int r;

	r = open_daemon(d, diag);
	if (r < 0)
		return r;
	pl_config_aggregate(pl_pipeline_config(d->daemon.pipeline), &aggregate);
	r = pl_aggregate_new(&d->aggregate, &aggregate);
	if (r < 0)
		return r;
	pl_pipeline_listener(d->daemon.pipeline, 0, &port);
	snprintf(uri, sizeof(uri), "udp://127.0.0.1:%u", port);
	traffic.uri = uri;
	d->began_ns = pl_clock_mono_ns();
	return pl_demo_traffic_start(&d->traffic, &traffic, diag);
}

static void close_demo(struct demo *d)
{
	pl_demo_traffic_free(d->traffic);
	pl_daemon_done(&d->daemon);
	pl_aggregate_free(d->aggregate);
	pl_confine_end(&d->confine);
	if (d->signals >= 0)
		close(d->signals);
}

/* ---- losses on links ---- */

static const struct pl_top_column loss_columns[] = {
	{ "LOST FROM", "from", 9, PL_TOP_TEXT },
	{ "TO", "to", 9, PL_TOP_TEXT },
	{ "BY MARKING", "lost", 11, PL_TOP_NUMBER },
	{ "IN TRUTH", "true_lost", 10, PL_TOP_NUMBER },
	{ "BY INT", "drop_reports", 10, PL_TOP_NUMBER },
	{ "OF PACKETS", "sent", 11, PL_TOP_NUMBER },
};

static const struct pl_top_screen loss_screen = {
	.name = "losses",
	.columns = loss_columns,
	.n_columns = sizeof(loss_columns) / sizeof(loss_columns[0]),
	.sort = 2,
};

/* The links that lost packets, or all of them. NULL: out of memory. */
static json_t *loss_rows(struct demo *d, bool all)
{
	json_t *rows = json_array();

	pl_demo_traffic_losses(d->traffic, &d->losses);
	for (unsigned int i = 0; i < d->losses.n; i++) {
		const struct pl_demo_link_loss *l = &d->losses.links[i];
		uint64_t told = l->node < NODES && l->port < NODES
					? atomic_load(&drops[l->node][l->port])
					: 0;

		if (all || l->lost != 0 || l->true_lost != 0)
			json_array_append_new(rows,
				json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "from", l->from, "to",
					l->to, "sent", (json_int_t)l->sent, "lost",
					(json_int_t)l->lost, "true_lost", (json_int_t)l->true_lost,
					"drop_reports", (json_int_t)told));
	}
	return rows;
}

static json_t *lost_rows(void *arg)
{
	return loss_rows(arg, false);
}

static void print_losses(struct demo *d)
{
	const struct pl_demo_losses_sum *s = &d->losses;
	json_t *rows = loss_rows(d, false);
	struct pl_buf out;

	pl_buf_init(&out);
	if (json_array_size(rows) > 0) {
		pl_top_titles(&out, &loss_screen, loss_screen.sort, true, COLS);
		pl_buf_chr(&out, '\n');
	}
	for (size_t i = 0; i < json_array_size(rows); i++) {
		pl_top_row(&out, &loss_screen, json_array_get(rows, i), COLS, pl_top_ascii());
		pl_buf_chr(&out, '\n');
	}
	if (s->found_block != 0)
		pl_buf_printf(&out,
			PL_DEMO_LEAK_FROM " to " PL_DEMO_LEAK_TO
					  " loses 1 %% of its packets, found in block %" PRIu64
					  " of 1 s\n",
			s->found_block - s->leak_block + 1);
	if (s->not_vouched > 0)
		pl_buf_printf(&out,
			"left out: %" PRIu64
			" blocks of flows with packets later than the guard band\n",
			s->not_vouched);
	if (!out.failed && out.len > 0)
		fputs(out.data, stdout);
	pl_buf_done(&out);
	json_decref(rows);
}

/* ---- running ---- */

/* Returns how long the network has to go on, at most `most_ns`; 0: its story is over. The network's
 * own time counts: on a slow machine it is behind the clock. */
static uint64_t left_ns(const struct demo *d, uint64_t most_ns)
{
	const uint64_t passed = pl_demo_traffic_passed_ns(d->traffic),
		       all = d->options->duration_ns;

	if (all == 0)
		return most_ns;
	if (passed >= all)
		return 0;
	return all - passed < most_ns ? all - passed : most_ns;
}

static bool ends(void *arg)
{
	struct demo *d = arg;
	int signo;

	d->over = d->over || pl_signals_read(d->signals, &signo);
	return d->over || left_ns(d, 1) == 0;
}

static bool wait_until(struct demo *d, uint64_t until_ns)
{
	uint64_t now;

	while (!ends(d) && (now = pl_clock_mono_ns()) < until_ns) {
		struct pollfd fd = { .fd = d->signals, .events = POLLIN };

		(void)poll(&fd, 1, (int)(left_ns(d, until_ns - now) / 1000000) + 1);
	}
	return ends(d);
}

/* Prints the events that there are, and the losses, until the end, at which it prints them once more, or
 * until nobody reads. */
static int print_on(struct demo *d, struct pl_top_view *v, const struct pl_top_source *source)
{
	const struct pl_top_batch batch = { .times = 1, .rows = PRINT_ROWS };
	uint64_t due_ns = d->began_ns + PRINT_NS;
	bool over = false;
	int code = 0;

	while (code == 0 && !ferror(stdout) && !over) {
		over = wait_until(d, due_ns);
		code = pl_top_view_print(v, source, &batch);
		print_losses(d);
		printf("\n");
		due_ns += PRINT_NS;
	}
	return code;
}

/* Returns an exit code, after an error message. */
static int show_demo(struct demo *d)
{
	const struct pl_top_below below = { &loss_screen, BELOW_LINES, lost_rows, ends, d };
	struct pl_top_source source = { .client = NULL };
	struct pl_client_args args = { .url = NULL };
	struct pl_diag diag = { .text = "" };
	struct pl_top_view view;
	char url[128];
	int code;

	snprintf(url, sizeof(url), "http://%s", pl_http_address(d->daemon.http));
	args.url = url;
	printf("network: %s\nmetrics: %s/metrics\n", pl_demo_traffic_describe(d->traffic), url);
	fflush(stdout);
	code = pl_client_new(&source.client, &args, &diag);
	if (code != 0) {
		pl_complain_diag(&diag);
		return code;
	}
	code = pl_top_view_init(&view, "events", NULL, NULL);
	view.source = pl_client_url(source.client);
	if (code == 0 && pl_top_no_terminal() == NULL) {
		code = pl_top_draw(&view, &source, SECOND_NS, &below);
	} else {
		code = print_on(d, &view, &source);
		pl_top_source_done(&source);
	}
	pl_top_view_done(&view);
	return code;
}

/* Stops the network, waits for reports that are on their way, takes the final figures. */
static int settle(struct demo *d)
{
	uint64_t deadline = pl_clock_mono_ns() + SETTLE_NS;

	d->lasted_ns = pl_clock_mono_ns() - d->began_ns;
	pl_demo_traffic_stop(d->traffic, &d->account);
	pl_demo_traffic_losses(d->traffic, &d->losses);
	do {
		if (pl_pipeline_stats(d->daemon.pipeline, &d->stats) < 0)
			return -ETIMEDOUT;
		if (d->stats.ports.packets + d->stats.ports.kernel_drops >= d->account.sent)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	} while (pl_clock_mono_ns() < deadline);
	d->left = pl_daemon_stop(&d->daemon, DRAIN_NS);
	if (pl_pipeline_stats(d->daemon.pipeline, &d->stats) < 0 ||
		pl_pipeline_aggregate(d->daemon.pipeline, d->aggregate) < 0)
		return -ETIMEDOUT;
	return 0;
}

/* ---- the totals ---- */

static bool balanced(const struct demo *d)
{
	const struct pl_demo_account *a = &d->account;
	const struct pl_pipeline_stats *s = &d->stats;
	uint64_t verdicts = 0;

	for (unsigned int i = 0; i < PL_V_MAX; i++)
		verdicts += s->totals.verdicts[i];
	return a->made == a->sent + a->lost_on_purpose + a->not_sent &&
	       a->sent == s->ports.packets + s->ports.kernel_drops &&
	       s->ports.packets == s->totals.packets && s->totals.packets == verdicts &&
	       s->totals.reports == s->totals.stored && d->left == 0 && d->losses.wrong == 0;
}

static void print_losses_json(struct demo *d, struct pl_json *j)
{
	json_t *rows = loss_rows(d, true);
	char *text = json_dumps(rows, JSON_COMPACT);
	const struct pl_demo_losses_sum *s = &d->losses;

	pl_json_key(j, "marking");
	pl_json_object(j);
	pl_json_number(j, "results", s->results);
	pl_json_number(j, "wrong", s->wrong);
	pl_json_number(j, "not_vouched", s->not_vouched);
	if (s->leak_block != 0 && s->newest > s->leak_block)
		pl_json_number(j, "blocks_since_leak", s->newest - s->leak_block);
	if (s->found_block != 0)
		pl_json_number(j, "found_after_blocks", s->found_block - s->leak_block);
	pl_json_key(j, "links");
	if (text != NULL)
		pl_json_raw(j, text, strlen(text));
	else
		pl_json_null(j);
	pl_json_object_end(j);
	free(text);
	json_decref(rows);
}

static void print_json(struct demo *d)
{
	const struct pl_totals *t = &d->stats.totals;
	struct pl_json_line line;
	struct pl_json *j = pl_json_line_begin(&line, "demo");

	pl_json_key(j, "seconds");
	pl_json_double(j, (double)d->lasted_ns * 1e-9);
	pl_json_number(j, "reports", t->stored);
	pl_json_key(j, "rate");
	pl_json_double(j, (double)t->stored * 1e9 / (double)d->lasted_ns);
	pl_json_number(j, "hops", t->hops);
	pl_json_number(j, "lost", t->lost);
	pl_json_number(j, "paths", pl_aggregate_count(d->aggregate, PL_AGG_PATHS));
	pl_json_number(j, "links", pl_aggregate_count(d->aggregate, PL_AGG_LINKS));
	pl_json_number(j, "queues", pl_aggregate_count(d->aggregate, PL_AGG_QUEUES));
	pl_json_number(j, "exporters", d->stats.exporters);
	pl_json_key(j, "verdicts");
	pl_json_object(j);
	for (unsigned int i = 0; i < PL_V_MAX; i++) {
		if (t->verdicts[i] > 0 || i == PL_V_OK)
			pl_json_number(j, pl_verdict_name(i), t->verdicts[i]);
	}
	pl_json_object_end(j);
	pl_json_key(j, "events");
	pl_json_object(j);
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++)
		pl_json_number(j, pl_event_kind_name(i), t->events[i]);
	pl_json_object_end(j);
	print_losses_json(d, j);
	pl_json_key(j, "accounting");
	pl_json_object(j);
	pl_json_number(j, "made", d->account.made);
	pl_json_number(j, "lost_on_purpose", d->account.lost_on_purpose);
	pl_json_number(j, "not_sent", d->account.not_sent);
	pl_json_number(j, "sent", d->account.sent);
	pl_json_number(j, "kernel_drops", d->stats.ports.kernel_drops);
	pl_json_number(j, "received", d->stats.ports.packets);
	pl_json_number(j, "decoded", t->verdicts[PL_V_OK]);
	pl_json_number(j, "not_decoded", t->packets - t->verdicts[PL_V_OK]);
	pl_json_number(j, "undelivered", d->left);
	pl_json_key(j, "balanced");
	pl_json_bool(j, balanced(d));
	pl_json_object_end(j);
	pl_json_line_end(&line);
}

static void print_text(struct demo *d)
{
	const struct pl_totals *t = &d->stats.totals;

	printf("\n%.1f s: %" PRIu64 " reports of %" PRIu64 " exporters, %" PRIu64
	       " hops, %u paths\n",
		(double)d->lasted_ns * 1e-9, t->stored, d->stats.exporters, t->hops,
		pl_aggregate_count(d->aggregate, PL_AGG_PATHS));
	printf("events:");
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++) {
		if (t->events[i] > 0)
			printf(" %s %" PRIu64, pl_event_kind_name(i), t->events[i]);
	}
	printf("\n");
	print_losses(d);
	printf("totals: made %" PRIu64 " = sent %" PRIu64 " + lost on purpose %" PRIu64
	       " + not sent %" PRIu64 "\n"
	       "        sent %" PRIu64 " = received %" PRIu64 " + dropped by the kernel %" PRIu64
	       "\n"
	       "        received %" PRIu64 " = decoded %" PRIu64 " + not decoded %" PRIu64
	       "; %" PRIu64 " found missing\n"
	       "        %s\n",
		d->account.made, d->account.sent, d->account.lost_on_purpose, d->account.not_sent,
		d->account.sent, d->stats.ports.packets, d->stats.ports.kernel_drops, t->packets,
		t->verdicts[PL_V_OK], t->packets - t->verdicts[PL_V_OK], t->lost,
		balanced(d) ? "they agree" : "THEY DO NOT AGREE");
	printf("\nnext:   pathline listen                    see what your switches send, decoded\n"
	       "        pathline config init > FILE        then: pathline run -c FILE\n"
	       "        pathline gen int --help            more networks, versions and faults\n");
}

/* ---- all of it ---- */

int pl_demo_reports(const struct pl_demo_options *options)
{
	struct demo d = { .options = options,
		.signals = pl_signals_fd((const int[]){ 0 }, SFD_NONBLOCK) };
	struct pl_diag diag = { .text = "" };
	int r = d.signals < 0 ? -errno : open_demo(&d, &diag), code, shown = 0;

	if (r == 0) {
		if (options->headless)
			(void)wait_until(&d, UINT64_MAX);
		else
			shown = show_demo(&d);
		r = settle(&d);
	}
	if (r < 0) {
		if (diag.text[0] == '\0')
			pl_diag_set(&diag, "%s", strerror(-r));
		pl_complain_diag(&diag);
		code = r == -ENOMEM ? PL_EXIT_FAILED : PL_EXIT_UNAVAILABLE;
	} else {
		if (strcmp(options->form, "table") == 0)
			print_text(&d);
		else
			print_json(&d);
		code = shown != 0                            ? shown
		       : balanced(&d) && fflush(stdout) == 0 ? PL_EXIT_OK
							     : PL_EXIT_FAILED;
	}
	close_demo(&d);
	return code;
}
