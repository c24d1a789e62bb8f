/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a metrics page: Prometheus text 0.0.4 or OpenMetrics 1.0.0 from the same calls. A pure
 * function of its arguments into a pl_buf; check buf->failed at the end. Per family:
 * pl_exposition_family, then its samples, all of them, then the next; pl_exposition_end once. Names
 * are the program's own and are asserted; help and label values may be any bytes and are escaped,
 * what is not UTF-8 becomes U+FFFD.
 *
 * A counter's name is given without "_total"; each format puts it where it wants it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/hist.h"
#include "base/stats.h"
#include "export/series.h"

enum pl_exposition_format {
	PL_EXPOSITION_TEXT,
	PL_EXPOSITION_OPENMETRICS,
	PL_EXPOSITION_POINTS, /* no text: a stream of points (series.h), of one field each */
	PL_EXPOSITION_NAMES,  /* no text: the families alone, each once whoever writes it again */
};

enum pl_metric_type { PL_METRIC_COUNTER, PL_METRIC_GAUGE, PL_METRIC_HISTOGRAM };

enum pl_label_form { PL_LABEL_TEXT, PL_LABEL_U64, PL_LABEL_HEX64, PL_LABEL_ADDR };

struct pl_label {
	const char *name;
	enum pl_label_form form;
	union {
		const char *text;
		uint64_t number;
		struct pl_addr addr;
	};
};

#define PL_EXPOSITION_FAMILIES_MAX 1024

struct pl_exposition {
	struct pl_buf *buf;
	enum pl_exposition_format format;
	enum pl_metric_type type;
	char name[128];                            /* of the open family, without "_total" */
	const char *family;                        /* the same, as it was given */
	uint64_t seen[PL_EXPOSITION_FAMILIES_MAX]; /* hashes of names: a family comes once */
	unsigned int n_seen;
	uint64_t samples; /* lines written so far */
	/* Of POINTS: where they go. The point is valid during the call. */
	void (*take)(void *ctx, const struct pl_series_point *point);
	/* Of NAMES: a name as the text page has it. */
	void (*take_name)(void *ctx, const char *name, const char *help);
	void *ctx;
	uint64_t ts_ns;
};

/* Which le bounds of a histogram to show: buckets first, first + step, … up to last, and +Inf.
 * Bounds are bucket ends, so the counts are exact. Bounds and sum are divided by `divisor`: 1e9 for
 * ns to seconds. */
struct pl_exposition_bounds {
	uint8_t first, last, step;
	double divisor;
};
extern const struct pl_exposition_bounds
	pl_bounds_latency;                                /* 256 ns to 4.3 s by twos, in seconds */
extern const struct pl_exposition_bounds pl_bounds_depth; /* 1 to 2^24 by twos */

/* One value that a histogram counted, and whom it came from; on OpenMetrics pages only. The same
 * unit as the histogram's. Labels that would make names and values longer than 128 characters
 * together are left out. */
struct pl_exposition_exemplar {
	uint64_t value;
	uint64_t ts_ns; /* since the Unix epoch */
	const struct pl_label *labels;
	unsigned int n;
};
#define PL_EXEMPLAR_CHARACTERS_MAX 128

/* What the client prefers, by its Accept header (NULL = none was sent); text when nothing fits. */
enum pl_exposition_format pl_exposition_negotiate(const char *accept);
const char *pl_exposition_content_type(enum pl_exposition_format format);

void pl_exposition_init(
	struct pl_exposition *page, struct pl_buf *buf, enum pl_exposition_format format);
/* The families as points of this time; `buf` is scratch. Names of families must be of static
 * storage. */
void pl_exposition_init_points(struct pl_exposition *page, struct pl_buf *buf, uint64_t ts_ns,
	void (*take)(void *ctx, const struct pl_series_point *point), void *ctx);
/* The names and helps of families, in the order in which they are written; samples are left out. */
void pl_exposition_init_names(struct pl_exposition *page,
	void (*take)(void *ctx, const char *name, const char *help), void *ctx);
/* unit: NULL or a base unit that the name ends with ("pathline_x_seconds", unit "seconds"). */
void pl_exposition_family(struct pl_exposition *page, const char *name, enum pl_metric_type type,
	const char *unit, const char *help);
/* Opens the family of a number that base/stats.h declares; false: it has none. */
bool pl_exposition_stat(struct pl_exposition *page, const struct pl_stat *stat);
void pl_exposition_u64(
	struct pl_exposition *page, const struct pl_label *labels, unsigned int n, uint64_t value);
void pl_exposition_double(
	struct pl_exposition *page, const struct pl_label *labels, unsigned int n, double value);
/* exemplar: NULL when there is none. */
void pl_exposition_hist(struct pl_exposition *page, const struct pl_label *labels, unsigned int n,
	const struct pl_hist *hist, const struct pl_exposition_bounds *bounds,
	const struct pl_exposition_exemplar *exemplar);
/* A label's value as it is, a number that is a float in both formats: "1.0". */
void pl_label_text(struct pl_buf *buf, const struct pl_label *label);
void pl_exposition_float(struct pl_buf *buf, double v);
void pl_exposition_end(struct pl_exposition *page);
