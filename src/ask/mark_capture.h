/* SPDX-License-Identifier: BSD-2-Clause */
/* A measurement point as ask/mark_read.c compares it: block records metered from one capture of
 * marked packets, or a meter's records (ask/mark_file.h). */
#pragma once

#include "ask/mark_read.h"
#include "base/buf.h"
#include "mark/meter.h"

/* Counts of a capture's packets. packets = metered + the others; beside a mark, packets that are
 * `unsampled` are metered. */
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
	/* Flags of a record for a flow that the point has no record of: PL_MARK_IS_SYNCED,
	 * _NO_ROOM. */
	uint16_t absent_flags;
	uint32_t point;  /* its place among the points compared, from 1 */
	uint32_t number; /* number in records of results: its meter's, else its place */
	const struct pl_mark_read_options *options;
	struct pl_tap_rules rules;
	struct pl_mark_meter *meter;
	struct pl_mark_hashes
		*hashes; /* when a hash chooses packets: instead of a meter, or beside it */
	struct pl_mark_meter_stats stats; /* when the capture was read */
	uint64_t first_ns, last_ns;       /* of any packets, on the points' time scale; 0: none */
	uint64_t late_from,
		late_to; /* blocks that may lack packets, which came too late; 0: none */
	uint64_t packets;
	uint32_t longest_tcp, longest_udp; /* octets of the longest IP packets */
	uint64_t joined; /* blocks of flows with fewer packets than the wire had */
#define PL_MARK_CAPTURE_COUNT(id, help) uint64_t id;
	PL_MARK_CAPTURE_COUNTS(PL_MARK_CAPTURE_COUNT)
#undef PL_MARK_CAPTURE_COUNT
	struct pl_mark128 *records; /* heap */
	size_t n_records, room;
	bool no_memory;
};

/* Reads the capture. After an error, prints it and returns false; packets read before it count. */
bool pl_mark_capture_read(struct pl_mark_capture *c);
void pl_mark_capture_done(struct pl_mark_capture *c);

/* Gives each packet of a capture to `one`. After an error, prints it and returns false; packets
 * before it were given. */
bool pl_mark_capture_each(
	const char *path, void (*one)(void *arg, const struct pl_packet *packet), void *arg);

/* Returns a record with the fields that rules test, of a packet whose headers were walked. */
struct pl_pkt96 pl_mark_capture_record(const struct pl_packet *p, const struct pl_layers *layers);

/* Returns true when the point captured throughout the block: there are packets of any kind before
 * and behind it and its guard band, except where packets are marked. For a meter's records: whether
 * there is a record of the block. */
bool pl_mark_capture_covers(const struct pl_mark_capture *c, uint64_t block, bool marks);
/* Takes over what all records of a meter's block share: it holds for flows without a record,
 * too. */
void pl_mark_capture_share(const struct pl_mark_capture *c, struct pl_mark128 *record);
/* Returns true when the point captured during a part of the block. */
bool pl_mark_capture_touches(const struct pl_mark_capture *c, uint64_t block);
/* Returns true when all of these points captured throughout the block, for packets that are marked
 * at the first capture. Point n is captures[n - 1]. */
bool pl_mark_captures_cover(
	const struct pl_mark_capture *captures, const uint32_t *points, uint32_t n, uint64_t block);
/* Returns true when the capture seems to be of a host whose offloads join packets (GRO) or leave them to
 * the NIC to take apart (TSO), so that the block has fewer packets than the wire had. `records` are
 * those of all points of one block of one flow, n of them, and `of` is the capture's. */
bool pl_mark_capture_joins(const struct pl_mark_capture *captures, const struct pl_mark128 *of,
	const struct pl_mark128 *records, size_t n);
/* True when the capture has longer packets than Ethernet. */
bool pl_mark_capture_is_long(const struct pl_mark_capture *c);
/* Appends the names of points with a plus between them, which needs quotes in no form of output. */
void pl_mark_names_put(struct pl_buf *out, const struct pl_mark_capture *captures,
	const uint32_t *points, uint32_t n);
