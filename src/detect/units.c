/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the units of a node's occupancy, and turns the occupancy in records into bytes. */
#include "detect/units.h"

#include "core/detect_units.h"

uint32_t pl_units_queue(const struct pl_core_units *units, uint64_t node)
{
	return (uint32_t)pl_core_unit_of(units, node);
}

uint32_t pl_units_buffer(const struct pl_core_units *units, uint64_t node)
{
	return (uint32_t)(pl_core_unit_of(units, node) >> 32);
}

void pl_units_batch(const struct pl_core_units *units, struct pl_record_batch *batch)
{
	if (units->n == 0)
		return;
	for (uint32_t i = 0; i < batch->n_hops; i++) {
		struct pl_hop *h = &batch->hops[i];
		uint32_t queue, buffer;

		if ((h->present & PL_HOP_HAS_node) == 0 ||
			(h->present & (PL_HOP_HAS_queue_depth | PL_HOP_HAS_buffer_depth)) == 0)
			continue;
		queue = pl_units_queue(units, h->node);
		buffer = pl_units_buffer(units, h->node);
		if ((h->present & PL_HOP_HAS_queue_depth) != 0 && queue != 0 &&
			(h->present & PL_HOP_HAS_ns_data_wide) == 0)
			pl_hop_set_queue_bytes(h, (uint64_t)h->queue_depth * queue);
		if ((h->present & PL_HOP_HAS_buffer_depth) != 0 && buffer != 0 &&
			(h->present & PL_HOP_HAS_node_wide) == 0)
			pl_hop_set_buffer_bytes(h, (uint64_t)h->buffer_depth * buffer);
	}
}
