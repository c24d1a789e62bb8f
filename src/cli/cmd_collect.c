/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline collect: telemetry memory that others write over RoCE. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "cli/args.h"
#include "cli/collect_epochs.h"
#include "cli/collect_save.h"
#include "cli/collect_stats.h"
#include "cli/collect_workers.h"
#include "cli/command.h"
#include "cli/confine.h"
#include "cli/json_line.h"
#include "cli/notify.h"
#include "cli/region_watch.h"
#include "cli/signals.h"
#include "memory/region.h"

#define STEPS_A_LOOK  256 /* turns under load between two looks at signals and time */
#define DRAIN_MS      50  /* longer than a capture ring keeps frames to itself */
#define DRAIN_NS      UINT64_C(2000000000)
#define VLAN_MAX      4094
#define WAIT_MS       200
#define SILENT_NS     UINT64_C(300000000000)
#define SILENT_MIN_NS UINT64_C(1000000000)

static struct {
	const char *listen, *save, *keep_epochs, *user, *group;
	uint64_t save_every_ns, epoch_ns;
	uint64_t cm_port, peers, peers_each, workers, duration_ns, sync_ns, silent_ns;
	struct pl_opt_list allow, proxy;
	const char *controller, *peer_switch;
	uint64_t min_ttl, max_jump, vlan;
	bool any_mac, check_mac, read, on_immediate, stats, switch_v2;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Peers", NULL, NULL, NULL, NULL },
		{ PL_OPT_STRING, 0, "listen", &args.listen, "ADDRESS",
			"where peers ask for queue pairs over TCP (default :7471); none: nowhere",
			NULL },
		{ PL_OPT_U64, 0, "cm-port", &args.cm_port, "PORT",
			"where they ask by RDMA-CM (default 7471); 0: nowhere", NULL },
		{ PL_OPT_LIST, 0, "allow", &args.allow, "PREFIX",
			"peers with these addresses may connect and write; may be repeated. Needed but on the "
			"loopback",
			NULL },
		{ PL_OPT_LIST, 0, "proxy", &args.proxy, "PREFIX",
			"hosts that may ask over TCP for other addresses' queue pairs, as a switch's "
			"controller does; those never read. Else a peer connects from the address that "
			"writes",
			NULL },
		{ PL_OPT_U64, 0, "peers", &args.peers, "COUNT",
			"queue pairs at a time (default 64)", NULL },
		{ PL_OPT_U64, 0, "peers-each", &args.peers_each, "COUNT",
			"of them, of one address (default three quarters)", NULL },
		{ PL_OPT_DURATION, 0, "silent", &args.silent_ns, "TIME",
			"who connected by RDMA-CM, sends nothing for this long and does not answer when "
			"asked loses its queue pair (default 5m); 0: never",
			NULL },
		{ PL_OPT_FLAG, 0, "read", &args.read, NULL, "peers may read regions too", NULL },
		{ PL_OPT_STRING, 0, "controller", &args.controller, "ADDRESS:PORT",
			"tell a switch's controller of the first region, as the P4-to-RDMA collector does "
			"(its port is 19876)",
			NULL },
		{ PL_OPT_STRING, 0, "switch", &args.peer_switch, "GID,QUEUE-PAIR[,NUMBER]",
			"what this switch writes as, by RoCEv1 (default 10.1.1.1,0x263,0)", NULL },
		{ PL_OPT_FLAG, 0, "switch-v2", &args.switch_v2, NULL, "it writes by RoCEv2", NULL },
		{ PL_OPT_HEADING, 0, "Rules for requests", NULL, NULL, NULL, NULL },
		{ PL_OPT_FLAG, 0, "check-mac", &args.check_mac, NULL,
			"a queue pair's requests come from one MAC address, the first one's",
			NULL },
		{ PL_OPT_U64, 0, "min-ttl", &args.min_ttl, "HOPS",
			"they come with this TTL or hop limit at least; 255: past no router",
			NULL },
		{ PL_OPT_U64, 0, "vlan", &args.vlan, "ID",
			"they come with this 802.1Q tag (0: without any), and are answered with it",
			NULL },
		{ PL_OPT_U64, 0, "max-jump", &args.max_jump, "NUMBERS",
			"unreliable ones come with packet numbers so near to the expected one (default any)",
			NULL },
		{ PL_OPT_FLAG, 0, "any-mac", &args.any_mac, NULL,
			"they come to other MAC addresses than the interface's too, as from a mirrored port",
			NULL },
		{ PL_OPT_HEADING, 0, "Signals", NULL, NULL, NULL, NULL },
		{ PL_OPT_FLAG, 0, "on-immediate", &args.on_immediate, NULL,
			"print what writes with immediate announce: new entries of lists, values, a JSON object in a line each",
			NULL },
		{ PL_OPT_U64, 0, "workers", &args.workers, "COUNT",
			"threads that do so (default 1)", NULL },
		{ PL_OPT_HEADING, 0, "Running", NULL, NULL, NULL, NULL },
		{ PL_OPT_DURATION, 0, "sync", &args.sync_ns, "TIME",
			"regions go to disk this often (default: when the kernel sees fit, and at the end)",
			NULL },
		{ PL_OPT_STRING, 0, "save", &args.save, "FOLDER",
			"copy regions to files of their names there, for those that are not on disk",
			NULL },
		{ PL_OPT_DURATION, 0, "save-every", &args.save_every_ns, "TIME",
			"this often, and at the end (default 1m)", NULL },
		PL_ARGS_EPOCHS(args.epoch_ns, args.keep_epochs, "when they are whole"),
		PL_ARGS_CONFINE(args.user, args.group),
		PL_ARGS_SERVING(args.duration_ns, args.stats),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

struct collect {
	struct pl_confine confine;
	struct pl_collector_options options;
	struct pl_collector_switch peer_switch;
	struct pl_collector_store stores[PL_COLLECTOR_STORES_MAX];
	char names[PL_COLLECTOR_STORES_MAX][PL_EXCHANGE_NAME_MAX + 1];
	struct pl_prefix allow[PL_COLLECTOR_ALLOW_MAX], proxies[PL_COLLECTOR_ALLOW_MAX];
	struct pl_collector *collector;
	struct pl_workers *workers;   /* NULL: none */
	struct pl_collect_save *save; /* NULL: none */
	struct pl_collect_epochs_arg epochs_arg;
	struct pl_epochs *epochs; /* NULL: none */
	struct pl_region_watch watch;
	bool cut[PL_COLLECTOR_STORES_MAX];
	int signal_fd;
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

/* The interface is open: from here on peers are answered by a process that can do little else. */
static int drop_rights(void *arg, struct pl_diag *diag)
{
	struct collect *x = arg;
	int r = pl_confine_path(&x->confine, args.save, true);

	if (r == 0)
		r = pl_confine_path(&x->confine, args.keep_epochs, true);
	for (uint32_t i = 0; r == 0 && i < x->options.n_stores; i++)
		r = pl_confine_path(&x->confine, x->stores[i].path, true);
	return r < 0 ? r : pl_confine(&x->confine, PL_CONFINE_WRITER, diag);
}

static void on_signal(void *arg, const struct pl_collector_signal *signal)
{
	const struct collect *x = arg;

	if (signal->have_imm && x->workers != NULL)
		pl_workers_signal(x->workers, signal->store, signal->imm, signal->ns);
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
		pl_complain(
			"collect: an interface, and 1 to %d region files", PL_COLLECTOR_STORES_MAX);
		return PL_EXIT_USAGE;
	}
	if (args.cm_port > UINT16_MAX || args.peers > 4096 || args.peers == 0 ||
		args.peers_each > args.peers || args.workers == 0 ||
		args.workers > PL_WORKERS_MAX) {
		pl_complain(
			"collect: ports to 65535, 1 to 4096 peers, not more each, 1 to %d workers",
			PL_WORKERS_MAX);
		return PL_EXIT_USAGE;
	}
	/* Not with a card: what was wished for would not be done. */
	if ((args.silent_ns > 0 && args.silent_ns < SILENT_MIN_NS) ||
		(args.silent_ns > 0 && args.silent_ns != UINT64_MAX &&
			is_card(operands->items[0]))) {
		pl_complain("--silent: a second or more, or 0; not with an RDMA card");
		return PL_EXIT_USAGE;
	}
	if (is_card(operands->items[0]) && (args.any_mac || args.check_mac || args.min_ttl != 0 ||
						   args.vlan != UINT64_MAX || args.max_jump != 0)) {
		pl_complain("rules for requests: not with an RDMA card");
		return PL_EXIT_USAGE;
	}
	if (args.min_ttl > UINT8_MAX || (args.vlan > VLAN_MAX && args.vlan != UINT64_MAX) ||
		args.max_jump > PL_ROCE_PSN_MASK / 2) {
		pl_complain("collect: --min-ttl to 255, --vlan to %d, --max-jump to %d", VLAN_MAX,
			PL_ROCE_PSN_MASK / 2);
		return PL_EXIT_USAGE;
	}
	if (read_switch(&x->peer_switch, args.peer_switch) < 0 ||
		(args.controller == NULL && args.switch_v2)) {
		pl_complain(
			"--switch %s: as 10.1.1.1,0x263,0, with --controller", args.peer_switch);
		return PL_EXIT_USAGE;
	}
	x->peer_switch.controller = args.controller;
	x->peer_switch.v1 = !args.switch_v2;
	code = pl_arg_prefixes("allow", &args.allow, x->allow, PL_COLLECTOR_ALLOW_MAX);
	if (code == 0)
		code = pl_arg_prefixes("proxy", &args.proxy, x->proxies, PL_COLLECTOR_ALLOW_MAX);
	for (uint32_t i = 0; code == 0 && i + 1 < operands->n; i++)
		code = name_store(x, i, operands->items[i + 1]);
	if (code != 0)
		return code;
	x->options = (struct pl_collector_options){ .uri = operands->items[0],
		.listen = strcmp(args.listen, "none") == 0 ? NULL : args.listen,
		.cm_port = (uint16_t)args.cm_port,
		.stores = x->stores,
		.n_stores = (uint32_t)operands->n - 1,
		.allow = x->allow,
		.n_allow = (uint32_t)args.allow.n,
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
		.sync_ns = args.sync_ns,
		.opened = drop_rights,
		.signal = on_signal,
		.arg = x };
	if (x->options.listen != NULL || x->options.cm_port != 0 || args.controller != NULL)
		return 0;
	pl_complain("collect: nobody could connect: --listen or --cm-port");
	return PL_EXIT_USAGE;
}

static void tell_begin(const struct collect *x)
{
	const char *tcp = pl_collector_address(x->collector);
	const struct pl_addr *addrs;
	const uint32_t n = pl_collector_cm_addresses(x->collector, &addrs);
	char text[PL_ADDR_TEXT_MAX];

	fprintf(stderr, "pathline: collecting on %s into %u regions",
		pl_collector_name(x->collector), x->options.n_stores);
	if (tcp != NULL)
		fprintf(stderr, "; control on %s", tcp);
	for (uint32_t i = 0; i < n; i++) {
		pl_format_addr(text, &addrs[i]);
		fprintf(stderr, "%s%s", i == 0 ? "; RDMA-CM on " : ", ", text);
	}
	if (n > 0)
		fprintf(stderr, " port %u", x->options.cm_port);
	fputc('\n', stderr);
}

static void tell_mended(const struct collect *x)
{
	for (uint32_t i = 0; i < x->options.n_stores; i++) {
		struct pl_diag diag = { .text = "" };

		if (pl_region_mended(pl_collector_region(x->collector, i), &diag) > 0)
			pl_complain("%s: %s", x->stores[i].path, diag.text);
	}
}

/* What peers sent before this was told to end is still taken: until nothing comes for a moment, within reason. 0. */
static int drain(struct collect *x, struct pollfd *fd)
{
	const uint64_t until = pl_clock_mono_ns() + DRAIN_NS;

	while (pl_clock_mono_ns() < until) {
		if (pl_collector_step(x->collector, NULL) <= 0 && poll(fd, 1, DRAIN_MS) <= 0)
			break;
	}
	return 0;
}

/* All counters as a JSON object in a line; in the end also those of threads, which have ended by then. */
static void print_stats(const struct collect *x, const struct pl_workers_stats *workers,
	const struct pl_collect_save_stats *saved)
{
	struct pl_json_line line;
	struct pl_json *json = pl_json_line_begin(&line, NULL);

	pl_collect_stats(json, x->collector, &x->options);
	pl_region_watch_stats(json, &x->watch);
	if (x->epochs != NULL)
		pl_epochs_stats(json, x->epochs);
	if (workers != NULL)
		pl_collect_workers_stats(json, workers);
	if (saved != NULL)
		pl_collect_save_stats(json, saved);
	pl_json_line_end(&line);
}

static const struct pl_region *watched(void *arg, unsigned int i, const char **ret_path)
{
	const struct collect *x = arg;

	*ret_path = x->stores[i].path;
	return pl_collector_region(x->collector, i);
}

static void look(struct collect *x, uint64_t now_ns)
{
	pl_region_watch_look(&x->watch, now_ns, watched, x, x->cut, x->options.n_stores);
}

/* Whether to end. SIGUSR1 is answered, SIGUSR2 passed on. */
static bool take_signals(const struct collect *x)
{
	bool ends = false;
	int signo;

	while (pl_signals_read(x->signal_fd, &signo)) {
		if (signo == SIGUSR1)
			print_stats(x, NULL, NULL);
		else if (signo == SIGUSR2 && x->epochs != NULL)
			pl_epochs_ask(x->epochs);
		else if (signo == SIGUSR2)
			pl_complain("no store has epochs");
		else
			ends = true;
	}
	return ends;
}

/* 0, or an exit code; complains. */
static int loop(struct collect *x)
{
	const uint64_t until =
		args.duration_ns == 0 ? UINT64_MAX : pl_clock_mono_ns() + args.duration_ns;
	struct pollfd fds[3] = { { .fd = x->signal_fd, .events = POLLIN },
		{ .fd = pl_collector_fd(x->collector), .events = POLLIN },
		{ .fd = x->epochs != NULL ? pl_epochs_fd(x->epochs) : -1, .events = POLLIN } };
	uint32_t steps = 0;
	uint64_t now_ns;

	for (;;) {
		struct pl_diag diag = { .text = "" };
		int n = pl_collector_step(x->collector, &diag);

		if (n == -ENETDOWN || n == -EAGAIN) {
			pl_complain_diag(&diag);
		} else if (n < 0) {
			pl_complain_diag(&diag);
			return PL_EXIT_FAILED;
		}
		if (x->epochs != NULL)
			pl_epochs_step(x->epochs);
		if (n > 0 && ++steps % STEPS_A_LOOK != 0)
			continue;
		now_ns = pl_clock_mono_ns();
		if (now_ns >= until)
			return 0;
		look(x, now_ns);
		(void)poll(fds, 3, n > 0 ? 0 : pl_collector_wait_ms(x->collector, WAIT_MS));
		if ((fds[0].revents & POLLIN) != 0 && take_signals(x))
			return drain(x, &fds[1]);
		if ((fds[2].revents & POLLIN) != 0)
			pl_epochs_turn(x->epochs);
	}
}

static void end_threads(struct collect *x, struct pl_workers_stats *ret_workers,
	struct pl_collect_save_stats *ret_saved)
{
	pl_workers_close(x->workers, ret_workers);
	pl_collect_save_close(x->save, ret_saved);
	pl_epochs_stop(x->epochs);
}

/* What is signalled is printed to its end, then the accounts. */
static void end(struct collect *x)
{
	struct pl_workers_stats workers;
	struct pl_collect_save_stats saved;

	end_threads(x, &workers, &saved);
	look(x, UINT64_MAX);
	pl_collect_tell(x->collector);
	if (x->watch.cut > 0)
		fprintf(stderr, "%u regions were cut, %" PRIu64 " pages lost\n", x->watch.cut,
			x->watch.lost_pages);
	if (args.stats)
		print_stats(
			x, args.on_immediate ? &workers : NULL, args.save != NULL ? &saved : NULL);
}

static int open_epochs(struct collect *x, struct pl_diag *diag)
{
	const bool wanted = args.epoch_ns != 0 || args.keep_epochs != NULL;

	x->epochs_arg = (struct pl_collect_epochs_arg){ x->collector, &x->options };
	if (!wanted && !pl_collect_epochs_any(&x->epochs_arg))
		return 0;
	return pl_collect_epochs_open(
		&x->epochs, &x->epochs_arg, args.epoch_ns, args.keep_epochs, diag);
}

static int begin_confine(struct collect *x, struct pl_diag *diag)
{
	const struct pl_privilege_options options = { .user = args.user, .group = args.group };

	pl_confine_init(&x->confine, &options);
	pl_confine_uri(&x->confine, x->options.uri, true);
	return pl_confine_begin(&x->confine, diag);
}

static int collect(struct collect *x, const struct pl_opt_list *operands)
{
	struct pl_diag diag = { .text = "" };
	int code = read_args(x, operands), r;

	if (code != 0)
		return code;
	x->signal_fd = pl_signals_fd((const int[]){ SIGUSR1, SIGUSR2, 0 }, SFD_NONBLOCK);
	(void)pl_region_guard();
	r = begin_confine(x, &diag);
	x->options.rights = pl_confine_rights(&x->confine);
	if (r == 0)
		r = pl_collector_open(&x->collector, &x->options, &diag);
	if (r < 0) {
		pl_complain_diag(&diag);
		return r == -EINVAL                                    ? PL_EXIT_USAGE
		       : r == -EACCES || r == -EPERM                   ? PL_EXIT_PRIVILEGE
		       : r == -EBADMSG || r == -ENOENT || r == -ERANGE ? PL_EXIT_FAILED
								       : PL_EXIT_UNAVAILABLE;
	}
	if (args.on_immediate)
		r = pl_collect_workers_open(
			&x->workers, x->collector, &x->options, (unsigned int)args.workers, &diag);
	if (r == 0 && args.save != NULL)
		r = pl_collect_save_open(
			&x->save, x->collector, &x->options, args.save, args.save_every_ns, &diag);
	if (r == 0)
		r = open_epochs(x, &diag);
	if (r < 0) {
		struct pl_workers_stats workers;
		struct pl_collect_save_stats saved;

		pl_complain_diag(&diag);
		end_threads(x, &workers, &saved);
		code = r == -EINVAL ? PL_EXIT_USAGE : PL_EXIT_FAILED;
	} else {
		tell_mended(x);
		tell_begin(x);
		if (pl_confine_gap(&x->confine) != NULL)
			pl_complain("%s", pl_confine_gap(&x->confine));
		pl_notify("READY=1");
		code = loop(x);
		pl_notify("STOPPING=1");
		end(x);
		if (code == 0 && x->watch.cut > 0)
			code = PL_EXIT_FAILED;
	}
	pl_epochs_free(x->epochs);
	r = pl_collector_close(x->collector);
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
		x->signal_fd = -1;
		code = collect(x, &operands);
		pl_confine_end(&x->confine);
		if (x->signal_fd >= 0)
			close(x->signal_fd);
	}
	free(x);
	pl_opt_list_done(&args.allow);
	pl_opt_list_done(&args.proxy);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_collect = {
	.name = "collect",
	.summary = "serve telemetry memory to RoCE peers, as an RDMA NIC does",
	.usage = "[OPTION]… INTERFACE [NAME=]REGION…",
	.description =
		"Lets translators, switches and network cards write into region files (pathline\n"
		"region create makes them) over RoCEv2 on a network interface, in software: what an\n"
		"RDMA card does, without one. Others read the regions meanwhile (pathline region). With\n"
		"--epoch, or at SIGUSR2, regions in two halves go on in the other half; the epoch before\n"
		"stays readable (region lookup --epoch) and, with --keep-epochs, lives on in a file.\n\n"
		"A peer connects over TCP, or by RDMA-CM on queue pair 1, asks for a region by name\n"
		"(the file's, without its ending), and gets a queue pair that reaches this region\n"
		"only: reliable or unreliable writes, atomics on reliable ones. Everything about a\n"
		"packet is checked before a byte is written, the ICRC too. A queue pair ends with the\n"
		"connection by which it was asked for; that of RDMA-CM also when its peer falls silent\n"
		"(--silent). SIGUSR1 prints all counters as --stats does, as a JSON object in a line.\n"
		"Ends after --duration, SIGINT or SIGTERM; regions are then marked clean. RoCE\n"
		"authenticates nobody: --allow names the addresses that may write, each peer proves that\n"
		"it has its address, and keys and queue pairs are drawn at random for it alone. Whoever\n"
		"reads or forges the network's traffic can write all the same.\n\n"
		"INTERFACE is packet:IFACE, afxdp:IFACE, or udp://ADDRESS, one of this host, which takes\n"
		"no rights; or verbs:DEVICE: an RDMA card does all this, or Linux soft-RoCE, and regions\n"
		"are on tmpfs or hugetlbfs. verbs:mlx5_0?port=2&gid=3 chooses among its ports and addresses.",
	.examples =
		"  pathline region create --primitive key-write --slots 1000000 --value-bytes 4 last.plr\n"
		"  pathline collect --allow 10.0.0.5/32 afxdp:eth0 last.plr\n"
		"  pathline collect --allow 10.0.0.0/24 verbs:mlx5_0 /dev/shm/last.plr\n"
		"  pathline collect --allow 10.0.0.0/24 --stats packet:eth0 last.plr lists=/data/a.plr\n",
	.options = options,
	.run = run,
};
