/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate marking in the kernel: test runs of the marker and the meter over a packet of one flow,
 * and over packets of 1 k and 64 k flows that are drawn, against programs that do
 * nothing. What counts is what a packet takes longer. Programs of loss-only are told their block, and
 * read no clock.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/complain.h"
#include "hostmark/hostmark.h"
#include "tests/bench/bench.h"
#include "tests/bench/mark_wire.h"
#include "tests/bench/turn.h"

#include "bpf/bench.skel.h" /* knows the types above only by name */
#include "bpf/mark.skel.h"

#define FLOWS  65536u
#define BYTES  142u /* of the frame: Ethernet, IPv4, UDP and a payload */
#define SEQ_AT 60u  /* in the payload */
#define SRC_AT 26u  /* IPv4's source address */

struct mark_bench {
	struct pl_bpf_bench *bare;
	struct pl_bpf_mark *skel, *untimed, *option;
	uint8_t frame[BYTES], frame6[BYTES];
	struct pl_turn turn;
	int subject, ceiling; /* programs */
};

static int measured(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct mark_bench *b = arg;

	b->turn.frags = true;
	return pl_turn_run(&b->turn, b->subject, budget_ns, ret);
}

static int least(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct mark_bench *b = arg;

	b->turn.frags = false;
	return pl_turn_run(&b->turn, b->ceiling, budget_ns, ret);
}

/* Without a clock: step marking, whose block is told once. option: of RFC 9343, put in and taken out. */
static int load_one(struct pl_bpf_mark **ret, bool ticks, bool option)
{
	const struct pl_mark_setup setup = { .period_ns = 1000000000,
		.guard_ns = 250000000,
		.from_ns = ticks ? 0 : 500000000,
		.to_ns = ticks ? 0 : 750000000,
		.method = ticks    ? PL_MARK_STEP
			  : option ? PL_MARK_DOUBLE
				   : PL_MARK_MULTIPLEXED,
		.place = option ? PL_MARK_IN_HOP : PL_MARK_IN_HEADER,
		.versions = (option ? 0u : PL_MARK_IP4) | PL_MARK_IP6,
		.colour = option ? 0 : 4,
		.flows = FLOWS,
		.slots = 2 * FLOWS,
		.ticks = ticks };
	struct pl_mark_table table = { .tick = UINT64_C(4000000) };
	struct pl_tap_rules rules = { 0 };
	struct pl_diag diag = { .text = "" };
	struct pl_bpf_mark *skel = *ret = pl_bpf_mark__open();
	const uint32_t zero = 0;
	int r;

	if (skel == NULL)
		return -errno;
	memcpy((void *)&skel->rodata->pl_mark_setup, &setup, sizeof(setup));
	(void)pl_tap_rules_add(&rules, "take", &diag);
	memcpy(skel->bss->pl_mark_rules.rules, rules.rules, sizeof(rules.rules));
	skel->bss->pl_mark_rules.n = rules.n;
	skel->bss->pl_mark_armed = 1;
	(void)bpf_program__set_autoload(skel->progs.pl_mark_there_and_back, !ticks);
	(void)bpf_map__set_max_entries(skel->maps.pl_mark_heads, 2 * FLOWS);
	(void)bpf_map__set_max_entries(skel->maps.pl_mark_cells,
		2 * FLOWS * (uint32_t)libbpf_num_possible_cpus() * PL_MARK_KEPT);
	r = pl_bpf_mark__load(skel);
	return r < 0 ? r
		     : bpf_map_update_elem(
			       bpf_map__fd(skel->maps.pl_mark_table), &zero, &table, BPF_ANY);
}

static int load(struct mark_bench *b)
{
	int r;

	b->bare = pl_bpf_bench__open_and_load();
	if (b->bare == NULL)
		return -errno;
	r = load_one(&b->skel, false, false);
	if (r == 0)
		r = load_one(&b->untimed, true, false);
	return r < 0 ? r : load_one(&b->option, false, true);
}

/* UDP over IPv4, and over IPv6; sums are not looked at. */
static void make_frame(struct mark_bench *b)
{
	static const uint8_t head[42] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 128,
		0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x1f, 0x90, 0x1f, 0x90, 0,
		108, 0, 0 };

	static const uint8_t head6[62] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0,
		0, 0, 0, 88, 17, 64, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xfd, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x1f, 0x90, 0x1f, 0x90, 0, 88, 0, 0 };

	memset(b->frame, 0, sizeof(b->frame));
	memcpy(b->frame, head, sizeof(head));
	memset(b->frame6, 0, sizeof(b->frame6));
	memcpy(b->frame6, head6, sizeof(head6));
}

static int measure(struct pl_bench_ctx *ctx, struct mark_bench *b, const char *name,
	const struct bpf_program *subject, uint32_t flows)
{
	const bool tc = subject != b->skel->progs.pl_mark_meter_xdp &&
			subject != b->untimed->progs.pl_mark_meter_xdp;
	const struct pl_bench_case c = { .name = name,
		.ceiling_name = "a program that does nothing",
		.subject = measured,
		.ceiling = least,
		.arg = b,
		.adds = true,
		/* So that all flows are in the table. */
		.warm_items = flows * UINT64_C(12) };

	b->subject = bpf_program__fd(subject);
	b->ceiling = bpf_program__fd(
		tc ? b->bare->progs.pl_bench_next_program : b->bare->progs.pl_bench_pass_only);
	b->turn = (struct pl_turn){ .bare = b->bare,
		.frame = subject == b->option->progs.pl_mark_there_and_back ? b->frame6 : b->frame,
		.frame_bytes = BYTES,
		.flows = flows,
		.tc = tc,
		.seq_at = SEQ_AT,
		.src_at = SRC_AT };
	return pl_bench_compare(ctx, &c);
}

static int run_all(struct pl_bench_ctx *ctx, struct mark_bench *b)
{
	const struct pl_bpf_mark *s = b->skel, *u = b->untimed;
	const struct {
		const char *name;
		const struct bpf_program *subject;
		uint32_t flows;
	} cases[] = { { "mark/marker", s->progs.pl_mark_marker, 0 },
		{ "mark/marker-loss-only", u->progs.pl_mark_marker, 0 },
		{ "mark/meter", s->progs.pl_mark_meter_in, 0 },
		{ "mark/meter-loss-only", u->progs.pl_mark_meter_in, 0 },
		{ "mark/meter-xdp", s->progs.pl_mark_meter_xdp, 0 },
		{ "mark/meter-xdp-loss-only", u->progs.pl_mark_meter_xdp, 0 },
		{ "mark/marker-and-edge", s->progs.pl_mark_there_and_back, 0 },
		{ "mark/marker-and-edge-option", b->option->progs.pl_mark_there_and_back, 0 },
		{ "mark/marker-1k-flows", s->progs.pl_mark_marker, 1024 },
		{ "mark/marker-64k-flows", s->progs.pl_mark_marker, 65536 },
		{ "mark/marker-loss-only-1k-flows", u->progs.pl_mark_marker, 1024 },
		{ "mark/marker-loss-only-64k-flows", u->progs.pl_mark_marker, 65536 },
		{ "mark/meter-1k-flows", s->progs.pl_mark_meter_in, 1024 },
		{ "mark/meter-64k-flows", s->progs.pl_mark_meter_in, 65536 },
		{ "mark/meter-xdp-1k-flows", s->progs.pl_mark_meter_xdp, 1024 },
		{ "mark/meter-xdp-64k-flows", s->progs.pl_mark_meter_xdp, 65536 } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(cases) / sizeof(cases[0]); i++)
		r = measure(ctx, b, cases[i].name, cases[i].subject, cases[i].flows);
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	static struct mark_bench b;
	int r;

	memset(&b, 0, sizeof(b));
	make_frame(&b);
	r = load(&b);
	if (r < 0)
		pl_complain("benchmark mark: the programs do not load: %s", strerror(-r));
	else
		r = run_all(ctx, &b);
	pl_bpf_mark__destroy(b.skel);
	pl_bpf_mark__destroy(b.untimed);
	pl_bpf_mark__destroy(b.option);
	pl_bpf_bench__destroy(b.bare);
	return r == 0 ? pl_mark_wire_run(ctx) : r;
}

const struct pl_bench pl_bench_mark = {
	.name = "mark",
	.summary = "alternate marking in the kernel: marker and meter, ns added to a packet (root)",
	.run = run,
};
