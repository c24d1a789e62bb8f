/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports without records, in user space: a packet straight to what the steps of detection are told, by the parser
 * that the kernel program has (bpf/report_core.h). What it does not settle is for decode/.
 */
#pragma once

#include "bpf/report_core.h"
#include "bpf/report_quiet.h"
#include "decode/decode.h"

struct pl_lean_profile {
	struct pl_core_profile profile;
	struct pl_addr prefix;
	unsigned int prefix_bits;
};

struct pl_lean {
	struct pl_core_layouts layouts;
	struct pl_lean_profile *profiles; /* [0] is the default */
	unsigned int n_profiles;
	uint32_t max_latency_ns;
	bool any_port;
	bool general; /* the fast path is left out, to compare */
	uint64_t ports[65536 / 64];
	struct pl_quiet_memo *memos; /* PL_QUIET_MEMOS, of the fast path */
};

/* By the decoder's options, so that both understand the same. -ENOMEM */
int pl_lean_init(struct pl_lean *lean, const struct pl_decode_options *options);
void pl_lean_done(struct pl_lean *lean);

/* What a profile of decode/ means here. */
void pl_lean_profile_of(struct pl_core_profile *ret, const struct pl_profile *profile);

/* A value of enum pl_handup; on PL_HANDUP_NONE the scratch holds the report and its hops. Layouts not seen before are
 * learned. */
uint32_t pl_lean_report(struct pl_lean *lean, struct pl_core_scratch *s,
	const struct pl_packet *pkt, uint64_t now_ns);

/* The same by a given table of layouts, and nothing is learned: on PL_HANDUP_LAYOUT the scratch has missing_key. */
uint32_t pl_lean_try(const struct pl_lean *lean, const struct pl_core_layouts *layouts,
	struct pl_core_scratch *s, const struct pl_packet *pkt, uint64_t now_ns);

/* The headers of a usual report (bpf/report_quiet.h), for the fast path; q->keys is set. Nothing is learned. A value of
 * enum pl_slow. */
uint32_t pl_lean_quiet(const struct pl_lean *lean, struct pl_quiet *q, const struct pl_packet *pkt);

/* "carrier", "profile", … and what they mean; NULL for PL_HANDUP_NONE. */
const char *pl_handup_name(enum pl_handup h);
const char *pl_handup_help(enum pl_handup h);

/* The same of what takes the slow path; NULL for PL_SLOW_NONE. */
const char *pl_slow_name(enum pl_slow cause);
const char *pl_slow_help(enum pl_slow cause);
