/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline listen: prints packets that arrive, decoded, and why others do not decode. */
#include "ask/listen.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/decode_args.h"
#include "cli/packet_args.h"
#include "cli/record_args.h"
#include "decode/decode.h"
#include "show/record_out.h"
#include "tap/source.h"

static struct {
	struct pl_record_args out;
	uint64_t duration_ns;
	struct pl_decode_args decode;
	const char *filter, *user, *group;
	bool packets, flows, dns, drops;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Output", NULL, NULL, NULL, NULL },
		PL_RECORD_ARGS_FORM(args.out),
		{ PL_OPT_DURATION, 0, "duration", &args.duration_ns, "TIME",
			"stop after this long: 30s, 5m", NULL },
		PL_RECORD_ARGS_WHICH(args.out),
		PL_ARGS_FILTER(args.filter),
		PL_DECODE_ARGS(args.decode),
		{ PL_OPT_HEADING, 0, "Records of packets (tmpkt/1)", NULL, NULL, NULL, NULL },
		{ PL_OPT_FLAG, 0, "packets", &args.packets, NULL,
			"print records of packets that taps, switches or NICs send (default "
			"udp://:40050), as 'pathline tap' prints them",
			NULL },
		{ PL_OPT_FLAG, 0, "flows", &args.flows, NULL,
			"print records of flows that arrive, and of flows made from packets that "
			"arrive",
			NULL },
		{ PL_OPT_FLAG, 0, "dns", &args.dns, NULL, "DNS messages that arrive", NULL },
		{ PL_OPT_FLAG, 0, "drops", &args.drops, NULL,
			"print records of packets that the kernel of another host dropped", NULL },
		{ PL_OPT_HEADING, 0, "Rights", NULL, NULL, NULL, NULL },
		PL_ARGS_CONFINE(args.user, args.group),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* Records of packets, which a tap reads and prints. */
static int listen_packets(const struct pl_opt_list *uris)
{
	const struct pl_packet_args packets = { .out = &args.out,
		.kind = args.flows   ? "--flows"
			: args.dns   ? "--dns"
			: args.drops ? "--drops"
				     : NULL,
		.user = args.user,
		.group = args.group,
		.duration_ns = args.duration_ns };
	const struct pl_opt_list usual = { .items = (const char *[]){ "udp://:40050" }, .n = 1 };

	if (args.packets + args.flows + args.dns + args.drops > 1)
		return pl_fail(
			PL_EXIT_USAGE, "listen: one of --packets, --flows, --dns and --drops");
	if (pl_decode_args_given(&args.decode) || args.filter != NULL)
		return pl_fail(PL_EXIT_USAGE,
			"listen: settings of reports and --filter are not of records of packets");
	for (size_t i = 0; i < uris->n; i++) {
		if (pl_tap_source_is_tmpkt(uris->items[i]))
			continue;
		return pl_fail(PL_EXIT_USAGE,
			"%s: records of packets arrive at udp://HOST:PORT, packet:IFACE?carries=tmpkt "
			"or afxdp:IFACE?carries=tmpkt; 'pathline tap' makes them of an interface's packets",
			uris->items[i]);
	}
	return pl_packets_print(&packets, uris->n > 0 ? uris : &usual);
}

static int run(int argc, char **argv)
{
	struct pl_decode_options decode = { .any_port = true };
	struct pl_opt_list uris = { 0 };
	struct pl_record_out out;
	struct pl_profile profile;
	int code, r;

	args.out.form = pl_out_forms[PL_OUT_TABLE];
	if (pl_command_parse(&pl_command_listen, argc, argv, &uris, &code) != 0)
		return code;
	if (args.packets || args.flows || args.dns || args.drops) {
		code = listen_packets(&uris);
		pl_decode_args_done(&args.decode);
		pl_opt_list_done(&uris);
		return code;
	}
	r = pl_record_out_init(&out, args.out.form, args.out.where, args.out.count);
	if (r == 0)
		r = pl_decode_args_apply(&args.decode, &decode, &profile);
	if (r == 0) {
		const struct pl_listen_options o = { .uris = (const char *const *)uris.items,
			.n = uris.n,
			.decode = &decode,
			.user = args.user,
			.group = args.group,
			.filter = args.filter,
			.duration_ns = args.duration_ns,
			.stats = args.out.stats };

		r = pl_listen(&o, &out);
	}
	pl_record_out_done(&out);
	pl_decode_args_done(&args.decode);
	pl_opt_list_done(&uris);
	return r;
}

const struct pl_command pl_command_listen = {
	.name = "listen",
	.summary = "print arriving telemetry, and explain packets that do not decode",
	.usage = "[OPTION]… [udp://HOST:PORT | afxdp:IFACE | packet:IFACE | ioam6:]…",
	.description =
		"Receives telemetry reports and prints them decoded. Without an address it listens on\n"
		"UDP ports 32766 and 54321 of every address. afxdp: and packet: take report traffic from\n"
		"a network interface, bypassing the network stack or as copies beside it;\n"
		"'?port=N,...&dst=ADDR,...&vlan=N,...' selects it (docs/ports.md lists all keys). The\n"
		"first datagram of each kind that does not decode is explained on standard error, with\n"
		"its bytes and the position of the error; later ones are counted. When an option would\n"
		"decode an exporter's packets (its dialect, say), the option and the entry of profiles:\n"
		"for the daemon are told as well. The command ends after\n"
		"-n records, --duration, SIGINT or SIGTERM, with statistics that include the packets\n"
		"dropped by the kernel. Exit code 3: no record was printed. Addresses need no privileges,\n"
		"interfaces the capabilities that 'pathline doctor' names. Records of packets (tmpkt/1) are\n"
		"printed with --packets, --flows, --dns or --drops.",
	.examples =
		"  pathline listen\n"
		"  pathline listen udp://:32766\n"
		"  pathline listen 'packet:eth0?port=32766&vlan=10'\n"
		"  pathline listen 'afxdp:eth0?queues=0-3'\n"
		"  pathline listen -o jsonl --duration 30s 'udp://10.0.0.1:32766?rcvbuf=16MiB'\n"
		"  pathline listen --packets udp://:40050\n"
		"  pathline listen --where 'flags.dropped or hops.queue_depth > 1000'\n",
	.options = options,
	.run = run,
};
