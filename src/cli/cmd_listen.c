/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline listen: what arrives, decoded; and why what does not decode does not. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/decode_args.h"
#include "cli/decode_stats.h"
#include "cli/record_out.h"
#include "decode/decode.h"
#include "decode/explain.h"
#include "netio/port.h"
#include "service/confine.h"
#include "service/signals.h"

#define BATCH_PATHS    1024
#define BATCH_HOPS     8192
#define PORTS_MAX      16
#define BATCHES_A_TURN 16 /* from one port before the others get theirs */
#define SILENCE_NS     UINT64_C(5000000000)

static struct {
	struct pl_record_args out;
	uint64_t duration_ns;
	struct pl_decode_args decode;
	const char *user, *group;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Output", NULL, NULL, NULL, NULL },
		PL_RECORD_ARGS_FORM(args.out),
		{ PL_OPT_DURATION, 0, "duration", &args.duration_ns, "TIME",
			"stop after this long: 30s, 5m", NULL },
		PL_RECORD_ARGS_WHICH(args.out),
		PL_DECODE_ARGS(args.decode),
		{ PL_OPT_HEADING, 0, "Rights", NULL, NULL, NULL, NULL },
		PL_ARGS_CONFINE(args.user, args.group),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

struct listener {
	struct pl_confine confine;
	struct pl_port *ports[PORTS_MAX];
	struct pollfd fds[PORTS_MAX];
	unsigned int n_ports;
	struct pl_decode *decode;
	struct pl_record_batch records;
	struct pl_record_out out;
	struct pl_explain *explain;
	struct pl_batch packets;
	uint64_t received;
	bool broken; /* a port failed */
};

static volatile sig_atomic_t stop;

static void on_stop(int signo)
{
	(void)signo;
	stop = 1;
}

static bool is_interface(const char *uri)
{
	return (pl_port_uri_can(uri) & PL_PORT_CAN_INTERFACE) != 0;
}

/* 0, or an exit code; complains. */
static int open_port(
	struct listener *l, const char *uri, const struct pl_port_options *port_options)
{
	struct pl_diag diag = { 0 };
	struct pl_port *port;
	int r;

	if (l->n_ports == PORTS_MAX) {
		pl_complain("at most %d sockets", PORTS_MAX);
		return PL_EXIT_USAGE;
	}
	r = pl_port_open(&port, uri, PL_PORT_RECV, port_options, &diag);
	if (r < 0) {
		pl_complain_diag(&diag);
		return r == -EINVAL                  ? PL_EXIT_USAGE
		       : r == -EACCES || r == -EPERM ? PL_EXIT_PRIVILEGE
						     : PL_EXIT_UNAVAILABLE;
	}
	l->fds[l->n_ports] = (struct pollfd){ .fd = pl_port_fd(port), .events = POLLIN };
	l->ports[l->n_ports++] = port;
	return 0;
}

/* One socket for an address; for an interface one per queue or member of the group. */
static int open_uri(struct listener *l, const char *uri)
{
	unsigned int first = l->n_ports;
	struct pl_diag diag = { 0 };
	int n = 1, code;

	if ((pl_port_uri_can(uri) & PL_PORT_CAN_LIVE) == 0) {
		pl_complain(
			"%s: listen reads udp://HOST:PORT, afxdp:IFACE, packet:IFACE and ioam6:; for capture files use \"pathline read\"",
			uri);
		return PL_EXIT_USAGE;
	}
	if (is_interface(uri))
		n = pl_port_uri_sockets(uri, &diag);
	if (n < 0) {
		pl_complain_diag(&diag);
		return PL_EXIT_USAGE;
	}
	for (unsigned int i = 0; i < (unsigned int)n; i++) {
		struct pl_port_options each = {
			.rights = pl_confine_rights(&l->confine), .index = i, .of = (unsigned int)n
		};

		if (i > 0)
			each.with = l->ports[first];
		code = open_port(l, uri, &each);
		if (code != 0)
			return code;
	}
	return 0;
}

/* The usual ports when none is named: one of them suffices. */
static int open_ports(struct listener *l, const struct pl_opt_list *uris)
{
	static const char *const usual[] = { "udp://:32766", "udp://:54321" };
	int code = 0;

	for (size_t i = 0; i < uris->n; i++) {
		code = open_uri(l, uris->items[i]);
		if (code != 0)
			return code;
	}
	for (size_t i = 0; uris->n == 0 && i < sizeof(usual) / sizeof(usual[0]); i++) {
		int r = open_uri(l, usual[i]);

		code = r != 0 ? r : code;
	}
	return l->n_ports > 0 ? 0 : code;
}

static void port_names(const struct listener *l, struct pl_buf *out)
{
	for (unsigned int i = 0; i < l->n_ports; i++)
		pl_buf_printf(out, "%s%s", i == 0 ? "" : " and ", pl_port_name(l->ports[i]));
}

static void tell_listening(const struct listener *l, const char *more)
{
	struct pl_buf names;

	pl_buf_init(&names);
	port_names(l, &names);
	if (names.len > 0)
		pl_complain("listening on %s%s", names.data, more);
	pl_buf_done(&names);
}

static void receive(struct listener *l, struct pl_port *port)
{
	struct pl_diag diag = { 0 };

	for (int i = 0; i < BATCHES_A_TURN && !pl_record_out_full(&l->out); i++) {
		int r = pl_port_recv(port, &l->packets, 0, &diag);

		if (r < 0) {
			pl_complain_diag(&diag);
			/* An interface that went or came back is news; the port lives on. */
			l->broken = r != -ENETDOWN && r != -EAGAIN;
			return;
		}
		if (r == 0)
			return;
		l->received += (uint64_t)r;
		pl_decode_batch(l->decode, &l->packets, &l->records);
		pl_record_out_flush_batch(&l->records, &l->out);
		pl_explain_batch(l->explain, &l->packets, pl_decode_outcomes(l->decode));
		pl_port_release(port, &l->packets);
	}
}

static void sum_stats(const struct listener *l, struct pl_port_stats *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned int i = 0; i < l->n_ports; i++) {
		struct pl_port_stats s;

		pl_port_stats(l->ports[i], &s);
		ret->packets += s.packets;
		ret->bytes += s.bytes;
		ret->kernel_drops += s.kernel_drops;
		ret->filtered += s.filtered;
		ret->no_socket += s.no_socket;
		ret->fragments += s.fragments;
		ret->outages += s.outages;
		ret->cut += s.cut;
		ret->errors += s.errors;
	}
}

static uint64_t until(uint64_t now_ns, uint64_t deadline_ns)
{
	return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

static void loop(struct listener *l, const struct pl_signals *signals)
{
	uint64_t start_ns = pl_clock_mono_ns(), now_ns = start_ns;
	bool told = false;

	while (!stop && !l->broken && !pl_record_out_full(&l->out)) {
		uint64_t wait_ns = UINT64_C(1000000000);

		if (args.duration_ns != 0 && now_ns - start_ns >= args.duration_ns)
			break;
		if (args.duration_ns != 0 && until(now_ns, start_ns + args.duration_ns) < wait_ns)
			wait_ns = until(now_ns, start_ns + args.duration_ns);
		if (pl_signals_poll(signals, l->fds, l->n_ports, wait_ns) > 0) {
			for (unsigned int i = 0; i < l->n_ports; i++) {
				if (l->fds[i].revents != 0)
					receive(l, l->ports[i]);
			}
			pl_record_out_write(&l->out);
		}
		now_ns = pl_clock_mono_ns();
		pl_explain_tick(l->explain, now_ns);
		if (!told && l->received == 0 && now_ns - start_ns >= SILENCE_NS) {
			told = true;
			tell_listening(l,
				", nothing received so far: check that the devices send to this address and port, and that the firewall lets UDP in");
		}
	}
}

static void finish(struct listener *l)
{
	bool json = l->out.form == PL_OUT_JSON || l->out.form == PL_OUT_JSONL;
	struct pl_port_stats ports;
	struct pl_buf text;

	sum_stats(l, &ports);
	if (args.out.stats && json) {
		pl_decode_stats_json(&l->out.buf, l->decode, &ports);
		pl_record_out_write(&l->out);
		return;
	}
	pl_record_out_end(&l->out);
	pl_buf_init(&text);
	pl_decode_stats_text(&text, l->decode, &ports);
	if (text.len > 0)
		fputs(text.data, stderr);
	pl_buf_done(&text);
}

/* 0, or an exit code; complains. */
static int refuse(int r, const struct pl_diag *diag)
{
	if (r < 0)
		pl_complain_diag(diag);
	return r == 0 ? 0 : r == -EPERM || r == -EACCES ? PL_EXIT_PRIVILEGE : PL_EXIT_FAILED;
}

static int begin_confine(struct listener *l, const struct pl_opt_list *uris)
{
	const struct pl_privilege_options options = { .user = args.user, .group = args.group };
	struct pl_diag diag = { .text = "" };

	pl_confine_init(&l->confine, &options);
	for (size_t i = 0; i < uris->n; i++)
		pl_confine_uri(&l->confine, uris->items[i], false);
	return refuse(pl_confine_begin(&l->confine, &diag), &diag);
}

/* The ports are open: what comes is read by a process that can do little else. */
static int drop_rights(struct listener *l)
{
	struct pl_diag diag = { .text = "" };

	return refuse(pl_confine(&l->confine, PL_CONFINE_READER, &diag), &diag);
}

static void complain(void *arg, const char *text)
{
	(void)arg;
	pl_complain("%s", text);
}

/* An exit code, 0 when good; complains. */
static int prepare(struct listener *l, const struct pl_opt_list *uris)
{
	struct pl_decode_options decode = { .any_port = true };
	struct pl_profile profile;
	int r = pl_record_out_init(&l->out, args.out.form, args.out.where, args.out.count);

	if (r == 0)
		r = pl_decode_args_apply(&args.decode, &decode, &profile);
	if (r == 0)
		r = begin_confine(l, uris);
	if (r == 0)
		r = open_ports(l, uris);
	if (r == 0)
		r = drop_rights(l);
	if (r != 0)
		return r;
	l->out.lines |= args.out.stats;
	if (pl_record_batch_init(&l->records, BATCH_PATHS, BATCH_HOPS) < 0 ||
		pl_decode_new(&l->decode, &decode) < 0 ||
		pl_explain_new(&l->explain, &decode, complain, NULL) < 0) {
		pl_complain("out of memory");
		return PL_EXIT_FAILED;
	}
	l->records.flush = pl_record_out_flush_batch;
	l->records.flush_arg = &l->out;
	return 0;
}

static void free_listener(struct listener *l)
{
	for (unsigned int i = 0; i < l->n_ports; i++)
		(void)pl_port_close(l->ports[i]);
	pl_explain_free(l->explain);
	pl_decode_free(l->decode);
	pl_record_batch_done(&l->records);
	pl_record_out_done(&l->out);
	pl_confine_end(&l->confine);
	free(l);
}

static int run(int argc, char **argv)
{
	struct pl_opt_list uris = { 0 };
	struct pl_signals signals;
	struct listener *l;
	int code;

	args.out.form = pl_out_forms[PL_OUT_TABLE];
	if (pl_command_parse(&pl_command_listen, argc, argv, &uris, &code) != 0)
		return code;
	pl_signals_catch(&signals, on_stop, (const int[]){ 0 });
	l = calloc(1, sizeof(*l));
	if (l == NULL) {
		pl_complain("out of memory");
		pl_opt_list_done(&uris);
		return PL_EXIT_FAILED;
	}
	code = prepare(l, &uris);
	if (code == 0) {
		pl_signals_block(&signals);
		tell_listening(l, "");
		if (pl_confine_gap(&l->confine) != NULL)
			pl_complain("%s", pl_confine_gap(&l->confine));
		loop(l, &signals);
		finish(l);
		if (!pl_record_out_good(&l->out) || l->broken)
			code = PL_EXIT_FAILED;
		else if (l->out.printed == 0 && !l->out.gone)
			code = PL_EXIT_NOTHING;
	}
	free_listener(l);
	pl_decode_args_done(&args.decode);
	pl_opt_list_done(&uris);
	return code;
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
		"its bytes and the position of the error; later ones are counted. The command ends after\n"
		"-n records, --duration, SIGINT or SIGTERM, with statistics that include the packets\n"
		"dropped by the kernel. Exit code 3: no record was printed. Addresses need no privileges,\n"
		"interfaces the capabilities that 'pathline doctor' names.",
	.examples =
		"  pathline listen\n"
		"  pathline listen udp://:32766\n"
		"  pathline listen 'packet:eth0?port=32766&vlan=10'\n"
		"  pathline listen 'afxdp:eth0?queues=0-3'\n"
		"  pathline listen -o jsonl --duration 30s 'udp://10.0.0.1:32766?rcvbuf=16MiB'\n"
		"  pathline listen --where 'flags.dropped or hops.queue_depth > 1000'\n",
	.options = options,
	.run = run,
};
