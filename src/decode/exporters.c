/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequence spaces, one per (address, node, hardware id): open addressing over a list that only grows up to its
 * bound. Keys come from the network, so the hash is keyed. */
#include <errno.h>
#include <stdlib.h>

#include "decode/internal.h"

int exporters_init(struct exporters *e, uint32_t max)
{
	uint32_t slots = slots_for(max);

	*e = (struct exporters){ .max = max, .mask = slots - 1, .seed = pl_hash_seed() };
	e->list = calloc(max, sizeof(*e->list));
	e->index = calloc(slots, sizeof(*e->index));
	return e->list == NULL || e->index == NULL ? -ENOMEM : 0;
}

void exporters_done(struct exporters *e)
{
	free(e->list);
	free(e->index);
}

uint64_t exporters_memory(uint32_t max)
{
	return (uint64_t)max * sizeof(struct exporter) + slots_for(max) * sizeof(uint32_t);
}

struct exporter *exporters_find(
	struct exporters *e, const struct pl_addr *addr, uint64_t node, uint8_t hw_id)
{
	struct exporter **recent = exporters_recent(e, addr, node, hw_id);
	uint64_t lo, hi;
	uint32_t at;

	memcpy(&lo, addr->b, 8);
	memcpy(&hi, addr->b + 8, 8);
	at = (uint32_t)pl_hash_mix(pl_hash_mix(lo ^ e->seed, hi), node << 8 ^ hw_id) & e->mask;
	for (; e->index[at] != 0; at = (at + 1) & e->mask) {
		struct exporter *x = &e->list[e->index[at] - 1];

		if (exporter_is(x, addr, node, hw_id))
			return *recent = x;
	}
	if (e->n == e->max)
		return NULL;
	*recent = &e->list[e->n];
	e->index[at] = ++e->n;
	(*recent)->addr = *addr;
	(*recent)->node = node;
	(*recent)->hw_id = hw_id;
	return *recent;
}
