/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs "pathline gen packets". */
#include "cli/gen_packets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ask/gen_send.h"
#include "base/clock.h"
#include "base/num.h"
#include "gen/traffic.h"

#define FILE_START_NS UINT64_C(1700000000000000000)

static struct {
	const char *file;
	uint64_t seed, count, duration_ns, clients, servers;
	double connections, loss;
	bool story, flood;
} o;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Contents", NULL, NULL, NULL, NULL },
		{ PL_OPT_RATE, 0, "connections", &o.connections, "RATE",
			"TCP connections per second, and as many DNS questions (default 100)",
			NULL },
		{ PL_OPT_DOUBLE, 0, "loss", &o.loss, "SHARE",
			"share of TCP segments that are lost and sent again", NULL },
		{ PL_OPT_U64, 0, "clients", &o.clients, "COUNT",
			"clients, 10.0.0.0 and up (default 200)", NULL },
		{ PL_OPT_U64, 0, "servers", &o.servers, "COUNT",
			"servers, 192.0.2.1 and up (default 10, at most 200)", NULL },
		{ PL_OPT_FLAG, 0, "story", &o.story, NULL,
			"every 30 s: at 5 s a port scan, at 10 s a SYN flood, at 15 s a lossy path "
			"to a server, at 20 s a slow server",
			NULL },
		{ PL_OPT_U64, 0, "seed", &o.seed, "NUMBER",
			"the same seed gives the same bytes (default 1)", NULL },
		{ PL_OPT_HEADING, 0, "Sending", NULL, NULL, NULL, NULL },
		{ PL_OPT_COUNT, 'n', "count", &o.count, "COUNT", "stop after this many packets",
			NULL },
		{ PL_OPT_DURATION, 0, "duration", &o.duration_ns, "TIME",
			"stop after this time on the clock of the traffic", NULL },
		{ PL_OPT_FLAG, 0, "flood", &o.flood, NULL, "send as fast as possible", NULL },
		{ PL_OPT_STRING, 'w', "write", &o.file, "FILE", "write a capture file", NULL },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	memset(&o, 0, sizeof(o));
	o.seed = 1;
	return table;
}

static int next(void *gen, uint64_t until_ns, struct pl_batch *ret)
{
	return pl_traffic_next(gen, until_ns, ret);
}

static uint64_t due_ns(const void *gen)
{
	return pl_traffic_due_ns(gen);
}

static void skip_to(void *gen, uint64_t now_ns)
{
	pl_traffic_skip_to(gen, now_ns);
}

static void tell(const void *gen, const struct pl_gen_account *acc)
{
	const struct pl_traffic_truth *t = pl_traffic_truth(gen);
	const double s = (double)(acc->end_ns - acc->begin_ns) / 1e9;

	fprintf(stderr,
		"%" PRIu64 " packets (%" PRIu64 " bytes) in %.3f s: %" PRIu64
		" connections, %" PRIu64 " DNS questions, %" PRIu64 " segments sent again (%" PRIu64
		" on the lossy way), %" PRIu64 " ports tried, %" PRIu64 " SYNs of the flood\n",
		acc->sent, acc->sent_bytes, s, t->connections, t->questions, t->lost, t->storm,
		t->scans, t->syns);
	pl_gen_tell_skipped(acc);
}

static const char *destination(const struct pl_opt_list *operands)
{
	return o.file != NULL ? o.file : operands->n > 1 ? operands->items[1] : NULL;
}

/* Returns 0, or prints the error and returns an exit code. */
static int check(const struct pl_opt_list *operands, const char *uri)
{
	if (operands->n > 2 || (o.file != NULL && operands->n > 1))
		return pl_fail(PL_EXIT_USAGE, "gen: more than one destination");
	if (uri == NULL)
		return pl_fail(PL_EXIT_USAGE,
			"gen: missing destination: packet:IFACE, afxdp:IFACE or -w FILE");
	if ((pl_port_uri_can(uri) & PL_PORT_CAN_DATAGRAMS) != 0)
		return pl_fail(PL_EXIT_USAGE,
			"gen: packets are frames: send them to packet:IFACE, afxdp:IFACE or a file");
	if (!pl_gen_is_live(uri) && o.count == 0 && o.duration_ns == 0)
		return pl_fail(PL_EXIT_USAGE,
			"gen: -w needs --count or --duration, or it would never end");
	if (o.clients > UINT32_MAX || o.servers > UINT32_MAX)
		return pl_fail(PL_EXIT_USAGE, "gen: too many clients or servers");
	return 0;
}

static int send_traffic(struct pl_traffic *traffic, uint64_t start_ns, const char *uri)
{
	const bool live = pl_gen_is_live(uri);
	const struct pl_gen_source source = { next, due_ns, skip_to, traffic, start_ns, tell };
	struct pl_gen_account acc = { 0 };
	struct pl_diag diag = { .text = "" };
	struct pl_port *port;
	int r = pl_gen_open(&port, uri, NULL, &diag), closed;

	if (r == 0) {
		pl_gen_catch_signals();
		r = pl_gen_send(&source, port, live && !o.flood, 0, &acc, &diag);
		closed = pl_gen_close(port);
		r = r < 0 ? r : closed;
		tell(traffic, &acc);
	} else {
		(void)pl_gen_close(NULL);
	}
	if (r == 0)
		return PL_EXIT_OK;
	pl_complain("%s", diag.text[0] != '\0' ? diag.text : strerror(-r));
	return r == -EPERM || r == -EACCES ? PL_EXIT_PRIVILEGE : PL_EXIT_FAILED;
}

static int make_and_send(const char *uri)
{
	const struct pl_traffic_cfg cfg = { .seed = o.seed,
		.start_ns = pl_gen_is_live(uri) ? pl_clock_real_ns() : FILE_START_NS,
		.duration_ns = o.duration_ns,
		.count = o.count,
		.connections = o.connections,
		.loss = o.loss,
		.clients = (uint32_t)o.clients,
		.servers = (uint32_t)o.servers,
		.story = o.story };
	struct pl_diag diag = { .text = "" };
	struct pl_traffic *traffic;
	int code;

	if (pl_traffic_new(&traffic, &cfg, &diag) < 0) {
		pl_complain_diag(&diag);
		return PL_EXIT_USAGE;
	}
	code = send_traffic(traffic, cfg.start_ns, uri);
	pl_traffic_free(traffic);
	return code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	int code;

	if (pl_command_parse(&pl_gen_packets, argc, argv, &operands, &code) != 0)
		return code;
	if (operands.n == 0 || strcmp(operands.items[0], "packets") != 0) {
		code = pl_fail(PL_EXIT_USAGE, "gen: the kind comes first: pathline gen packets …");
	} else {
		code = check(&operands, destination(&operands));
		if (code == 0)
			code = make_and_send(destination(&operands));
	}
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_gen_packets = {
	.name = "gen packets",
	.summary = "generate ordinary traffic: TCP connections, DNS, attacks",
	.usage = "[OPTION]… [packet:IFACE | afxdp:IFACE]",
	.description =
		"Makes TCP connections with handshake, request, answer and end, and DNS questions, between\n"
		"clients and servers that are not there, for trying taps, flows and questions. With --story\n"
		"there are a port scan (from 198.51.100.66), a SYN flood (to 192.0.2.1), a way that loses\n"
		"segments (to 192.0.2.3) and a server that answers late (192.0.2.2). The account at the end\n"
		"says what there was of each. SIGUSR1 prints it meanwhile.",
	.examples = "  pathline gen packets --duration 30s --story -w traffic.pcap\n"
		    "  pathline query portscan traffic.pcap\n"
		    "  pathline gen packets --connections 1000 packet:veth0\n",
	.options = options,
	.run = run,
};
