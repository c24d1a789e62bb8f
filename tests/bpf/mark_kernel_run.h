/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the programs of alternate marking, runs them over a packet, and reads what they counted; packets of
 * IPv6 with options and segments. */
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/clock.h"
#include "hostmark/hostmark.h"
#include "wire/altmark.h"
#include "wire/layers.h"

#include "host_int_packets.h"

#include "bpf/mark.skel.h" /* knows the types above only by name */

#define FLOWS   4096
#define HOUR    UINT64_C(3600000000000)
#define TC_NEXT UINT32_MAX

static struct pl_bpf_mark *skel;
static int processors;
static uint32_t place, colour = 4; /* of the next load() */
static uint32_t method;            /* of the last one */

static int tell(enum libbpf_print_level level, const char *format, va_list args)
{
	/* What the verifier has against a program. */
	if (level == LIBBPF_WARN) {
		printf("# ");
		vprintf(format, args);
	}
	return 0;
}

static void unload(void)
{
	pl_bpf_mark__destroy(skel);
	skel = NULL;
}

static int load(uint32_t way, uint32_t second, uint32_t flows, const char *rule)
{
	const struct pl_mark_setup setup = { .period_ns = HOUR,
		.guard_ns = HOUR / 4,
		.to_ns = HOUR,
		.method = way,
		.place = place,
		.versions = place != PL_MARK_IN_HEADER ? PL_MARK_IP6
			    : colour > 255             ? PL_MARK_IP4
						       : PL_MARK_IP4 | PL_MARK_IP6,
		.colour = place != PL_MARK_IN_HEADER ? 0 : colour,
		.second = second,
		.flows = flows,
		.slots = 2 * flows };
	struct pl_tap_rules rules = { 0 };

	method = way;
	unload();
	skel = pl_bpf_mark__open();
	if (skel == NULL || pl_tap_rules_add(&rules, rule, NULL) < 0)
		return -errno;
	memcpy((void *)&skel->rodata->pl_mark_setup, &setup, sizeof(setup));
	pl_hostmark_make_rules((struct pl_mark_rules *)&skel->bss->pl_mark_rules, &rules);
	skel->bss->pl_mark_armed = 1;
	(void)bpf_map__set_max_entries(skel->maps.pl_mark_heads, 2 * flows);
	(void)bpf_map__set_max_entries(
		skel->maps.pl_mark_cells, 2 * flows * (uint32_t)processors * PL_MARK_KEPT);
	return pl_bpf_mark__load(skel);
}

/* What the program returns; the packet is as it left it. segs: of a packet that is to be taken
 * apart, 0: it is one. */
static uint32_t run(const struct bpf_program *program, struct packet *p, uint32_t segs)
{
	static uint8_t out[PACKET_BYTES];
	struct __sk_buff ctx = { .gso_segs = segs, .gso_size = segs > 0 ? 1000 : 0 };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = p->data, .data_size_in = p->len,
		.data_out = out, .data_size_out = sizeof(out), .repeat = 1);

	if (segs > 0) {
		o.ctx_in = &ctx;
		o.ctx_size_in = sizeof(ctx);
	}
	if (bpf_prog_test_run_opts(bpf_program__fd(program), &o) < 0)
		return 999;
	p->len = o.data_size_out;
	memcpy(p->data, out, p->len);
	return o.retval;
}

static struct pl_mark_counts counts(void)
{
	const size_t each = (bpf_map__value_size(skel->maps.pl_mark_work) + 7u) / 8u * 8u;
	uint8_t *values = calloc((size_t)processors, each);
	struct pl_mark_counts sum = { .marker = { 0 } };
	const uint32_t zero = 0;
	uint64_t one;

	if (values == NULL ||
		bpf_map_lookup_elem(bpf_map__fd(skel->maps.pl_mark_work), &zero, values) < 0)
		abort();
	for (int cpu = 0; cpu < processors; cpu++) {
		for (size_t i = 0; i < sizeof(sum) / 8; i++) {
			memcpy(&one, values + (size_t)cpu * each + 8 * i, sizeof(one));
			((uint64_t *)&sum)[i] += one;
		}
	}
	free(values);
	return sum;
}

/* What all flows counted in the block; how many there are. */
static uint32_t sum_flows(uint64_t block, struct pl_mark_cell *ret)
{
	const uint32_t slots = bpf_map__max_entries(skel->maps.pl_mark_heads);
	struct pl_mark_head head;
	struct pl_mark_cell cell;
	uint32_t n = 0;

	*ret = (struct pl_mark_cell){ .block = block };
	for (uint32_t slot = 0; slot < slots; slot++) {
		if (bpf_map_lookup_elem(bpf_map__fd(skel->maps.pl_mark_heads), &slot, &head) < 0)
			abort();
		if (head.state != PL_MARK_READY)
			continue;
		n++;
		for (uint32_t cpu = 0; cpu < (uint32_t)processors; cpu++) {
			const uint32_t at = pl_mark_cell_at(slot, slots, cpu, block);

			if (bpf_map_lookup_elem(bpf_map__fd(skel->maps.pl_mark_cells), &at, &cell) <
				0)
				abort();
			if (method == PL_MARK_PULSE)
				pl_mark_cell_add_pulse(ret, &cell);
			else
				pl_mark_cell_add(ret, &cell);
		}
	}
	return n;
}

static uint64_t block_now(void)
{
	return pl_clock_read(CLOCK_TAI) / HOUR;
}

static bool same(const struct packet *a, const struct packet *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* ---- packets with options and segments ---- */

/* In front of an IPv6 packet's transport header. kind: 0, Hop-by-Hop, or 60, Destination Options;
 * other options: a router alert, and padding. */
static void add_header(struct packet *p, uint8_t kind, uint32_t n)
{
	static const uint8_t options[] = { 5, 2, 0, 0, 1, 0 };
	uint8_t *ip = p->data + p->network;

	resize(p, p->network + 40, (int)n);
	ip[40] = ip[6];
	ip[41] = (uint8_t)(n / 8 - 1);
	memcpy(ip + 42, options, sizeof(options));
	memset(ip + 48, 0, n - 8);
	if (n > 8) { /* PadN */
		ip[48] = 1;
		ip[49] = (uint8_t)(n - 10);
	}
	ip[6] = kind;
	p->transport += n;
	p->payload += n;
}

/* The option of RFC 9343 as another reader finds it; false: there is none. */
static bool find_option(const struct packet *p, struct pl_altmark *ret, bool *ret_hop)
{
	struct pl_layers layers;

	if (pl_layers_walk(&layers, pl_cursor(p->data, p->len), PL_LINK_ETHERNET, true) != PL_V_OK)
		return false;
	*ret_hop = (layers.flags & PL_LAYERS_HOP_OPTS) != 0 &&
		   pl_altmark_find(ret, layers.hop_opts) == PL_ALTMARK_FOUND;
	return *ret_hop || ((layers.flags & PL_LAYERS_DST_OPTS) != 0 &&
				   pl_altmark_find(ret, layers.dst_opts) == PL_ALTMARK_FOUND);
}

/* An IPv6 packet: without extension headers, with one of options of `kind`, or with the other kind. */
static void make_six(struct packet *p, uint32_t i, uint8_t kind)
{
	do
		make_packet(p, true);
	while (!p->v6 || p->tagged || p->len > PACKET_BYTES - 64);
	if (i % 4 == 1)
		add_header(p, kind, 8);
	else if (i % 4 == 2)
		add_header(p, kind, 8 * (1 + random_number(5)));
	else if (i % 4 == 3 && kind == 0)
		add_header(p, 60, 8);
}

/* A header of Segment Routing behind the IPv6 header: two segments, of which the packet goes to the first;
 * the last one is its destination. */
static void add_routing(struct packet *p)
{
	uint8_t *ip = p->data + p->network;

	resize(p, p->network + 40, 40);
	memcpy(ip + 40, (const uint8_t[]){ ip[6], 4, PL_ROUTING_SEGMENTS, 1, 1, 0, 0, 0 }, 8);
	memcpy(ip + 48, ip + 24, 16);
	memcpy(ip + 64, (const uint8_t[16]){ 0xfd, [15] = 1 }, 16);
	memcpy(ip + 24, ip + 64, 16);
	ip[6] = PL_IP_ROUTING;
	p->transport += 40;
	p->payload += 40;
}

/* The end of the first segment; `at`: of the routing header, from the IPv6 header on. */
static void end_segment(struct packet *p, uint32_t at)
{
	uint8_t *ip = p->data + p->network;

	ip[at + 3] = 0;
	memcpy(ip + 24, ip + at + 8, 16);
}
