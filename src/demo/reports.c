/* SPDX-License-Identifier: BSD-2-Clause */
/* The demonstration of reports: a network, a collector, a view, and their totals. */
#include "demo/demo.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "demo/traffic.h"
#include "demo/view.h"
#include "runtime/confine.h"
#include "runtime/signals.h"
#include "service/daemon.h"
#include "show/json_line.h"

#define SECOND_NS   UINT64_C(1000000000)
#define STORY_NS    (40 * SECOND_NS)
#define SETTLE_NS   (2 * SECOND_NS)
#define DRAIN_NS    (3 * SECOND_NS)
#define FRAME_MS    250
#define STATUS_NS   (5 * SECOND_NS)
#define QUEUE_DEPTH 5000

struct demo {
	const struct pl_demo_options *options;
	struct pl_daemon daemon;
	struct pl_confine confine;
	struct pl_demo_traffic *traffic;
	struct pl_demo_view *view;
	struct pl_aggregate *aggregate;
	struct pl_pipeline_stats stats;
	struct pl_demo_account account;
	struct pl_demo_losses_sum losses;
	uint64_t began_ns, lasted_ns, left;
	int signals;
};

/* ---- setting up ---- */

static int add_view(void *arg, struct pl_pipeline *pipeline, struct pl_diag *diag)
{
	const struct demo *d = arg;
	struct pl_export *e;
	int r = pl_demo_view_export(d->view, &e);

	return r < 0 ? r : pl_pipeline_add_output(pipeline, "view", e, 65536, diag);
}

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
	const struct pl_daemon_hooks hooks = { .ready = add_view, .arg = d, .alone = true };
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
		.lost = pl_demo_view_lost,
	};
	struct pl_aggregate_options aggregate;
	char uri[32];
	uint16_t port;
	int r;

	r = pl_demo_view_new(&d->view);
	if (r == 0)
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
	traffic.arg = d->view;
	d->began_ns = pl_clock_mono_ns();
	return pl_demo_traffic_start(&d->traffic, &traffic, diag);
}

static void close_demo(struct demo *d)
{
	pl_demo_traffic_free(d->traffic);
	pl_daemon_done(&d->daemon);
	pl_demo_view_free(d->view);
	pl_aggregate_free(d->aggregate);
	if (d->signals >= 0)
		close(d->signals);
}

/* ---- running ---- */

/* Waits; true when a signal or a key asks for the end. */
static bool wait_or_end(struct demo *d, int timeout_ms, bool keys)
{
	struct pollfd fds[2] = { { .fd = d->signals, .events = POLLIN },
		{ .fd = keys ? STDIN_FILENO : -1, .events = POLLIN } };

	if (poll(fds, 2, timeout_ms) <= 0)
		return false;
	if ((fds[0].revents & POLLIN) != 0) {
		int signo;

		return pl_signals_read(d->signals, &signo);
	}
	if ((fds[1].revents & (POLLIN | POLLHUP)) != 0) {
		char key;

		return read(STDIN_FILENO, &key, 1) == 1 && (key == 'q' || key == 'Q');
	}
	return false;
}

/* Returns how long the network has to go on, at most until the next picture; 0: its story is told.
 * Its own time counts: on a slow machine it is behind the clock. */
static int left_ms(const struct demo *d)
{
	const uint64_t passed = pl_demo_traffic_passed_ns(d->traffic),
		       all = d->options->duration_ns;

	if (all == 0)
		return FRAME_MS;
	if (passed >= all)
		return 0;
	return all - passed < FRAME_MS * UINT64_C(1000000) ? (int)((all - passed) / 1000000) + 1
							   : FRAME_MS;
}

static void run_demo(struct demo *d)
{
	bool screen = !d->options->headless && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
	uint64_t stored = 0, stored_at_ns = d->began_ns, status_ns = d->began_ns;
	char metrics[128];
	struct pl_demo_frame frame = {
		.traffic = pl_demo_traffic_describe(d->traffic),
		.metrics = metrics,
		.stats = &d->stats,
		.aggregate = d->aggregate,
		.losses = &d->losses,
	};

	snprintf(metrics, sizeof(metrics), "http://%s/metrics", pl_http_address(d->daemon.http));
	if (!d->options->headless && !screen)
		printf("network: %s\nmetrics: %s\n", frame.traffic, metrics);
	if (screen)
		pl_demo_view_terminal(d->view, true);
	for (;;) {
		const int ms = left_ms(d);
		uint64_t now;

		if (ms == 0 || wait_or_end(d, ms, screen))
			break;
		if (d->options->headless || pl_pipeline_stats(d->daemon.pipeline, &d->stats) < 0 ||
			pl_pipeline_aggregate(d->daemon.pipeline, d->aggregate) < 0)
			continue;
		pl_demo_traffic_losses(d->traffic, &d->losses);
		now = pl_clock_mono_ns();
		frame.seconds = (double)(now - d->began_ns) * 1e-9;
		if (now - stored_at_ns >= SECOND_NS) {
			frame.rate = (double)(d->stats.totals.stored - stored) * 1e9 /
				     (double)(now - stored_at_ns);
			stored = d->stats.totals.stored;
			stored_at_ns = now;
		}
		if (screen) {
			pl_demo_view_draw(d->view, &frame);
		} else {
			bool status = now - status_ns >= STATUS_NS;

			pl_demo_view_print(d->view, &frame, status);
			if (status)
				status_ns = now;
			/* Nobody reads any more. */
			if (ferror(stdout))
				break;
		}
	}
	d->lasted_ns = pl_clock_mono_ns() - d->began_ns;
	pl_demo_view_terminal(d->view, false);
	frame.last = true;
	if (!d->options->headless && !screen)
		pl_demo_view_print(d->view, &frame, false);
}

/* Stops the network, waits for reports that are on their way, takes the final figures. */
static int settle(struct demo *d)
{
	uint64_t deadline = pl_clock_mono_ns() + SETTLE_NS;

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

/* ---- the books ---- */

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

static void print_losses_json(const struct demo *d, struct pl_json *j)
{
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
	pl_json_array(j);
	for (unsigned int i = 0; i < s->n; i++) {
		const struct pl_demo_link_loss *l = &s->links[i];

		pl_json_object(j);
		pl_json_key(j, "from");
		pl_json_str(j, l->from);
		pl_json_key(j, "to");
		pl_json_str(j, l->to);
		pl_json_number(j, "sent", l->sent);
		pl_json_key(j, "lost");
		pl_json_i64(j, l->lost);
		pl_json_number(j, "true_lost", l->true_lost);
		pl_json_number(j, "drop_reports", pl_demo_view_drops(d->view, l->node, l->port));
		pl_json_object_end(j);
	}
	pl_json_array_end(j);
	pl_json_object_end(j);
}

static void print_losses(const struct demo *d)
{
	const struct pl_demo_losses_sum *s = &d->losses;

	for (unsigned int i = 0; i < s->n && (s->links[i].lost != 0 || s->links[i].true_lost != 0);
		i++) {
		const struct pl_demo_link_loss *l = &s->links[i];

		printf("lost:   %s to %s %" PRId64 " of %" PRIu64 " by marking, %" PRIu64
		       " in truth, %" PRIu64 " by INT\n",
			l->from, l->to, l->lost, l->sent, l->true_lost,
			pl_demo_view_drops(d->view, l->node, l->port));
	}
	if (s->found_block != 0)
		printf("        " PL_DEMO_LEAK_FROM " to " PL_DEMO_LEAK_TO
		       " loses 1 %% of its packets, found in block %" PRIu64 " of 1 s\n",
			s->found_block - s->leak_block + 1);
	if (s->not_vouched > 0)
		printf("        left out: %" PRIu64
		       " blocks of flows with packets later than the guard band\n",
			s->not_vouched);
}

static void print_json(const struct demo *d)
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

static void print_text(const struct demo *d)
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
	struct demo d = { .options = options, .signals = pl_signals_fd((const int[]){ 0 }, 0) };
	struct pl_diag diag = { .text = "" };
	int r = d.signals < 0 ? -errno : open_demo(&d, &diag), code;

	if (r == 0) {
		run_demo(&d);
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
		code = balanced(&d) && fflush(stdout) == 0 ? PL_EXIT_OK : PL_EXIT_FAILED;
	}
	close_demo(&d);
	return code;
}
