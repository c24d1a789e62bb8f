/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads a host's INT source or sink into the kernel and reads its ring. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hostint/hostint.h"
#include "netio/caps.h"
#include "netio/iface.h"
#include "netio/program.h"
#include "netio/tai.h"
#include "netio/tc.h"
#include "tap/kernel_maps.h"

#include "bpf/host_int.skel.h" /* needs only the names of the types above */

#define WAKE_NS  1000000u   /* least time between two wakes by the program */
#define LOOK_NS  2000000u   /* interval of checks of the ring, longer than WAKE_NS */
#define AHEAD_NS 1000000000 /* interval of reading the offset of the clocks */

struct pl_hostint {
	struct pl_iface iface; /* first */
	struct pl_hostint_options o;
	struct pl_bpf_host_int *skel;
	struct pl_xdp *xdp;
	struct pl_tc *tc;
	struct ring_buffer *ring;
	pl_hostint_take *take; /* function of the present call */
	void *arg;
	struct pl_host_event event;
	uint32_t n, most;
	uint64_t tai_ns, tai_due_ns;
	uint64_t look_ns, due_ns;
	struct pl_each work; /* the map pl_host_work */
};

/* ---- loading ---- */

static int refused(int r, const char *name, struct pl_diag *diag)
{
	return pl_program_refused(r, name, PL_CAP_BPF | PL_CAP_NET_ADMIN, "INT in the kernel",
		"the ring and the tables of flows", diag);
}

static int set_up(struct pl_hostint *h, uint32_t raw, struct pl_diag *diag)
{
	struct pl_bpf_host_int *s = h->skel;
	const struct pl_hostint_options *o = &h->o;
	const struct pl_host_control control = { .raw = raw,
		.dscp = o->dscp,
		.mtu = o->mtu,
		.wake_ns = WAKE_NS,
		.every = o->every,
		.drop_malformed = o->drop_malformed,
		.drop_outside = o->drop_outside,
		.change_ns = o->change_ns,
		.refresh_ns = o->refresh_ns };
	struct pl_host_template template;
	int r;

	memcpy((void *)&s->rodata->pl_host_control, &control, sizeof(control));
	if (!o->sink) {
		r = pl_hostint_template(&template, o, diag);
		if (r < 0)
			return r;
		memcpy((void *)&s->rodata->pl_host_template, &template, sizeof(template));
	}
	bpf_program__set_autoload(s->progs.pl_host_source, !o->sink);
	bpf_program__set_autoload(s->progs.pl_host_sink, o->sink);
	/* Maps of the other role take no room. */
	r = bpf_map__set_max_entries(o->sink ? s->maps.pl_host_numbers : s->maps.pl_host_flows, 1);
	if (r == 0 && o->ring_bytes != 0)
		r = bpf_map__set_max_entries(s->maps.pl_host_ring, (uint32_t)o->ring_bytes);
	if (r == 0 && !o->sink)
		r = bpf_map__set_max_entries(s->maps.pl_host_ring, 4096);
	h->tai_ns = pl_tai_ahead_ns();
	s->bss->pl_host_ahead_ns = h->tai_ns;
	return r;
}

static int load(struct pl_hostint *h, struct pl_diag *diag)
{
	const char *name = h->iface.link.name;
	pl_program_voice before;
	uint32_t raw = 0;
	int r = pl_program_frames(name, false, &raw, diag);

	if (r < 0)
		return r;
	before = pl_program_hush();
	h->skel = pl_bpf_host_int__open();
	if (h->skel == NULL) {
		r = refused(-errno, name, diag);
	} else {
		r = set_up(h, raw, diag);
		if (r == 0) {
			r = pl_bpf_host_int__load(h->skel);
			if (r < 0)
				r = refused(r, name, diag);
		}
	}
	pl_program_talk(before);
	return r;
}

/* ---- attaching ---- */

static void detach(struct pl_hostint *h)
{
	pl_xdp_detach(h->xdp);
	pl_tc_detach(h->tc);
	h->xdp = NULL;
	h->tc = NULL;
	h->iface.data_fd = -1;
}

static int attach(struct pl_hostint *h, struct pl_diag *diag)
{
	const char *name = h->iface.link.name;
	int r;

	if (h->o.sink)
		r = pl_xdp_attach(&h->xdp, name, bpf_program__fd(h->skel->progs.pl_host_sink),
			h->o.mode, h->o.rights, diag);
	else
		r = pl_tc_attach(&h->tc, name, bpf_program__fd(h->skel->progs.pl_host_source),
			PL_TC_OUT, h->o.rights, diag);
	if (r < 0)
		return r;
	/* Shows that it is attached: nothing is read there. */
	h->iface.data_fd = ring_buffer__epoll_fd(h->ring);
	return 0;
}

static int again(struct pl_iface *iface, struct pl_diag *diag)
{
	return attach((struct pl_hostint *)iface, diag);
}

static void lost(struct pl_iface *iface)
{
	detach((struct pl_hostint *)iface);
}

static const struct pl_iface_ops ops = { .lost = lost, .again = again };

/* ---- the ring ---- */

static int on_event(void *arg, void *data, size_t size)
{
	struct pl_hostint *h = arg;
	const struct pl_host_event *e = data;

	if (size < PL_HOST_EVENT_FIXED || e->bytes > size - PL_HOST_EVENT_FIXED ||
		e->bytes > PL_HOST_EVENT_HEAD || e->int_at > e->bytes ||
		(uint32_t)(e->bytes - e->int_at) < PL_HOST_INT_MIN)
		return 0;
	/* The ring is mapped read-only. */
	memcpy(&h->event, e, PL_HOST_EVENT_FIXED + e->bytes);
	h->event.ts_ns -= h->tai_ns;
	h->take(h->arg, &h->event);
	/* A negative result ends the reading after this packet. */
	return ++h->n >= h->most ? -ENOBUFS : 0;
}

static void keep_clock(struct pl_hostint *h, uint64_t now_ns)
{
	if (now_ns < h->tai_due_ns)
		return;
	h->tai_due_ns = now_ns + AHEAD_NS;
	h->tai_ns = pl_tai_ahead_ns();
	/* A word that changes at a leap second, if ever. */
	__atomic_store_n(&h->skel->bss->pl_host_ahead_ns, h->tai_ns, __ATOMIC_RELAXED);
}

int pl_hostint_recv(
	struct pl_hostint *h, uint32_t most, pl_hostint_take *take, void *arg, struct pl_diag *diag)
{
	int r = pl_iface_wait(&h->iface, 0, diag);
	uint64_t now_ns;

	if (r == -ENETDOWN || r == -EAGAIN)
		return r;
	h->take = take;
	h->arg = arg;
	h->n = 0;
	h->most = most;
	keep_clock(h, pl_clock_mono_ns());
	r = ring_buffer__consume(h->ring);
	if (r < 0 && r != -ENOBUFS) {
		pl_diag_set(diag, "%s: reading its ring: %s", h->o.dev, strerror(-r));
		return r;
	}
	now_ns = pl_clock_mono_ns();
	if (h->n > 0)
		h->look_ns = now_ns + LOOK_NS;
	h->due_ns = now_ns < h->look_ns ? h->look_ns : h->tai_due_ns;
	return (int)h->n;
}

static int open_ring(struct pl_hostint *h, struct pl_diag *diag)
{
	const int r = pl_each_open(&h->work, bpf_map__fd(h->skel->maps.pl_host_work),
		bpf_map__value_size(h->skel->maps.pl_host_work));

	h->ring = ring_buffer__new(bpf_map__fd(h->skel->maps.pl_host_ring), on_event, h, NULL);
	if (r < 0 || h->ring == NULL) {
		pl_diag_set(diag, "%s: no memory for its ring", h->o.dev);
		return -ENOMEM;
	}
	return pl_iface_set_beside(&h->iface, ring_buffer__epoll_fd(h->ring));
}

/* ---- open and close ---- */

int pl_hostint_open(
	struct pl_hostint **ret, const struct pl_hostint_options *o, struct pl_diag *diag)
{
	struct pl_hostint *h = calloc(1, sizeof(*h));
	int r;

	if (h == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	pl_iface_init(&h->iface);
	h->o = *o;
	h->due_ns = 0;
	/* Not a port that receives by a socket. */
	h->iface.port.mode = PL_PORT_SEND;
	r = pl_iface_open(&h->iface, o->dev, &ops, diag);
	if (r == 0 && asprintf(&h->iface.port.name, "%s:%s", o->sink ? "xdp" : "tc", o->dev) < 0) {
		h->iface.port.name = NULL;
		r = -ENOMEM;
	}
	if (r == 0)
		r = load(h, diag);
	if (r == 0)
		r = open_ring(h, diag);
	if (r == 0) {
		pl_hostint_rules(h, o->rules);
		r = attach(h, diag);
	}
	if (r < 0) {
		pl_hostint_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

void pl_hostint_close(struct pl_hostint *h)
{
	if (h == NULL)
		return;
	detach(h);
	ring_buffer__free(h->ring);
	pl_bpf_host_int__destroy(h->skel);
	pl_iface_close(&h->iface);
	free(h->iface.port.name);
	pl_each_close(&h->work);
	free(h);
}

const char *pl_hostint_name(const struct pl_hostint *h)
{
	return h->o.dev;
}

bool pl_hostint_is_raw(const struct pl_hostint *h)
{
	return h->skel->rodata->pl_host_control.raw != 0;
}

uint32_t pl_hostint_growth(const struct pl_hostint *h)
{
	return 4 * h->skel->rodata->pl_host_template.words;
}

int pl_hostint_unnoted(const struct pl_hostint *h)
{
	return pl_tc_unnoted(h->tc);
}

int pl_hostint_fd(const struct pl_hostint *h)
{
	return h->iface.port.fd;
}

uint64_t pl_hostint_due_ns(const struct pl_hostint *h)
{
	return h->due_ns;
}

void pl_hostint_rules(struct pl_hostint *h, const struct pl_tap_rules *rules)
{
	pl_tap_sets_next(h->skel->bss->pl_host_sets, &h->skel->bss->pl_host_set, rules, 0, NULL);
}

int pl_hostint_program(const struct pl_hostint *h)
{
	return bpf_program__fd(
		h->o.sink ? h->skel->progs.pl_host_sink : h->skel->progs.pl_host_source);
}

void pl_hostint_stop(struct pl_hostint *h)
{
	detach(h);
}

/* ---- counters ---- */

/* Sums counts, which come first in each value, the source's before the sink's. */
void pl_hostint_source_counts(struct pl_hostint *h, struct pl_host_source_counts *ret)
{
	memset(ret, 0, sizeof(*ret));
	(void)pl_each_add(&h->work, 0, 0, ret, sizeof(*ret) / sizeof(uint64_t));
}

void pl_hostint_sink_counts(struct pl_hostint *h, struct pl_host_sink_counts *ret)
{
	memset(ret, 0, sizeof(*ret));
	(void)pl_each_add(&h->work, 0, sizeof(struct pl_host_source_counts) / sizeof(uint64_t), ret,
		sizeof(*ret) / sizeof(uint64_t));
}
