/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "pathline config": checks, prints and begins configuration files; opens no socket. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/command.h"
#include "pipeline/metrics.h"
#include "service/daemon.h"
#include "service/standing.h"
#include "service/taps.h"
#include "show/stdout.h"

static const char *const words[] = { "check", "dump", "init", NULL };

static struct {
	bool full;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_FLAG, 0, "full", &args.full, NULL,
			"init: write every key with its default and meaning", NULL },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* The daemon starts with this file as it is, wherever the file is and without privileges. */
static const char short_file[] =
	"# Configuration of the pathline daemon: pathline run -c FILE\n"
	"#\n"
	"# 'pathline config check FILE' checks it. 'pathline config init --full' writes every key with its\n"
	"# default and meaning; 'man pathline.conf' has the same list.\n"
	"\n"
	"# Where the switches send their telemetry reports.\n"
	"sources:\n"
	"  - uri: udp://:32766\n"
	"\n"
	"# Events (path changes, queue build-ups, losses) as lines of JSON. A relative path starts at the\n"
	"# working directory of the daemon; the systemd unit runs it in /var/lib/pathline.\n"
	"outputs:\n"
	"  - type: jsonl\n"
	"    path: pathline-events.jsonl\n"
	"    paths: false    # true writes every report too\n"
	"\n"
	"# Prometheus scrapes http://127.0.0.1:8400/metrics; pathline top, tail and status ask here, too.\n"
	"web:\n"
	"  listen: 127.0.0.1:8400\n";

/* Returns 0, or prints the error and returns an exit code. */
static int load(struct pl_config *ret, const char *path)
{
	struct pl_diag diag = { .text = "" };
	int r = path != NULL ? pl_config_load(ret, path, &diag) : pl_config_defaults(ret);

	if (r == 0)
		return 0;
	if (diag.text[0] == '\0')
		pl_diag_set(&diag, "%s", strerror(-r));
	pl_complain_diag(&diag);
	return r == -ENOMEM ? PL_EXIT_FAILED : PL_EXIT_CONFIG;
}

static int check(const char *path)
{
	struct pl_config c;
	struct pl_buf out;
	struct pl_webconf *security;
	struct pl_diag diag = { .text = "" };
	uint64_t queries = 0;
	int code = load(&c, path);

	if (code != 0)
		return code;
	if (pl_taps_check(&c, &diag) < 0 || pl_standing_check(&c, &queries, &diag) < 0) {
		pl_complain_diag(&diag);
		pl_config_done(&c);
		return PL_EXIT_CONFIG;
	}
	if (pl_daemon_security(&c, &security, &diag) < 0) {
		pl_complain_diag(&diag);
		pl_config_done(&c);
		return PL_EXIT_CONFIG;
	}
	pl_webconf_free(security);
	pl_buf_init(&out);
	pl_buf_printf(&out, "%s: good\n", path != NULL ? path : "(defaults)");
	pl_buf_printf(&out, "%zu sources, %u workers, %zu profiles, %zu outputs\n", c.sources.n,
		pl_config_workers(&c), c.profiles.n, c.outputs.n);
	pl_buf_printf(&out, "series on /metrics: at most %" PRIu64 "\n", pl_metrics_series(&c));
	pl_buf_printf(&out, "memory bound: %" PRIu64 " MiB\n",
		(pl_daemon_memory(&c) + (1 << 20) - 1) >> 20);
	if (c.queries.n > 0)
		pl_buf_printf(&out, "memory of its queries, at most: %" PRIu64 " MiB\n",
			(queries + (1 << 20) - 1) >> 20);
	pl_config_done(&c);
	return pl_stdout_all(&out);
}

static int dump(const char *path)
{
	struct pl_config c;
	struct pl_buf out;
	int code = load(&c, path);

	if (code != 0)
		return code;
	pl_buf_init(&out);
	pl_conf_dump(pl_config_rows, &c, &out);
	pl_config_done(&c);
	return pl_stdout_all(&out);
}

static int init(void)
{
	struct pl_buf out;

	pl_buf_init(&out);
	if (args.full)
		pl_conf_template(pl_config_rows, &out);
	else
		pl_buf_str(&out, short_file);
	pl_buf_printf(&out,
		"\n%s The daemon refuses to reload a file from which this last line was cut off.\n...\n",
		args.full ? "##" : "#");
	return pl_stdout_all(&out);
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	const char *word, *file;
	size_t n;
	int code;

	args.full = false;
	if (pl_command_parse(&pl_command_config, argc, argv, &operands, &code) != 0)
		return code;
	n = operands.n;
	word = n > 0 ? operands.items[0] : "";
	file = n > 1 ? operands.items[1] : NULL;
	pl_opt_list_done(&operands);
	if (args.full && strcmp(word, "init") != 0)
		return pl_fail(PL_EXIT_USAGE, "--full belongs to \"config init\"");
	if (n <= 2 && strcmp(word, "check") == 0)
		return check(file);
	if (n <= 2 && strcmp(word, "dump") == 0)
		return dump(file);
	if (n == 1 && strcmp(word, "init") == 0)
		return init();
	return pl_fail(
		PL_EXIT_USAGE, "config takes one of: check [FILE], dump [FILE], init [--full]");
}

const struct pl_command pl_command_config = {
	.name = "config",
	.summary = "check a configuration, show it with its defaults, or begin one",
	.usage = "check [FILE] | dump [FILE] | init [--full]",
	.description =
		"check reads the file, prints the position and cause of the first error (exit code 78), or how\n"
		"many series the metrics page can have and how much memory the daemon can take.\n"
		"dump prints the configuration with every default filled in.\n"
		"init prints a short configuration with which the daemon starts: one source, one output and the\n"
		"address of the metrics page. With --full it prints every key with its default and meaning.\n"
		"Without FILE, check and dump use the defaults; - reads standard input.",
	.options = options,
	.examples = "  pathline config init > pathline.yaml\n"
		    "  pathline config check pathline.yaml\n"
		    "  pathline config dump pathline.yaml\n",
	.words = words,
	.run = run,
};
