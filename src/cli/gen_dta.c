/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs "pathline gen dta". */
#include "cli/gen_dta.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ask/dta_check.h"
#include "ask/gen_send.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/num.h"
#include "cli/args.h"
#include "gen/dta_gen.h"
#include "memory/region.h"
#include "netio/port.h"
#include "show/stdout.h"

static const char *const streams[] = { "key-write", "append", "increment", "postcards", "sketch",
	"mix", "marple", "udp-report", "udp-flowcard", "int-paths", NULL };

static struct {
	const char *stream, *form, *file, *collector;
	uint64_t seed, store, copies, reporters, packed, keys, key_bytes, value_bytes, lists;
	uint64_t interleave, hops, nodes, columns, rows, cell_bytes, count, duration_ns;
	double zipf, loss, duplicate, swap, rate;
	bool sequenced, immediate, value_is_key, key_lengths, lengths, no_length, flood, dry_run;
	struct pl_opt_list against;
	const char *output;
} o;

/* Options where 0 means a default that is set later. */
static const struct pl_arg_number numbers[] = { { "copies", &o.copies },
	{ "reporters", &o.reporters }, { "packed", &o.packed }, { "keys", &o.keys },
	{ "key-bytes", &o.key_bytes }, { "value-bytes", &o.value_bytes }, { "lists", &o.lists },
	{ "interleave", &o.interleave }, { "hops", &o.hops }, { "nodes", &o.nodes },
	{ "columns", &o.columns }, { "rows", &o.rows }, { "cell-bytes", &o.cell_bytes } };

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Contents", NULL, NULL, NULL, NULL },
		{ PL_OPT_CHOICE, 0, "stream", &o.stream, "STREAM",
			"stream to generate (default key-write); mix has the first five in turn, into regions --store and up; marple has the queries of a trace; the last three are not DTA but records of 8, 17 and 33 bytes for collectors without DTA",
			streams },
		{ PL_OPT_CHOICE, 0, "form", &o.form, "FORM",
			"form of the reports (default pathline)", pl_arg_dta_forms },
		{ PL_OPT_FLAG, 0, "sequenced", &o.sequenced, NULL,
			"number the reports; NACKs are ignored", NULL },
		{ PL_OPT_FLAG, 0, "immediate", &o.immediate, NULL,
			"each report asks the collector to wake a worker", NULL },
		{ PL_OPT_U64, 0, "store", &o.store, "NUMBER",
			"number of the region at the translator (default 0)", NULL },
		{ PL_OPT_U64, 0, "copies", &o.copies, "COUNT",
			"copies of values, rows of increments (default all of the region; published forms 4)",
			NULL },
		{ PL_OPT_U64, 0, "packed", &o.packed, "COUNT", "reports per datagram (default 1)",
			NULL },
		{ PL_OPT_U64, 0, "keys", &o.keys, "COUNT",
			"number of different keys (default 10^9)", NULL },
		{ PL_OPT_U64, 0, "key-bytes", &o.key_bytes, "COUNT",
			"bytes of a key, a number padded with leading zeros (default 4, at most 255)",
			NULL },
		{ PL_OPT_FLAG, 0, "key-lengths", &o.key_lengths, NULL,
			"vary the length of keys from 8 to --key-bytes bytes, fixed per key",
			NULL },
		{ PL_OPT_DOUBLE, 0, "zipf", &o.zipf, "EXPONENT",
			"draw keys by Zipf's law (default in turn)", NULL },
		{ PL_OPT_U64, 0, "value-bytes", &o.value_bytes, "COUNT",
			"bytes of values and entries (default 4)", NULL },
		{ PL_OPT_FLAG, 0, "value-of-key", &o.value_is_key, NULL,
			"derive values from keys and cells from place and epoch, and increment by "
			"1 (by default values count up and cells are random)",
			NULL },
		{ PL_OPT_U64, 0, "lists", &o.lists, "COUNT", "append: lists in turn (default 5)",
			NULL },
		{ PL_OPT_U64, 0, "interleave", &o.interleave, "COUNT",
			"postcards: flows interleaved with each other (default 1)", NULL },
		{ PL_OPT_U64, 0, "hops", &o.hops, "COUNT", "postcards: hops of a path (default 5)",
			NULL },
		{ PL_OPT_FLAG, 0, "lengths", &o.lengths, NULL,
			"postcards: paths of 1 to --hops hops, by flow", NULL },
		{ PL_OPT_FLAG, 0, "no-length", &o.no_length, NULL,
			"postcards: leave out the length of the path, as published forms always do",
			NULL },
		{ PL_OPT_U64, 0, "nodes", &o.nodes, "COUNT",
			"postcards: different nodes (default 1000)", NULL },
		{ PL_OPT_U64, 0, "columns", &o.columns, "COUNT",
			"sketch: columns of each epoch (default 1024)", NULL },
		{ PL_OPT_U64, 0, "rows", &o.rows, "COUNT", "sketch: cells of a column (default 4)",
			NULL },
		{ PL_OPT_U64, 0, "cell-bytes", &o.cell_bytes, "COUNT",
			"sketch: bytes of a cell, 4 or 8 (default); 1 for HyperLogLog", NULL },
		{ PL_OPT_HEADING, 0, "Sending", NULL, NULL, NULL, NULL },
		{ PL_OPT_RATE, 0, "rate", &o.rate, "RATE", "reports per second (default 1000)",
			NULL },
		{ PL_OPT_COUNT, 'n', "count", &o.count, "COUNT", "stop after this many reports",
			NULL },
		{ PL_OPT_DURATION, 0, "duration", &o.duration_ns, "TIME", "stop after this time",
			NULL },
		{ PL_OPT_FLAG, 0, "flood", &o.flood, NULL, "send as fast as possible", NULL },
		{ PL_OPT_DOUBLE, 0, "loss", &o.loss, "SHARE", "share of datagrams that are lost",
			NULL },
		{ PL_OPT_DOUBLE, 0, "duplicate", &o.duplicate, "SHARE",
			"share of datagrams that are duplicated", NULL },
		{ PL_OPT_DOUBLE, 0, "swap", &o.swap, "SHARE",
			"share of datagrams swapped with the one before", NULL },
		{ PL_OPT_U64, 0, "seed", &o.seed, "NUMBER",
			"the same seed gives the same bytes (default 1)", NULL },
		{ PL_OPT_U64, 0, "reporters", &o.reporters, "COUNT",
			"frames: number of reporters, from 10.0.0.200 up, in turn; with --against: that sent the same sketch (default 1)",
			NULL },
		{ PL_OPT_STRING, 0, "collector", &o.collector, "ADDR",
			"frames: destination address (default 10.0.0.51)", NULL },
		{ PL_OPT_STRING, 'w', "write", &o.file, "FILE", "write a capture file", NULL },
		{ PL_OPT_FLAG, 0, "dry-run", &o.dry_run, NULL, "make the reports, send nothing",
			NULL },
		{ PL_OPT_HEADING, 0, "Looking up", NULL, NULL, NULL, NULL },
		{ PL_OPT_LIST, 0, "against", &o.against, "REGION",
			"send nothing: look up in this region what the stream of --count reports must have left there; repeated for other collectors and for epochs that ended",
			NULL },
		PL_ARGS_TEXT_OR_JSON(o.output),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	memset(&o, 0, sizeof(o));
	o.output = pl_arg_text_or_json[0];
	o.stream = streams[0];
	o.form = pl_arg_dta_forms[PL_DTA_PATHLINE];
	o.seed = 1;
	o.rate = -1; /* not given */
	pl_arg_numbers_begin(numbers, NUMBERS);
	return table;
}

/* Refuses zeros, and numbers that their fields do not hold; prints errors. Numbers that were not
 * given are 0 then. */
static int check_numbers(void)
{
	const struct {
		const char *name;
		uint64_t v, max;
	} rows[] = { { "store", o.store, UINT16_MAX }, { "copies", o.copies, UINT8_MAX },
		{ "reporters", o.reporters, UINT32_MAX }, { "packed", o.packed, UINT32_MAX },
		{ "key-bytes", o.key_bytes, PL_DTA_KEY_BYTES_MAX },
		{ "value-bytes", o.value_bytes, 1000 }, { "lists", o.lists, UINT32_MAX },
		{ "interleave", o.interleave, UINT32_MAX }, { "hops", o.hops, 31 },
		{ "nodes", o.nodes, UINT32_MAX - 2 }, { "columns", o.columns, UINT32_MAX },
		{ "rows", o.rows, 16 }, { "cell-bytes", o.cell_bytes, 8 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].v > rows[i].max && rows[i].v != PL_OPT_NOT_GIVEN)
			return pl_fail(-EINVAL, "gen: --%s is at most %" PRIu64, rows[i].name,
				rows[i].max);
	}
	if (o.rate == 0)
		return pl_fail(-EINVAL, "gen: --rate must be greater than 0");
	o.rate = o.rate < 0 ? 0 : o.rate;
	return pl_arg_numbers_end("gen", numbers, NUMBERS) == 0 ? 0 : -EINVAL;
}

static int make_config(struct pl_dta_gen_cfg *c, bool udp, struct pl_diag *diag)
{
	*c = (struct pl_dta_gen_cfg){
		.seed = o.seed,
		.stream = (enum pl_dta_stream)pl_opt_place(streams, o.stream),
		.form = (enum pl_dta_form)pl_opt_place(pl_arg_dta_forms, o.form),
		.sequenced = o.sequenced,
		.immediate = o.immediate,
		.store = (uint16_t)o.store,
		.copies = (uint8_t)o.copies,
		.reporters = (uint32_t)o.reporters,
		.packed = (uint32_t)o.packed,
		.keys = o.keys,
		.key_bytes = (uint8_t)o.key_bytes,
		.key_lengths = o.key_lengths,
		.zipf = o.zipf,
		.value_is_key = o.value_is_key,
		.value_bytes = (uint16_t)o.value_bytes,
		.lists = (uint32_t)o.lists,
		.interleave = (uint32_t)o.interleave,
		.hops = (uint8_t)o.hops,
		.lengths = o.lengths,
		.nodes = (uint32_t)o.nodes,
		.columns = (uint32_t)o.columns,
		.rows = (uint8_t)o.rows,
		.cell_bytes = (uint8_t)o.cell_bytes,
		.loss = o.loss,
		.duplicate = o.duplicate,
		.swap = o.swap,
		.rate = o.flood && o.rate == 0 ? 1e6 : o.rate,
		.count = o.count,
		.duration_ns = o.flood ? 0 : o.duration_ns,
		.udp = udp,
	};
	c->tell_length = c->form == PL_DTA_PATHLINE && !o.no_length;
	if (o.collector != NULL && pl_parse_addr(o.collector, &c->collector) < 0)
		return pl_diag_fail(diag, -EINVAL, "\"%s\" is not an IP address", o.collector);
	return 0;
}

static int next(void *gen, uint64_t until_ns, struct pl_batch *ret)
{
	return pl_dta_gen_next(gen, until_ns, ret);
}

static uint64_t due_ns(const void *gen)
{
	return pl_dta_gen_due_ns(gen);
}

static void skip_to(void *gen, uint64_t now_ns)
{
	pl_dta_gen_skip_to(gen, now_ns);
}

static void tell_account(const struct pl_dta_gen *gen, const struct pl_gen_account *acc)
{
	const struct pl_dta_gen_counters *c = pl_dta_gen_counters(gen);
	double s = (double)(acc->end_ns - acc->begin_ns) / 1e9;
	char rate[32];

	pl_format_count(rate, sizeof(rate), s > 0 ? (double)c->reports / s : 0);
	fprintf(stderr,
		"%" PRIu64 " packets (%" PRIu64 " reports, %" PRIu64
		" bytes) in %.3f s: %s reports/s; lost: %" PRIu64 "; duplicated: %" PRIu64
		"; swapped: %" PRIu64 "\n",
		acc->sent, c->reports, acc->sent_bytes, s, rate, c->lost, c->duplicated,
		c->swapped);
	pl_gen_tell_skipped(acc);
}

static void tell(const void *gen, const struct pl_gen_account *acc)
{
	tell_account(gen, acc);
}

static const char *destination(const struct pl_opt_list *operands)
{
	return o.file != NULL ? o.file : operands->n > 1 ? operands->items[1] : NULL;
}

static int check_usage(const struct pl_opt_list *operands, const char *uri)
{
	if (operands->n > 2 || (o.file != NULL && operands->n > 1))
		return pl_fail(-EINVAL, "gen: more than one destination");
	if (uri == NULL && !o.dry_run)
		return pl_fail(-EINVAL,
			"gen: missing destination: udp://HOST:PORT, packet:IFACE, afxdp:IFACE, -w FILE or --dry-run");
	if ((uri == NULL || !pl_gen_is_live(uri)) && o.count == 0 &&
		(o.duration_ns == 0 || o.flood))
		return pl_fail(-EINVAL,
			"gen: -w and --dry-run need --count or --duration, or they would never end");
	return check_numbers();
}

static int send_stream(const char *uri, struct pl_diag *diag, int *ret_exit)
{
	bool live = uri != NULL && pl_gen_is_live(uri), paced = live && !o.flood && !o.dry_run;
	struct pl_gen_account acc = { 0 };
	struct pl_port *port = NULL;
	struct pl_dta_gen_cfg cfg;
	struct pl_dta_gen *gen = NULL;
	struct pl_gen_source source;
	int r = make_config(
		    &cfg, live && (pl_port_uri_can(uri) & PL_PORT_CAN_DATAGRAMS) != 0, diag),
	    closed;

	if (live)
		cfg.start_ns = pl_clock_real_ns();
	*ret_exit = PL_EXIT_USAGE;
	if (r == 0)
		r = pl_dta_gen_new(&gen, &cfg, diag);
	if (r < 0)
		return r;
	*ret_exit = PL_EXIT_FAILED;
	r = pl_gen_open(&port, o.dry_run ? NULL : uri, NULL, diag);
	if (r == 0) {
		source = (struct pl_gen_source){ next, due_ns, skip_to, gen,
			pl_dta_gen_cfg(gen)->start_ns, tell };
		pl_gen_catch_signals();
		r = pl_gen_send(&source, port, paced,
			o.flood && o.duration_ns != 0 ? pl_clock_mono_ns() + o.duration_ns : 0,
			&acc, diag);
		closed = pl_gen_close(port);
		r = r < 0 ? r : closed;
		tell_account(gen, &acc);
	} else {
		(void)pl_gen_close(NULL);
	}
	pl_dta_gen_free(gen);
	return r;
}

/* ---- looked up ---- */

/* Refuses streams whose values do not follow from their numbers, because the right answers are then
 * unknown. */
static int check_against(const struct pl_opt_list *operands)
{
	const enum pl_dta_stream s = (enum pl_dta_stream)pl_opt_place(streams, o.stream);
	struct refusal {
		const char *text;
		bool wrong;
	};

	if (check_numbers() < 0)
		return -EINVAL;

	const struct refusal rows[] = {
		{ "needs --count", o.count == 0 },
		{ "sends nothing: no destination, --write or --dry-run",
			operands->n > 1 || o.file != NULL || o.dry_run },
		{ "is for the streams key-write, append, increment, postcards and sketch",
			s > PL_DTA_STREAM_SKETCH },
		{ "needs --value-of-key, as the stream was made with it",
			!o.value_is_key && s != PL_DTA_STREAM_APPEND &&
				s != PL_DTA_STREAM_POSTCARDS },
		{ "needs --lengths, as the stream was made with it",
			!o.lengths && s == PL_DTA_STREAM_POSTCARDS },
		{ "is for keys of 4 bytes in turn, which come once: no --zipf, --key-bytes, --key-lengths, --interleave, --loss, --duplicate, --swap",
			o.zipf > 0 || (o.key_bytes != 0 && o.key_bytes != 4) || o.key_lengths ||
				o.interleave > 1 || o.loss > 0 || o.duplicate > 0 || o.swap > 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].wrong)
			return pl_fail(-EINVAL, "gen: --against %s", rows[i].text);
	}
	return 0;
}

static void print_checked(const struct pl_dta_checked *c, struct pl_buf *out)
{
	const uint64_t expected = (uint64_t)(c->expected * (double)c->asked + 0.5);
	struct pl_json j;

	if (strcmp(o.output, "json") != 0) {
		pl_buf_printf(out,
			"%s: asked %" PRIu64 ", right %" PRIu64 ", wrong %" PRIu64
			", not found %" PRIu64 " (%" PRIu64 " expected)\n",
			c->primitive, c->asked, c->right, c->wrong, c->missing, expected);
		return;
	}
	pl_json_init(&j, out);
	pl_json_object(&j);
	pl_json_text(&j, "primitive", c->primitive);
	pl_json_number(&j, "asked", c->asked);
	pl_json_number(&j, "right", c->right);
	pl_json_number(&j, "wrong", c->wrong);
	pl_json_number(&j, "not_found", c->missing);
	pl_json_number(&j, "not_found_expected", expected);
	pl_json_object_end(&j);
	pl_buf_chr(out, '\n');
}

/* Looks up the regions of the stream's primitive. Returns 0, or prints the error and returns an
 * exit code. */
static int look_up(const struct pl_dta_gen_cfg *cfg, struct pl_dta_checked *ret)
{
	static const char *const primitives[] = { "key-write", "append", "counters", "postcards",
		"sketch" };
	const struct pl_dta_made made = { .reports = o.count * (o.reporters > 1 ? o.reporters : 1),
		.keys = cfg->keys < o.count ? cfg->keys : o.count,
		.lists = cfg->lists,
		.hops = cfg->hops,
		.nodes = cfg->nodes,
		.reporters = o.reporters > 1 ? (uint32_t)o.reporters : 1 };
	struct pl_diag diag = { .text = "" };

	(void)pl_region_guard();
	if (cfg->stream == PL_DTA_STREAM_KEY_WRITE && o.count > cfg->keys)
		return pl_fail(PL_EXIT_USAGE,
			"gen: --against: each key comes once, but --count is more than --keys");
	if (pl_dta_check(&made, o.against.items, (unsigned int)o.against.n, ret, &diag) < 0) {
		pl_complain_diag(&diag);
		return PL_EXIT_FAILED;
	}
	if (strcmp(ret->primitive, primitives[cfg->stream]) == 0)
		return 0;
	return pl_fail(PL_EXIT_FAILED, "gen: %s is a region of %s, the stream is %s",
		o.against.items[0], ret->primitive, o.stream);
}

static int run_against(void)
{
	struct pl_diag diag = { .text = "" };
	struct pl_dta_checked checked;
	struct pl_dta_gen *gen = NULL;
	struct pl_dta_gen_cfg cfg;
	struct pl_buf out = { 0 };
	int r = make_config(&cfg, true, &diag), code;

	cfg.reporters = 1; /* each made the whole stream */
	if (r == 0)
		r = pl_dta_gen_new(&gen, &cfg, &diag);
	if (r < 0) {
		pl_complain_diag(&diag);
		return PL_EXIT_USAGE;
	}
	code = look_up(pl_dta_gen_cfg(gen), &checked);
	pl_dta_gen_free(gen);
	if (code != 0)
		return code;
	print_checked(&checked, &out);
	code = pl_stdout_all(&out);
	if (code == PL_EXIT_OK && checked.wrong > 0)
		code = PL_EXIT_FAILED;
	return code == PL_EXIT_OK && checked.right == 0 ? PL_EXIT_NOTHING : code;
}

static int run(int argc, char **argv)
{
	struct pl_diag diag = { .text = "" };
	struct pl_opt_list operands;
	int exit_code = PL_EXIT_USAGE, r;

	if (pl_command_parse(&pl_gen_dta, argc, argv, &operands, &exit_code) != 0)
		return exit_code;
	if (operands.n == 0 || strcmp(operands.items[0], "dta") != 0) {
		exit_code = pl_fail(PL_EXIT_USAGE, "gen: the kind comes first: pathline gen dta …");
	} else if (o.against.n > 0) {
		exit_code = check_against(&operands) < 0 ? PL_EXIT_USAGE : run_against();
	} else if (check_usage(&operands, destination(&operands)) < 0) {
		exit_code = PL_EXIT_USAGE;
	} else {
		r = send_stream(destination(&operands), &diag, &exit_code);
		if (r == 0)
			exit_code = PL_EXIT_OK;
		else if (diag.text[0] != '\0')
			pl_complain_diag(&diag);
		else
			pl_complain("gen: %s", strerror(-r));
	}
	pl_opt_list_done(&operands);
	pl_opt_list_done(&o.against);
	return exit_code;
}

const struct pl_command pl_gen_dta = {
	.name = "gen dta",
	.summary = "generate reports of Direct Telemetry Access",
	.usage = "[OPTION]… [udp://HOST:PORT | packet:IFACE | afxdp:IFACE]",
	.description =
		"Generates streams for pathline translate: those of the published generator, which are\n"
		"'--form tracking' with keys and values that count up, and more. Reports in frames and\n"
		"files go to UDP port 40040. SIGUSR1 prints the number of reports sent so far.\n"
		"\n"
		"--against asks for what was made instead, with the options of the stream: exit code 1 when an\n"
		"answer is wrong, 3 when none is right. Not found are keys that later ones wrote over, about as\n"
		"many as expected.\n"
		"\n"
		"marple imitates the results of Marple's queries on a trace and follows from --seed: of 16\n"
		"reports 12 are packets of a flowlet (list 1), 3 flows with losses (list 0), 1 the timeouts\n"
		"of a flow (a value; in pathline's form lists go into the next region). With --value-bytes\n"
		"of 13 or more, entries begin with the 5-tuple of the flow.\n"
		"\n"
		"Three streams of the published generator are for a collector without DTA, in network byte\n"
		"order: udp-report (key and value of 32 bits, port 1337), udp-flowcard (addresses, ports,\n"
		"protocol and value, port 1337), int-paths (addresses, protocol, ports, five hops, port 5002).",
	.examples =
		"  pathline gen dta --rate 100k --duration 10s udp://127.0.0.1:40040\n"
		"  pathline gen dta --stream increment --zipf 1.1 --keys 100000 udp://127.0.0.1:40040\n"
		"  pathline gen dta --stream postcards --interleave 1000 --lengths -n 100000 -w p.pcap\n"
		"  pathline gen dta --stream marple --zipf 1.1 --keys 100000 -n 100000 -w marple.pcap\n"
		"  pathline gen dta --value-of-key -n 50000 --against last.plr\n"
		"  pathline gen dta --stream mix --packed 8 --loss 0.01 -n 1000 -w mix.pcap\n",
	.options = options,
	.run = run,
};
