/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline tap: a record of every packet. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/command.h"
#include "cli/decode_args.h"
#include "runtime/serve.h"
#include "service/tap_account.h"
#include "show/flat_out.h"
#include "tap/drops.h"
#include "tap/kernel.h"
#include "tap/source.h"

static const struct pl_flow_config flow = PL_FLOW_CONFIG;

static struct {
	const char *form, *where, *filter, *rules_file, *flow_state;
	struct pl_opt_list to, rules, vxlan_ports;
	uint64_t count, point, exporter;
	struct pl_args_service service;
	double rate;
	uint64_t flow_idle_ns, flow_active_ns, flow_table;
	bool community_id;
	bool inner, flows, dns, drops, marks, segments;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Output", NULL, NULL, NULL, NULL },
		{ PL_OPT_LIST, 0, "to", &args.to, "OUTPUT",
			"send the records there: udp://HOST:PORT, kafka://HOST/TOPIC, clickhouse://HOST/TABLE, ipfix://HOST (flows, marks), influx://HOST/DATABASE, dta://HOST, region:PATH, jsonl:PATH or file:PATH; may be repeated",
			NULL },
		{ PL_OPT_CHOICE, 'o', "output", &args.form, "FORM",
			"print the records in this form (default table, and nothing with --to)",
			pl_out_forms },
		{ PL_OPT_ONCE, 0, "where", &args.where, "EXPR",
			"print only records that match the expression, such as "
			"\"pay_len > 0 and dport == 443\" (outputs of --to get all)",
			NULL },
		{ PL_OPT_FLAG, 0, "community-id", &args.community_id, NULL,
			"also print the Community ID of each packet or flow, as Zeek and Suricata "
			"compute it (not in the form table)",
			NULL },
		{ PL_OPT_COUNT, 'n', "count", &args.count, "COUNT",
			"stop after this many printed records", NULL },
		{ PL_OPT_HEADING, 0, "Records", NULL, NULL, NULL, NULL },
		{ PL_OPT_LIST, 0, "rule", &args.rules, "RULE",
			"take, skip or mark with conditions, such as \"skip proto=udp port=53\" or "
			"\"take net=10.0.0.0/8 sample=100\"; the first rule that matches decides; may be "
			"repeated (conditions: src dst net sport dport port proto flags length payload contains "
			"vlan dir point)",
			NULL },
		{ PL_OPT_STRING, 0, "rules", &args.rules_file, "FILE",
			"file with further rules, one in a line, applied after those of --rule; "
			"read again on SIGHUP",
			NULL },
		PL_ARGS_FILTER(args.filter),
		{ PL_OPT_FLAG, 0, "inner", &args.inner, NULL,
			"use the addresses and ports of the inner packet for packets in a tunnel",
			NULL },
		{ PL_OPT_LIST, 0, "vxlan-port", &args.vxlan_ports, "PORT",
			"UDP port of VXLAN beside 4789, for --inner and frames of several packets; may be repeated (default 8472; 4789: none)",
			NULL },
		{ PL_OPT_U64, 0, "point", &args.point, "NUMBER",
			"number of this observation point, 0 to 1023 (default 0); several "
			"interfaces are numbered from this number on (from 1 if it is 0)",
			NULL },
		{ PL_OPT_U64, 0, "exporter", &args.exporter, "NUMBER",
			"number that identifies this exporter in tmpkt/1 datagrams, and its observation domain in IPFIX; at most 32 bits (default 0)",
			NULL },
		{ PL_OPT_RATE, 0, "rate", &args.rate, "RATE",
			"largest number of records per second, when reading capture files", NULL },
		{ PL_OPT_FLAG, 0, "dns", &args.dns, NULL,
			"make records of DNS messages (UDP port 53) instead", NULL },
		{ PL_OPT_FLAG, 0, "drops", &args.drops, NULL,
			"make records of packets that the kernel drops instead, with its reason "
			"and the place: from drops: (the default source), drops:IFACE, or received "
			"by udp://",
			NULL },
		{ PL_OPT_FLAG, 0, "marks", &args.marks, NULL,
			"take records of blocks of marked packets instead, which 'pathline mark' "
			"and 'pathline meter' send to udp://HOST:PORT",
			NULL },
		{ PL_OPT_FLAG, 0, "segments", &args.segments, NULL,
			"take records of loss and delay between points instead, which 'pathline "
			"meter --read' sends to udp://HOST:PORT",
			NULL },
		{ PL_OPT_HEADING, 0, "Flows", NULL, NULL, NULL, NULL },
		{ PL_OPT_FLAG, 0, "flows", &args.flows, NULL,
			"make records of flows instead: both directions of a connection, with "
			"handshake and round-trip times, retransmissions, gaps",
			NULL },
		{ PL_OPT_DURATION, 0, "flow-idle", &args.flow_idle_ns, "TIME",
			"time without packets after which a flow is over (default 15s)", NULL },
		{ PL_OPT_DURATION, 0, "flow-active", &args.flow_active_ns, "TIME",
			"a flow that has not ended gets a record at this interval (default 60s)",
			NULL },
		{ PL_OPT_U64, 0, "flow-table", &args.flow_table, "COUNT",
			"largest number of flows at a time; a further flow evicts another (default "
			"65536)",
			NULL },
		{ PL_OPT_STRING, 0, "flow-state", &args.flow_state, "FILE",
			"keep the flows of live sources in this file, best on tmpfs (/run): the "
			"next tap with this file continues them, also after kill -9",
			NULL },
		{ PL_OPT_HEADING, 0, "Running", NULL, NULL, NULL, NULL },
		PL_ARGS_SERVICE(args.service),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* ---- printing ---- */

static void print_records(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	(void)kind;
	pl_flat_out_add(arg, records, n);
}

static void print_turned(void *arg)
{
	pl_flat_out_write(arg);
}

static bool print_full(void *arg)
{
	return pl_flat_out_full(arg);
}

/* ---- options ---- */

static enum pl_flat_kind kind_of(void)
{
	return args.flows      ? PL_FLAT_FLOW288
	       : args.dns      ? PL_FLAT_DNS64
	       : args.drops    ? PL_FLAT_DROP168
	       : args.marks    ? PL_FLAT_MARK128
	       : args.segments ? PL_FLAT_SEG192
			       : PL_FLAT_PKT96;
}

static bool has_tmpkt(const struct pl_opt_list *sources)
{
	for (size_t i = 0; i < sources->n; i++) {
		if (pl_tap_source_is_tmpkt(sources->items[i]))
			return true;
	}
	return false;
}

static bool has_rules(void)
{
	return args.rules.n > 0 || args.rules_file != NULL;
}

/* Adds the default source of drops, of all interfaces. -ENOMEM. */
static int find_drops(struct pl_opt_list *sources)
{
	for (size_t i = 0; i < sources->n; i++)
		args.drops |= pl_tap_drops_is(sources->items[i]);
	if (!args.drops || sources->n > 0)
		return 0;
	sources->items = calloc(1, sizeof(*sources->items));
	if (sources->items == NULL)
		return -ENOMEM;
	sources->items[sources->n++] = "drops:";
	return 0;
}

/* Records of marked packets are made by meters: a tap passes them on. Returns 0, or prints the
 * error and returns an exit code. */
static int check_kind(const struct pl_opt_list *sources)
{
	if (args.flows + args.dns + args.drops + args.marks + args.segments > 1)
		return pl_fail(PL_EXIT_USAGE,
			"tap: --flows, --dns, --drops, --marks and --segments make records of one kind each: start a tap for each");
	if (args.drops && has_rules() && has_tmpkt(sources))
		return pl_fail(PL_EXIT_USAGE,
			"tap: --rule and --rules are for drops of this host: give them to the tap that sends the records");
	if (!args.marks && !args.segments)
		return 0;
	for (size_t i = 0; i < sources->n; i++) {
		if (pl_tap_source_is_tmpkt(sources->items[i]))
			continue;
		return pl_fail(PL_EXIT_USAGE,
			"tap: --%s takes records that a meter sent: give udp://HOST:PORT instead of %s",
			args.marks ? "marks" : "segments", sources->items[i]);
	}
	if (has_rules() || args.inner)
		return pl_fail(PL_EXIT_USAGE,
			"tap: --rule, --rules and --inner are for packets, not for --%s",
			args.marks ? "marks" : "segments");
	return 0;
}

/* Returns 0, or prints the error and returns an exit code. */
static int read_args(struct pl_tap_options *o, const struct pl_opt_list *sources)
{
	struct pl_diag diag = { .text = "" };

	if (sources->n == 0)
		return pl_fail(PL_EXIT_USAGE,
			"tap: missing SOURCE: give packet:IFACE, xdp:IFACE, tc:IFACE, afxdp:IFACE, drops:, udp://HOST:PORT or a capture file");
	if (args.community_id && (args.dns || args.drops || args.marks || args.segments))
		return pl_fail(PL_EXIT_USAGE, "tap: --community-id is of packets and flows");
	if (args.community_id && args.to.n > 0 && args.form == NULL)
		return pl_fail(
			PL_EXIT_USAGE, "tap: --community-id is for what is printed: give -o too");
	if (args.where != NULL && args.to.n > 0 && args.form == NULL)
		return pl_fail(PL_EXIT_USAGE,
			"tap: --where is for what is printed: give -o too, or use --rule");
	if (args.point > PL_OBS_POINT_MASK)
		return pl_fail(PL_EXIT_USAGE, "--point %" PRIu64 " is too large: at most %d",
			args.point, PL_OBS_POINT_MASK);
	if (args.exporter > UINT32_MAX)
		return pl_fail(PL_EXIT_USAGE,
			"--exporter %" PRIu64 " is too large: at most 4294967295", args.exporter);
	if (check_kind(sources) != 0)
		return PL_EXIT_USAGE;
	if (args.flow_state != NULL && !args.flows)
		return pl_fail(PL_EXIT_USAGE, "tap: --flow-state is for --flows");
	if (args.flow_table > PL_FLOW_MAX_FLOWS)
		return pl_fail(PL_EXIT_USAGE, "--flow-table %" PRIu64 " is too large: at most %u",
			args.flow_table, PL_FLOW_MAX_FLOWS);
	if (args.rate == 0)
		return pl_fail(PL_EXIT_USAGE,
			"--rate 0 would send nothing; leave the option out for no limit");
	*o = (struct pl_tap_options){ .sources = sources->items,
		.max_exporters = PL_TAP_EXPORTERS_LISTED,
		.n_sources = sources->n,
		.to = args.to.items,
		.n_to = args.to.n,
		.point = (uint16_t)args.point,
		.inner = args.inner,
		.filter = args.filter,
		.rules_file = args.rules_file,
		.exporter = (uint32_t)args.exporter,
		.kinds = 1u << kind_of(),
		.out = kind_of(),
		.flow = { .max_flows = (uint32_t)args.flow_table,
			.idle_ns = args.flow_idle_ns,
			.active_ns = args.flow_active_ns,
			.end_ns = flow.end_ns },
		.flow_state = args.flow_state,
		.rate = args.rate > 0 ? args.rate : 0,
		.rules.payloads = true };
	for (size_t i = 0; i < args.rules.n; i++) {
		if (pl_tap_rules_add(&o->rules, args.rules.items[i], &diag) < 0)
			return pl_fail(
				PL_EXIT_USAGE, "--rule %s: %s", args.rules.items[i], diag.text);
	}
	return pl_vxlan_ports_apply(&args.vxlan_ports, &o->vxlan_ports);
}

/* Returns 0, or prints the error and returns an exit code. */
static int read_where(struct pl_where **ret)
{
	const struct pl_flat *flat = pl_flat(kind_of());
	struct pl_diag diag = { .text = "" };

	if (args.where == NULL ||
		pl_where_new_over(ret, flat->fields, flat->n_fields, args.where, &diag) == 0)
		return 0;
	pl_where_complain(args.where, &diag);
	return PL_EXIT_USAGE;
}

static void tell_begin(void *arg)
{
	const struct pl_tap_service *t = arg;

	struct pl_buf text;

	if (!t->live)
		return;
	pl_buf_init(&text);
	pl_tap_put_sources(t, &text);
	pl_complain("tapping %.*s", (int)text.len, text.data);
	pl_buf_done(&text);
}

/* Statistics follow the records: an array would leave two values on one stream. */
static const char *form_of(void)
{
	const char *form = args.form != NULL ? args.form : pl_out_forms[PL_OUT_TABLE];

	return args.service.stats && strcmp(form, pl_out_forms[PL_OUT_JSON]) == 0
		       ? pl_out_forms[PL_OUT_JSONL]
		       : form;
}

static int serve(struct pl_tap_service *t)
{
	const struct pl_service service = { &pl_tap_service_ops, t };
	const struct pl_runtime_options run =
		pl_args_runtime(&args.service, &service, 1, tell_begin, t);
	const int code = pl_serve(&run);

	if (code != 0)
		return code;
	if (!pl_tap_complete(t))
		return PL_EXIT_FAILED;
	return t->records == 0 ? PL_EXIT_NOTHING : 0;
}

static int tap(struct pl_tap_service *t, const struct pl_opt_list *sources)
{
	const bool prints = args.to.n == 0 || args.form != NULL;
	static struct pl_tap_options o;
	static struct pl_flat_out out;
	struct pl_where *where = NULL;
	int code = read_args(&o, sources);

	if (code != 0)
		return code;
	t->o = &o;
	if (!prints) {
		code = serve(t);
		pl_tap_service_close(t);
		return code;
	}
	code = read_where(&where);
	if (code != 0)
		return code;
	pl_flat_out_init(&out, kind_of(), form_of(), args.count);
	pl_flat_out_where(&out, where);
	if (args.community_id)
		pl_flat_out_community_id(&out);
	o.print = (struct pl_tap_print){ print_records, print_turned, print_full, &out };
	code = serve(t);
	pl_tap_service_close(t);
	pl_where_free(where);
	if (code == 0 && where != NULL && out.rows.rows == 0)
		code = PL_EXIT_NOTHING;
	/* A tap that could not be begun prints no empty table. */
	if (!t->began)
		pl_buf_done(&out.rows.buf);
	else if (!pl_flat_out_end(&out))
		code = PL_EXIT_FAILED;
	return code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list sources = { 0 };
	struct pl_tap_service *t;
	int code;

	memset(&args, 0, sizeof(args));
	args.rate = -1; /* not given */
	args.flow_idle_ns = flow.idle_ns;
	args.flow_active_ns = flow.active_ns;
	args.flow_table = flow.max_flows;
	if (pl_command_parse(&pl_command_tap, argc, argv, &sources, &code) != 0)
		return code;
	t = calloc(1, sizeof(*t));
	if (t == NULL || find_drops(&sources) < 0) {
		code = pl_fail(PL_EXIT_FAILED, "out of memory");
	} else {
		code = tap(t, &sources);
	}
	free(t);
	pl_opt_list_done(&args.to);
	pl_opt_list_done(&args.rules);
	pl_opt_list_done(&args.vxlan_ports);
	pl_opt_list_done(&sources);
	return code;
}

const struct pl_command pl_command_tap = {
	.name = "tap",
	.summary = "make a record of every packet, print it or send it on",
	.usage = "[OPTION]… SOURCE…",
	.description =
		"Makes a record of every packet: time, addresses, ports, protocol, lengths and, of\n"
		"TCP, flags, numbers, window and options. 'pathline help fields' lists the fields.\n"
		"packet: copies what enters and leaves an interface, beside its host; xdp: (what enters)\n"
		"and tc: (both directions) make the records in the kernel and copy nothing else: for\n"
		"rates at which copies are too much, on Linux from 6.1 on (before 6.6 a filter of tc: that was\n"
		"left by kill -9 is removed by the next start). afxdp: takes what enters, for\n"
		"interfaces that receive mirrored traffic and nothing else. udp:// receives records that\n"
		"a tap elsewhere, or a switch or NIC, sends as tmpkt/1; afxdp:IFACE?carries=tmpkt takes\n"
		"them off the interface by their UDP port (port=40050). FILE is a capture.\n"
		"\n"
		"Without --to the records are printed. --to udp://HOST:PORT sends them on as tmpkt/1;\n"
		"records=N sets how many go into a datagram (13), kind=pkt64 leaves TCP options and the\n"
		"weights of samples out (20 then; of flows, kind=flow288 adds roles and more of TCP), and\n"
		"lanes=N is the number of source ports (8): all packets of a flow, in both directions,\n"
		"come from one of them.\n"
		"--to kafka://HOST:PORT/TOPIC writes messages of 1024 records (records=N), without TOPIC\n"
		"into tm.pkt64.v1, or tm.KIND.v1 of other records; other keys are properties of librdkafka,\n"
		"such as compression.codec=lz4, and properties=FILE has more of them, also passwords.\n"
		"--to file:PATH appends the records to a file. Messages and files are bytes that\n"
		"ClickHouse reads as RowBinary: 'pathline help schema'; with header=yes a file begins\n"
		"with its columns (RowBinaryWithNamesAndTypes),\n"
		"with header=clock with 64 bytes that say which clock the times are of.\n"
		"--to clickhouse://HOST:8123/TABLE inserts them into a table over HTTP;\n"
		"database=, user=, password_file=, tls=yes and ca= are of the server, batch=ROWS (65536)\n"
		"of an INSERT, memory=SIZE (64MiB) of rows that wait, spool=FOLDER on disk while it is away.\n"
		"--to influx://HOST:8086/DATABASE writes them as points of InfluxDB (bucket=NAME and org= of\n"
		"its version 2, token_file=FILE, and keys as of clickhouse://); --to jsonl:PATH as an object\n"
		"of JSON in a line each (max_bytes=SIZE and keep=N: the file is rotated).\n"
		"--to dta://ADDRESS:PORT appends them to a list of telemetry memory elsewhere, by a translator\n"
		"(region=N, list=N).\n"
		"--to region:PATH puts them into telemetry memory ('pathline help region'), which holds the\n"
		"newest. spool=FOLDER of kafka:// keeps records on disk while no broker answers, and\n"
		"format=json writes a message of JSON for each, and of flows format=goflow2 one of goflow2\n"
		"for each direction.\n"
		"--flows --to ipfix://HOST:4739 sends flows to a collector of IPFIX (RFC 7011), a record\n"
		"for each direction, or with biflow=yes one for both (RFC 5103); transport=tcp over a\n"
		"connection, time=us or ns for finer times than milliseconds, pen=N round-trip times,\n"
		"retransmissions and more of TCP as elements of the private enterprise number N.\n"
		"\n"
		"With --flows the packets go through a flow cache of fixed size, and the records are\n"
		"those of flows (flow288; outputs get flow128 unless kind=flow288); each packet is in\n"
		"one. With --dns they are those of DNS messages: client, server, type, hashes of the name,\n"
		"its length and entropy. With --drops\n"
		"they are those of packets that the kernel drops, with its reason, interface and place, of this\n"
		"network namespace (drops:, which need not be said) or of an interface (drops:IFACE): at most\n"
		"rate=N a second (10000), and all are counted by reason. --marks and\n"
		"--segments take records of alternate marking that meters send to udp://, and pass them on.\n"
		"\n"
		"The line at the start says which clock times are of (nic, kernel, tai, reading), the\n"
		"counters how many records have times of which. packet:IFACE?hwtstamp=yes asks the NIC\n"
		"to stamp every received frame; tc: has the key too.\n"
		"\n"
		"Every packet is accounted for: packets = records + those that are not IP, broken,\n"
		"skipped, not sampled, beyond the rate, elsewhere, missed or lost in a full ring; --stats ends with\n"
		"all counters. SIGUSR1\n"
		"prints them meanwhile.\n"
		"Exit code 3: there was no record, or none matched --where; 1: an output did not take all of them.",
	.examples =
		"  pathline tap packet:eth0\n"
		"  pathline tap --rule 'skip net=192.0.2.1' --to udp://192.0.2.1:40050 packet:eth0\n"
		"  pathline tap --to file:records.pkt64 udp://:40050\n"
		"  pathline tap --to 'kafka://10.0.0.3/packets?compression.codec=lz4' udp://:40050\n"
		"  pathline tap --marks --to file:counts.mark128 udp://:40050\n"
		"  pathline tap -o jsonl trace.pcap\n"
		"  pathline tap --flows trace.pcap\n"
		"  pathline tap --drops\n"
		"  pathline tap --to file:drops.drop168 'drops:eth0?rate=1000'\n"
		"  pathline tap --rules /etc/pathline/tap.rules --to udp://192.0.2.1:40050 tc:eth0\n"
		"  pathline tap --rule 'take port=443 sample_flows=64' --rule skip packet:eth0\n",
	.options = options,
	.run = run,
};
