/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of occupancy outside of the tables: those of a node, and bytes in records. */
#pragma once

#include <stdint.h>

#include "core/detect_state.h"
#include "record/record.h"

/* Bytes of one unit of occupancy of the node's queues, and of its buffers; 0: not known. */
uint32_t pl_units_queue(const struct pl_core_units *units, uint64_t node);
uint32_t pl_units_buffer(const struct pl_core_units *units, uint64_t node);

/* Sets queue_bytes and buffer_bytes of the batch's hops if the node's unit is known, but not in
 * hops where IOAM's wide fields have their room. */
void pl_units_batch(const struct pl_core_units *units, struct pl_record_batch *batch);
