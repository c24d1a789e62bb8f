/* SPDX-License-Identifier: BSD-2-Clause */
#include "detect/flows.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HAS_PORTS 1
#define HAS_VLAN  2
#define HAS_VNI   4

static uint64_t set_count(uint32_t max)
{
	uint64_t n = 1;

	while (n * PL_FLOW_WAYS < max)
		n *= 2;
	return n;
}

uint64_t pl_flows_memory(uint32_t max)
{
	return set_count(max) * PL_FLOW_WAYS *
	       (sizeof(struct pl_flow) + sizeof(uint16_t) + sizeof(uint64_t));
}

int pl_flows_init(struct pl_flows *f, uint32_t max)
{
	uint64_t n = set_count(max) * PL_FLOW_WAYS;

	*f = (struct pl_flows){ .set_mask = set_count(max) - 1 };
	f->flows = aligned_alloc(64, n * sizeof(*f->flows));
	f->tags = calloc(n, sizeof(*f->tags));
	f->limit_due_ns = calloc(n, sizeof(*f->limit_due_ns));
	if (f->flows == NULL || f->tags == NULL || f->limit_due_ns == NULL) {
		pl_flows_done(f);
		return -ENOMEM;
	}
	memset(f->flows, 0, n * sizeof(*f->flows));
	return 0;
}

void pl_flows_done(struct pl_flows *f)
{
	free(f->flows);
	free(f->tags);
	free(f->limit_due_ns);
	*f = (struct pl_flows){ 0 };
}

void pl_flow_key_set(struct pl_flow_key *ret, const struct pl_path *path)
{
	*ret = (struct pl_flow_key){ .src = path->src, .dst = path->dst, .proto = path->proto };
	if (path->present & PL_PATH_HAS_sport) {
		ret->sport = path->sport;
		ret->dport = path->dport;
		ret->has |= HAS_PORTS;
	}
	if (path->present & PL_PATH_HAS_vlan) {
		ret->vlan = path->vlan;
		ret->has |= HAS_VLAN;
	}
	if (path->present & PL_PATH_HAS_vni) {
		ret->vni = path->vni;
		ret->has |= HAS_VNI;
	}
}

static uint16_t tag_of(uint64_t hash)
{
	return (uint16_t)(hash >> 48) | 1;
}

void pl_flows_prefetch_flow(const struct pl_flows *f, uint64_t hash)
{
	uint64_t first = (hash & f->set_mask) * PL_FLOW_WAYS;

	for (unsigned int i = 0; i < PL_FLOW_WAYS; i++) {
		if (f->tags[first + i] == tag_of(hash)) {
			__builtin_prefetch(&f->flows[first + i], 1);
			return;
		}
	}
}

uint32_t pl_flows_obtain(struct pl_flows *f, uint64_t hash, const struct pl_flow_key *key,
	enum pl_flow_place *ret_place, uint64_t *ret_replaced_seen_ns)
{
	uint64_t first = (hash & f->set_mask) * PL_FLOW_WAYS;
	uint16_t tag = tag_of(hash);
	uint64_t place = UINT64_MAX;

	for (uint64_t i = first; i < first + PL_FLOW_WAYS; i++) {
		if (f->tags[i] == tag && memcmp(&f->flows[i].key, key, sizeof(*key)) == 0) {
			*ret_place = PL_FLOW_KNOWN;
			return (uint32_t)i;
		}
		if (f->tags[i] == 0 && place == UINT64_MAX)
			place = i;
	}
	*ret_place = PL_FLOW_NEW;
	if (place == UINT64_MAX) {
		place = first;
		for (uint64_t i = first + 1; i < first + PL_FLOW_WAYS; i++) {
			if (f->flows[i].seen_ns < f->flows[place].seen_ns)
				place = i;
		}
		*ret_place = PL_FLOW_REPLACED;
		*ret_replaced_seen_ns = f->flows[place].seen_ns;
	} else {
		f->used++;
	}
	f->tags[place] = tag;
	f->limit_due_ns[place] = 0;
	f->flows[place] = (struct pl_flow){ .key = *key };
	return (uint32_t)place;
}
