/* SPDX-License-Identifier: BSD-2-Clause */
/* Brings the sums that detection keeps into aggregates. */
#include "detect/harvest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "detect/tables.h"

#include "core/detect_table.h"

/* The tables that have aggregates: TABLE(name, bytes of its key) */
#define HARVESTED(TABLE)                                                                           \
	TABLE(place, sizeof(struct pl_core_place_key))                                             \
	TABLE(gauge, sizeof(struct pl_core_place_key))                                             \
	TABLE(link, sizeof(struct pl_core_link_key))                                               \
	TABLE(route, 16)

/* Copy of every entry at the last harvest. */
struct pl_harvest {
#define TABLE(name, key) struct pl_core_##name *name;
	HARVESTED(TABLE)
#undef TABLE
};

/* Target and time of a harvest. */
struct basket {
	struct pl_aggregate *into;
	uint64_t now_ns, ts_ns;
	uint64_t age_ns;           /* time since the present entry was last seen */
	struct pl_agg_owner owner; /* source whose report made it */
};

int pl_harvest_new(struct pl_harvest **ret, const struct pl_detect *det)
{
	const struct pl_tables *t = pl_detect_tables(det);
	struct pl_harvest *h = calloc(1, sizeof(*h));
	bool good = h != NULL;

#define TABLE(n, key)                                                                              \
	if (good)                                                                                  \
		h->n = calloc((size_t)t->sets[PL_CORE_T_##n] * PL_CORE_WAYS, sizeof(*h->n));       \
	good = good && h->n != NULL;
	HARVESTED(TABLE)
#undef TABLE
	if (!good) {
		pl_harvest_free(h);
		return -ENOMEM;
	}
	*ret = h;
	return 0;
}

void pl_harvest_free(struct pl_harvest *h)
{
	if (h == NULL)
		return;
#define TABLE(name, key) free(h->name);
	HARVESTED(TABLE)
#undef TABLE
	free(h);
}

uint64_t pl_harvest_memory(const struct pl_detect_options *options)
{
	uint32_t entries[PL_CORE_T_MAX];
	uint64_t sum = sizeof(struct pl_harvest);

	pl_detect_entries(options, entries);
#define TABLE(name, key)                                                                           \
	sum += (uint64_t)pl_tables_sets(entries[PL_CORE_T_##name]) * PL_CORE_WAYS *                \
	       sizeof(struct pl_core_##name);
	HARVESTED(TABLE)
#undef TABLE
	return sum;
}

/* --- counts of an entry since
 * ------------------------------------------------------------------ */

static bool hist_fell(const struct pl_core_hist *now, const struct pl_core_hist *before)
{
	bool fell = now->sum < before->sum;

	for (unsigned int i = 0; i < PL_CORE_HIST; i++)
		fell |= now->count[i] < before->count[i];
	return fell;
}

static void hist_since(
	struct pl_hist *to, const struct pl_core_hist *now, const struct pl_core_hist *before)
{
	uint64_t count[PL_CORE_HIST];

	for (unsigned int i = 0; i < PL_CORE_HIST; i++)
		count[i] = now->count[i] - before->count[i];
	pl_hist_add_log2(to, count, PL_CORE_HIST, now->sum - before->sum);
}

static bool place_fell(const struct pl_core_place *now, const struct pl_core_place *before)
{
	return now->packets < before->packets || now->q[0].n < before->q[0].n ||
	       now->q[1].n < before->q[1].n || hist_fell(&now->hist[0], &before->hist[0]) ||
	       hist_fell(&now->hist[1], &before->hist[1]);
}

static bool gauge_fell(const struct pl_core_gauge *now, const struct pl_core_gauge *before)
{
	return now->packets < before->packets || now->q.n < before->q.n;
}

static bool link_fell(const struct pl_core_link *now, const struct pl_core_link *before)
{
	bool fell = now->packets < before->packets || hist_fell(&now->hist, &before->hist);

	for (unsigned int i = 0; i < PL_CLOCK_MAX; i++)
		fell |= now->clock[i] < before->clock[i];
	return fell;
}

static bool route_fell(const struct pl_core_route *now, const struct pl_core_route *before)
{
	return now->packets < before->packets || now->latency_sum < before->latency_sum ||
	       hist_fell(&now->hist, &before->hist);
}

/* Takes the largest value since the last harvest, and lets the steps begin a new one: in one
 * exchange, so that none is missed. */
static struct pl_slot_max take_max(const struct basket *b, struct pl_core_quantity *live)
{
	return (struct pl_slot_max){ .slot = pl_aggregate_slot(b->into),
		.current = __atomic_exchange_n(&live->max, 0, __ATOMIC_RELAXED),
		.has_current = true };
}

/* The source that pl_core_source made one word of; a link-local address in the form that it has
 * there. */
static struct pl_addr source_of(uint64_t word)
{
	const bool v4 = (uint32_t)word == 0xffff0000;
	struct pl_addr source = { { 0 } };

	memcpy(source.b + (v4 ? 8 : 0), &word, sizeof(word));
	return source;
}

/* --- entries to cells ------------------------------------------------------------------------- */

static struct pl_queue_key queue_key(const struct pl_core_place_key *k, bool queue)
{
	return (struct pl_queue_key){ .node = k->node,
		.port = k->port,
		.queue = queue ? k->queue : 0,
		.has = (uint16_t)((k->has & PL_CORE_HAS_PORT ? PL_KEY_HAS_PORT : 0) |
				  (queue && (k->has & PL_CORE_HAS_QUEUE) ? PL_KEY_HAS_QUEUE : 0)) };
}

static void place_since(const struct basket *b, const struct pl_core_place *now,
	const struct pl_core_place *before, struct pl_core_place *live)
{
	struct pl_agg_queue cell = { .key = queue_key(&now->key, true),
		.seen_ns = b->now_ns - b->age_ns,
		.packets = now->packets - before->packets,
		.owner = b->owner };
	struct pl_agg_port port = { .key = queue_key(&now->key, false),
		.seen_ns = cell.seen_ns,
		.packets = cell.packets,
		.owner = b->owner };

	if (now->q[1].n != before->q[1].n) {
		cell.has_depth = true;
		cell.last_depth = now->q[1].last;
		cell.last_ts_ns = b->ts_ns - b->age_ns;
		cell.depth_max = take_max(b, &live->q[1]);
	} else if (cell.packets == 0 && now->q[0].n == before->q[0].n) {
		return;
	}
	hist_since(&cell.latency, &now->hist[0], &before->hist[0]);
	if (now->jitter.last != 0)
		cell.jitter = (struct pl_agg_jitter){ now->jitter, b->ts_ns - b->age_ns };
	hist_since(&cell.depth, &now->hist[1], &before->hist[1]);
	pl_aggregate_add(b->into, PL_AGG_QUEUES, &cell);
	/* The packets of its queues leave by a port. */
	if (now->key.has & PL_CORE_HAS_PORT)
		pl_aggregate_add(b->into, PL_AGG_PORTS, &port);
}

static void gauge_since(const struct basket *b, const struct pl_core_gauge *now,
	const struct pl_core_gauge *before, struct pl_core_gauge *live)
{
	struct pl_agg_port cell = { .key = queue_key(&now->key, false),
		.seen_ns = b->now_ns - b->age_ns,
		.packets = now->key.has & PL_CORE_HAS_PORT ? 0 : now->packets - before->packets,
		.last_ts_ns = b->ts_ns - b->age_ns,
		.has_util = true,
		.last_util = now->q.last,
		.owner = b->owner };

	/* Buffers have no series of their own. */
	if ((now->key.has & PL_CORE_HAS_BUFFER) || now->q.n == before->q.n)
		return;
	cell.util_max = take_max(b, &live->q);
	pl_aggregate_add(b->into, PL_AGG_PORTS, &cell);
}

static void link_since(const struct basket *b, const struct pl_core_link *now,
	const struct pl_core_link *before, struct pl_core_link *live)
{
	struct pl_agg_link cell = {
		.key = {
			.a = now->key.peer,
			.b = now->key.node,
			.a_port = now->key.peer_port,
			.b_port = now->key.ingress_port,
			.has = (now->key.has & PL_CORE_HAS_BEFORE ? PL_KEY_HAS_PORT : 0) |
			       (now->key.has & PL_CORE_HAS_PORT ? PL_KEY_HAS_INGRESS : 0),
		},
		.seen_ns = b->now_ns - b->age_ns,
		.reports = now->packets - before->packets,
		.owner = b->owner,
	};

	(void)live;
	if (cell.reports == 0)
		return;
	for (unsigned int i = 0; i < PL_CLOCK_MAX; i++)
		cell.clock[i] = now->clock[i] - before->clock[i];
	hist_since(&cell.latency, &now->hist, &before->hist);
	if (now->jitter.last != 0)
		cell.jitter = (struct pl_agg_jitter){ now->jitter, b->ts_ns - b->age_ns };
	pl_aggregate_add(b->into, PL_AGG_LINKS, &cell);
}

static void route_since(const struct basket *b, const struct pl_core_route *now,
	const struct pl_core_route *before, struct pl_core_route *live)
{
	struct pl_core_hist hist = now->hist, hist_before = before->hist;
	struct pl_agg_path cell = { .key = { .path_id = now->path_id },
		.seen_ns = b->now_ns - b->age_ns,
		.last_ts_ns = b->ts_ns - b->age_ns,
		.reports = now->packets - before->packets,
		.hop_count = (uint8_t)now->hop_count,
		.owner = b->owner };

	_Static_assert(PL_CORE_ROUTE_NODES == PL_PATH_STEPS_MAX, "the same part of a path");
	(void)live;
	if (cell.reports == 0)
		return;
	for (unsigned int i = 0; i < PL_CORE_ROUTE_NODES && i < now->hop_count; i++)
		cell.steps[i].node = now->node[i];
	/* The histogram's own sum adds values that were cut to 32 bits. */
	hist.sum = now->latency_sum;
	hist_before.sum = before->latency_sum;
	hist_since(&cell.latency, &hist, &hist_before);
	pl_aggregate_add(b->into, PL_AGG_PATHS, &cell);
}

/* --- a harvest -------------------------------------------------------------------------------- */

/* Reads the entry, unless another key takes it at this moment. */
static bool look(void *now, const void *live, size_t size, const uint64_t *way, uint64_t *ret_way)
{
	*ret_way = __atomic_load_n(way, __ATOMIC_ACQUIRE);
	if (!pl_way_live(*ret_way))
		return false;
	memcpy(now, live, size);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(way, __ATOMIC_RELAXED) >> 32 == *ret_way >> 32;
}

void pl_harvest_take(struct pl_harvest *h, struct pl_detect *det, struct pl_aggregate *into,
	uint64_t now_ns, uint64_t ts_ns)
{
	const struct pl_tables *t = pl_detect_tables(det);
	struct basket b = { .into = into, .now_ns = now_ns, .ts_ns = ts_ns };

	/* When an entry has another key, or counts less than before, it is a new entry: all its counts
	 * are new. */
#define TABLE(name, key)                                                                           \
	for (uint32_t i = 0; i < t->sets[PL_CORE_T_##name] * PL_CORE_WAYS; i++) {                  \
		static const struct pl_core_##name none;                                           \
		struct pl_core_##name##_set *set = &t->name[i / PL_CORE_WAYS];                     \
		struct pl_core_##name *live = &set->e[i % PL_CORE_WAYS], now;                      \
		uint64_t way, age;                                                                 \
                                                                                                   \
		b.owner.source = source_of(set->owner[i % PL_CORE_WAYS]);                          \
		if (!look(&now, live, sizeof(now), &set->way[i % PL_CORE_WAYS], &way))             \
			continue;                                                                  \
		if (memcmp(&h->name[i], &now, key) != 0 || name##_fell(&now, &h->name[i]))         \
			h->name[i] = none;                                                         \
		age = (uint64_t)pl_core_age(pl_core_coarse(now_ns), way) << 20;                    \
		b.age_ns = age < now_ns ? age : now_ns;                                            \
		name##_since(&b, &now, &h->name[i], live);                                         \
		h->name[i] = now;                                                                  \
	}
	HARVESTED(TABLE)
#undef TABLE
}
