/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory that the parts of mark.bpf.c share: the setup by user space, and the work of a packet. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/bpf_helpers.h>

#include "bpf/mark_kernel.h"
#include "core/tap_core.h"

struct work {
	struct pl_mark_counts counts;
	uint64_t block, since_ns; /* block of the last packet, and its begin */
	struct pl_mark_key key;
	/* The packet is stored in a map because the verifier does not track values in maps: it
	 * checks the code behind this once, instead of for each kind of packet, which would be too
	 * much for Linux 6.1. */
	struct pl_mark_packet packet;
	struct pl_pkt96 record; /* packet as the rules see it */
	uint32_t blind;         /* 1: without ports and protocol */
	uint32_t zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct work);
} pl_mark_work SEC(".maps");

/* State written by user space only. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct pl_mark_state);
} pl_mark_state SEC(".maps");

const volatile struct pl_mark_setup pl_mark_setup;
struct pl_mark_rules pl_mark_rules;
uint32_t pl_mark_armed; /* marker: 1: it marks, 0: it only checks */
