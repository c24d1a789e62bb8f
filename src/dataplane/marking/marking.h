/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measurement points of alternate marking (RFC 9341) in a switch. A point is one direction of a
 * port, where mark/meter.h counts the packets (and a marker colours them), or counters and
 * registers that tables fill (marking/cells.h). Block k's record (mark128/1) leaves at (k + 1.5)
 * periods, when the block's colour is no longer in use.
 *
 *   in packets that came in by the port, also those for the switch itself, before any table
 *   out packets that leave by the port, behind all tables, at the time of departure
 *
 * Blocks follow the node's clock, the time of day, so the records' tai_offset is 0. Packets that
 * the switch itself makes get the colour of the present block. The engine has no socket and no
 * clock; its pipeline calls it (dataplane/pipeline.h).
 */
#pragma once

#include "base/diag.h"
#include "dataplane/extern.h"
#include "mark/bits.h"
#include "mark/meter.h"

enum pl_dp_point_role {
	PL_DP_METER,
	PL_DP_MARKER,   /* counts and colours packets */
	PL_DP_UNMARKER, /* counts packets and clears their marks: the edge of the domain */
};

/* Packets that are counted together in a record. */
enum pl_dp_point_by {
	PL_DP_BY_FLOW,  /* addresses, ports, protocol */
	PL_DP_BY_HOSTS, /* addresses */
	PL_DP_BY_NONE,  /* all packets together: a record for each block, also without packets */
};

struct pl_dp_point_cfg {
	uint32_t number; /* number of the point in records */
	uint16_t port;
	bool out;
	uint8_t role;       /* enum pl_dp_point_role */
	uint8_t by;         /* enum pl_dp_point_by */
	uint32_t flows_max; /* 0: 1024 */
	/* For counters and registers: prefix and table (marking/cells.h); the point has no port,
	 * and role says what the tables do. NULL: the point is a port's. */
	const char *cells, *table;
};

struct pl_dp_marking_cfg {
	uint8_t method; /* enum pl_mark_method */
	uint64_t period_ns;
	struct pl_mark_spread spread;
	struct pl_mark_where where; /* not the option of RFC 9343 */
	/* Destination of records as datagrams (tmpkt/1) of the switch itself: arguments as of the
	 * action record, "to=… from=… out=…"; NULL: not sent. */
	const char *send;
};

struct pl_dp_marking;

/* Creates the marking of a pipeline that has its ports. -EINVAL with diag for invalid bits, period,
 * guard band or arguments; -ENOMEM. */
int pl_dp_marking_new(struct pl_dp_marking **ret, struct pl_dp_pipeline *p,
	const struct pl_dp_marking_cfg *cfg, struct pl_diag *diag);
void pl_dp_marking_free(struct pl_dp_marking *m);
/* Adds a point. -EINVAL with diag: no such port, or the number or place is another point's;
 * -ENOMEM. */
int pl_dp_marking_point(
	struct pl_dp_marking *m, const struct pl_dp_point_cfg *cfg, struct pl_diag *diag);

/* Pass a parsed packet to the point of its input or output port, which may change its mark. */
void pl_dp_marking_in(
	struct pl_dp_marking *m, struct pl_dp_packet *pkt, const struct pl_dp_call *call);
void pl_dp_marking_out(
	struct pl_dp_marking *m, struct pl_dp_packet *pkt, const struct pl_dp_call *call);

/* Sends the records of blocks that ended by then, by the node's clock; the points begin at the
 * first call. */
void pl_dp_marking_turn(struct pl_dp_marking *m, const struct pl_dp_call *call);
/* Returns when to call pl_dp_marking_turn next, by the node's clock; 0: now. */
uint64_t pl_dp_marking_due(const struct pl_dp_marking *m);

/* When a new pipeline replaces an old one: takes over the counts of the old points if both have the
 * same settings and points; otherwise the new points start from zero, and their first blocks are
 * partial. */
void pl_dp_marking_inherit(struct pl_dp_marking *m, struct pl_dp_marking *old);
