/* SPDX-License-Identifier: BSD-2-Clause */
/* The flow record of a flow in the cache. */
#pragma once

#include "flow/entry.h"
#include "flow/listening.h"

/* `other` is looked at where `flow` says that it holds. set: who listens; it may be NULL. */
void pl_flow_record_of(struct pl_flow288 *ret, const struct pl_flow_entry *flow,
	const struct pl_flow_other *other, enum pl_flow_end reason, uint32_t seq,
	const struct pl_flow_listening *set);

/* After a record whose flow goes on: counters of the next begin at `ts_ns`. */
void pl_flow_record_restart(struct pl_flow_entry *flow, struct pl_flow_other *other, uint64_t ts_ns,
	const struct pl_flow_listening *set);
