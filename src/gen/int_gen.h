/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From what happened in the model to bytes: instrumented packets and telemetry reports about them,
 * in every version, mode, carrier and dialect. INT specification v0.5, v1.0, v2.1; report
 * specification v0.5, v1.0, v2.0. The writer keeps where things stand, so that a kind of damage
 * (gen/malform.h) can find them.
 */
#pragma once

#include "gen/gen.h"
#include "gen/malform.h"
#include "gen/model.h"
#include "wire/build.h"

/* Why a node reports. */
enum pl_gen_why {
	PL_GEN_WHY_SINK,    /* INT-MD: the last node, with the whole stack */
	PL_GEN_WHY_NODE,    /* INT-MX, INT-XD: every node for itself */
	PL_GEN_WHY_DROP,    /* it dropped the packet */
	PL_GEN_WHY_QUEUE,   /* its queue was deep */
	PL_GEN_WHY_FLUSH,   /* it empties the stack, which would not fit (I) */
	PL_GEN_WHY_SUMMARY, /* Host-INT: the sink missed packets of a flow */
};

/* Packets of a flow that a sink missed, in a row. */
struct pl_gen_lost {
	uint32_t first, count; /* flow sequence numbers; count 0 = none */
	uint64_t ts_ns;
};

struct pl_gen_item {
	const struct pl_model_packet *packet;
	const struct pl_flow *flow;
	unsigned int hop; /* the reporting one */
	enum pl_gen_why why;
	unsigned int first; /* hop in the stack, the oldest: not 0 when the stack was flushed */
	bool fragment;      /* the packet is a later fragment, if it carries no INT */
	const struct pl_gen_lost *lost; /* SUMMARY */
};

/* The UDP payload of one datagram: n reports of one node. truth: n entries, or NULL. Returns how
 * many there are: nothing can follow a v2.0 report of 255 words or more. */
unsigned int pl_int_gen_reports(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *items, unsigned int n, uint32_t seq, struct pl_gen_damage *damage,
	struct pl_gen_truth *truth);

/* The instrumented packet itself as a frame, as it leaves the hop before the sink. */
void pl_int_gen_packet(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *item, struct pl_gen_damage *damage, struct pl_gen_truth *truth);

/* The link headers of an original packet, as cfg.inner says. */
void pl_gen_put_link(const struct pl_gen_cfg *cfg, struct pl_build *b, const struct pl_flow *flow);

/* Frame headers of a report from a node up to behind UDP (and, when cfg.instrumented, an INT header
 * of its own). Returns the offset for pl_end_ip. */
size_t pl_int_gen_open_frame(const struct pl_gen_cfg *cfg, struct pl_build *b, uint32_t node,
	struct pl_gen_damage *damage);
