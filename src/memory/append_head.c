/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A list's head is one word without a check value of its own. Sealed entries contain their numbers,
 * so the last of them shows what the head must be. The head is accepted when the seals of entries
 * right before it match and none behind it does; only otherwise all slots are checked.
 *
 * A seal has only the lower half of a number. For the upper half these values are tried: that of
 * the head, its neighbours, that of the head with one byte changed, and small ones. Once one entry
 * matches, the upper halves of the others follow.
 */
#include "memory/append.h"
#include "memory/words.h"

#define LOOK   32u /* entries read on either side of the head, or two batches */
#define PROBES 64u /* entries read to find the upper half */
#define SMALL  256u
#define TRIALS (3u + SMALL + 4u * 256u)
#define AGAIN  3u /* tries: a head that moves has a writer, which knows the right value */

static uint64_t seal_at(const struct pl_append *a, uint32_t list, uint64_t slot)
{
	const void *seal = a->base + list * a->list_stride + PL_APPEND_RING_AT +
			   (slot + 1) * a->entry_stride - PL_APPEND_SEAL_BYTES;

	return __atomic_load_n((const uint64_t *)seal, __ATOMIC_RELAXED);
}

static bool any_whole(const struct pl_append *a, uint32_t list, uint64_t first, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (pl_append_whole(a, list, first + i))
			return true;
	}
	return false;
}

/* True when the first n slots are empty or hold the first entries of the list. */
static bool is_new(const struct pl_append *a, uint32_t list, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (seal_at(a, list, i) != 0 && !pl_append_whole(a, list, i))
			return false;
	}
	return true;
}

static bool believed(const struct pl_append *a, uint32_t list, uint64_t head, uint64_t slack)
{
	uint64_t look = LOOK > 2 * (uint64_t)a->batch_max ? LOOK : 2 * (uint64_t)a->batch_max;
	uint64_t n;

	look = look < a->slots ? look : a->slots;
	n = look < head ? look : head;
	if (head > UINT64_MAX - slack - look || any_whole(a, list, head + slack, look))
		return false;
	/* The last neighbour is checked first. */
	return head == 0 ? is_new(a, list, look)
			 : pl_append_whole(a, list, head - 1) || any_whole(a, list, head - n, n);
}

static uint32_t trial(uint32_t half, unsigned int i)
{
	unsigned int shift;

	if (i < 3)
		return i == 0 ? half : i == 1 ? half + 1 : half - 1;
	i -= 3;
	if (i < SMALL)
		return i;
	i -= SMALL;
	shift = i / 256 * 8;
	return (half & ~(UINT32_C(255) << shift)) | (i % 256) << shift;
}

/* The number behind the last entry that proves itself, numbers being near that of one that does; at
 * least two have to, where there are two. 0: none. */
static uint64_t end_near(const struct pl_append *a, uint32_t list, uint64_t known)
{
	uint64_t end = 0, written = 0, proved = 0;

	for (uint64_t slot = 0; slot < a->slots; slot++) {
		uint64_t seal = seal_at(a, list, slot);
		int64_t away = (int32_t)((uint32_t)seal - (uint32_t)known);
		uint64_t number = known + (uint64_t)away;

		written += seal != 0;
		if (seal == 0 || (away < 0 && number > known) || number % a->slots != slot ||
			(number < end && proved > 1) || !pl_append_whole(a, list, number))
			continue;
		proved++;
		end = number >= end ? number + 1 : end;
	}
	return proved > 1 || written == 1 ? end : 0;
}

static uint64_t end_of(const struct pl_append *a, uint32_t list, uint64_t head)
{
	unsigned int probes = 0;

	/* Numbers of one list differ in their lower halves. */
	if (a->slots > INT32_MAX)
		return 0;
	for (uint64_t slot = 0; slot < a->slots && probes < PROBES; slot++) {
		uint64_t seal = seal_at(a, list, slot), end;

		if (seal == 0)
			continue;
		probes++;
		for (unsigned int i = 0; i < TRIALS; i++) {
			uint64_t number =
				(uint64_t)trial((uint32_t)(head >> 32), i) << 32 | (uint32_t)seal;

			if (number % a->slots != slot || !pl_append_whole(a, list, number))
				continue;
			end = end_near(a, list, number);
			if (end != 0)
				return end;
		}
	}
	return 0;
}

enum pl_append_head_is pl_append_examine(const struct pl_append *a, uint32_t list, uint64_t slack,
	uint64_t *ret_head, uint64_t *ret_end)
{
	uint64_t kept = a->slots - a->batch_max, head, end;

	for (unsigned int i = 0; i < AGAIN && a->sealed; i++) {
		head = pl_append_head(a, list);
		if (believed(a, list, head, slack))
			return PL_HEAD_FITS;
		end = end_of(a, list, head);
		pl_words_acquire();
		if (pl_append_head(a, list) != head)
			continue;
		*ret_head = head;
		*ret_end = end;
		if (end > head && end - head > slack)
			return PL_HEAD_LOW;
		return end != 0 && head > end && head - end >= kept ? PL_HEAD_HIGH : PL_HEAD_FITS;
	}
	return PL_HEAD_FITS;
}
