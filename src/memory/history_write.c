/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing of a history. Of a batch's values for one key only the last must be written: a first pass
 * notes which that is, in a small table that may forget; a second one writes, in order, all values
 * that are not known to be superseded. */
#include <string.h>

#include "memory/history_internal.h"

#define SLICE 256u /* paths of a batch that are written together: the notes on them fit the stack */
#define CHUNK 64u  /* paths appended at once */
#define NOTED 1024u /* noted keys; a power of two */
#define GROUP 16u   /* last values whose slots are fetched at the same time */

struct latest {
	uint64_t h[NOTED];
	uint32_t number[NOTED];
};

static void note(struct latest *l, struct pl_key key, uint32_t number)
{
	l->h[key.h % NOTED] = key.h;
	l->number[key.h % NOTED] = number;
}

static bool superseded(const struct latest *l, struct pl_key key, uint32_t number)
{
	return l->h[key.h % NOTED] == key.h && l->number[key.h % NOTED] > number;
}

/* ---- lists ---- */

void pl_history_put_events(struct pl_history *h, const struct pl_event *events, uint32_t n)
{
	if (h->regions[PL_HISTORY_EVENTS] != NULL)
		(void)pl_append_put(&h->lists[PL_HISTORY_EVENTS], 0, events, n);
}

/* The hops of each path, then the paths that name them. */
static void append_paths(
	struct pl_history *h, const struct pl_record_batch *b, uint64_t *ret_first_hops)
{
	const struct pl_append *paths = &h->lists[PL_HISTORY_PATHS],
			       *hops = &h->lists[PL_HISTORY_HOPS];
	struct pl_history_path entries[CHUNK];

	for (uint32_t from = 0; from < b->n_paths; from += CHUNK) {
		uint32_t n = b->n_paths - from < CHUNK ? b->n_paths - from : CHUNK;

		for (uint32_t i = 0; i < n; i++) {
			const struct pl_path *path = &b->paths[from + i];

			entries[i].path = *path;
			entries[i].first_hop = pl_append_put(
				hops, 0, &b->hops[b->first_hop[from + i]], path->hop_count);
			ret_first_hops[from + i] = entries[i].first_hop;
		}
		(void)pl_append_put(paths, 0, entries, n);
	}
}

/* ---- last values ---- */

/* Values to be written, gathered so that their slots are prefetched together; the order stays. */
struct flow_group {
	unsigned int n;
	struct pl_key keys[GROUP];
	struct pl_history_flow values[GROUP];
};

static void put_flow_group(struct pl_history *h, struct flow_group *g)
{
	pl_key_write_put_batch(&h->flows, g->keys, g->values, g->n);
	g->n = 0;
}

static void put_flow(struct pl_history *h, struct flow_group *g, struct pl_key key,
	const struct pl_path *path, const struct pl_hop *hops, uint64_t first_hop)
{
	struct pl_history_flow *value = &g->values[g->n];
	unsigned int kept = path->hop_count;

	kept = kept < PL_HISTORY_FLOW_HOPS ? kept : PL_HISTORY_FLOW_HOPS;
	value->last = (struct pl_history_path){ *path, first_hop };
	memcpy(value->hops, hops, kept * sizeof(struct pl_hop));
	memset(value->hops + kept, 0, (PL_HISTORY_FLOW_HOPS - kept) * sizeof(struct pl_hop));
	g->keys[g->n++] = key;
	if (g->n == GROUP)
		put_flow_group(h, g);
}

static void put_flows(
	struct pl_history *h, const struct pl_record_batch *b, const uint64_t *first_hops)
{
	struct pl_key keys[SLICE];
	struct flow_group group;
	struct latest latest;

	group.n = 0;
	memset(&latest, 0, sizeof(latest));
	for (uint32_t i = 0; i < b->n_paths; i++) {
		keys[i] = pl_history_flow_key(h, &b->paths[i]);
		note(&latest, keys[i], i);
	}
	for (uint32_t i = 0; i < b->n_paths; i++) {
		const struct pl_path *path = &b->paths[i];

		if ((path->present & PL_PATH_HAS_src) != 0 && !superseded(&latest, keys[i], i))
			put_flow(
				h, &group, keys[i], path, &b->hops[b->first_hop[i]], first_hops[i]);
	}
	put_flow_group(h, &group);
}

/* One pass over all keys of the hops; the pass counts them. */
struct queue_pass {
	struct pl_history *h;
	struct latest latest;
	uint32_t number;
	bool write;
	unsigned int n;
	struct pl_key keys[GROUP];
	struct pl_hop values[GROUP];
};

static void put_queue_group(struct queue_pass *p)
{
	pl_key_write_put_batch(&p->h->queues, p->keys, p->values, p->n);
	p->n = 0;
}

static void put_queue(struct queue_pass *p, const struct pl_hop *hop, uint32_t port, uint32_t queue)
{
	struct pl_key key = pl_history_queue_key(p->h, hop->node, port, queue);
	uint32_t number = p->number++;

	if (!p->write) {
		note(&p->latest, key, number);
		return;
	}
	if (superseded(&p->latest, key, number))
		return;
	p->keys[p->n] = key;
	p->values[p->n++] = *hop;
	if (p->n == GROUP)
		put_queue_group(p);
}

static void put_hop(struct queue_pass *p, const struct pl_hop *hop)
{
	if ((hop->present & PL_HOP_HAS_node) == 0)
		return;
	put_queue(p, hop, PL_HISTORY_ANY, PL_HISTORY_ANY);
	if ((hop->present & PL_HOP_HAS_egress_port) == 0)
		return;
	put_queue(p, hop, hop->egress_port, PL_HISTORY_ANY);
	if ((hop->present & PL_HOP_HAS_queue) != 0)
		put_queue(p, hop, hop->egress_port, hop->queue);
}

static void walk_hops(struct queue_pass *p, const struct pl_record_batch *b, bool write)
{
	p->number = 0;
	p->write = write;
	for (uint32_t i = 0; i < b->n_paths; i++) {
		for (unsigned int k = 0; k < b->paths[i].hop_count; k++)
			put_hop(p, &b->hops[b->first_hop[i] + k]);
	}
}

static void put_queues(struct pl_history *h, const struct pl_record_batch *b)
{
	struct queue_pass p;

	p.h = h;
	p.n = 0;
	memset(&p.latest, 0, sizeof(p.latest));
	walk_hops(&p, b, false);
	walk_hops(&p, b, true);
	put_queue_group(&p);
}

static void count_drop(struct pl_history *h, const struct pl_path *path)
{
	/* A drop summary stands for several packets (its flow_id is lost_count). */
	const uint64_t n = (path->present & PL_PATH_HAS_lost_count) != 0 ? path->flow_id : 1;

	(void)pl_counters_add(&h->drops, pl_history_drops_key(h, path->node, PL_HISTORY_ANY), n);
	if ((path->present & PL_PATH_HAS_drop_reason) != 0)
		(void)pl_counters_add(
			&h->drops, pl_history_drops_key(h, path->node, path->drop_reason), n);
}

static void count_drops(struct pl_history *h, const struct pl_record_batch *b)
{
	for (uint32_t i = 0; i < b->n_paths; i++) {
		const struct pl_path *path = &b->paths[i];

		if ((path->flags & PL_FLAG_DROPPED) != 0 && (path->present & PL_PATH_HAS_node) != 0)
			count_drop(h, path);
	}
}

/* ---- all of them ---- */

static void put_slice(struct pl_history *h, const struct pl_record_batch *b)
{
	uint64_t first_hops[SLICE];

	memset(first_hops, 0, sizeof(first_hops));
	if (h->regions[PL_HISTORY_PATHS] != NULL)
		append_paths(h, b, first_hops);
	if (h->regions[PL_HISTORY_FLOWS] != NULL)
		put_flows(h, b, first_hops);
	if (h->regions[PL_HISTORY_QUEUES] != NULL)
		put_queues(h, b);
	if (h->regions[PL_HISTORY_DROPS] != NULL)
		count_drops(h, b);
}

void pl_history_put_paths(struct pl_history *h, const struct pl_record_batch *batch)
{
	for (uint32_t from = 0; from < batch->n_paths; from += SLICE) {
		struct pl_record_batch part = *batch;

		part.paths += from;
		part.first_hop += from;
		part.n_paths = batch->n_paths - from < SLICE ? batch->n_paths - from : SLICE;
		put_slice(h, &part);
	}
}
