/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the clusters between points by their names. */
#include "mark/zoom.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

/* The points of the network, and a set of them by their places in the list. */
struct names {
	const struct pl_mark_named *points;
	size_t n;
};

struct set {
	bool is[PL_MARK_ZOOM_POINTS_MAX];
};

/* Returns the place of a point; names->n when it is not in the list. */
static size_t place_of(const struct names *names, uint32_t point)
{
	size_t i = 0;

	while (i < names->n && names->points[i].point != point)
		i++;
	return i;
}

static bool has(const struct set *set, const struct names *names, uint32_t point)
{
	const size_t i = place_of(names, point);

	return i < names->n && set->is[i];
}

/* Reads names such as "a+b", up to `end`. */
static bool read_points(
	struct set *ret, const struct names *names, const char *text, const char *end)
{
	*ret = (struct set){ { false } };
	for (const char *next; text < end; text = next + (next < end)) {
		const char *plus = memchr(text, '+', (size_t)(end - text));
		size_t i = 0;

		next = plus != NULL ? plus : end;
		while (i < names->n &&
			(strlen(names->points[i].name) != (size_t)(next - text) ||
				memcmp(names->points[i].name, text, (size_t)(next - text)) != 0))
			i++;
		if (i == names->n || next + 1 == end)
			return false;
		ret->is[i] = true;
	}
	return true;
}

/* Chooses the clusters that packets from `from` pass until they reach one of `to`. */
static void choose(bool *chosen, const struct pl_mark_clusters *c, const struct names *names,
	const struct set *from, const struct set *to)
{
	struct set at = *from;

	memset(chosen, 0, c->n * sizeof(*chosen));
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = 0; i < c->n; i++) {
			const struct pl_mark_segment *s = &c->segments[i];
			bool passed = chosen[i];

			for (uint32_t k = 0; k < s->n_from; k++)
				passed |=
					has(&at, names, s->from[k]) && !has(to, names, s->from[k]);
			if (!passed || chosen[i])
				continue;
			chosen[i] = more = true;
			for (uint32_t k = 0; k < s->n_to; k++) {
				const size_t place = place_of(names, s->to[k]);

				if (place < names->n)
					at.is[place] = true;
			}
		}
	}
}

static bool are(
	const uint32_t *points, uint32_t n, const struct names *names, const struct set *wanted)
{
	uint32_t all = 0;

	for (size_t i = 0; i < names->n; i++)
		all += wanted->is[i];
	for (uint32_t i = 0; i < n; i++) {
		if (!has(wanted, names, points[i]))
			return false;
	}
	return n == all;
}

static void put_names(
	struct pl_buf *to, const struct names *names, const uint32_t *points, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const size_t place = place_of(names, points[i]);

		pl_buf_printf(to, "%s%s", i > 0 ? "+" : "",
			place < names->n ? names->points[place].name : "?");
	}
}

int pl_mark_zoom(struct pl_mark_segment *ret, const struct pl_mark_clusters *c,
	const struct pl_mark_named *points, size_t n, const char *text, uint32_t *room,
	struct pl_diag *diag)
{
	const struct names names = { points, n };
	const char *middle = strchr(text, '>');
	bool chosen[PL_MARK_CLUSTERS_MAX];
	struct set from, to;
	struct pl_buf part = { 0 };

	if (n > PL_MARK_ZOOM_POINTS_MAX || c->n > PL_MARK_CLUSTERS_MAX)
		return pl_diag_fail(diag, -EINVAL, "zoom: at most %d points and %d clusters",
			PL_MARK_ZOOM_POINTS_MAX, PL_MARK_CLUSTERS_MAX);
	if (middle == NULL || middle == text || middle[1] == '\0' ||
		!read_points(&from, &names, text, middle) ||
		!read_points(&to, &names, middle + 1, text + strlen(text)))
		return pl_diag_fail(diag, -EINVAL,
			"zoom \"%s\": FROM>TO, of names of points, several with +: a+b>c", text);
	choose(chosen, c, &names, &from, &to);
	if (!pl_mark_clusters_union(ret, c, chosen, room))
		return pl_diag_fail(diag, -EINVAL, "zoom \"%s\": no way leads from there", text);
	if (are(ret->from, ret->n_from, &names, &from) && are(ret->to, ret->n_to, &names, &to))
		return 0;
	put_names(&part, &names, ret->from, ret->n_from);
	pl_buf_printf(&part, ">");
	put_names(&part, &names, ret->to, ret->n_to);
	pl_diag_set(diag,
		"zoom \"%s\": packets come in and go out at other points, too; the part of the network is %.*s",
		text, (int)part.len, (const char *)part.data);
	pl_buf_done(&part);
	return -EINVAL;
}

static bool same(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b)
{
	return n_a == n_b && memcmp(a, b, n_a * sizeof(*a)) == 0;
}

bool pl_mark_zoom_is_known(
	const struct pl_mark_segment *segments, uint32_t n, const struct pl_mark_segment *s)
{
	for (uint32_t i = 0; i < n; i++) {
		if (same(segments[i].from, segments[i].n_from, s->from, s->n_from) &&
			same(segments[i].to, segments[i].n_to, s->to, s->n_to))
			return true;
	}
	return false;
}
