/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a metrics page as Prometheus text 0.0.4 or OpenMetrics 1.0.0 from the same calls, as a
 * pure function of its arguments into a pl_buf; check buf->failed at the end. Per family call
 * pl_exposition_family, then write all of its samples, then the next family; call pl_exposition_end
 * once. Names are the program's own and asserted; help texts and label values may be any bytes and
 * are escaped, invalid UTF-8 becomes U+FFFD.
 *
 * A counter's name is given without "_total"; each format adds it where it belongs.
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
	PL_EXPOSITION_POINTS, /* no text: points (series.h) of one field each */
	PL_EXPOSITION_NAMES,  /* no text: each family once, even if it is written again */
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
	char name[128];                            /* name of the open family, without "_total" */
	const char *family;                        /* the same, as the caller gave it */
	uint64_t seen[PL_EXPOSITION_FAMILIES_MAX]; /* hashes of family names, to find repetitions */
	unsigned int n_seen;
	uint64_t samples; /* lines written so far */
	/* For POINTS: receives each point, which is valid during the call. */
	void (*take)(void *ctx, const struct pl_series_point *point);
	/* For NAMES: receives each name as the text page has it. */
	void (*take_name)(void *ctx, const char *name, const char *help);
	void *ctx;
	uint64_t ts_ns;
};

/* The le bounds of a histogram to show: buckets first, first + step, … up to last, and +Inf. Bounds
 * are the ends of buckets, so the counts are exact. Bounds and sum are divided by `divisor`: 1e9
 * for ns to seconds. */
struct pl_exposition_bounds {
	uint8_t first, last, step;
	double divisor;
};
extern const struct pl_exposition_bounds
	pl_bounds_latency;                                /* 256 ns to 4.3 s by twos, in seconds */
extern const struct pl_exposition_bounds pl_bounds_depth; /* 1 to 2^24 by twos */

/* One value that a histogram counted, with its origin as labels; only on OpenMetrics pages. It is
 * in the histogram's unit. Labels are left out once names and values together would exceed 128
 * characters. */
struct pl_exposition_exemplar {
	uint64_t value;
	uint64_t ts_ns; /* since the Unix epoch */
	const struct pl_label *labels;
	unsigned int n;
};
#define PL_EXEMPLAR_CHARACTERS_MAX 128

/* Returns the format that the Accept header prefers (NULL: no header); text when none fits. */
enum pl_exposition_format pl_exposition_negotiate(const char *accept);
const char *pl_exposition_content_type(enum pl_exposition_format format);

void pl_exposition_init(
	struct pl_exposition *page, struct pl_buf *buf, enum pl_exposition_format format);
/* Writes families as points of the time ts_ns; `buf` is scratch. Names of families must be
 * static. */
void pl_exposition_init_points(struct pl_exposition *page, struct pl_buf *buf, uint64_t ts_ns,
	void (*take)(void *ctx, const struct pl_series_point *point), void *ctx);
/* Writes names and help texts of families in the order of the calls, without samples. */
void pl_exposition_init_names(struct pl_exposition *page,
	void (*take)(void *ctx, const char *name, const char *help), void *ctx);
/* unit: NULL, or a base unit that the name ends with ("pathline_x_seconds": "seconds"). */
void pl_exposition_family(struct pl_exposition *page, const char *name, enum pl_metric_type type,
	const char *unit, const char *help);
/* Opens the family of a number declared with base/stats.h; returns false when it has none. */
bool pl_exposition_stat(struct pl_exposition *page, const struct pl_stat *stat);
void pl_exposition_u64(
	struct pl_exposition *page, const struct pl_label *labels, unsigned int n, uint64_t value);
void pl_exposition_double(
	struct pl_exposition *page, const struct pl_label *labels, unsigned int n, double value);
/* exemplar: NULL: none. */
void pl_exposition_hist(struct pl_exposition *page, const struct pl_label *labels, unsigned int n,
	const struct pl_hist *hist, const struct pl_exposition_bounds *bounds,
	const struct pl_exposition_exemplar *exemplar);
/* Appends a label's value unescaped; a number that is a float in both formats as "1.0". */
void pl_label_text(struct pl_buf *buf, const struct pl_label *label);
void pl_exposition_float(struct pl_buf *buf, double v);
void pl_exposition_end(struct pl_exposition *page);
