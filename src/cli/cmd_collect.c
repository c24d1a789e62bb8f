/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline collect: telemetry memory that others write over RoCE. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/num.h"
#include "chain/memory_server.h"
#include "cli/args.h"
#include "cli/command.h"
#include "runtime/serve.h"
#include "show/stdout.h"

#define VLAN_MAX      4094
#define SILENT_NS     UINT64_C(300000000000)
#define SILENT_MIN_NS UINT64_C(1000000000)

static struct {
	const char *listen, *save, *keep_epochs, *user, *group, *web;
	uint64_t save_every_ns, epoch_ns;
	uint64_t cm_port, peers, peers_each, workers, duration_ns, sync_ns, silent_ns;
	struct pl_opt_list allow, allow_read, proxy;
	const char *controller, *peer_switch;
	uint64_t min_ttl, max_jump, vlan;
	bool any_mac, check_mac, read, on_immediate, stats, switch_v2;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Peers", NULL, NULL, NULL, NULL },
		{ PL_OPT_STRING, 0, "listen", &args.listen, "ADDRESS",
			"TCP address and port where peers request queue pairs (default :7471); none: no TCP",
			NULL },
		{ PL_OPT_U64, 0, "cm-port", &args.cm_port, "PORT",
			"RDMA-CM port where peers request queue pairs (default 7471); 0: no RDMA-CM",
			NULL },
		{ PL_OPT_LIST, 0, "allow", &args.allow, "PREFIX",
			"addresses of the peers that may connect and write; may be repeated. Required, except on the loopback",
			NULL },
		{ PL_OPT_LIST, 0, "allow-read", &args.allow_read, "PREFIX",
			"addresses of the peers that may connect and read, and never write unless --allow has them too; may be repeated",
			NULL },
		{ PL_OPT_LIST, 0, "proxy", &args.proxy, "PREFIX",
			"hosts that may request queue pairs over TCP for other addresses, such as the controller of a switch; such queue pairs never read. All other peers must connect from the address that writes",
			NULL },
		{ PL_OPT_U64, 0, "peers", &args.peers, "COUNT",
			"most queue pairs at a time (default 64)", NULL },
		{ PL_OPT_U64, 0, "peers-each", &args.peers_each, "COUNT",
			"most queue pairs of one address (default three quarters of --peers)",
			NULL },
		{ PL_OPT_DURATION, 0, "silent", &args.silent_ns, "TIME",
			"release the queue pair of an RDMA-CM peer that sends nothing for this long and does not answer when asked (default 5m); 0: never",
			NULL },
		{ PL_OPT_FLAG, 0, "read", &args.read, NULL,
			"let all peers of --allow read regions too", NULL },
		{ PL_OPT_STRING, 0, "controller", &args.controller, "ADDRESS:PORT",
			"announce the first region to the controller of a switch, as the P4-to-RDMA collector does (its port is 19876)",
			NULL },
		{ PL_OPT_STRING, 0, "switch", &args.peer_switch, "GID,QUEUE-PAIR[,NUMBER]",
			"GID, queue pair and first packet number with which the switch writes, by RoCEv1 (default 10.1.1.1,0x263,0)",
			NULL },
		{ PL_OPT_FLAG, 0, "switch-v2", &args.switch_v2, NULL, "the switch writes by RoCEv2",
			NULL },
		{ PL_OPT_HEADING, 0, "Rules for requests", NULL, NULL, NULL, NULL },
		{ PL_OPT_FLAG, 0, "check-mac", &args.check_mac, NULL,
			"accept the requests of a queue pair from one MAC address only, that of the first request",
			NULL },
		{ PL_OPT_U64, 0, "min-ttl", &args.min_ttl, "HOPS",
			"accept requests with at least this TTL or hop limit; 255: no router on the way",
			NULL },
		{ PL_OPT_U64, 0, "vlan", &args.vlan, "ID",
			"accept requests with this 802.1Q tag only (0: untagged only), and answer with it",
			NULL },
		{ PL_OPT_U64, 0, "max-jump", &args.max_jump, "NUMBERS",
			"accept unreliable requests whose packet number is at most this far from the expected one (default any)",
			NULL },
		{ PL_OPT_FLAG, 0, "any-mac", &args.any_mac, NULL,
			"accept frames to other MAC addresses than the interface's too, as from a mirrored port",
			NULL },
		{ PL_OPT_HEADING, 0, "Signals", NULL, NULL, NULL, NULL },
		{ PL_OPT_FLAG, 0, "on-immediate", &args.on_immediate, NULL,
			"print the entries and values that writes with immediate announce, one JSON object per line",
			NULL },
		{ PL_OPT_U64, 0, "workers", &args.workers, "COUNT",
			"threads that handle writes with immediate (default 1)", NULL },
		{ PL_OPT_HEADING, 0, "Running", NULL, NULL, NULL, NULL },
		{ PL_OPT_DURATION, 0, "sync", &args.sync_ns, "TIME",
			"write regions to disk this often (default: when the kernel decides, and at the end)",
			NULL },
		{ PL_OPT_STRING, 0, "save", &args.save, "FOLDER",
			"folder to which regions are copied, for regions in memory only", NULL },
		{ PL_OPT_DURATION, 0, "save-every", &args.save_every_ns, "TIME",
			"interval of these copies; the last one is made at the end (default 1m)",
			NULL },
		PL_ARGS_EPOCHS(args.epoch_ns, args.keep_epochs, "when they are complete"),
		PL_ARGS_WEB(args.web),
		PL_ARGS_CONFINE(args.user, args.group),
		PL_ARGS_SERVING(args.duration_ns, args.stats),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

struct collect {
	struct pl_memory_server_options options;
	struct pl_collector_switch peer_switch;
	struct pl_collector_store stores[PL_COLLECTOR_STORES_MAX];
	char names[PL_COLLECTOR_STORES_MAX][PL_EXCHANGE_NAME_MAX + 1];
	struct pl_prefix allow[PL_COLLECTOR_ALLOW_MAX], readers[PL_COLLECTOR_ALLOW_MAX],
		proxies[PL_COLLECTOR_ALLOW_MAX];
	struct pl_memory_server server;
};

/* "NAME=FILE", or a file whose name without its last ending is the store's. */
static int name_store(struct collect *x, uint32_t i, const char *operand)
{
	const char *equals = strchr(operand, '='), *slash, *dot;
	size_t n;

	if (equals != NULL) {
		x->stores[i].path = equals + 1;
		n = (size_t)(equals - operand);
		slash = operand;
	} else {
		x->stores[i].path = operand;
		slash = strrchr(operand, '/');
		slash = slash != NULL ? slash + 1 : operand;
		dot = strrchr(slash, '.');
		n = dot != NULL && dot > slash ? (size_t)(dot - slash) : strlen(slash);
	}
	if (n == 0 || n > PL_EXCHANGE_NAME_MAX) {
		pl_complain("%s: a store's name has 1 to %d bytes; NAME=FILE gives it another",
			operand, PL_EXCHANGE_NAME_MAX);
		return PL_EXIT_USAGE;
	}
	memcpy(x->names[i], slash, n);
	x->stores[i].name = x->names[i];
	return 0;
}

/* "GID,QUEUE-PAIR[,NUMBER]" */
static int read_switch(struct pl_collector_switch *ret, const char *text)
{
	char copy[128], *qpn, *psn;
	uint64_t v = 0, first = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	qpn = strchr(copy, ',');
	if (qpn == NULL)
		return -EINVAL;
	*qpn++ = '\0';
	psn = strchr(qpn, ',');
	if (psn != NULL)
		*psn++ = '\0';
	if (pl_parse_addr(copy, &ret->gid) < 0 || pl_parse_u64(qpn, &v) < 0 ||
		(psn != NULL && pl_parse_u64(psn, &first) < 0) || v > PL_ROCE_PSN_MASK ||
		first > PL_ROCE_PSN_MASK)
		return -EINVAL;
	ret->qpn = (uint32_t)v;
	ret->psn = (uint32_t)first;
	return 0;
}

static bool is_card(const char *uri)
{
	return strncmp(uri, PL_COLLECTOR_VERBS, strlen(PL_COLLECTOR_VERBS)) == 0;
}

/* 0, or an exit code; complains. */
static int read_args(struct collect *x, const struct pl_opt_list *operands)
{
	int code;

	if (operands->n < 2 || operands->n - 1 > PL_COLLECTOR_STORES_MAX) {
		pl_complain("collect: missing INTERFACE or REGION (1 to %d region files)",
			PL_COLLECTOR_STORES_MAX);
		return PL_EXIT_USAGE;
	}
	if (args.cm_port > UINT16_MAX || args.peers > 4096 || args.peers == 0 ||
		args.peers_each > args.peers || args.workers == 0 ||
		args.workers > PL_SIGNAL_WORKERS_MAX) {
		pl_complain(
			"collect: out of range: --cm-port up to 65535, --peers 1 to 4096, --peers-each at most --peers, --workers 1 to %d",
			PL_SIGNAL_WORKERS_MAX);
		return PL_EXIT_USAGE;
	}
	/* Not with a NIC: what was wished for would not be done. */
	if ((args.silent_ns > 0 && args.silent_ns < SILENT_MIN_NS) ||
		(args.silent_ns > 0 && args.silent_ns != UINT64_MAX &&
			is_card(operands->items[0]))) {
		pl_complain("--silent: at least 1s, or 0; not with an RDMA NIC (verbs:)");
		return PL_EXIT_USAGE;
	}
	if (is_card(operands->items[0]) && (args.any_mac || args.check_mac || args.min_ttl != 0 ||
						   args.vlan != UINT64_MAX || args.max_jump != 0)) {
		pl_complain(
			"rules for requests need the software NIC (packet:, afxdp: or udp:), not an RDMA NIC (verbs:)");
		return PL_EXIT_USAGE;
	}
	if (args.min_ttl > UINT8_MAX || (args.vlan > VLAN_MAX && args.vlan != UINT64_MAX) ||
		args.max_jump > PL_ROCE_PSN_MASK / 2) {
		pl_complain(
			"collect: out of range: --min-ttl up to 255, --vlan up to %d, --max-jump up to %d",
			VLAN_MAX, PL_ROCE_PSN_MASK / 2);
		return PL_EXIT_USAGE;
	}
	if (read_switch(&x->peer_switch, args.peer_switch) < 0 ||
		(args.controller == NULL && args.switch_v2)) {
		pl_complain(
			"--switch %s: write GID,QUEUE-PAIR,NUMBER, such as 10.1.1.1,0x263,0; it needs --controller",
			args.peer_switch);
		return PL_EXIT_USAGE;
	}
	x->peer_switch.controller = args.controller;
	x->peer_switch.v1 = !args.switch_v2;
	code = pl_arg_prefixes("allow", &args.allow, x->allow, PL_COLLECTOR_ALLOW_MAX);
	if (code == 0)
		code = pl_arg_prefixes(
			"allow-read", &args.allow_read, x->readers, PL_COLLECTOR_ALLOW_MAX);
	if (code == 0)
		code = pl_arg_prefixes("proxy", &args.proxy, x->proxies, PL_COLLECTOR_ALLOW_MAX);
	for (uint32_t i = 0; code == 0 && i + 1 < operands->n; i++)
		code = name_store(x, i, operands->items[i + 1]);
	if (code != 0)
		return code;
	x->options.collector = (struct pl_collector_options){ .uri = operands->items[0],
		.listen = strcmp(args.listen, "none") == 0 ? NULL : args.listen,
		.cm_port = (uint16_t)args.cm_port,
		.stores = x->stores,
		.n_stores = (uint32_t)operands->n - 1,
		.allow = x->allow,
		.n_allow = (uint32_t)args.allow.n,
		.readers = x->readers,
		.n_readers = (uint32_t)args.allow_read.n,
		.proxies = x->proxies,
		.n_proxies = (uint32_t)args.proxy.n,
		.max_peers = (uint32_t)args.peers,
		.max_each = (uint32_t)args.peers_each,
		.peer_switch = args.controller != NULL ? &x->peer_switch : NULL,
		.rules = { .check_mac = args.check_mac,
			.check_vlan = args.vlan != UINT64_MAX,
			.vlan = args.vlan != UINT64_MAX ? (uint16_t)args.vlan : 0,
			.min_ttl = (uint8_t)args.min_ttl,
			.max_jump = (uint32_t)args.max_jump },
		.any_mac = args.any_mac,
		.may_read = args.read,
		.silent_ns = args.silent_ns == UINT64_MAX ? SILENT_NS : args.silent_ns,
		.sync_ns = args.sync_ns };
	x->options.epoch_ns = args.epoch_ns;
	x->options.keep_epochs = args.keep_epochs;
	x->options.save = args.save;
	x->options.save_every_ns = args.save_every_ns;
	x->options.on_immediate = args.on_immediate;
	x->options.workers = (unsigned int)args.workers;
	x->options.print = pl_stdout_print;
	if (x->options.collector.listen != NULL || x->options.collector.cm_port != 0 ||
		args.controller != NULL)
		return 0;
	pl_complain("collect: no peer could connect; give --listen, --cm-port or both");
	return PL_EXIT_USAGE;
}

static void tell_begin(void *arg)
{
	const struct collect *x = arg;
	const struct pl_collector *collector = x->server.collector;
	const char *tcp = pl_collector_address(collector), *note = pl_collector_note(collector);
	const struct pl_addr *addrs;
	const uint32_t n = pl_collector_cm_addresses(collector, &addrs);
	char text[PL_ADDR_TEXT_MAX];

	if (note != NULL)
		pl_complain("%s: answers are sent through a packet socket: %s",
			pl_collector_name(collector), note);
	fprintf(stderr, "pathline: collecting on %s into %u regions", pl_collector_name(collector),
		x->options.collector.n_stores);
	if (tcp != NULL)
		fprintf(stderr, "; control on %s", tcp);
	for (uint32_t i = 0; i < n; i++) {
		pl_format_addr(text, &addrs[i]);
		fprintf(stderr, "%s%s", i == 0 ? "; RDMA-CM on " : ", ", text);
	}
	if (n > 0)
		fprintf(stderr, " port %u", x->options.collector.cm_port);
	fputc('\n', stderr);
}

static int collect(struct collect *x, const struct pl_opt_list *operands)
{
	const struct pl_service service = { &pl_memory_service, &x->server };
	const struct pl_runtime_options run = { .services = &service,
		.n = 1,
		.rights = { .user = args.user, .group = args.group },
		.duration_ns = args.duration_ns,
		.web = args.web,
		.stats = args.stats,
		.tell = pl_stderr_print,
		.print = pl_stdout_print,
		.begun = tell_begin,
		.arg = x };
	int code = read_args(x, operands), r;

	if (code != 0)
		return code;
	x->server.o = &x->options;
	code = pl_serve(&run);
	if (code == 0 && pl_region_watch_lost(&x->server.watch))
		code = PL_EXIT_FAILED;
	r = pl_memory_server_close(&x->server);
	if (r < 0) {
		pl_complain("regions: %s", strerror(-r));
		code = PL_EXIT_FAILED;
	}
	return code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands = { 0 };
	struct collect *x;
	int code;

	memset(&args, 0, sizeof(args));
	args.listen = ":7471";
	args.peer_switch = "10.1.1.1,0x263,0";
	args.cm_port = PL_COLLECTOR_CM_PORT;
	args.peers = 64;
	args.silent_ns = args.vlan = UINT64_MAX; /* not given */
	args.workers = 1;
	args.save_every_ns = UINT64_C(60000000000);
	if (pl_command_parse(&pl_command_collect, argc, argv, &operands, &code) != 0)
		return code;
	x = calloc(1, sizeof(*x));
	if (x == NULL) {
		pl_complain("out of memory");
		code = PL_EXIT_FAILED;
	} else {
		code = collect(x, &operands);
	}
	free(x);
	pl_opt_list_done(&args.allow);
	pl_opt_list_done(&args.allow_read);
	pl_opt_list_done(&args.proxy);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_collect = {
	.name = "collect",
	.summary = "serve telemetry memory to RoCE peers, as an RDMA NIC does",
	.usage = "[OPTION]… INTERFACE [NAME=]REGION…",
	.description =
		"Serves region files (pathline region create makes them) over RoCEv2, so that translators,\n"
		"switches and NICs write into them: the job of an RDMA NIC, done in software. Other\n"
		"processes read the regions meanwhile (pathline region). With --epoch, or at SIGUSR2,\n"
		"regions with two halves switch to their other half; the previous epoch stays readable\n"
		"(region lookup --epoch) and, with --keep-epochs, is kept in a file.\n"
		"\n"
		"A peer connects over TCP, or by RDMA-CM on queue pair 1, asks for a region by name (the\n"
		"name of the file without its ending), and gets a queue pair for this region only:\n"
		"reliable or unreliable writes, atomics on reliable ones. The collector checks every\n"
		"packet, including its ICRC, before it writes a byte. A queue pair ends with the\n"
		"connection that requested it; one requested by RDMA-CM also ends when its peer is silent\n"
		"(--silent). SIGUSR1 prints the counters of --stats as one line of JSON. The command ends\n"
		"after --duration, SIGINT or SIGTERM and marks the regions clean. RoCE has no\n"
		"authentication: --allow names the addresses that may write, --allow-read those that may\n"
		"read (pathline region lookup roce://...) and never write; each peer proves that it\n"
		"owns its address, and keys and queue pairs are random numbers that only the peer gets.\n"
		"An attacker who can read or forge traffic on the network can still write.\n"
		"\n"
		"INTERFACE is packet:IFACE or afxdp:IFACE; udp://ADDRESS, an address of this host, needs\n"
		"no privileges. With verbs:DEVICE an RDMA NIC, or Linux soft-RoCE, executes the requests;\n"
		"regions must then be on tmpfs or hugetlbfs. verbs:mlx5_0?port=2&gid=3 chooses port and\n"
		"address.",
	.examples =
		"  pathline region create --primitive key-write --slots 1000000 --value-bytes 4 last.plr\n"
		"  pathline collect --allow 10.0.0.5/32 afxdp:eth0 last.plr\n"
		"  pathline collect --allow 10.0.0.0/24 verbs:mlx5_0 /dev/shm/last.plr\n"
		"  pathline collect --allow 10.0.0.0/24 --stats packet:eth0 last.plr lists=/data/a.plr\n",
	.options = options,
	.run = run,
};
