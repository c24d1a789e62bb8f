/* SPDX-License-Identifier: BSD-2-Clause */
/* A flow cache's memory and configuration, from pl_flow_cache_new() to pl_flow_cache_free(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/diag.h"
#include "base/rng.h"
#include "flow/cache_state.h"

#define LARGE_PAGE ((uint64_t)2 << 20)

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_flow_counters, __VA_ARGS__)
#include "flow/stats.def"
#undef PL_STAT
};
const struct pl_stats pl_flow_counters_list = { rows, sizeof(rows) / sizeof(rows[0]) };

uint32_t pl_flow_buckets_for(const struct pl_flow_config *config)
{
	return (config->max_flows + PL_FLOW_WAYS - 1) / PL_FLOW_WAYS;
}

/* Large pages for large tables: every flow is on another small one. */
static uint64_t rounded(uint64_t bytes)
{
	const uint64_t align = bytes >= LARGE_PAGE ? LARGE_PAGE : 64;

	return (bytes + align - 1) / align * align;
}

static void *aligned(uint64_t bytes)
{
	return aligned_alloc(bytes >= LARGE_PAGE ? LARGE_PAGE : 64, rounded(bytes));
}

static void *zeroed(uint64_t bytes)
{
	void *p = aligned(bytes);

	if (p == NULL)
		return NULL;
	if (bytes >= LARGE_PAGE)
		(void)madvise(p, rounded(bytes), MADV_HUGEPAGE);
	memset(p, 0, rounded(bytes));
	return p;
}

static uint64_t bucket_bytes(const struct pl_flow_config *config)
{
	return (uint64_t)pl_flow_buckets_for(config) * sizeof(struct pl_flow_bucket);
}

static uint64_t flow_bytes(const struct pl_flow_config *config)
{
	return (uint64_t)pl_flow_buckets_for(config) * PL_FLOW_WAYS * sizeof(struct pl_flow_entry);
}

static uint64_t other_bytes(const struct pl_flow_config *config)
{
	return (uint64_t)pl_flow_buckets_for(config) * PL_FLOW_WAYS * sizeof(struct pl_flow_other);
}

int pl_flow_config_check(const struct pl_flow_config *c, struct pl_diag *diag)
{
	if (c->max_flows == 0 || c->max_flows > PL_FLOW_MAX_FLOWS)
		pl_diag_set(diag, "max_flows is %u: a flow cache has 1 to %u flows", c->max_flows,
			PL_FLOW_MAX_FLOWS);
	else if (c->idle_ns == 0 || c->idle_ns > PL_FLOW_IDLE_MAX)
		pl_diag_set(diag, "the idle timeout must be longer than 0 and at most an hour");
	else if (c->active_ns == 0 || c->active_ns > PL_FLOW_ACTIVE_MAX)
		pl_diag_set(diag, "the active timeout must be longer than 0 and at most a day");
	else
		return 0;
	return -EINVAL;
}

struct pl_flow_cache *pl_flow_cache_bare(
	const struct pl_flow_config *config, pl_flow_sink *sink, void *arg)
{
	struct pl_flow_cache *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->config = *config;
	if (config->end_ns > config->idle_ns)
		c->config.end_ns = config->idle_ns;
	c->ahead_ns = config->live ? PL_FLOW_APART_NS : 0;
	c->idle_ticks = pl_flow_tick(config->idle_ns + c->ahead_ns) + 1;
	c->sink = sink;
	c->arg = arg;
	return c;
}

void pl_flow_new_seed(uint64_t ret[4], const void *salt)
{
	struct pl_rng rng;

	pl_rng_seed(&rng, pl_hash_seed() ^ (uintptr_t)salt);
	for (unsigned int i = 0; i < 4; i++)
		ret[i] = pl_rng_u64(&rng);
}

void pl_flow_cache_place(struct pl_flow_cache *c, void *memory, uint32_t n_buckets)
{
	const struct pl_flow_layout at = pl_flow_layout(n_buckets);
	uint8_t *m = memory;

	c->kept = memory;
	c->buckets = (void *)(m + at.buckets);
	c->flows = (void *)(m + at.flows);
	c->others = (void *)(m + at.others);
	c->n_buckets = n_buckets;
	c->scanned = 0;
	c->keeps = true;
	memcpy(c->seed, c->kept->seed, sizeof(c->seed));
}

int pl_flow_cache_new(struct pl_flow_cache **ret, const struct pl_flow_config *config,
	pl_flow_sink *sink, void *arg, struct pl_diag *diag)
{
	struct pl_flow_cache *c;

	if (pl_flow_config_check(config, diag) < 0)
		return -EINVAL;
	c = pl_flow_cache_bare(config, sink, arg);
	if (c != NULL) {
		c->kept = zeroed(sizeof(*c->kept));
		c->buckets = zeroed(bucket_bytes(config));
		c->flows = zeroed(flow_bytes(config));
		/* A flow's state tells whether its entry here is used: zeroing would make it take
		 * memory. */
		c->others = aligned(other_bytes(config));
	}
	if (c == NULL || c->kept == NULL || c->buckets == NULL || c->flows == NULL ||
		c->others == NULL) {
		pl_diag_set(diag, "no memory for a flow cache of %u flows", config->max_flows);
		pl_flow_cache_free(c);
		return -ENOMEM;
	}
	c->n_buckets = pl_flow_buckets_for(config);
	pl_flow_new_seed(c->seed, c);
	*ret = c;
	return 0;
}

void pl_flow_cache_free(struct pl_flow_cache *cache)
{
	if (cache == NULL)
		return;
	if (!cache->keeps) {
		free(cache->kept);
		free(cache->buckets);
		free(cache->flows);
		free(cache->others);
	}
	free(cache);
}

void pl_flow_cache_set_listening(struct pl_flow_cache *cache, const struct pl_flow_listening *set)
{
	cache->listening = set;
}

const struct pl_flow_counters *pl_flow_cache_counters(const struct pl_flow_cache *cache)
{
	return &cache->counters;
}

static const struct pl_stat state_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_flow_state_counters, __VA_ARGS__)
#include "flow/state_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_flow_state_counters_list = { state_rows,
	sizeof(state_rows) / sizeof(state_rows[0]) };

const struct pl_flow_state_counters *pl_flow_cache_state_counters(const struct pl_flow_cache *cache)
{
	return &cache->state_counters;
}
