/* SPDX-License-Identifier: BSD-2-Clause */
#include "detect/aggregate.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "detect/cells.h"

#define LIMIT_MAX     (1U << 20)
#define CHUNK_HOPS    24 /* what the passes touch of their cells stays in the first-level cache */
#define HOPS_MAX      255
#define CHUNK_PATHS   64
#define SWEEP_PARTS   16
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
 * Keys as words, built by shifts: a key written field by field and read as words a moment later would wait
 * for the store buffer each time. The layout is that of the key structures, little-endian.
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

/* Cells of one hop. */
struct hop_cells {
	uint32_t queue, port, link; /* PL_CELL_NONE: not known */
};

/*
 * Reports of one path meet the same cells: which they were the last time, beside each path's cell. A guess only, held
 * against the cell's key, so that what became of the cell since does not matter. What is in no cell of its own is not
 * remembered.
 */
struct path_memory {
	uint64_t epoch; /* of the aggregate, when this was written; another one: nothing is known */
	struct hop_cells hops[PL_PATH_STEPS_MAX];
};

/* A hop on its way through the passes over a chunk. */
struct hop_work {
	struct hop_cells guess, cells;
	bool has_queue, has_port, has_link;
	uint8_t depth, latency; /* buckets */
};

_Static_assert(PL_HIST_BUCKETS <= 256, "a bucket's number fits");

struct path_work {
	uint64_t hash;
	struct path_memory *memory; /* NULL: it has no cell of its own */
	uint32_t cell;
	bool has_path;
	uint8_t latency; /* bucket */
};

struct pl_aggregate {
	struct pl_aggregate_options options; /* with the defaults filled in */
	struct pl_cells tables[PL_AGG_TABLE_MAX];
	struct pl_agg_totals totals;
	uint64_t now_ns;
	uint64_t slot;
	uint64_t seed;
	uint64_t epoch;             /* counts what makes cells' numbers mean nothing; from 1 */
	struct path_memory *memory; /* of each path's cell */
	struct path_work paths[CHUNK_PATHS];
	struct hop_work hops[CHUNK_HOPS + HOPS_MAX];
};

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
		if (pl_cells_init(&agg->tables[t], table_limit(&o, t), cell_size[t]) < 0) {
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
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++)
		pl_cells_done(&agg->tables[t]);
	free(agg->memory);
	free(agg);
}

uint64_t pl_aggregate_memory(const struct pl_aggregate_options *options)
{
	struct pl_aggregate_options o = with_defaults(options);
	uint64_t bytes = sizeof(struct pl_aggregate) + o.max_paths * sizeof(struct path_memory);

	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++)
		bytes += pl_cells_memory(table_limit(&o, t), cell_size[t]);
	return bytes;
}

/*
 * The hashes. The seed is secret and goes into the factor that holds the 64-bit identifier; the other factor
 * never reaches the constant that pl_hash_mix adds to it (its upper 16 bits hold at most 7), so no key
 * chosen by a sender makes the product vanish.
 */
static uint64_t queue_hash(uint64_t seed, const uint64_t w[2])
{
	return pl_hash_mix(w[0] ^ seed, w[1]);
}

static uint64_t link_hash(uint64_t seed, const uint64_t w[4])
{
	uint64_t a = pl_hash_mix(w[0] ^ seed, w[3] << 48 | (uint32_t)w[2]);
	uint64_t b = pl_hash_mix(w[1] ^ ~seed, w[3] << 48 | w[2] >> 32);

	return a + (b << 31 | b >> 33);
}

static uint64_t path_hash(uint64_t seed, uint64_t path_id)
{
	return pl_hash_mix(path_id ^ seed, 0);
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

/* The cell of this key, made when new; the overflow cell when there is no room. */
static inline uint32_t obtain(struct pl_aggregate *agg, enum pl_agg_table table, uint64_t hash,
	const void *key, size_t key_len)
{
	struct pl_cells *t = &agg->tables[table];
	uint32_t cell = pl_cells_find(t, hash, key, key_len);

	if (__builtin_expect(cell != PL_CELL_NONE, 1))
		return cell;
	cell = pl_cells_insert(t, hash, key, key_len);
	if (cell != PL_CELL_NONE)
		return cell;
	agg->totals.overflow[table]++;
	return t->cap;
}

/* --- maxima per fixed slot ------------------------------------------------------------------------- */

static void slot_max_advance(struct pl_slot_max *m, uint64_t slot)
{
	if (m->slot == slot)
		return;
	assert(slot > m->slot);
	m->has_previous = m->has_current && slot - m->slot == 1;
	m->previous = m->has_previous ? m->current : 0;
	m->has_current = false;
	m->current = 0;
	m->slot = slot;
}

static inline void slot_max_add(struct pl_slot_max *m, uint64_t slot, uint32_t v)
{
	if (__builtin_expect(m->slot != slot, 0))
		slot_max_advance(m, slot);
	if (!m->has_current || v > m->current) {
		m->current = v;
		m->has_current = true;
	}
}

static void slot_max_merge(struct pl_slot_max *into, const struct pl_slot_max *from)
{
	struct pl_slot_max f = *from;
	uint64_t slot = f.slot > into->slot ? f.slot : into->slot;

	slot_max_advance(into, slot);
	slot_max_advance(&f, slot);
	if (f.has_current && (!into->has_current || f.current > into->current)) {
		into->current = f.current;
		into->has_current = true;
	}
	if (f.has_previous && (!into->has_previous || f.previous > into->previous)) {
		into->previous = f.previous;
		into->has_previous = true;
	}
}

bool pl_aggregate_max(const struct pl_aggregate *agg, const struct pl_slot_max *max, uint32_t *ret)
{
	struct pl_slot_max m = *max;

	if (agg->slot > m.slot)
		slot_max_advance(&m, agg->slot);
	if (!m.has_current && !m.has_previous)
		return false;
	*ret = m.current > m.previous ? m.current : m.previous; /* an absent one is 0 */
	return true;
}

/* --- the batch --------------------------------------------------------------------------------------- */

/* Which path a report took can be told only from a whole stack that reached its end. */
#define PATH_UNKNOWN (PL_FLAG_PARTIAL | PL_FLAG_DROPPED | PL_FLAG_INTERMEDIATE | PL_FLAG_COPY)

/* First pass: paths' hashes, and their index lines on the way. */
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
	__builtin_prefetch(pl_cells_at(&agg->tables[table], cell), 1);
}

/* Second pass: the path's cell, made when new, and the cells that its hops had the last time, on their way. */
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

		pw->cell = obtain(agg, PL_AGG_PATHS, pw->hash, &k, sizeof(k));
		cell = pl_cells_at(&agg->tables[PL_AGG_PATHS], pw->cell);
		pw->latency = (uint8_t)pl_hist_index(path->latency_ns);
		__builtin_prefetch(&cell->latency.buckets[pw->latency], 1);
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
static inline uint32_t queue_cell(
	struct pl_aggregate *agg, enum pl_agg_table table, uint32_t guess, const uint64_t w[2])
{
	uint64_t key[2];

	if (guess != PL_CELL_NONE) {
		memcpy(key, pl_cells_at(&agg->tables[table], guess), sizeof(key));
		if (((key[0] ^ w[0]) | (key[1] ^ w[1])) == 0)
			return guess;
	}
	return obtain(agg, table, queue_hash(agg->seed, w), w, 2 * sizeof(*w));
}

static inline uint32_t link_cell(struct pl_aggregate *agg, uint32_t guess, const uint64_t w[4])
{
	uint64_t key[4];

	if (guess != PL_CELL_NONE) {
		memcpy(key, pl_cells_at(&agg->tables[PL_AGG_LINKS], guess), sizeof(key));
		if (((key[0] ^ w[0]) | (key[1] ^ w[1]) | (key[2] ^ w[2]) | (key[3] ^ w[3])) == 0)
			return guess;
	}
	return obtain(agg, PL_AGG_LINKS, link_hash(agg->seed, w), w, 4 * sizeof(*w));
}

/* What is in a cell of its own. */
static inline uint32_t own(const struct pl_aggregate *agg, enum pl_agg_table table, uint32_t cell)
{
	return cell != agg->tables[table].cap ? cell : PL_CELL_NONE;
}

/* Third pass: the hops' cells, made where new, and the lines of their buckets on the way. */
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

			w->cells.queue = queue_cell(agg, PL_AGG_QUEUES, w->guess.queue, k.w);
			found.queue = own(agg, PL_AGG_QUEUES, w->cells.queue);
			cell = pl_cells_at(&agg->tables[PL_AGG_QUEUES], w->cells.queue);
			w->depth = (uint8_t)pl_hist_index(hop->queue_depth);
			w->latency = (uint8_t)pl_hist_index(hop->hop_latency_ns);
			__builtin_prefetch(&cell->depth.buckets[w->depth], 1);
			__builtin_prefetch(&cell->latency.buckets[w->latency], 1);
		}
		if (hop->present & (PL_HOP_HAS_egress_port | PL_HOP_HAS_tx_util)) {
			const union queue_words k = port_words(hop);

			w->has_port = true;
			w->cells.port = queue_cell(agg, PL_AGG_PORTS, w->guess.port, k.w);
			found.port = own(agg, PL_AGG_PORTS, w->cells.port);
		}
		/* In a partial stack nodes may be missing between two entries; the decoder vouches
		 * for neighbours by judging their clocks. */
		if (i > 0 && (hops[i - 1].present & PL_HOP_HAS_node) &&
			(!(path->flags & PL_FLAG_PARTIAL) || (hop->present & PL_HOP_HAS_clock))) {
			const union link_words k = link_words(&hops[i - 1], hop);

			w->has_link = true;
			w->cells.link = link_cell(agg, w->guess.link, k.w);
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
		chunk_recall(agg, &batch->paths[p], batch->hops + batch->first_hop[p],
			&agg->paths[p - first], &agg->hops[at]);
		at += batch->paths[p].hop_count;
	}
	at = 0;
	for (uint32_t p = first; p < last; p++) {
		chunk_find(agg, &batch->paths[p], batch->hops + batch->first_hop[p],
			&agg->paths[p - first], &agg->hops[at]);
		at += batch->paths[p].hop_count;
	}
	at = 0;
	for (uint32_t p = first; p < last; p++) {
		chunk_add(agg, &batch->paths[p], batch->hops + batch->first_hop[p],
			&agg->paths[p - first], &agg->hops[at]);
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
		first = last;
	}
}

/* --- time, copies, merging --------------------------------------------------------------------------- */

static uint64_t cell_seen_ns(enum pl_agg_table table, const void *cell)
{
	switch (table) {
	case PL_AGG_QUEUES:
		return ((const struct pl_agg_queue *)cell)->seen_ns;
	case PL_AGG_PORTS:
		return ((const struct pl_agg_port *)cell)->seen_ns;
	case PL_AGG_LINKS:
		return ((const struct pl_agg_link *)cell)->seen_ns;
	default:
		return ((const struct pl_agg_path *)cell)->seen_ns;
	}
}

static uint64_t cell_readings(enum pl_agg_table table, const void *cell)
{
	switch (table) {
	case PL_AGG_QUEUES:
		return ((const struct pl_agg_queue *)cell)->packets;
	case PL_AGG_PORTS:
		return ((const struct pl_agg_port *)cell)->packets;
	case PL_AGG_LINKS:
		return ((const struct pl_agg_link *)cell)->reports;
	default:
		return ((const struct pl_agg_path *)cell)->reports;
	}
}

static void sweep(struct pl_aggregate *agg, enum pl_agg_table table)
{
	struct pl_cells *t = &agg->tables[table];
	uint32_t n = t->high / SWEEP_PARTS + 1;

	for (; n > 0 && t->high > 0; n--) {
		uint32_t i = t->sweep < t->high ? t->sweep : 0;

		t->sweep = i + 1;
		if (pl_cells_live(t, i) && agg->now_ns - cell_seen_ns(table, pl_cells_at(t, i)) >
						   agg->options.idle_ns) {
			pl_cells_remove(t, i);
			agg->totals.aged[table]++;
		}
	}
}

void pl_aggregate_tick(struct pl_aggregate *agg, uint64_t now_ns)
{
	if (now_ns > agg->now_ns) {
		agg->now_ns = now_ns;
		agg->slot = now_ns / agg->options.slot_ns;
	}
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++)
		sweep(agg, t);
}

void pl_aggregate_copy(struct pl_aggregate *dst, const struct pl_aggregate *src)
{
	assert(memcmp(&dst->options, &src->options, sizeof(src->options)) == 0);
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++)
		pl_cells_copy(&dst->tables[t], &src->tables[t]);
	dst->totals = src->totals;
	dst->now_ns = src->now_ns;
	dst->slot = src->slot;
	dst->seed = src->seed;
	dst->epoch++;
}

void pl_aggregate_reset(struct pl_aggregate *agg)
{
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++)
		pl_cells_clear(&agg->tables[t]);
	agg->epoch++;
	agg->totals = (struct pl_agg_totals){ 0 };
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void queue_merge(struct pl_agg_queue *into, const struct pl_agg_queue *from)
{
	into->seen_ns = later(into->seen_ns, from->seen_ns);
	into->packets += from->packets;
	if (from->has_depth && (!into->has_depth || from->last_ts_ns > into->last_ts_ns)) {
		into->last_depth = from->last_depth;
		into->last_ts_ns = from->last_ts_ns;
		into->has_depth = true;
	}
	slot_max_merge(&into->depth_max, &from->depth_max);
	pl_hist_merge(&into->depth, &from->depth);
	pl_hist_merge(&into->latency, &from->latency);
	pl_exemplar_merge(&into->depth_gate, &into->depth_exemplars, &from->depth_gate,
		&from->depth_exemplars);
	pl_exemplar_merge(&into->latency_gate, &into->latency_exemplars, &from->latency_gate,
		&from->latency_exemplars);
}

static void port_merge(struct pl_agg_port *into, const struct pl_agg_port *from)
{
	into->seen_ns = later(into->seen_ns, from->seen_ns);
	into->packets += from->packets;
	if (from->has_util && (!into->has_util || from->last_ts_ns > into->last_ts_ns)) {
		into->last_util = from->last_util;
		into->last_ts_ns = from->last_ts_ns;
		into->has_util = true;
	}
	slot_max_merge(&into->util_max, &from->util_max);
}

static void link_merge(struct pl_agg_link *into, const struct pl_agg_link *from)
{
	into->seen_ns = later(into->seen_ns, from->seen_ns);
	into->reports += from->reports;
	for (unsigned int i = 0; i < PL_CLOCK_MAX; i++)
		into->clock[i] += from->clock[i];
	pl_hist_merge(&into->latency, &from->latency);
	pl_exemplar_merge(&into->latency_gate, &into->latency_exemplars, &from->latency_gate,
		&from->latency_exemplars);
}

static void path_merge(struct pl_agg_path *into, const struct pl_agg_path *from)
{
	if (into->reports == 0) {
		into->hop_count = from->hop_count;
		memcpy(into->steps, from->steps, sizeof(into->steps));
	}
	into->seen_ns = later(into->seen_ns, from->seen_ns);
	into->reports += from->reports;
	into->last_ts_ns = later(into->last_ts_ns, from->last_ts_ns);
	pl_hist_merge(&into->latency, &from->latency);
	pl_exemplar_merge(&into->latency_gate, &into->latency_exemplars, &from->latency_gate,
		&from->latency_exemplars);
}

static void cell_merge(enum pl_agg_table table, void *into, const void *from)
{
	switch (table) {
	case PL_AGG_QUEUES:
		queue_merge(into, from);
		break;
	case PL_AGG_PORTS:
		port_merge(into, from);
		break;
	case PL_AGG_LINKS:
		link_merge(into, from);
		break;
	default:
		path_merge(into, from);
		break;
	}
}

static uint64_t cell_hash(uint64_t seed, enum pl_agg_table table, const void *cell)
{
	uint64_t w[4];

	switch (table) {
	case PL_AGG_LINKS:
		memcpy(w, cell, sizeof(struct pl_link_key));
		return link_hash(seed, w);
	case PL_AGG_PATHS:
		return path_hash(seed, ((const struct pl_path_key *)cell)->path_id);
	default:
		memcpy(w, cell, sizeof(struct pl_queue_key));
		return queue_hash(seed, w);
	}
}

void pl_aggregate_add(struct pl_aggregate *agg, enum pl_agg_table table, const void *cell)
{
	size_t key_len = table == PL_AGG_LINKS ? sizeof(struct pl_link_key) : 16;
	uint64_t *overflow = &agg->totals.overflow[table];
	const uint64_t before = *overflow;
	uint32_t i = obtain(agg, table, cell_hash(agg->seed, table, cell), cell, key_len);

	if (*overflow != before)
		*overflow = before + cell_readings(table, cell);
	cell_merge(table, pl_cells_at(&agg->tables[table], i), cell);
}

void pl_aggregate_merge(struct pl_aggregate *into, const struct pl_aggregate *from)
{
	assert(into->options.slot_ns == from->options.slot_ns);
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		size_t key_len = t == PL_AGG_LINKS ? sizeof(struct pl_link_key) : 16;
		const void *cell;
		uint32_t pos = 0;

		while ((cell = pl_cells_next(&from->tables[t], &pos)) != NULL) {
			uint32_t i = obtain(into, t, cell_hash(into->seed, t, cell), cell, key_len);

			cell_merge(t, pl_cells_at(&into->tables[t], i), cell);
		}
		cell_merge(t, pl_cells_at(&into->tables[t], into->tables[t].cap),
			pl_cells_at(&from->tables[t], from->tables[t].cap));
		into->totals.overflow[t] += from->totals.overflow[t];
		into->totals.aged[t] += from->totals.aged[t];
	}
	into->totals.reports += from->totals.reports;
	into->totals.copies += from->totals.copies;
	into->totals.hops += from->totals.hops;
	into->totals.reports_without_path += from->totals.reports_without_path;
	into->totals.hops_without_node += from->totals.hops_without_node;
	into->now_ns = later(into->now_ns, from->now_ns);
	into->slot = later(into->slot, from->slot);
}

const void *pl_aggregate_find(
	const struct pl_aggregate *agg, enum pl_agg_table table, const void *key)
{
	const struct pl_cells *t = &agg->tables[table];
	size_t key_len = table == PL_AGG_LINKS ? sizeof(struct pl_link_key) : 16;
	uint32_t cell = pl_cells_find(t, cell_hash(agg->seed, table, key), key, key_len);

	return cell != PL_CELL_NONE ? pl_cells_at(t, cell) : NULL;
}

/* --- reading ----------------------------------------------------------------------------------------- */

const struct pl_agg_queue *pl_aggregate_queue(const struct pl_aggregate *agg, uint32_t *pos)
{
	return pl_cells_next(&agg->tables[PL_AGG_QUEUES], pos);
}

const struct pl_agg_port *pl_aggregate_port(const struct pl_aggregate *agg, uint32_t *pos)
{
	return pl_cells_next(&agg->tables[PL_AGG_PORTS], pos);
}

const struct pl_agg_link *pl_aggregate_link(const struct pl_aggregate *agg, uint32_t *pos)
{
	return pl_cells_next(&agg->tables[PL_AGG_LINKS], pos);
}

const struct pl_agg_path *pl_aggregate_path(const struct pl_aggregate *agg, uint32_t *pos)
{
	return pl_cells_next(&agg->tables[PL_AGG_PATHS], pos);
}

static const void *overflow_cell(const struct pl_aggregate *agg, enum pl_agg_table table)
{
	return pl_cells_at(&agg->tables[table], agg->tables[table].cap);
}

const struct pl_agg_queue *pl_aggregate_queue_overflow(const struct pl_aggregate *agg)
{
	return overflow_cell(agg, PL_AGG_QUEUES);
}

const struct pl_agg_port *pl_aggregate_port_overflow(const struct pl_aggregate *agg)
{
	return overflow_cell(agg, PL_AGG_PORTS);
}

const struct pl_agg_link *pl_aggregate_link_overflow(const struct pl_aggregate *agg)
{
	return overflow_cell(agg, PL_AGG_LINKS);
}

const struct pl_agg_path *pl_aggregate_path_overflow(const struct pl_aggregate *agg)
{
	return overflow_cell(agg, PL_AGG_PATHS);
}

uint32_t pl_aggregate_count(const struct pl_aggregate *agg, enum pl_agg_table table)
{
	return pl_cells_count(&agg->tables[table]);
}

uint32_t pl_aggregate_limit(const struct pl_aggregate *agg, enum pl_agg_table table)
{
	return agg->tables[table].cap;
}

const struct pl_agg_totals *pl_aggregate_totals(const struct pl_aggregate *agg)
{
	return &agg->totals;
}

const char *pl_agg_table_name(enum pl_agg_table table)
{
	static const char *const names[PL_AGG_TABLE_MAX] = { "queues", "ports", "links", "paths" };

	assert(table < PL_AGG_TABLE_MAX);
	return names[table];
}

uint64_t pl_aggregate_slot(const struct pl_aggregate *agg)
{
	return agg->slot;
}
