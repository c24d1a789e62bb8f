/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline translate: DTA reports from a port into telemetry memory. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "chain/translator.h"
#include "cli/args.h"
#include "cli/command.h"
#include "runtime/serve.h"
#include "show/stdout.h"

static const char *const forms[] = { "plain", "tracking", NULL };

static struct {
	const char *form;
	uint64_t collectors, batch, cache_rows, merge, reporters, sketch_reporters, columns;
	uint64_t flush_ns, count, duration_ns, nack_tries, nack_interval_ns, nack_port;
	double reporter_rate;
	struct pl_opt_list allow, above, store_rates;
	const char *keep_epochs, *user, *group, *web;
	uint64_t epoch_ns;
	bool partial, stats;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Reports", NULL, NULL, NULL, NULL },
		{ PL_OPT_CHOICE, 0, "form", &args.form, "FORM",
			"form of reports that are not in pathline's own form (default tracking)",
			forms },
		{ PL_OPT_LIST, 0, "allow", &args.allow, "PREFIX",
			"accept reports from these addresses only; may be repeated", NULL },
		{ PL_OPT_RATE, 0, "reporter-rate", &args.reporter_rate, "RATE",
			"most reports per second of one reporter", NULL },
		{ PL_OPT_LIST, 0, "store-rate", &args.store_rates, "[STORE=]RATE",
			"most reports per second into each region, or into region STORE; may be repeated",
			NULL },
		{ PL_OPT_U64, 0, "reporters", &args.reporters, "COUNT",
			"most reporters known at a time (default 1024)", NULL },
		{ PL_OPT_U64, 0, "nack-tries", &args.nack_tries, "COUNT",
			"number of requests (NACKs) for a missing report (default 10); 0: none",
			NULL },
		{ PL_OPT_DURATION, 0, "nack-interval", &args.nack_interval_ns, "TIME",
			"time between the first two NACKs, doubled up to 16 times its length (default 1ms)",
			NULL },
		{ PL_OPT_U64, 0, "nack-port", &args.nack_port, "PORT",
			"UDP port where reporters of the tracking form receive NACKs (default their source port; published reporters use 40044)",
			NULL },
		{ PL_OPT_LIST, 0, "above", &args.above, "STORE=VALUE[@OFFSET+WIDTH]",
			"accept only reports greater than VALUE into region STORE: increments, sums of paths, or the number of WIDTH bytes at OFFSET of values and entries",
			NULL },
		{ PL_OPT_HEADING, 0, "Gathering", NULL, NULL, NULL, NULL },
		{ PL_OPT_DURATION, 0, "flush", &args.flush_ns, "TIME",
			"longest time that entries, increments and postcards wait (default 100ms); longest epoch of a sketch (default 10s)",
			NULL },
		{ PL_OPT_U64, 0, "batch", &args.batch, "COUNT",
			"append: entries per write (default 16, or the largest batch of the region)",
			NULL },
		{ PL_OPT_U64, 0, "merge", &args.merge, "COUNT",
			"counters: increments merged into one addition (default 64)", NULL },
		{ PL_OPT_U64, 0, "cache-rows", &args.cache_rows, "COUNT",
			"keys gathered at a time (default 4096 counters, 32768 flows)", NULL },
		{ PL_OPT_FLAG, 0, "partial", &args.partial, NULL,
			"postcards: also write incomplete paths", NULL },
		{ PL_OPT_U64, 0, "sketch-reporters", &args.sketch_reporters, "COUNT",
			"sketch: number of reporters that deliver each sketch (default 1)", NULL },
		{ PL_OPT_HEADING, 0, "Running", NULL, NULL, NULL, NULL },
		{ PL_OPT_U64, 0, "collectors", &args.collectors, "COUNT",
			"number of collectors that the regions belong to: all regions of the first, then of the second (default 1)",
			NULL },
		PL_ARGS_EPOCHS(args.epoch_ns, args.keep_epochs, "when their reporters do"),
		{ PL_OPT_U64, 'n', "count", &args.count, "COUNT", "stop after this many reports",
			NULL },
		PL_ARGS_WEB(args.web),
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

/* Numbers that have less room further down. 0, or an exit code; complains. */
static int check_args(const struct pl_opt_list *operands)
{
	const uint64_t *const words[] = { &args.batch, &args.cache_rows, &args.merge,
		&args.reporters, &args.sketch_reporters, &args.nack_tries };

	if (pl_arg_numbers_end("translate", numbers, NUMBERS) != 0)
		return PL_EXIT_USAGE;
	if (operands->n < 2) {
		pl_complain(
			"translate: missing SOURCE or DESTINATION: give a port or capture file, then region files or roce://");
		return PL_EXIT_USAGE;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (*words[i] > 1u << 28) {
			pl_complain("translate: %" PRIu64 " is too large", *words[i]);
			return PL_EXIT_USAGE;
		}
	}
	if (args.reporter_rate == 0) {
		pl_complain(
			"--reporter-rate 0 would refuse every report; leave the option out for no limit");
		return PL_EXIT_USAGE;
	}
	if (args.nack_port > UINT16_MAX) {
		pl_complain("translate: not a port number: %" PRIu64, args.nack_port);
		return PL_EXIT_USAGE;
	}
	if (pl_translate_is_roce(operands->items[1]) && (operands->n > 2 || args.collectors != 1)) {
		pl_complain(
			"translate: roce:// must be the only destination; it names all collectors and stores");
		return PL_EXIT_USAGE;
	}
	if (pl_translate_is_roce(operands->items[1]) &&
		(args.epoch_ns != 0 || args.keep_epochs != NULL)) {
		pl_complain(
			"translate: with roce:// the collector keeps the epochs: use pathline collect --epoch");
		return PL_EXIT_USAGE;
	}
	if (args.collectors == 0 || args.collectors > PL_COLLECTORS_MAX ||
		(operands->n - 1) % args.collectors != 0) {
		pl_complain("translate: %" PRIu64
			    " collectors (at most %u) need the same number of regions each",
			args.collectors, PL_COLLECTORS_MAX);
		return PL_EXIT_USAGE;
	}
	return 0;
}

static void tell_begin(void *arg)
{
	const struct pl_translate *x = arg;

	if (x->live)
		pl_complain("translating from %s into %u regions", pl_port_name(x->ports[0]),
			x->out.n_stores * x->out.collectors);
}

static void read_args(struct pl_translate_options *o, const struct pl_opt_list *operands)
{
	*o = (struct pl_translate_options){
		.uri = operands->items[0],
		.to = operands->items + 1,
		.n_to = operands->n - 1,
		.collectors = (unsigned int)args.collectors,
		.plain = strcmp(args.form, "plain") == 0,
		.n_allow = (unsigned int)args.allow.n,
		.reporter_rate = args.reporter_rate > 0 ? args.reporter_rate : 0,
		.reporters = (uint32_t)args.reporters,
		.nack_tries = (uint32_t)args.nack_tries,
		.nack_port = (uint32_t)args.nack_port,
		.nack_interval_ns = args.nack_interval_ns,
		.flush_ns = args.flush_ns,
		.partial = args.partial,
		.sketch_reporters = (uint32_t)args.sketch_reporters,
		.cache_rows = (uint32_t)args.cache_rows,
		.merge = (uint32_t)args.merge,
		.batch = (uint32_t)args.batch,
		.store_rates = args.store_rates.items,
		.n_store_rates = args.store_rates.n,
		.above = args.above.items,
		.n_above = args.above.n,
		.epoch_ns = args.epoch_ns,
		.keep_epochs = args.keep_epochs,
		.count = args.count,
	};
}

static int translate(struct pl_translate *x, const struct pl_opt_list *operands)
{
	static struct pl_prefix allow[PL_ACCESS_MAX];
	static struct pl_translate_options options;
	const struct pl_service service = { &pl_translate_service, x };
	const struct pl_runtime_options run = { .services = &service,
		.n = 1,
		.rights = { .user = args.user, .group = args.group },
		.duration_ns = args.duration_ns,
		.web = args.web,
		.stats = args.stats,
		.tell = pl_stderr_print,
		.print = pl_stdout_print,
		.begun = tell_begin,
		.arg = x };
	int code = check_args(operands), r;

	if (code == 0)
		code = pl_arg_prefixes("allow", &args.allow, allow, PL_ACCESS_MAX);
	if (code != 0)
		return code;
	read_args(&options, operands);
	options.allow = allow;
	x->o = &options;
	code = pl_serve(&run);
	if (code == 0 && pl_translate_lost(x)) {
		code = PL_EXIT_FAILED;
	} else if (code == 0 && pl_translator_counters(x->translator)->accepted == 0) {
		code = PL_EXIT_NOTHING;
	}
	r = pl_translate_close(x);
	if (r < 0) {
		pl_complain("regions: %s", strerror(-r));
		code = PL_EXIT_FAILED;
	}
	return code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands = { 0 };
	struct pl_translate *x;
	int code;

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
		code = PL_EXIT_FAILED;
	} else {
		code = translate(x, &operands);
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
