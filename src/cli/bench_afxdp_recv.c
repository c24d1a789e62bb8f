/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames out of an AF_XDP port, touched and released, against a bare loop over the rings that does the same.
 * Both have the same socket, rings, filter program and frames; live frames come over a veth pair, NAPI and the
 * receiving thread share one processor, the sender has the other. What the port adds is batches, packets with
 * their time, the loan, and looking after the interface.
 *
 * Rates are per second of processor time of the reading thread and NAPI's together: on a busy machine the two do not
 * have their processor for themselves.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "bpf/filter.h"
#include "cli/bench.h"
#include "cli/bench_wire.h"
#include "cli/command.h"
#include "netio/port.h"
#include "netio/xdp.h"
#include "netio/xsk.h"

#include "bpf/collect.skel.h" /* knows the types above only by name */

#define RING       16384
#define BARE_BATCH 2048
#define WARM_UP_NS UINT64_C(150000000)
#define URI        "afxdp:" PL_WIRE_RECEIVER_NAME "?ring=16384"

struct afxdp_bench {
	struct pl_wire wire;
	uint32_t frame_bytes;
	struct pl_batch batch;
	cpu_set_t allowed;
	uint64_t sum; /* of what was touched, so that it is */
};

static volatile uint64_t keep;

/* ---- one run: the receiver is set up, frames come, a loop takes them ---- */

/* Takes what is there, waiting for up to some milliseconds; how many. */
typedef int take_fn(struct afxdp_bench *b, void *receiver);

static int make_live(const struct afxdp_bench *b, struct pl_live **ret)
{
	uint8_t payload[PL_LIVE_FRAME_MAX] = { 0x20 }, frame[PL_LIVE_FRAME_MAX];
	static const uint8_t zero_rows[1][PL_LIVE_ROW_BYTES];
	/* The report's sequence number differs from frame to frame. */
	static const struct pl_live_field field = { .offset = 46, .len = 4, .kind = PL_LIVE_COUNT };
	struct pl_live_cfg cfg = { .ifindex = b->wire.ifindex[PL_WIRE_SENDER],
		.frame = frame,
		.frame_bytes = b->frame_bytes,
		.restore_bytes = 48,
		.fields = &field,
		.nfields = 1,
		.rows = zero_rows,
		.nrows = 1 };
	struct pl_diag diag = { .text = "" };
	int r;

	r = pl_wire_frame(frame, sizeof(frame), payload, b->frame_bytes - 42);
	if (r > 0)
		r = pl_wire_enter(&b->wire, PL_WIRE_SENDER);
	if (r == 0)
		r = pl_live_new(ret, &cfg, &diag);
	if (r < 0)
		pl_complain("%s", diag.text);
	(void)pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	return r;
}

static int measure(struct afxdp_bench *b, take_fn *take, void *receiver, uint64_t budget_ns,
	struct pl_bench_sample *ret)
{
	uint64_t start, now, cpu = 0;
	struct pl_live *live = NULL;
	int n = make_live(b, &live), r = 0;

	if (n < 0)
		return n;
	n = pl_wire_threaded_napi(&b->wire, true, 0);
	if (n == 0)
		n = pl_live_start(live, 1, 0);
	(void)pl_cpu_pin(0);
	start = pl_clock_mono_ns();
	do {
		if (n >= 0)
			n = take(b, receiver);
	} while (n >= 0 && pl_clock_mono_ns() - start < WARM_UP_NS);
	start = now = pl_clock_mono_ns();
	cpu = pl_clock_cpu_ns() + pl_wire_napi_cpu_ns();
	while (n >= 0 && now - start < budget_ns) {
		for (int i = 0; i < 16 && n >= 0; i++) {
			n = take(b, receiver);
			ret->items += n > 0 ? (uint64_t)n : 0;
		}
		now = pl_clock_mono_ns();
	}
	ret->ns = pl_clock_cpu_ns() + pl_wire_napi_cpu_ns() - cpu;
	r = pl_live_stop(live);
	pl_live_free(live);
	(void)sched_setaffinity(0, sizeof(b->allowed), &b->allowed);
	(void)pl_wire_threaded_napi(&b->wire, false, 0);
	return n < 0 ? n : r;
}

/* ---- ours ---- */

static int take_port(struct afxdp_bench *b, void *receiver)
{
	struct pl_port *port = receiver;
	uint64_t sum = 0;
	int n = pl_port_recv(port, &b->batch, 10, NULL);

	/* The carrier came: news for a daemon. */
	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return n;
	for (int i = 0; i < n; i++)
		sum += b->batch.pkts[i].data[60];
	b->sum += sum;
	pl_port_release(port, &b->batch);
	return n;
}

static int subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct afxdp_bench *b = arg;
	struct pl_diag diag = { .text = "" };
	struct pl_port *port;
	int r;

	r = pl_port_open(&port, URI, PL_PORT_RECV, NULL, &diag);
	if (r < 0) {
		pl_complain_diag(&diag);
		return r;
	}
	r = measure(b, take_port, port, budget_ns, ret);
	pl_port_close(port);
	return r;
}

/* ---- the bare loop ---- */

static int take_bare(struct afxdp_bench *b, void *receiver)
{
	struct pl_xsk *x = receiver;
	uint32_t at = *x->rx.consumer, to = *x->fill.producer;
	uint32_t n = pl_xsk_load(x->rx.producer) - at;
	uint64_t sum = 0;

	if (n == 0) {
		struct pollfd p = { .fd = x->fd, .events = POLLIN };

		(void)poll(&p, 1, 10);
		n = pl_xsk_load(x->rx.producer) - at;
	}
	if (n > BARE_BATCH)
		n = BARE_BATCH;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = pl_xsk_desc(&x->rx, at + i)->addr;

		sum += x->memory[addr + 60];
		*pl_xsk_addr(&x->fill, to + i) = addr;
	}
	b->sum += sum;
	pl_xsk_store(x->fill.producer, to + n);
	pl_xsk_store(x->rx.consumer, at + n);
	return (int)n;
}

static int ceiling(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct afxdp_bench *b = arg;
	struct pl_xsk_cfg cfg = { .ifname = PL_WIRE_RECEIVER_NAME,
		.ifindex = b->wire.ifindex[PL_WIRE_RECEIVER],
		.ring = RING,
		.frame_bytes = 2048,
		.node = -1 };
	struct pl_diag diag = { .text = "" };
	struct pl_filter_rules rules = { .any_vlan = 1 };
	struct pl_bpf_collect *skel = pl_bpf_collect__open_and_load();
	struct pl_xdp *xdp = NULL;
	struct pl_xsk x = { .fd = -1 };
	uint32_t queue = 0;
	int r;

	if (skel == NULL) {
		pl_complain("benchmark afxdp-recv: the XDP program does not load");
		return -EPERM;
	}
	pl_filter_rules_add_port(&rules, 32766);
	pl_filter_set(&skel->bss->pl_filter, &rules);
	r = pl_xdp_attach(&xdp, PL_WIRE_RECEIVER_NAME, bpf_program__fd(skel->progs.pl_collect),
		PL_XDP_NATIVE, NULL, &diag);
	if (r == 0)
		r = pl_xsk_open(&x, &cfg, &diag);
	if (r == 0)
		r = bpf_map_update_elem(bpf_map__fd(skel->maps.pl_xsks), &queue, &x.fd, BPF_ANY);
	if (r == 0)
		r = measure(b, take_bare, &x, budget_ns, ret);
	else
		pl_complain("%s", diag.text[0] != '\0' ? diag.text : strerror(-r));
	pl_xsk_close(&x);
	pl_xdp_detach(xdp);
	pl_bpf_collect__destroy(skel);
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} sizes[] = { { "afxdp-recv/128-bytes", 128 }, { "afxdp-recv/256-bytes", 256 } };
	struct afxdp_bench *b = calloc(1, sizeof(*b));
	struct pl_bench_case c = { .ceiling_name = "bare AF_XDP loop: touch and recycle",
		.subject = subject,
		.ceiling = ceiling,
		.arg = b,
		.crosses_cores = true };
	struct pl_diag diag = { .text = "" };
	int r = b == NULL ? -ENOMEM : 0;

	if (r == 0 && pl_cpu_count() < 2) {
		pl_complain("benchmark afxdp-recv: needs two processors");
		free(b);
		return 0;
	}
	if (r == 0)
		r = pl_wire_open(&b->wire, 1, &diag);
	if (r < 0) {
		pl_complain(
			"benchmark afxdp-recv: %s", r == -ENOMEM ? strerror(ENOMEM) : diag.text);
		free(b);
		return r;
	}
	sched_getaffinity(0, sizeof(b->allowed), &b->allowed);
	r = pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	for (size_t i = 0; r == 0 && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		b->frame_bytes = sizes[i].bytes;
		c.name = sizes[i].name;
		r = pl_bench_compare(ctx, &c);
	}
	keep = b->sum;
	(void)pl_wire_enter(&b->wire, PL_WIRE_HOME);
	pl_wire_close(&b->wire);
	free(b);
	return r;
}

const struct pl_bench pl_bench_afxdp_recv = {
	.name = "afxdp-recv",
	.summary =
		"frames of an AF_XDP port over a veth pair, against a bare loop over its rings (root)",
	.run = run,
};
