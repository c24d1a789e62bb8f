/* SPDX-License-Identifier: BSD-2-Clause */
/* A measurement point: one capture of marked packets to block records, or what a meter made of them
 * (ask/mark_file.h). It is what ask/mark_read.c compares. */
#pragma once

#include "ask/mark_read.h"
#include "base/buf.h"
#include "mark/meter.h"

/* What became of the packets of a capture. packets = metered + the others; beside a mark packets that
 * are `unsampled` are metered. */
#define PL_MARK_CAPTURE_COUNTS(X)                                                                  \
	X(metered, "given to the meter, or to the hash")                                           \
	X(not_ip, "are no IP, or broken")                                                          \
	X(fragments, "are fragments behind the first")                                             \
	X(cut, "are cut before their ports, or before what the hash takes")                        \
	X(left_out, "are left out by --rule")                                                      \
	X(elsewhere, "have no room for the mark (other version of IP, no option)")                 \
	X(broken_option, "have a broken AltMark option")                                           \
	X(unsampled, "have no room: too many blocks of flows")

struct pl_mark_capture {
	const char *path;
	char name[64];
	bool of_file; /* its records come from a meter */
	/* Those of a record for a flow of which the point has none, PL_MARK_IS_SYNCED, _NO_ROOM. */
	uint16_t absent_flags;
	uint32_t point;  /* its place among those that are compared, from 1 */
	uint32_t number; /* as records of results have it: its meter's, else its place */
	const struct pl_mark_read_options *options;
	struct pl_tap_rules rules;
	struct pl_mark_meter *meter;
	struct pl_mark_hashes
		*hashes; /* where a hash chooses packets: in place of a meter, or beside it */
	struct pl_mark_meter_stats stats; /* when all is read */
	uint64_t first_ns, last_ns;       /* of any packets, on the points' time scale; 0: none */
	uint64_t late_from,
		late_to; /* blocks that may lack packets, which came too late; 0: none */
	uint64_t packets, long_ones;
#define PL_MARK_CAPTURE_COUNT(id, help) uint64_t id;
	PL_MARK_CAPTURE_COUNTS(PL_MARK_CAPTURE_COUNT)
#undef PL_MARK_CAPTURE_COUNT
	struct pl_mark128 *records; /* heap */
	size_t n_records, room;
	bool no_memory;
};

/* Reads all of it. Complains; false when something was wrong: what could be read is there. */
bool pl_mark_capture_read(struct pl_mark_capture *c);
void pl_mark_capture_done(struct pl_mark_capture *c);

/* Hands over each packet of a capture. Complains; false when something was wrong: what could be read
 * was handed over. */
bool pl_mark_capture_each(
	const char *path, void (*one)(void *arg, const struct pl_packet *packet), void *arg);

/* What rules look at, of a packet whose headers were walked. */
struct pl_pkt96 pl_mark_capture_record(const struct pl_packet *p, const struct pl_layers *layers);

/* Whether the point saw the block from its beginning to its end: by packets of any kind, with the
 * guard band around it unless it is where packets are marked. A meter says so of each record: here it
 * is whether it has any of the block. */
bool pl_mark_capture_covers(const struct pl_mark_capture *c, uint64_t block, bool marks);
/* Whether it saw any of it. */
bool pl_mark_capture_touches(const struct pl_mark_capture *c, uint64_t block);
/* Whether all of these points saw the block from its beginning to its end, of packets that are marked at
 * the first capture. Point n is captures[n - 1]. */
bool pl_mark_captures_cover(
	const struct pl_mark_capture *captures, const uint32_t *points, uint32_t n, uint64_t block);
/* Names of points with a plus between them: no form needs quotes for it. */
void pl_mark_names_put(struct pl_buf *out, const struct pl_mark_capture *captures,
	const uint32_t *points, uint32_t n);
