/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the detector into the kernel and reads its events, frames and counts. */
#include "detect/kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/shares.h"
#include "bpf/detect.skel.h"
#include "detect/direct.h"
#include "detect/layouts.h"
#include "netio/caps.h"
#include "netio/program.h"

#define RING_DEFAULT (4u << 20)
#define LOG_BYTES    (64u << 10)

struct pl_kernel {
	struct pl_bpf_detect *skel;
	struct pl_xdp_program program;
	struct pl_kernel_table tables[PL_CORE_T_MAX];
	size_t table_bytes[PL_CORE_T_MAX];
	struct ring_buffer *events, *frames;
	struct pl_direct direct; /* parser that finds which layout a packet needs */
	struct pl_core_scratch scratch;
	struct pl_shares layouts; /* sources of the layouts that the program has */
	uint64_t layouts_full;
	unsigned int queues;
	struct pl_each work; /* the map pl_work */
	struct pl_event_batch *out;
	uint64_t events_lost; /* events without room in the caller's batch */
	unsigned int n_events, events_left;
	struct pl_batch *in;
	struct pl_kernel_frame_of *of;
	uint8_t *arena; /* PL_BATCH_MAX frames */
};

static const struct {
	const char *name;
	size_t set_bytes;
} tables[PL_CORE_T_MAX] = {
#define TABLE(name, help) { #name, sizeof(struct pl_core_##name##_set) },
	PL_CORE_TABLES(TABLE)
#undef TABLE
};

static unsigned int queues_of(const struct pl_kernel_options *o)
{
	return o->queues == 0 ? 1 : o->queues;
}

static uint32_t ring_bytes(uint32_t asked)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE), n = page;

	if (asked == 0)
		asked = RING_DEFAULT;
	while (n < asked && n < UINT32_C(1) << 31)
		n *= 2;
	return n;
}

uint64_t pl_kernel_memory(const struct pl_kernel_options *o)
{
	uint64_t bytes = ring_bytes(o->events_bytes) + ring_bytes(o->frames_bytes) +
			 PL_KERNEL_SENDERS * sizeof(struct pl_kernel_sender);

	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++)
		bytes += (uint64_t)queues_of(o) * (o->rules->mask[i] + UINT64_C(1)) *
			 tables[i].set_bytes;
	/* Number of paths cached by each queue, and by the parser that searches for layouts. */
	bytes += (queues_of(o) + UINT64_C(1)) * PL_FAST_MEMOS * sizeof(struct pl_fast_memo);
	/* Scratch and counters of each processor: a frame, and some. */
	bytes += pl_shares_memory(PL_CORE_LAYOUTS);
	return bytes + (uint64_t)libbpf_num_possible_cpus() * (PL_KERNEL_FRAME_MAX + 8192);
}

static struct bpf_map *table_map(struct pl_bpf_detect *skel, unsigned int i)
{
	char name[32];

	snprintf(name, sizeof(name), "pl_table_%s", tables[i].name);
	return bpf_object__find_map_by_name(skel->obj, name);
}

static int set_sizes(struct pl_bpf_detect *skel, const struct pl_kernel_options *o)
{
	int r = bpf_map__set_max_entries(skel->maps.pl_events, ring_bytes(o->events_bytes));

	if (r == 0)
		r = bpf_map__set_max_entries(skel->maps.pl_frames, ring_bytes(o->frames_bytes));
	if (r == 0)
		r = bpf_map__set_max_entries(skel->maps.pl_xsks, queues_of(o));
	if (r == 0)
		r = bpf_map__set_max_entries(skel->maps.pl_memos, queues_of(o) * PL_FAST_MEMOS);
	for (unsigned int i = 0; r == 0 && i < PL_CORE_T_MAX; i++) {
		uint64_t n = queues_of(o) * (o->rules->mask[i] + UINT64_C(1));

		r = n > UINT32_MAX ? -EINVAL
				   : bpf_map__set_max_entries(table_map(skel, i), (uint32_t)n);
	}
	return r;
}

/* True for the statistics that the verifier prints last. */
static bool statistics(const char *line)
{
	static const char *const begin[] = { "processed ", "verification time ", "stack depth " };

	for (unsigned int i = 0; i < sizeof(begin) / sizeof(begin[0]); i++) {
		if (strncmp(line, begin[i], strlen(begin[i])) == 0)
			return true;
	}
	return false;
}

/* Last line of the verifier before its statistics. */
static void verdict(const char *log, char *dst, size_t cap)
{
	const char *end = log + strlen(log), *line = end;

	*dst = '\0';
	while (line > log) {
		const char *stop = line;

		while (stop > log && stop[-1] == '\n')
			stop--;
		line = stop;
		while (line > log && line[-1] != '\n')
			line--;
		if (stop > line && !statistics(line)) {
			snprintf(dst, cap, ": %.*s", (int)(stop - line < 200 ? stop - line : 200),
				line);
			return;
		}
	}
}

static int refused(int r, const char *log, struct pl_diag *diag)
{
	char missing[128], said[256];
	uint64_t caps = pl_caps_missing(PL_CAP_BPF | PL_CAP_NET_ADMIN);

	if ((r == -EPERM || r == -EACCES) && caps != 0) {
		pl_diag_set(diag, "the kernel's detector needs %s",
			pl_caps_text(caps, missing, sizeof(missing)));
		return -EPERM;
	}
	if (r == -ENOMEM) {
		pl_diag_set(diag, "no memory for the tables of the kernel's detector");
		return r;
	}
	verdict(log, said, sizeof(said));
	pl_diag_set(diag, "this kernel rejects the detector (%s)%s", strerror(-r), said);
	return -ENOTSUP;
}

/* Log level with which the verifier explains its refusal without each instruction that it followed:
 * those would fill any buffer, and old kernels then say only that it is full. */
#define LOG_REFUSAL 4

static int load(struct pl_kernel *k, const struct pl_kernel_options *o, struct pl_diag *diag)
{
	char *log = calloc(1, LOG_BYTES);
	pl_program_voice before;
	int r;

	if (log == NULL)
		return -ENOMEM;
	before = pl_program_hush();
	k->skel = pl_bpf_detect__open();
	r = k->skel == NULL ? -errno : set_sizes(k->skel, o);
	if (r == 0) {
		struct bpf_program *programs[] = { k->skel->progs.pl_detect,
			k->skel->progs.pl_detect_general, k->skel->progs.pl_detect_changed };

		/* Whichever is refused leaves its words there. */
		for (unsigned int i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
			bpf_program__set_log_buf(programs[i], log, LOG_BYTES);
			bpf_program__set_log_level(programs[i], LOG_REFUSAL);
		}
		r = pl_bpf_detect__load(k->skel);
	}
	pl_program_talk(before);
	if (r < 0)
		r = refused(r, log, diag);
	free(log);
	return r;
}

static int map_tables(struct pl_kernel *k, const struct pl_core_rules *rules)
{
	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++) {
		size_t page = (size_t)sysconf(_SC_PAGESIZE);
		uint32_t n = k->queues * (rules->mask[i] + 1);
		void *p;

		k->table_bytes[i] = (n * tables[i].set_bytes + page - 1) / page * page;
		p = mmap(NULL, k->table_bytes[i], PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_map__fd(table_map(k->skel, i)), 0);
		if (p == MAP_FAILED)
			return -errno;
		k->tables[i] = (struct pl_kernel_table){ p, n };
	}
	return 0;
}

static int set_profiles(struct pl_kernel *k, const struct pl_decode_options *decode)
{
	const struct pl_kernel_prefix *key;
	int fd = bpf_map__fd(k->skel->maps.pl_profiles);

	k->skel->bss->pl_control.profile = k->direct.profiles[0].profile;
	for (unsigned int i = 0; i < decode->n_profiles; i++) {
		const struct pl_direct_profile *p = &k->direct.profiles[i + 1];
		struct pl_kernel_prefix prefix = { p->prefix_bits, p->prefix };

		key = &prefix;
		if (bpf_map_update_elem(fd, key, &p->profile, BPF_ANY) < 0)
			return -errno;
	}
	k->skel->bss->pl_control.profiles = decode->n_profiles > 0;
	return 0;
}

static void take_event(struct pl_kernel *k, const void *data, size_t size)
{
	struct pl_event_batch *out = k->out;

	if (size < sizeof(struct pl_event))
		return;
	if (out->n == out->cap && out->flush != NULL)
		out->flush(out, out->flush_arg);
	if (out->n == out->cap) {
		k->events_lost++;
		return;
	}
	memcpy(&out->events[out->n++], data, sizeof(struct pl_event));
	k->n_events++;
}

/* Takes as many events as the ring held at the beginning. A negative result ends the loop, behind
 * the present event. */
static int on_event(void *arg, void *data, size_t size)
{
	struct pl_kernel *k = arg;

	take_event(k, data, size);
	return --k->events_left == 0 ? -ENOBUFS : 0;
}

/* Counts bytes of a sender that were taken out of the ring. */
static void taken(struct pl_kernel *k, uint32_t sender, size_t size)
{
	struct pl_kernel_sender *s = &k->skel->bss->pl_senders[sender % PL_KERNEL_SENDERS];

	__atomic_store_n(&s->taken, s->taken + pl_kernel_ring_room(size), __ATOMIC_RELAXED);
}

static int on_frame(void *arg, void *data, size_t size)
{
	struct pl_kernel *k = arg;
	const struct pl_kernel_frame *f = data;
	struct pl_kernel_frame_of *of = &k->of[k->in->n];
	uint8_t *bytes;

	if (size < sizeof(*f))
		return 0;
	taken(k, f->sender, size);
	if (f->len > size - sizeof(*f) || f->len > PL_KERNEL_FRAME_MAX)
		return 0;
	if (f->len == 0 && size < sizeof(*f) + sizeof(of->numbered))
		return 0;
	*of = (struct pl_kernel_frame_of){ .settled = f->cause == PL_ESCALATION_NONE,
		.layout = f->cause == PL_ESCALATION_LAYOUT,
		.number = (uint8_t)f->number,
		.queue = f->queue };
	if (f->len == 0)
		memcpy(&of->numbered, f + 1, sizeof(of->numbered));
	bytes = k->arena + (size_t)k->in->n * PL_KERNEL_FRAME_MAX;
	memcpy(bytes, f + 1, f->len);
	k->in->pkts[k->in->n] = (struct pl_packet){
		.data = bytes,
		.len = f->len,
		.wire_len = f->wire_len,
		.ts_ns = f->ts_ns,
		.link = PL_LINK_ETHERNET,
	};
	/* Negative: this one is taken, and no more. */
	return ++k->in->n == PL_BATCH_MAX ? -ENOBUFS : 0;
}

/* True when flows' own numbers are of interest: user space follows them. */
static bool follows(const struct pl_core_rules *rules)
{
	return (rules->on & (1u << PL_EVENT_PACKET_LOSS | 1u << PL_EVENT_REORDERING)) != 0;
}

static int prepare(struct pl_kernel *k, const struct pl_kernel_options *o)
{
	struct pl_kernel_control *control = &k->skel->bss->pl_control;
	int r = map_tables(k, o->rules);

	if (r < 0)
		return r;
	k->events = ring_buffer__new(bpf_map__fd(k->skel->maps.pl_events), on_event, k, NULL);
	k->frames = ring_buffer__new(bpf_map__fd(k->skel->maps.pl_frames), on_frame, k, NULL);
	r = pl_each_open(&k->work, bpf_map__fd(k->skel->maps.pl_work),
		bpf_map__value_size(k->skel->maps.pl_work));
	k->arena = malloc((size_t)PL_BATCH_MAX * PL_KERNEL_FRAME_MAX);
	if (k->events == NULL || k->frames == NULL || r < 0 || k->arena == NULL ||
		pl_shares_init(&k->layouts, PL_CORE_LAYOUTS) < 0)
		return -ENOMEM;
	pl_layouts_usual(&k->skel->bss->pl_layouts);
	pl_layouts_follow(&k->skel->bss->pl_layouts, follows(o->rules));
	k->skel->bss->pl_rules[0] = *o->rules;
	pl_fast_prepare(&k->skel->bss->pl_rules[0]);
	k->skel->bss->pl_rules[1] = k->skel->bss->pl_rules[0];
	control->frames_bytes = ring_bytes(o->frames_bytes);
	control->events_bytes = ring_bytes(o->events_bytes);
	control->max_latency_ns = k->direct.max_latency_ns;
	control->vxlan_ports = k->direct.vxlan_ports;
	control->to_sockets = o->to_sockets && !o->both;
	control->copy_all = o->both;
	r = set_profiles(k, o->decode);
	if (r < 0)
		return r;
	k->program = (struct pl_xdp_program){
		.prog_fd = bpf_program__fd(k->skel->progs.pl_detect),
		.xsks_fd = bpf_map__fd(k->skel->maps.pl_xsks),
		.counts_fd = bpf_map__fd(k->skel->maps.pl_filter_counts),
		.filter = &k->skel->bss->pl_filter,
	};
	/* Last: until now every report would have been escalated. */
	__atomic_store_n(&control->queues, k->queues, __ATOMIC_RELEASE);
	return 0;
}

int pl_kernel_open(struct pl_kernel **ret, const struct pl_kernel_options *o, struct pl_diag *diag)
{
	struct pl_kernel *k = calloc(1, sizeof(*k));
	int r;

	if (k == NULL)
		return -ENOMEM;
	k->queues = queues_of(o);
	r = k->queues > PL_KERNEL_QUEUES ? -EINVAL : pl_direct_init(&k->direct, o->decode);
	if (r == 0)
		r = load(k, o, diag);
	if (r == 0) {
		r = prepare(k, o);
		if (r < 0)
			pl_diag_set(diag, "the kernel's detector: %s", strerror(-r));
	}
	if (r < 0) {
		pl_kernel_close(k);
		return r;
	}
	*ret = k;
	return 0;
}

void pl_kernel_close(struct pl_kernel *k)
{
	if (k == NULL)
		return;
	ring_buffer__free(k->events);
	ring_buffer__free(k->frames);
	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++) {
		if (k->tables[i].sets != NULL)
			munmap(k->tables[i].sets, k->table_bytes[i]);
	}
	pl_bpf_detect__destroy(k->skel);
	pl_direct_done(&k->direct);
	pl_shares_done(&k->layouts);
	pl_each_close(&k->work);
	free(k->arena);
	free(k);
}

const struct pl_xdp_program *pl_kernel_program(const struct pl_kernel *k)
{
	return &k->program;
}

const struct pl_kernel_table *pl_kernel_tables(const struct pl_kernel *k)
{
	return k->tables;
}

unsigned int pl_kernel_queues(const struct pl_kernel *k)
{
	return k->queues;
}

struct pl_core_turn *pl_kernel_turn(struct pl_kernel *k, unsigned int queue)
{
	return &k->skel->bss->pl_turns[queue];
}

void pl_kernel_time(struct pl_kernel *k, uint64_t now_ns, uint64_t ts_ns)
{
	struct pl_kernel_control *control = &k->skel->bss->pl_control;

	__atomic_store_n(&control->now_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&control->ts_ns, ts_ns, __ATOMIC_RELAXED);
}

uint64_t pl_kernel_ts_ns(const struct pl_kernel *k)
{
	return k->skel->bss->pl_control.ts_ns;
}

const struct pl_core_rules *pl_kernel_rules_now(const struct pl_kernel *k)
{
	return &k->skel->bss->pl_rules[k->skel->bss->pl_control.active & 1];
}

void pl_kernel_rules(struct pl_kernel *k, const struct pl_core_rules *rules)
{
	struct pl_kernel_control *control = &k->skel->bss->pl_control;
	uint32_t next = 1 - (control->active & 1);
	struct pl_core_rules r = *rules;

	memcpy(r.secret, pl_kernel_rules_now(k)->secret, sizeof(r.secret));
	memcpy(r.mask, pl_kernel_rules_now(k)->mask, sizeof(r.mask));
	pl_fast_prepare(&r);
	k->skel->bss->pl_rules[next] = r;
	pl_layouts_follow(&k->skel->bss->pl_layouts, follows(&r));
	/* Pairs with the program's read of `active`: when the program sees the new value, it sees
	 * the complete rules. */
	__atomic_store_n(&control->active, next, __ATOMIC_RELEASE);
}

void pl_kernel_want(struct pl_kernel *k, const struct pl_kernel_wanted *w)
{
	struct pl_kernel_control *control = &k->skel->bss->pl_control;

	control->match = 0;
	control->match_flags = w->flags;
	control->match_node = w->node;
	control->match_node_set = w->node_set;
	control->match_addr = w->addr;
	control->sample = w->sample;
	__atomic_store_n(&control->match, w->match, __ATOMIC_RELEASE);
}

void pl_kernel_general(struct pl_kernel *k, bool on)
{
	__atomic_store_n(&k->skel->bss->pl_control.general, on, __ATOMIC_RELEASE);
}

/* Learns a layout, if its source's share and the places of its key have room. */
static bool learn(struct pl_kernel *k, uint64_t key, const struct pl_addr *source)
{
	const bool more = pl_shares_held(&k->layouts, source) < PL_KERNEL_LAYOUTS_SHARE;
	const int r = more ? pl_layouts_learn(&k->skel->bss->pl_layouts, key) : -ENOSPC;

	if (r == 0)
		(void)pl_shares_take(&k->layouts, source);
	k->layouts_full += r == -ENOSPC;
	return r == 0;
}

bool pl_kernel_learn(
	struct pl_kernel *k, const struct pl_packet *pkt, const struct pl_addr *exporter)
{
	struct pl_core_layouts *layouts = &k->skel->bss->pl_layouts;
	const struct pl_addr source = pl_addr_source(exporter);
	bool learned = false;

	/* The same parser, with the program's table, misses the same layout as the program. It runs
	 * twice, because header and stack may both be new. */
	for (int i = 0; i < 2; i++) {
		if (pl_direct_try(&k->direct, layouts, &k->scratch, pkt, 0) !=
				PL_ESCALATION_LAYOUT ||
			!learn(k, k->scratch.missing_key, &source))
			break;
		learned = true;
	}
	return learned;
}

unsigned int pl_kernel_events(struct pl_kernel *k, struct pl_event_batch *out)
{
	struct pl_kernel_control *control = &k->skel->bss->pl_control;

	k->out = out;
	k->n_events = 0;
	k->events_left = control->events_bytes / sizeof(struct pl_event) + 1;
	/* First of all: events put in from here on may stay, those there already will not. */
	__atomic_store_n(&control->events_round, control->events_round + 1, __ATOMIC_SEQ_CST);
	(void)ring_buffer__consume(k->events);
	return k->n_events;
}

unsigned int pl_kernel_frames(
	struct pl_kernel *k, struct pl_batch *ret, struct pl_kernel_frame_of *ret_of)
{
	k->in = ret;
	k->of = ret_of;
	ret->n = 0;
	(void)ring_buffer__consume(k->frames);
	return ret->n;
}

int pl_kernel_counters(struct pl_kernel *k, struct pl_kernel_counters *ret)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	/* Counters come first in the value, and are 64-bit words throughout. */
	r = pl_each_add(&k->work, 0, 0, ret, sizeof(*ret) / sizeof(uint64_t));
	if (r < 0)
		return r;
	ret->packets += ret->fast;
	ret->bytes += ret->fast_bytes;
	ret->settled += ret->fast;
	ret->core.reports += ret->fast;
	ret->core.hops += ret->fast_hops;
	ret->core.events_dropped += k->events_lost;
	ret->layouts_full += k->layouts_full;
	return 0;
}
