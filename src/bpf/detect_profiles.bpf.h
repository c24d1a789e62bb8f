/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The profiles of exporters, for detect.bpf.c. */
#pragma once

#include "bpf/detect_maps.bpf.h"

/* Profile of an exporter. */
static __always_inline const struct pl_core_profile *profile_of(const void *addr)
{
	const struct pl_core_profile *p;
	struct pl_kernel_prefix key;

	if (!pl_control.profiles)
		return &pl_control.profile;
	key.bits = 128;
	__builtin_memcpy(key.addr.b, addr, sizeof(key.addr.b));
	p = bpf_map_lookup_elem(&pl_profiles, &key);
	return p != NULL ? p : &pl_control.profile;
}

static __always_inline int profile_usual(const struct pl_core_profile *p)
{
	return (p->escalate | p->announces | p->general) == 0;
}

/* Stores the profile of the exporter in w->keys at place i. */
__attribute__((noinline)) int pl_detect_see_profile(struct work *w, uint32_t i)
{
	const struct pl_core_profile *profile;
	struct profile_seen *seen;

	if (w == NULL)
		return 0;
	profile = profile_of(w->keys.exporter);
	seen = &w->seen[i & (PROFILES_SEEN - 1)];
	pl_core_copy(seen->addr, w->keys.exporter, 2);
	seen->layout_key = profile->layout_key;
	seen->usual = (uint64_t)profile_usual(profile);
	return 0;
}

/* Writes the part of layouts' keys that the profile of the exporter in w->keys gives. Returns 0
 * when its reports take the slow path. */
static __always_inline int layout_key_of(struct work *w, uint64_t *ret)
{
	const uint64_t *addr = w->keys.exporter;
	const uint32_t i = addr[1] >> 56 & (PROFILES_SEEN - 1);
	const struct profile_seen *seen = &w->seen[i];

	if (!pl_control.profiles) {
		*ret = pl_control.profile.layout_key;
		return profile_usual(&pl_control.profile);
	}
	if (!pl_core_same(seen->addr, addr, 2))
		pl_detect_see_profile(w, i);
	*ret = seen->layout_key;
	return seen->usual != 0;
}
