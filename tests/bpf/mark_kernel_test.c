/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs of alternate marking in the running kernel (test runs of tc and XDP), over random
 * packets: the marker changes the colour and nothing else, with checksums that are right when all
 * bytes are added up anew; meters count what comes, packets that are to be taken apart as what they
 * become; the edge clears. Blocks last an hour, so that a run is in one. Needs root; also run on
 * Linux 6.1, whose verifier is older (old_kernel.py).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "hostmark/hostmark.h"

#include "host_int_packets.h"
#include "mark_kernel_run.h"

#define PACKETS 3000

static void set_tos(struct packet *p, uint8_t tos)
{
	uint8_t *ip = p->data + p->network;

	if (p->v6)
		pl_mark_set_ip6(ip, tos);
	else
		ip[1] = tos;
	set_checks(p);
}

static uint8_t tos_of(const struct packet *p)
{
	const uint8_t *ip = p->data + p->network;

	return p->v6 ? (uint8_t)(get16(ip) >> 4) : ip[1];
}

static uint32_t ip_bytes(const struct packet *p)
{
	const uint8_t *ip = p->data + p->network;

	return p->v6 ? 40 + get16(ip + 4) : get16(ip + 2);
}

/* ---- tests ---- */

static void test_marker(void)
{
	static struct packet before, p, undone;
	const uint64_t block = block_now();
	struct pl_mark_cell sum;
	struct pl_mark_counts c;
	uint64_t bytes = 0;
	uint32_t wrong[4] = { 0 }, used = 0, flows;

	eq(load(PL_MARK_STEP, 0, FLOWS, "take"), 0, "the kernel takes the programs");
	for (uint32_t i = 0; i < PACKETS; i++) {
		make_packet(&before, true);
		p = before;
		used += (tos_of(&before) & 4) != 0;
		bytes += ip_bytes(&before);
		wrong[0] += run(skel->progs.pl_mark_marker, &p, 0) != TC_NEXT;
		wrong[1] += !checks_hold(&p);
		wrong[2] += (tos_of(&p) & 4u) != (block % 2) << 2;
		undone = p;
		set_tos(&undone, tos_of(&before));
		wrong[3] += !same(&undone, &before);
	}
	if (block != block_now()) {
		test_marker();
		return;
	}
	eq(wrong[0], 0, "the marker lets all packets go on");
	eq(wrong[1], 0, "with right checksums");
	eq(wrong[2], 0, "in the colour of the block");
	eq(wrong[3], 0, "and nothing else is changed");
	c = counts();
	eq(c.marker.packets, PACKETS, "it counts them");
	eq(c.marker.marked, PACKETS, "all as marked");
	eq(c.marker.in_use, used, "and those that had the bit before");
	flows = sum_flows(block, &sum);
	ok(flows > PACKETS * 9 / 10, "almost each is a flow: %u", flows);
	eq(sum.packets, PACKETS, "the block has all of them");
	eq(sum.bytes, bytes, "with their bytes, without padding and tags");
}

static void test_meter(void)
{
	static struct packet p;
	const uint64_t now = pl_clock_read(CLOCK_TAI), block = now / HOUR;
	const uint64_t other = now - block * HOUR < HOUR / 2 ? block - 1 : block + 1;
	const struct bpf_program *programs[3];
	struct pl_mark_cell sum, away;
	struct pl_mark_counts c;
	uint32_t wrong = 0;

	eq(load(PL_MARK_STEP, 0, FLOWS, "take"), 0, "the kernel takes the programs");
	programs[0] = skel->progs.pl_mark_meter_in;
	programs[1] = skel->progs.pl_mark_meter_out;
	programs[2] = skel->progs.pl_mark_meter_xdp;
	for (uint32_t i = 0; i < 1200; i++) {
		static struct packet before;
		const bool fits = i % 4 != 0;

		make_packet(&p, true);
		set_tos(&p, (uint8_t)((tos_of(&p) & ~4) | ((block + !fits) % 2) << 2));
		before = p;
		wrong += run(programs[i % 3], &p, 0) != (i % 3 == 2 ? 2 : TC_NEXT);
		wrong += !same(&p, &before);
	}
	if (now / HOUR != block_now() ||
		(block_now() * HOUR + HOUR / 2 > now) !=
			(block * HOUR + HOUR / 2 > pl_clock_read(CLOCK_TAI))) {
		test_meter();
		return;
	}
	eq(wrong, 0, "meters of tc and XDP let packets go on as they are");
	(void)sum_flows(block, &sum);
	(void)sum_flows(other, &away);
	c = counts();
	eq(sum.packets, 900, "those of the block's colour are counted in it");
	eq(away.packets, 300, "the others in the nearest block of theirs");
	eq(away.late + away.early, 300, "as late or early");
	eq(c.meter.packets, 1200, "all are seen");
	eq(c.meter.counted, 1200, "and counted");
	eq(c.meter.late + c.meter.early, 300, "some of them late or early");
}

static void test_segments(void)
{
	static struct packet p;
	struct pl_mark_cell sum;
	struct pl_mark_counts c;
	uint64_t bytes;

	eq(load(PL_MARK_DOUBLE, 8, FLOWS, "take"), 0, "the kernel takes the programs");
	do
		make_packet(&p, false);
	while (!p.tcp || p.padded || p.len < 1000);
	bytes = ip_bytes(&p) + 44u * (p.payload - p.network);
	(void)run(skel->progs.pl_mark_marker, &p, 45);
	(void)sum_flows(block_now(), &sum);
	c = counts();
	eq(sum.packets, 45, "a packet of 45 segments is counted as 45");
	eq(sum.bytes, bytes, "with the headers that each will have");
	eq(c.marker.packets, 45, "in the account too");
	eq(c.marker.pulses, 0, "and is no packet for delay");
	eq(tos_of(&p) & 8, 0, "nor has its bit");
}

static void test_pulse(uint32_t way)
{
	static struct packet one, p;
	const uint64_t block = block_now();
	const uint8_t plain = (uint8_t)(block % 2 << 2);
	struct pl_mark_cell sum;
	uint32_t pulses = 0, others = 0;

	eq(load(way, way == PL_MARK_DOUBLE ? 8 : 0, FLOWS, "take"), 0,
		"the kernel takes the programs");
	do
		make_packet(&one, false);
	while (one.v6);
	for (uint32_t i = 0; i < 500; i++) {
		const uint8_t want = way == PL_MARK_DOUBLE ? plain | 8 : plain ^ 4,
			      bits = way == PL_MARK_DOUBLE ? 12 : 4;
		uint8_t tos;

		p = one;
		(void)run(skel->progs.pl_mark_marker, &p, 0);
		tos = tos_of(&p) & bits;
		pulses += tos == want;
		others += tos == plain;
	}
	(void)sum_flows(block, &sum);
	if (block != block_now()) {
		test_pulse(way);
		return;
	}
	eq(pulses, 1, "one packet of a flow and block is for delay, method %u", way);
	eq(others, 499, "the others have the colour");
	eq(sum.pulses, 1, "it is counted");
	eq(sum.packets, 500, "as a packet of its block like the others");
}

/* Pulse marking: the first packet of the block is the pulse, and has the flow's count until it; the
 * meter's counts run in the same way. */
static void test_running(void)
{
	static struct packet one, p;
	const uint64_t now = pl_clock_read(CLOCK_TAI), block = now / HOUR;
	struct pl_mark_cell sum;
	struct pl_mark_counts c;
	uint32_t pulses = 0;

	eq(load(PL_MARK_PULSE, 0, FLOWS, "take"), 0, "the kernel takes the programs");
	do
		make_packet(&one, false);
	while (one.v6);
	set_tos(&one, 0);
	for (uint32_t i = 0; i < 100; i++) {
		p = one;
		(void)run(skel->progs.pl_mark_marker, &p, 0);
		pulses += tos_of(&p) == 4;
		pulses += tos_of(&p) != 4 && tos_of(&p) != 0 ? 1000 : 0;
	}
	(void)sum_flows(block, &sum);
	if (block != block_now()) {
		test_running();
		return;
	}
	eq(pulses, 1, "one packet is the pulse, the others have no bit");
	eq(sum.pulses, 1, "it is counted");
	eq(sum.packets, 1, "with the packets of the flow until it");
	eq(load(PL_MARK_PULSE, 0, FLOWS, "take"), 0, "the kernel takes the programs");
	for (uint32_t i = 0; i < 100; i++) {
		p = one;
		set_tos(&p, i == 41 ? 4 : 0);
		(void)run(i % 2 == 0 ? skel->progs.pl_mark_meter_in : skel->progs.pl_mark_meter_xdp,
			&p, 0);
	}
	(void)sum_flows(pl_mark_see_pulse(now, HOUR).block, &sum);
	c = counts();
	if (pl_mark_see_pulse(now, HOUR).block !=
		pl_mark_see_pulse(pl_clock_read(CLOCK_TAI), HOUR).block) {
		test_running();
		return;
	}
	eq(sum.packets, 42, "a meter has the packets until the pulse came");
	eq(sum.bytes, 42 * (uint64_t)ip_bytes(&one), "and their bytes");
	eq(c.meter.counted, 100, "all are counted");
	eq(c.meter.pulses, 1, "one of them as a pulse");
}

/* Many flows in a table that is full: each is found again, and has all of its packets. */
static void test_full(void)
{
	static struct packet one, p;
	struct pl_mark_cell sum;
	struct pl_mark_counts c;
	struct pl_mark_table t;
	uint32_t flows;

	eq(load(PL_MARK_STEP, 0, 1000, "take"), 0, "the kernel takes the programs");
	do
		make_packet(&one, false);
	while (one.v6);
	set_tos(&one, (uint8_t)(block_now() % 2 << 2));
	for (uint32_t i = 0; i < 3300; i++) {
		p = one;
		put16(p.data + p.network + 18, i % 1100);
		set_checks(&p);
		(void)run(skel->progs.pl_mark_meter_in, &p, 0);
	}
	flows = sum_flows(block_now(), &sum);
	c = counts();
	eq(flows, 1000, "the table takes as many flows as were asked for");
	eq(sum.packets, 3000, "all of whose packets are counted");
	eq(c.meter.overflow, 300, "those of the others are told");
	if (bpf_map_lookup_elem(bpf_map__fd(skel->maps.pl_mark_table), &(uint32_t){ 0 }, &t) < 0)
		abort();
	ok(t.n == 1000 && t.far > 0 && t.far < PL_MARK_PROBES,
		"it knows how far away from its place one is: %u", t.far);
}

/* A flow is looked for as far as one was ever put, and no further: packets of none, of which there may
 * be most, do not pass by all slots that once had a flow. */
static void test_far(void)
{
	static struct packet p;
	const uint32_t slots = 2 * FLOWS, zero = 0, far = 40;
	struct pl_mark_head head = { .state = PL_MARK_FREE };
	struct pl_mark_packet s = { 0 };
	struct pl_mark_table t = { 0 };
	struct pl_mark_key key;
	uint32_t at;

	eq(load(PL_MARK_STEP, 0, FLOWS, "take proto=udp"), 0, "the kernel takes the programs");
	do
		make_packet(&p, false);
	while (!p.tcp);
	(void)pl_mark_parse(p.data, p.data + p.len, false, &s);
	pl_mark_key(&s, PL_MARK_BY_FLOW, &key);
	at = pl_mark_slot_of(&key, 0, slots);
	for (uint32_t i = 0; i <= far; i++) {
		const uint32_t slot = (at + i) % slots;

		head.key = key;
		head.state = i < far ? PL_MARK_FREE : PL_MARK_READY;
		if (bpf_map_update_elem(
			    bpf_map__fd(skel->maps.pl_mark_heads), &slot, &head, BPF_ANY) < 0)
			abort();
	}
	(void)run(skel->progs.pl_mark_meter_in, &p, 0);
	eq(counts().meter.skipped, 1, "no flow was put there");
	t.far = far;
	if (bpf_map_update_elem(bpf_map__fd(skel->maps.pl_mark_table), &zero, &t, BPF_ANY) < 0)
		abort();
	(void)run(skel->progs.pl_mark_meter_in, &p, 0);
	eq(counts().meter.counted, 1, "one that was is found");
}

static void test_left_alone(void)
{
	static struct packet before, p;
	struct pl_mark_counts c;
	uint32_t changed = 0;

	eq(load(PL_MARK_STEP, 0, 8, "take proto=udp"), 0, "the kernel takes the programs");
	for (uint32_t i = 0; i < 400; i++) {
		make_packet(&before, false);
		switch (i % 4) {
		case 0: /* no IP */
			put16(before.data + 12, 0x0806);
			break;
		case 1: /* cut */
			while (before.len < 200)
				make_packet(&before, false);
			before.len = 60 + random_number(100);
			break;
		case 2: /* not chosen */
			while (!before.tcp)
				make_packet(&before, false);
			break;
		default: /* chosen; the table is full behind the eighth */
			while (before.tcp)
				make_packet(&before, false);
		}
		p = before;
		(void)run(skel->progs.pl_mark_marker, &p, 0);
		changed += i % 4 < 3 && !same(&p, &before);
	}
	c = counts();
	eq(changed, 0, "what is not chosen, not IP, or cut stays as it is");
	eq(c.marker.not_ip, 100, "packets that are not IP are counted");
	eq(c.marker.broken, 100, "cut ones too");
	eq(c.marker.skipped, 100, "and those that no rule chose");
	eq(c.marker.marked + c.marker.overflow, 100, "a full table leaves packets unmarked");
	ok(c.marker.marked >= 8 && c.marker.overflow > 0, "of flows that it has no room for");
}

static void test_fragments(void)
{
	static struct packet p;
	struct pl_mark_cell sum;
	struct pl_mark_counts c;
	uint32_t wrong = 0;

	eq(load(PL_MARK_STEP, 0, FLOWS, "take"), 0, "the kernel takes the programs");
	for (uint32_t i = 0; i < 3; i++) {
		do
			make_packet(&p, false);
		while (p.v6);
		put16(p.data + p.network + 6, i == 0 ? 0x2000 : i == 1 ? 0x2010 : 0x0020);
		set_tos(&p, 0);
		(void)run(skel->progs.pl_mark_marker, &p, 0);
		wrong += (tos_of(&p) & 4u) != (block_now() % 2) << 2;
		(void)run(skel->progs.pl_mark_meter_in, &p, 0);
	}
	c = counts();
	(void)sum_flows(block_now(), &sum);
	eq(wrong, 0, "all fragments have the colour");
	eq(c.marker.marked, 1, "the first is counted by the marker");
	eq(c.marker.fragments, 2, "the others are not");
	eq(c.meter.counted, 1, "nor by a meter");
	eq(c.meter.fragments, 2, "which counts them apart");
}

static void test_looks(void)
{
	static struct packet before, p;
	struct pl_mark_counts c;
	uint32_t changed = 0;

	eq(load(PL_MARK_STEP, 0, FLOWS, "take"), 0, "the kernel takes the programs");
	skel->bss->pl_mark_armed = 0;
	for (uint32_t i = 0; i < 100; i++) {
		make_packet(&before, false);
		set_tos(&before, i < 30 ? 4 : 0);
		p = before;
		(void)run(skel->progs.pl_mark_marker, &p, 0);
		changed += !same(&p, &before);
	}
	c = counts();
	eq(changed, 0, "before it begins a marker only looks");
	eq(c.marker.checked, 100, "at every packet");
	eq(c.marker.in_use, 30, "and tells which have the bit");
}

static void test_edge(void)
{
	static struct packet before, p;
	struct pl_mark_counts c;
	uint32_t wrong[3] = { 0 };

	eq(load(PL_MARK_DOUBLE, 8, FLOWS, "take"), 0, "the kernel takes the programs");
	for (uint32_t i = 0; i < 1000; i++) {
		make_packet(&before, true);
		set_tos(&before, (uint8_t)random_number(256));
		p = before;
		(void)run(i % 2 == 0 ? skel->progs.pl_mark_edge_out : skel->progs.pl_mark_edge_in,
			&p, 0);
		wrong[0] += tos_of(&p) != (tos_of(&before) & ~12);
		wrong[1] += !checks_hold(&p);
		set_tos(&p, tos_of(&before));
		wrong[2] += !same(&p, &before);
	}
	c = counts();
	eq(wrong[0], 0, "the edge clears both bits");
	eq(wrong[1], 0, "with right checksums");
	eq(wrong[2], 0, "and changes nothing else");
	eq(c.edge.packets, 1000, "it counts packets");
	eq(c.edge.cleared + c.edge.clean, 1000, "with marks and without");
	ok(c.edge.cleared > 600 && c.edge.clean > 150, "of both: %u", (unsigned int)c.edge.cleared);
}

/* The reserved flag as the marking bit: only IPv4 has it. */
static void test_reserved(void)
{
	static struct packet before, p;
	const uint64_t block = block_now();
	struct pl_mark_counts c;
	uint32_t wrong[4] = { 0 }, six = 0;

	colour = PL_MARK_RESERVED;
	eq(load(PL_MARK_STEP, 0, FLOWS, "take"), 0, "the kernel takes the programs");
	for (uint32_t i = 0; i < 600; i++) {
		uint8_t *flags;

		make_packet(&before, true);
		flags = before.data + before.network + 6;
		if (!before.v6 && i % 3 == 0)
			*flags |= 0x80;
		set_checks(&before);
		p = before;
		six += p.v6;
		(void)run(skel->progs.pl_mark_marker, &p, 0);
		flags = p.data + p.network + 6;
		wrong[0] += !p.v6 && *flags >> 7 != block % 2;
		wrong[1] += !checks_hold(&p);
		(void)run(skel->progs.pl_mark_meter_in, &p, 0);
		(void)run(i % 2 == 0 ? skel->progs.pl_mark_edge_out : skel->progs.pl_mark_edge_in,
			&p, 0);
		wrong[2] += !p.v6 && *flags >> 7 != 0;
		wrong[3] += !checks_hold(&p);
		if (!p.v6)
			*flags |= before.data[before.network + 6] & 0x80;
		set_checks(&p);
		wrong[3] += !same(&p, &before);
	}
	colour = 4;
	if (block != block_now()) {
		test_reserved();
		return;
	}
	c = counts();
	eq(wrong[0], 0, "the reserved flag of IPv4 has the colour");
	eq(wrong[1], 0, "with right checksums");
	eq(wrong[2], 0, "the edge clears it");
	eq(wrong[3], 0, "with right checksums, and nothing else is changed");
	eq(c.marker.no_place, six, "IPv6 has no such bit: the marker leaves it");
	eq(c.marker.marked, 600 - six, "and marks the others");
	eq(c.meter.unmarked, six, "a meter leaves it, too");
	eq(c.meter.counted, 600 - six, "and counts the others");
}

static void test_option(uint32_t in)
{
	static struct packet before, p, marked;
	const uint64_t block = block_now();
	const uint8_t kind = in == PL_MARK_IN_HOP ? 0 : 60;
	struct pl_mark_counts c;
	struct pl_mark_cell sum;
	uint32_t wrong[7] = { 0 }, flows;
	uint64_t bytes = 0;

	place = in;
	eq(load(PL_MARK_STEP, 0, FLOWS, "take"), 0, "the kernel takes the programs");
	for (uint32_t i = 0; i < 1000; i++) {
		struct pl_altmark option = { 0 };
		bool hop = false;

		make_six(&before, i, kind);
		p = before;
		wrong[0] += run(skel->progs.pl_mark_marker, &p, 0) != TC_NEXT;
		wrong[0] += p.len != before.len + 8;
		wrong[1] += !find_option(&p, &option, &hop) || hop != (kind == 0);
		wrong[2] += option.loss != block % 2 || option.delay;
		p.transport += 8;
		p.payload += 8;
		wrong[3] += !checks_hold(&p);
		bytes += ip_bytes(&p);
		marked = p;
		(void)run(i % 2 == 0 ? skel->progs.pl_mark_meter_in : skel->progs.pl_mark_meter_xdp,
			&p, 0);
		wrong[4] += !same(&p, &marked);
		if (i % 10 == 0) {
			/* Marked again it stays as long as it is. */
			(void)run(skel->progs.pl_mark_marker, &p, 0);
			wrong[4] += !same(&p, &marked);
		}
		(void)run(i % 2 == 0 ? skel->progs.pl_mark_edge_out : skel->progs.pl_mark_edge_in,
			&p, 0);
		wrong[5] += !same(&p, &before);
		(void)run(skel->progs.pl_mark_meter_out, &p, 0);
	}
	place = PL_MARK_IN_HEADER;
	if (block != block_now()) {
		test_option(in);
		return;
	}
	flows = sum_flows(block, &sum);
	c = counts();
	eq(wrong[0], 0, "all packets go on, 8 bytes longer");
	eq(wrong[1], 0, "with the option in its header, as another reader finds it");
	eq(wrong[2], 0, "which has the colour");
	eq(wrong[3], 0, "checksums are right");
	eq(wrong[4], 0, "meters change nothing, nor does a second marker grow it");
	eq(wrong[5], 0, "the edge makes of it what it was");
	eq(c.marker.marked, 1100, "all are marked");
	eq(c.marker.in_use, 100, "some were before");
	eq(c.meter.counted, 1000, "and counted");
	eq(c.meter.unmarked, 1000, "but not without the option");
	eq(c.edge.cleared, 1000, "the edge counts them");
	ok(flows > 950, "flows differ by their id: %u", flows);
	eq(sum.packets, 2100, "marker and meter count the same flows");
	ok(sum.bytes > 2 * bytes, "with the bytes of the option");
}

/* What the option cannot be put into, or is not whole, and one that somebody else put elsewhere. */
static void test_option_odd(void)
{
	static struct packet before, p;
	struct pl_mark_counts c;
	uint8_t *ip;
	uint32_t wrong = 0;

	place = PL_MARK_IN_DST;
	eq(load(PL_MARK_STEP, 0, FLOWS, "take"), 0, "the kernel takes the programs");
	place = PL_MARK_IN_HEADER;
	for (uint32_t i = 0; i < 100; i++) {
		/* Options hop by hop stand in front: no place behind the IPv6 header. */
		make_six(&before, 0, 0);
		add_header(&before, 0, 8);
		p = before;
		(void)run(skel->progs.pl_mark_marker, &p, 0);
		wrong += !same(&p, &before);
		/* An option of a wrong length. */
		make_six(&before, 0, 0);
		add_header(&before, 60, 8);
		ip = before.data + before.network;
		ip[42] = PL_MARK_OPTION_TYPE;
		ip[43] = 3;
		p = before;
		(void)run(skel->progs.pl_mark_marker, &p, 0);
		(void)run(skel->progs.pl_mark_meter_xdp, &p, 0);
		(void)run(skel->progs.pl_mark_edge_in, &p, 0);
		wrong += !same(&p, &before);
	}
	c = counts();
	do
		make_packet(&before, true);
	while (!before.v6 || !before.tagged);
	p = before;
	(void)run(skel->progs.pl_mark_marker, &p, 0);
	ok(same(&p, &before) && counts().marker.no_place == 101,
		"a VLAN tag in the frame leaves no place for the kernel to put an option in");
	eq(c.marker.no_place, 100, "a packet without a place for the option goes on unmarked");
	eq(c.marker.broken, 100, "so does one whose option is broken");
	eq(c.meter.broken, 100, "which no meter counts");
	eq(c.edge.broken, 100, "nor is it cleared");
	eq(wrong, 0, "all of them stay as they are");
	/* Behind another option of the header. */
	make_six(&before, 0, 0);
	add_header(&before, 0, 16);
	ip = before.data + before.network;
	memcpy(ip + 46, (const uint8_t[]){ PL_MARK_OPTION_TYPE, 4, 0x12, 0x34, 0x5c, 0 }, 6);
	p = before;
	(void)run(skel->progs.pl_mark_edge_in, &p, 0);
	memcpy(ip + 46, (const uint8_t[]){ 1, 4, 0, 0, 0, 0 }, 6);
	ok(same(&p, &before), "an option elsewhere in a header becomes padding");
}

/* Segment Routing: the option stands in front of the routing header, where each segment's end reads it
 * (RFC 9343 4), and the flow is the same behind them. */
static void test_segments_of_routes(uint32_t in)
{
	static struct packet before, p, marked;
	const uint64_t block = block_now();
	const uint8_t kind = in == PL_MARK_IN_HOP ? 0 : 60;
	struct pl_mark_counts c;
	struct pl_mark_cell sum;
	uint32_t wrong[4] = { 0 }, flows;

	place = in;
	eq(load(PL_MARK_STEP, 0, FLOWS, "take"), 0, "the kernel takes the programs");
	for (uint32_t i = 0; i < 200; i++) {
		struct pl_altmark option = { 0 };
		bool hop = false;
		const uint8_t *ip;

		make_six(&before, 0, 0);
		add_routing(&before);
		p = before;
		ip = p.data + p.network;
		(void)run(skel->progs.pl_mark_marker, &p, 0);
		wrong[0] += ip[6] != kind || ip[40] != PL_IP_ROUTING ||
			    !find_option(&p, &option, &hop) || option.loss != block % 2;
		(void)run(skel->progs.pl_mark_meter_in, &p, 0);
		end_segment(&p, 48);
		marked = p;
		(void)run(i % 2 == 0 ? skel->progs.pl_mark_meter_in : skel->progs.pl_mark_meter_xdp,
			&p, 0);
		wrong[1] += !same(&p, &marked);
		(void)run(skel->progs.pl_mark_edge_in, &p, 0);
		end_segment(&before, 40);
		wrong[2] += !same(&p, &before);
		/* Meters would look into Destination Options behind the routing header, whether there
		 * are others in front of it or not. */
		make_six(&before, 0, 0);
		add_header(&before, 60, 8);
		add_routing(&before);
		if (i % 2 == 0)
			add_header(&before, 60, 8);
		p = before;
		(void)run(skel->progs.pl_mark_marker, &p, 0);
		wrong[3] += same(&p, &before) != (kind == 60);
	}
	place = PL_MARK_IN_HEADER;
	if (block != block_now()) {
		test_segments_of_routes(in);
		return;
	}
	flows = sum_flows(block, &sum);
	c = counts();
	eq(wrong[0], 0, "the option stands in front of the routing header");
	eq(wrong[1], 0, "meters change nothing behind a segment's end");
	eq(wrong[2], 0, "the edge makes of it what it was");
	eq(wrong[3], 0, "with Destination Options behind, Hop-by-Hop Options alone are a place");
	eq(c.meter.counted, 400, "on both segments");
	eq(c.marker.no_place, kind == 60 ? 200 : 0);
	eq(sum.packets, kind == 60 ? 600 : 800, "in the flows of the marker");
	ok(flows > sum.packets / 4 && flows <= (kind == 60 ? 200 : 400),
		"whose destination is the last segment: %u", flows);
}

/* Beside options of other kinds: IOAM (RFC 9486), a router alert, single bytes of padding. Headers with more
 * options than are searched are told as unread, and not as without the mark. */
static void test_option_among(void)
{
	static const uint8_t ioam[20] = { 0x31, 18, 0, 0, 0, 123 }, alert[4] = { 5, 2 },
			     mark[6] = { PL_MARK_OPTION_TYPE, 4, 0x12, 0x34, 0x50, 0 };
	static const struct {
		uint32_t pads, padded; /* in front of IOAM, and at the end */
		bool alert, mark;
		uint64_t counted, unmarked, unread;
		const char *what;
	} rows[] = {
		{ 0, 0, false, true, 1, 0, 0, "behind IOAM" },
		{ 2, 0, true, true, 1, 0, 0, "behind padding, IOAM and a router alert" },
		{ 5, 0, true, true, 1, 0, 0, "as the eighth option" },
		{ 6, 0, true, true, 0, 0, 1, "as the ninth" },
		{ 6, 12, true, false, 0, 0, 1, "it may be the ninth" },
		{ 2, 2, true, false, 0, 1, 0, "and is nowhere" },
		{ 6, 0, true, false, 0, 1, 0, "and has no room" },
	};
	struct packet p;

	for (uint32_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const typeof(rows[0]) *row = &rows[i / 2];
		const uint32_t used = 2 + row->pads + 20 + (row->alert ? 4 : 0) +
				      (row->mark ? 6 : 0) + row->padded,
			       n = (used + 7) / 8 * 8;
		struct pl_mark_meter_counts c;
		uint8_t *o;

		place = PL_MARK_IN_HOP;
		eq(load(PL_MARK_STEP, 0, FLOWS, "take"), 0, "the kernel takes the programs");
		place = PL_MARK_IN_HEADER;
		make_six(&p, 0, 0);
		add_header(&p, 0, n);
		o = p.data + p.network + 42;
		memset(o, 0, n - 2);
		memcpy(o += row->pads, ioam, 20);
		o += 20;
		if (row->alert) {
			memcpy(o, alert, 4);
			o += 4;
		}
		if (row->mark)
			memcpy(o, mark, 6);
		(void)run(i % 2 == 0 ? skel->progs.pl_mark_meter_in : skel->progs.pl_mark_meter_xdp,
			&p, 0);
		c = counts().meter;
		ok(c.counted == row->counted && c.unmarked == row->unmarked &&
				c.unread == row->unread,
			"the option %s: %u counted, %u without it, %u unread", row->what,
			(unsigned int)c.counted, (unsigned int)c.unmarked, (unsigned int)c.unread);
	}
}

/* Options too many to be searched matter in packets that a rule chooses, and in no others: these are
 * skipped. */
static void test_unsearched(void)
{
	static const char *const rules[] = { "take", "take proto=udp dport=53",
		"take src=fd00::/64", "take proto=udp dport=54", "take proto=tcp",
		"take dst=fd01::/64" };
	struct packet p;

	for (uint32_t i = 0; i < 18; i++) {
		const struct bpf_program *of[3];
		struct pl_mark_counts c;

		place = PL_MARK_IN_HOP;
		eq(load(PL_MARK_STEP, 0, FLOWS, rules[i / 3]), 0, "the kernel takes the programs");
		place = PL_MARK_IN_HEADER;
		of[0] = skel->progs.pl_mark_meter_in;
		of[1] = skel->progs.pl_mark_edge_in;
		of[2] = skel->progs.pl_mark_marker;
		do
			make_six(&p, 0, 0);
		while (p.data[p.network + 6] != 17);
		memcpy(p.data + p.network + 8, (const uint8_t[16]){ 0xfd, [15] = 1 }, 16);
		memcpy(p.data + p.transport + 2, (const uint8_t[]){ 0, 53 }, 2);
		add_header(&p, 0, 24);
		memset(p.data + p.network + 42, 0, 22); /* single bytes of padding */
		(void)run(of[i % 3], &p, 0);
		c = counts();
		ok(c.meter.unread + c.edge.unread + c.marker.unread == (i / 3 < 3) &&
				c.meter.skipped + c.edge.skipped + c.marker.skipped == (i / 3 >= 3),
			"rule \"%s\", program %u", rules[i / 3], i % 3);
	}
}

/* RFC 1624 by hand: the header 4500 0054 0001 4000 4011 2696 from 10.0.0.1 to 10.0.0.2. */
static int datagrams; /* a socket */

static void send_datagram(void)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = { htonl(INADDR_LOOPBACK) }
	};

	if (sendto(datagrams, "x", 1, 0, (const struct sockaddr *)&to, sizeof(to)) != 1)
		abort();
}

static void send_once(
	void *arg, const struct pl_mark_key *key, const struct pl_mark_cell *cell, bool overwritten)
{
	(void)key;
	(void)cell;
	(void)overwritten;
	if ((*(uint32_t *)arg)++ == 0)
		send_datagram();
}

struct sum {
	uint64_t packets, most; /* flows */
	bool missed;            /* a block was overwritten before it was read */
};

static void add_packets(
	void *arg, const struct pl_mark_key *key, const struct pl_mark_cell *cell, bool overwritten)
{
	struct sum *sum = arg;

	(void)key;
	sum->packets += cell->packets;
	sum->missed = sum->missed || overwritten;
}

/* A packet comes to an idle flow while it is read: the flow is not forgotten with it. */
static void test_forget(void)
{
	static struct pl_tap_rules rules;
	struct pl_hostmark_options o = { .dev = "lo",
		.role = PL_HOSTMARK_METER,
		.rules = &rules,
		.setup = { .period_ns = 1000000,
			.guard_ns = 100000,
			.method = PL_MARK_STEP,
			.versions = PL_MARK_IP4 | PL_MARK_IP6,
			.colour = 4 } };
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct pl_diag diag = { .text = "" };
	struct pl_hostmark *h;
	struct sum sum = { 0 };
	uint64_t block;
	uint32_t reads = 0;

	if (unshare(CLONE_NEWNET) < 0)
		abort();
	datagrams = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (datagrams < 0 || ioctl(datagrams, SIOCSIFFLAGS, &up) < 0 ||
		pl_tap_rules_add(&rules, "take proto=udp", NULL) < 0)
		abort();
	if (!ok(pl_hostmark_open(&h, &o, &diag) == 0, "a meter on the loopback interface: %s",
		    diag.text))
		return;
	send_datagram();
	usleep(50000);
	block = pl_clock_read(CLOCK_TAI) / 1000000;
	pl_hostmark_read(h, block, 10, send_once, &reads);
	eq(reads, 1, "an idle flow is read, as the only one");
	eq(pl_hostmark_flows(h), 1, "and stays: a packet came meanwhile");
	while (sum.packets == 0 && block <= pl_clock_read(CLOCK_TAI) / 1000000 + 2)
		pl_hostmark_read(h, block++ - 1, UINT32_MAX, add_packets, &sum);
	eq(sum.packets, 1, "which is counted");
	usleep(50000);
	block = pl_clock_read(CLOCK_TAI) / 1000000;
	pl_hostmark_read(h, block, 10, add_packets, &sum);
	eq(pl_hostmark_flows(h), 0, "a flow that is idle is forgotten");
	/* Its slot is free for another one a second later; until then a packet takes it up. */
	send_datagram();
	usleep(1100000);
	pl_hostmark_read(h, block, 10, send_once, &reads);
	eq(pl_hostmark_flows(h), 1, "a packet that comes then makes it one again");
	reads = 0;
	block = pl_clock_read(CLOCK_TAI) / 1000000 + 50;
	pl_hostmark_read(h, block, 10, add_packets, &sum);
	usleep(1100000);
	pl_hostmark_read(h, block, 10, add_packets, &sum);
	pl_hostmark_read(h, block, 10, send_once, &reads);
	eq(reads, 0, "without one it is gone");
	pl_hostmark_close(h);
	close(datagrams);
}

/* Packets that several processors count while the flows are read: of ports that come and go, so that
 * flows are forgotten and their slots have other ones. */
#define SENDERS     3
#define CROWD_NS    UINT64_C(20000000)
#define CROWD_FLOWS 64u

struct crowd {
	uint64_t until_ns;
	uint32_t number;
};

static void *send_many(void *arg)
{
	const struct crowd *c = arg;
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (uint32_t i = 0; pl_clock_mono_ns() < c->until_ns; i++) {
		/* The same few ports for a while, on all processors. */
		const uint32_t window = (uint32_t)(pl_clock_mono_ns() / 300000000) * 37;
		const struct sockaddr_in to = { .sin_family = AF_INET,
			.sin_port = htons((uint16_t)(10000 + (window + i % 48) % 400)),
			.sin_addr = { htonl(INADDR_LOOPBACK) } };

		(void)sendto(fd, "x", 1, 0, (const struct sockaddr *)&to, sizeof(to));
		if (i % 64 == c->number)
			usleep(1000);
	}
	close(fd);
	return NULL;
}

/* A processor may stand still between the time of a packet and its count. */
static void read_next(struct pl_hostmark *h, uint64_t *next, struct sum *sum)
{
	if (*next + PL_MARK_KEPT / 2 <= pl_clock_read(CLOCK_TAI) / CROWD_NS)
		pl_hostmark_read(h, (*next)++, 10, add_packets, sum);
	sum->most = pl_hostmark_flows(h) > sum->most ? pl_hostmark_flows(h) : sum->most;
	usleep(1000);
}

static void test_crowd(void)
{
	static struct pl_tap_rules rules;
	struct pl_hostmark_options o = { .dev = "lo",
		.role = PL_HOSTMARK_METER,
		.rules = &rules,
		.flows_max = CROWD_FLOWS,
		.setup = { .period_ns = CROWD_NS,
			.guard_ns = CROWD_NS / 4,
			.method = PL_MARK_STEP,
			.by = PL_MARK_BY_FLOW,
			.versions = PL_MARK_IP4,
			.colour = 4 } };
	struct crowd c[SENDERS];
	pthread_t threads[SENDERS];
	struct pl_mark_counts counted;
	struct pl_diag diag = { .text = "" };
	struct pl_hostmark *h;
	struct sum sum = { 0 };
	uint64_t next = pl_clock_read(CLOCK_TAI) / CROWD_NS - 1, until;

	if (!ok(pl_tap_rules_add(&rules, "take proto=udp", NULL) >= 0 &&
			    pl_hostmark_open(&h, &o, &diag) == 0,
		    "a meter: %s", diag.text))
		return;
	until = pl_clock_mono_ns() + UINT64_C(4000000000);
	for (uint32_t i = 0; i < SENDERS; i++) {
		c[i] = (struct crowd){ until, i };
		if (pthread_create(&threads[i], NULL, send_many, &c[i]) != 0)
			abort();
	}
	while (pl_clock_mono_ns() < until)
		read_next(h, &next, &sum);
	for (uint32_t i = 0; i < SENDERS; i++)
		(void)pthread_join(threads[i], NULL);
	ok(eventually((pl_hostmark_counts(h, &counted), sum.packets == counted.meter.counted) ||
			      sum.missed,
		   read_next(h, &next, &sum)),
		"all packets that were counted are read");
	ok(counted.meter.overflow > 0 && sum.most <= CROWD_FLOWS,
		"of as many flows as there may be");
	pl_hostmark_close(h);
}

static void test_checksum(void)
{
	uint8_t h[20] = { 0x45, 0, 0, 0x54, 0, 1, 0x40, 0, 0x40, 0x11, 0x26, 0x96, 10, 0, 0, 1, 10,
		0, 0, 2 };

	pl_mark_set_ip4(h, 0x0c);
	eq(get16(h + 10), 0x268a, "ToS 0x0c makes checksum 2696 to 268a");
	pl_mark_set_ip4(h, 0);
	eq(get16(h + 10), 0x2696, "and back");
}

int main(void)
{
	int r;

	test_checksum();
	libbpf_set_print(tell);
	processors = libbpf_num_possible_cpus();
	r = load(PL_MARK_STEP, 0, FLOWS, "take");
	if (r == -EPERM || geteuid() != 0)
		return pl_test_skip("missing: the right to load programs");
	if (!ok(r == 0, "the kernel takes all programs"))
		return pl_test_done();
	test_marker();
	test_meter();
	test_segments();
	test_pulse(PL_MARK_DOUBLE);
	test_pulse(PL_MARK_MULTIPLEXED);
	test_running();
	test_full();
	test_far();
	test_left_alone();
	test_fragments();
	test_looks();
	test_edge();
	test_reserved();
	test_option(PL_MARK_IN_HOP);
	test_option(PL_MARK_IN_DST);
	test_option_odd();
	test_segments_of_routes(PL_MARK_IN_HOP);
	test_segments_of_routes(PL_MARK_IN_DST);
	test_option_among();
	test_unsearched();
	unload();
	test_forget();
	test_crowd();
	return pl_test_done();
}
