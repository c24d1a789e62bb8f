/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline run: the daemon, with everything that its configuration file has it do. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/log.h"
#include "cli/command.h"
#include "runtime/serve.h"
#include "service/one_process.h"
#include "service/tap_account.h"

static struct {
	const char *file, *listen, *security, *level, *format;
} args;

static const struct pl_opt *options(void)
{
	static const char *const levels[] = { "error", "warning", "notice", "info", "debug", NULL };
	static const char *const formats[] = { "auto", "text", "logfmt", "json", NULL };
	static const struct pl_opt table[] = {
		{ PL_OPT_STRING, 'c', "config", &args.file, "FILE",
			"configuration file; without one the daemon listens on UDP ports 32766 and 54321 and has no output but the metrics page",
			NULL },
		{ PL_OPT_STRING, 0, "web.listen-address", &args.listen, "ADDRESS",
			"address of the metrics page, or off; overrides the file", NULL },
		{ PL_OPT_STRING, 0, "web.config.file", &args.security, "FILE",
			"file with TLS and passwords, in the format of Prometheus exporters; overrides the configuration",
			NULL },
		{ PL_OPT_CHOICE, 0, "log.level", &args.level, "LEVEL",
			"least important level that is logged; overrides the file", levels },
		{ PL_OPT_CHOICE, 0, "log.format", &args.format, "FORM",
			"format of log lines; overrides the file", formats },
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

static void set_log(const struct pl_config *config)
{
	pl_log_set_level((enum pl_log_level)config->log.level);
	pl_log_set_format((enum pl_log_format)config->log.format);
}

/* Reads the file, or the defaults without one, and puts the options over it. now: the configuration
 * that it replaces; NULL: at the start. */
static int load(void *arg, struct pl_config *ret, const struct pl_config *now, struct pl_diag *diag)
{
	int r = args.file == NULL ? pl_config_defaults(ret)
		: now == NULL     ? pl_config_load(ret, args.file, diag)
				  : pl_config_load_again(ret, args.file, now, diag);
	enum pl_log_level level;
	enum pl_log_format format;

	(void)arg;
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
	/* A reload may still fail; then nothing may have changed. */
	if (now == NULL)
		set_log(ret);
	return 0;
}

/* Listener failures, out of file descriptors and the like are not the configuration's fault. */
static int exit_code(int r)
{
	return r == -EINVAL ? PL_EXIT_CONFIG : pl_serve_exit(r);
}

static void tell_tap(const struct pl_taps_one *one)
{
	struct pl_buf text;

	/* The tap of a marking domain that only reads regions has no sources. */
	if (one->service.n_ports + one->service.n_kernels == 0)
		return;
	pl_buf_init(&text);
	pl_tap_put_sources(&one->service, &text);
	pl_info("run", "tap %s: tapping %.*s", one->name, (int)text.len, text.data);
	pl_buf_done(&text);
}

static void say_start(void *arg)
{
	const struct pl_one_process *p = arg;
	const struct pl_daemon *d = &p->collector.daemon;
	const struct pl_config *c = pl_pipeline_config(d->pipeline);
	const char *name;

	for (unsigned int i = 0; (name = pl_pipeline_listener(d->pipeline, i, NULL)) != NULL; i++)
		pl_info("run", "listening on %s", name);
	if (d->http != NULL)
		pl_info("run", "metrics on %s://%s/metrics", pl_http_scheme(d->http),
			pl_http_address(d->http));
	if (p->translate.began)
		pl_info("run", "translating from %s into %u regions",
			pl_port_name(p->translate.ports[0]),
			p->translate.out.n_stores * p->translate.out.collectors);
	if (p->memory.began)
		pl_info("run", "serving memory on %s, %u regions",
			pl_collector_name(p->memory.collector), p->memory.options.n_stores);
	for (unsigned int i = 0; i < p->taps.n; i++)
		tell_tap(p->taps.taps[i]);
	if (geteuid() == 0)
		pl_notice("run",
			"runs as root without capabilities; the key 'user' names another user");
	pl_info("run", "memory bound %" PRIu64 " MiB", (pl_daemon_memory(c) + (1 << 20) - 1) >> 20);
}

static int serve(struct pl_one_process *p, struct pl_diag *diag)
{
	const struct pl_config *c = &p->config;
	const struct pl_runtime_options run = { .services = p->services,
		.n = p->n,
		.rights = { .user = c->user, .group = c->group, .core_dumps = c->core_dumps },
		.log = true,
		.begun = say_start,
		.arg = p };
	bool opened;
	const int r = pl_runtime(&run, &opened, diag);

	if (p->collector.left > 0)
		pl_error(
			"run", "%" PRIu64 " entries were not delivered in time", p->collector.left);
	if (r < 0 && diag->text[0] == '\0')
		pl_diag_set(diag, "%s", strerror(-r));
	if (r < 0)
		return opened ? PL_EXIT_FAILED : exit_code(r);
	return pl_one_process_lost(p) ? PL_EXIT_FAILED : PL_EXIT_OK;
}

static int run_config(struct pl_config *config)
{
	const struct pl_report_collector_options collector = { .file = args.file,
		.named = args.file != NULL ? args.file : args.security,
		.load = load };
	struct pl_one_process *p = calloc(1, sizeof(*p));
	struct pl_diag diag = { .text = "" };
	int code = PL_EXIT_FAILED, r;

	if (p == NULL) {
		pl_config_done(config);
		return pl_fail(code, "%s", strerror(ENOMEM));
	}
	if (pl_one_process_init(p, config, &collector, &diag) == 0)
		code = serve(p, &diag);
	if (diag.text[0] != '\0')
		pl_complain_diag(&diag);
	r = pl_one_process_done(p);
	if (r < 0)
		code = pl_fail(PL_EXIT_FAILED, "regions: %s", strerror(-r));
	free(p);
	return code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	struct pl_diag diag = { .text = "" };
	struct pl_config config = { 0 };
	int r, code;

	args.file = args.listen = args.security = args.level = args.format = NULL;
	if (pl_command_parse(&pl_command_run, argc, argv, &operands, &code) != 0)
		return code;
	if (operands.n > 0) {
		pl_complain("run takes no operand: give the configuration with -c");
		pl_opt_list_done(&operands);
		return PL_EXIT_USAGE;
	}
	pl_opt_list_done(&operands);
	r = load(NULL, &config, NULL, &diag);
	if (r == 0)
		return run_config(&config);
	if (diag.text[0] == '\0')
		pl_diag_set(&diag, "%s", strerror(-r));
	pl_complain_diag(&diag);
	return r == -ENOMEM ? PL_EXIT_FAILED : PL_EXIT_CONFIG;
}

const struct pl_command pl_command_run = {
	.name = "run",
	.summary =
		"the daemon: collect reports, translate DTA, serve memory, tap, metrics and files",
	.usage = "[-c FILE]",
	.description =
		"Receives telemetry reports on the configured sources, decodes them, keeps statistics of\n"
		"queues, ports, links, paths and exporters, detects events, writes the configured outputs,\n"
		"and serves /metrics, /healthz and /readyz.\n"
		"\n"
		"SIGHUP reads the configuration again and reopens files; if the new configuration is bad,\n"
		"the old one stays in use. SIGUSR1 logs the account of packets and records. SIGTERM and\n"
		"SIGINT stop the daemon: it empties sockets and outputs within the time of the key 'drain';\n"
		"another signal, a second later or more, ends it at once, with the accounts until then.\n"
		"The configuration bounds all memory: the daemon allocates its tables, queues and buffers at\n"
		"the start and never enlarges them; it counts entries that find no room. It logs the sum at\n"
		"the start; \"pathline config check\" prints it too.",
	.examples = "  pathline run\n"
		    "  pathline run -c /etc/pathline/pathline.conf\n"
		    "  pathline run --web.listen-address 0.0.0.0:8400\n",
	.options = options,
	.run = run,
};
