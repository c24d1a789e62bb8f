/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline config: check, dump, init. Touches no network and needs no right. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/command.h"
#include "cli/daemon.h"
#include "pipeline/metrics.h"

static const char *const words[] = { "check", "dump", "init", NULL };

static int print(struct pl_buf *out)
{
	bool good = !out->failed && fwrite(out->data, 1, out->len, stdout) == out->len &&
		    fflush(stdout) == 0;

	if (!good)
		pl_complain("cannot write to standard output");
	pl_buf_done(out);
	return good ? PL_EXIT_OK : PL_EXIT_FAILED;
}

/* 0, or the exit code after complaining. */
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
	int code = load(&c, path);

	if (code != 0)
		return code;
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
	pl_config_done(&c);
	return print(&out);
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
	return print(&out);
}

static int init(void)
{
	struct pl_buf out;

	pl_buf_init(&out);
	pl_conf_template(pl_config_rows, &out);
	pl_buf_str(&out,
		"\n## With this line at its end, a file that was cut is seen by a reload, and refused.\n...\n");
	return print(&out);
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	const char *word, *file;
	size_t n;
	int code;

	if (pl_command_parse(&pl_command_config, argc, argv, &operands, &code) != 0)
		return code;
	n = operands.n;
	word = n > 0 ? operands.items[0] : "";
	file = n > 1 ? operands.items[1] : NULL;
	pl_opt_list_done(&operands);
	if (n <= 2 && strcmp(word, "check") == 0)
		return check(file);
	if (n <= 2 && strcmp(word, "dump") == 0)
		return dump(file);
	if (n == 1 && strcmp(word, "init") == 0)
		return init();
	pl_complain("config takes one of: check [FILE], dump [FILE], init");
	return PL_EXIT_USAGE;
}

const struct pl_command pl_command_config = {
	.name = "config",
	.summary = "check a configuration, show it with its defaults, or begin one",
	.usage = "check [FILE] | dump [FILE] | init",
	.description =
		"check says whether the file is good, and if not, where and why (exit code 78); then how many\n"
		"series the metrics page can have at most and how much memory the daemon can take.\n"
		"dump prints the configuration with every default filled in.\n"
		"init prints a commented file to begin with.\n"
		"Without FILE, check and dump are of the defaults; - is standard input.",
	.examples = "  pathline config init > pathline.yaml\n"
		    "  pathline config check pathline.yaml\n"
		    "  pathline config dump pathline.yaml\n",
	.words = words,
	.run = run,
};
