/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encoding of the model's packets: instrumented packets and telemetry reports about them, in every
 * version, mode, carrier and dialect. INT specification v0.5, v1.0, v2.1; report specification
 * v0.5, v1.0, v2.0. The writer keeps the offsets of headers, so that a kind of damage
 * (gen/malform.h) can find them.
 */
#pragma once

#include "gen/gen.h"
#include "gen/malform.h"
#include "gen/model.h"
#include "wire/build.h"

/* Reason of a report. */
enum pl_gen_why {
	PL_GEN_WHY_SINK,    /* INT-MD: the last node, with the whole stack */
	PL_GEN_WHY_NODE,    /* INT-MX, INT-XD: every node reports its own metadata */
	PL_GEN_WHY_DROP,    /* the node dropped the packet */
	PL_GEN_WHY_QUEUE,   /* the queue of the node was deep */
	PL_GEN_WHY_FLUSH,   /* the node empties the stack, which would not fit (I) */
	PL_GEN_WHY_SUMMARY, /* Host-INT: the sink missed packets of a flow */
};

/* Consecutive packets of a flow that a sink missed. */
struct pl_gen_lost {
	uint32_t first, count; /* flow sequence numbers; count 0 = none */
	uint64_t ts_ns;
};

struct pl_gen_item {
	const struct pl_model_packet *packet;
	const struct pl_flow *flow;
	unsigned int hop; /* the reporting hop */
	enum pl_gen_why why;
	unsigned int first; /* the oldest hop in the stack: not 0 when the stack was flushed */
	bool fragment;      /* the packet is a later fragment, if it carries no INT */
	const struct pl_gen_lost *lost; /* SUMMARY */
};

/* Writes the UDP payload of one datagram: n reports of one node. truth: n entries, or NULL. Returns
 * the number of reports: nothing can follow a v2.0 report of 255 words or more. */
unsigned int pl_int_gen_reports(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *items, unsigned int n, uint32_t seq, struct pl_gen_damage *damage,
	struct pl_gen_truth *truth);

/* Writes the instrumented packet itself as a frame, as it leaves the hop before the sink. */
void pl_int_gen_packet(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *item, struct pl_gen_damage *damage, struct pl_gen_truth *truth);

/* Writes the link headers of an original packet, as set by cfg.inner. */
void pl_gen_put_link(const struct pl_gen_cfg *cfg, struct pl_build *b, const struct pl_flow *flow);

/* Writes the frame headers of a node's report, up to UDP (and, with cfg.instrumented, an INT header
 * of the report's own). Returns the offset for pl_end_ip. */
size_t pl_int_gen_open_frame(const struct pl_gen_cfg *cfg, struct pl_build *b, uint32_t node,
	struct pl_gen_damage *damage);
