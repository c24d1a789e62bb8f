/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline collect: telemetry memory that others write over RoCE. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/num.h"
#include "chain/configured.h"
#include "cli/args.h"
#include "cli/command.h"
#include "runtime/serve.h"
#include "show/stdout.h"

static struct {
	struct pl_conf_opts rdma; /* options that are rows of the configuration */
	struct pl_args_service service;
	uint64_t workers;
	bool on_immediate;
} args;

static const struct pl_opt *options(void)
{
	static const char *const operands[] = { "rdma.interface", NULL };
	static const struct pl_opt more[] = {
		{ PL_OPT_FLAG, 0, "on-immediate", &args.on_immediate, NULL,
			"print the entries and values that writes with immediate announce, one JSON object per line",
			NULL },
		{ PL_OPT_U64, 0, "workers", &args.workers, "COUNT",
			"threads that handle writes with immediate (default 1)", NULL },
		PL_ARGS_SERVICE(args.service),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return pl_conf_opts(&args.rdma, pl_config_rows, "rdma.", operands, more);
}

struct collect {
	struct pl_config config;
	struct pl_memory_configured memory;
	struct pl_memory_server server;
};

/* "NAME=FILE", or a file whose name without its last ending is the region's. */
static int add_region(struct pl_config *config, const char *operand)
{
	const char *equals = strchr(operand, '='), *slash, *dot;
	size_t n;

	if (equals != NULL) {
		slash = operand;
		n = (size_t)(equals - operand);
	} else {
		slash = strrchr(operand, '/');
		slash = slash != NULL ? slash + 1 : operand;
		dot = strrchr(slash, '.');
		n = dot != NULL && dot > slash ? (size_t)(dot - slash) : strlen(slash);
	}
	if (n == 0 || n > PL_EXCHANGE_NAME_MAX)
		return pl_fail(PL_EXIT_USAGE,
			"%s: a region's name has 1 to %d bytes; NAME=FILE gives it another",
			operand, PL_EXCHANGE_NAME_MAX);
	if (pl_config_add_region(
		    config, PL_WRITER_RDMA, slash, n, equals != NULL ? equals + 1 : operand) == 0)
		return 0;
	return pl_fail(PL_EXIT_FAILED, "out of memory");
}

/* Returns 0, or prints the error and returns an exit code. */
static int read_args(struct collect *x, const struct pl_opt_list *operands)
{
	struct pl_config *config = &x->config;
	const char *wrong;
	int code;

	if (operands->n < 2 || operands->n - 1 > PL_COLLECTOR_STORES_MAX)
		return pl_fail(PL_EXIT_USAGE,
			"collect: missing INTERFACE or REGION (1 to %d region files)",
			PL_COLLECTOR_STORES_MAX);
	if (args.workers == 0 || args.workers > PL_SIGNAL_WORKERS_MAX)
		return pl_fail(PL_EXIT_USAGE, "collect: --workers must be from 1 to %d",
			PL_SIGNAL_WORKERS_MAX);
	code = pl_args_configure(config, &args.rdma);
	for (size_t i = 1; code == 0 && i < operands->n; i++)
		code = add_region(config, operands->items[i]);
	if (code != 0)
		return code;
	config->rdma.interface = strdup(operands->items[0]);
	if (config->rdma.interface == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	wrong = pl_config_wrong_rdma(config);
	if (wrong != NULL)
		return pl_fail(PL_EXIT_USAGE, "collect: %s", wrong);
	pl_memory_configure(&x->memory, config);
	x->memory.options.on_immediate = args.on_immediate;
	x->memory.options.workers = (unsigned int)args.workers;
	x->memory.options.print = pl_stdout_print;
	return 0;
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
		x->memory.options.collector.n_stores);
	if (tcp != NULL)
		fprintf(stderr, "; control on %s", tcp);
	for (uint32_t i = 0; i < n; i++) {
		pl_format_addr(text, &addrs[i]);
		fprintf(stderr, "%s%s", i == 0 ? "; RDMA-CM on " : ", ", text);
	}
	if (n > 0)
		fprintf(stderr, " port %u", x->memory.options.collector.cm_port);
	fputc('\n', stderr);
}

static int collect(struct collect *x, const struct pl_opt_list *operands)
{
	const struct pl_service service = { &pl_memory_service, &x->server };
	const struct pl_runtime_options run =
		pl_args_runtime(&args.service, &service, 1, tell_begin, x);
	int code = read_args(x, operands), r;

	if (code != 0)
		return code;
	x->server.o = &x->memory.options;
	code = pl_serve(&run);
	if (code == 0 && pl_region_watch_lost(&x->server.watch))
		code = PL_EXIT_FAILED;
	r = pl_memory_server_close(&x->server);
	if (r < 0)
		code = pl_fail(PL_EXIT_FAILED, "regions: %s", strerror(-r));
	return code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands = { 0 };
	struct collect *x;
	int code;

	memset(&args, 0, sizeof(args));
	args.workers = 1;
	if (pl_command_parse(&pl_command_collect, argc, argv, &operands, &code) != 0)
		return code;
	x = calloc(1, sizeof(*x));
	if (x == NULL) {
		code = pl_fail(PL_EXIT_FAILED, "out of memory");
	} else {
		code = collect(x, &operands);
	}
	if (x != NULL)
		pl_config_done(&x->config);
	free(x);
	pl_conf_opts_done(&args.rdma);
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
