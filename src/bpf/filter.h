/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules and counts of the filter in the kernel (bpf/filter.bpf.h), which recognises report traffic,
 * for the kernel and user space. Numbers in host order, addresses as struct pl_addr.
 *
 * An object that includes bpf/filter.bpf.h has a `struct pl_filter pl_filter` in its .bss, which is
 * mapped into user space by libbpf's skeleton: skel->bss->pl_filter. Rules are changed there at any
 * time with pl_filter_set: the new ones are written beside the old ones, then one store switches
 * over.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"

#define PL_FILTER_ADDRS_MAX      16
#define PL_FILTER_DATA_PORTS_MAX 8

/* Packets to other destinations that carry telemetry themselves. They are copied and never taken:
 * only packet sockets (netio/cbpf.c) select them, whatever ports and addrs are. */
struct pl_filter_data {
	uint64_t dscps;   /* one bit per DSCP that announces INT */
	uint32_t ioam;    /* 1: IPv6 with an IOAM option */
	uint32_t in_band; /* 1: INT as it is customarily announced */
	uint32_t gre;     /* 1: GRE, whatever it carries */
	uint32_t nports;
	uint16_t ports[PL_FILTER_DATA_PORTS_MAX]; /* UDP destination ports that announce INT */
};

struct pl_filter_rules {
	uint8_t ports[8192]; /* one bit per UDP destination port */
	uint8_t vlans[512];  /* one bit per VLAN id; of two tags either may match */
	uint32_t any_vlan;   /* 1: every frame, tagged or not; 0: only frames with a tag in vlans */
	uint32_t naddrs;     /* 0: every destination */
	uint32_t roce1;      /* 1: RoCEv1 too, by its Ethertype, whatever ports and addrs are */
	uint32_t all;        /* 1: every frame, whatever the rest of the rules: for a tap */
	struct pl_addr addrs[PL_FILTER_ADDRS_MAX];
	struct pl_filter_data data; /* XDP programs do not read it */
};

struct pl_filter {
	struct pl_filter_rules rules[2];
	uint32_t active; /* the rules that hold: 0 or 1 */
	uint32_t zero;
};

enum pl_filter_cause {
#define PL_FILTER_CAUSE(id, name, help) PL_FILTER_##id,
#include "bpf/filter_causes.def"
#undef PL_FILTER_CAUSE
	PL_FILTER_MAX
};

/* Counts of a processor, in the map pl_filter_counts. */
struct pl_filter_counts {
	uint64_t frames[PL_FILTER_MAX]; /* by enum pl_filter_cause; the sum is all frames seen */
};

static inline void pl_filter_rules_add_port(struct pl_filter_rules *rules, uint16_t port)
{
	rules->ports[port >> 3] |= (uint8_t)(1u << (port & 7));
}

static inline void pl_filter_rules_add_vlan(struct pl_filter_rules *rules, uint16_t vlan)
{
	rules->vlans[vlan >> 3 & 511] |= (uint8_t)(1u << (vlan & 7));
}

/* True when packets that carry telemetry are requested. */
static inline int pl_filter_rules_have_data(const struct pl_filter_rules *rules)
{
	const struct pl_filter_data *d = &rules->data;

	return d->dscps != 0 || d->ioam || d->in_band || d->gre || d->nports > 0;
}

#ifndef __bpf__
/* Changes the rules; one thread at a time calls it. A frame that is being filtered meanwhile is
 * judged by the old rules or the new ones, unless rules change twice within its nanoseconds. */
static inline void pl_filter_set(struct pl_filter *filter, const struct pl_filter_rules *rules)
{
	uint32_t next = 1 - (__atomic_load_n(&filter->active, __ATOMIC_RELAXED) & 1);

	filter->rules[next] = *rules;
	__atomic_store_n(&filter->active, next, __ATOMIC_RELEASE);
}
#endif
