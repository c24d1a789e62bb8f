/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the rows of the API's table of flows. */
#include "detect/cells.h"
#include "pipeline/api_tables.h"

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

typedef char nodes_text[PL_PATH_NODES_TEXT];

struct flow_row {
	uint32_t present;
#define PL_FLOW_COLUMN(type, member, ...) type member;
#include "pipeline/flows.def"
#undef PL_FLOW_COLUMN
};

static const struct pl_field flow_fields[] = {
#define PL_FLOW_COLUMN(type, member, n, f, has, u, h)                                              \
	{ .name = (n),                                                                             \
		.unit = (u),                                                                       \
		.help = (h),                                                                       \
		.offset = offsetof(struct flow_row, member),                                       \
		.form = PL_FORM_##f,                                                               \
		.present = (has) },
#include "pipeline/flows.def"
#undef PL_FLOW_COLUMN
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
