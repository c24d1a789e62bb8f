/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the state of a detector: counts, routes, exporters, top flows. */
#include "detect/events_state.h"

#include "core/detect_steps.h"

bool pl_detect_route(const struct pl_detect *det, uint64_t path_id, struct pl_path_nodes *ret)
{
	const struct pl_core_rules *rules = &det->env.rules;
	const uint64_t key[2] = { path_id, 0 };
	const uint64_t hash = pl_core_hash(rules->secret, key, 2);
	const struct pl_core_route_set *set =
		&det->env.tables.route[pl_core_set_of(hash, rules->mask[PL_CORE_T_route])];
	uint32_t way = pl_core_find(set->way, set->e, sizeof(set->e[0]), key, 2, hash);

	*ret = (struct pl_path_nodes){ 0 };
	if (way >= PL_CORE_WAYS)
		return false;
	ret->hops = set->e[way].hop_count;
	_Static_assert(PL_CORE_ROUTE_NODES <= PL_PATH_NODES_MAX, "all that a route has fit");
	for (; ret->n < ret->hops && ret->n < PL_CORE_ROUTE_NODES; ret->n++)
		ret->node[ret->n] = set->e[way].node[ret->n];
	return ret->hops != 0;
}

bool pl_detect_sequence(const struct pl_detect *det, uint64_t *pos, struct pl_exporter *ret)
{
	const struct pl_tables *t = &det->env.tables;

	while (*pos < (uint64_t)t->sets[PL_CORE_T_exporter] * PL_CORE_WAYS) {
		const struct pl_core_exporter_set *s = &t->exporter[*pos / PL_CORE_WAYS];
		unsigned int w = (unsigned int)(*pos % PL_CORE_WAYS);
		const struct pl_core_exporter *x = &s->e[w];

		++*pos;
		if (!pl_way_live(s->way[w]) || !x->followed || x->seq.reports == 0)
			continue;
		*ret = pl_exporter_of(x);
		return true;
	}
	return false;
}

void pl_detect_add_accounts(const struct pl_detect *det, struct pl_core_accounts *to)
{
	const struct pl_tables *t = &det->env.tables;

	for (uint32_t set = 0; set < t->sets[PL_CORE_T_exporter]; set++) {
		const struct pl_core_exporter_set *s = &t->exporter[set];

		for (unsigned int w = 0; w < PL_CORE_WAYS; w++) {
			if (pl_way_live(s->way[w]))
				pl_core_account_add(to, &s->e[w]);
		}
	}
}

const struct pl_core_counters *pl_detect_counters(const struct pl_detect *det)
{
	return &det->env.counters;
}

uint64_t pl_detect_present(const struct pl_detect *det, unsigned int table)
{
	uint64_t n = 0;

	for (uint32_t set = 0; set < det->env.tables.sets[table]; set++) {
		const uint64_t *way = pl_tables_ways(&det->env.tables, table, set);

		for (unsigned int w = 0; w < PL_CORE_WAYS; w++)
			n += pl_way_live(way[w]);
	}
	return n;
}

uint64_t pl_detect_flows(const struct pl_detect *det)
{
	const struct pl_core_counters *c = &det->env.counters;

	return c->made[PL_CORE_T_flow] - c->aged[PL_CORE_T_flow] - c->evicted[PL_CORE_T_flow];
}

uint64_t pl_detect_raised(const struct pl_detect *det)
{
	return det->env.counters.raised - det->env.counters.ended;
}

const struct pl_tables *pl_detect_tables(const struct pl_detect *det)
{
	return &det->env.tables;
}

uint32_t pl_detect_top_flows(
	const struct pl_detect *det, struct pl_flow_seen *ret, uint32_t n, uint32_t have)
{
	for (uint64_t i = 0;
		n > 0 && i < (uint64_t)det->env.tables.sets[PL_CORE_T_flow] * PL_CORE_WAYS; i++) {
		const struct pl_core_flow_set *s = &det->env.tables.flow[i / PL_CORE_WAYS];
		const struct pl_core_flow *f = &s->e[i % PL_CORE_WAYS];
		uint32_t at;

		if (!pl_way_live(s->way[i % PL_CORE_WAYS]) ||
			(have == n && f->packets <= ret[n - 1].packets))
			continue;
		at = have < n ? have++ : n - 1;
		for (; at > 0 && ret[at - 1].packets < f->packets; at--)
			ret[at] = ret[at - 1];
		ret[at] = (struct pl_flow_seen){
			.key = f->key,
			.path_id = f->path_id,
			.packets = f->packets,
			.bytes = f->bytes,
			.first_ns = f->first_ns,
			.last_ns = f->last_ns,
		};
	}
	pl_flow_numbers_add(&det->numbers, ret, have);
	return have;
}
