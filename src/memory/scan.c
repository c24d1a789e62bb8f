/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks over a store and finds what changed since the walk before. */
#include "memory/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "memory/postcards.h"
#include "memory/words.h"

#define COPIES_MAX UINT64_C(65536)
#define WAYS       4

/* Number of slots and bytes between them; false for another kind of store. */
static bool shape(const struct pl_store_params *p, uint64_t *ret_n, uint64_t *ret_stride)
{
	switch (p->primitive) {
	case PL_KEY_WRITE:
		*ret_n = p->key_write.slots;
		*ret_stride = pl_key_write_slot_bytes(p->key_write.value_bytes);
		return true;
	case PL_COUNTERS:
		*ret_n = p->counters.width;
		*ret_stride = 8;
		return true;
	case PL_POSTCARDS:
		*ret_n = p->postcards.chunks;
		*ret_stride = pl_postcards_chunk_bytes(p->hash, p->postcards.hops);
		return true;
	default:
		return false;
	}
}

/* Twice as many places as there can be values, in sets of WAYS. */
static uint64_t copies_for(const struct pl_store_params *p)
{
	uint64_t n = WAYS;

	if (p->primitive != PL_KEY_WRITE || p->key_write.copies < 2)
		return 0;
	while (n < 2 * p->key_write.slots && n < 2 * COPIES_MAX)
		n *= 2;
	return n;
}

/* Slots that are more than one word. */
static uint32_t waiting_for(const struct pl_store_params *p)
{
	if (p->primitive != PL_KEY_WRITE || p->key_write.value_bytes <= 4)
		return 0;
	return p->key_write.slots < COPIES_MAX ? (uint32_t)p->key_write.slots : COPIES_MAX;
}

int pl_scan_init(
	struct pl_scan *s, const struct pl_store_params *params, const void *base, bool quiet)
{
	uint64_t copies = copies_for(params);

	*s = (struct pl_scan){ .primitive = params->primitive, .base = base, .quiet = quiet };
	if (!shape(params, &s->n, &s->stride))
		return -EINVAL;
	/* The stores are initialized for reading only. */
	if (params->primitive == PL_KEY_WRITE)
		(void)pl_key_write_init(&s->key_write, params, (void *)(uintptr_t)base);
	s->seen = calloc(s->n, sizeof(*s->seen));
	if (copies > 0)
		s->copies = calloc(copies, sizeof(*s->copies));
	s->max_waiting = waiting_for(params);
	if (s->max_waiting > 0)
		s->waiting = calloc(s->max_waiting, sizeof(*s->waiting));
	if (s->seen == NULL || (copies > 0 && s->copies == NULL) ||
		(s->max_waiting > 0 && s->waiting == NULL)) {
		pl_scan_done(s);
		return -ENOMEM;
	}
	s->copies_mask = copies > 0 ? copies / WAYS - 1 : 0;
	s->at = s->n;
	return 0;
}

void pl_scan_done(struct pl_scan *s)
{
	free(s->seen);
	free(s->copies);
	free(s->waiting);
	s->waiting = NULL;
	s->seen = NULL;
	s->copies = NULL;
}

void pl_scan_rebase(struct pl_scan *s, const void *base, bool anew)
{
	s->base = base;
	s->key_write.base = (uint8_t *)(uintptr_t)base;
	if (anew)
		memset(s->seen, 0, s->n * sizeof(*s->seen));
	s->at = s->n;
	s->n_waiting = s->settled = 0;
	s->quiet = false;
}

void pl_scan_begin(struct pl_scan *s)
{
	s->at = 0;
	s->in_use_now = 0;
	s->walk++;
}

/* True when the same value was found in this walk or the one before: then this is a copy. Otherwise
 * the value is noted, in place of the oldest of its set. */
static bool is_copy(struct pl_scan *s, uint64_t hash)
{
	struct pl_scan_copy *set, *oldest;

	if (s->copies == NULL)
		return false;
	set = oldest = &s->copies[(hash >> 32 & s->copies_mask) * WAYS];
	for (unsigned int i = 0; i < WAYS; i++) {
		if (set[i].hash == hash && set[i].walk + 1 >= s->walk && set[i].walk > 0)
			return true;
		if (set[i].walk < oldest->walk)
			oldest = &set[i];
	}
	*oldest = (struct pl_scan_copy){ hash, s->walk };
	return false;
}

/* A slot that holds something, as its hash. */
static bool look_at_slot(const struct pl_scan *s, uint64_t i, uint64_t *ret_hash, void *value)
{
	uint32_t check;

	if (!pl_key_write_slot(&s->key_write, i, &check, value))
		return false;
	*ret_hash = pl_hash(value, s->key_write.value_bytes, check) | 1;
	return true;
}

/* A change that is one: false when it is a copy's. */
static bool take_slot(struct pl_scan *s, uint64_t i, uint64_t hash, struct pl_scan_found *ret)
{
	s->seen[i] = hash;
	s->changed++;
	if (is_copy(s, hash)) {
		s->repeated++;
		return false;
	}
	*ret = (struct pl_scan_found){ .number = i, .bytes = s->key_write.value_bytes };
	return true;
}

static bool slot_changed(struct pl_scan *s, uint64_t i, struct pl_scan_found *ret, void *ret_value)
{
	uint64_t hash;

	if (!look_at_slot(s, i, &hash, ret_value))
		return false;
	s->in_use_now++;
	if (hash == s->seen[i])
		return false;
	if (s->quiet)
		s->seen[i] = hash;
	else if (s->waiting != NULL)
		s->waiting[s->n_waiting++] = (struct pl_scan_waiting){ i, hash };
	else
		return take_slot(s, i, hash, ret);
	return false;
}

bool pl_scan_settle(struct pl_scan *s, struct pl_scan_found *ret, void *ret_value)
{
	while (s->settled < s->n_waiting) {
		const struct pl_scan_waiting *w = &s->waiting[s->settled++];
		uint64_t hash;

		if (!look_at_slot(s, w->number, &hash, ret_value) || hash != w->hash) {
			s->unsettled++;
		} else if (take_slot(s, w->number, hash, ret)) {
			s->found++;
			return true;
		}
	}
	s->n_waiting = s->settled = 0;
	return false;
}

static bool cell_changed(struct pl_scan *s, uint64_t i, struct pl_scan_found *ret)
{
	const void *at = s->base + i * s->stride;
	const uint64_t cell = __atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED);
	uint64_t was = s->seen[i];

	s->in_use_now += cell != 0;
	if (cell == was)
		return false;
	s->seen[i] = cell;
	if (s->quiet)
		return false;
	if (cell < was) {
		s->emptied++;
		was = 0;
	}
	if (cell == was)
		return false;
	s->changed++;
	s->increase += cell - was;
	*ret = (struct pl_scan_found){ .number = i, .cell = cell, .increase = cell - was };
	return true;
}

static void chunk_changed(struct pl_scan *s, uint64_t i)
{
	uint64_t words[PL_HOPS_MAX + 1], any = 0, hash;

	pl_words_load(words, s->base + i * s->stride, s->stride);
	for (uint64_t k = 0; k < s->stride / 8; k++)
		any |= words[k];
	s->in_use_now += any != 0;
	hash = any != 0 ? pl_hash(words, s->stride, 0) | 1 : 0;
	if (hash == s->seen[i])
		return;
	s->seen[i] = hash;
	if (s->quiet || any == 0)
		return;
	s->changed++;
	s->keyed++;
}

static bool changed(struct pl_scan *s, uint64_t i, struct pl_scan_found *ret, void *value)
{
	switch (s->primitive) {
	case PL_KEY_WRITE:
		return slot_changed(s, i, ret, value);
	case PL_COUNTERS:
		return cell_changed(s, i, ret);
	default:
		chunk_changed(s, i);
		return false;
	}
}

bool pl_scan_next(struct pl_scan *s, uint64_t *budget, struct pl_scan_found *ret, void *ret_value)
{
	while (s->at<s->n && * budget> 0) {
		if (s->waiting != NULL && s->n_waiting == s->max_waiting) {
			*budget = 0;
			return false;
		}
		const bool hit = changed(s, s->at++, ret, ret_value);

		(*budget)--;
		if (s->at == s->n) {
			s->in_use = s->in_use_now;
			s->walks++;
			s->quiet = false;
		}
		s->found += hit;
		if (hit)
			return true;
	}
	return false;
}
