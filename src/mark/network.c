/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses points and links given as text, and makes segments of them. */
#include "mark/network.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

/* Finds the point with these n characters of a link; false when none has the name. */
static bool find(const struct pl_mark_network *w, const char *name, size_t n, uint32_t *ret)
{
	for (uint32_t i = 0; i < w->n_points; i++) {
		if (strlen(w->points[i].name) != n || memcmp(w->points[i].name, name, n) != 0)
			continue;
		*ret = w->points[i].number;
		return true;
	}
	return false;
}

static int add_point(struct pl_mark_network *w, const char *text, struct pl_diag *diag)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
	const char *equals = strchr(text, '='), *number = equals != NULL ? equals + 1 : text;
	const size_t n = equals != NULL ? (size_t)(equals - text) : strlen(text);
	uint64_t value;
	uint32_t other;

	if (n == 0 || n > PL_MARK_POINT_NAME_MAX || strspn(text, plain) < n ||
		pl_parse_u64(number, &value) < 0 || value > UINT32_MAX)
		return pl_diag_fail(diag, -EINVAL,
			"point \"%s\": NAME=NUMBER, such as core=2, or NUMBER alone; a name has 1 to %d letters, digits, '_', '-' and '.', the number is that of --point",
			text, PL_MARK_POINT_NAME_MAX);
	if (w->n_points == PL_MARK_POINTS_MAX)
		return pl_diag_fail(diag, -EINVAL, "at most %d points", PL_MARK_POINTS_MAX);
	if (pl_mark_network_point(w, (uint32_t)value) != NULL || find(w, text, n, &other))
		return pl_diag_fail(
			diag, -EINVAL, "point \"%s\": another point has this name or number", text);
	memcpy(w->points[w->n_points].name, text, n);
	w->points[w->n_points++].number = (uint32_t)value;
	return 0;
}

/* Makes a segment of each link of the path, and one of the whole path if it has several links. */
static int make_path(struct pl_mark_network *w)
{
	const uint32_t n = w->n_points;

	w->places = calloc(n, sizeof(*w->places));
	if (w->places == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		w->places[i] = w->points[i].number;
	for (uint32_t i = 0; i + 1 < n; i++)
		w->segments[w->n_segments++] =
			(struct pl_mark_segment){ &w->places[i], &w->places[i + 1], 1, 1 };
	if (n > 2)
		w->segments[w->n_segments++] =
			(struct pl_mark_segment){ &w->places[0], &w->places[n - 1], 1, 1 };
	return 0;
}

static int read_links(const struct pl_mark_network *w, struct pl_mark_arc *arcs, char *const *links,
	size_t n, struct pl_diag *diag)
{
	if (n > PL_MARK_ARCS_MAX)
		return pl_diag_fail(diag, -EINVAL, "at most %d links", PL_MARK_ARCS_MAX);
	for (size_t i = 0; i < n; i++) {
		const char *middle = strchr(links[i], '>');

		if (middle != NULL &&
			find(w, links[i], (size_t)(middle - links[i]), &arcs[i].from) &&
			find(w, middle + 1, strlen(middle + 1), &arcs[i].to))
			continue;
		return pl_diag_fail(
			diag, -EINVAL, "link \"%s\": FROM>TO, both names of points", links[i]);
	}
	return 0;
}

/* Makes the network's clusters, and a segment of the whole network if there are several. */
static int make_clusters(
	struct pl_mark_network *w, char *const *links, size_t n, struct pl_diag *diag)
{
	struct pl_mark_arc arcs[PL_MARK_ARCS_MAX];
	bool chosen[PL_MARK_ARCS_MAX];
	int r = read_links(w, arcs, links, n, diag);

	if (r == 0)
		r = pl_mark_clusters_make(&w->clusters, arcs, (uint32_t)n, diag);
	if (r < 0)
		return r;
	w->places = calloc(pl_mark_clusters_room(&w->clusters) + 1, sizeof(*w->places));
	if (w->places == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->clusters.n; i++) {
		w->segments[w->n_segments++] = w->clusters.segments[i];
		chosen[i] = true;
	}
	if (w->clusters.n > 1 && pl_mark_clusters_union(&w->segments[w->n_segments], &w->clusters,
					 chosen, w->places))
		w->n_segments++;
	return 0;
}

/* Refuses a point that no segment has: all of its records would be left out. */
static int check_used(const struct pl_mark_network *w, struct pl_diag *diag)
{
	for (uint32_t i = 0; i < w->n_points; i++) {
		bool used = false;

		for (uint32_t s = 0; !used && s < w->n_segments; s++) {
			const struct pl_mark_segment *g = &w->segments[s];

			for (uint32_t k = 0; k < g->n_from; k++)
				used |= g->from[k] == w->points[i].number;
			for (uint32_t k = 0; k < g->n_to; k++)
				used |= g->to[k] == w->points[i].number;
		}
		if (used)
			continue;
		return pl_diag_fail(diag, -EINVAL, "point \"%s\" is in no link", w->points[i].name);
	}
	return 0;
}

int pl_mark_network_make(struct pl_mark_network *ret, char *const *points, size_t n_points,
	char *const *links, size_t n_links, struct pl_diag *diag)
{
	int r = 0;

	*ret = (struct pl_mark_network){ .n_points = 0 };
	for (size_t i = 0; r == 0 && i < n_points; i++)
		r = add_point(ret, points[i], diag);
	if (r == 0 && ret->n_points < 2)
		r = pl_diag_fail(
			diag, -EINVAL, "loss and delay are between two points: name two or more");
	if (r == 0)
		r = n_links == 0 ? make_path(ret) : make_clusters(ret, links, n_links, diag);
	if (r == 0)
		r = check_used(ret, diag);
	if (r < 0)
		pl_mark_network_done(ret);
	return r;
}

/* Makes the clusters of a path: its links. */
static int make_links(struct pl_mark_network *w, struct pl_diag *diag)
{
	struct pl_mark_arc arcs[PL_MARK_POINTS_MAX];

	for (uint32_t i = 0; i + 1 < w->n_points; i++)
		arcs[i] = (struct pl_mark_arc){ w->points[i].number, w->points[i + 1].number };
	return pl_mark_clusters_make(&w->clusters, arcs, w->n_points - 1, diag);
}

int pl_mark_network_add_zooms(
	struct pl_mark_network *w, char *const *zooms, size_t n, struct pl_diag *diag)
{
	struct pl_mark_named named[PL_MARK_POINTS_MAX];
	uint32_t room;
	int r = 0;

	if (n > PL_MARK_ZOOMS_MAX)
		return pl_diag_fail(
			diag, -EINVAL, "at most %d parts of a network (zoom)", PL_MARK_ZOOMS_MAX);
	if (n > 0 && w->clusters.n == 0)
		r = make_links(w, diag);
	if (n == 0 || r < 0)
		return r;
	room = pl_mark_clusters_room(&w->clusters);
	w->zoomed = calloc(n * room, sizeof(*w->zoomed));
	if (w->zoomed == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_points; i++)
		named[i] = (struct pl_mark_named){ w->points[i].name, w->points[i].number };
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct pl_mark_segment *s = &w->segments[w->n_segments];

		r = pl_mark_zoom(
			s, &w->clusters, named, w->n_points, zooms[i], w->zoomed + i * room, diag);
		w->n_segments += r == 0 && !pl_mark_zoom_is_known(w->segments, w->n_segments, s);
	}
	return r;
}

void pl_mark_network_done(struct pl_mark_network *w)
{
	free(w->places);
	free(w->zoomed);
	pl_mark_clusters_done(&w->clusters);
	*w = (struct pl_mark_network){ .n_points = 0 };
}

const char *pl_mark_network_point(const struct pl_mark_network *w, uint32_t number)
{
	for (uint32_t i = 0; i < w->n_points; i++) {
		if (w->points[i].number == number)
			return w->points[i].name;
	}
	return NULL;
}

/* Returns the name of a segment's point; segments consist of the network's own points, so each has
 * one. */
static const char *name_of(const struct pl_mark_network *w, uint32_t number)
{
	const char *name = pl_mark_network_point(w, number);

	assert(name != NULL);
	return name;
}

/* Appends text at offset `at`, as far as there is room; returns the offset of its end, had it
 * room. */
static size_t put(char *dst, size_t cap, size_t at, const char *text)
{
	const size_t n = strlen(text);

	if (at < cap)
		snprintf(dst + at, cap - at, "%s", text);
	return at + n;
}

void pl_mark_network_cut(char *dst, size_t cap, uint32_t segment)
{
	char end[16];
	const size_t n = (size_t)snprintf(end, sizeof(end), "~%" PRIu32, segment + 1);

	if (n < cap)
		memcpy(dst + cap - 1 - n, end, n + 1);
}

void pl_mark_network_segment(
	const struct pl_mark_network *w, uint32_t segment, char *dst, size_t cap)
{
	const struct pl_mark_segment *s = &w->segments[segment];
	size_t at = 0;

	dst[0] = '\0';
	for (uint32_t i = 0; i < s->n_from; i++) {
		at = put(dst, cap, at, i > 0 ? "+" : "");
		at = put(dst, cap, at, name_of(w, s->from[i]));
	}
	at = put(dst, cap, at, ">");
	for (uint32_t i = 0; i < s->n_to; i++) {
		at = put(dst, cap, at, i > 0 ? "+" : "");
		at = put(dst, cap, at, name_of(w, s->to[i]));
	}
	if (at >= cap)
		pl_mark_network_cut(dst, cap, segment);
}
