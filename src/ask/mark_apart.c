/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the blocks in which flows begin and end at both ends of a segment. */
#include "ask/mark_apart.h"

#include <stdlib.h>
#include <string.h>

#include "ask/mark_read.h"

/* First and last block of a flow's packets at a point, or at one end of a segment. */
struct span {
	uint64_t first, last; /* last 0: it had no packets */
};

static struct span span_of(const struct span *at_point, const uint32_t *points, uint32_t n)
{
	struct span ret = { .first = UINT64_MAX };

	for (uint32_t i = 0; i < n; i++) {
		const struct span *s = &at_point[points[i] - 1];

		if (s->last == 0)
			continue;
		ret.first = s->first < ret.first ? s->first : ret.first;
		ret.last = s->last > ret.last ? s->last : ret.last;
	}
	return ret;
}

/*
 * Returns 1 when the flow indicates that the clocks are apart, -1 when it indicates that they are
 * not, else 0. It counts when it begins and ends at both ends while these captured: loss may hide
 * where it begins, but no packet arrives later than sent. A packet that is an odd number of periods
 * away is counted in the block before or behind.
 */
static int speaks(const struct pl_mark_capture *captures, const struct pl_mark_segment *s,
	const struct span *in, const struct span *out)
{
	const int64_t begins = (int64_t)(out->first - in->first),
		      ends = (int64_t)(out->last - in->last), differ = begins - ends;

	if (begins == 0 && ends == 0)
		return pl_mark_captures_cover(captures, s->from, s->n_from, in->first - 1) &&
				       pl_mark_captures_cover(
					       captures, s->to, s->n_to, in->first - 1) &&
				       pl_mark_captures_cover(
					       captures, s->from, s->n_from, in->last + 1) &&
				       pl_mark_captures_cover(
					       captures, s->to, s->n_to, in->last + 1)
			       ? -1
			       : 0;
	if (differ > 2 || differ < -2)
		return 0;
	if (begins >= 2 && ends >= 2)
		return pl_mark_captures_cover(captures, s->to, s->n_to, in->first) &&
		       pl_mark_captures_cover(captures, s->from, s->n_from, out->last);
	if (begins <= -2 && ends <= -2)
		return pl_mark_captures_cover(captures, s->from, s->n_from, out->first) &&
		       pl_mark_captures_cover(captures, s->to, s->n_to, in->last);
	return 0;
}

static int compare_by_flow(const void *left, const void *right)
{
	const struct pl_mark128 *const *a = left, *const *b = right;

	return pl_mark_compare_flow(*a, *b);
}

bool pl_mark_find_apart(bool *ret, const struct pl_mark_capture *captures,
	const struct pl_mark_segment *segments, uint32_t n_segments,
	const struct pl_mark128 *records, size_t n)
{
	const struct pl_mark128 **by_flow = calloc(n + 1, sizeof(const void *));
	int64_t votes[PL_MARK_SEGMENTS_MAX] = { 0 };
	size_t next;

	if (by_flow == NULL)
		return false;
	for (size_t i = 0; i < n; i++)
		by_flow[i] = &records[i];
	qsort(by_flow, n, sizeof(const void *), compare_by_flow);
	for (size_t i = 0; i < n; i = next) {
		struct span at_point[PL_MARK_READ_MAX] = { { 0, 0 } };
		bool known = true; /* the blocks of its packets are known */

		for (next = i; next < n && pl_mark_compare_flow(by_flow[next], by_flow[i]) == 0;
			next++) {
			const struct pl_mark128 *r = by_flow[next];
			struct span *s = &at_point[r->point - 1];

			if (r->packets == 0)
				continue;
			known &= (r->mark_flags & PL_MARK_LATE_CHANGE) == 0;
			s->first = s->last == 0 || r->block < s->first ? r->block : s->first;
			s->last = r->block > s->last ? r->block : s->last;
		}
		for (uint32_t k = 0; k < n_segments; k++) {
			const struct pl_mark_segment *s = &segments[k];
			const struct span in = span_of(at_point, s->from, s->n_from),
					  out = span_of(at_point, s->to, s->n_to);

			if (known && in.last != 0 && out.last != 0)
				votes[k] += speaks(captures, s, &in, &out);
		}
	}
	free(by_flow);
	for (uint32_t k = 0; k < n_segments; k++)
		ret[k] = votes[k] > 0;
	return true;
}
