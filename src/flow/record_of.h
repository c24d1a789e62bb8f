/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the flow record of a flow in the cache. */
#pragma once

#include "flow/entry.h"
#include "flow/listening.h"

/* Makes the record. `other` is read only if `flow` says that it holds; `set` (listening.h) may be
 * NULL. */
void pl_flow_record_of(struct pl_flow288 *ret, const struct pl_flow_entry *flow,
	const struct pl_flow_other *other, enum pl_flow_end reason, uint32_t seq,
	const struct pl_flow_listening *set);

/* Begins the next record of a flow that goes on: its counters begin at `ts_ns`. */
void pl_flow_record_restart(struct pl_flow_entry *flow, struct pl_flow_other *other, uint64_t ts_ns,
	const struct pl_flow_listening *set);
