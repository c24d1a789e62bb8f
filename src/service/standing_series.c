/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps result rows of standing queries as gauges. */
#include "service/standing_query.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "query/result_json.h"

#define KEY_BYTES 128
#define HOLD_NS   UINT64_C(10000000000) /* gauges are shown for three windows, at least so long */

struct gauge {
	uint64_t hash; /* 0: free */
	char key[KEY_BYTES];
	double values[PL_STANDING_COLUMNS];
	uint32_t present; /* bits: which values are there */
};

struct pl_standing_series {
	const struct pl_query_column *columns;
	uint32_t column[PL_STANDING_COLUMNS]; /* columns of numbers that are no keys */
	uint32_t n_columns;
	int64_t start_ns; /* start of the window of these rows */
	uint64_t hold_ns, updated_ns;
	bool windowed;
	uint32_t n, max, mask;
	struct gauge *gauges; /* mask + 1 of them */
};

int pl_standing_series_new(
	struct pl_standing_series **ret, const struct pl_query *query, uint64_t max)
{
	struct pl_standing_series *s = calloc(1, sizeof(*s));
	bool keys[PL_QUERY_ITEMS_MAX];
	uint32_t n, places = 2;

	if (s == NULL)
		return -ENOMEM;
	while (places < 2 * max)
		places *= 2;
	s->gauges = calloc(places, sizeof(*s->gauges));
	if (s->gauges == NULL) {
		free(s);
		return -ENOMEM;
	}
	s->max = (uint32_t)max;
	s->mask = places - 1;
	n = pl_query_columns(query, &s->columns);
	(void)pl_query_key_columns(query, keys);
	for (uint32_t i = 0; i < n && s->n_columns < PL_STANDING_COLUMNS; i++) {
		if (!keys[i] && s->columns[i].type <= PL_QUERY_DOUBLE)
			s->column[s->n_columns++] = i;
	}
	*ret = s;
	return 0;
}

void pl_standing_series_free(struct pl_standing_series *s)
{
	if (s == NULL)
		return;
	free(s->gauges);
	free(s);
}

uint64_t pl_standing_series_max(const struct pl_standing_series *s)
{
	return s->max;
}

/* Returns true when no row has come for so long that the gauges are shown no longer. */
static bool is_over(const struct pl_standing_series *s)
{
	return s->windowed && pl_clock_mono_ns() - s->updated_ns > s->hold_ns;
}

/* Drops the rows of older windows when a row of a newer one comes. False: the row's window is
 * older. When the newer ones are shown no longer, the time has gone back, and the older one is the
 * latest. */
static bool turn_to(struct pl_standing_series *s, const struct pl_query_row *row)
{
	if (!row->windowed)
		return true;
	if (s->windowed && row->start_ns < s->start_ns && !is_over(s))
		return false;
	if (!s->windowed || row->start_ns != s->start_ns) {
		memset(s->gauges, 0, ((size_t)s->mask + 1) * sizeof(*s->gauges));
		s->n = 0;
	}
	s->windowed = true;
	s->start_ns = row->start_ns;
	s->hold_ns = 3 * (uint64_t)(row->end_ns - row->start_ns);
	if (s->hold_ns < HOLD_NS)
		s->hold_ns = HOLD_NS;
	return true;
}

static struct gauge *place_of(struct pl_standing_series *s, const char *key)
{
	const size_t len = strlen(key);
	const uint64_t hash = pl_hash(key, len, 0) | 1;
	uint32_t at = (uint32_t)hash & s->mask;
	struct gauge *g;

	while (s->gauges[at].hash != 0 && s->gauges[at].hash != hash)
		at = (at + 1) & s->mask;
	g = &s->gauges[at];
	if (g->hash != 0)
		return g;
	if (s->n == s->max)
		return NULL;
	s->n++;
	g->hash = hash;
	/* Keys that are cut differ by their hash. */
	if (len < sizeof(g->key))
		memcpy(g->key, key, len + 1);
	else
		snprintf(g->key, sizeof(g->key), "%.*s#%016" PRIx64, KEY_BYTES - 24, key, hash);
	return g;
}

static double number_of(const struct pl_query_value *v)
{
	return v->type == PL_QUERY_UNSIGNED ? (double)v->u
	       : v->type == PL_QUERY_SIGNED ? (double)v->i
					    : v->d;
}

bool pl_standing_series_put(
	struct pl_standing_series *s, const char *key, const struct pl_query_row *row)
{
	struct gauge *g;

	if (!turn_to(s, row))
		return true;
	g = place_of(s, key);
	if (g == NULL)
		return false;
	s->updated_ns = pl_clock_mono_ns();
	g->present = 0;
	for (uint32_t i = 0; i < s->n_columns; i++) {
		const struct pl_query_value *v = &row->values[s->column[i]];

		if (v->absent)
			continue;
		g->values[i] = number_of(v);
		g->present |= 1u << i;
	}
	return true;
}

void pl_standing_series_page(
	const struct pl_standing_series *s, const char *query, struct pl_exposition *page)
{
	/* A window without rows is not announced: gauges of a window long past are not shown. */
	if (is_over(s))
		return;
	for (uint32_t k = 0; k <= s->mask; k++) {
		const struct gauge *g = &s->gauges[k];

		for (uint32_t i = 0; g->hash != 0 && i < s->n_columns; i++) {
			const struct pl_label labels[] = {
				{ .name = "query", .form = PL_LABEL_TEXT, .text = query },
				{ .name = "column",
					.form = PL_LABEL_TEXT,
					.text = s->columns[s->column[i]].name },
				{ .name = "key", .form = PL_LABEL_TEXT, .text = g->key },
			};

			if ((g->present & 1u << i) != 0)
				pl_exposition_double(page, labels, 3, g->values[i]);
		}
	}
}
