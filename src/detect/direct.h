/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detection without records, in user space: the parser that the kernel program also uses
 * (core/report_core.h) turns a packet directly into the input of the detection steps. Packets that
 * it does not settle go to decode/.
 */
#pragma once

#include "core/report_core.h"
#include "core/report_fast.h"
#include "decode/decode.h"

struct pl_direct_profile {
	struct pl_core_profile profile;
	struct pl_addr prefix;
	unsigned int prefix_bits;
};

struct pl_direct {
	struct pl_core_layouts layouts;
	struct pl_direct_profile *profiles; /* profiles; [0] is the default */
	unsigned int n_profiles;
	uint32_t max_latency_ns;
	uint64_t vxlan_ports; /* set of ports (wire/tunnel_ports.h) */
	bool any_port;
	bool general; /* every report takes the slow path, to compare */
	uint64_t ports[65536 / 64];
	struct pl_fast_memo *memos; /* PL_FAST_MEMOS of them, for the fast path */
};

/* Initializes by the decoder's options, so that both read reports alike. Returns 0 or -ENOMEM. */
int pl_direct_init(struct pl_direct *direct, const struct pl_decode_options *options);
void pl_direct_done(struct pl_direct *direct);

/* Parses a report and returns its enum pl_escalation; on PL_ESCALATION_NONE the scratch holds the
 * report and its hops. The call learns new layouts, from every sender and for good: it is for
 * benchmarks and tests. Layouts of reports from a network are learned by pl_kernel_learn, from
 * proven exporters only and by shares (decision 32). */
uint32_t pl_direct_report(struct pl_direct *direct, struct pl_core_scratch *s,
	const struct pl_packet *pkt, uint64_t now_ns);

/* Parses a report by a given table of layouts, and learns nothing: on PL_ESCALATION_LAYOUT the
 * scratch has missing_key. */
uint32_t pl_direct_try(const struct pl_direct *direct, const struct pl_core_layouts *layouts,
	struct pl_core_scratch *s, const struct pl_packet *pkt, uint64_t now_ns);

/* Parses the headers of a common report (core/report_fast.h), for the fast path; q->keys is set.
 * Learns nothing. Returns an enum pl_slow. */
uint32_t pl_direct_fast(
	const struct pl_direct *direct, struct pl_fast *q, const struct pl_packet *pkt);

/* Name of an escalation ("carrier", "profile", …) and its meaning; NULL for PL_ESCALATION_NONE. */
const char *pl_escalation_name(enum pl_escalation h);
const char *pl_escalation_help(enum pl_escalation h);

/* Name of a cause for the slow path, and its meaning; NULL for PL_SLOW_NONE. */
const char *pl_slow_name(enum pl_slow cause);
const char *pl_slow_help(enum pl_slow cause);
