/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a page of every family type and awkward value, for other people's parsers: page
 * text|openmetrics */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "export/exposition.h"

int main(int argc, char **argv)
{
	enum pl_exposition_format format = argc > 1 && strcmp(argv[1], "openmetrics") == 0
						   ? PL_EXPOSITION_OPENMETRICS
						   : PL_EXPOSITION_TEXT;
	static struct pl_hist latency, depth;
	struct pl_exposition page;
	struct pl_label labels[3] = {
		{ .name = "node", .form = PL_LABEL_U64 },
		{ .name = "path_id", .form = PL_LABEL_HEX64, .number = 0xfedcba9876543210u },
		{ .name = "word", .form = PL_LABEL_TEXT },
	};
	const char *const words[] = { "plain", "quo\"te", "back\\slash", "new\nline",
		"bad\xff utf8 \xc0\xaf", "\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\xa7", "" };
	const double values[] = { 0, -1, 0.1, 1e300, 5e-324, 123456789.125, INFINITY };
	struct pl_exposition_exemplar exemplar = {
		.value = 100000, .ts_ns = 1700000000500000000, .n = 2
	};
	struct pl_rng rng;
	struct pl_buf buf;

	pl_rng_seed(&rng, 1);
	for (int i = 0; i < 10000; i++) {
		pl_hist_add(&latency, (uint64_t)pl_rng_exp(&rng, 50000));
		pl_hist_add(&depth, pl_rng_u64(&rng) >> pl_rng_below(&rng, 64));
	}
	pl_buf_init(&buf);
	pl_exposition_init(&page, &buf, format);
	pl_exposition_family(
		&page, "pathline_reports", PL_METRIC_COUNTER, NULL, "Reports received.");
	for (unsigned int i = 0; i < 7; i++) {
		labels[0].number = i;
		labels[2].text = words[i];
		pl_exposition_u64(&page, labels, 3, UINT64_MAX >> (i * 8));
	}
	pl_exposition_family(
		&page, "pathline_cpu_seconds", PL_METRIC_COUNTER, "seconds", "CPU time.");
	pl_exposition_double(&page, NULL, 0, 12.25);
	pl_exposition_family(&page, "pathline_queue_depth", PL_METRIC_GAUGE, NULL,
		"Occupancy with \"quotes\", a \\ and a\nnew line.");
	for (unsigned int i = 0; i < 7; i++) {
		labels[0].number = i;
		pl_exposition_double(&page, labels, 1, values[i]);
	}
	pl_exposition_family(&page, "pathline_empty", PL_METRIC_GAUGE, NULL, "No samples.");
	pl_exposition_family(&page, "pathline_hop_latency_seconds", PL_METRIC_HISTOGRAM, "seconds",
		"Time within a node.");
	labels[0].number = 1;
	exemplar.labels = &labels[1];
	labels[2].text = words[1];
	pl_exposition_hist(&page, labels, 1, &latency, &pl_bounds_latency, &exemplar);
	labels[0].number = 2;
	memset(&latency, 0, sizeof(latency));
	pl_exposition_hist(&page, labels, 1, &latency, &pl_bounds_latency, NULL);
	pl_exposition_family(
		&page, "pathline_queue_depth_cells", PL_METRIC_HISTOGRAM, "cells", "Occupancy.");
	pl_exposition_hist(&page, NULL, 0, &depth, &pl_bounds_depth, NULL);
	pl_exposition_end(&page);
	if (buf.failed || fwrite(buf.data, 1, buf.len, stdout) != buf.len || fflush(stdout) != 0)
		return EXIT_FAILURE;
	pl_buf_done(&buf);
	return EXIT_SUCCESS;
}
