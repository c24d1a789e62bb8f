/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline translate: DTA reports from a port into telemetry memory. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/confine.h"
#include "cli/json_line.h"
#include "cli/notify.h"
#include "cli/signals.h"
#include "cli/translate_out.h"
#include "memory/region.h"
#include "netio/port.h"

#define PORTS_MAX       16
#define DRAIN_TURNS     64 /* what sockets hold when it is told to end is taken, within reason */
#define OUT_FDS_MAX     (1 + PL_COLLECTORS_MAX)
#define BATCHES_A_TURN  16
#define CAPTURE_WAIT_MS 500 /* of a pipe; a signal may come just before the wait */
#define WAIT_MAX_NS     UINT64_C(1000000000)

static const char *const forms[] = { "plain", "tracking", NULL };

static struct {
	const char *form;
	uint64_t collectors, batch, cache_rows, merge, reporters, sketch_reporters, columns;
	uint64_t flush_ns, count, duration_ns, nack_tries, nack_interval_ns, nack_port;
	double reporter_rate;
	struct pl_opt_list allow, above, store_rates;
	const char *keep_epochs, *user, *group;
	uint64_t epoch_ns;
	bool partial, stats;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Reports", NULL, NULL, NULL, NULL },
		{ PL_OPT_CHOICE, 0, "form", &args.form, "FORM",
			"what reporters speak that do not speak pathline's own form (default tracking)",
			forms },
		{ PL_OPT_LIST, 0, "allow", &args.allow, "PREFIX",
			"take reports from these addresses only; may be repeated", NULL },
		{ PL_OPT_RATE, 0, "reporter-rate", &args.reporter_rate, "RATE",
			"the most reports per second of one reporter", NULL },
		{ PL_OPT_LIST, 0, "store-rate", &args.store_rates, "[STORE=]RATE",
			"the most reports per second into each region, or into region STORE; may be repeated",
			NULL },
		{ PL_OPT_U64, 0, "reporters", &args.reporters, "COUNT",
			"reporters known at once (default 1024)", NULL },
		{ PL_OPT_U64, 0, "nack-tries", &args.nack_tries, "COUNT",
			"times that a missing report is asked for (default 10); 0: never", NULL },
		{ PL_OPT_DURATION, 0, "nack-interval", &args.nack_interval_ns, "TIME",
			"between the first two of them, then twice as long up to 16 times (default 1ms)",
			NULL },
		{ PL_OPT_U64, 0, "nack-port", &args.nack_port, "PORT",
			"where reporters of the tracking form listen (default where they send from; the "
			"published ones 40044)",
			NULL },
		{ PL_OPT_LIST, 0, "above", &args.above, "STORE=VALUE[@OFFSET+WIDTH]",
			"take only what is greater than VALUE into region STORE: increments, sums of "
			"paths, numbers of WIDTH bytes at OFFSET of values and entries",
			NULL },
		{ PL_OPT_HEADING, 0, "Gathering", NULL, NULL, NULL, NULL },
		{ PL_OPT_DURATION, 0, "flush", &args.flush_ns, "TIME",
			"the longest that entries, increments and postcards wait (default 100ms); a "
			"sketch's epoch (default 10s)",
			NULL },
		{ PL_OPT_U64, 0, "batch", &args.batch, "COUNT",
			"append: entries written together (default 16, or as many as the region takes)",
			NULL },
		{ PL_OPT_U64, 0, "merge", &args.merge, "COUNT",
			"counters: increments made into one (default 64)", NULL },
		{ PL_OPT_U64, 0, "cache-rows", &args.cache_rows, "COUNT",
			"keys gathered at once (default 4096 counters, 32768 flows)", NULL },
		{ PL_OPT_FLAG, 0, "partial", &args.partial, NULL,
			"postcards: write paths that are known to be cut short", NULL },
		{ PL_OPT_U64, 0, "sketch-reporters", &args.sketch_reporters, "COUNT",
			"who delivers each sketch (default 1)", NULL },
		{ PL_OPT_HEADING, 0, "Running", NULL, NULL, NULL, NULL },
		{ PL_OPT_U64, 0, "collectors", &args.collectors, "COUNT",
			"the regions are those of so many collectors, one after the other (default 1)",
			NULL },
		PL_ARGS_EPOCHS(args.epoch_ns, args.keep_epochs, "when their reporters do"),
		{ PL_OPT_U64, 'n', "count", &args.count, "COUNT", "stop after this many reports",
			NULL },
		PL_ARGS_CONFINE(args.user, args.group),
		PL_ARGS_SERVING(args.duration_ns, args.stats),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* Of which 0 stands for a default further down. */
static const struct pl_arg_number numbers[] = { { "batch", &args.batch }, { "merge", &args.merge },
	{ "cache-rows", &args.cache_rows }, { "reporters", &args.reporters },
	{ "sketch-reporters", &args.sketch_reporters }, { "flush", &args.flush_ns },
	{ "nack-interval", &args.nack_interval_ns } };

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

struct translate {
	struct pl_confine confine;
	const struct pl_opt_list *operands;
	struct pl_port *ports[PORTS_MAX];
	struct pollfd fds[PORTS_MAX + OUT_FDS_MAX];
	unsigned int n_ports;
	bool live, broken, ended;
	int nack_fd; /* not ours when it is a port's */
	bool own_nack_fd;
	struct pl_translate_out out;
	struct pl_translator *translator;
	struct pl_batch packets;
	uint64_t file_ns; /* time of a capture's packets, which never goes back here */
	uint64_t packets_taken;
	uint64_t
		not_dta; /* frames that hold no UDP datagram, or of which the capture has a part only */
	uint64_t nacks_unsent; /* the system refused */
};

static volatile sig_atomic_t stop, asked, epoch_asked;

static void on_signal(int signo)
{
	if (signo == SIGUSR1)
		asked = 1;
	else if (signo == SIGUSR2)
		epoch_asked = 1;
	else
		stop = 1;
}

/* ---- ports ---- */

static int complain(int r, const struct pl_diag *diag, int exit_code)
{
	if (diag->text[0] != '\0')
		pl_complain_diag(diag);
	else
		pl_complain("%s", strerror(-r));
	return exit_code;
}

/* As many sockets as the URI asks for. 0, or an exit code; complains. */
static int open_ports(struct translate *x, const char *uri)
{
	struct pl_diag diag = { .text = "" };
	int n = pl_port_uri_sockets(uri, &diag);

	if (n < 0 || n > PORTS_MAX) {
		if (n > PORTS_MAX)
			pl_diag_set(&diag, "at most %d sockets", PORTS_MAX);
		return complain(n, &diag, PL_EXIT_USAGE);
	}
	while (x->n_ports < (unsigned int)n) {
		const struct pl_port_options o = { .rights = pl_confine_rights(&x->confine),
			.index = x->n_ports,
			.of = (unsigned int)n,
			.with = x->n_ports > 0 ? x->ports[0] : NULL };
		struct pl_port *port;
		int r = pl_port_open(&port, uri, PL_PORT_RECV, &o, &diag);

		if (r < 0)
			return complain(r, &diag,
				r == -EINVAL                  ? PL_EXIT_USAGE
				: r == -EACCES || r == -EPERM ? PL_EXIT_PRIVILEGE
							      : PL_EXIT_UNAVAILABLE);
		x->fds[x->n_ports] = (struct pollfd){ .fd = pl_port_fd(port), .events = POLLIN };
		x->ports[x->n_ports++] = port;
	}
	return 0;
}

/* NACKs leave from the socket that reports came to; reports in frames have none, so there is one of its own. */
static void open_nacks(struct translate *x, const char *uri)
{
	const char *scheme = pl_port_uri_scheme(uri);

	x->nack_fd = -1;
	if (scheme != NULL && strcmp(scheme, "udp") == 0) {
		x->nack_fd = pl_port_fd(x->ports[0]);
	} else if (x->live) {
		x->nack_fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		x->own_nack_fd = x->nack_fd >= 0;
	}
}

static void send_nack(
	void *arg, const struct pl_addr *to, uint16_t port, const void *bytes, size_t n)
{
	struct translate *x = arg;
	struct sockaddr_storage local = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(local);
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	ssize_t sent = -1;

	memcpy(&v6.sin6_addr, to->b, 16);
	memcpy(&v4.sin_addr, to->b + 12, 4);
	if (x->nack_fd >= 0 && getsockname(x->nack_fd, (struct sockaddr *)&local, &len) == 0)
		sent = local.ss_family == AF_INET
			       ? sendto(x->nack_fd, bytes, n, MSG_DONTWAIT,
					 (const struct sockaddr *)&v4, sizeof(v4))
			       : sendto(x->nack_fd, bytes, n, MSG_DONTWAIT,
					 (const struct sockaddr *)&v6, sizeof(v6));
	x->nacks_unsent += sent < 0;
}

static void apply(void *arg, const struct pl_op *ops, size_t n)
{
	struct translate *x = arg;

	x->out.ops(x->out.arg, ops, n);
}

/* ---- packets ---- */

static bool enough(const struct translate *x)
{
	return args.count != 0 && pl_translator_counters(x->translator)->reports >= args.count;
}

static void receive(struct translate *x, struct pl_port *port)
{
	struct pl_diag diag = { .text = "" };

	for (int i = 0; i < BATCHES_A_TURN && !enough(x); i++) {
		int r = pl_port_recv(port, &x->packets, x->live ? 0 : CAPTURE_WAIT_MS, &diag);
		uint64_t now_ns = pl_clock_mono_ns();

		if (r == -ENODATA) {
			x->ended = true;
			return;
		}
		if (r < 0) {
			complain(r, &diag, 0);
			/* An interface that went or came back is news; the port lives on. */
			x->broken = r != -ENETDOWN && r != -EAGAIN;
			return;
		}
		if (r == 0)
			return;
		for (uint32_t k = 0; k < x->packets.n; k++) {
			if (x->packets.pkts[k].ts_ns > x->file_ns)
				x->file_ns = x->packets.pkts[k].ts_ns;
			x->packets_taken++;
			x->not_dta += !pl_translator_packet(
				x->translator, x->live ? now_ns : x->file_ns, &x->packets.pkts[k]);
			if (!x->live)
				pl_translator_tick(x->translator, x->file_ns);
			if (x->out.pressed != NULL)
				x->out.pressed(x->out.arg, x->translator);
		}
		pl_translator_done(x->translator);
		pl_port_release(port, &x->packets);
	}
}

/* ---- the account ---- */

static void print_stats(struct translate *x)
{
	const struct pl_translator_counters *c = pl_translator_counters(x->translator);
	struct pl_translator_held held = pl_translator_held(x->translator);
	struct pl_port_stats port = { 0 };
	struct pl_json_line line;
	struct pl_json *json;

	for (unsigned int i = 0; i < x->n_ports; i++) {
		struct pl_port_stats one;

		pl_port_stats(x->ports[i], &one);
		pl_port_stats_add(&port, &one);
	}
	json = pl_json_line_begin(&line, NULL);
	pl_json_number(json, "packets", x->packets_taken);
	pl_json_number(json, "kernel_drops", port.kernel_drops);
	pl_json_number(json, "not_udp", x->not_dta);
	pl_json_number(json, "datagrams", c->datagrams);
	pl_json_number(json, "reports", c->reports);
	pl_json_number(json, "accepted", c->accepted);
	pl_json_number(json, "duplicates", c->duplicates);
	pl_json_key(json, "unreadable");
	pl_json_object(json);
	for (int i = 1; i < PL_DTA_VERDICT_MAX; i++)
		pl_json_number(json, pl_dta_verdict_name((enum pl_dta_verdict)i), c->faults[i]);
	pl_json_object_end(json);
	pl_json_key(json, "refused");
	pl_json_object(json);
	for (int i = 0; i < PL_REFUSED_MAX; i++)
		pl_json_number(json, pl_refusal_name((enum pl_refusal)i), c->refused[i]);
	pl_json_object_end(json);
	pl_json_number(json, "lost", c->lost);
	pl_json_number(json, "gaps", c->gaps);
	pl_json_number(json, "restarts", c->restarts);
	pl_json_number(json, "displaced", c->displaced);
	pl_json_number(json, "taken_up", c->taken_up);
	pl_json_number(json, "taken_up_at", c->taken_up_at);
	pl_json_number(json, "nacks", c->nacks);
	pl_json_number(json, "answers", c->answers);
	pl_json_number(json, "nacks_unsent", x->nacks_unsent);
	pl_json_number(json, "writes", c->writes);
	pl_json_number(json, "adds", c->adds);
	pl_json_number(json, "write_bytes", c->write_bytes);
	pl_json_number(json, "immediates", c->immediates);
	pl_json_number(json, "entries_published", c->entries_published);
	pl_json_number(json, "batches", c->batches);
	pl_json_number(json, "increments_merged", c->increments_merged);
	pl_json_number(json, "additions", c->additions);
	pl_json_number(json, "paths_written", c->paths_written);
	pl_json_number(json, "paths_complete", c->paths_complete);
	pl_json_number(json, "paths_evicted", c->paths_evicted);
	pl_json_number(json, "paths_short", c->paths_short);
	pl_json_number(json, "columns_merged", c->columns_merged);
	pl_json_number(json, "columns_written", c->columns_written);
	pl_json_number(json, "epochs_complete", c->epochs_complete);
	pl_json_number(json, "epochs_incomplete", c->epochs_incomplete);
	pl_json_number(json, "held", held.entries + held.increments + held.postcards);
	pl_json_number(json, "memory_bytes", pl_translator_memory(x->translator));
	pl_json_key(json, "out");
	pl_json_object(json);
	x->out.stats(x->out.arg, json);
	pl_json_object_end(json);
	pl_json_line_end(&line);
}

static void tell_account(const struct translate *x)
{
	const struct pl_translator_counters *c = pl_translator_counters(x->translator);
	uint64_t ops;

	fprintf(stderr, "%" PRIu64 " reports in %" PRIu64 " datagrams: %" PRIu64 " accepted",
		c->reports, c->datagrams, c->accepted);
	if (c->duplicates > 0)
		fprintf(stderr, ", %" PRIu64 " duplicates", c->duplicates);
	if (c->restarts > 0)
		fprintf(stderr, ", %" PRIu64 " restarts of reporters", c->restarts);
	if (c->displaced > 0)
		fprintf(stderr, ", %" PRIu64 " reporters displaced by others", c->displaced);
	if (c->taken_up > 0)
		fprintf(stderr, ", %" PRIu64 " streams taken up late, the last one at %" PRIu64,
			c->taken_up, c->taken_up_at);
	for (int i = 1; i < PL_DTA_VERDICT_MAX; i++) {
		if (c->faults[i] > 0)
			fprintf(stderr, ", %" PRIu64 " unreadable (%s)", c->faults[i],
				pl_dta_verdict_name((enum pl_dta_verdict)i));
	}
	for (int i = 0; i < PL_REFUSED_MAX; i++) {
		if (c->refused[i] > 0)
			fprintf(stderr, ", %" PRIu64 " refused (%s)", c->refused[i],
				pl_refusal_name((enum pl_refusal)i));
	}
	fprintf(stderr, "; %" PRIu64 " writes, %" PRIu64 " additions", c->writes, c->adds);
	if (x->out.lost != NULL && x->out.lost(x->out.arg, &ops))
		fprintf(stderr, "; of them %" PRIu64 " and more for regions that were cut, lost",
			ops);
	fputc('\n', stderr);
}

/* ---- running ---- */

static uint64_t wait_ns(const struct translate *x, uint64_t now_ns, uint64_t end_ns)
{
	uint64_t until = pl_translator_due_ns(x->translator);

	if (end_ns < until)
		until = end_ns;
	if (until <= now_ns)
		return 0;
	return until - now_ns < WAIT_MAX_NS ? until - now_ns : WAIT_MAX_NS;
}

/* Receives what there is, for as long as the wait allows. */
static void receive_live(struct translate *x, uint64_t wait, const struct pl_signals *signals)
{
	unsigned int n = x->n_ports;

	if (x->out.fds != NULL)
		n += x->out.fds(x->out.arg, x->fds + n, OUT_FDS_MAX);
	if (pl_signals_poll(signals, x->fds, n, wait) == 0)
		return;
	for (unsigned int i = 0; i < x->n_ports; i++) {
		if (x->fds[i].revents != 0)
			receive(x, x->ports[i]);
	}
}

static void loop(struct translate *x, const struct pl_signals *signals)
{
	uint64_t now_ns = pl_clock_mono_ns(), out_ns = UINT64_MAX;
	uint64_t end_ns = args.duration_ns != 0 ? now_ns + args.duration_ns : UINT64_MAX;

	while (!stop && !x->broken && !x->ended && !enough(x) && now_ns < end_ns) {
		if (x->out.turn != NULL)
			out_ns = x->out.turn(x->out.arg, x->translator, now_ns);
		if (x->live)
			receive_live(
				x, wait_ns(x, now_ns, end_ns < out_ns ? end_ns : out_ns), signals);
		else
			receive(x, x->ports[0]);
		now_ns = pl_clock_mono_ns();
		if (x->live)
			pl_translator_tick(x->translator, now_ns);
		if (asked != 0)
			print_stats(x);
		asked = 0;
		if (epoch_asked != 0 && x->out.next_epoch != NULL)
			x->out.next_epoch(x->out.arg);
		else if (epoch_asked != 0)
			pl_complain("no region turns when it is asked to");
		epoch_asked = 0;
	}
	for (int i = 0; i < DRAIN_TURNS && stop && x->live && !x->broken && !enough(x); i++) {
		const uint64_t before = x->packets_taken;

		for (unsigned int k = 0; k < x->n_ports && !x->broken; k++)
			receive(x, x->ports[k]);
		if (x->packets_taken == before)
			break;
	}
	pl_translator_flush(x->translator, now_ns);
	if (x->out.finish != NULL)
		x->out.finish(x->out.arg);
}

/* ---- what was asked for ---- */

/* "STORE=VALUE[@OFFSET+WIDTH]" */
static int parse_above(const char *text, struct pl_dta_store *stores, unsigned int n)
{
	char copy[96], *value, *at, *width;
	uint64_t store, above, offset = 0, bytes = 0;
	const struct pl_store_params *p;
	struct pl_dta_filter *f;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, strlen(text) + 1);
	value = strchr(copy, '=');
	if (value == NULL)
		return -EINVAL;
	*value++ = '\0';
	at = strchr(value, '@');
	if (at != NULL) {
		*at++ = '\0';
		width = strchr(at, '+');
		if (width == NULL)
			return -EINVAL;
		*width++ = '\0';
		if (pl_parse_u64(at, &offset) < 0 || pl_parse_u64(width, &bytes) < 0 ||
			offset > UINT16_MAX || bytes == 0 || bytes > 8)
			return -EINVAL;
	}
	if (pl_parse_u64(copy, &store) < 0 || pl_parse_u64(value, &above) < 0 || store >= n)
		return -EINVAL;
	p = &stores[store].params;
	f = &stores[store].filter;
	if (bytes == 0) {
		bytes = p->primitive == PL_APPEND ? p->append.entry_bytes
						  : p->key_write.value_bytes;
		bytes = bytes > 8 ? 8 : bytes;
	}
	*f = (struct pl_dta_filter){
		.on = true, .width = (uint8_t)bytes, .offset = (uint16_t)offset, .above = above
	};
	return 0;
}

/* "RATE" is of all stores, "STORE=RATE" of one, wherever it stands. */
static int parse_store_rate(const char *text, bool one, struct pl_dta_store *stores, unsigned int n)
{
	const char *equals = strchr(text, '=');
	uint64_t store;
	char number[24];
	double rate;

	if (pl_parse_rate(equals != NULL ? equals + 1 : text, &rate) < 0 || rate == 0)
		return -EINVAL;
	if (equals == NULL) {
		for (unsigned int i = 0; !one && i < n; i++)
			stores[i].quota.rate = rate;
		return 0;
	}
	if ((size_t)(equals - text) >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, (size_t)(equals - text));
	number[equals - text] = '\0';
	if (pl_parse_u64(number, &store) < 0 || store >= n)
		return -EINVAL;
	if (one)
		stores[store].quota.rate = rate;
	return 0;
}

/* 0, or an exit code; complains. */
static int make_stores(const struct pl_translate_out *out, struct pl_dta_store *stores)
{
	for (unsigned int i = 0; i < out->n_stores; i++) {
		const struct pl_store_params *p = &out->stores[i];
		struct pl_dta_store *s = &stores[i];

		*s = (struct pl_dta_store){
			.params = *p,
			.flush_ns = args.flush_ns,
			.partial = args.partial,
			.reporters = (uint32_t)args.sketch_reporters,
			.cache_rows = (uint32_t)args.cache_rows,
			.merge_max = (uint32_t)args.merge,
			.batch = (uint32_t)args.batch,
		};
	}
	for (size_t i = 0; i < 2 * args.store_rates.n; i++) {
		const char *text = args.store_rates.items[i % args.store_rates.n];

		if (parse_store_rate(text, i >= args.store_rates.n, stores, out->n_stores) < 0) {
			pl_complain(
				"--store-rate %s: RATE or STORE=RATE, more than 0, stores 0 to %u; "
				"without the option there is no limit",
				text, out->n_stores - 1);
			return PL_EXIT_USAGE;
		}
	}
	for (size_t i = 0; i < args.above.n; i++) {
		if (parse_above(args.above.items[i], stores, out->n_stores) < 0) {
			pl_complain(
				"--above %s: STORE=VALUE or STORE=VALUE@OFFSET+WIDTH, stores 0 to %u",
				args.above.items[i], out->n_stores - 1);
			return PL_EXIT_USAGE;
		}
	}
	return 0;
}

static int make_translator(struct translate *x, bool file)
{
	static struct pl_dta_store stores[PL_DTA_STORES_MAX];
	static struct pl_prefix access[PL_ACCESS_MAX];
	const struct pl_op_sink sink = { apply, send_nack, x };
	const struct pl_translator_config config = {
		.stores = stores,
		.n_stores = x->out.n_stores,
		.collectors = x->out.collectors,
		.form = strcmp(args.form, "plain") == 0 ? PL_DTA_PLAIN : PL_DTA_TRACKING,
		.access = access,
		.n_access = (unsigned int)args.allow.n,
		.reporters = (uint32_t)args.reporters,
		.reporter_quota = { .rate = args.reporter_rate > 0 ? args.reporter_rate : 0 },
		.nack_interval_ns = args.nack_interval_ns,
		/* Nobody hears what a file's reporters are asked. */
		.nack_tries = file ? 0 : (uint32_t)args.nack_tries,
		.nack_port = (uint16_t)args.nack_port,
	};
	struct pl_diag diag = { .text = "" };
	int r;

	if (x->out.n_stores > PL_DTA_STORES_MAX) {
		pl_complain("translate: at most %u regions", PL_DTA_STORES_MAX);
		return PL_EXIT_USAGE;
	}
	r = make_stores(&x->out, stores);
	if (r == 0)
		r = pl_arg_prefixes("allow", &args.allow, access, PL_ACCESS_MAX);
	if (r != 0)
		return r;
	r = pl_translator_new(&x->translator, &config, &sink, &diag);
	if (r == 0 && x->out.resume != NULL)
		r = x->out.resume(x->out.arg, x->translator);
	return r == 0 ? 0 : complain(r, &diag, r == -EINVAL ? PL_EXIT_USAGE : PL_EXIT_FAILED);
}

/* Numbers that have less room further down. 0, or an exit code; complains. */
static int check_args(const struct pl_opt_list *operands)
{
	const uint64_t *const words[] = { &args.batch, &args.cache_rows, &args.merge,
		&args.reporters, &args.sketch_reporters, &args.nack_tries };

	if (pl_arg_numbers_end("translate", numbers, NUMBERS) != 0)
		return PL_EXIT_USAGE;
	if (operands->n < 2) {
		pl_complain(
			"translate: from where to where? Give a port and region files or roce://");
		return PL_EXIT_USAGE;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (*words[i] > 1u << 28) {
			pl_complain("translate: %" PRIu64 " is too many", *words[i]);
			return PL_EXIT_USAGE;
		}
	}
	if (args.reporter_rate == 0) {
		pl_complain("--reporter-rate 0 would take nothing; without it there is no limit");
		return PL_EXIT_USAGE;
	}
	if (args.nack_port > UINT16_MAX) {
		pl_complain("translate: no port has the number %" PRIu64, args.nack_port);
		return PL_EXIT_USAGE;
	}
	if (pl_translate_is_roce(operands->items[1]) && (operands->n > 2 || args.collectors != 1)) {
		pl_complain("translate: roce:// names all collectors and stores at once");
		return PL_EXIT_USAGE;
	}
	if (pl_translate_is_roce(operands->items[1]) &&
		(args.epoch_ns != 0 || args.keep_epochs != NULL)) {
		pl_complain(
			"translate: epochs of roce:// are the collector's: pathline collect --epoch");
		return PL_EXIT_USAGE;
	}
	if (args.collectors == 0 || args.collectors > PL_COLLECTORS_MAX ||
		(operands->n - 1) % args.collectors != 0) {
		pl_complain("translate: %" PRIu64
			    " collectors (at most %u) have the same number of regions each",
			args.collectors, PL_COLLECTORS_MAX);
		return PL_EXIT_USAGE;
	}
	return 0;
}

/* Frames of an interface are those of the port that DTA has, unless the address says otherwise. */
static const char *with_port(const char *uri, struct pl_buf *text)
{
	const char *scheme = pl_port_uri_scheme(uri);

	if (scheme == NULL || (strcmp(scheme, "afxdp") != 0 && strcmp(scheme, "packet") != 0) ||
		strstr(uri, "port=") != NULL)
		return uri;
	pl_buf_printf(text, "%s%cport=%u", uri, strchr(uri, '?') == NULL ? '?' : '&', PL_PORT_DTA);
	return text->failed ? uri : text->data;
}

static bool is_file(const char *uri)
{
	const char *scheme = pl_port_uri_scheme(uri);

	return scheme == NULL || strcmp(scheme, "pcap") == 0;
}

/* ---- rights ---- */

static int begin_confine(struct translate *x, struct pl_diag *diag)
{
	const struct pl_privilege_options options = { .user = args.user, .group = args.group };

	pl_confine_init(&x->confine, &options);
	pl_confine_uri(&x->confine, x->operands->items[0], false);
	if (pl_translate_is_roce(x->operands->items[1]))
		pl_confine_uri(&x->confine, x->operands->items[1], true);
	return pl_confine_begin(&x->confine, diag);
}

/* What takes rights is open: reports are read by a process that can do little else. */
static int drop_rights(void *arg, struct pl_diag *diag)
{
	struct translate *x = arg;
	int r = pl_confine_path(&x->confine, args.keep_epochs, true);

	for (size_t i = 1; r == 0 && i < x->operands->n; i++) {
		if (!pl_translate_is_roce(x->operands->items[i]))
			r = pl_confine_path(&x->confine, x->operands->items[i], true);
	}
	return r < 0 ? r : pl_confine(&x->confine, PL_CONFINE_WRITER, diag);
}

static int open_out(struct translate *x, const struct pl_opt_list *operands, struct pl_diag *diag)
{
	const struct pl_translate_open open = {
		.rights = pl_confine_rights(&x->confine), .opened = drop_rights, .arg = x
	};
	int r;

	if (pl_translate_is_roce(operands->items[1]))
		return pl_translate_to_roce(&x->out, operands->items[1], &open, &stop, diag);
	r = drop_rights(x, diag);
	return r < 0 ? r
		     : pl_translate_to_regions(&x->out, operands->items + 1, operands->n - 1,
			       (unsigned int)args.collectors, args.epoch_ns, args.keep_epochs,
			       diag);
}

static int out_exit(int error)
{
	switch (error) {
	case -EINVAL:
		return PL_EXIT_USAGE;
	case -EBUSY:
	case -EHOSTUNREACH:
		return PL_EXIT_UNAVAILABLE;
	case -EPERM:
	case -EACCES:
		return PL_EXIT_PRIVILEGE;
	default:
		return PL_EXIT_FAILED;
	}
}

static int translate(struct translate *x, const struct pl_opt_list *operands)
{
	struct pl_diag diag = { .text = "" };
	struct pl_buf text;
	const char *uri;
	struct pl_signals signals;
	int code = check_args(operands), r;
	uint64_t ops;

	if (code != 0)
		return code;
	pl_signals_catch(&signals, on_signal, (const int[]){ SIGUSR1, SIGUSR2, 0 });
	(void)pl_region_guard();
	x->operands = operands;
	r = begin_confine(x, &diag);
	if (r < 0)
		return complain(r, &diag, out_exit(r));
	pl_buf_init(&text);
	uri = with_port(operands->items[0], &text);
	code = open_ports(x, uri);
	if (code == 0) {
		x->live = x->fds[0].fd >= 0 && !is_file(uri);
		open_nacks(x, uri);
		r = open_out(x, operands, &diag);
		code = r < 0 ? complain(r, &diag, out_exit(r))
			     : make_translator(x, is_file(operands->items[0]));
	}
	if (code == 0) {
		if (x->live) {
			pl_signals_block(&signals);
			pl_complain("translating from %s into %u regions",
				pl_port_name(x->ports[0]), x->out.n_stores * x->out.collectors);
		}
		if (pl_confine_gap(&x->confine) != NULL)
			pl_complain("%s", pl_confine_gap(&x->confine));
		pl_notify("READY=1");
		loop(x, &signals);
		pl_notify("STOPPING=1");
		tell_account(x);
		if (args.stats)
			print_stats(x);
		if (x->broken || (x->out.lost != NULL && x->out.lost(x->out.arg, &ops)))
			code = PL_EXIT_FAILED;
		else if (pl_translator_counters(x->translator)->accepted == 0)
			code = PL_EXIT_NOTHING;
	}
	pl_buf_done(&text);
	return code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands = { 0 };
	struct translate *x;
	int code, r;

	memset(&args, 0, sizeof(args));
	args.form = "tracking";
	args.collectors = 1;
	args.nack_tries = 10;
	args.reporter_rate = -1; /* not given */
	pl_arg_numbers_begin(numbers, NUMBERS);
	if (pl_command_parse(&pl_command_translate, argc, argv, &operands, &code) != 0)
		return code;
	x = calloc(1, sizeof(*x));
	if (x == NULL) {
		pl_complain("out of memory");
		pl_opt_list_done(&operands);
		return PL_EXIT_FAILED;
	}
	code = translate(x, &operands);
	for (unsigned int i = 0; i < x->n_ports; i++)
		(void)pl_port_close(x->ports[i]);
	if (x->own_nack_fd)
		close(x->nack_fd);
	pl_translator_free(x->translator);
	r = x->out.close != NULL ? x->out.close(x->out.arg) : 0;
	pl_confine_end(&x->confine);
	if (r < 0) {
		pl_complain("regions: %s", strerror(-r));
		code = PL_EXIT_FAILED;
	}
	free(x);
	pl_opt_list_done(&args.allow);
	pl_opt_list_done(&args.above);
	pl_opt_list_done(&args.store_rates);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_translate = {
	.name = "translate",
	.summary = "write DTA reports into telemetry memory",
	.usage = "[OPTION]… udp://… | afxdp:IFACE | packet:IFACE | FILE REGION… | roce://…",
	.description =
		"Receives reports of Direct Telemetry Access and carries them out in region files\n"
		"(pathline region create makes them), which others read meanwhile. Reports name\n"
		"regions by number: the first one given is 0; reports of the published forms go to\n"
		"the first region of their primitive.\n\n"
		"Into memory far away, over RoCE: roce://HOST:PORT/STORE,STORE?dev=packet:IFACE, where\n"
		"pathline collect listens on HOST:PORT and has stores of these names; the first one is\n"
		"number 0. Without rights: dev=udp://ADDRESS, one of this host. Several collectors,\n"
		"HOST:PORT,HOST:PORT, share keys and lists; one that is gone loses its keys to the\n"
		"others until it is back. Plain writes travel by unreliable connections, what would not\n"
		"show its loss by reliable ones; service=rc makes all of them so. connect=cm is by\n"
		"RDMA-CM, with a PORT of its own space, and not over TCP; all are reliable then. queue=\n"
		"(4096) and window= (128) bound the packets of each store that wait, and that are\n"
		"without answer; what finds no room is dropped and counted, and refused to reporters as\n"
		"congested meanwhile. dscp= (0) is the class of all frames, for networks that treat\n"
		"RoCE by it (26 in many); they say that switches may mark them instead of dropping\n"
		"(ECT(0)), unless ecn=off.\n\n"
		"Entries of lists, increments of counters and postcards of paths are gathered for a\n"
		"moment, so that one write does for many. Numbered reports are taken in order, each\n"
		"once; what is missing is asked for again. Ends after -n reports, --duration, the end\n"
		"of a capture file, SIGINT or SIGTERM; everything is then written. SIGUSR1 prints all\n"
		"counters as --stats does, as a JSON object in a line.\n\n"
		"Region files in two halves (region create --halves 2) keep the epoch before the\n"
		"present one readable (region lookup --epoch): a sketch's ends when its reporters begin\n"
		"the next, those of values, counters and paths with --epoch, by this machine's clock,\n"
		"or at SIGUSR2. With --keep-epochs what ended lives on in a file. Exit code 3: no\n"
		"report was accepted. What DTA authenticates is nothing: --allow keeps others out\n"
		"only as far as the network keeps addresses from being forged.",
	.examples =
		"  pathline region create --primitive key-write --slots 1000000 --value-bytes 4 last.plr\n"
		"  pathline translate udp://:40040 last.plr\n"
		"  pathline translate --allow 10.0.0.0/8 --reporter-rate 100k udp://:40040 a.plr b.plr\n"
		"  pathline translate 'afxdp:eth0?port=40040' last.plr lists.plr paths.plr\n"
		"  pathline translate --stats dta.pcap last.plr\n"
		"  pathline translate --epoch 1h --keep-epochs /var/lib/pathline udp://:40040 sums.plr\n"
		"  pathline translate udp://:40040 'roce://10.0.0.2:7471/last,lists?dev=packet:eth1'\n",
	.options = options,
	.run = run,
};
