/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the rows of the API's table of flows. */
#include "pipeline/api_tables.h"
#include "pipeline/cells.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/metrics.h"
#include "record/path_book.h"

enum {
	HAS_PORTS = 1,
	HAS_VLAN = 2,
	HAS_VNI = 4,
	HAS_BYTES = 8,
	HAS_PATH = 16,
	HAS_NUMBERS = 32,
	HAS_NODES = 64
};

struct flow_row {
	uint32_t present, vni;
	struct pl_addr src, dst;
	uint16_t sport, dport, vlan;
	uint8_t proto;
	uint64_t packets, bytes, path_id, duration_ns, idle_ns, lost, reordered;
	char path_nodes[PL_PATH_NODES_TEXT];
};

#define FLOW(member, n, f, has, h)                                                                 \
	{                                                                                          \
		.name = (n), .unit = "", .help = (h), .offset = offsetof(struct flow_row, member), \
		.form = PL_FORM_##f, .present = (has)                                              \
	}

static const struct pl_field flow_fields[] = {
	FLOW(src, "flow.src", ADDR, 0, "source"),
	FLOW(dst, "flow.dst", ADDR, 0, "destination"),
	FLOW(sport, "flow.sport", U16, HAS_PORTS, "source port"),
	FLOW(dport, "flow.dport", U16, HAS_PORTS, "destination port"),
	FLOW(proto, "flow.proto", U8, 0, "transport protocol number"),
	FLOW(vlan, "flow.vlan", U16, HAS_VLAN, "VLAN id"),
	FLOW(vni, "flow.vni", U32, HAS_VNI, "VXLAN or Geneve network, or GRE key"),
	PL_API_COLUMN(flow_row, packets, U64, 0, "", "packets reported of it"),
	PL_API_COLUMN(flow_row, bytes, U64, HAS_BYTES, "", "their bytes"),
	PL_API_COLUMN(flow_row, path_id, HEX64, HAS_PATH, "", "its last complete path"),
	PL_API_COLUMN(flow_row, path_nodes, TEXT, HAS_NODES, "",
		"nodes of that path, source first, when they are known"),
	PL_API_COLUMN(flow_row, lost, U64, HAS_NUMBERS, "",
		"packets missing by the flow's own numbers, where it has some"),
	PL_API_COLUMN(
		flow_row, reordered, U64, HAS_NUMBERS, "", "packets reordered by those numbers"),
	PL_API_COLUMN(flow_row, duration_ns, U64, 0, "ns", "from its first to its last report"),
	PL_API_COLUMN(flow_row, idle_ns, U64, 0, "ns", "since its last report"),
};

struct flow_at {
	struct pl_flow_seen seen;
	uint64_t now_ns;
};

static int by_flow(const void *a, const void *b)
{
	return memcmp(&((const struct flow_at *)a)->seen.key,
		&((const struct flow_at *)b)->seen.key, sizeof(struct pl_flow_key));
}

/* Merges entries of one flow: several workers have it when several exporters report it. */
static size_t fold_flows(struct flow_at *f, size_t n)
{
	size_t kept = 0;

	qsort(f, n, sizeof(*f), by_flow);
	for (size_t i = 0; i < n; i++) {
		struct pl_flow_seen *to = kept > 0 ? &f[kept - 1].seen : NULL;

		if (to == NULL || by_flow(&f[kept - 1], &f[i]) != 0) {
			f[kept++] = f[i];
			continue;
		}
		to->packets += f[i].seen.packets;
		to->bytes += f[i].seen.bytes;
		to->numbered |= f[i].seen.numbered;
		to->lost += f[i].seen.lost;
		to->reordered += f[i].seen.reordered;
		if (f[i].seen.first_ns < to->first_ns)
			to->first_ns = f[i].seen.first_ns;
		if (f[i].seen.last_ns > to->last_ns) {
			to->last_ns = f[i].seen.last_ns;
			to->path_id = f[i].seen.path_id;
		}
	}
	return kept;
}

static int begin_flows(struct pl_api_walk *walk)
{
	const struct pl_pipeline *p = walk->pipeline;
	struct flow_at *rows = calloc((size_t)p->n_workers * PL_TOP_FLOWS + 1, sizeof(*rows));
	uint64_t known = 0;
	size_t n = 0;

	if (rows == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_snapshot *s = &p->workers[i]->snap;

		known += s->flows;
		for (uint32_t k = 0; k < s->n_top; k++)
			rows[n++] = (struct flow_at){ s->top[k], s->top_ns };
	}
	walk->rows = rows;
	walk->overflow = known > n ? known - n : 0;
	walk->n_rows = fold_flows(rows, n);
	return 0;
}

/* Writes the nodes of a path; returns false when they are unknown. */
static bool find_nodes(const struct pl_api_walk *walk, uint64_t path_id, char *dst, size_t cap)
{
	const struct pl_path_key key = { .path_id = path_id };
	const struct pl_agg_path *path = pl_aggregate_find(walk->aggregate, PL_AGG_PATHS, &key);
	struct pl_path_nodes nodes;

	if (path != NULL) {
		pl_cell_path_nodes(path, dst, cap);
		return true;
	}
	return pl_path_book_find(path_id, &nodes) && pl_path_nodes_text(dst, &nodes) > 0;
}

static bool next_flow(struct pl_api_walk *walk, void *row)
{
	const struct flow_at *f = walk->rows;
	struct flow_row *r = row;

	if (walk->pos >= walk->n_rows)
		return false;
	f += walk->pos++;
	*r = (struct flow_row){
		.present = ((f->seen.key.has & PL_FLOW_KEY_HAS_PORTS) != 0 ? HAS_PORTS : 0) |
			   ((f->seen.key.has & PL_FLOW_KEY_HAS_VLAN) != 0 ? HAS_VLAN : 0) |
			   ((f->seen.key.has & PL_FLOW_KEY_HAS_VNI) != 0 ? HAS_VNI : 0) |
			   (f->seen.bytes > 0 ? HAS_BYTES : 0) |
			   (f->seen.path_id != 0 ? HAS_PATH : 0) |
			   (f->seen.numbered ? HAS_NUMBERS : 0),
		.lost = f->seen.lost,
		.reordered = f->seen.reordered,
		.src = f->seen.key.src,
		.dst = f->seen.key.dst,
		.sport = f->seen.key.sport,
		.dport = f->seen.key.dport,
		.proto = f->seen.key.proto,
		.vlan = f->seen.key.vlan,
		.vni = f->seen.key.vni,
		.packets = f->seen.packets,
		.bytes = f->seen.bytes,
		.path_id = f->seen.path_id,
		.duration_ns = f->seen.last_ns - f->seen.first_ns,
		.idle_ns = f->now_ns > f->seen.last_ns ? f->now_ns - f->seen.last_ns : 0,
	};
	if (r->path_id != 0 && find_nodes(walk, r->path_id, r->path_nodes, sizeof(r->path_nodes)))
		r->present |= HAS_NODES;
	return true;
}

const struct pl_api_table pl_api_table_flows = {
	.name = "flows",
	.help = "flows with the most packets, of each worker",
	.fields = flow_fields,
	.n_fields = PL_API_COUNT(flow_fields),
	.row_size = sizeof(struct flow_row),
	.sort = "-packets",
	.flows = true,
	.begin = begin_flows,
	.next = next_flow,
};
