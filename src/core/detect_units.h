/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Units of occupancies: finds those of a node, and converts bounds and values from and to bytes. */
#pragma once

#include "core/detect_state.h"
#include "core/detect_table.h"

/* Returns the units of a node, buffer_bytes << 32 | queue_bytes. A global function in the kernel
 * program, so that the verifier checks it once and it has a frame of its own. */
#ifdef __bpf__
__attribute__((noinline)) uint64_t pl_core_unit_of(const struct pl_core_units *units, uint64_t node)
#else
static inline uint64_t pl_core_unit_of(const struct pl_core_units *units, uint64_t node)
#endif
{
	if (units == NULL)
		return 0;
#ifdef __bpf__
#pragma clang loop unroll(disable)
#endif
	for (uint32_t i = 0; i < PL_CORE_UNITS && i < units->n; i++) {
		const struct pl_core_unit *u = &units->of[i];

		if (node >= u->first && node <= u->last)
			return u->queue_bytes | (uint64_t)u->buffer_bytes << 32;
	}
	return 0;
}

/* Converts a bound in bytes to one in units: a value is above the one exactly when it is above the
 * other. */
PL_CORE_INLINE uint64_t pl_core_in_units(uint64_t bytes, uint32_t unit_bytes)
{
	return unit_bytes > 1 && bytes != PL_CORE_NO_THRESHOLD ? bytes / unit_bytes : bytes;
}

/* Converts a value to bytes, for reporting. */
PL_CORE_INLINE uint64_t pl_core_in_bytes(uint64_t value, uint32_t unit_bytes)
{
	return unit_bytes > 1 ? value * unit_bytes : value;
}
