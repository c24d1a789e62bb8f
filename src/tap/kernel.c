/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the tap into the kernel and reads its ring. */
#include "tap/kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "core/tap_core.h"
#include "core/tap_joined.h"
#include "netio/caps.h"
#include "netio/hwtstamp.h"
#include "netio/iface.h"
#include "netio/link.h"
#include "netio/program.h"
#include "netio/tai.h"
#include "netio/tc.h"
#include "netio/xdp.h"
#include "record/flow_hash.h"
#include "tap/kernel_maps.h"
#include "tap/kernel_uri.h"
#include "wire/tunnel_ports.h"

#include "bpf/tap.skel.h" /* knows the types above only by name */

#define WRITE_NS 20000000u /* longest from a record's time until it is in the ring */
#define CLOCK_NS 1000000u  /* error of the fast clock that programs read */

struct pl_tap_kernel {
	struct pl_iface iface; /* first */
	struct pl_tap_kernel_settings set;
	const struct pl_rights *rights;
	struct pl_bpf_tap *skel;
	struct pl_xdp *xdp;
	struct pl_tc *in, *out;
	struct ring_buffer *ring;
	struct pl_pkt96 *to;   /* of the present call */
	uint32_t n, nic;       /* records of that call; records of them with the NIC's time */
	struct pl_tap_row row; /* a row whose records did not all fit into that call */
	bool row_nic;          /* with the NIC's time */
	enum pl_clock_kind clock;
	uint64_t tai_ns;  /* offset of CLOCK_TAI from the time of day */
	uint64_t look_ns; /* until then records come without a wake-up */
	uint64_t due_ns;
	uint64_t passed_ns;  /* result of pl_tap_kernel_passed_ns() */
	struct pl_each work; /* the map pl_tap_work */
	struct pl_tap_hits hits;
	uint64_t vxlan_ports;
	struct pl_tap_count_plan plan;
	struct pl_tap_counter *counter; /* NULL: nothing is counted */
	bool counting;                  /* the counter is not stopped */
	uint64_t received;              /* entries of the ring whose records were all given */
	/* turn_ns: time of day before the last switch of tables, 0: there was none; turn_entries:
	 * entries received once all from before it are; turn_over: they are. */
	uint64_t turn_ns, turn_entries;
	bool turn_over;
	bool stopped; /* for good: the interface is not followed any more */
};

/* ---- loading ---- */

static int refused(int r, const char *name, struct pl_diag *diag)
{
	r = pl_program_refused(r, name, PL_CAP_BPF | PL_CAP_NET_ADMIN, "the tap in the kernel",
		"the tap's ring or its counts", diag);
	if (r != -ENOMEM && diag != NULL)
		pl_diag_set(diag,
			r == -EPERM ? "%s; packet:%s needs CAP_NET_RAW only" : "%s. Use packet:%s",
			diag->text, name);
	return r;
}

/* Sets the sizes of the tables, before they are made: without a plan one key. */
static int set_up_counts(struct pl_tap_kernel *k)
{
	const uint32_t room = k->plan.on ? (uint32_t)k->set.counts : 1;
	int r;

	memcpy((void *)&k->skel->rodata->pl_tap_plan, &k->plan, sizeof(k->plan));
	k->skel->bss->pl_tap_ahead_ns = pl_tai_ahead_ns();
	r = bpf_map__set_max_entries(k->skel->maps.pl_tap_counts_a, room);
	return r < 0 ? r : bpf_map__set_max_entries(k->skel->maps.pl_tap_counts_b, room);
}

static int set_up(struct pl_tap_kernel *k, uint32_t link)
{
	struct pl_tap_control *control = (struct pl_tap_control *)&k->skel->rodata->pl_tap_control;

	*control = (struct pl_tap_control){ .link = link,
		.record_bytes = k->set.record_bytes,
		.wake_ns = PL_TAP_WAKE_NS,
		.vxlan_ports = k->vxlan_ports };
	bpf_program__set_autoload(k->skel->progs.pl_tap_xdp, k->set.xdp);
	bpf_program__set_autoload(k->skel->progs.pl_tap_in, !k->set.xdp && k->set.in);
	bpf_program__set_autoload(k->skel->progs.pl_tap_out, !k->set.xdp && k->set.out);
	return bpf_map__set_max_entries(
		k->skel->maps.pl_tap_ring, pl_tap_ring_size(k->set.ring_bytes));
}

static int set_up_and_load(struct pl_tap_kernel *k, uint32_t link)
{
	int r = set_up(k, link);

	if (r == 0)
		r = set_up_counts(k);
	return r == 0 ? pl_bpf_tap__load(k->skel) : r;
}

static int load(struct pl_tap_kernel *k, struct pl_diag *diag)
{
	const char *name = k->iface.link.name;
	pl_program_voice before;
	uint32_t raw = 0;
	int r = pl_program_frames(name, true, &raw, diag);

	if (r < 0) {
		if (diag != NULL)
			pl_diag_set(diag, "%s; use packet:%s", diag->text, name);
		return r;
	}
	before = pl_program_hush();
	k->skel = pl_bpf_tap__open();
	r = k->skel == NULL ? -errno
			    : set_up_and_load(k, raw != 0 ? PL_TAP_RAW_IP : PL_TAP_ETHERNET);
	pl_program_talk(before);
	return r < 0 ? refused(r, name, diag) : 0;
}

/* ---- attaching ---- */

static void detach(struct pl_tap_kernel *k)
{
	pl_xdp_detach(k->xdp);
	pl_tc_detach(k->in);
	pl_tc_detach(k->out);
	k->xdp = NULL;
	k->in = k->out = NULL;
	k->iface.data_fd = -1;
}

static int attach(struct pl_tap_kernel *k, struct pl_diag *diag)
{
	const char *name = k->iface.link.name;
	int r = 0;

	if (k->set.xdp)
		r = pl_xdp_attach(&k->xdp, name, bpf_program__fd(k->skel->progs.pl_tap_xdp),
			k->set.mode, k->rights, diag);
	if (r == 0 && !k->set.xdp && k->set.in)
		r = pl_tc_attach(&k->in, name, bpf_program__fd(k->skel->progs.pl_tap_in), PL_TC_IN,
			k->rights, diag);
	if (r == 0 && !k->set.xdp && k->set.out)
		r = pl_tc_attach(&k->out, name, bpf_program__fd(k->skel->progs.pl_tap_out),
			PL_TC_OUT_FIRST, k->rights, diag);
	if (r == -EBUSY && diag != NULL)
		pl_diag_set(diag, "%s, or use %s%s%spacket:%s", diag->text, k->set.xdp ? "tc:" : "",
			k->set.xdp ? name : "", k->set.xdp ? " or " : "", name);
	if (r < 0) {
		detach(k);
		return r;
	}
	/* Says that the tap is attached; nothing is read from there. */
	k->iface.data_fd = ring_buffer__epoll_fd(k->ring);
	return 0;
}

int pl_tap_kernel_unnoted(const struct pl_tap_kernel *k)
{
	const int r = pl_tc_unnoted(k->in);

	return r != 0 ? r : pl_tc_unnoted(k->out);
}

static int again(struct pl_iface *iface, struct pl_diag *diag)
{
	return attach((struct pl_tap_kernel *)iface, diag);
}

static void lost(struct pl_iface *iface)
{
	detach((struct pl_tap_kernel *)iface);
}

static const struct pl_iface_ops ops = { .lost = lost, .again = again };

/* ---- the ring ---- */

/* Completes a record of record_bytes: what is behind a pkt64, and the time. */
static void complete(struct pl_tap_kernel *k, struct pl_pkt96 *r, bool *ret_nic)
{
	if (k->set.record_bytes == sizeof(struct pl_pkt64)) {
		memset((uint8_t *)r + sizeof(struct pl_pkt64), 0,
			sizeof(*r) - sizeof(struct pl_pkt64));
		r->flow_hash = pl_flow_hash_packet(r);
	}
	*ret_nic = r->record_seq != 0;
	if (!*ret_nic)
		r->ts_ns -= k->tai_ns;
	r->record_seq = 0;
}

/* Takes as many records of the row as there is room for. */
static void take_of_row(struct pl_tap_kernel *k)
{
	const uint32_t before = k->n;

	while (k->row.n > 0 && k->n < PL_TAP_KERNEL_BATCH)
		pl_tap_row_next(&k->row, &k->to[k->n++]);
	if (k->row_nic)
		k->nic += k->n - before;
	if (k->row.n == 0 && k->n > before)
		k->received++;
}

static int on_entry(void *arg, void *data, size_t size)
{
	struct pl_tap_kernel *k = arg;

	if (size >= sizeof(k->row)) {
		memcpy(&k->row, data, sizeof(k->row));
		complete(k, &k->row.record, &k->row_nic);
		if (k->set.record_bytes == sizeof(struct pl_pkt64))
			k->row.id_step = 0;
		take_of_row(k);
	} else if (size >= k->set.record_bytes) {
		struct pl_pkt96 *r = &k->to[k->n++];
		bool nic;

		memcpy(r, data, k->set.record_bytes);
		complete(k, r, &nic);
		k->nic += nic;
		k->received++;
	}
	/* With a negative value libbpf reads no further entry. */
	return k->n == PL_TAP_KERNEL_BATCH ? -ENOBUFS : 0;
}

/* Returns the time before which all packets are received, 0: not known: before_ns once the ring is
 * read to its end; with counts the last switch of tables, once its entries are received. */
static uint64_t passed_by(struct pl_tap_kernel *k, uint64_t before_ns)
{
	const bool end = k->n < PL_TAP_KERNEL_BATCH;

	if (!k->counting)
		return end && k->iface.data_fd >= 0 ? before_ns - WRITE_NS : 0;
	k->turn_over = k->turn_over || end || k->received >= k->turn_entries;
	return k->turn_over && k->turn_ns != 0 ? k->turn_ns - CLOCK_NS : 0;
}

int pl_tap_kernel_recv(struct pl_tap_kernel *k, struct pl_pkt96 *ret, struct pl_diag *diag)
{
	int r = k->stopped ? 0 : pl_iface_wait(&k->iface, 0, diag);
	uint64_t now_ns, before_ns;

	k->passed_ns = 0;
	if (r == -ENETDOWN || r == -EAGAIN)
		return r;
	k->to = ret;
	k->n = k->nic = 0;
	k->tai_ns = pl_tai_ahead_ns();
	before_ns = pl_clock_real_ns();
	take_of_row(k);
	r = k->n < PL_TAP_KERNEL_BATCH ? ring_buffer__consume(k->ring) : 0;
	if (r < 0 && r != -ENOBUFS) {
		pl_diag_set(diag, "%s: reading its ring: %s", pl_tap_kernel_name(k), strerror(-r));
		return r;
	}
	k->passed_ns = passed_by(k, before_ns);
	now_ns = pl_clock_mono_ns();
	if (k->n > 0)
		k->look_ns = now_ns + PL_TAP_LOOK_NS;
	k->due_ns = now_ns < k->look_ns ? k->look_ns : UINT64_MAX;
	return (int)k->n;
}

static int open_ring(struct pl_tap_kernel *k, struct pl_diag *diag)
{
	const int r = pl_each_open(&k->work, bpf_map__fd(k->skel->maps.pl_tap_work),
		bpf_map__value_size(k->skel->maps.pl_tap_work));

	k->hits = (struct pl_tap_hits){ .each = &k->work,
		.at = offsetof(struct pl_tap_kernel_book, hits) / sizeof(uint64_t) };
	k->ring = ring_buffer__new(bpf_map__fd(k->skel->maps.pl_tap_ring), on_entry, k, NULL);
	if (r < 0 || k->ring == NULL) {
		pl_diag_set(diag, "%s: no memory for the tap's ring", pl_tap_kernel_name(k));
		return -ENOMEM;
	}
	return pl_iface_set_beside(&k->iface, ring_buffer__epoll_fd(k->ring));
}

/* ---- counts ---- */

static int open_counts(struct pl_tap_kernel *k, struct pl_diag *diag)
{
	if (!k->plan.on)
		return 0;
	k->counter = calloc(1, sizeof(*k->counter));
	if (k->counter == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	k->counter->turns_fd = bpf_map__fd(k->skel->maps.pl_tap_counting);
	k->counter->table_fd[0] = bpf_map__fd(k->skel->maps.pl_tap_counts_a);
	k->counter->table_fd[1] = bpf_map__fd(k->skel->maps.pl_tap_counts_b);
	k->counting = k->turn_over = true;
	return 0;
}

static int counts_failed(const struct pl_tap_kernel *k, int r, struct pl_diag *diag)
{
	if (r < 0)
		pl_diag_set(
			diag, "%s: reading its counts: %s", pl_tap_kernel_name(k), strerror(-r));
	return r;
}

/* Records a switch of tables: all program runs that began before have counted their entries; an
 * uncounted entry for each processor may be in the ring before the last of these. A switch stays
 * recorded until its entries are received; otherwise, when the ring always holds more than is read
 * before the next switch, none would ever be complete. */
static void note_turn(struct pl_tap_kernel *k, uint64_t began_ns)
{
	struct pl_tap_kernel_counts counts;

	if (!k->turn_over)
		return;
	pl_tap_kernel_counts(k, &counts);
	k->turn_ns = began_ns;
	k->turn_entries = counts.entries + (uint64_t)k->work.processors;
	k->turn_over = false;
}

int pl_tap_kernel_read_counts(
	struct pl_tap_kernel *k, pl_tap_count_sink *sink, void *arg, struct pl_diag *diag)
{
	uint64_t began_ns;
	int r;

	if (!k->counting)
		return 0;
	/* Changes at leap seconds only. */
	__atomic_store_n(&k->skel->bss->pl_tap_ahead_ns, pl_tai_ahead_ns(), __ATOMIC_RELAXED);
	r = pl_tap_counter_turn(k->counter, &began_ns);
	if (r == 0) {
		note_turn(k, began_ns);
		r = pl_tap_counter_read(k->counter, &k->plan, sink, arg);
	}
	return counts_failed(k, r, diag);
}

int pl_tap_kernel_stop_counts(
	struct pl_tap_kernel *k, pl_tap_count_sink *sink, void *arg, struct pl_diag *diag)
{
	int r;

	if (!k->counting)
		return 0;
	k->counting = false;
	r = pl_tap_counter_stop(k->counter);
	if (r == 0)
		r = pl_tap_counter_read(k->counter, &k->plan, sink, arg);
	return counts_failed(k, r, diag);
}

bool pl_tap_kernel_is_stamped(struct pl_tap_kernel *k)
{
	struct pl_tap_kernel_counts counts;

	pl_tap_kernel_counts(k, &counts);
	return counts.stamped > 0;
}

/* ---- open and close ---- */

/* Returns the clock of records; where sent frames have the kernel's, the clock of received
 * frames. */
static enum pl_clock_kind clock_of(const struct pl_tap_kernel_settings *set, const char *name)
{
	return !set->xdp && set->in && set->record_bytes == sizeof(struct pl_pkt96) &&
			       pl_hwtstamp_is_on(name)
		       ? PL_STAMP_NIC
		       : PL_STAMP_TAI;
}

int pl_tap_kernel_open(struct pl_tap_kernel **ret, const char *text,
	const struct pl_tap_kernel_options *o, struct pl_diag *diag)
{
	struct pl_uri *uri = malloc(sizeof(*uri));
	struct pl_tap_kernel *k = calloc(1, sizeof(*k));
	int r = -ENOMEM;

	if (uri == NULL || k == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		free(uri);
		free(k);
		return r;
	}
	pl_iface_init(&k->iface);
	k->rights = o->rights;
	k->vxlan_ports = o->vxlan_ports != 0 ? o->vxlan_ports : PL_VXLAN_PORTS;
	if (o->plan != NULL)
		k->plan = *o->plan;
	k->due_ns = UINT64_MAX;
	r = pl_tap_kernel_settings(&k->set, text, uri, diag);
	/* The port does not receive by a socket. */
	k->iface.port.mode = PL_PORT_SEND;
	if (r == 0)
		r = pl_iface_open(&k->iface, uri->target, &ops, diag);
	/* A packet sent over a loopback is received there too. */
	if (r == 0 && !k->set.dir_told && pl_link_is_loopback(uri->target))
		k->set.out = false;
	if (r == 0 && asprintf(&k->iface.port.name, "%s:%s", k->set.xdp ? "xdp" : "tc",
			      uri->target) < 0) {
		k->iface.port.name = NULL;
		r = -ENOMEM;
	}
	if (r == 0 && k->set.hwtstamp)
		r = pl_hwtstamp_ask(uri->target, diag);
	if (r == 0) {
		k->clock = clock_of(&k->set, uri->target);
		r = load(k, diag);
	}
	if (r == 0)
		r = open_ring(k, diag);
	if (r == 0)
		r = open_counts(k, diag);
	if (r == 0) {
		pl_tap_kernel_rules(k, o->rules, o->point);
		r = attach(k, diag);
	}
	free(uri);
	if (r < 0) {
		pl_tap_kernel_close(k);
		return r;
	}
	*ret = k;
	return 0;
}

void pl_tap_kernel_close(struct pl_tap_kernel *k)
{
	if (k == NULL)
		return;
	detach(k);
	ring_buffer__free(k->ring);
	pl_bpf_tap__destroy(k->skel);
	pl_iface_close(&k->iface);
	free(k->iface.port.name);
	pl_each_close(&k->work);
	free(k->counter);
	free(k);
}

const char *pl_tap_kernel_name(const struct pl_tap_kernel *k)
{
	return k->iface.port.name;
}

uint32_t pl_tap_kernel_nic(const struct pl_tap_kernel *k)
{
	return k->nic;
}

enum pl_clock_kind pl_tap_kernel_clock(const struct pl_tap_kernel *k)
{
	return k->clock;
}

int pl_tap_kernel_fd(const struct pl_tap_kernel *k)
{
	return k->iface.port.fd;
}

uint64_t pl_tap_kernel_due_ns(const struct pl_tap_kernel *k)
{
	return k->due_ns;
}

uint64_t pl_tap_kernel_passed_ns(struct pl_tap_kernel *k)
{
	return k->passed_ns != 0 && !pl_tap_kernel_is_stamped(k) ? k->passed_ns : 0;
}

void pl_tap_kernel_rules(struct pl_tap_kernel *k, const struct pl_tap_rules *rules, uint16_t point)
{
	pl_tap_sets_next(
		k->skel->bss->pl_tap_sets, &k->skel->bss->pl_tap_set, rules, point, &k->hits);
}

void pl_tap_kernel_hits(struct pl_tap_kernel *k, uint64_t ret[PL_TAP_RULES_MAX + 1])
{
	pl_tap_hits_add(&k->hits, k->skel->bss->pl_tap_set, ret);
}

void pl_tap_kernel_stop(struct pl_tap_kernel *k)
{
	k->stopped = true;
	detach(k);
}

void pl_tap_kernel_counts(struct pl_tap_kernel *k, struct pl_tap_kernel_counts *ret)
{
	*ret = (struct pl_tap_kernel_counts){ 0 };
	(void)pl_each_add(&k->work, 0, 0, ret, sizeof(*ret) / sizeof(uint64_t));
}

int pl_tap_kernel_program(const struct pl_tap_kernel *k)
{
	if (k->set.xdp)
		return bpf_program__fd(k->skel->progs.pl_tap_xdp);
	return k->set.in ? bpf_program__fd(k->skel->progs.pl_tap_in) : -EINVAL;
}
