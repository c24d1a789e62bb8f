/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds records to the cells of queues, ports, links and paths. */
#include "detect/aggregate_state.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefetch.h"

#define LIMIT_MAX     (1U << 20)
#define IDLE_NS_DEF   (300 * (uint64_t)1000000000)
#define SLOT_NS_DEF   (15 * (uint64_t)1000000000)
#define TABLE_DEFAULT 4096

_Static_assert(
	sizeof(struct pl_queue_key) == 16, "keys have no padding: they are compared as bytes");
_Static_assert(
	sizeof(struct pl_link_key) == 32, "keys have no padding: they are compared as bytes");
_Static_assert(
	sizeof(struct pl_path_key) == 16, "keys have no padding: they are compared as bytes");

/*
 * Keys as words, built by shifts: a key written field by field and read as words a moment later
 * would wait for the store buffer each time. The layout is that of the key structures,
 * little-endian.
 */
union queue_words {
	uint64_t w[2];
	struct pl_queue_key key;
};

union link_words {
	uint64_t w[4];
	struct pl_link_key key;
};

_Static_assert(offsetof(struct pl_queue_key, port) == 8 &&
		       offsetof(struct pl_queue_key, queue) == 12 &&
		       offsetof(struct pl_queue_key, has) == 14,
	"the shifts of queue_words");
_Static_assert(offsetof(struct pl_link_key, a_port) == 16 &&
		       offsetof(struct pl_link_key, b_port) == 20 &&
		       offsetof(struct pl_link_key, has) == 24,
	"the shifts of link_words");

static const uint32_t cell_size[PL_AGG_TABLE_MAX] = {
	[PL_AGG_QUEUES] = sizeof(struct pl_agg_queue),
	[PL_AGG_PORTS] = sizeof(struct pl_agg_port),
	[PL_AGG_LINKS] = sizeof(struct pl_agg_link),
	[PL_AGG_PATHS] = sizeof(struct pl_agg_path),
};

static struct pl_aggregate_options with_defaults(const struct pl_aggregate_options *given)
{
	struct pl_aggregate_options o = *given;
	uint32_t *limits[] = { &o.max_queues, &o.max_ports, &o.max_links, &o.max_paths };

	for (unsigned int i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (*limits[i] == 0)
			*limits[i] = TABLE_DEFAULT;
	}
	if (o.idle_ns == 0)
		o.idle_ns = IDLE_NS_DEF;
	if (o.slot_ns == 0)
		o.slot_ns = SLOT_NS_DEF;
	return o;
}

static uint32_t table_limit(const struct pl_aggregate_options *o, unsigned int table)
{
	const uint32_t limits[] = { o->max_queues, o->max_ports, o->max_links, o->max_paths };

	return limits[table];
}

int pl_aggregate_new(struct pl_aggregate **ret, const struct pl_aggregate_options *options)
{
	struct pl_aggregate_options o = with_defaults(options);
	struct pl_aggregate *agg;

	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		if (table_limit(&o, t) > LIMIT_MAX)
			return -EINVAL;
	}
	agg = calloc(1, sizeof(*agg));
	if (agg == NULL)
		return -ENOMEM;
	agg->options = o;
	agg->seed = pl_hash_seed();
	agg->epoch = 1;
	agg->memory = calloc(o.max_paths, sizeof(*agg->memory));
	if (agg->memory == NULL) {
		pl_aggregate_free(agg);
		return -ENOMEM;
	}
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		if (pl_cells_init(&agg->tables[t], table_limit(&o, t), cell_size[t]) < 0 ||
			pl_shares_init(&agg->shares[t], table_limit(&o, t)) < 0) {
			pl_aggregate_free(agg);
			return -ENOMEM;
		}
	}
	*ret = agg;
	return 0;
}

void pl_aggregate_free(struct pl_aggregate *agg)
{
	if (agg == NULL)
		return;
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		pl_cells_done(&agg->tables[t]);
		pl_shares_done(&agg->shares[t]);
	}
	free(agg->memory);
	free(agg);
}

uint64_t pl_aggregate_memory(const struct pl_aggregate_options *options)
{
	struct pl_aggregate_options o = with_defaults(options);
	uint64_t bytes = sizeof(struct pl_aggregate) + o.max_paths * sizeof(struct path_memory);

	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++)
		bytes += pl_cells_memory(table_limit(&o, t), cell_size[t]) +
			 pl_shares_memory(table_limit(&o, t));
	return bytes;
}

static union queue_words port_words(const struct pl_hop *hop)
{
	union queue_words k = { .w = { hop->node, 0 } };

	if (hop->present & PL_HOP_HAS_egress_port)
		k.w[1] = (uint64_t)PL_KEY_HAS_PORT << 48 | hop->egress_port;
	return k;
}

static union queue_words queue_words(const struct pl_hop *hop)
{
	union queue_words k = port_words(hop);

	if (hop->present & PL_HOP_HAS_queue)
		k.w[1] |= (uint64_t)PL_KEY_HAS_QUEUE << 48 | (uint64_t)hop->queue << 32;
	return k;
}

static union link_words link_words(const struct pl_hop *from, const struct pl_hop *to)
{
	union link_words k = { .w = { from->node, to->node, 0, 0 } };

	if (from->present & PL_HOP_HAS_egress_port) {
		k.w[2] = from->egress_port;
		k.w[3] = PL_KEY_HAS_PORT;
	}
	if (to->present & PL_HOP_HAS_ingress_port) {
		k.w[2] |= (uint64_t)to->ingress_port << 32;
		k.w[3] |= PL_KEY_HAS_INGRESS;
	}
	return k;
}

/* --- maxima per fixed slot -------------------------------------------------------------------- */

static inline void slot_max_add(struct pl_slot_max *m, uint64_t slot, uint32_t v)
{
	if (__builtin_expect(m->slot != slot, 0))
		pl_slot_max_advance(m, slot);
	if (!m->has_current || v > m->current) {
		m->current = v;
		m->has_current = true;
	}
}

/* --- the batch -------------------------------------------------------------------------------- */

/* Flags of reports that do not give the path: only a complete stack from the end of the path
 * does. */
#define PATH_UNKNOWN (PL_FLAG_PARTIAL | PL_FLAG_DROPPED | PL_FLAG_INTERMEDIATE | PL_FLAG_COPY)

/* Reports that may leave cells behind. */
static inline bool counts(const struct pl_path *path)
{
	return __builtin_expect((path->flags & PL_FLAG_UNPROVEN) == 0, 1);
}

/* First pass: computes the hashes of paths, and prefetches their index lines. */
static void chunk_hash(struct pl_aggregate *agg, const struct pl_path *path, struct path_work *pw)
{
	pw->has_path = !(path->flags & PATH_UNKNOWN) && (path->present & PL_PATH_HAS_path_id);
	if (pw->has_path) {
		pw->hash = path_hash(agg->seed, path->path_id);
		pl_cells_prefetch(&agg->tables[PL_AGG_PATHS], pw->hash);
	}
}

static __attribute__((cold, noinline)) void path_describe(
	struct pl_agg_path *cell, const struct pl_path *path, const struct pl_hop *hops)
{
	cell->hop_count = path->hop_count;
	for (unsigned int i = 0; i < path->hop_count && i < PL_PATH_STEPS_MAX; i++) {
		cell->steps[i].node = hops[i].node;
		cell->steps[i].ingress_port = hops[i].ingress_port;
		cell->steps[i].egress_port = hops[i].egress_port;
	}
}

static inline void prefetch_cell(
	const struct pl_aggregate *agg, enum pl_agg_table table, uint32_t cell)
{
	pl_prefetch_write(pl_cells_at(&agg->tables[table], cell));
}

/* Second pass: finds or makes the path's cell, and prefetches the cells that its hops had the last
 * time. */
static void chunk_recall(struct pl_aggregate *agg, const struct pl_path *path,
	const struct pl_hop *hops, struct path_work *pw, struct hop_work *work)
{
	static const struct hop_cells unknown = { PL_CELL_NONE, PL_CELL_NONE, PL_CELL_NONE };
	struct path_memory *m = NULL;
	unsigned int known = 0;

	pw->memory = NULL;
	if (pw->has_path) {
		struct pl_path_key k = { .path_id = path->path_id };
		struct pl_agg_path *cell;

		pw->cell = obtain(agg, PL_AGG_PATHS, pw->hash, &k, sizeof(k), path);
		cell = pl_cells_at(&agg->tables[PL_AGG_PATHS], pw->cell);
		pw->latency = (uint8_t)pl_hist_index(path->latency_ns);
		pl_prefetch_write(&cell->latency.buckets[pw->latency]);
		if (pw->cell != agg->tables[PL_AGG_PATHS].cap) {
			m = pw->memory = &agg->memory[pw->cell];
			if (cell->reports == 0)
				path_describe(cell, path, hops);
		}
	}
	if (m != NULL && m->epoch != agg->epoch) {
		for (unsigned int i = 0; i < PL_PATH_STEPS_MAX; i++)
			m->hops[i] = unknown;
		m->epoch = agg->epoch;
	}
	if (m != NULL)
		known = path->hop_count < PL_PATH_STEPS_MAX ? path->hop_count : PL_PATH_STEPS_MAX;
	for (unsigned int i = 0; i < known; i++) {
		const struct hop_cells *c = &m->hops[i];

		work[i].guess = *c;
		if (c->queue != PL_CELL_NONE)
			prefetch_cell(agg, PL_AGG_QUEUES, c->queue);
		if (c->port != PL_CELL_NONE)
			prefetch_cell(agg, PL_AGG_PORTS, c->port);
		if (c->link != PL_CELL_NONE)
			prefetch_cell(agg, PL_AGG_LINKS, c->link);
	}
	for (unsigned int i = known; i < path->hop_count; i++)
		work[i].guess = unknown;
}

/* Keys are compared as words, as they are built. */
static inline uint32_t queue_cell(struct pl_aggregate *agg, enum pl_agg_table table, uint32_t guess,
	const uint64_t w[2], const struct pl_path *path)
{
	uint64_t key[2];

	if (guess != PL_CELL_NONE) {
		memcpy(key, pl_cells_at(&agg->tables[table], guess), sizeof(key));
		if (((key[0] ^ w[0]) | (key[1] ^ w[1])) == 0)
			return guess;
	}
	return obtain(agg, table, queue_hash(agg->seed, w), w, 2 * sizeof(*w), path);
}

static inline uint32_t link_cell(
	struct pl_aggregate *agg, uint32_t guess, const uint64_t w[4], const struct pl_path *path)
{
	uint64_t key[4];

	if (guess != PL_CELL_NONE) {
		memcpy(key, pl_cells_at(&agg->tables[PL_AGG_LINKS], guess), sizeof(key));
		if (((key[0] ^ w[0]) | (key[1] ^ w[1]) | (key[2] ^ w[2]) | (key[3] ^ w[3])) == 0)
			return guess;
	}
	return obtain(agg, PL_AGG_LINKS, link_hash(agg->seed, w), w, 4 * sizeof(*w), path);
}

/* The cell, unless it is the overflow cell. */
static inline uint32_t own(const struct pl_aggregate *agg, enum pl_agg_table table, uint32_t cell)
{
	return cell != agg->tables[table].cap ? cell : PL_CELL_NONE;
}

/* Third pass: finds or makes the hops' cells, and prefetches the lines of their buckets. */
static void chunk_find(struct pl_aggregate *agg, const struct pl_path *path,
	const struct pl_hop *hops, const struct path_work *pw, struct hop_work *work)
{
	for (unsigned int i = 0; i < path->hop_count; i++) {
		const struct pl_hop *hop = &hops[i];
		struct hop_work *w = &work[i];
		struct hop_cells found = w->guess;

		w->has_queue = (hop->present & PL_HOP_HAS_node) != 0;
		w->has_port = w->has_link = false;
		if (!w->has_queue)
			continue;
		{
			const union queue_words k = queue_words(hop);
			struct pl_agg_queue *cell;

			w->cells.queue = queue_cell(agg, PL_AGG_QUEUES, w->guess.queue, k.w, path);
			found.queue = own(agg, PL_AGG_QUEUES, w->cells.queue);
			cell = pl_cells_at(&agg->tables[PL_AGG_QUEUES], w->cells.queue);
			w->depth = (uint8_t)pl_hist_index(hop->queue_depth);
			w->latency = (uint8_t)pl_hist_index(hop->hop_latency_ns);
			pl_prefetch_write(&cell->depth.buckets[w->depth]);
			pl_prefetch_write(&cell->latency.buckets[w->latency]);
		}
		if (hop->present & (PL_HOP_HAS_egress_port | PL_HOP_HAS_tx_util)) {
			const union queue_words k = port_words(hop);

			w->has_port = true;
			w->cells.port = queue_cell(agg, PL_AGG_PORTS, w->guess.port, k.w, path);
			found.port = own(agg, PL_AGG_PORTS, w->cells.port);
		}
		/* In a partial stack nodes may be missing between two entries; when the decoder
		 * judged their clocks, they are neighbours. */
		if (i > 0 && (hops[i - 1].present & PL_HOP_HAS_node) &&
			(!(path->flags & PL_FLAG_PARTIAL) || (hop->present & PL_HOP_HAS_clock))) {
			const union link_words k = link_words(&hops[i - 1], hop);

			w->has_link = true;
			w->cells.link = link_cell(agg, w->guess.link, k.w, path);
			found.link = own(agg, PL_AGG_LINKS, w->cells.link);
		}
		if (pw->memory != NULL && i < PL_PATH_STEPS_MAX &&
			memcmp(&found, &w->guess, sizeof(found)) != 0)
			pw->memory->hops[i] = found;
	}
}

static inline void queue_add(struct pl_aggregate *agg, const struct hop_work *w,
	const struct pl_path *path, const struct pl_hop *hop)
{
	struct pl_agg_queue *cell = pl_cells_at(&agg->tables[PL_AGG_QUEUES], w->cells.queue);
	bool copy = path->flags & PL_FLAG_COPY;

	cell->seen_ns = agg->now_ns;
	cell->packets += !copy;
	if (hop->present & PL_HOP_HAS_queue_depth) {
		cell->last_depth = hop->queue_depth;
		cell->last_ts_ns = path->ts_ns;
		cell->has_depth = true;
		slot_max_add(&cell->depth_max, agg->slot, hop->queue_depth);
		if (!copy) {
			pl_hist_add_at(&cell->depth, w->depth, hop->queue_depth);
			pl_exemplar_offer(&cell->depth_gate, &cell->depth_exemplars, agg->slot,
				hop->queue_depth, path);
		}
	}
	if ((hop->present & PL_HOP_HAS_hop_latency_ns) && !copy) {
		pl_hist_add_at(&cell->latency, w->latency, hop->hop_latency_ns);
		pl_core_jitter_step(&cell->jitter.at, hop->hop_latency_ns);
		cell->jitter.ts_ns = path->ts_ns;
		pl_exemplar_offer(&cell->latency_gate, &cell->latency_exemplars, agg->slot,
			hop->hop_latency_ns, path);
	}
}

static inline void port_add(
	struct pl_aggregate *agg, uint32_t i, const struct pl_path *path, const struct pl_hop *hop)
{
	struct pl_agg_port *cell = pl_cells_at(&agg->tables[PL_AGG_PORTS], i);

	cell->seen_ns = agg->now_ns;
	cell->packets += !(path->flags & PL_FLAG_COPY);
	if (hop->present & PL_HOP_HAS_tx_util) {
		cell->last_util = hop->tx_util;
		cell->last_ts_ns = path->ts_ns;
		cell->has_util = true;
		slot_max_add(&cell->util_max, agg->slot, hop->tx_util);
	}
}

static inline void link_add(
	struct pl_aggregate *agg, uint32_t i, const struct pl_path *path, const struct pl_hop *hop)
{
	struct pl_agg_link *cell = pl_cells_at(&agg->tables[PL_AGG_LINKS], i);

	cell->seen_ns = agg->now_ns;
	if (path->flags & PL_FLAG_COPY)
		return;
	cell->reports++;
	if ((hop->present & PL_HOP_HAS_clock) && hop->clock < PL_CLOCK_MAX)
		cell->clock[hop->clock]++;
	if ((hop->present & PL_HOP_HAS_link_latency_ns) && hop->link_latency_ns >= 0) {
		pl_hist_add(&cell->latency, (uint64_t)hop->link_latency_ns);
		pl_core_jitter_step(&cell->jitter.at, (uint32_t)hop->link_latency_ns);
		cell->jitter.ts_ns = path->ts_ns;
		pl_exemplar_offer(&cell->latency_gate, &cell->latency_exemplars, agg->slot,
			(uint64_t)hop->link_latency_ns, path);
	}
}

static inline void path_add(
	struct pl_aggregate *agg, const struct path_work *pw, const struct pl_path *path)
{
	struct pl_agg_path *cell = pl_cells_at(&agg->tables[PL_AGG_PATHS], pw->cell);

	cell->seen_ns = agg->now_ns;
	cell->reports++;
	cell->last_ts_ns = path->ts_ns;
	if (path->present & PL_PATH_HAS_latency_ns) {
		pl_hist_add_at(&cell->latency, pw->latency, path->latency_ns);
		pl_exemplar_offer(&cell->latency_gate, &cell->latency_exemplars, agg->slot,
			path->latency_ns, path);
	}
}

/* Fourth pass. */
static void chunk_add(struct pl_aggregate *agg, const struct pl_path *path,
	const struct pl_hop *hops, const struct path_work *pw, const struct hop_work *work)
{
	agg->totals.reports++;
	agg->totals.copies += (path->flags & PL_FLAG_COPY) != 0;
	agg->totals.hops += path->hop_count;
	if (pw->has_path)
		path_add(agg, pw, path);
	else
		agg->totals.reports_without_path++;
	for (unsigned int i = 0; i < path->hop_count; i++) {
		const struct hop_work *w = &work[i];

		if (w->has_queue)
			queue_add(agg, w, path, &hops[i]);
		else
			agg->totals.hops_without_node++;
		if (w->has_port)
			port_add(agg, w->cells.port, path, &hops[i]);
		if (w->has_link)
			link_add(agg, w->cells.link, path, &hops[i]);
	}
}

/* The paths first … last-1 of the batch, whose hops fit into agg->hops. */
static void chunk(struct pl_aggregate *agg, const struct pl_record_batch *batch, uint32_t first,
	uint32_t last)
{
	uint32_t at = 0;

	for (uint32_t p = first; p < last; p++) {
		if (counts(&batch->paths[p]))
			chunk_recall(agg, &batch->paths[p], batch->hops + batch->first_hop[p],
				&agg->paths[p - first], &agg->hops[at]);
		at += batch->paths[p].hop_count;
	}
	at = 0;
	for (uint32_t p = first; p < last; p++) {
		if (counts(&batch->paths[p]))
			chunk_find(agg, &batch->paths[p], batch->hops + batch->first_hop[p],
				&agg->paths[p - first], &agg->hops[at]);
		at += batch->paths[p].hop_count;
	}
	at = 0;
	for (uint32_t p = first; p < last; p++) {
		if (counts(&batch->paths[p]))
			chunk_add(agg, &batch->paths[p], batch->hops + batch->first_hop[p],
				&agg->paths[p - first], &agg->hops[at]);
		else
			agg->totals.unproven++;
		at += batch->paths[p].hop_count;
	}
}

void pl_aggregate_batch(struct pl_aggregate *agg, const struct pl_record_batch *batch)
{
	uint32_t first = 0, last;

	while (first < batch->n_paths) {
		uint32_t hops = 0;

		for (last = first; last < batch->n_paths && last - first < CHUNK_PATHS; last++) {
			if (hops >= CHUNK_HOPS)
				break; /* there was room for one path of any length */
			chunk_hash(agg, &batch->paths[last], &agg->paths[last - first]);
			hops += batch->paths[last].hop_count;
		}
		chunk(agg, batch, first, last);
		if (__builtin_expect(agg->n_wanted > 0, 0))
			pl_aggregate_grant(agg);
		first = last;
	}
}
