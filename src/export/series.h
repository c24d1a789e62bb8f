/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of points about the network now: name, labels, fields, time. Its two sides are
 * independent: pipeline/series.c makes points of the aggregates, and a driver takes the fields
 * that its server can hold.
 *
 * A field has two names. As part of its point ("depth_max" of "queue") it is for servers that keep
 * many fields under one key (InfluxDB); as a family of its own ("pathline_queue_depth_max", as on
 * the metrics page, without _total and _bucket of the text form) it is for servers that keep one
 * value per series. A field without one of the two is not for servers of that kind: a mean over the
 * interval is no family, a cumulative histogram no field.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"

#define PL_SERIES_LABELS_MAX 8
#define PL_SERIES_FIELDS_MAX 24

enum pl_series_kind {
	PL_SERIES_COUNTER, /* u64, decreases only at a restart */
	PL_SERIES_GAUGE,   /* u64 */
	PL_SERIES_NUMBER,  /* f64, finite */
	PL_SERIES_RUNNING, /* f64, decreases only at a restart */
	PL_SERIES_HIST,    /* cumulative since the start */
};

struct pl_exposition_bounds;
struct pl_exposition_exemplar;

struct pl_series_label {
	const char *name, *value; /* the value is not empty */
};

struct pl_series_field {
	const char *name;   /* name within the point; NULL: none */
	const char *metric; /* name as a family, of static storage; NULL: none */
	enum pl_series_kind kind;
	union {
		uint64_t u64;
		double f64;
		struct {
			const struct pl_hist *hist;
			const struct pl_exposition_bounds
				*bounds; /* see exposition.h; valid as long as the point */
			const struct pl_exposition_exemplar *exemplar; /* NULL: none */
		};
	};
};

struct pl_series_point {
	const char *name; /* "queue", "port", "link", "path" */
	uint64_t ts_ns;   /* since the Unix epoch */
	uint32_t n_labels, n_fields;
	const struct pl_series_label *labels; /* sorted by name, each name once */
	const struct pl_series_field *fields;
};
