/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline gen: pacing against the clock, and the account at the end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ask/gen_send.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/num.h"
#include "cli/command.h"
#include "cli/gen_dta.h"
#include "cli/gen_options.h"
#include "cli/gen_packets.h"
#include "gen/gen.h"
#include "gen/malform.h"
#include "gen/preset.h"
#include "netio/port.h"

#define FLOOD_RATE 1e6 /* model time per report when nothing is paced */

static struct pl_gen_run o; /* as given */

static int next(void *gen, uint64_t until_ns, struct pl_batch *ret)
{
	return pl_gen_next(gen, until_ns, ret);
}

static uint64_t due_ns(const void *gen)
{
	return pl_gen_due_ns(gen);
}

static void skip_to(void *gen, uint64_t now_ns)
{
	pl_gen_skip_to(gen, now_ns);
}

/* Until a flood has lasted as long as it should; the model's end is its own. */
static int run(struct pl_gen *gen, struct pl_port *port, bool paced, struct pl_gen_account *acc,
	struct pl_diag *diag)
{
	const struct pl_gen_source source = { next, due_ns, skip_to, gen, pl_gen_cfg(gen)->start_ns,
		NULL };

	return pl_gen_send(&source, port, paced,
		o.flood && o.duration_ns != 0 ? pl_clock_mono_ns() + o.duration_ns : 0, acc, diag);
}

static void print_account(const struct pl_gen *gen, const struct pl_gen_account *acc, bool paced)
{
	const struct pl_gen_counters *c = pl_gen_counters(gen);
	double s = (double)(acc->end_ns - acc->begin_ns) / 1e9;
	char rate[32], asked[32];
	const struct {
		const char *what;
		uint64_t n;
	} rows[] = { { "lost", c->lost }, { "duplicated", c->duplicated },
		{ "reordered", c->reordered }, { "exporters restarted", c->restarts },
		{ "packets dropped", c->dropped }, { "queue reports", c->queue_reports },
		{ "intermediate reports", c->flushes }, { "drop summaries", c->summaries },
		{ "damaged", c->malformed }, { "without a route", c->unrouted } };

	pl_format_count(rate, sizeof(rate), s > 0 ? (double)c->reports / s : 0);
	fprintf(stderr, "%llu packets (%llu reports, %llu bytes) in %.3f s: %s reports/s",
		(unsigned long long)acc->sent, (unsigned long long)c->reports,
		(unsigned long long)acc->sent_bytes, s, rate);
	if (paced) {
		pl_format_count(asked, sizeof(asked), pl_gen_cfg(gen)->rate);
		fprintf(stderr, " (requested %s)", asked);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].n > 0)
			fprintf(stderr, "; %s: %llu", rows[i].what, (unsigned long long)rows[i].n);
	}
	fputc('\n', stderr);
	pl_gen_tell_skipped(acc);
}

/* ---- lists ---- */

static void print_malforms(bool ioam)
{
	size_t n;
	const struct pl_malform *rows = pl_malforms(&n);

	printf("%-22s %-28s %-40s %s\n", "NAME", "ANSWER", "FORM", "DAMAGE");
	for (size_t i = 0; i < n; i++) {
		char answer[64], form[96];

		if (ioam ? rows[i].needs.ioam == 0 && !pl_malform_is_formless(&rows[i])
			 : rows[i].needs.ioam != 0)
			continue;
		if (rows[i].note != 0)
			snprintf(answer, sizeof(answer), "note %s",
				pl_note_name((enum pl_note)__builtin_ctzll(rows[i].note)));
		else
			snprintf(answer, sizeof(answer), "%s", pl_verdict_name(rows[i].verdict));
		pl_gen_malform_form(&rows[i], form, sizeof(form));
		printf("%-22s %-28s %-40s %s\n", rows[i].name, answer, form, rows[i].help);
	}
}

static void print_presets(void)
{
	size_t n;
	const struct pl_gen_preset *rows = pl_gen_presets(&n);

	for (size_t i = 0; i < n; i++)
		printf("%-22s %s\n", rows[i].name, rows[i].help);
}

/* ---- the command ---- */

static bool is_udp(const char *uri)
{
	return (pl_port_uri_can(uri) & PL_PORT_CAN_DATAGRAMS) != 0;
}

static const char *destination(const struct pl_opt_list *operands)
{
	if (o.file != NULL)
		return o.file;
	return operands->n > 1 ? operands->items[1] : NULL;
}

static int check_usage(const struct pl_opt_list *operands, const char *uri)
{
	if (operands->n > 2 || (o.file != NULL && operands->n > 1))
		return pl_fail(-EINVAL, "gen: more than one destination");
	if (uri == NULL && !o.dry_run)
		return pl_fail(-EINVAL,
			"gen: missing destination: udp://HOST:PORT, packet:IFACE, afxdp:IFACE, -w FILE or --dry-run");
	if (uri != NULL && !pl_gen_is_live(uri) &&
		(o.flood || (o.count == 0 && o.duration_ns == 0 && strcmp(uri, "-") != 0)))
		return pl_fail(-EINVAL,
			o.flood ? "gen: --flood needs a destination to send to, not a file or a dry run"
				: "gen: -w needs --count or --duration, or the file would never end");
	if (uri == NULL && o.count == 0 && o.duration_ns == 0)
		return pl_fail(-EINVAL,
			"gen: --dry-run needs --count or --duration, or it would never end");
	return 0;
}

/* A flood is sent with as few system calls as possible, unless the address says otherwise. */
static const char *flood_uri(const char *uri, struct pl_buf *text)
{
	if (!o.flood || !is_udp(uri) || strstr(uri, "gso=") != NULL)
		return uri;
	pl_buf_printf(text, "%s%cgso=yes", uri, strchr(uri, '?') == NULL ? '?' : '&');
	return text->failed ? uri : text->data;
}

static int generate(const struct pl_opt_list *operands, bool ioam)
{
	const char *uri = destination(operands);
	bool udp = uri != NULL && is_udp(uri);
	bool paced = uri != NULL && pl_gen_is_live(uri) && !o.flood;
	struct pl_diag diag = { .text = "" };
	struct pl_gen_cfg cfg = { 0 };
	struct pl_gen_account acc = { 0 };
	struct pl_port *port = NULL;
	struct pl_gen *gen = NULL;
	struct pl_buf topology, address;
	int r, exit_code = PL_EXIT_USAGE;

	pl_buf_init(&topology);
	pl_buf_init(&address);
	if (check_usage(operands, uri) < 0)
		goto out;
	r = pl_gen_options_config(&cfg, &topology, ioam, udp, &diag);
	if (r < 0)
		goto told;
	if (paced) /* live: the model's clock is the real one */
		cfg.start_ns = pl_clock_real_ns();
	if (o.flood) {
		cfg.duration_ns = 0;
		cfg.rate = o.rate != 0 ? o.rate : FLOOD_RATE;
		cfg.start_ns = pl_clock_real_ns();
	}
	r = pl_gen_new(&gen, &cfg, &diag);
	if (r < 0)
		goto told;
	exit_code = PL_EXIT_FAILED;
	r = pl_gen_open(
		&port, uri == NULL || o.dry_run ? NULL : flood_uri(uri, &address), NULL, &diag);
	if (r < 0)
		goto told;
	pl_gen_catch_signals();
	r = run(gen, port, paced && !o.dry_run, &acc, &diag);
	if (r >= 0) {
		r = pl_gen_close(port);
		port = NULL;
		if (r < 0)
			pl_diag_set(&diag, "%s: %s", uri, strerror(-r));
	}
	print_account(gen, &acc, paced && !o.dry_run);
	if (r >= 0)
		exit_code = PL_EXIT_OK;
told:
	if (r < 0 && r != -ECANCELED) {
		if (diag.text[0] == '\0')
			pl_diag_set(&diag, "%s", strerror(-r));
		pl_complain_diag(&diag);
	}
out:
	(void)pl_gen_close(port);
	pl_gen_free(gen);
	pl_buf_done(&topology);
	pl_buf_done(&address);
	return exit_code;
}

static int gen(const struct pl_opt_list *operands, bool ioam)
{
	if (o.preset != NULL && strcmp(o.preset, "list") == 0) {
		print_presets();
		return PL_EXIT_OK;
	}
	if (o.list_malforms) {
		print_malforms(ioam);
		return PL_EXIT_OK;
	}
	return generate(operands, ioam);
}

static const struct pl_command gen_int = {
	.name = "gen int",
	.summary = "generate INT telemetry reports, or packets that carry INT",
	.usage = "[OPTION]… [udp://HOST:PORT | packet:IFACE | afxdp:IFACE]",
	.description =
		"Models a network with flows through it and encodes the reports of its nodes: INT 0.5,\n"
		"1.0 and 2.1 in telemetry reports 0.5, 1.0 and 2.0, or the instrumented packets\n"
		"themselves. Packets to udp://HOST:PORT or to an interface leave at the requested rate\n"
		"and carry the real time; in a capture file time begins at a fixed moment.\n"
		"\n"
		"Options that are not given follow from those that are: --int 1.0 alone implies report\n"
		"version 1.0; --malform selects the form it needs.",
	.examples =
		"  pathline gen int --rate 10k udp://127.0.0.1:32766\n"
		"  pathline gen int --flood --duration 10s udp://127.0.0.1:32766\n"
		"  pathline gen int --count 1000 --int 1.0 --topology chain:6 -w six-hops.pcap\n"
		"  pathline gen int --mode xd --event path@20s+20s udp://127.0.0.1:32766\n"
		"  pathline gen int --count 100 --malform report_length:0.1 -w - | pathline read -\n"
		"  pathline gen int --count 1000 --malform all -w damaged.pcap\n"
		"  pathline gen int --preset intcollector-test8 --count 10 -w test8.pcap\n",
	.options = pl_gen_options_int,
};

static const struct pl_command gen_ioam = {
	.name = "gen ioam",
	.summary = "generate IPv6 packets that carry IOAM",
	.usage = "[OPTION]… -w FILE",
	.description =
		"Models a network with flows through it and writes their packets as they are on\n"
		"the last link inside the IOAM domain: traces, pre-allocated and incremental, edge\n"
		"to edge, proof of transit and direct export, in IPv6 extension headers (RFC 9197,\n"
		"9322, 9326, 9486).",
	.examples =
		"  pathline gen ioam --count 100 -w trace.pcap\n"
		"  pathline gen ioam --count 100 --options trace,e2e,dex --namespace 123 -w all.pcap\n"
		"  pathline gen ioam --count 9 --trace-type 0xfff002 --snapshot 2 -w - | pathline read -\n"
		"  pathline gen ioam --count 50 --nodes 2 -t chain:5 -w overflow.pcap\n"
		"  pathline gen ioam --count 1000 --malform all -w damaged.pcap\n",
	.options = pl_gen_options_ioam,
};

static const struct pl_command *const kinds[] = { &gen_int, &gen_ioam, &pl_gen_dta, &pl_gen_packets,
	NULL };
static const char *const kind_words[] = { "int", "ioam", "dta", "packets", NULL };

/* The kind's name stands in front of the options or between them. */
static const struct pl_command *find_kind(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		for (size_t k = 0; kinds[k] != NULL; k++) {
			if (strcmp(argv[i], kind_words[k]) == 0)
				return kinds[k];
		}
	}
	return NULL;
}

static int run_gen(int argc, char **argv)
{
	const struct pl_command *kind = find_kind(argc, argv);
	struct pl_opt_list operands;
	int exit_code = PL_EXIT_USAGE;

	if (kind == &pl_gen_dta)
		return pl_gen_dta.run(argc, argv);
	if (kind == &pl_gen_packets)
		return pl_gen_packets.run(argc, argv);
	if (pl_command_parse(
		    kind != NULL ? kind : &pl_command_gen, argc, argv, &operands, &exit_code) != 0)
		return exit_code;
	o = pl_gen_options_run();
	if (operands.n == 0) {
		pl_complain("gen: missing kind: int, ioam, dta or packets");
	} else if (kind == NULL || strcmp(operands.items[0], kind->name + 4) != 0) {
		const char *near = pl_nearest(operands.items[0], kind_words, 4);

		pl_complain("gen: unknown kind \"%s\"; use int, ioam, dta or packets%s%s%s",
			operands.items[0], near != NULL ? ", did you mean " : "",
			near != NULL ? near : "", near != NULL ? "?" : "");
	} else {
		exit_code = gen(&operands, kind == &gen_ioam);
	}
	pl_opt_list_done(&operands);
	pl_gen_options_done();
	return exit_code;
}

const struct pl_command pl_command_gen = {
	.name = "gen",
	.summary =
		"generate telemetry or packets: to a UDP address, an interface or a capture file",
	.usage = "int|ioam|dta|packets [OPTION]… [URI]",
	.description =
		"int      telemetry reports and INT packets in every version and dialect\n"
		"ioam     IPv6 packets that carry IOAM\n"
		"dta      reports of Direct Telemetry Access, for pathline translate\n"
		"packets  ordinary traffic, for taps, flows and questions\n"
		"\n"
		"int and ioam model a network with flows through it and encode the telemetry of its\n"
		"nodes; the same seed gives the same bytes. 'pathline help gen int' and so on show the\n"
		"options of each kind; the list below has those of int and ioam.",
	.examples =
		"  pathline gen int --rate 10k udp://127.0.0.1:32766\n"
		"  pathline gen int --count 1000 --int 1.0 --topology chain:6 -w six-hops.pcap\n"
		"  pathline gen ioam --count 100 --options trace,e2e -w ioam.pcap\n"
		"  pathline gen dta --rate 100k udp://127.0.0.1:40040\n",
	.options = pl_gen_options_all,
	.words = kind_words,
	.kinds = kinds,
	.run = run_gen,
};
