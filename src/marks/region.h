/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads block records from a region of lists, whoever appends to it. The file may be cut, removed
 * and created again: it is looked for once a second.
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
	bool told; /* the reason it cannot be read was logged */
};

/* torn: records before these are lost; n may be 0 then. */
typedef void pl_marks_region_sink(
	void *arg, const struct pl_mark128 *records, uint32_t n, bool torn);

/* Passes new records to the sink, up to a bounded number; returns true when there are more.
 * `first`: skips those already there. */
bool pl_marks_region_turn(struct pl_marks_region *r, uint64_t now_ns, bool first,
	struct pl_marks_region_stats *stats, pl_marks_region_sink *sink, void *arg);
void pl_marks_region_close(struct pl_marks_region *r);
