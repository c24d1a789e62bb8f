/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block records out of a region of lists, whoever appends to it. The file may be cut, removed and
 * made anew: it is looked for once a second.
 */
#pragma once

#include "base/stats.h"
#include "memory/append.h"
#include "memory/region.h"
#include "record/packet.h"

struct pl_marks_region_stats {
#define PL_STAT PL_STAT_MEMBER
#include "marks/region_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_marks_region_list;

struct pl_marks_region {
	const char *path; /* the configuration's */
	struct pl_region *region;
	struct pl_append append;
	struct pl_append_reader *lists;
	uint64_t id, epoch, look_ns;
	bool told; /* why it cannot be read */
};

/* torn: some before them are lost; then n may be 0. */
typedef void pl_marks_region_sink(
	void *arg, const struct pl_mark128 *records, uint32_t n, bool torn);

/* What is new in it, at most a bounded piece; `first`: what is there already is not. Whether there is
 * more at once. */
bool pl_marks_region_turn(struct pl_marks_region *r, uint64_t now_ns, bool first,
	struct pl_marks_region_stats *stats, pl_marks_region_sink *sink, void *arg);
void pl_marks_region_close(struct pl_marks_region *r);
