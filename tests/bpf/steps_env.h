/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of detection over plain memory: what the kernel program is held against. */
#pragma once

#include <stdlib.h>
#include <string.h>

#define PL_CORE_TRAIL 32

#include "bpf/detect_kernel.h"
#include "core/env.h"
#include "core/path_known.h"

#define ENV_EVENTS 4096

struct pl_core_env {
	void *sets[PL_CORE_T_MAX];
	struct pl_core_rules rules;
	struct pl_core_counters counters;
	struct pl_core_trail trail;
	const struct pl_core_hop *hops; /* of the report at hand */
	struct pl_core_known known;
	struct pl_event *events;
	uint32_t n;
};

static inline const struct pl_core_rules *pl_env_rules(const struct pl_core_env *env)
{
	return &env->rules;
}

static inline struct pl_core_counters *pl_env_counters(struct pl_core_env *env)
{
	return &env->counters;
}

static inline struct pl_core_trail *pl_env_trail(struct pl_core_env *env)
{
	return &env->trail;
}

static inline const struct pl_core_known *pl_env_known(
	struct pl_core_env *env, const struct pl_core_report *r)
{
	memset(&env->known, 0, sizeof(env->known));
	for (uint32_t i = 0; i < r->hop_count; i++) {
		const struct pl_core_hop *h = &env->hops[i];

		pl_core_know(&env->known, i, h->node, h->ingress_port, h->egress_port, h->present);
	}
	return &env->known;
}

#define TABLE(name, help)                                                                          \
	static inline struct pl_core_##name##_set *pl_env_##name##_set(                            \
		struct pl_core_env *env, uint32_t i)                                               \
	{                                                                                          \
		return (struct pl_core_##name##_set *)env->sets[PL_CORE_T_##name] + i;             \
	}
PL_CORE_TABLES(TABLE)
#undef TABLE

static inline struct pl_event *pl_env_event(struct pl_core_env *env)
{
	return env->n < ENV_EVENTS ? &env->events[env->n] : NULL;
}

static inline void pl_env_tell(struct pl_core_env *env, struct pl_event *e)
{
	(void)e;
	env->n++;
}

#include "core/detect_steps.h"

static inline size_t env_set_bytes(unsigned int table)
{
	static const size_t bytes[PL_CORE_T_MAX] = {
#define TABLE(name, help) sizeof(struct pl_core_##name##_set),
		PL_CORE_TABLES(TABLE)
#undef TABLE
	};

	return bytes[table];
}

static inline void env_init(struct pl_core_env *env, const struct pl_core_rules *rules)
{
	memset(env, 0, sizeof(*env));
	env->rules = *rules;
	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++) {
		size_t size = env_set_bytes(i) * (rules->mask[i] + UINT64_C(1));

		env->sets[i] = aligned_alloc(64, size);
		if (env->sets[i] == NULL)
			abort();
		memset(env->sets[i], 0, size);
	}
	env->events = calloc(ENV_EVENTS, sizeof(*env->events));
	if (env->events == NULL)
		abort();
}

static inline void env_done(struct pl_core_env *env)
{
	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++)
		free(env->sets[i]);
	free(env->events);
}

/* A settled report through the steps. */
static inline void env_report(struct pl_core_env *env, const struct pl_core_scratch *s)
{
	struct pl_core_hop path;

	env->hops = s->hops;
	pl_core_report_begin(env, &s->report);
	for (uint32_t i = 0; i < s->n; i++)
		pl_core_hop_step(env, &s->report, &s->hops[i]);
	pl_core_report_end(env, &s->report, s->n > 0 ? &s->hops[s->n - 1] : NULL);
	if (pl_core_delay_counts(pl_env_rules(env), &s->report))
		pl_core_delay_step(env, &s->report, &path, s->latency_ns);
	pl_core_route_step(env, &s->report, s->latency_ns);
}
