/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pathline run: the daemon. Signals are blocked before the first thread exists and read from a descriptor by
 * this thread alone, so none is lost and none interrupts: HUP reloads and reopens files, USR1 says how things
 * stand, TERM and INT stop within the configured time, a second of them at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "cli/command.h"
#include "cli/confine.h"
#include "cli/daemon.h"
#include "cli/notify.h"
#include "cli/signals.h"
#include "web/webconf.h"

#define STATUS_NS (UINT64_C(10) * 1000000000u)

static struct {
	const char *file, *listen, *security, *level, *format;
} args;

static const struct pl_opt *options(void)
{
	static const char *const levels[] = { "error", "warning", "notice", "info", "debug", NULL };
	static const char *const formats[] = { "auto", "text", "logfmt", "json", NULL };
	static const struct pl_opt table[] = {
		{ PL_OPT_STRING, 'c', "config", &args.file, "FILE",
			"the configuration; without one, UDP 32766 and 54321 and no output but the metrics page",
			NULL },
		{ PL_OPT_STRING, 0, "web.listen-address", &args.listen, "ADDRESS",
			"where the metrics page is served, or off; overrides the file", NULL },
		{ PL_OPT_STRING, 0, "web.config.file", &args.security, "FILE",
			"TLS and who may ask, as exporters have it; overrides the file", NULL },
		{ PL_OPT_CHOICE, 0, "log.level", &args.level, "LEVEL",
			"least important line shown; overrides the file", levels },
		{ PL_OPT_CHOICE, 0, "log.format", &args.format, "FORM",
			"form of log lines; overrides the file", formats },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

static int replace(char **text, const char *by)
{
	char *copy = strdup(by);

	if (copy == NULL)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

/* Reads the file, or what there is without one, and puts the options over it. now: in whose place; NULL: at the
 * start. */
static int load(struct pl_config *ret, const struct pl_config *now, struct pl_diag *diag)
{
	int r = args.file == NULL ? pl_config_defaults(ret)
		: now == NULL     ? pl_config_load(ret, args.file, diag)
				  : pl_config_load_again(ret, args.file, now, diag);
	enum pl_log_level level;
	enum pl_log_format format;

	if (r < 0)
		return r;
	if (args.level != NULL && pl_log_parse_level(args.level, &level) == 0)
		ret->log.level = level;
	if (args.format != NULL && pl_log_parse_format(args.format, &format) == 0)
		ret->log.format = format;
	if ((args.listen != NULL && replace(&ret->web.listen, args.listen) < 0) ||
		(args.security != NULL && replace(&ret->web.config_file, args.security) < 0)) {
		pl_config_done(ret);
		return -ENOMEM;
	}
	pl_log_set_level((enum pl_log_level)ret->log.level);
	pl_log_set_format((enum pl_log_format)ret->log.format);
	return 0;
}

static void say_account(struct pl_daemon *d, const char *when)
{
	struct pl_pipeline_stats stats;
	struct pl_buf text;

	if (pl_pipeline_stats(d->pipeline, &stats) < 0) {
		pl_error("run", "%s: a worker does not answer", when);
		return;
	}
	pl_buf_init(&text);
	pl_daemon_account(&stats, &text);
	if (!text.failed)
		pl_notice("run", "%s: %s", when, text.data);
	pl_buf_done(&text);
}

static void say_status(struct pl_daemon *d, uint64_t *reports_before, uint64_t *at_ns)
{
	struct pl_pipeline_stats s;
	uint64_t now = pl_clock_mono_ns();
	char rate[32], text[160];

	if (pl_pipeline_stats(d->pipeline, &s) < 0)
		return;
	pl_format_count(rate, sizeof(rate),
		(double)(s.totals.stored - *reports_before) * 1e9 / (double)(now - *at_ns));
	snprintf(text, sizeof(text),
		"STATUS=%s reports/s, %" PRIu64 " in all, %" PRIu64 " missing, %" PRIu64
		" dropped by the kernel",
		rate, s.totals.stored, s.totals.lost, s.ports.kernel_drops);
	pl_notify(text);
	*reports_before = s.totals.stored;
	*at_ns = now;
}

static void reload(struct pl_daemon *d)
{
	struct pl_webconf *security = NULL;
	struct pl_config config;
	struct pl_diag diag = { .text = "" };
	char text[sizeof(diag.text) + sizeof(diag.file) + 32];
	int r;

	pl_notify_reloading();
	pl_pipeline_reopen(d->pipeline);
	if (args.file == NULL && args.security == NULL) {
		pl_notice("reload", "there is no configuration file; outputs were reopened");
		pl_notify("READY=1");
		return;
	}
	r = load(&config, pl_pipeline_config(d->pipeline), &diag);
	if (r == 0 && d->http != NULL) {
		/* All or nothing: a bad file of either kind changes nothing. */
		r = pl_daemon_security(&config, &security, &diag);
		if (r < 0)
			pl_config_done(&config);
	}
	if (r < 0) {
		pl_pipeline_reload_failed(d->pipeline);
	} else {
		r = pl_pipeline_reload(d->pipeline, &config, &diag);
		if (r < 0)
			pl_config_done(&config);
	}
	if (r < 0)
		pl_webconf_free(security);
	else if (d->http != NULL)
		r = pl_http_secure(d->http, security, &diag);
	if (r < 0) {
		if (diag.text[0] == '\0')
			pl_diag_set(&diag, "%s", strerror(-r));
		pl_diag_format(&diag, text, sizeof(text));
		pl_error("reload", "%s; the old configuration stays in use%s", text,
			r == -EPERM || r == -EACCES
				? "; the right to it was given up at the start, a restart has it again"
				: "");
	} else {
		pl_notice("reload", "%s is in use", args.file != NULL ? args.file : args.security);
	}
	pl_notify("READY=1");
}

/* Listener failures, out of file descriptors and the like are not the configuration's fault. */
static int exit_code(int r)
{
	switch (-r) {
	case EINVAL:
		return PL_EXIT_CONFIG;
	case EACCES:
	case EPERM:
		return PL_EXIT_PRIVILEGE;
	case ENOMEM:
		return PL_EXIT_FAILED;
	default:
		return PL_EXIT_UNAVAILABLE;
	}
}

static void say_start(const struct pl_daemon *d)
{
	const struct pl_config *c = pl_pipeline_config(d->pipeline);
	const char *name;

	for (unsigned int i = 0; (name = pl_pipeline_listener(d->pipeline, i, NULL)) != NULL; i++)
		pl_info("run", "listening on %s", name);
	if (d->http != NULL)
		pl_info("run", "metrics on %s://%s/metrics", pl_http_scheme(d->http),
			pl_http_address(d->http));
	if (geteuid() == 0)
		pl_notice("run",
			"runs as root, without its capabilities; the key 'user' names another user");
	pl_info("run", "memory bound %" PRIu64 " MiB", (pl_daemon_memory(c) + (1 << 20) - 1) >> 20);
}

/* A second TERM or INT while stopping ends the process at once. */
static void *await_second(void *arg)
{
	int fd = *(int *)arg, signo;

	while (pl_signals_read(fd, &signo)) {
		if (signo == SIGTERM || signo == SIGINT) {
			static const char text[] = "pathline: stopped at once\n";

			(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
			_exit(PL_EXIT_FAILED);
		}
	}
	return NULL;
}

static int stop(struct pl_daemon *d, int signals)
{
	uint64_t limit_ns = pl_pipeline_config(d->pipeline)->drain_ns, left;
	pthread_t watcher;

	pl_notify("STOPPING=1");
	pl_notice("run", "stopping");
	if (pthread_create(&watcher, NULL, await_second, &signals) == 0)
		pthread_detach(watcher);
	left = pl_daemon_stop(d, limit_ns);
	say_account(d, "stopped");
	if (left > 0)
		pl_error("run", "%" PRIu64 " entries were not delivered in time", left);
	return left > 0 ? PL_EXIT_FAILED : PL_EXIT_OK;
}

static int serve(struct pl_daemon *d, int signals)
{
	uint64_t watchdog_ns = pl_notify_watchdog_ns(), petted_ns = 0;
	uint64_t reports = 0, status_ns = pl_clock_mono_ns();

	for (;;) {
		struct pollfd fd = { .fd = signals, .events = POLLIN };
		uint64_t now;
		int signo;

		if (poll(&fd, 1, 500) > 0 && pl_signals_read(signals, &signo)) {
			if (signo == SIGHUP)
				reload(d);
			else if (signo == SIGUSR1)
				say_account(d, "so far");
			else
				return stop(d, signals);
		}
		now = pl_clock_mono_ns();
		if (now - status_ns >= STATUS_NS)
			say_status(d, &reports, &status_ns);
		if (watchdog_ns != 0 && now - petted_ns >= watchdog_ns / 2) {
			struct pl_pipeline_stats s;

			/* Only when every worker answers. */
			if (pl_pipeline_stats(d->pipeline, &s) == 0)
				pl_notify("WATCHDOG=1");
			petted_ns = now;
		}
	}
}

/* What the process is held by, made before anything is opened. */
static int begin_confine(struct pl_confine *c, const struct pl_config *config, struct pl_diag *diag)
{
	const struct pl_config_source *s = config->sources.items;
	const struct pl_privilege_options options = {
		.user = config->user, .group = config->group, .core_dumps = config->core_dumps
	};

	pl_confine_init(c, &options);
	for (size_t i = 0; i < config->sources.n; i++)
		pl_confine_uri(c, s[i].uri, false);
	return pl_confine_begin(c, diag);
}

static int may_read(void *arg, const char *path)
{
	return pl_confine_path(arg, path, false);
}

static int output_paths(struct pl_confine *c, const struct pl_config_output *o)
{
	const char *const written[] = { o->path, o->spool_path, o->dead_letter_path },
			  *const read[] = { o->password_file, o->token_file, o->tls.ca, o->tls.cert,
				  o->tls.key };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(written) / sizeof(written[0]); i++)
		r = pl_confine_path(c, written[i], true);
	for (size_t i = 0; r == 0 && i < sizeof(read) / sizeof(read[0]); i++)
		r = pl_confine_path(c, read[i], false);
	return r;
}

/* Every file and folder that the configuration names, and itself, for a reload. */
static int config_paths(struct pl_confine *c, const struct pl_config *config)
{
	const struct pl_config_output *outputs = config->outputs.items;
	const struct pl_config_source *sources = config->sources.items;
	int r = pl_confine_path(c, args.file, false);

	for (size_t i = 0; r == 0 && i < config->sources.n; i++) {
		const char *colon = strchr(sources[i].uri, ':');

		r = pl_confine_path(c,
			strncmp(sources[i].uri, "pcap:", 5) == 0 ? colon + 1
			: colon == NULL                          ? sources[i].uri
								 : NULL,
			false);
	}
	for (size_t i = 0; r == 0 && i < config->outputs.n; i++)
		r = output_paths(c, &outputs[i]);
	if (r == 0)
		r = pl_confine_path(c, config->web.socket, true);
	if (r == 0)
		r = pl_confine_path(c, config->web.config_file, false);
	if (r == 0 && config->web.config_file != NULL)
		r = pl_webconf_files(config->web.config_file, may_read, c);
	return r;
}

/* From here on packets and files come to a process that may do nothing else. */
static int drop_rights(void *arg, const struct pl_config *config, struct pl_diag *diag)
{
	struct pl_confine *c = arg;
	int r = config_paths(c, config);

	if (r < 0) {
		pl_diag_set(diag, "the files that the configuration names: %s", strerror(-r));
		return r;
	}
	pl_confine_by_log(true);
	r = pl_confine(c, PL_CONFINE_DAEMON, diag);
	if (r == 0 && pl_confine_gap(c) != NULL)
		pl_warn("run", "%s", pl_confine_gap(c));
	return r;
}

static int run(int argc, char **argv)
{
	int signals = pl_signals_fd((const int[]){ SIGHUP, SIGUSR1, 0 }, 0), code;
	struct pl_opt_list operands;
	struct pl_diag diag = { .text = "" };
	struct pl_daemon daemon = { 0 };
	static struct pl_confine confine;
	struct pl_daemon_hooks hooks = { .opened = drop_rights, .arg = &confine };
	struct pl_config config = { 0 };
	int r;

	args.file = args.listen = args.security = args.level = args.format = NULL;
	if (pl_command_parse(&pl_command_run, argc, argv, &operands, &code) != 0)
		return code;
	if (operands.n > 0) {
		pl_complain("run takes no operand: the configuration is given with -c");
		pl_opt_list_done(&operands);
		return PL_EXIT_USAGE;
	}
	pl_opt_list_done(&operands);
	if (signals < 0) {
		pl_complain("cannot watch for signals: %s", strerror(errno));
		return PL_EXIT_FAILED;
	}
	r = load(&config, NULL, &diag);
	if (r == 0) {
		r = begin_confine(&confine, &config, &diag);
		hooks.rights = pl_confine_rights(&confine);
		if (r == 0)
			r = pl_daemon_open(&daemon, &config, &hooks, &diag);
		if (r != 0)
			pl_config_done(&config);
		code = exit_code(r);
	} else {
		code = r == -ENOMEM ? PL_EXIT_FAILED : PL_EXIT_CONFIG;
	}
	if (r < 0) {
		if (diag.text[0] == '\0')
			pl_diag_set(&diag, "%s", strerror(-r));
		pl_complain_diag(&diag);
		pl_confine_end(&confine);
		return code;
	}
	say_start(&daemon);
	pl_notify("READY=1");
	code = serve(&daemon, signals);
	pl_daemon_done(&daemon);
	pl_confine_end(&confine);
	return code;
}

const struct pl_command pl_command_run = {
	.name = "run",
	.summary = "the daemon: collect reports, serve metrics, write files",
	.usage = "[-c FILE]",
	.description =
		"Receives telemetry reports on the configured sources, decodes them, follows queues, links,\n"
		"paths and exporters, tells events, writes the configured outputs, and serves /metrics,\n"
		"/healthz and /readyz.\n"
		"\n"
		"SIGHUP reads the configuration again and reopens files; when the new one is bad the old one\n"
		"stays in use. SIGUSR1 says how many packets and records went where. SIGTERM and SIGINT stop:\n"
		"sockets and outputs are emptied within the time 'drain' allows; a second signal ends at once.\n"
		"Everything is bounded by the configuration: tables for exporters, paths, queues, ports,\n"
		"links and flows, queues and buffers are made at the start and never grow, and what does\n"
		"not fit is counted. The sum is printed at the start and by \"pathline config check\".",
	.examples = "  pathline run\n"
		    "  pathline run -c /etc/pathline/pathline.yaml\n"
		    "  pathline run --web.listen-address 0.0.0.0:8400\n",
	.options = options,
	.run = run,
};
