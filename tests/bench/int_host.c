/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts as INT nodes: a TCP stream over the wire of benchmarks, its offloads on, with a source at the
 * sender that chooses all of it and a sink at the receiver, against the stream with an XDP program
 * at the receiver that only lets packets pass. What is left to the NIC to be taken apart goes on as
 * it was; the figure is what looking at it, and INT in the other packets, costs the stream. One
 * report for a thousand packets of the flow.
 *
 * And the programs alone, by the kernel's own account of their time, over datagrams of 100 bytes that
 * all get INT and all lose it: what source and sink take for a packet.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "hostint/hostint.h"
#include "tests/bench/bench.h"
#include "tests/bench/tap_stream.h"
#include "tests/bench/wire.h"

#include "bpf/bench.skel.h" /* knows the types above only by name */

#define NAME     "int-host/stream"
#define DATAGRAM 100
#define PORT     9000

struct host_bench {
	struct pl_wire wire;
	struct pl_bpf_bench *bare;
	struct pl_tap_rules rules;
	struct pl_hostint *source, *sink;
};

static int open_hosts(struct host_bench *b, struct pl_diag *diag)
{
	const struct pl_hostint_options sink = { .dev = PL_WIRE_RECEIVER_NAME,
		.sink = true,
		.rules = &b->rules,
		.dscp = PL_HOSTINT_DSCP,
		.mode = PL_XDP_NATIVE,
		.every = 1000 };
	const struct pl_hostint_options source = { .dev = PL_WIRE_SENDER_NAME,
		.rules = &b->rules,
		.dscp = PL_HOSTINT_DSCP,
		.node = 1,
		.bitmap = PL_HOSTINT_BITMAP,
		.hops = 8 };
	int r = pl_hostint_open(&b->sink, &sink, diag);

	if (r == 0)
		r = pl_wire_enter(&b->wire, PL_WIRE_SENDER);
	if (r == 0)
		r = pl_hostint_open(&b->source, &source, diag);
	(void)pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	return r;
}

static int check_hosts(const struct host_bench *b)
{
	struct pl_host_source_counts source;
	struct pl_host_sink_counts sink;

	pl_hostint_source_counts(b->source, &source);
	pl_hostint_sink_counts(b->sink, &sink);
	if (source.instrumented > 0 && sink.stripped > 0 && sink.malformed == 0)
		return 0;
	pl_complain("benchmark " NAME ": no packet had INT");
	return -ENODATA;
}

static int with_int(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct host_bench *b = arg;
	struct pl_diag diag = { .text = "" };
	int r = open_hosts(b, &diag);

	if (r < 0)
		pl_complain("benchmark " NAME ": %s", diag.text);
	else
		r = pl_tap_stream_bytes(&b->wire, budget_ns, ret);
	if (r == 0)
		r = check_hosts(b);
	pl_hostint_close(b->source);
	pl_hostint_close(b->sink);
	b->source = b->sink = NULL;
	return r;
}

static int without(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct host_bench *b = arg;
	struct pl_diag diag = { .text = "" };
	struct pl_xdp *xdp = NULL;
	int r = pl_xdp_attach(&xdp, PL_WIRE_RECEIVER_NAME,
		bpf_program__fd(b->bare->progs.pl_bench_pass_only), PL_XDP_NATIVE, NULL, &diag);

	if (r < 0)
		pl_complain("benchmark " NAME ": %s", diag.text);
	else
		r = pl_tap_stream_bytes(&b->wire, budget_ns, ret);
	pl_xdp_detach(xdp);
	return r;
}

/* ---- the programs alone ---- */

/* A socket of the receiver takes what comes, and nobody reads it: no ICMP errors. */
static int open_datagrams(struct host_bench *b, int ret[2])
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int r;

	to.sin_addr.s_addr = inet_addr(PL_WIRE_RECEIVER_ADDRESS);
	ret[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	r = ret[0] < 0 || bind(ret[0], (const struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
	if (r == 0)
		r = pl_wire_enter(&b->wire, PL_WIRE_SENDER);
	if (r == 0) {
		ret[1] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (ret[1] < 0 || connect(ret[1], (const struct sockaddr *)&to, sizeof(to)) < 0)
			r = -errno;
	}
	(void)pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	return r;
}

static int send_datagrams(struct host_bench *b, uint64_t budget_ns)
{
	static const uint8_t payload[DATAGRAM];
	const uint64_t start = pl_clock_mono_ns();
	int fds[2] = { -1, -1 }, r = open_datagrams(b, fds);

	while (r == 0 && pl_clock_mono_ns() - start < budget_ns) {
		for (unsigned int i = 0; i < 64; i++)
			(void)send(fds[1], payload, sizeof(payload), 0);
	}
	for (unsigned int i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	return r;
}

/* What the kernel says of a program: how often it ran, and for how long. */
static int read_times(const struct pl_hostint *h, struct pl_bench_sample *ret)
{
	struct bpf_prog_info info = { .type = 0 };
	uint32_t bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(pl_hostint_program(h), &info, &bytes) < 0)
		return -errno;
	ret->items = info.run_cnt;
	ret->ns = info.run_time_ns;
	return 0;
}

static int program_alone(
	struct host_bench *b, bool sink, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct pl_diag diag = { .text = "" };
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME), r = stats < 0 ? -errno : 0;

	if (r == 0)
		r = open_hosts(b, &diag);
	if (r == 0)
		r = send_datagrams(b, budget_ns);
	if (r == 0)
		r = check_hosts(b);
	if (r == 0)
		r = read_times(sink ? b->sink : b->source, ret);
	else if (r != -ENODATA)
		pl_complain(
			"benchmark int-host: %s", diag.text[0] != '\0' ? diag.text : strerror(-r));
	pl_hostint_close(b->source);
	pl_hostint_close(b->sink);
	b->source = b->sink = NULL;
	if (stats >= 0)
		close(stats);
	return r;
}

static int source_alone(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return program_alone(arg, false, budget_ns, ret);
}

static int sink_alone(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return program_alone(arg, true, budget_ns, ret);
}

static int measure(struct pl_bench_ctx *ctx, struct host_bench *b)
{
	const struct pl_bench_case cases[] = {
		{ .name = NAME,
			.ceiling_name = "the stream with a program that lets it pass",
			.subject = with_int,
			.ceiling = without,
			.arg = b },
		{ .name = "int-host/source", .subject = source_alone, .arg = b },
		{ .name = "int-host/sink", .subject = sink_alone, .arg = b },
	};
	int r = pl_tap_stream_addresses(&b->wire);

	if (r < 0)
		return r;
	b->bare = pl_bpf_bench__open_and_load();
	if (b->bare == NULL) {
		pl_complain("benchmark " NAME ": the program to compare with does not load");
		return -EPERM;
	}
	for (size_t i = 0; r == 0 && i < sizeof(cases) / sizeof(cases[0]); i++)
		r = pl_bench_compare(ctx, &cases[i]);
	pl_bpf_bench__destroy(b->bare);
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	static struct host_bench b;
	struct pl_diag diag = { .text = "" };
	int r;

	if (!pl_bench_wanted(ctx, NAME) && !pl_bench_wanted(ctx, "int-host/source") &&
		!pl_bench_wanted(ctx, "int-host/sink"))
		return 0;
	memset(&b, 0, sizeof(b));
	r = pl_tap_rules_add(&b.rules, "take", &diag);
	if (r == 0)
		r = pl_wire_open(&b.wire, 1, &diag);
	if (r < 0) {
		pl_complain("benchmark " NAME ": %s", diag.text);
		return r;
	}
	r = measure(ctx, &b);
	(void)pl_wire_enter(&b.wire, PL_WIRE_HOME);
	pl_wire_close(&b.wire);
	return r;
}

const struct pl_bench pl_bench_int_host = {
	.name = "int-host",
	.summary = "a TCP stream between hosts that are INT source and sink (root)",
	.run = run,
};
