/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows and their last complete path: a set-associative table, eight flows per set, one cache line per flow.
 * When a set is full the flow heard of longest ago makes room. Work per report is bounded whatever the
 * number of flows, and nothing allocates after pl_flows_init. Internal to detect/. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "record/record.h"

#define PL_FLOW_WAYS 8

struct pl_flow_key {
	struct pl_addr src, dst;
	uint16_t sport, dport;
	uint16_t vlan;
	uint8_t proto;
	uint8_t has; /* ports, VLAN, network */
	uint32_t vni;
	uint32_t zero;
};

struct pl_flow {
	struct pl_flow_key key;
	uint64_t path_id;
	uint64_t seen_ns;
};

_Static_assert(sizeof(struct pl_flow_key) == 48, "no padding: keys are compared as bytes");
_Static_assert(sizeof(struct pl_flow) == 64, "one flow is one cache line");

struct pl_flows {
	struct pl_flow *flows;  /* sets * 8, 64-byte aligned */
	uint16_t *tags;         /* sets * 8; 0 = free */
	uint64_t *limit_due_ns; /* sets * 8; touched only when a path changes */
	uint64_t set_mask;
	uint32_t used;
};

enum pl_flow_place { PL_FLOW_KNOWN, PL_FLOW_NEW, PL_FLOW_REPLACED };

/* max is rounded up to a power of two, at least 8. -ENOMEM */
int pl_flows_init(struct pl_flows *f, uint32_t max);
void pl_flows_done(struct pl_flows *f);
uint64_t pl_flows_memory(uint32_t max);

void pl_flow_key_set(struct pl_flow_key *ret, const struct pl_path *path);

static inline void pl_flows_prefetch_tags(const struct pl_flows *f, uint64_t hash)
{
	__builtin_prefetch(&f->tags[(hash & f->set_mask) * PL_FLOW_WAYS]);
}

/* The line the flow is likely in; the tags must be near. */
void pl_flows_prefetch_flow(const struct pl_flows *f, uint64_t hash);

/* The flow's place, made by replacing the oldest of its set if need be; then ret_replaced_seen_ns is when
 * that one was last heard of, and the new one's path is not known yet. */
uint32_t pl_flows_obtain(struct pl_flows *f, uint64_t hash, const struct pl_flow_key *key,
	enum pl_flow_place *ret_place, uint64_t *ret_replaced_seen_ns);
