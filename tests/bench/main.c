/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline-bench: which benchmarks to run, how long, and how results are printed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/opt.h"
#include "tests/bench/driver.h"

static uint64_t pairs, size_bytes;
static double seconds;
static const char *output, *broker, *records, *question;
static bool list;

static const struct pl_opt *options(void)
{
	static const char *const formats[] = { "table", "jsonl", NULL };
	static const struct pl_opt table[] = {
		{ PL_OPT_CHOICE, 'o', "output", &output, "FORMAT", "how to print results",
			formats },
		{ PL_OPT_U64, 0, "pairs", &pairs, "N",
			"runs of the benchmark and of its ceiling, alternating (at least 5; default 7)",
			NULL },
		{ PL_OPT_DOUBLE, 0, "seconds", &seconds, "S", "length of one run (default 0.5)",
			NULL },
		{ PL_OPT_SIZE, 0, "size", &size_bytes, "SIZE",
			"size of the generated input, for benchmarks that generate it", NULL },
		{ PL_OPT_STRING, 0, "broker", &broker, "HOST:PORT",
			"a Kafka broker for the benchmarks that need one (default librdkafka's mock cluster)",
			NULL },
		{ PL_OPT_STRING, 0, "records", &records, "FILE",
			"a file of records for query/asked: NAME.pkt64 or NAME.dns64, or both with a comma between",
			NULL },
		{ PL_OPT_STRING, 0, "question", &question, "QUESTION",
			"the question of query/asked: a text or a name", NULL },
		{ PL_OPT_FLAG, 0, "list", &list, NULL, "list the benchmarks", NULL },
		{ .type = PL_OPT_END },
	};

	pairs = 7;
	seconds = 0.5;
	size_bytes = 0;
	output = "table";
	broker = records = question = NULL;
	list = false;
	return table;
}

/* All of them when none is named. */
static int run_named(const struct pl_opt_list *names, struct pl_bench_ctx *ctx)
{
	int code = PL_EXIT_OK;

	for (size_t i = 0; i < names->n; i++) {
		if (pl_bench_find(names->items[i]) == NULL) {
			const char *near = pl_bench_nearest(names->items[i]);

			pl_complain(
				"unknown benchmark '%s'%s%s%s; 'pathline bench --list' lists them",
				names->items[i], near != NULL ? ", did you mean '" : "",
				near != NULL ? near : "", near != NULL ? "'?" : "");
			return PL_EXIT_USAGE;
		}
	}
	if (names->n == 0 && pl_bench_run_all(ctx) < 0)
		code = PL_EXIT_FAILED;
	for (size_t i = 0; i < names->n; i++) {
		if (pl_bench_run(ctx, names->items[i]) < 0)
			code = PL_EXIT_FAILED;
	}
	return code == PL_EXIT_OK && ctx->lacked ? PL_EXIT_UNAVAILABLE : code;
}

static const char description[] =
	"Runs the named benchmarks or cases, or all of them. Each benchmark alternates with its\n"
	"ceiling, the fastest way to do its job on this machine, and the ratio is the median of the\n"
	"ratios of neighbouring runs: on a shared machine the ratio is stable even when the rates\n"
	"are not. The round-trip time between two cores, measured before and after, shows whether\n"
	"the machine was disturbed.\n"
	"\n"
	"Where the two run on two processors (over a wire, between threads), pairs count only if\n"
	"that time stayed the same to a third. Such a case is given up after six times --pairs\n"
	"times --seconds and 30 seconds more: 51 seconds by default. With fewer than 5 pairs it has\n"
	"no result: the other cases are measured all the same, those without a result are named at\n"
	"the end, and the exit code is 69.\n"
	"\n"
	"With -o jsonl each result is an object with name, items, seconds, rate, ns_per_item,\n"
	"ceiling_name, ceiling_rate, ratio, ratio_min, ratio_max, pairs, pairs_discarded,\n"
	"pingpong_before_ns and pingpong_after_ns.\n"
	"\n"
	"latency and alert measure times under load instead: items, median_ns, p99_ns, max_ns,\n"
	"lost and load_rate. alert/first-… begins at the time stamp of the packet that crosses\n"
	"the threshold, alert/window-… where the record time lets the window close: the window\n"
	"(100 ms) and its lateness (200 ms) are not in the figure. It ends when a webhook on\n"
	"loopback has read the alert. alert/kafka-… has a topic between tap and query.";

static void help(void)
{
	struct pl_buf out;

	pl_buf_init(&out);
	pl_buf_printf(
		&out, "Usage: pathline bench [OPTION]… [NAME[/CASE]]…\n\n%s\n\n", description);
	pl_opt_help(options(), &out);
	fwrite(out.data, 1, out.len, stdout);
	pl_buf_done(&out);
}

static int run(const struct pl_opt_list *names)
{
	struct pl_bench_ctx ctx = { .budget_ns = (uint64_t)(seconds * 1e9),
		.size_bytes = size_bytes,
		.broker = broker,
		.records = records,
		.question = question,
		.pairs = (unsigned int)pairs,
		.jsonl = strcmp(output, "jsonl") == 0 };

	if (list) {
		pl_bench_list();
		return PL_EXIT_OK;
	}
	if ((records == NULL) != (question == NULL)) {
		pl_complain("--records and --question go together");
		return PL_EXIT_USAGE;
	}
	if (pairs < PL_BENCH_PAIRS_MIN || pairs > PL_BENCH_PAIRS_MAX) {
		pl_complain(
			"--pairs must be from %d to %d", PL_BENCH_PAIRS_MIN, PL_BENCH_PAIRS_MAX);
		return PL_EXIT_USAGE;
	}
	if (!(seconds >= 0.001 && seconds <= 3600)) {
		pl_complain("--seconds must be from 0.001 to 3600");
		return PL_EXIT_USAGE;
	}
	return run_named(names, &ctx);
}

int main(int argc, char **argv)
{
	struct pl_opt_list names = { 0 };
	struct pl_diag diag = { 0 };
	int r = pl_opt_parse(options(), argc, argv, &names, &diag), code;

	if (r < 0) {
		pl_complain_diag(&diag);
		code = PL_EXIT_USAGE;
	} else if (r > 0) {
		help();
		code = PL_EXIT_OK;
	} else {
		code = run(&names);
	}
	pl_opt_list_done(&names);
	pl_log_flush(true);
	errno = 0;
	if ((fflush(stdout) != 0 || ferror(stdout)) && code == PL_EXIT_OK) {
		pl_complain("cannot write the output: %s",
			errno != 0 ? strerror(errno) : "an earlier write failed");
		code = PL_EXIT_FAILED;
	}
	return code;
}
