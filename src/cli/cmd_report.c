/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline report: one value, or many, into any primitive of a translator's telemetry memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask/region_read.h"
#include "ask/region_values.h"
#include "ask/report_send.h"
#include "base/num.h"
#include "cli/args.h"
#include "cli/command.h"
#include "dta/reporter.h"

static const char *const words[] = { "key-write", "append", "increment", "postcard", "sketch",
	NULL };

static struct {
	const char *form, *key, *key_form, *value, *value_form, *hops;
	uint64_t store, copies, list, by, epoch, column, count, linger_ns, ring, hold_ns;
	double rate;
	bool immediate, sequenced, loop, step_key, step_value, cut;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Contents", NULL, NULL, NULL, NULL },
		{ PL_OPT_U64, 0, "store", &args.store, "NUMBER",
			"number of the region at the translator (default 0)", NULL },
		{ PL_OPT_STRING, 'k', "key", &args.key, "KEY",
			"key-write, increment, postcard: the key", NULL },
		{ PL_OPT_CHOICE, 0, "key-form", &args.key_form, "FORM",
			"form of the key (default text); u32 and u64 are numbers, least significant byte first, be32 most significant first, as u32 is in the published forms",
			pl_key_forms },
		{ PL_OPT_STRING, 'd', "data", &args.value, "VALUE",
			"value, entry, or columns of a sketch in wire format", NULL },
		{ PL_OPT_CHOICE, 0, "data-form", &args.value_form, "FORM",
			"form of --data (default text)", pl_key_forms },
		{ PL_OPT_U64, 0, "copies", &args.copies, "COUNT",
			"copies of key-write, rows of increment (default all of the region; published forms 4)",
			NULL },
		{ PL_OPT_U64, 0, "list", &args.list, "NUMBER", "append: the list (default 0)",
			NULL },
		{ PL_OPT_U64, 0, "by", &args.by, "NUMBER", "increment: amount (default 1)", NULL },
		{ PL_OPT_STRING, 0, "hops", &args.hops, "NODE,…",
			"postcard: nodes of the path; each hop is one report", NULL },
		{ PL_OPT_FLAG, 0, "no-length", &args.cut, NULL,
			"postcard: leave out the length of the path", NULL },
		{ PL_OPT_U64, 0, "epoch", &args.epoch, "NUMBER", "sketch: the epoch (default 0)",
			NULL },
		{ PL_OPT_U64, 0, "column", &args.column, "NUMBER",
			"sketch: the first column (default 0)", NULL },
		{ PL_OPT_FLAG, 0, "immediate", &args.immediate, NULL,
			"ask the collector to wake a worker (write with immediate)", NULL },
		{ PL_OPT_HEADING, 0, "Sending", NULL, NULL, NULL, NULL },
		{ PL_OPT_CHOICE, 0, "form", &args.form, "FORM",
			"form of the reports (default pathline)", pl_arg_dta_forms },
		{ PL_OPT_FLAG, 0, "sequenced", &args.sequenced, NULL,
			"number the reports, and send again those that the translator misses",
			NULL },
		{ PL_OPT_U64, 0, "ring", &args.ring, "COUNT",
			"reports kept for retransmission (default 8192, tracking 127)", NULL },
		{ PL_OPT_DURATION, 0, "hold", &args.hold_ns, "TIME",
			"how long a report is kept if the translator does not confirm it (default 200ms, tracking 10ms)",
			NULL },
		{ PL_OPT_COUNT, 'n', "count", &args.count, "COUNT", "number of reports (default 1)",
			NULL },
		{ PL_OPT_FLAG, 0, "loop", &args.loop, NULL, "repeat until a signal", NULL },
		{ PL_OPT_RATE, 0, "rate", &args.rate, "RATE",
			"reports per second (default no limit)", NULL },
		{ PL_OPT_DURATION, 0, "linger", &args.linger_ns, "TIME",
			"how long reports wait to share a datagram (default 1ms)", NULL },
		{ PL_OPT_FLAG, 0, "step-key", &args.step_key, NULL,
			"increase the key by one per report; only for numbers", NULL },
		{ PL_OPT_FLAG, 0, "step-data", &args.step_value, NULL,
			"increase the value by one per report; only for numbers", NULL },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* ---- the report ---- */

static int parse_item(
	struct pl_report_item *item, const char *what, const char *text, const char *form)
{
	int r = pl_key_parse(text, form, &item->bytes, &item->n);

	if (r < 0)
		return pl_fail(r, "report: %s \"%s\" is not of the form %s", what, text, form);
	item->little = form[0] == 'u';
	item->number = item->little || strcmp(form, "be32") == 0;
	return 0;
}

static int parse_hops(struct pl_report_send_options *j)
{
	const char *p = args.hops;

	while (*p != '\0') {
		char word[24];
		size_t n = strcspn(p, ",");
		uint64_t node;

		if (n >= sizeof(word) || j->n_hops == PL_REPORT_HOPS_MAX)
			return -EINVAL;
		memcpy(word, p, n);
		word[n] = '\0';
		if (pl_parse_u64(word, &node) < 0 || node >= UINT32_MAX)
			return -EINVAL;
		j->hops[j->n_hops++] = (uint32_t)node;
		p += p[n] == ',' ? n + 1 : n;
	}
	return j->n_hops > 0 ? 0 : -EINVAL;
}

static enum pl_dta_op op_of(const char *word)
{
	enum pl_dta_op op = PL_DTA_KEY_WRITE;

	for (size_t i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], word) == 0)
			op = (enum pl_dta_op)(PL_DTA_KEY_WRITE + i);
	}
	return op;
}

static int usage(const char *what)
{
	return pl_fail(-EINVAL, "report: %s", what);
}

/* Makes the report that the options describe; prints which options are missing. */
static int make_report(struct pl_report_send_options *j, const char *word)
{
	struct pl_dta_report *r = &j->report;
	bool keyed, valued;

	r->op = op_of(word);
	keyed = r->op == PL_DTA_KEY_WRITE || r->op == PL_DTA_INCREMENT || r->op == PL_DTA_POSTCARD;
	valued = r->op == PL_DTA_KEY_WRITE || r->op == PL_DTA_APPEND || r->op == PL_DTA_SKETCH;
	if (args.store > UINT16_MAX || args.copies > UINT8_MAX || args.list > UINT32_MAX ||
		args.epoch > UINT32_MAX || args.column > UINT32_MAX ||
		args.ring > PL_REPORTER_RING_MAX)
		return usage("a number is too large for a report");
	if (keyed != (args.key != NULL))
		return usage(keyed ? "missing key (--key)" : "append and sketch have no --key");
	if (valued != (args.value != NULL))
		return usage(valued ? "missing data (--data)" : "this primitive has no --data");
	if ((r->op == PL_DTA_POSTCARD) != (args.hops != NULL))
		return usage("postcard needs --hops, and no other primitive has --hops");
	/* Numbers have one order in the published forms. */
	if (strcmp(args.form, "pathline") != 0 && strcmp(args.key_form, "u32") == 0)
		args.key_form = "be32";
	if ((keyed && parse_item(&j->key, "key", args.key, args.key_form) < 0) ||
		(valued && parse_item(&j->value, "data", args.value, args.value_form) < 0))
		return -EINVAL;
	if ((args.step_key && !j->key.number) || (args.step_value && !j->value.number))
		return usage(
			"--step-key and --step-data need a --key-form or --data-form that is a number");
	if (j->key.n > PL_DTA_KEY_BYTES_MAX)
		return usage("a key has at most 255 bytes");
	if (args.hops != NULL && parse_hops(j) < 0)
		return usage("--hops is a list of at most 31 numbers: 10,20,30");
	r->immediate = args.immediate;
	r->store = (uint16_t)args.store;
	r->key_bytes = (uint8_t)j->key.n;
	r->key = j->key.bytes;
	r->data = j->value.bytes;
	r->data_bytes = (uint32_t)j->value.n;
	r->list = (uint32_t)args.list;
	r->increment = args.by;
	r->epoch = (uint32_t)args.epoch;
	r->first_column = (uint32_t)args.column;
	if (r->op == PL_DTA_KEY_WRITE || r->op == PL_DTA_INCREMENT)
		r->copies = args.copies == 0 && strcmp(args.form, "pathline") != 0
				    ? 4
				    : (uint8_t)args.copies;
	return 0;
}

static int send_from(const struct pl_opt_list *operands)
{
	struct pl_report_send_options o = {
		.reporter = {
			.form = (enum pl_dta_form)pl_opt_place(pl_arg_dta_forms, args.form),
			.sequenced = args.sequenced,
			.ring = (uint32_t)args.ring,
			.hold_ns = args.hold_ns,
			.linger_ns = args.linger_ns,
			.rate = args.rate,
		},
		.step_key = args.step_key,
		.step_value = args.step_value,
		.cut = args.cut,
		.count = args.count,
		.loop = args.loop,
	};
	int code = PL_EXIT_USAGE;

	if (operands->n != 2)
		return pl_fail(PL_EXIT_USAGE,
			"report: missing primitive or destination, such as: pathline report key-write udp://HOST:PORT");
	o.to = operands->items[1];
	if (make_report(&o, operands->items[0]) == 0)
		code = pl_report_send(&o);
	free(o.key.bytes);
	free(o.value.bytes);
	return code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands = { 0 };
	int code;

	memset(&args, 0, sizeof(args));
	args.form = pl_arg_dta_forms[PL_DTA_PATHLINE];
	args.key_form = args.value_form = pl_key_forms[0];
	args.by = args.count = 1;
	args.linger_ns = 1000000;
	if (pl_command_parse(&pl_command_report, argc, argv, &operands, &code) != 0)
		return code;
	code = PL_EXIT_USAGE;
	if (operands.n > 0 &&
		strcmp(words[op_of(operands.items[0]) - PL_DTA_KEY_WRITE], operands.items[0]) != 0)
		pl_complain(
			"report: unknown primitive \"%s\"; use key-write, append, increment, postcard or sketch",
			operands.items[0]);
	else
		code = send_from(&operands);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_report = {
	.name = "report",
	.summary = "send values to a translator, which writes them into telemetry memory",
	.usage = "key-write|append|increment|postcard|sketch [OPTION]… udp://HOST:PORT",
	.description =
		"Sends reports of Direct Telemetry Access over UDP. With --sequenced each report has a\n"
		"number, and report sends again the reports that the translator misses, while they are in\n"
		"the ring; a confirmation of the translator frees their places. Exit code 1: reports were\n"
		"lost, the translator refused them, or none confirmed them.\n"
		"One source port is one stream of numbers; a new process takes a new port.",
	.examples =
		"  pathline report key-write -k host7 -d up-- udp://127.0.0.1:40040\n"
		"  pathline report append --list 3 -d 0a0b0c0d --data-form hex udp://127.0.0.1:40040\n"
		"  pathline report increment -k 10.0.0.1 --by 1500 --store 2 udp://127.0.0.1:40040\n"
		"  pathline report postcard -k flow1 --hops 10,20,30 --store 3 udp://127.0.0.1:40040\n"
		"  pathline report key-write --sequenced -k 0 --key-form u64 --step-key -d 0 \\\n"
		"    --data-form u32 --step-data --count 1000000 --rate 100k udp://127.0.0.1:40040\n",
	.options = options,
	.words = words,
	.run = run,
};
