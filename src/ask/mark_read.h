/* SPDX-License-Identifier: BSD-2-Clause */
/* Alternate marking in captures taken at several points of a path, for "pathline meter --read":
 * meters each, compares their blocks, and prints loss and delay. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "mark/bits.h"
#include "mark/zoom.h"
#include "tap/rules.h"

#define PL_MARK_READ_MAX     64 /* captures */
#define PL_MARK_LINKS_MAX    256
#define PL_MARK_BACK_MAX     16
/* The clusters of a network, all of it, and parts that the options ask for, in both directions. */
#define PL_MARK_SEGMENTS_MAX (2 * (PL_MARK_LINKS_MAX + 1 + PL_MARK_ZOOMS_MAX))

struct pl_mark_read_options {
	const char *const
		*captures; /* "FILE", or "NAME=FILE"; the first is where packets were sent */
	size_t n;
	/* The captures are files of records, each of which may have several points. Then method,
	 * period_ns, guard_ns, where, tai_offset, flows_max and rules are ignored. */
	bool of_files;
	/* "FROM>TO" by the captures' names: a network with several paths, whose clusters are
	 * compared. None: a path through all captures in their order. */
	const char *const *links;
	size_t n_links;
	/* "FROM+FROM>TO+TO": the clusters, or links, between these points taken together. */
	const char *const *zooms;
	size_t n_zooms;
	/* Packets from these addresses pass the captures in the opposite order. */
	struct pl_prefix back[PL_MARK_BACK_MAX];
	unsigned int n_back;
	struct pl_mark_where where;
	uint8_t method; /* enum pl_mark_method */
	uint64_t period_ns, guard_ns;
	uint64_t clock_ns;   /* largest difference of clocks; 0: that of the records */
	uint32_t tai_offset; /* seconds that are added to times of captures */
	uint32_t flows_max;
	/* Number of packets of each flow and block, at most, that a hash chooses for their delays;
	 * 0: none. */
	uint32_t samples;
	bool unmarked; /* zero marking: there is no mark, and method is ignored */
	struct pl_tap_rules rules;
	const char *form; /* one of pl_out_forms */
	bool records;     /* prints the points' blocks instead of results */
	/* File for the points' blocks, NAME.mark128, or for the results, NAME.seg192; or NULL. */
	const char *write;
	const char *const *to; /* URIs of a tap's outputs that get the printed records too */
	size_t n_to;
	bool quiet; /* nothing is printed */
	bool stats; /* prints counters of packets to standard error */
};

/* Returns how many of the names are of files of records. */
size_t pl_mark_read_files(const char *const *captures, size_t n);
/* Returns true for a file for results, NAME.seg192. */
bool pl_mark_read_is_of_results(const char *file);
/* Reads, compares and prints. Returns an exit code; prints errors. */
int pl_mark_read_captures(struct pl_mark_read_options *options);
