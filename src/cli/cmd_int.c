/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline int: this host as INT source or sink. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/record_args.h"
#include "decode/decode.h"
#include "runtime/serve.h"
#include "service/int_host.h"

#define BATCH_PATHS 256
#define BATCH_HOPS  4096
#define HOPS        8 /* hops that may add to a packet after the source */

static const char *const words[] = { "source", "sink", NULL };
static const char *const modes[] = { "auto", "native", "generic", NULL };
static const char *const pass_or_drop[] = { "pass", "drop", NULL };

static struct {
	const char *dev, *mode, *malformed, *outside, *rules_file;
	struct pl_args_service service;
	struct pl_record_args out;
	struct pl_opt_list to, rules;
	uint64_t node, dscp, bitmap, hops, mtu, every, hw_id;
	uint64_t change_ns, refresh_ns, ring_bytes;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_STRING, 0, "dev", &args.dev, "INTERFACE",
			"interface that packets leave by (source) or enter by (sink)", NULL },
		{ PL_OPT_U64, 0, "node", &args.node, "NUMBER",
			"this host's node id, at most 32 bits, which no other node has", NULL },
		{ PL_OPT_LIST, 0, "rule", &args.rules, "RULE",
			"source: packets that get INT; sink: packets from which INT is removed "
			"(default all); take or skip with conditions, such as \"take "
			"dst=10.0.0.0/8 port=443 sample_flows=16\"; the first rule that matches "
			"decides, a packet that none matches is left alone; may be repeated",
			NULL },
		{ PL_OPT_STRING, 0, "rules", &args.rules_file, "FILE",
			"rules from a file, one in a line, behind those of --rule; SIGHUP reads it again",
			NULL },
		{ PL_OPT_U64, 0, "dscp", &args.dscp, "NUMBER",
			"DSCP that announces INT, the same in the whole domain (default 23)",
			NULL },
		{ PL_OPT_HEADING, 0, "Options of source", NULL, NULL, NULL, NULL },
		{ PL_OPT_U64, 0, "instructions", &args.bitmap, "BITMAP",
			"values that every node on the path must add (INT v2.1 5.7): 0x8000 node "
			"id, 0x4000 ports, 0x2000 hop latency, 0x1000 queue, 0x0800 and 0x0400 "
			"ingress and egress time, 0x0200 level-2 ports, 0x0100 use of the port, "
			"0x0080 buffer; this host knows node id and egress time (default 0x8400)",
			NULL },
		{ PL_OPT_U64, 0, "hops", &args.hops, "NUMBER",
			"number of nodes behind this one that may add INT to a packet (default "
			"8)",
			NULL },
		{ PL_OPT_SIZE, 0, "mtu", &args.mtu, "BYTES",
			"longest IP packet with INT, if the path has a smaller MTU than the "
			"interface",
			NULL },
		{ PL_OPT_HEADING, 0, "Options of sink", NULL, NULL, NULL, NULL },
		{ PL_OPT_LIST, 0, "to", &args.to, "COLLECTOR",
			"send reports (Telemetry Report 2.0) to udp://HOST:PORT; may be repeated; "
			"without it they are printed",
			NULL },
		{ PL_OPT_U64, 0, "every", &args.every, "COUNT",
			"report one of this many packets of a flow (default 1: each packet, so "
			"that the numbers of flows show losses)",
			NULL },
		{ PL_OPT_DURATION, 0, "change", &args.change_ns, "TIME",
			"report the first packet of a flow, and then each packet whose latency "
			"differs by more than this from the last reported one, or whose INT has "
			"another length",
			NULL },
		{ PL_OPT_DURATION, 0, "refresh", &args.refresh_ns, "TIME",
			"with --change: longest time between two reports of a flow (default 1s)",
			NULL },
		{ PL_OPT_CHOICE, 0, "malformed", &args.malformed, "WHAT",
			"packets with the DSCP but without INT of this domain: pass them (default) "
			"or drop them",
			pass_or_drop },
		{ PL_OPT_CHOICE, 0, "outside", &args.outside, "WHAT",
			"packets with INT that no rule chooses: drop them (default) or pass them "
			"with INT to the host",
			pass_or_drop },
		{ PL_OPT_CHOICE, 0, "mode", &args.mode, "MODE",
			"where INT is removed: native (in the driver), generic (behind it) or auto "
			"(default: native if the driver can)",
			modes },
		{ PL_OPT_SIZE, 0, "ring", &args.ring_bytes, "SIZE",
			"size of the ring between the kernel and this process (default "
			"4MiB)",
			NULL },
		{ PL_OPT_U64, 0, "hw-id", &args.hw_id, "NUMBER",
			"hardware id in reports, 0 to 63 (default 0)", NULL },
		PL_RECORD_ARGS_FORM(args.out),
		{ PL_OPT_HEADING, 0, "Running", NULL, NULL, NULL, NULL },
		PL_ARGS_SERVICE(args.service),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* ---- printing ---- */

struct printer {
	struct pl_record_out out;
	struct pl_record_batch records;
	struct pl_decode *decode;
	struct pl_batch packets;
};

static void print_datagram(void *arg, const void *data, uint32_t len)
{
	struct printer *p = arg;

	p->packets.n = 1;
	p->packets.pkts[0] = (struct pl_packet){ .data = data,
		.len = len,
		.wire_len = len,
		.link = PL_LINK_UDP,
		.ts_ns = pl_clock_real_ns() };
	pl_decode_batch(p->decode, &p->packets, &p->records);
	pl_record_out_flush_batch(&p->records, &p->out);
}

static void print_turned(void *arg)
{
	pl_record_out_write(&((struct printer *)arg)->out);
}

static bool print_full(void *arg)
{
	return pl_record_out_full(&((struct printer *)arg)->out);
}

/* Returns 0, or prints the error and returns an exit code. */
static int printer_open(struct printer *p)
{
	const struct pl_decode_options decode = { .any_port = true };
	int code = pl_record_out_init(&p->out, args.out.form, NULL, args.out.count);

	if (code != 0)
		return code;
	p->out.lines = args.service.stats;
	if (pl_decode_new(&p->decode, &decode) < 0 ||
		pl_record_batch_init(&p->records, BATCH_PATHS, BATCH_HOPS) < 0)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	p->records.flush = pl_record_out_flush_batch;
	p->records.flush_arg = &p->out;
	return 0;
}

static void printer_close(struct printer *p)
{
	pl_decode_free(p->decode);
	pl_record_batch_done(&p->records);
	pl_record_out_done(&p->out);
}

/* ---- options ---- */

static int most(const char *name, uint64_t v, uint64_t limit)
{
	if (v <= limit)
		return 0;
	return pl_fail(
		PL_EXIT_USAGE, "--%s %" PRIu64 " is too large: at most %" PRIu64, name, v, limit);
}

static int check_numbers(bool sink)
{
	const struct {
		const char *name;
		uint64_t v, limit;
	} limits[] = { { "node", args.node, UINT32_MAX }, { "dscp", args.dscp, 63 },
		{ "instructions", args.bitmap, UINT16_MAX }, { "hops", args.hops, UINT8_MAX },
		{ "mtu", args.mtu, UINT16_MAX }, { "every", args.every, UINT32_MAX },
		{ "hw-id", args.hw_id, 63 }, { "ring", args.ring_bytes, UINT64_C(1) << 30 } };
	int code = 0;

	for (size_t i = 0; code == 0 && i < sizeof(limits) / sizeof(limits[0]); i++)
		code = most(limits[i].name, limits[i].v, limits[i].limit);
	if (code != 0)
		return code;
	if (args.dscp == 0)
		return pl_fail(PL_EXIT_USAGE,
			"--dscp 0 is what packets without a mark have; choose 1 to 63");
	if (args.ring_bytes != 0 &&
		(args.ring_bytes < 65536 || (args.ring_bytes & (args.ring_bytes - 1)) != 0))
		return pl_fail(PL_EXIT_USAGE,
			"--ring %" PRIu64 " must be a power of two from 64KiB on", args.ring_bytes);
	if (sink && args.every == 0)
		return pl_fail(PL_EXIT_USAGE,
			"--every 0 would report nothing; give 1 for each packet, or --change");
	return 0;
}

/* Refuses options without an effect in this role, which would suggest that reports are sent, or
 * fewer of them. */
static int check_role(bool sink)
{
	const struct {
		const char *name;
		bool given, of_sink;
	} options_of[] = { { "instructions", args.bitmap != PL_HOSTINT_BITMAP, false },
		{ "hops", args.hops != HOPS, false }, { "mtu", args.mtu != 0, false },
		{ "to", args.to.n > 0, true }, { "every", args.every != 1, true },
		{ "change", args.change_ns != 0, true },
		{ "refresh", args.refresh_ns != PL_HOSTINT_REFRESH, true },
		{ "malformed", args.malformed != pass_or_drop[0], true },
		{ "outside", args.outside != pass_or_drop[1], true },
		{ "mode", args.mode != modes[0], true }, { "ring", args.ring_bytes != 0, true },
		{ "hw-id", args.hw_id != 0, true } };

	for (size_t i = 0; i < sizeof(options_of) / sizeof(options_of[0]); i++) {
		if (!options_of[i].given || options_of[i].of_sink == sink)
			continue;
		return pl_fail(PL_EXIT_USAGE, "--%s is an option of int %s, not of int %s",
			options_of[i].name, sink ? "source" : "sink", sink ? "sink" : "source");
	}
	if (args.every != 1 && args.change_ns != 0)
		return pl_fail(PL_EXIT_USAGE,
			"--every and --change are two ways to choose what is reported: give one");
	return 0;
}

static int read_rules(struct pl_int_host_options *o, bool sink)
{
	struct pl_diag diag = { .text = "" };

	for (size_t i = 0; i < args.rules.n; i++) {
		if (pl_tap_rules_add(&o->rules, args.rules.items[i], &diag) < 0)
			return pl_fail(
				PL_EXIT_USAGE, "--rule %s: %s", args.rules.items[i], diag.text);
	}
	o->rules_file = args.rules_file;
	if (args.rules.n > 0 || args.rules_file != NULL)
		return 0;
	if (!sink)
		return pl_fail(PL_EXIT_USAGE,
			"int source: say which packets get INT by --rule or --rules, such as --rule \"take dst=10.0.0.0/8\"; their receivers must have a sink");
	return pl_tap_rules_add(&o->rules, "take", &diag) < 0 ? PL_EXIT_FAILED : 0;
}

/* Returns 0, or prints the error and returns an exit code. */
static int read_args(struct pl_int_host_options *o, bool sink)
{
	int code = check_numbers(sink);

	if (code == 0)
		code = check_role(sink);
	if (code != 0)
		return code;
	if (args.dev == NULL)
		return pl_fail(PL_EXIT_USAGE, "int: name the interface by --dev");
	if (args.node == 0)
		return pl_fail(PL_EXIT_USAGE,
			"int: give this host a node id by --node, which no other node has");
	if (args.to.n > PL_INT_HOST_TO_MAX)
		return pl_fail(PL_EXIT_USAGE, "at most %d collectors", PL_INT_HOST_TO_MAX);
	*o = (struct pl_int_host_options){ .hw_id = (uint8_t)args.hw_id,
		.to = args.to.items,
		.n_to = args.to.n,
		.kernel = { .dev = args.dev,
			.sink = sink,
			.dscp = (uint8_t)args.dscp,
			.node = (uint32_t)args.node,
			.bitmap = (uint16_t)args.bitmap,
			.hops = (uint8_t)args.hops,
			.mtu = (uint32_t)args.mtu,
			.mode = (enum pl_xdp_mode)pl_opt_place(modes, args.mode),
			.every = args.change_ns != 0 ? 0 : (uint32_t)args.every,
			.change_ns = args.change_ns,
			.refresh_ns = args.refresh_ns,
			.drop_malformed = strcmp(args.malformed, "drop") == 0,
			.drop_outside = strcmp(args.outside, "drop") == 0,
			.ring_bytes = args.ring_bytes } };
	return read_rules(o, sink);
}

/* ---- running ---- */

static void tell_begin(void *arg)
{
	const struct pl_int_host *h = arg;

	if (h->o->kernel.sink)
		pl_complain("INT sink on %s", h->o->kernel.dev);
	else
		pl_complain("INT source on %s: chosen packets become %u bytes longer",
			h->o->kernel.dev, (unsigned int)pl_hostint_growth(h->kernel));
	if (pl_hostint_unnoted(h->kernel) != 0)
		pl_complain(
			"no note of the filter could be written: should this process and its keeper be killed, it stays");
}

static int serve(struct pl_int_host *h)
{
	const struct pl_service service = { &pl_int_host_ops, h };
	const struct pl_runtime_options run =
		pl_args_runtime(&args.service, &service, 1, tell_begin, h);
	const int code = pl_serve(&run);

	return code != 0 ? code : pl_int_host_complete(h) ? PL_EXIT_OK : PL_EXIT_FAILED;
}

static int run_host(struct pl_int_host *h, bool sink)
{
	static struct pl_int_host_options o;
	static struct printer printer;
	const bool prints = sink && args.to.n == 0;
	int code = read_args(&o, sink);

	if (code == 0 && prints)
		code = printer_open(&printer);
	if (code != 0)
		return code;
	if (prints) {
		o.datagram = print_datagram;
		o.turned = print_turned;
		o.full = print_full;
		o.arg = &printer;
	}
	h->o = &o;
	code = serve(h);
	pl_int_host_close(h);
	if (prints) {
		if (h->began)
			pl_record_out_end(&printer.out);
		if (!pl_record_out_good(&printer.out))
			code = PL_EXIT_FAILED;
		printer_close(&printer);
	}
	return code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands = { 0 };
	struct pl_int_host *h;
	int code;

	memset(&args, 0, sizeof(args));
	args.dscp = PL_HOSTINT_DSCP;
	args.bitmap = PL_HOSTINT_BITMAP;
	args.hops = HOPS;
	args.every = 1;
	args.refresh_ns = PL_HOSTINT_REFRESH;
	args.out.form = pl_out_forms[PL_OUT_TABLE];
	args.mode = modes[0];
	args.malformed = pass_or_drop[0];
	args.outside = pass_or_drop[1];
	if (pl_command_parse(&pl_command_int, argc, argv, &operands, &code) != 0)
		return code;
	h = calloc(1, sizeof(*h));
	if (operands.n != 1 || pl_opt_place(words, operands.items[0]) == 2) {
		code = pl_fail(PL_EXIT_USAGE,
			"int: say source, where packets leave, or sink, where they arrive");
	} else if (h == NULL) {
		code = pl_fail(PL_EXIT_FAILED, "out of memory");
	} else {
		code = run_host(h, strcmp(operands.items[0], "sink") == 0);
	}
	free(h);
	pl_opt_list_done(&args.to);
	pl_opt_list_done(&args.rules);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_int = {
	.name = "int",
	.summary = "make this host an INT source or sink",
	.usage = "source|sink --dev INTERFACE --node NUMBER [OPTION]…",
	.description =
		"source gives packets that leave by an interface INT v2.1 (MD): node id, the time they\n"
		"leave at, and a number within their flow, behind the TCP or UDP header; a DSCP announces\n"
		"it. sink takes INT off packets that enter, before the network stack sees them, and sends\n"
		"reports to a collector, which tells latency from source to sink, packets lost, and the\n"
		"path where INT switches between them add to it. Both work in the kernel (eBPF, Linux 6.1).\n"
		"\n"
		"Start sinks before sources: a packet with INT that no sink takes off reaches its program\n"
		"with bytes that are not the sender's. A packet that INT would make longer than the MTU,\n"
		"and what TCP hands to the NIC to be taken apart into segments (TSO), is sent as it was,\n"
		"and counted: bulk transfers keep their speed, and are measured by their other packets.\n"
		"docs/guide/int-hosts.md has how to measure each segment.\n"
		"\n"
		"Times of two hosts are compared: their clocks must agree, by PTP or NTP, better than\n"
		"the latency that is of interest.\n"
		"\n"
		"Every packet is accounted for by cause; --stats ends with all counters, SIGUSR1 prints\n"
		"them meanwhile. The programs leave with the process, also after kill -9.",
	.examples =
		"  pathline int sink --dev eth0 --node 2 --to udp://192.0.2.10:32766\n"
		"  pathline int source --dev eth0 --node 1 --rule 'take dst=10.1.0.0/16 proto=udp'\n"
		"  pathline int sink --dev eth0 --node 2 --change 100us --to udp://192.0.2.10:32766\n"
		"  pathline int sink --dev eth0 --node 2 --rule 'take src=10.1.0.0/16' -o jsonl\n",
	.options = options,
	.words = words,
	.run = run,
};
