/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps the fields of an INT layout to fields of a hop record. */
#pragma once

#include "record/record.h"
#include "wire/int.h"

/* Bits of `present` that a field (enum pl_int_field) sets when its value is available. */
static inline uint32_t pl_int_field_present(const struct pl_int_layout *l, unsigned int field)
{
	static const uint32_t mask[PL_INT_F_MAX] = {
		[PL_INT_F_NODE] = PL_HOP_HAS_node,
		[PL_INT_F_PORTS] = PL_HOP_HAS_ingress_port | PL_HOP_HAS_egress_port,
		[PL_INT_F_LATENCY] = PL_HOP_HAS_hop_latency_ns,
		[PL_INT_F_QUEUE] = PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth,
		[PL_INT_F_INGRESS_TS] = PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_time_bits,
		[PL_INT_F_EGRESS_TS] = PL_HOP_HAS_egress_ts_ns | PL_HOP_HAS_time_bits,
		[PL_INT_F_PORTS2] = PL_HOP_HAS_ingress_port2 | PL_HOP_HAS_egress_port2,
		[PL_INT_F_TX_UTIL] = PL_HOP_HAS_tx_util,
		[PL_INT_F_BUFFER] = PL_HOP_HAS_buffer | PL_HOP_HAS_buffer_depth,
	};

	if (field == PL_INT_F_PORTS2 && l->version == PL_INT_V05)
		return PL_HOP_HAS_congestion | PL_HOP_HAS_congestion_queue;
	return mask[field];
}
