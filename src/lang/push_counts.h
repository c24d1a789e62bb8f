/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plan by which a tap in the kernel counts packets for a query instead of making records of them
 * (core/tap_counts.h). There is one when the rows follow from counts and sums of each key and
 * window: one step reads packets and groups them, rules say its filters whole, and nothing of it
 * depends on the order of records.
 *
 *   where udp | group dst, dport agg n=count(), b=sum(wire_len)   window 1s
 *   counted by dst, dport and the second
 *
 * Keys are any expressions over addresses, ports, protocol, flags, TTL, TOS, lengths, VLAN,
 * label and the like. The aggregates count, and sum and avg of wire_len or pay_len, add up. The
 * results of min, max, bit_or, count(distinct) and approx_distinct do not depend on how often a
 * value comes, so the columns that they read become part of the key.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "core/tap_counts.h"
#include "lang/lang.h"

/* Makes the plan. pkt64: the tap's records end behind the first 64 bytes. Returns NULL, or why
 * there is no plan: the end of a sentence, of static storage. */
const char *pl_query_push_counts(
	const struct pl_query *query, bool pkt64, struct pl_tap_count_plan *ret);

/* Appends the columns that are counted by, "dst, dport" or "nothing"; for a query that has a
 * plan. */
void pl_query_push_counts_text(const struct pl_query *query, struct pl_buf *out);
