/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The id of a path (path_id): its nodes and ports in order. Begun with the number of hops; each hop,
 * source first, is a step. Whoever knows a path by other means than a report (the truth of a
 * network that was built) has the same id for it.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "record/record.h"

/* The id so far, and one hop more, `present` of which holds. Absent ports count as such, not as
 * port 0. */
static inline uint64_t pl_path_id_step(uint64_t id, const struct pl_hop *h, uint32_t present)
{
	uint64_t ports; /* egress in the upper half, as in memory */

	memcpy(&ports, &h->ingress_port, sizeof(ports));
	return pl_hash_mix(id ^ h->node,
		(ports << 32 | ports >> 32) | (uint64_t)(present & PL_HOP_HAS_egress_port) << 59);
}

/* 0 says that a record has none. */
static inline uint64_t pl_path_id_end(uint64_t id)
{
	return id == 0 ? 1 : id;
}
