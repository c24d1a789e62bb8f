/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline meter: counts marked packets on an interface; loss and delay of them, from captures. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "ask/mark_observe.h"
#include "ask/mark_read.h"
#include "base/num.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/mark_args.h"
#include "mark/guard.h"
#include "show/record_out.h"

/* Options for captures and interfaces, as given and by default; then those for captures only. */
static struct pl_mark_args args, defaults;
static struct {
	struct pl_opt_list files, links, zooms, back;
	const char *write;
	uint64_t tai_offset, square, reorder, samples;
	bool records;
} captures;

#define SAMPLES_DEFAULT 64u /* with --method hash */
#define SAMPLES_MAX     65536u

static const char *const modes[] = { "tc", "native", NULL };

/* In the order of enum pl_mark_method, from 1 on; then methods that are not alternate marking. */
static const char *const methods[] = {
#define PL_MARK_METHOD(number, id, name, help) [(number)-1] = (name),
#include "record/fields.def"
	"quic",
	"hash",
	NULL,
};

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		PL_MARK_ARGS_DEV(args, "count on this interface"),
		{ PL_OPT_STRING, 0, "from", &args.from, "HOST[:PORT]",
			"print loss and delay of packets that another host marks with pathline "
			"mark --to; its records come to the UDP port (default 40051), and the "
			"interface is that of the route to it",
			NULL },
		{ PL_OPT_CHOICE, 0, "direction", &args.direction, "WHICH",
			"count packets that enter by the interface: in (default), or packets that "
			"leave by it: out",
			pl_mark_arg_directions },
		{ PL_OPT_CHOICE, 0, "mode", &args.mode, "MODE",
			"where packets are counted: tc (default), in traffic control; for entering "
			"packets also native, by XDP in the driver, before GRO",
			modes },
		PL_MARK_ARGS_LOSS_ONLY(args),
		PL_MARK_ARGS_RECORDS(args, "", "format (default table, and nothing with --to)"),
		PL_MARK_ARGS_RUNNING(args),
		{ PL_OPT_HEADING, 0, "Captures", NULL, NULL, NULL, NULL },
		{ PL_OPT_LIST, 0, "read", &captures.files, "[NAME=]FILE",
			"a capture from a point of the path, or a file NAME.mark128 with the "
			"records of one or several points; repeated, in the order in which packets "
			"pass the points",
			NULL },
		{ PL_OPT_LIST, 0, "link", &captures.links, "FROM>TO",
			"in a network with several paths: two captures, by name, with no third "
			"one between them; loss is computed for clusters (RFC 9342); repeated "
			"(default: a path through all captures)",
			NULL },
		{ PL_OPT_LIST, 0, "zoom", &captures.zooms, "FROM>TO",
			"besides single links or clusters, print loss and delay of the part of the "
			"network between these captures, by name, several with + (a+b>c); may be "
			"repeated",
			NULL },
		{ PL_OPT_LIST, 0, "back", &captures.back, "PREFIX",
			"packets from these addresses pass the captures in the opposite order: "
			"both directions are compared, and two-way delay is printed, in which the "
			"difference of clocks cancels; may be repeated",
			NULL },
		{ PL_OPT_U64, 0, "tai-offset", &captures.tai_offset, "SECONDS",
			"seconds by which the marker's clock is ahead of the captures' time of "
			"day: 37 if its kernel knows TAI, 0 if not (default 0)",
			NULL },
		{ PL_OPT_FLAG, 0, "records", &captures.records, NULL,
			"print the counts of each point (mark128/1) instead of loss and delay",
			NULL },
		{ PL_OPT_STRING, 'w', "write", &captures.write, "FILE",
			"write the counts of each point to a file of records, NAME.mark128, or loss and delay, "
			"NAME.seg192, which pathline query reads",
			NULL },
		{ PL_OPT_U64, 0, "square", &captures.square, "COUNT",
			"with --method quic: packets in a block of the square bit, a power of two from 64 on "
			"(default: the one that most blocks fit)",
			NULL },
		{ PL_OPT_U64, 0, "reorder", &captures.reorder, "COUNT",
			"with --method quic: number of packets behind the first one of a block "
			"among which late packets of the block before are searched, at most 31 "
			"(default 16)",
			NULL },
		{ PL_OPT_U64, 0, "samples", &captures.samples, "COUNT",
			"largest number of packets of each flow and block that a hash chooses, from 2 to 65536; "
			"together with marks, this gives their delays as well (default none; with "
			"--method hash 64)",
			NULL },
		{ PL_OPT_HEADING, 0, "Marking", NULL, NULL, NULL, NULL },
		PL_MARK_ARGS_RULES(args, "which packets are counted (default all)"),
		{ PL_OPT_CHOICE, 0, "method", &args.method, "METHOD",
			"how packets are marked (default step; double with two bits); quic: "
			"by the ends of QUIC connections (RFC 9506), read from one capture; hash: not "
			"marked, a hash over bytes that no router changes chooses packets of captures "
			"(RFC 9342, 7.2.2)",
			methods },
		{ PL_OPT_LIST, 0, "bit", &args.bits, "BIT",
			"where the mark is: dscp:N, tos:N, tclass:N, ecn:N, ipv4-reserved, altmark (in "
			"Hop-by-Hop or Destination Options) or, of captures, sfl:A/B (labels of MPLS); twice for double marking, the colour first, "
			"but for altmark, which has both (default dscp:0); with --method quic spin:N, delay:N, "
			"square:N, loss:N, reflection:N, trip:N and ecn-echo:N, bits 3 to 6 of the first byte "
			"of short headers (default spin:5)",
			NULL },
		PL_MARK_ARGS_BLOCKS(args),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* For files of records, of which each may have several points. Returns 0, or prints the error and
 * returns an exit code. */
static int read_files(struct pl_mark_read_options *o, size_t files)
{
	const struct {
		const char *name;
		bool given;
	} of_captures[] = { { "rule", args.rules.n > 0 }, { "back", captures.back.n > 0 },
		{ "method", args.method != NULL }, { "bit", args.bits.n > 0 },
		{ "flows", args.flows != PL_OPT_NOT_GIVEN },
		{ "samples", captures.samples != PL_OPT_NOT_GIVEN },
		{ "tai-offset", captures.tai_offset != 0 }, { "records", captures.records },
		{ "write", captures.write != NULL && !pl_mark_read_is_of_results(captures.write) },
		{ "stats", args.service.stats } };

	if (files < o->n)
		return pl_fail(PL_EXIT_USAGE,
			"meter: give captures or files of records: a file of a capture's counts "
			"is written by --read CAPTURE --records --write NAME.mark128");
	for (size_t i = 0; i < sizeof(of_captures) / sizeof(of_captures[0]); i++) {
		if (!of_captures[i].given)
			continue;
		return pl_fail(PL_EXIT_USAGE,
			"--%s is an option for captures, not for files of records",
			of_captures[i].name);
	}
	o->of_files = true;
	o->guard_ns = 0;
	o->clock_ns = args.clock_error_ns == PL_OPT_NOT_GIVEN ? 0 : args.clock_error_ns;
	return 0;
}

static bool is_hash(void)
{
	return args.method != NULL && strcmp(args.method, "hash") == 0;
}

/* Checks the options of hashed packets, which have neither a mark nor a guard band. Returns 0, or
 * an exit code after printing the error. */
static int hash_args(struct pl_mark_read_options *o)
{
	const struct {
		const char *name;
		bool given;
	} of_marks[] = { { "bit", args.bits.n > 0 }, { "back", captures.back.n > 0 },
		{ "records", captures.records }, { "write", captures.write != NULL },
		{ "to", args.to.n > 0 }, { "flows", args.flows != PL_OPT_NOT_GIVEN },
		{ "clock-error", args.clock_error_ns != PL_OPT_NOT_GIVEN },
		{ "delay", args.delay_ns != defaults.delay_ns },
		{ "deviation", args.deviation_ns != defaults.deviation_ns } };

	for (size_t i = 0; i < sizeof(of_marks) / sizeof(of_marks[0]); i++) {
		if (!of_marks[i].given)
			continue;
		return pl_fail(PL_EXIT_USAGE,
			"--%s is an option for marked packets, not for --method hash",
			of_marks[i].name);
	}
	if (o->period_ns < PL_MARK_PERIOD_MIN_NS || o->period_ns > PL_MARK_PERIOD_MAX_NS)
		return pl_fail(PL_EXIT_USAGE, "meter: --period is from 1us to 1h");
	o->unmarked = true;
	return 0;
}

/* As on an interface: packets without a matching rule are ignored. Returns 0, or an exit code after
 * an error message. */
static int rule_args(struct pl_tap_rules *ret)
{
	struct pl_diag diag = { .text = "" };
	const char *text = "skip";
	int r = 0;

	for (size_t i = 0; r == 0 && i < args.rules.n; i++) {
		text = args.rules.items[i];
		r = pl_tap_rules_add(ret, text, &diag);
	}
	if (r == 0 && args.rules.n > 0)
		r = pl_tap_rules_add(ret, "skip", &diag);
	if (r == 0)
		return 0;
	return pl_fail(PL_EXIT_USAGE, "--rule %s: %s", text, diag.text);
}

/* Returns 0, or prints the error and returns an exit code. */
static int sample_args(struct pl_mark_read_options *o)
{
	const bool given = captures.samples != PL_OPT_NOT_GIVEN;

	o->samples = given ? (uint32_t)captures.samples : is_hash() ? SAMPLES_DEFAULT : 0;
	if (given && (captures.samples < 2 || captures.samples > SAMPLES_MAX))
		return pl_fail(PL_EXIT_USAGE, "meter: --samples is from 2 to %u", SAMPLES_MAX);
	if (given && !is_hash() && (o->method == PL_MARK_PULSE || o->records))
		return pl_fail(PL_EXIT_USAGE,
			"--samples is of blocks that are compared by their colour: not for --method pulse, nor --records");
	return 0;
}

/* Reads addresses whose flows pass the captures in the opposite order. Returns 0, or an exit code
 * after an error message. */
static int back_args(struct pl_mark_read_options *o)
{
	if (captures.back.n > PL_MARK_BACK_MAX)
		return pl_fail(PL_EXIT_USAGE, "meter: at most %d --back", PL_MARK_BACK_MAX);
	for (size_t i = 0; i < captures.back.n; i++) {
		struct pl_prefix *p = &o->back[o->n_back++];
		unsigned int bits = 0;

		if (pl_parse_prefix(captures.back.items[i], &p->addr, &bits) < 0)
			return pl_fail(PL_EXIT_USAGE,
				"--back %s: a prefix of IPv4 or IPv6, such as 10.1.0.0/16",
				captures.back.items[i]);
		p->bits = (uint8_t)bits;
	}
	return 0;
}

/* Reads the form of marks, and checks that the period has room for it. Returns 0, or an exit code
 * after an error message. */
static int mark_args(struct pl_mark_read_options *o, const struct pl_mark_spread *spread)
{
	static const char *const usual[] = { "dscp:0" };
	const bool given = args.bits.n > 0;
	struct pl_diag diag = { .text = "" };

	if (pl_mark_where_parse(&o->where, o->method, given ? args.bits.items : usual,
		    given ? args.bits.n : 1, &diag) < 0 ||
		pl_mark_guard_check(&o->guard_ns, o->method, o->period_ns, spread, &diag) < 0)
		return pl_fail(PL_EXIT_USAGE, "meter: %s", diag.text);
	return 0;
}

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

/* Returns 0, or prints the error and returns an exit code. */
static int read_args(struct pl_mark_read_options *o)
{
	const struct pl_mark_spread spread = { pl_mark_args_clock_error(&args), args.delay_ns,
		args.deviation_ns };
	const char *method = args.method != NULL ? args.method
			     : args.bits.n > 1   ? methods[PL_MARK_DOUBLE - 1]
						 : methods[0];
	int code;

	const size_t files = pl_mark_read_files(captures.files.items, captures.files.n);

	*o = (struct pl_mark_read_options){
		.captures = captures.files.items,
		.n = captures.files.n,
		.links = captures.links.items,
		.n_links = captures.links.n,
		.zooms = captures.zooms.items,
		.n_zooms = captures.zooms.n,
		.method = (uint8_t)(pl_opt_place(methods, method) + 1),
		.period_ns = args.period_ns,
		.clock_ns = spread.clock_ns,
		.tai_offset = (uint32_t)captures.tai_offset,
		.flows_max = args.flows == PL_OPT_NOT_GIVEN ? 65536 : (uint32_t)args.flows,
		.form = args.form != NULL ? args.form : pl_out_forms[PL_OUT_TABLE],
		.records = captures.records,
		.write = captures.write,
		.to = args.to.items,
		.n_to = args.to.n,
		.quiet = args.to.n > 0 && args.form == NULL,
		.stats = args.service.stats,
	};
	if (o->n > PL_MARK_READ_MAX || o->n_links > PL_MARK_LINKS_MAX ||
		o->n_zooms > PL_MARK_ZOOMS_MAX)
		return pl_fail(PL_EXIT_USAGE, "meter: at most %d captures, %d links and %d --zoom",
			PL_MARK_READ_MAX, PL_MARK_LINKS_MAX, PL_MARK_ZOOMS_MAX);
	if (o->write != NULL && !pl_mark_read_is_of_results(o->write) &&
		!ends_with(o->write, ".mark128"))
		return pl_fail(PL_EXIT_USAGE,
			"--write %s: by its name a file of counts, NAME.mark128, or of loss and delay, NAME.seg192",
			o->write);
	if (captures.records && o->write != NULL && pl_mark_read_is_of_results(o->write))
		return pl_fail(PL_EXIT_USAGE,
			"meter: --records makes no loss and delay: leave it out with --write NAME.seg192");
	if (files > 0)
		return read_files(o, files);
	if (o->n < (captures.records ? 1u : 2u))
		return pl_fail(PL_EXIT_USAGE, "meter: %s",
			captures.records
				? "missing --read FILE"
				: "loss and delay are between two points: give --read FILE twice or more; --records prints what one point counted");
	if (captures.tai_offset > UINT16_MAX || args.flows == 0 ||
		(args.flows != PL_OPT_NOT_GIVEN && args.flows > UINT32_C(1) << 24))
		return pl_fail(PL_EXIT_USAGE,
			"meter: --tai-offset is at most %d, --flows is from 1 to %u", UINT16_MAX,
			UINT32_C(1) << 24);
	code = is_hash() ? hash_args(o) : mark_args(o, &spread);
	if (code == 0)
		code = back_args(o);
	if (code == 0)
		code = sample_args(o);
	if (code != 0)
		return code;
	return rule_args(&o->rules);
}

/* For an observer of QUIC. Returns 0, or prints the error and returns an exit code. */
static int observe_args(struct pl_mark_observe_options *o)
{
	const struct {
		const char *name;
		bool given;
	} of_blocks[] = { { "samples", captures.samples != PL_OPT_NOT_GIVEN },
		{ "link", captures.links.n > 0 }, { "zoom", captures.zooms.n > 0 },
		{ "back", captures.back.n > 0 }, { "tai-offset", captures.tai_offset != 0 },
		{ "records", captures.records }, { "write", captures.write != NULL },
		{ "period", args.period_ns != defaults.period_ns }, { "by", args.by != NULL },
		{ "clock-error", args.clock_error_ns != PL_OPT_NOT_GIVEN },
		{ "delay", args.delay_ns != defaults.delay_ns },
		{ "deviation", args.deviation_ns != defaults.deviation_ns },
		{ "rules", args.rules_file != NULL }, { "to", args.to.n > 0 } };
	struct pl_diag diag = { .text = "" };

	if (captures.files.n != 1)
		return pl_fail(PL_EXIT_USAGE,
			"meter: --method quic reads one capture: give --read FILE once");
	for (size_t i = 0; i < sizeof(of_blocks) / sizeof(of_blocks[0]); i++) {
		if (!of_blocks[i].given)
			continue;
		return pl_fail(PL_EXIT_USAGE,
			"--%s is an option of alternate marking, not for --method quic",
			of_blocks[i].name);
	}
	if (args.flows == 0 || (args.flows != PL_OPT_NOT_GIVEN && args.flows > UINT32_C(1) << 24) ||
		captures.square > UINT32_MAX)
		return pl_fail(PL_EXIT_USAGE, "meter: --flows is from 1 to %u, --square at most %u",
			UINT32_C(1) << 24, PL_EFM_SQUARE_MAX);
	*o = (struct pl_mark_observe_options){
		.path = captures.files.items[0],
		.form = args.form != NULL ? args.form : pl_out_forms[PL_OUT_TABLE],
		.stats = args.service.stats,
		.observer = {
			.efm = { .square = (uint32_t)captures.square,
				.threshold = captures.reorder < UINT32_MAX
						     ? (uint32_t)captures.reorder
						     : UINT32_MAX },
			.flows_max = args.flows == PL_OPT_NOT_GIVEN ? 65536 : (uint32_t)args.flows,
			.any_port = args.rules.n > 0,
		},
	};
	if (pl_mark_observe_bits(&o->observer.efm, args.bits.items, args.bits.n, &diag) < 0)
		return pl_fail(PL_EXIT_USAGE, "meter: %s", diag.text);
	return rule_args(&o->rules);
}

static bool is_quic(void)
{
	return args.method != NULL && strcmp(args.method, "quic") == 0;
}

/* Refuses options that would change nothing. Returns 0, or an exit code after an error message. */
static int check_kind(void)
{
	const bool live = args.dev != NULL || args.from != NULL;
	const struct {
		const char *name;
		bool given, of_captures;
	} options_of[] = { { "read", captures.files.n > 0, true },
		{ "link", captures.links.n > 0, true }, { "zoom", captures.zooms.n > 0, true },
		{ "back", captures.back.n > 0, true },
		{ "samples", captures.samples != PL_OPT_NOT_GIVEN, true },
		{ "tai-offset", captures.tai_offset != 0, true },
		{ "records", captures.records, true }, { "write", captures.write != NULL, true },
		{ "direction", args.direction != NULL, false },
		{ "mode", args.mode != NULL, false }, { "pin", args.pin != NULL, false },
		{ "loss-only", args.loss_only, false }, { "point", args.point != 0, false },
		{ "rules", args.rules_file != NULL, false }, { "by", args.by != NULL, false },
		{ "count", args.count != 0, false },
		{ "duration", args.service.duration_ns != 0, false },
		{ "web", args.service.web != NULL, false },
		{ "user", args.service.user != NULL, false },
		{ "group", args.service.group != NULL, false } };

	for (size_t i = 0; i < sizeof(options_of) / sizeof(options_of[0]); i++) {
		if (!options_of[i].given || options_of[i].of_captures != live)
			continue;
		return pl_fail(PL_EXIT_USAGE,
			live ? "--%s is an option for captures, not for an interface (--dev)"
			     : "--%s is an option for an interface: name it by --dev",
			options_of[i].name);
	}
	if (live && (is_quic() || is_hash()))
		return pl_fail(PL_EXIT_USAGE,
			"--method %s is for captures: on an interface take step, pulse, double or multiplexed",
			args.method);
	if (!is_quic() && (captures.square != 0 || captures.reorder != PL_EFM_THRESHOLD))
		return pl_fail(
			PL_EXIT_USAGE, "--square and --reorder are options of --method quic");
	return 0;
}

static int meter(void)
{
	static struct pl_mark_read_options o;
	static struct pl_mark_observe_options observe;
	int code = check_kind();

	if (code == 0 && (args.dev != NULL || args.from != NULL))
		return pl_mark_args_serve(&pl_command_meter, &args, PL_HOSTMARK_METER, false,
			args.to.n == 0 || args.form != NULL);
	signal(SIGPIPE, SIG_IGN);
	if (code == 0 && is_quic()) {
		code = observe_args(&observe);
		return code == 0 ? pl_mark_observe(&observe) : code;
	}
	if (code == 0)
		code = read_args(&o);
	return code == 0 ? pl_mark_read_captures(&o) : code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands = { 0 };
	int code;

	pl_mark_args_begin(&args);
	pl_mark_args_begin(&defaults);
	memset(&captures, 0, sizeof(captures));
	captures.reorder = PL_EFM_THRESHOLD;
	captures.samples = PL_OPT_NOT_GIVEN;
	if (pl_command_parse(&pl_command_meter, argc, argv, &operands, &code) != 0)
		return code;
	if (operands.n > 0) {
		code = pl_fail(PL_EXIT_USAGE,
			"meter: '%s' is no option; captures are given by --read, an interface by --dev",
			operands.items[0]);
	} else {
		code = meter();
	}
	pl_opt_list_done(&operands);
	pl_opt_list_done(&captures.files);
	pl_opt_list_done(&captures.links);
	pl_opt_list_done(&captures.zooms);
	pl_opt_list_done(&captures.back);
	pl_mark_args_done(&args);
	return code;
}

const struct pl_command pl_command_meter = {
	.name = "meter",
	.summary = "loss and delay of traffic that is marked (alternate marking)",
	.usage = "[OPTION]… --from HOST|--dev INTERFACE|--read [NAME=]FILE --read [NAME=]FILE…",
	.description =
		"With --dev counts packets that 'pathline mark' coloured (alternate marking, RFC 9341) by\n"
		"flow and block, on an interface, in the kernel (eBPF, Linux 6.1). Each block of each flow\n"
		"becomes a record at (k + 1.5) periods, also without packets: packets, bytes, times, and\n"
		"evidence against it, such as late packets and the state of the clock. The packets by which\n"
		"two points' records of a block differ were lost between them. Packets that were put\n"
		"together (GRO), or are to be taken apart (TSO), are counted as they are on the wire. The\n"
		"program leaves with the process, also after kill -9; with --pin it goes on counting, and\n"
		"the next process reads the blocks that came meanwhile, if it begins within six periods.\n"
		"\n"
		"With --from prints loss and delay of packets that another host marks (pathline mark --to this\n"
		"host), while both commands run: a row for each flow and block, when both have its record.\n"
		"Method, bits and period must be the same at both, and are by default.\n"
		"\n"
		"With --read compares captures that were taken at points of a path, of traffic whose packets\n"
		"carry the mark: loss to the packet, and one-way delay, for each flow, block and link, and\n"
		"from the first point to the last. A capture of the point that marks, or of one behind it,\n"
		"comes first. Files of records (meter and mark --to file:NAME.mark128) are compared in the\n"
		"same way: of a file with several points the marker is the first, and points have their\n"
		"numbers as names.\n"
		"Results go where the records of a tap go by --to, as seg192/1: one for each flow, block\n"
		"and link, in which numbers that are not known are absent; with --records the counts of each\n"
		"point go there, as mark128/1.\n"
		"\n"
		"Bits: dscp:N (0 to 5), tos:N of IPv4 and tclass:N of IPv6 (2 to 7), ecn:N (0, 1),\n"
		"ipv4-reserved (in front of DF), altmark (the IPv6 option of RFC 9343: both bits and an id\n"
		"of the flow); of captures also sfl:A/B, labels of MPLS (RFC 8957) for colour 0 and 1.\n"
		"\n"
		"A result has packets sent and received, and loss, which is negative when more arrived than\n"
		"was sent; the delay is that of the pulse, the mean delay is there when nothing was lost.\n"
		"The column alarms says why a value is absent or not to be relied on. The guard band\n"
		"(clock error + delay + 3 x deviation) must be below half of the period, a quarter for the\n"
		"methods pulse and multiplexed.\n"
		"\n"
		"With --back the captures have both directions of the flows: those from these prefixes are\n"
		"compared in the opposite order, and the second of a flow's two rows of a block has their\n"
		"two-way delay, which needs no clocks that agree but for the guard band: give --clock-error.\n"
		"\n"
		"--method quic reads what the ends of QUIC connections tell (RFC 9000 17.4, RFC 9506), from\n"
		"one capture: a row for each direction with the round-trip time by the spin bit, the part\n"
		"of it beyond the observer (half), and, where the ends set more bits and --bit says where,\n"
		"loss before the observer (uloss), from end to end (eloss) and behind it (dloss). No\n"
		"standard places bits other than spin:5; square:4 and loss:3 are those of a proposal. The\n"
		"column spin says whether a connection spins at all: one in eight does not. Connections of\n"
		"other ports than 443 are taken behind their handshake, or all that --rule chooses.\n"
		"\n"
		"With --method hash packets carry no mark: those are compared whose hash, of identification,\n"
		"addresses and the first bytes behind the IP header, ends with so many bits of 0 that\n"
		"--samples of a flow and block are left. A row has how many were chosen at the first point,\n"
		"and came or were not found at the second, and their least, mean and largest delay; a packet\n"
		"that takes longer than a period counts as not found. Beside marks, --samples gives many\n"
		"delays of each block, also where packets take several ways; a second bit gives one.\n"
		"\n"
		"On an interface --stats ends with all counters, SIGUSR1 prints them meanwhile.\n"
		"Exit code 3: no packet could be counted.",
	.examples =
		"  pathline meter --from 10.1.0.1\n"
		"  pathline meter --dev eth0 --point 2 --to udp://192.0.2.10:40050\n"
		"  pathline meter --dev eth0 --direction out --rule 'take proto=udp' --by none\n"
		"  pathline meter --read in=a.pcap --read out=b.pcap\n"
		"  pathline meter --back 10.2.0.0/16 --clock-error 100ms --read a.pcap --read b.pcap\n"
		"  pathline meter --method hash --samples 256 --read in=a.pcap --read out=b.pcap\n"
		"  pathline meter --read sent.mark128 --read came.mark128\n"
		"  pathline meter -w lost.seg192 --read in=a.pcap --read out=b.pcap\n"
		"  pathline meter --method multiplexed --bit ipv4-reserved --period 2s --read a.pcap --read b.pcap\n"
		"  pathline meter --method double --bit altmark -o jsonl --read a.pcap --read b.pcap --read c.pcap\n"
		"  pathline meter --records -o csv --read a.pcap\n"
		"  pathline meter --method quic --bit spin:5 --bit square:4 --bit loss:3 --read quic.pcap\n",
	.options = options,
	.run = run,
};
