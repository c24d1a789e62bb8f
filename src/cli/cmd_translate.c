/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline translate: DTA reports from a port into telemetry memory. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "chain/configured.h"
#include "cli/args.h"
#include "cli/command.h"
#include "runtime/serve.h"

static struct {
	struct pl_conf_opts dta; /* options that are rows of the configuration */
	struct pl_args_service service;
	uint64_t collectors, count;
} args;

static const struct pl_opt *options(void)
{
	static const char *const operands[] = { "dta.listen", "dta.to", NULL };
	static const struct pl_opt more[] = {
		{ PL_OPT_U64, 0, "collectors", &args.collectors, "COUNT",
			"number of collectors that the regions belong to: all regions of the first, then of the second (default 1)",
			NULL },
		{ PL_OPT_COUNT, 'n', "count", &args.count, "COUNT", "stop after this many reports",
			NULL },
		PL_ARGS_SERVICE(args.service),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return pl_conf_opts(&args.dta, pl_config_rows, "dta.", operands, more);
}

/* Returns 0, or prints the error and returns an exit code. */
static int check_args(const struct pl_config *config, const struct pl_opt_list *operands)
{
	const bool roce = operands->n > 1 && pl_translate_is_roce(operands->items[1]);
	const char *wrong = NULL;

	if (operands->n < 2)
		wrong = "missing SOURCE or DESTINATION: give a port or capture file, then region files or roce://";
	else if (roce && (operands->n > 2 || args.collectors != 1))
		wrong = "roce:// must be the only destination; it names all collectors and stores";
	else if (roce && (config->dta.epoch_ns != 0 || config->dta.keep_epochs != NULL))
		wrong = "with roce:// the collector keeps the epochs: use pathline collect --epoch";
	else if (operands->n - 1 > PL_CONFIG_REGIONS_MAX)
		wrong = "more than 256 regions";
	if (wrong != NULL)
		return pl_fail(PL_EXIT_USAGE, "translate: %s", wrong);
	if (args.collectors == 0 || args.collectors > PL_COLLECTORS_MAX ||
		(operands->n - 1) % args.collectors != 0)
		return pl_fail(PL_EXIT_USAGE,
			"translate: %" PRIu64
			" collectors (at most %u) need the same number of regions each",
			args.collectors, PL_COLLECTORS_MAX);
	return 0;
}

/* Returns 0, or prints the error and returns an exit code. */
static int read_args(struct pl_config *config, struct pl_translate_configured *ret,
	const struct pl_opt_list *operands)
{
	int code = pl_args_configure(config, &args.dta), r = 0;

	if (code == 0)
		code = check_args(config, operands);
	if (code != 0)
		return code;
	config->dta.listen = strdup(operands->items[0]);
	if (pl_translate_is_roce(operands->items[1]))
		config->dta.to = strdup(operands->items[1]);
	for (size_t i = 1; r == 0 && config->dta.to == NULL && i < operands->n; i++)
		r = pl_config_add_region(config, PL_WRITER_DTA, operands->items[i],
			strlen(operands->items[i]), operands->items[i]);
	if (r < 0 || config->dta.listen == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	pl_translate_configure(ret, config);
	ret->options.collectors = (unsigned int)args.collectors;
	ret->options.count = args.count;
	return 0;
}

static void tell_begin(void *arg)
{
	const struct pl_translate *x = arg;

	if (x->live)
		pl_complain("translating from %s into %u regions", pl_port_name(x->ports[0]),
			x->out.n_stores * x->out.collectors);
}

static int translate(
	struct pl_translate *x, struct pl_config *config, const struct pl_opt_list *operands)
{
	static struct pl_translate_configured configured;
	const struct pl_service service = { &pl_translate_service, x };
	const struct pl_runtime_options run =
		pl_args_runtime(&args.service, &service, 1, tell_begin, x);
	int code = read_args(config, &configured, operands), r;

	if (code != 0)
		return code;
	x->o = &configured.options;
	code = pl_serve(&run);
	if (code == 0 && pl_translate_lost(x)) {
		code = PL_EXIT_FAILED;
	} else if (code == 0 && pl_translator_counters(x->translator)->accepted == 0) {
		code = PL_EXIT_NOTHING;
	}
	r = pl_translate_close(x);
	if (r < 0)
		code = pl_fail(PL_EXIT_FAILED, "regions: %s", strerror(-r));
	return code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands = { 0 };
	struct pl_config config = { .fault = "" };
	struct pl_translate *x;
	int code;

	memset(&args, 0, sizeof(args));
	args.collectors = 1;
	if (pl_command_parse(&pl_command_translate, argc, argv, &operands, &code) != 0)
		return code;
	x = calloc(1, sizeof(*x));
	if (x == NULL) {
		code = pl_fail(PL_EXIT_FAILED, "out of memory");
	} else {
		code = translate(x, &config, &operands);
	}
	free(x);
	pl_config_done(&config);
	pl_conf_opts_done(&args.dta);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_translate = {
	.name = "translate",
	.summary = "receive DTA reports and write them into telemetry memory",
	.usage = "[OPTION]… udp://… | afxdp:IFACE | packet:IFACE | FILE REGION… | roce://…",
	.description =
		"Receives reports of Direct Telemetry Access (DTA) and writes them into region files\n"
		"(pathline region create makes them), which other processes read meanwhile. Reports name\n"
		"regions by number: the first operand is region 0; reports of the published forms go to\n"
		"the first region of their primitive.\n"
		"\n"
		"To write into memory of another machine over RoCE, give\n"
		"roce://HOST:PORT/STORE,STORE?dev=packet:IFACE, where pathline collect listens on HOST:PORT\n"
		"and serves stores of these names; the first one is number 0. dev=udp://ADDRESS, an address\n"
		"of this host, needs no privileges. HOST:PORT,HOST:PORT spreads keys and lists over several\n"
		"collectors; while one is down, the others take its keys. Plain writes use unreliable\n"
		"connections (UC), operations that would hide a loss reliable ones (RC); service=rc makes\n"
		"all of them reliable. connect=cm connects by RDMA-CM to a PORT of its own port space,\n"
		"instead of TCP, and makes all connections reliable. queue= (4096) bounds the packets that\n"
		"wait for each store, window= (128) those that are not acknowledged; packets beyond are\n"
		"dropped and counted, and reporters get the answer congested meanwhile. dscp= (0) sets the\n"
		"DSCP of all frames for networks that treat RoCE by it (often 26); frames are marked ECT(0),\n"
		"so that switches may mark them instead of dropping them, unless ecn=off.\n"
		"\n"
		"The translator gathers entries of lists, increments of counters and postcards of paths for\n"
		"a moment, so that one write carries many. It takes numbered reports in order, each once,\n"
		"and requests missing ones again. It ends after -n reports, --duration, the end of a capture\n"
		"file, SIGINT or SIGTERM, and writes everything gathered first. SIGUSR1 prints the counters\n"
		"of --stats as one line of JSON.\n"
		"\n"
		"Region files with two halves (region create --halves 2) keep the previous epoch readable\n"
		"(region lookup --epoch). Sketches begin an epoch when their reporters do; values, counters\n"
		"and paths with --epoch, by the clock of this machine, or at SIGUSR2. With --keep-epochs\n"
		"ended epochs are kept in files. Exit code 3: no report was accepted. DTA has no\n"
		"authentication: --allow helps only where the network prevents forged source addresses.",
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
