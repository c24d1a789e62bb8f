/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads alternate marking into the kernel and reads its flows. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "hostmark/hostmark.h"
#include "hostmark/pins.h"
#include "hostmark/ticker.h"
#include "netio/caps.h"
#include "netio/iface.h"
#include "netio/program.h"
#include "netio/tc.h"
#include "netio/xdp.h"

#include "bpf/mark.skel.h" /* needs only the names of the types above */

/* Time after which no program can still count in a flow that was found idle. */
#define DYING_NS UINT64_C(1000000000)

struct pl_hostmark {
	struct pl_iface iface; /* first */
	struct pl_hostmark_options o;
	struct pl_bpf_mark *skel;
	struct pl_xdp *xdp;
	struct pl_tc *tc;
	int link_fd; /* pinned before this process; -1: none */
	int held_fd; /* shows iface that a program is attached; nothing is read there */
	bool resumed;
	bool fresh; /* this process made the pins */
	bool anew;  /* this process attached the program, instead of taking up the one of before */
	struct pl_mark_state state;
	uint64_t flows;
	int processors;
	/* Maps of the kernel: flows, their cells, and the table's own words. */
	struct pl_mark_head *heads;
	struct pl_mark_cell *cells;
	struct pl_mark_table *table;
	struct pl_ticker *ticker; /* NULL: the program reads a clock */
	size_t heads_bytes, cells_bytes;
	uint64_t dying_ns; /* time at which flows became DYING; 0: none are */
	uint64_t dying;    /* number of these flows */
};

/* ---- loading ---- */

static bool any_packet(const struct pl_tap_rules *rules)
{
	struct pl_tap_rules all = { 0 };

	return rules->n == 1 && pl_tap_rules_add(&all, "take", NULL) == 0 &&
	       memcmp(&rules->rules[0], &all.rules[0], sizeof(all.rules[0])) == 0;
}

static void set_up_programs(struct pl_hostmark *h)
{
	struct pl_bpf_mark *s = h->skel;
	const bool meter = h->o.role == PL_HOSTMARK_METER, edge = h->o.role == PL_HOSTMARK_EDGE;

	bpf_program__set_autoload(s->progs.pl_mark_marker, h->o.role == PL_HOSTMARK_MARKER);
	bpf_program__set_autoload(s->progs.pl_mark_meter_xdp, meter && h->o.xdp);
	bpf_program__set_autoload(s->progs.pl_mark_meter_in, meter && !h->o.xdp && !h->o.leaving);
	bpf_program__set_autoload(s->progs.pl_mark_meter_out, meter && !h->o.xdp && h->o.leaving);
	bpf_program__set_autoload(s->progs.pl_mark_edge_in, edge && !h->o.leaving);
	bpf_program__set_autoload(s->progs.pl_mark_edge_out, edge && h->o.leaving);
}

static const struct bpf_program *program_of(const struct pl_hostmark *h)
{
	const struct pl_bpf_mark *s = h->skel;

	if (h->o.role == PL_HOSTMARK_MARKER)
		return s->progs.pl_mark_marker;
	if (h->o.role == PL_HOSTMARK_EDGE)
		return h->o.leaving ? s->progs.pl_mark_edge_out : s->progs.pl_mark_edge_in;
	if (h->o.xdp)
		return s->progs.pl_mark_meter_xdp;
	return h->o.leaving ? s->progs.pl_mark_meter_out : s->progs.pl_mark_meter_in;
}

static int set_up(struct pl_hostmark *h)
{
	struct pl_bpf_mark *s = h->skel;
	const struct pl_mark_setup *u = &h->o.setup;
	/* Maps that are not needed take no room. */
	const uint32_t slots = h->o.role == PL_HOSTMARK_EDGE ? 1 : u->slots;
	int r;

	memcpy((void *)&s->rodata->pl_mark_setup, u, sizeof(*u));
	set_up_programs(h);
	pl_hostmark_make_rules(&s->bss->pl_mark_rules, h->o.rules);
	if ((uint64_t)slots * (uint64_t)h->processors * PL_MARK_KEPT > UINT32_MAX)
		return -ENOMEM;
	r = bpf_map__set_max_entries(s->maps.pl_mark_heads, slots);
	if (r == 0)
		r = bpf_map__set_max_entries(
			s->maps.pl_mark_cells, slots * (uint32_t)h->processors * PL_MARK_KEPT);
	return r;
}

static int set_up_pins(struct pl_hostmark *h)
{
	struct pl_bpf_mark *s = h->skel;
	const struct {
		struct bpf_map *map;
		const char *name;
	} maps[] = { { s->maps.pl_mark_heads, "flows" }, { s->maps.pl_mark_cells, "cells" },
		{ s->maps.pl_mark_table, "table" }, { s->maps.pl_mark_state, "state" },
		{ s->maps.pl_mark_work, "work" } };
	char path[PL_PINS_PATH];
	int r = 0;

	for (size_t i = 0; h->o.pin != NULL && r == 0 && i < sizeof(maps) / sizeof(maps[0]); i++) {
		r = pl_pins_path(path, h->o.pin, maps[i].name);
		if (r == 0)
			r = bpf_map__set_pin_path(maps[i].map, path);
	}
	return r;
}

static int refuse_pins(const struct pl_hostmark *h, struct pl_diag *diag)
{
	return pl_diag_fail(diag, -EINVAL,
		"%s: the pins are of another number of flows, or of another release of pathline; give another folder, or remove this one",
		h->o.pin);
}

static int refused(const struct pl_hostmark *h, int r, struct pl_diag *diag)
{
	if (h->o.pin != NULL && r == -EINVAL)
		return refuse_pins(h, diag);
	return pl_program_refused(r, h->iface.link.name, PL_CAP_BPF | PL_CAP_NET_ADMIN,
		"alternate marking in the kernel", "the table of flows; ask for fewer by --flows",
		diag);
}

static void *map_one(const struct bpf_map *map, size_t *bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p;

	*bytes = ((size_t)bpf_map__max_entries(map) * bpf_map__value_size(map) + page - 1) / page *
		 page;
	p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Called before a program reads the word. */
static int open_ticker(struct pl_hostmark *h, struct pl_diag *diag)
{
	const struct pl_ticker_options o = { .tick = &h->table->tick,
		.unsure = &h->table->unsure,
		.period_ns = h->o.setup.period_ns,
		.guard_ns = h->o.setup.guard_ns };

	return h->o.setup.ticks != 0 ? pl_ticker_new(&h->ticker, &o, diag) : 0;
}

static int map_memory(struct pl_hostmark *h, struct pl_diag *diag)
{
	size_t page;

	h->heads = map_one(h->skel->maps.pl_mark_heads, &h->heads_bytes);
	h->cells = map_one(h->skel->maps.pl_mark_cells, &h->cells_bytes);
	h->table = map_one(h->skel->maps.pl_mark_table, &page);
	if (h->heads != NULL && h->cells != NULL && h->table != NULL) {
		if (h->table->seed == 0)
			h->table->seed = pl_hash_seed();
		return 0;
	}
	return pl_diag_fail(
		diag, -ENOMEM, "%s: no memory to read its flows: %s", h->o.dev, strerror(errno));
}

static int load(struct pl_hostmark *h, struct pl_diag *diag)
{
	const char *name = h->iface.link.name;
	pl_program_voice before;
	int r = pl_program_frames(name, false, &h->o.setup.raw, diag);

	if (r < 0)
		return r;
	h->o.setup.each = h->o.setup.by != PL_MARK_BY_FLOW && !any_packet(h->o.rules);
	before = pl_program_hush();
	h->skel = pl_bpf_mark__open();
	r = h->skel == NULL ? -errno : set_up(h);
	if (r == 0)
		r = set_up_pins(h);
	if (r == 0)
		r = pl_bpf_mark__load(h->skel);
	pl_program_talk(before);
	return r < 0 ? refused(h, r, diag) : map_memory(h, diag);
}

/* ---- what outlives the process ---- */

static int save_state(struct pl_hostmark *h)
{
	const uint32_t zero = 0;

	return bpf_map_update_elem(
		bpf_map__fd(h->skel->maps.pl_mark_state), &zero, &h->state, BPF_ANY);
}

/* Continues from another process's state, or begins. */
static int begin_state(struct pl_hostmark *h, struct pl_diag *diag)
{
	const struct pl_mark_state own = { .version = PL_MARK_PINS_VERSION,
		.setup = h->o.setup,
		.rules = pl_hash(h->o.rules->rules, sizeof(h->o.rules->rules), 0),
		.flows_max = h->o.flows_max,
		.leaving = h->o.leaving,
		.role = (uint16_t)h->o.role };
	const uint32_t zero = 0;
	struct pl_mark_state *s = &h->state;

	if (bpf_map_lookup_elem(bpf_map__fd(h->skel->maps.pl_mark_state), &zero, s) < 0)
		*s = (struct pl_mark_state){ 0 };
	if (s->version == 0) {
		*s = own;
		h->fresh = h->o.pin != NULL;
		return save_state(h);
	}
	if (s->version != PL_MARK_PINS_VERSION)
		return refuse_pins(h, diag);
	if (memcmp(&s->setup, &own.setup, sizeof(own.setup)) == 0 && s->rules == own.rules &&
		s->leaving == own.leaving && s->role == own.role) {
		/* A marker that replaces another one marks from its first packet on. */
		h->resumed = s->next_block != 0;
		h->skel->bss->pl_mark_armed = h->resumed;
		return 0;
	}
	return pl_diag_fail(diag, -EINVAL,
		"%s: the pins are of another command or direction, or have another period, method, bit, flows or rules; give another folder, or end its program: rm -r %s",
		h->o.pin, h->o.pin);
}

uint64_t pl_hostmark_next(const struct pl_hostmark *h)
{
	return h->state.next_block;
}

void pl_hostmark_set_next(struct pl_hostmark *h, uint64_t block)
{
	h->state.next_block = block;
	if (h->o.pin != NULL)
		(void)save_state(h);
}

struct pl_mark_watch *pl_hostmark_watch(struct pl_hostmark *h)
{
	return &h->state.watch;
}

bool pl_hostmark_resumed(const struct pl_hostmark *h)
{
	return h->resumed;
}

bool pl_hostmark_is_anew(const struct pl_hostmark *h)
{
	return h->resumed && h->anew;
}

/* ---- attaching ---- */

static void detach(struct pl_hostmark *h)
{
	pl_xdp_detach(h->xdp);
	pl_tc_detach(h->tc);
	if (h->link_fd >= 0)
		close(h->link_fd);
	h->xdp = NULL;
	h->tc = NULL;
	h->link_fd = -1;
	h->iface.data_fd = -1;
}

static int attach(struct pl_hostmark *h, struct pl_diag *diag)
{
	const char *name = h->iface.link.name;
	const int fd = bpf_program__fd(program_of(h));
	int r;

	r = h->o.pin != NULL ? pl_pins_link(h->o.pin, fd, name, diag) : -ENOENT;
	if (r >= 0) {
		/* The link replaced the old program by this one between two packets. */
		h->link_fd = r;
		h->iface.data_fd = h->held_fd;
		return 0;
	}
	if (r != -ENOENT)
		return r;
	r = h->o.xdp ? pl_xdp_attach(&h->xdp, name, fd, PL_XDP_NATIVE, h->o.rights, diag)
		     : pl_tc_attach(&h->tc, name, fd,
			       h->o.leaving || h->o.role == PL_HOSTMARK_MARKER ? PL_TC_OUT
									       : PL_TC_IN,
			       h->o.rights, diag);
	h->anew = r == 0;
	if (r == 0 && h->o.pin != NULL)
		r = pl_pins_keep(h->o.pin, pl_tc_link(h->tc), diag);
	if (r < 0) {
		detach(h);
		return r;
	}
	h->iface.data_fd = h->held_fd;
	return 0;
}

static int again(struct pl_iface *iface, struct pl_diag *diag)
{
	return attach((struct pl_hostmark *)iface, diag);
}

static void lost(struct pl_iface *iface)
{
	detach((struct pl_hostmark *)iface);
}

static const struct pl_iface_ops ops = { .lost = lost, .again = again };

/* ---- open and close ---- */

static int open_memory(struct pl_hostmark *h, struct pl_diag *diag)
{
	h->processors = libbpf_num_possible_cpus();
	h->held_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->processors > 0 && h->held_fd >= 0)
		return 0;
	return pl_diag_fail(diag, -ENOMEM, "%s: no memory to read its flows", h->o.dev);
}

static int check(const struct pl_hostmark_options *o, struct pl_diag *diag)
{
	if (o->pin != NULL && o->xdp)
		return pl_diag_fail(diag, -EINVAL,
			"%s: only a meter of traffic control can be pinned, not one of XDP",
			o->dev);
	return o->pin != NULL ? pl_pins_folder(o->pin, diag) : 0;
}

int pl_hostmark_open(
	struct pl_hostmark **ret, const struct pl_hostmark_options *o, struct pl_diag *diag)
{
	struct pl_hostmark *h;
	int r = check(o, diag);

	if (r < 0)
		return r;
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return pl_diag_fail(diag, -ENOMEM, "%s", strerror(ENOMEM));
	pl_iface_init(&h->iface);
	h->link_fd = h->held_fd = -1;
	h->o = *o;
	if (h->o.flows_max == 0)
		h->o.flows_max = PL_HOSTMARK_FLOWS;
	h->o.setup.flows = h->o.flows_max;
	h->o.setup.slots = 2 * h->o.flows_max;
	/* Not a port that receives by a socket. */
	h->iface.port.mode = PL_PORT_SEND;
	r = pl_iface_open(&h->iface, o->dev, &ops, diag);
	if (r == 0)
		r = open_memory(h, diag);
	if (r == 0)
		r = load(h, diag);
	if (r == 0)
		r = begin_state(h, diag);
	if (r == 0)
		r = open_ticker(h, diag);
	if (r == 0)
		r = attach(h, diag);
	if (r < 0) {
		pl_hostmark_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

void pl_hostmark_close(struct pl_hostmark *h)
{
	if (h == NULL)
		return;
	detach(h);
	/* A marker that failed before its first block leaves no pins for the next one. */
	if (h->fresh && h->state.next_block == 0)
		pl_pins_remove(h->o.pin);
	pl_ticker_free(h->ticker);
	if (h->heads != NULL)
		(void)munmap(h->heads, h->heads_bytes);
	if (h->cells != NULL)
		(void)munmap(h->cells, h->cells_bytes);
	if (h->table != NULL)
		(void)munmap(h->table, (size_t)sysconf(_SC_PAGESIZE));
	pl_bpf_mark__destroy(h->skel);
	pl_iface_close(&h->iface);
	if (h->held_fd >= 0)
		close(h->held_fd);
	free(h);
}

const char *pl_hostmark_name(const struct pl_hostmark *h)
{
	return h->o.dev;
}

int pl_hostmark_unnoted(const struct pl_hostmark *h)
{
	return pl_tc_unnoted(h->tc);
}

int pl_hostmark_fd(const struct pl_hostmark *h)
{
	return h->iface.port.fd;
}

int pl_hostmark_turn(struct pl_hostmark *h, struct pl_diag *diag)
{
	const int r = pl_iface_wait(&h->iface, 0, diag);

	return r < 0 ? r : 0;
}

bool pl_hostmark_attached(const struct pl_hostmark *h)
{
	return h->iface.data_fd >= 0;
}

void pl_hostmark_arm(struct pl_hostmark *h)
{
	__atomic_store_n(&h->skel->bss->pl_mark_armed, 1, __ATOMIC_RELEASE);
}

/* ---- without a clock ---- */

int pl_hostmark_start_ticks(struct pl_hostmark *h, struct pl_diag *diag)
{
	return h->ticker != NULL ? pl_ticker_start(h->ticker, diag) : 0;
}

struct pl_ticker_state pl_hostmark_tick(struct pl_hostmark *h)
{
	return h->ticker != NULL ? pl_ticker_set(h->ticker) : (struct pl_ticker_state){ 0 };
}

/* ---- reading ---- */

static const struct pl_mark_cell *cell_of(
	const struct pl_hostmark *h, uint32_t slot, int processor, uint64_t block)
{
	return &h->cells[pl_mark_cell_at(slot, h->o.setup.slots, (uint32_t)processor, block)];
}

void pl_hostmark_drop_behind(struct pl_hostmark *h, uint64_t last)
{
	const size_t n = (size_t)h->o.setup.slots * (size_t)h->processors * PL_MARK_KEPT;

	for (size_t i = 0; i < n; i++) {
		if (__atomic_load_n(&h->cells[i].block, __ATOMIC_RELAXED) > last)
			__atomic_store_n(&h->cells[i].block, 0, __ATOMIC_RELAXED);
	}
	/* The ticker takes all blocks up to that of the old time for uncertain. */
	if (__atomic_load_n(&h->table->unsure, __ATOMIC_RELAXED) > last)
		__atomic_store_n(&h->table->unsure, last, __ATOMIC_RELAXED);
}

/* Last block with a packet of the flow. */
static uint64_t newest(const struct pl_hostmark *h, uint32_t slot)
{
	uint64_t block = 0;

	for (int p = 0; p < h->processors; p++) {
		for (uint32_t i = 0; i < PL_MARK_KEPT; i++) {
			const uint64_t one =
				__atomic_load_n(&cell_of(h, slot, p, i)->block, __ATOMIC_RELAXED);

			block = one > block ? one : block;
		}
	}
	return block;
}

static void read_flow(
	struct pl_hostmark *h, uint32_t slot, uint64_t block, pl_hostmark_take *take, void *arg)
{
	struct pl_mark_cell sum = { .block = block };
	bool overwritten = false;

	for (int p = 0; p < h->processors; p++) {
		const struct pl_mark_cell *cell = cell_of(h, slot, p, block);

		if (h->o.setup.method == PL_MARK_PULSE)
			pl_mark_cell_add_pulse(&sum, cell);
		else
			pl_mark_cell_add(&sum, cell);
		/* Read now: a packet of a later block may have come meanwhile. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		overwritten =
			overwritten || __atomic_load_n(&cell->block, __ATOMIC_RELAXED) > block;
	}
	take(arg, &h->heads[slot].key, &sum, overwritten);
}

static bool becomes(struct pl_mark_head *head, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(
		&head->state, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Forgets idle flows in two steps, as mark/packet.h describes: flows that became DYING together
 * become FREE together. Returns true when the slot is still a flow. */
static bool keep(struct pl_hostmark *h, uint32_t slot, uint64_t block, uint32_t idle, bool forget)
{
	struct pl_mark_head *head = &h->heads[slot];

	if (newest(h, slot) + idle >= block) {
		(void)becomes(head, PL_MARK_DYING, PL_MARK_READY);
		return true;
	}
	if (forget && becomes(head, PL_MARK_DYING, PL_MARK_FREE))
		(void)__atomic_sub_fetch(&h->table->n, 1, __ATOMIC_RELAXED);
	else if (h->dying_ns == 0)
		(void)becomes(head, PL_MARK_READY, PL_MARK_DYING);
	h->dying += head->state == PL_MARK_DYING;
	return false;
}

void pl_hostmark_read(
	struct pl_hostmark *h, uint64_t block, uint32_t idle, pl_hostmark_take *take, void *arg)
{
	const uint64_t now_ns = pl_clock_mono_ns();
	const bool forget = h->dying_ns != 0 && now_ns - h->dying_ns > DYING_NS;

	h->flows = h->dying = 0;
	for (uint32_t slot = 0; slot < h->o.setup.slots; slot++) {
		const uint32_t state = __atomic_load_n(&h->heads[slot].state, __ATOMIC_ACQUIRE);

		if (state != PL_MARK_READY && state != PL_MARK_DYING)
			continue;
		read_flow(h, slot, block, take, arg);
		h->flows += keep(h, slot, block, idle, forget);
	}
	if (h->dying == 0 || forget)
		h->dying_ns = 0;
	else if (h->dying_ns == 0)
		h->dying_ns = pl_clock_mono_ns();
}

uint64_t pl_hostmark_flows(const struct pl_hostmark *h)
{
	return h->flows;
}

void pl_hostmark_counts(struct pl_hostmark *h, struct pl_mark_counts *ret)
{
	struct pl_each each;

	memset(ret, 0, sizeof(*ret));
	/* Counts come first in each value. */
	if (pl_each_open(&each, bpf_map__fd(h->skel->maps.pl_mark_work),
		    bpf_map__value_size(h->skel->maps.pl_mark_work)) == 0)
		(void)pl_each_add(&each, 0, 0, ret, sizeof(*ret) / sizeof(uint64_t));
	pl_each_close(&each);
}
