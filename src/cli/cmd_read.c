/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline read: captures to records. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/command.h"
#include "cli/decode_args.h"
#include "cli/packet_args.h"
#include "cli/record_args.h"
#include "decode/advise.h"
#include "decode/decode.h"
#include "decode/hint.h"
#include "netio/pcap_filter.h"
#include "netio/port.h"
#include "service/decode_stats.h"
#include "show/record_out.h"
#include "tap/drops.h"
#include "tap/kernel.h"

#define BATCH_PATHS 1024
#define BATCH_HOPS  8192

static struct {
	struct pl_record_args out;
	struct pl_decode_args decode;
	const char *filter;
	bool packets;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Output", NULL, NULL, NULL, NULL },
		PL_RECORD_ARGS_FORM(args.out),
		PL_RECORD_ARGS_WHICH(args.out),
		{ PL_OPT_FLAG, 0, "packets", &args.packets, NULL,
			"print a record of every packet instead, as 'pathline tap FILE' does",
			NULL },
		PL_ARGS_FILTER(args.filter),
		PL_DECODE_ARGS(args.decode),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

struct reader {
	struct pl_decode *decode;
	struct pl_hint *hint;
	struct pl_advise *advise;
	uint64_t batches;
	struct pl_record_batch records;
	struct pl_record_out out;
	struct pl_batch packets;
	struct pl_port_stats ports; /* of all files */
};

static uint64_t verdicts(const struct reader *rd, enum pl_verdict v)
{
	return pl_counter_read(&pl_decode_counters(rd->decode)->verdicts[v]);
}

/* Takes what is there; when nothing more is ready, prints the records found so far before
 * waiting. */
static int receive(struct reader *rd, struct pl_port *port, struct pl_diag *diag)
{
	int r = pl_port_recv(port, &rd->packets, 0, diag);

	if (r != 0)
		return r;
	pl_record_out_write(&rd->out);
	return pl_port_recv(port, &rd->packets, -1, diag);
}

/* Batches in which packets failed, and of others some. */
#define ADVISE_EVERY 8

static void decode(struct reader *rd)
{
	const struct pl_decode_counters *c = pl_decode_counters(rd->decode);
	const uint64_t not_read = verdicts(rd, PL_V_LINK_UNKNOWN),
		       ordinary = verdicts(rd, PL_V_NOT_TELEMETRY), good = verdicts(rd, PL_V_OK);

	pl_decode_batch(rd->decode, &rd->packets, &rd->records);
	if (verdicts(rd, PL_V_LINK_UNKNOWN) != not_read ||
		verdicts(rd, PL_V_NOT_TELEMETRY) != ordinary)
		pl_hint_batch(rd->hint, &rd->packets, pl_decode_outcomes(rd->decode),
			pl_counter_read(&c->paths) == 0);
	if (verdicts(rd, PL_V_OK) - good != rd->packets.n || rd->batches++ % ADVISE_EVERY == 0)
		pl_advise_batch(rd->advise, &rd->packets, pl_decode_outcomes(rd->decode), 0);
	pl_record_out_flush_batch(&rd->records, &rd->out);
}

static void tell_lengths(struct pl_port *port, const char *path)
{
	struct pl_port_stats stats;

	pl_port_stats(port, &stats);
	if (stats.length_lies != 0)
		pl_complain("%s: %llu packet%s more bytes captured than %s had on the wire; %s had "
			    "what was captured",
			path, (unsigned long long)stats.length_lies,
			stats.length_lies == 1 ? " has" : "s have",
			stats.length_lies == 1 ? "it" : "they",
			stats.length_lies == 1 ? "it" : "they");
	if (stats.bad_messages != 0)
		pl_complain(
			"%s: %llu message%s no packets as an output of the type raw writes them",
			path, (unsigned long long)stats.bad_messages,
			stats.bad_messages == 1 ? " has" : "s have");
}

static void mark(void *reader)
{
	(void)reader;
}

/* Records of packets that were released are shown by then. */
static bool shown(void *reader, uint32_t wait_ms)
{
	struct reader *rd = reader;

	(void)wait_ms;
	pl_record_out_write(&rd->out);
	return rd->out.error == 0 && !rd->out.gone;
}

/* Reads one file to its end, to a damage, or until enough was read. Prints errors; returns false
 * when there were any. */
static bool read_file(struct reader *rd, const char *path)
{
	const struct pl_port_reader reader = { .mark = mark, .settled = shown, .arg = rd };
	struct pl_port_stats stats;
	struct pl_diag diag = { 0 };
	struct pl_port *port;
	int r;

	if (strstr(path, "://") != NULL && (pl_port_uri_can(path) & PL_PORT_CAN_REPLAY) == 0)
		return pl_fail(false,
			"%s is not a capture file; to receive from it use \"pathline listen %s\"",
			path, path);
	r = pl_port_open(&port, path, PL_PORT_RECV,
		&(struct pl_port_options){
			.to_end = true, .filter = args.filter, .reader = &reader },
		&diag);
	if (r < 0) {
		pl_complain_diag(&diag);
		return false;
	}
	while (!pl_record_out_full(&rd->out)) {
		r = receive(rd, port, &diag);
		if (r < 0)
			break;
		if (r == 0)
			continue;
		decode(rd);
		pl_port_release(port, &rd->packets);
	}
	if (r < 0 && r != -ENODATA)
		pl_complain_diag(&diag);
	tell_lengths(port, path);
	pl_port_stats(port, &stats);
	pl_port_stats_add(&rd->ports, &stats);
	(void)pl_port_close(port);
	return r >= 0 || r == -ENODATA;
}

/* Prints each fault in a line, what is not read, and an option that may help. */
static void tell_faults(const struct reader *rd)
{
	const struct pl_decode_counters *c = pl_decode_counters(rd->decode);
	struct pl_buf text;

	pl_buf_init(&text);
	pl_decode_stats_faults(&text, rd->decode);
	if (text.len > 0)
		pl_complain("%s", text.data);
	pl_buf_reset(&text);
	if (pl_counter_read(&c->paths) == 0 && verdicts(rd, PL_V_NOT_TELEMETRY) > 0) {
		pl_hint_ports(rd->hint, &text);
		if (text.len > 0)
			pl_complain("no telemetry found, but %s", text.data);
		else
			pl_complain(
				"no telemetry found; reports to UDP ports other than 32766 and 54321 need --report-port, INT in ordinary packets needs --dscp, --int-port or --marker, and INT in GRE needs --gre-type");
	}
	pl_buf_done(&text);
}

/* Prints options that would decode packets that did not decode. */
static void tell_advice(struct reader *rd)
{
	const struct pl_advice *advice;
	struct pl_buf text;

	(void)pl_advise_end(rd->advise);
	pl_buf_init(&text);
	while ((advice = pl_advise_fresh(rd->advise)) != NULL) {
		pl_buf_reset(&text);
		pl_advice_text(advice, &text);
		if (!text.failed)
			pl_complain("%s", text.data);
	}
	pl_buf_done(&text);
}

/* Prints what no option can read. Returns false when that was all. */
static bool tell_unread(const struct reader *rd)
{
	const struct pl_decode_counters *c = pl_decode_counters(rd->decode);
	const uint64_t n = verdicts(rd, PL_V_LINK_UNKNOWN);
	struct pl_buf text;

	pl_buf_init(&text);
	pl_hint_unread(rd->hint, &text);
	if (text.len > 0)
		pl_complain("%s", text.data);
	pl_buf_done(&text);
	return n == 0 || n < pl_counter_read(&c->packets);
}

static void finish(struct reader *rd)
{
	bool json = rd->out.form == PL_OUT_JSON || rd->out.form == PL_OUT_JSONL;

	if (args.out.stats && json) {
		pl_decode_stats_json(
			&rd->out.buf, rd->decode, args.filter != NULL ? &rd->ports : NULL);
		pl_record_out_write(&rd->out);
		return;
	}
	pl_record_out_end(&rd->out);
	if (rd->out.gone)
		return;
	if (args.out.stats) {
		struct pl_buf text;

		pl_buf_init(&text);
		pl_decode_stats_text(&text, rd->decode, NULL);
		if (args.filter != NULL)
			pl_buf_printf(&text, "that do not match the filter: %" PRIu64 "\n",
				rd->ports.not_matched);
		if (text.len > 0)
			fputs(text.data, stderr);
		pl_buf_done(&text);
	} else {
		tell_faults(rd);
	}
	tell_advice(rd);
}

/* The decoder, the batch and the output; an exit code, 0 when good. */
static int prepare(struct reader *rd)
{
	/* Datagrams that a topic has came to a port of reports, whichever it was. */
	struct pl_decode_options decode = { .any_port = true };
	struct pl_profile profile;
	int r = pl_record_out_init(&rd->out, args.out.form, args.out.where, args.out.count);

	if (r == 0)
		r = pl_decode_args_apply(&args.decode, &decode, &profile);
	if (r != 0)
		return r;
	/* Statistics follow the records: an array would leave two values on one stream. */
	rd->out.lines |= args.out.stats;
	if (pl_record_batch_init(&rd->records, BATCH_PATHS, BATCH_HOPS) < 0 ||
		pl_decode_new(&rd->decode, &decode) < 0 || pl_hint_new(&rd->hint, &decode) < 0 ||
		pl_advise_new(&rd->advise, &decode, 0) < 0)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	rd->records.flush = pl_record_out_flush_batch;
	rd->records.flush_arg = &rd->out;
	return 0;
}

static int read_all(struct reader *rd, const struct pl_opt_list *files)
{
	bool good = true;

	for (size_t i = 0; i < files->n && !pl_record_out_full(&rd->out); i++)
		good &= read_file(rd, files->items[i]);
	finish(rd);
	good &= tell_unread(rd);
	good &= pl_record_out_good(&rd->out);
	if (!good)
		return PL_EXIT_FAILED;
	if ((args.out.where != NULL || args.filter != NULL) && rd->out.printed == 0 &&
		!rd->out.gone)
		return PL_EXIT_NOTHING;
	return PL_EXIT_OK;
}

static bool has_live(const struct pl_opt_list *files)
{
	for (size_t i = 0; i < files->n; i++) {
		if (pl_tap_kernel_is(files->items[i]) || pl_tap_drops_is(files->items[i]) ||
			strncmp(files->items[i], "kafka:", 6) == 0 ||
			(pl_port_uri_can(files->items[i]) & PL_PORT_CAN_LIVE) != 0)
			return true;
	}
	return false;
}

/* Returns false and prints the error when the filter is not valid. */
static bool check_filter(void)
{
	struct pl_pcap_filter *filter;
	struct pl_diag diag = { .text = "" };

	if (args.filter == NULL)
		return true;
	if (pl_pcap_filter_new(&filter, args.filter, &diag) < 0) {
		pl_complain_diag(&diag);
		return false;
	}
	pl_pcap_filter_free(filter);
	return true;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list files = { 0 };
	struct reader *rd;
	int code;

	args.out.form = pl_out_forms[PL_OUT_TABLE];
	if (pl_command_parse(&pl_command_read, argc, argv, &files, &code) != 0)
		return code;
	if (files.n == 0) {
		pl_complain("read: missing FILE, a capture file (\"-\" is standard input)");
		pl_opt_list_done(&files);
		return PL_EXIT_USAGE;
	}
	if (!check_filter()) {
		pl_opt_list_done(&files);
		return PL_EXIT_USAGE;
	}
	if (args.packets) {
		code = PL_EXIT_USAGE;
		if (has_live(&files))
			pl_complain("read --packets takes capture files; packets of an interface "
				    "or a socket are for 'pathline tap'");
		else if (pl_decode_args_given(&args.decode))
			pl_complain("read: --packets makes records of packets, not of reports: "
				    "leave out the settings of reports");
		else
			code = pl_packets_print(
				&(struct pl_packet_args){ .out = &args.out, .filter = args.filter },
				&files);
		pl_decode_args_done(&args.decode);
		pl_opt_list_done(&files);
		return code;
	}
	signal(SIGPIPE, SIG_IGN);
	rd = calloc(1, sizeof(*rd));
	if (rd == NULL) {
		code = pl_fail(PL_EXIT_FAILED, "out of memory");
	} else {
		code = prepare(rd);
		if (code == 0)
			code = read_all(rd, &files);
		pl_hint_free(rd->hint);
		pl_advise_free(rd->advise);
		pl_decode_free(rd->decode);
		pl_record_batch_done(&rd->records);
		pl_record_out_done(&rd->out);
		free(rd);
	}
	pl_decode_args_done(&args.decode);
	pl_opt_list_done(&files);
	return code;
}

const struct pl_command pl_command_read = {
	.name = "read",
	.summary = "decode capture files",
	.usage = "[OPTION]… FILE|kafka://BROKER/TOPIC…",
	.description =
		"Decodes telemetry reports, and packets that carry INT or IOAM themselves, from capture\n"
		"files (pcap, pcapng, gzip; \"-\" is standard input), in the order given. A damaged file is\n"
		"decoded up to the damage (exit code 1, also when no packet is of a link type that is read).\n"
		"kafka://BROKER/TOPIC is a topic of packets that an output of the type raw kept, which is\n"
		"read from its oldest message to its end (docs/guide/kafka.md).\n"
		"Exit code 3: no record matches --where. From a pipe, records are shown as they come.\n"
		"\"pathline help fields\" lists the field names. With --stats, -o json prints one object per\n"
		"line, the counters last, instead of one array; packets is always the sum of the verdicts,\n"
		"and with -n counts the packets decoded until the last record was found.",
	.examples = "  pathline read trace.pcap\n"
		    "  pathline read -o jsonl --where 'hops.hop_latency_ns > 50us' trace.pcap.gz\n"
		    "  pathline read --packets --where 'dport == 443' trace.pcap\n"
		    "  tcpdump -i eth0 -U -w - udp port 32766 | pathline read -o csv -\n"
		    "  pathline read --stats -o json trace.pcap | tail -n 1 | jq .verdicts\n",
	.options = options,
	.run = run,
};
