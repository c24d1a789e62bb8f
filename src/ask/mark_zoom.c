/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the clusters between points by their names. */
#include "ask/mark_zoom.h"

#include <string.h>

#include "ask/mark_read.h"
#include "base/buf.h"
#include "base/complain.h"

/* A set of points; those of captures count from 1. */
struct points {
	bool is[PL_MARK_READ_MAX + 1];
};

/* Reads names such as "a+b", up to `end`. */
static bool read_points(struct points *ret, const struct pl_mark_capture *captures, size_t n,
	const char *text, const char *end)
{
	*ret = (struct points){ { false } };
	for (const char *next; text < end; text = next + (next < end)) {
		const char *plus = memchr(text, '+', (size_t)(end - text));
		size_t i = 0;

		next = plus != NULL ? plus : end;
		while (i < n && (strlen(captures[i].name) != (size_t)(next - text) ||
					memcmp(captures[i].name, text, (size_t)(next - text)) != 0))
			i++;
		if (i == n || next + 1 == end)
			return false;
		ret->is[i + 1] = true;
	}
	return true;
}

/* Chooses the clusters that packets from `from` pass until they reach one of `to`. */
static void choose(bool *chosen, const struct pl_mark_clusters *c, const struct points *from,
	const struct points *to)
{
	struct points at = *from;

	memset(chosen, 0, c->n * sizeof(*chosen));
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = 0; i < c->n; i++) {
			const struct pl_mark_segment *s = &c->segments[i];
			bool passed = chosen[i];

			for (uint32_t k = 0; k < s->n_from; k++)
				passed |= at.is[s->from[k]] && !to->is[s->from[k]];
			if (!passed || chosen[i])
				continue;
			chosen[i] = more = true;
			for (uint32_t k = 0; k < s->n_to; k++)
				at.is[s->to[k]] = true;
		}
	}
}

static bool are(const uint32_t *points, uint32_t n, const struct points *wanted)
{
	uint32_t all = 0;

	for (uint32_t i = 0; i <= PL_MARK_READ_MAX; i++)
		all += wanted->is[i];
	for (uint32_t i = 0; i < n; i++) {
		if (!wanted->is[points[i]])
			return false;
	}
	return n == all;
}

static void put_names(struct pl_buf *to, const struct pl_mark_capture *captures,
	const uint32_t *points, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		pl_buf_printf(to, "%s%s", i > 0 ? "+" : "", captures[points[i] - 1].name);
}

bool pl_mark_zoom(struct pl_mark_segment *ret, const struct pl_mark_clusters *c,
	const struct pl_mark_capture *captures, size_t n, const char *text, uint32_t *room)
{
	const char *middle = strchr(text, '>');
	bool chosen[PL_MARK_LINKS_MAX];
	struct points from, to;
	struct pl_buf names = { 0 };

	if (middle == NULL || middle == text || middle[1] == '\0' ||
		!read_points(&from, captures, n, text, middle) ||
		!read_points(&to, captures, n, middle + 1, text + strlen(text))) {
		pl_complain(
			"--zoom %s: FROM>TO, of names of captures, several with +: a+b>c", text);
		return false;
	}
	choose(chosen, c, &from, &to);
	if (!pl_mark_clusters_union(ret, c, chosen, room)) {
		pl_complain("--zoom %s: no way leads from there", text);
		return false;
	}
	if (are(ret->from, ret->n_from, &from) && are(ret->to, ret->n_to, &to))
		return true;
	put_names(&names, captures, ret->from, ret->n_from);
	pl_buf_printf(&names, ">");
	put_names(&names, captures, ret->to, ret->n_to);
	pl_complain(
		"--zoom %s: packets come in and go out at other points, too; the part of the network is %.*s",
		text, (int)names.len, (const char *)names.data);
	pl_buf_done(&names);
	return false;
}
