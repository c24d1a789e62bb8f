/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes rules into programs that make records, and adds up the counters of processors. */
#include "tap/kernel_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t pl_tap_ring_size(uint64_t bytes)
{
	uint32_t n = (uint32_t)PL_TAP_RING_LEAST;

	while (n < bytes)
		n *= 2;
	return n;
}

int pl_tap_each_open(struct pl_tap_each *each, int fd, uint32_t value_size)
{
	each->fd = fd;
	each->processors = libbpf_num_possible_cpus();
	each->bytes = (value_size + 7u) / 8u * 8u;
	if (each->processors < 0)
		return -ENOMEM;
	each->values = calloc((size_t)each->processors, each->bytes);
	return each->values == NULL ? -ENOMEM : 0;
}

void pl_tap_each_close(struct pl_tap_each *each)
{
	free(each->values);
	each->values = NULL;
}

void pl_tap_each_add(struct pl_tap_each *each, uint32_t key, size_t first, uint64_t *into, size_t n)
{
	if (bpf_map_lookup_elem(each->fd, &key, each->values) < 0)
		return;
	for (int cpu = 0; cpu < each->processors; cpu++) {
		for (size_t i = 0; i < n; i++) {
			uint64_t one;

			memcpy(&one, each->values + (size_t)cpu * each->bytes + 8 * (first + i),
				sizeof(one));
			into[i] += one;
		}
	}
}

static void read_hits(
	const struct pl_tap_hits *hits, uint32_t set, uint64_t ret[PL_TAP_RULES_MAX + 1])
{
	pl_tap_each_add(hits->each, 0, hits->at + (size_t)set * (PL_TAP_RULES_MAX + 1), ret,
		PL_TAP_RULES_MAX + 1);
}

void pl_tap_sets_next(struct pl_tap_rule_set sets[PL_TAP_RULE_SETS], uint32_t *in_force,
	const struct pl_tap_rules *rules, uint16_t point, struct pl_tap_hits *hits)
{
	const uint32_t next = (*in_force + 1) % PL_TAP_RULE_SETS;
	struct pl_tap_rule_set *set = &sets[next];

	memset(set, 0, sizeof(*set));
	memcpy(set->rules, rules->rules, sizeof(set->rules));
	set->n = rules->n;
	set->point = point;
	memset(hits->before, 0, sizeof(hits->before));
	read_hits(hits, next, hits->before);
	__atomic_store_n(in_force, next, __ATOMIC_RELEASE);
}

void pl_tap_hits_add(
	const struct pl_tap_hits *hits, uint32_t in_force, uint64_t ret[PL_TAP_RULES_MAX + 1])
{
	uint64_t now[PL_TAP_RULES_MAX + 1] = { 0 };

	read_hits(hits, in_force, now);
	for (size_t i = 0; i <= PL_TAP_RULES_MAX; i++)
		ret[i] += now[i] - hits->before[i];
}
