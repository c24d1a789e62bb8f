/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures an AF_XDP socket that live frames reach. */
#include "tests/bench/afxdp.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/complain.h"
#include "bpf/filter.h"
#include "netio/port.h"
#include "netio/xdp.h"
#include "netio/xsk.h"
#include "tests/bench/cpu.h"
#include "wire/roce.h"

#include "bpf/collect.skel.h" /* knows the types above only by name */

#define BARE_BATCH 2048
#define WARM_UP_NS UINT64_C(150000000)
#define IDLE_MOST  10                   /* waits of 10 ms in a row */
#define DRAIN_NS   UINT64_C(1000000000) /* at most, for what is left behind a stopped sender */

/* Opens the wire and enters the receiver's side. 1: there is but one processor, said so. -errno,
 * said so. */
static int open_wire(struct pl_afxdp_bench *b, const char *name)
{
	struct pl_diag diag = { .text = "" };
	int r;

	b->name = name;
	for (int side = PL_WIRE_HOME; side < PL_WIRE_SIDES; side++)
		b->wire.ns[side] = -1;
	if (pl_cpu_count() < 2) {
		pl_complain("benchmark %s: needs two processors", name);
		return 1;
	}
	r = pl_wire_open(&b->wire, 1, &diag);
	if (r < 0) {
		pl_complain("benchmark %s: %s", name, diag.text);
		return r;
	}
	sched_getaffinity(0, sizeof(b->allowed), &b->allowed);
	return pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
}

int pl_afxdp_run(struct pl_bench_ctx *ctx, struct pl_afxdp_bench *b, const char *name,
	pl_afxdp_case_fn *one, size_t n)
{
	int r = open_wire(b, name);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = one(ctx, b, i);
	(void)pl_wire_enter(&b->wire, PL_WIRE_HOME);
	pl_wire_close(&b->wire);
	return r < 0 ? r : 0;
}

static int make_live(const struct pl_afxdp_bench *b, struct pl_live **ret)
{
	struct pl_live_cfg cfg = b->live;
	struct pl_diag diag = { .text = "" };
	int r = pl_wire_enter(&b->wire, PL_WIRE_SENDER);

	cfg.ifindex = b->wire.ifindex[PL_WIRE_SENDER];
	if (r == 0)
		r = pl_live_new(ret, &cfg, &diag);
	if (r < 0)
		pl_complain("benchmark %s: %s", b->name,
			diag.text[0] != '\0' ? diag.text : strerror(-r));
	(void)pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	return r;
}

/* The time that counts. */
static uint64_t spent_ns(const struct pl_afxdp_bench *b)
{
	if (b->self_clocked)
		return pl_clock_mono_ns();
	return pl_cpu_thread_ns() + pl_wire_napi_cpu_ns() + (b->more_ns != NULL ? b->more_ns() : 0);
}

/* Behind a stopped sender. */
static int drain(struct pl_afxdp_bench *b, pl_afxdp_take_fn *take, void *receiver)
{
	uint64_t limit = pl_clock_mono_ns() + DRAIN_NS;
	int n;

	do
		n = take(b, receiver);
	while (n > 0 && pl_clock_mono_ns() < limit);
	return n < 0 ? n : 0;
}

/* Takes, and tells the sender. */
static int take_some(
	struct pl_afxdp_bench *b, pl_afxdp_take_fn *take, void *receiver, struct pl_live *live)
{
	int n = take(b, receiver);

	b->idle = n == 0 ? b->idle + 1 : 0;
	/* Nothing for so long: what was on its way is lost. */
	if (b->idle == IDLE_MOST)
		b->taken = pl_live_sent(live);
	else if (n > 0)
		b->taken += (uint64_t)n;
	if (n >= 0)
		pl_live_took(live, b->taken);
	return n;
}

int pl_afxdp_measure(struct pl_afxdp_bench *b, pl_afxdp_take_fn *take, void *receiver,
	uint64_t budget_ns, struct pl_bench_sample *ret)
{
	uint64_t start, now, before, spent;
	struct pl_live *live = NULL;
	int n = make_live(b, &live), r;

	if (n < 0)
		return n;
	if (!b->self_clocked)
		n = pl_wire_threaded_napi(&b->wire, true, 0);
	if (n == 0)
		n = pl_live_start(live, 1, 0);
	(void)pl_cpu_pin(0);
	b->taken = 0;
	b->idle = 0;
	start = pl_clock_mono_ns();
	do {
		if (n >= 0)
			n = take_some(b, take, receiver, live);
	} while (n >= 0 && pl_clock_mono_ns() - start < WARM_UP_NS);
	if (b->mark != NULL)
		b->mark(b, receiver, false);
	start = now = pl_clock_mono_ns();
	before = spent_ns(b);
	while (n >= 0 && now - start < budget_ns) {
		for (int i = 0; i < 16 && n >= 0; i++) {
			n = take_some(b, take, receiver, live);
			ret->items += n > 0 ? (uint64_t)n : 0;
		}
		now = pl_clock_mono_ns();
	}
	/* A NAPI thread of a benchmark that was killed has ended meanwhile: that is no
	 * measurement. */
	spent = spent_ns(b);
	ret->ns = spent > before ? spent - before : 0;
	if (b->mark != NULL)
		b->mark(b, receiver, true);
	r = pl_live_stop(live);
	if (n >= 0)
		n = drain(b, take, receiver);
	pl_live_free(live);
	(void)sched_setaffinity(0, sizeof(b->allowed), &b->allowed);
	if (!b->self_clocked)
		(void)pl_wire_threaded_napi(&b->wire, false, 0);
	return n < 0 ? n : r;
}

int pl_afxdp_measure_port(struct pl_afxdp_bench *b, const char *uri, pl_afxdp_take_fn *take,
	uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct pl_diag diag = { .text = "" };
	struct pl_port *port = NULL;
	struct pl_port *packet = NULL;
	const char *why;
	int r = pl_port_open(&port, uri, PL_PORT_RECV,
		&(struct pl_port_options){ .sends = b->send_by == PL_AFXDP_BY_RING }, &diag);

	if (r == 0 && b->send_by == PL_AFXDP_BY_PACKET)
		r = pl_port_open(
			&packet, "packet:" PL_WIRE_RECEIVER_NAME, PL_PORT_SEND, NULL, &diag);
	if (r == 0 && b->send_by == PL_AFXDP_BY_RING && !pl_port_sends(port, &why)) {
		pl_diag_set(&diag, "%s", why);
		r = -EOPNOTSUPP;
	}
	if (r == 0)
		b->send = b->send_by == PL_AFXDP_BY_RING ? port : packet;
	if (r == 0)
		r = pl_afxdp_measure(b, take, port, budget_ns, ret);
	else
		pl_complain_diag(&diag);
	pl_port_close(port);
	pl_port_close(packet);
	b->send = NULL;
	return r;
}

/* ---- R2 ---- */

static int take_bare(struct pl_afxdp_bench *b, void *receiver)
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

int pl_afxdp_bare(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct pl_afxdp_bench bare = *(const struct pl_afxdp_bench *)arg, *b = &bare;
	struct pl_xsk_cfg cfg = { .ifname = PL_WIRE_RECEIVER_NAME,
		.ifindex = b->wire.ifindex[PL_WIRE_RECEIVER],
		.recv = PL_AFXDP_RING,
		.frame_bytes = 2048,
		.node = -1 };
	struct pl_diag diag = { .text = "" };
	struct pl_filter_rules rules = { .any_vlan = 1 };
	struct pl_bpf_collect *skel = pl_bpf_collect__open_and_load();
	struct pl_xdp *xdp = NULL;
	struct pl_xsk x = { .fd = -1 };
	uint32_t queue = 0;
	int r;

	bare.mark = NULL;
	bare.more_ns = NULL;
	if (skel == NULL) {
		pl_complain("benchmark %s: the XDP program does not load", b->name);
		return -EPERM;
	}
	pl_filter_rules_add_port(&rules, 32766);
	pl_filter_rules_add_port(&rules, PL_ROCE_PORT);
	pl_filter_set(&skel->bss->pl_filter, &rules);
	r = pl_xdp_attach(&xdp, PL_WIRE_RECEIVER_NAME, bpf_program__fd(skel->progs.pl_collect),
		PL_XDP_NATIVE, NULL, &diag);
	if (r == 0)
		r = pl_xsk_open(&x, &cfg, &diag);
	if (r == 0)
		r = bpf_map_update_elem(bpf_map__fd(skel->maps.pl_xsks), &queue, &x.fd, BPF_ANY);
	if (r == 0)
		r = pl_afxdp_measure(b, take_bare, &x, budget_ns, ret);
	else
		pl_complain("%s", diag.text[0] != '\0' ? diag.text : strerror(-r));
	((struct pl_afxdp_bench *)arg)->sum += bare.sum;
	pl_xsk_close(&x);
	pl_xdp_detach(xdp);
	pl_bpf_collect__destroy(skel);
	return r;
}

void pl_afxdp_mark_lost(struct pl_afxdp_bench *b, void *receiver, bool end)
{
	struct pl_port_stats stats;

	pl_port_stats(receiver, &stats);
	if (end)
		b->lost += stats.kernel_drops - b->lost_before;
	b->lost_before = stats.kernel_drops;
}
