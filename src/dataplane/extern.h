/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interface of actions that other code implements (telemetry): one structure each, named in
 * externs.def. Entries use them by name like any other action; the action parses its arguments
 * itself, once for each entry.
 */
#pragma once

#include "base/buf.h"
#include "base/diag.h"
#include "dataplane/packet.h"

struct pl_dp_pipeline;

enum pl_dp_stage {
	PL_DP_INGRESS, /* before the queue; the output port may be unknown */
	PL_DP_EGRESS,  /* after the queue: depth, queued_ns, out_ns and tx_util are set */
	PL_DP_STAGES,
};

struct pl_dp_call {
	struct pl_dp_pipeline *pipeline; /* has node, ports and pool: dataplane/pipeline.h */
	enum pl_dp_stage stage;
	uint64_t now_ns; /* time of the node's clock: arrival, or departure */
};

enum pl_dp_run {
	PL_DP_RUN_ON,    /* the next action follows; with pkt->drop set, the packet is dropped */
	PL_DP_RUN_TAKEN, /* the action keeps the packet or freed it: counted as consumed */
};

struct pl_dp_extern {
	const char *name, *args, *help; /* as in actions.def */
	bool ingress, egress;           /* stages whose tables may call it */
	/* Parses the arguments behind the name, "" for none; *ret is passed to run and free.
	 * -EINVAL with diag, -ENOMEM. */
	int (*make)(struct pl_dp_pipeline *pipeline, const char *args, void **ret,
		struct pl_diag *diag);
	void (*free)(void *state); /* NULL: nothing to free */
	/* Runs the action. It may change bytes, length and metadata of the packet; gaps are opened
	 * and closed by pl_dp_packet_insert and _remove. New packets leave by pl_dp_emit. */
	enum pl_dp_run (*run)(void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call);
	/* Called for each dropped packet, whatever dropped it, when the pipeline has an entry with
	 * this action: the packet is still complete. NULL: not called. */
	void (*dropped)(void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call);
};

#define PL_DP_EXTERN(id) extern const struct pl_dp_extern pl_dp_extern_##id;
#include "dataplane/externs.def"
#undef PL_DP_EXTERN
