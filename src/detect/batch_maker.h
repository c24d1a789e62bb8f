/* SPDX-License-Identifier: BSD-2-Clause */
/* For the tests of detect/: record batches written down by hand or at random. */
#pragma once

#include "base/rng.h"
#include "base/test.h"
#include "record/record.h"

static struct pl_path *add_path(struct pl_record_batch *b, unsigned int flags)
{
	struct pl_path *p;

	if (b->n_paths == b->cap_paths)
		abort();
	p = &b->paths[b->n_paths];
	b->first_hop[b->n_paths] = b->n_hops;
	b->pkt[b->n_paths++] = 0;
	*p = (struct pl_path){ .flags = (uint16_t)flags, .record_version = PL_RECORD_VERSION };
	return p;
}

/* Adds a hop to the last path; the caller then sets all fields named in `present`. */
__attribute__((unused)) static struct pl_hop *add_hop(
	struct pl_record_batch *b, uint64_t node, uint32_t present)
{
	struct pl_hop *h;
	struct pl_path *p = &b->paths[b->n_paths - 1];

	if (b->n_hops == b->cap_hops)
		abort();
	h = &b->hops[b->n_hops++];
	*h = (struct pl_hop){ .node = node, .present = present, .index = p->hop_count };
	p->hop_count++;
	return h;
}

/* Sets the identity of a path for tests: any function of its nodes and ports. */
__attribute__((unused)) static void set_path_id(struct pl_record_batch *b)
{
	struct pl_path *p = &b->paths[b->n_paths - 1];
	const struct pl_hop *hops = b->hops + b->first_hop[b->n_paths - 1];
	uint64_t id = 14695981039346656037u;

	for (unsigned int i = 0; i < p->hop_count; i++) {
		id = (id ^ hops[i].node) * 1099511628211u;
		id = (id ^ hops[i].ingress_port) * 1099511628211u;
		id = (id ^ hops[i].egress_port) * 1099511628211u;
	}
	p->path_id = id;
	p->present |= PL_PATH_HAS_path_id;
}

/* Some bits of a mask. */
__attribute__((unused)) static uint32_t some_of(struct pl_rng *rng, uint32_t mask)
{
	uint64_t bits = pl_rng_u64(rng);

	bits |= pl_rng_u64(rng); /* three quarters of them */
	return mask & (uint32_t)bits;
}
