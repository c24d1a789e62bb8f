/* SPDX-License-Identifier: BSD-2-Clause */
/* Id of a path (path_id): a hash of its nodes and ports in order. It begins with the number of
 * hops; each hop, source first, is a step. Code that knows a path from another source than a report
 * (the truth of a network that was built) gets the same id. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "record/record.h"

/* Adds a hop to the id; `present` marks its valid fields. An absent port differs from port 0. */
static inline uint64_t pl_path_id_step(uint64_t id, const struct pl_hop *h, uint32_t present)
{
	uint64_t ports; /* egress in the upper half, as in memory */

	memcpy(&ports, &h->ingress_port, sizeof(ports));
	return pl_hash_mix(id ^ h->node,
		(ports << 32 | ports >> 32) | (uint64_t)(present & PL_HOP_HAS_egress_port) << 59);
}

/* Ends the id; 0 stands for no id. */
static inline uint64_t pl_path_id_end(uint64_t id)
{
	return id == 0 ? 1 : id;
}
