/* SPDX-License-Identifier: BSD-2-Clause */
/* Accumulators as bytes, in the form of partial.h, and back. */
#pragma once

#include "base/buf.h"
#include "query/aggregate.h"
#include "wire/cursor.h"

/* Returns true when two accumulators of the aggregate can be merged, and have a form in bytes:
 * pl_query_agg_merge. */
bool pl_query_serial_can(const struct agg *agg);
/* Appends the accumulator at `acc` (the aggregate's own). Not COUNT_DISTINCT. */
void pl_query_serial_put(struct pl_buf *out, const struct agg *agg, const uint8_t *acc);
/* Largest number of bytes that pl_query_serial_put appends. */
uint32_t pl_query_serial_most(const struct agg *agg);
/* Reads an accumulator into zeros. Returns false when the bytes are not an accumulator. */
bool pl_query_serial_get(struct pl_cursor *in, const struct agg *agg, uint8_t *acc);
/* Returns true when a sum would leave its 128 bits. */
bool pl_query_serial_overflows(const struct agg *agg, const uint8_t *into, const uint8_t *from);
/* Returns true when the 8 or 16 bytes are a value of the type. */
bool pl_query_serial_value(enum pl_query_type type, const uint8_t *value);
