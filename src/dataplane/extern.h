/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How actions that are not of the tables themselves (telemetry) plug into them: a structure each,
 * and its name in externs.def. Entries call them by name like any other action; arguments are text
 * that the action reads itself, once for each entry.
 */
#pragma once

#include "base/buf.h"
#include "base/diag.h"
#include "dataplane/packet.h"

struct pl_dp_pipeline;

enum pl_dp_stage {
	PL_DP_INGRESS, /* before the queue; the output port may not be known */
	PL_DP_EGRESS,  /* behind it: depth, queued_ns, out_ns and tx_util are set */
	PL_DP_STAGES,
};

struct pl_dp_call {
	struct pl_dp_pipeline *pipeline; /* its node, ports and pool: dataplane/pipeline.h */
	enum pl_dp_stage stage;
	uint64_t now_ns; /* time of day in the node: arrival, or departure */
};

enum pl_dp_run {
	PL_DP_RUN_ON, /* the next action follows; or, with pkt->drop set, the packet is dropped */
	PL_DP_RUN_TAKEN, /* the action keeps the packet, or freed it: booked as consumed */
};

struct pl_dp_extern {
	const char *name, *args, *help; /* as in actions.def */
	bool ingress, egress;           /* stages whose tables may call it */
	/* Arguments behind the name, "" for none; *ret goes to run and to free. -EINVAL with diag,
	 * -ENOMEM. */
	int (*make)(struct pl_dp_pipeline *pipeline, const char *args, void **ret,
		struct pl_diag *diag);
	void (*free)(void *state); /* NULL: nothing to free */
	/* May change bytes, length and metadata of the packet; when it opens or closes gaps it
	 * does so by pl_dp_packet_insert and _remove. New packets leave by pl_dp_emit. */
	enum pl_dp_run (*run)(void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call);
	/* Told of the drop of a packet, whatever dropped it, when the pipeline has an entry with
	 * this action: the packet still has all it had. NULL: does not care. */
	void (*dropped)(void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call);
};

#define PL_DP_EXTERN(id) extern const struct pl_dp_extern pl_dp_extern_##id;
#include "dataplane/externs.def"
#undef PL_DP_EXTERN
