/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Part of a query that a tap in the kernel can do. Its rules (core/tap_rules.h) are data, so no
 * program is made for a query: each filter of packets becomes rules that take every record which
 * the filter lets pass, and as few others as rules can say. The query filters again, so the answer
 * is the same.
 *
 *   where tcp and dport in (80, 443) and pay_len * 2 > wire_len
 *   take proto=tcp dport=80 | take proto=tcp dport=443 | skip
 *
 * Rules can say comparisons with constants, and the columns made of them (tcp, syn_only, out),
 * joined by and, or and not: of src and dst prefixes, of sport, dport, wire_len and pay_len
 * ranges, of tcp_flags bits, of proto, vlan and point one value, and the direction. A part that
 * excludes something which rules say (dst not in 10.0.0.0/8) becomes rules that skip, when the
 * query reads records in one place. All other parts of a filter count as true.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/tap_rules.h"
#include "lang/lang.h"

struct pl_query_push {
	uint32_t n; /* rules; a packet that none matches is needed */
	struct pl_tap_rule rules[PL_TAP_RULES_MAX];
	bool exact; /* the rules take no packet that the filters would refuse */
};

/* Makes the rules. pkt64: the tap's records end behind the first 64 bytes, so no later field may
 * choose. There are no rules unless the query reads packets and nothing else. */
void pl_query_push(const struct pl_query *query, bool pkt64, struct pl_query_push *ret);

/* Appends the filters, or parts of them, that rules cannot express, a line for each. */
void pl_query_push_rest(const struct pl_query *query, bool pkt64, struct pl_buf *out);
