/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that all decoders share: the exporter's profile, the next record, its flow, its notes. */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "decode/report.h"

const struct pl_profile *profile_of(const struct pl_decode *d, const struct pl_addr *addr)
{
	const struct pl_profile *best = &d->profiles[0];

	for (unsigned int i = 1; i <= d->opt.n_profiles; i++) {
		const struct pl_profile *p = &d->profiles[i];

		if (p->prefix_bits >= best->prefix_bits &&
			pl_addr_alike(addr, &p->prefix, p->prefix_bits))
			best = p;
	}
	return best;
}

void settle_paths(struct pl_decode *d, const struct pl_record_batch *out)
{
	uint32_t overflow = paths_intern(&d->paths, out, d->interned_from);

	if (overflow != 0)
		pl_count(&d->counters.paths_full, overflow);
	if (d->paths.displaced != 0)
		pl_count(&d->counters.paths_displaced, d->paths.displaced);
	d->interned_from = out->n_paths;
}

void make_room(struct job *j)
{
	settle_paths(j->d, j->out);
	j->out->flush(j->out, j->out->flush_arg);
	assert(j->out->n_paths == 0 && j->out->n_hops == 0);
	j->d->interned_from = 0;
}

struct pl_path *begin_report(struct job *j)
{
	struct pl_path *path = begin_path(j);

	memset(path, 0, sizeof(*path));
	path->ts_ns = j->pkt->ts_ns;
	path->record_version = PL_RECORD_VERSION;
	path->report_id = j->d->next_report_id++;
	j->links = UINT_MAX;
	return path;
}

void set_flow(struct pl_path *path, const struct pl_flow *flow)
{
	path->src = flow->src;
	path->dst = flow->dst;
	path->proto = flow->proto;
	path->dscp = flow->dscp;
	path->present |= PL_PATH_HAS_src;
	if (flow->have & PL_FLOW_PORTS) {
		path->sport = flow->sport;
		path->dport = flow->dport;
		path->present |= PL_PATH_HAS_sport;
	}
	if (flow->have & PL_FLOW_VLAN) {
		path->vlan = flow->vlan;
		path->present |= PL_PATH_HAS_vlan;
	}
	if (flow->have & PL_FLOW_VNI) {
		path->vni = flow->vni;
		path->present |= PL_PATH_HAS_vni;
	}
}

void count_notes(struct job *j)
{
	uint64_t notes = j->notes;

	j->d->outcomes[j->index].notes |= notes;
	for (; notes != 0; notes &= notes - 1)
		j->d->sum.notes[__builtin_ctzll(notes)]++;
	j->notes = 0;
}
