/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens ports, decodes and prints the packets that arrive, and prints the account at the end. */
#include "ask/listen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "decode/advise.h"
#include "decode/explain.h"
#include "netio/port.h"
#include "runtime/confine.h"
#include "runtime/signals.h"
#include "service/decode_stats.h"

#define BATCH_PATHS    1024
#define BATCH_HOPS     8192
#define PORTS_MAX      16
#define BATCHES_A_TURN 16 /* batches from one port before the next port's turn */
#define SILENCE_NS     UINT64_C(5000000000)

struct listener {
	const struct pl_listen_options *o;
	struct pl_confine confine;
	struct pl_port *ports[PORTS_MAX];
	struct pollfd fds[PORTS_MAX];
	unsigned int n_ports;
	struct pl_decode *decode;
	struct pl_record_batch records;
	struct pl_record_out *out;
	struct pl_explain *explain;
	struct pl_advise *advise;
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

/* Returns 0, or prints the error and returns an exit code. */
static int open_port(
	struct listener *l, const char *uri, const struct pl_port_options *port_options)
{
	struct pl_diag diag = { 0 };
	struct pl_port *port;
	int r;

	if (l->n_ports == PORTS_MAX)
		return pl_fail(PL_EXIT_USAGE, "at most %d sockets", PORTS_MAX);
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

/* Opens a URI: one socket for an address; for an interface one per queue or member of the group. */
static int open_uri(struct listener *l, const char *uri)
{
	unsigned int first = l->n_ports;
	struct pl_diag diag = { 0 };
	int n = 1, code;

	if ((pl_port_uri_can(uri) & PL_PORT_CAN_LIVE) == 0)
		return pl_fail(PL_EXIT_USAGE,
			"%s: listen reads udp://HOST:PORT, afxdp:IFACE, packet:IFACE and ioam6:; for capture files use \"pathline read\"",
			uri);
	if (is_interface(uri))
		n = pl_port_uri_sockets(uri, &diag);
	if (n < 0) {
		pl_complain_diag(&diag);
		return PL_EXIT_USAGE;
	}
	for (unsigned int i = 0; i < (unsigned int)n; i++) {
		struct pl_port_options each = { .rights = pl_confine_rights(&l->confine),
			.index = i,
			.of = (unsigned int)n,
			.filter = l->o->filter };

		if (i > 0)
			each.with = l->ports[first];
		for (size_t k = 0; k < l->o->n; k++)
			each.v6only |= pl_port_uri_v6only(uri, l->o->uris[k]);
		code = open_port(l, uri, &each);
		if (code != 0)
			return code;
	}
	return 0;
}

/* Opens the named ports, or without names the default ports, at least one of which must open. */
static int open_ports(struct listener *l)
{
	static const char *const usual[] = { "udp://:32766", "udp://:54321" };
	int code = 0;

	for (size_t i = 0; i < l->o->n; i++) {
		code = open_uri(l, l->o->uris[i]);
		if (code != 0)
			return code;
	}
	for (size_t i = 0; l->o->n == 0 && i < sizeof(usual) / sizeof(usual[0]); i++) {
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

/* Prints the profiles that would decode packets that did not decode, each once. */
static void tell_advice(struct listener *l)
{
	const struct pl_advice *advice;
	struct pl_buf text;

	pl_buf_init(&text);
	while ((advice = pl_advise_fresh(l->advise)) != NULL) {
		pl_buf_reset(&text);
		pl_advice_text(advice, &text);
		if (!text.failed)
			pl_complain("%s", text.data);
	}
	pl_buf_done(&text);
}

static void receive(struct listener *l, struct pl_port *port)
{
	struct pl_diag diag = { 0 };

	for (int i = 0; i < BATCHES_A_TURN && !pl_record_out_full(l->out); i++) {
		int r = pl_port_recv(port, &l->packets, 0, &diag);

		if (r < 0) {
			pl_complain_diag(&diag);
			/* An interface that went down or came up is only reported; the port stays
			 * open. */
			l->broken = l->broken || (r != -ENETDOWN && r != -EAGAIN);
			return;
		}
		if (r == 0)
			return;
		l->received += (uint64_t)r;
		pl_decode_batch(l->decode, &l->packets, &l->records);
		pl_record_out_flush_batch(&l->records, l->out);
		pl_explain_batch(l->explain, &l->packets, pl_decode_outcomes(l->decode));
		if (pl_advise_batch(l->advise, &l->packets, pl_decode_outcomes(l->decode),
			    pl_clock_mono_ns()))
			tell_advice(l);
		pl_port_release(port, &l->packets);
	}
}

static void sum_stats(const struct listener *l, struct pl_port_stats *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned int i = 0; i < l->n_ports; i++) {
		struct pl_port_stats s;

		pl_port_stats(l->ports[i], &s);
		pl_port_stats_add(ret, &s);
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

	while (!stop && !l->broken && !pl_record_out_full(l->out)) {
		uint64_t wait_ns = UINT64_C(1000000000);

		if (l->o->duration_ns != 0 && now_ns - start_ns >= l->o->duration_ns)
			break;
		if (l->o->duration_ns != 0 && until(now_ns, start_ns + l->o->duration_ns) < wait_ns)
			wait_ns = until(now_ns, start_ns + l->o->duration_ns);
		if (pl_signals_poll(signals, l->fds, l->n_ports, wait_ns) > 0) {
			for (unsigned int i = 0; i < l->n_ports; i++) {
				if (l->fds[i].revents != 0)
					receive(l, l->ports[i]);
			}
			pl_record_out_write(l->out);
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
	bool json = l->out->form == PL_OUT_JSON || l->out->form == PL_OUT_JSONL;
	struct pl_port_stats ports;
	struct pl_buf text;

	sum_stats(l, &ports);
	if (pl_advise_end(l->advise))
		tell_advice(l);
	if (l->o->stats && json) {
		pl_decode_stats_json(&l->out->buf, l->decode, &ports);
		pl_record_out_write(l->out);
		return;
	}
	pl_record_out_end(l->out);
	pl_buf_init(&text);
	pl_decode_stats_text(&text, l->decode, &ports);
	if (text.len > 0)
		fputs(text.data, stderr);
	pl_buf_done(&text);
}

/* Returns 0, or prints the error and returns an exit code. */
static int refuse(int r, const struct pl_diag *diag)
{
	if (r < 0)
		pl_complain_diag(diag);
	return r == 0 ? 0 : r == -EPERM || r == -EACCES ? PL_EXIT_PRIVILEGE : PL_EXIT_FAILED;
}

static int begin_confine(struct listener *l)
{
	const struct pl_privilege_options options = { .user = l->o->user, .group = l->o->group };
	struct pl_diag diag = { .text = "" };

	pl_confine_init(&l->confine, &options);
	for (size_t i = 0; i < l->o->n; i++)
		pl_confine_uri(&l->confine, l->o->uris[i], false);
	return refuse(pl_confine_begin(&l->confine, &diag), &diag);
}

/* Once the ports are open, packets are read by a process that can do little else. */
static int drop_rights(struct listener *l)
{
	struct pl_diag diag = { .text = "" };

	return refuse(pl_confine(&l->confine, &diag), &diag);
}

static void complain(void *arg, const char *text)
{
	(void)arg;
	pl_complain("%s", text);
}

/* Returns an exit code, 0 for success; prints errors. */
static int prepare(struct listener *l)
{
	int r = begin_confine(l);

	if (r == 0)
		r = open_ports(l);
	if (r == 0)
		r = drop_rights(l);
	if (r != 0)
		return r;
	l->out->lines |= l->o->stats;
	if (pl_record_batch_init(&l->records, BATCH_PATHS, BATCH_HOPS) < 0 ||
		pl_decode_new(&l->decode, l->o->decode) < 0 ||
		pl_explain_new(&l->explain, l->o->decode, complain, NULL) < 0 ||
		pl_advise_new(&l->advise, l->o->decode, 0) < 0)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	l->records.flush = pl_record_out_flush_batch;
	l->records.flush_arg = l->out;
	return 0;
}

static void free_listener(struct listener *l)
{
	for (unsigned int i = 0; i < l->n_ports; i++)
		(void)pl_port_close(l->ports[i]);
	pl_explain_free(l->explain);
	pl_advise_free(l->advise);
	pl_decode_free(l->decode);
	pl_record_batch_done(&l->records);
	pl_confine_end(&l->confine);
	free(l);
}

int pl_listen(const struct pl_listen_options *options, struct pl_record_out *out)
{
	struct pl_signals signals;
	struct listener *l;
	int code;

	pl_signals_catch(&signals, on_stop, (const int[]){ 0 });
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	l->o = options;
	l->out = out;
	code = prepare(l);
	if (code == 0) {
		pl_signals_block(&signals);
		tell_listening(l, "");
		if (pl_confine_gap(&l->confine) != NULL)
			pl_complain("%s", pl_confine_gap(&l->confine));
		loop(l, &signals);
		finish(l);
		if (!pl_record_out_good(l->out) || l->broken)
			code = PL_EXIT_FAILED;
		else if (l->out->printed == 0 && !l->out->gone)
			code = PL_EXIT_NOTHING;
	}
	free_listener(l);
	return code;
}
