/* SPDX-License-Identifier: BSD-2-Clause */
/* The flow record of a flow in the cache. */
#pragma once

#include "flow/entry.h"

/* `other` is looked at where `flow` says that it holds. */
void pl_flow_record_of(struct pl_flow288 *ret, const struct pl_flow_entry *flow,
	const struct pl_flow_other *other, enum pl_flow_end reason, uint32_t seq);

/* After a record whose flow goes on: counters of the next begin at `ts_ns`. */
void pl_flow_record_restart(
	struct pl_flow_entry *flow, struct pl_flow_other *other, uint64_t ts_ns);
