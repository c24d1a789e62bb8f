/* SPDX-License-Identifier: BSD-2-Clause */
/* Prefetch of a flow: first the line of its set; then, which needs that, the two of its entry. Most
 * flows are at their home. Internal to detect/. */
#pragma once

#include "base/prefetch.h"
#include "detect/tables.h"

#include "core/detect_table.h"

static inline struct pl_core_flow_set *pl_flow_set(const struct pl_core_env *env, uint64_t hash)
{
	return &env->tables.flow[pl_core_set_of(hash, env->rules.mask[PL_CORE_T_flow])];
}

static inline void pl_flow_fetch_set(const struct pl_core_env *env, uint64_t hash)
{
	pl_prefetch(pl_flow_set(env, hash)->way);
}

static inline void pl_flow_fetch(const struct pl_core_env *env, uint64_t hash)
{
	const struct pl_core_flow_set *set = pl_flow_set(env, hash);
	uint32_t at = pl_core_home(hash);

	if ((uint32_t)(set->way[at] >> 32) != pl_core_tag(hash))
		at = pl_core_search(set->way, pl_core_tag(hash)) & (PL_CORE_WAYS - 1);
	pl_prefetch_all(&set->e[at], sizeof(set->e[at]), true);
}
