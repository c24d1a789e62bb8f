/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the programs of alternate marking, runs them over a packet, and reads what they counted. */
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "hostmark/hostmark.h"

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
