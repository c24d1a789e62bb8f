/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measurement points of alternate marking (RFC 9341) in a switch. A point is a port in a direction,
 * where mark/meter.h counts (and, a marker, colours) what passes; or counters and registers, which
 * tables fill (marking/cells.h). Its block records (mark128/1) leave
 * at (k + 1.5) periods, when the block's colour is not in use any more.
 *
 *   in    what came in by the port, also what is for the switch itself, before any table
 *   out   what leaves by the port, behind all tables; time is that of departure
 *
 * Blocks are those of the node's clock, the time of day, and so the records' tai_offset is 0. Packets
 * that the switch makes itself have the colour of their time. Engine without socket and clock, of a
 * pipeline (dataplane/pipeline.h), which calls it.
 */
#pragma once

#include "base/diag.h"
#include "dataplane/extern.h"
#include "mark/bits.h"
#include "mark/meter.h"

enum pl_dp_point_role {
	PL_DP_METER,
	PL_DP_MARKER,   /* colours what it counts */
	PL_DP_UNMARKER, /* counts, and takes the marks away: the edge of the domain */
};

/* Which packets have a record of their own. */
enum pl_dp_point_by {
	PL_DP_BY_FLOW,  /* addresses, ports, protocol */
	PL_DP_BY_HOSTS, /* addresses */
	PL_DP_BY_NONE,  /* all packets together: a record for each block, also without packets */
};

struct pl_dp_point_cfg {
	uint32_t number; /* in records */
	uint16_t port;
	bool out;
	uint8_t role;       /* enum pl_dp_point_role */
	uint8_t by;         /* enum pl_dp_point_by */
	uint32_t flows_max; /* 0: 1024 */
	/* Of counters and registers: prefix and table of marking/cells.h; there is no port then, and
	 * the role says what the tables do. NULL: of a port. */
	const char *cells, *table;
};

struct pl_dp_marking_cfg {
	uint8_t method; /* enum pl_mark_method */
	uint64_t period_ns;
	struct pl_mark_spread spread;
	struct pl_mark_where where; /* not the option of RFC 9343 */
	/* Where records go as datagrams (tmpkt/1) of the switch itself: arguments as those of the
	 * action record, "to=… from=… out=…"; NULL: they do not. */
	const char *send;
};

struct pl_dp_marking;

/* For a pipeline with its ports. -EINVAL with diag: bits, period, guard band or arguments are none;
 * -ENOMEM. */
int pl_dp_marking_new(struct pl_dp_marking **ret, struct pl_dp_pipeline *p,
	const struct pl_dp_marking_cfg *cfg, struct pl_diag *diag);
void pl_dp_marking_free(struct pl_dp_marking *m);
/* -EINVAL with diag: the number or the place is another point's; -ENOMEM. */
int pl_dp_marking_point(
	struct pl_dp_marking *m, const struct pl_dp_point_cfg *cfg, struct pl_diag *diag);

/* A parsed packet at a point; it may change its mark. */
void pl_dp_marking_in(
	struct pl_dp_marking *m, struct pl_dp_packet *pkt, const struct pl_dp_call *call);
void pl_dp_marking_out(
	struct pl_dp_marking *m, struct pl_dp_packet *pkt, const struct pl_dp_call *call);

/* Records of the blocks that are at rest by then, by the node's clock; the first call is when the
 * points begin. */
void pl_dp_marking_turn(struct pl_dp_marking *m, const struct pl_dp_call *call);
/* When that is to be called next, by the node's clock; UINT64_MAX: not at all; 0: now. */
uint64_t pl_dp_marking_due(const struct pl_dp_marking *m);

/* When a new pipeline replaces an old one: takes what the old one's points have counted, if both have
 * the same settings and points; else the new ones begin anew, and their first blocks are partial. */
void pl_dp_marking_inherit(struct pl_dp_marking *m, struct pl_dp_marking *old);
