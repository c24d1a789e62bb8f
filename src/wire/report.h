/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes telemetry reports. Documents: "Telemetry Report Format Specification", P4.org,
 * v0.5 (2017), v1.0 (2018), v2.0 (2020), and the deviations of exporters. A report is the payload
 * of a UDP datagram; the upper nibble of its first byte is the version (0 = v0.5, 1 = v1.0, 2 =
 * v2.0).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/build.h"
#include "wire/cursor.h"
#include "wire/int.h"
#include "wire/packet.h"
#include "wire/verdict.h"

enum pl_report_version { PL_REPORT_V05, PL_REPORT_V10, PL_REPORT_V20, PL_REPORT_VERSION_MAX };

/* "0.5", "1.0", "2.0" */
const char *pl_report_version_name(enum pl_report_version v);

enum pl_report_form {
	/* metadata of the reporting node and an inner packet, both optional */
	PL_REPORT_LOCAL,
	PL_REPORT_DROP_SUMMARY, /* Host-INT NProto 3: missing flow sequence numbers */
};

/* An individual report. Cursors point into the datagram. */
struct pl_report {
	uint8_t version;                                /* enum pl_report_version */
	uint8_t form;                                   /* enum pl_report_form */
	uint8_t hw_id;                                  /* 6 bits */
	bool dropped, congested, tracked, intermediate; /* D, Q, F, I */
	bool have_node, have_ingress_ts, have_drop_reason, have_hop;
	uint8_t drop_reason, drop_queue; /* with have_drop_reason */
	uint32_t seq;                    /* 32 bits; v2.0: 22 */
	uint64_t node;
	uint64_t ingress_ts;     /* in the header: v0.5, v1.0 (32 bits, ns) */
	uint8_t ts_bits;         /* 32 or 64: width of the timestamps in hop and header */
	struct pl_int_hop hop;   /* the reporting node's own metadata */
	struct pl_cursor inner;  /* inner packet; empty when there is none */
	enum pl_link inner_link; /* its link type; PL_LINK_UNKNOWN = there is none */
	uint32_t lost_first, lost_count, lost_ts; /* DROP_SUMMARY */
	uint32_t sink_node, sink_port;            /* DROP_SUMMARY */
	bool inner_garbage; /* no packet of any kind begins where the inner one should */
	/* the inner packet may exist but was not found, or is cut by a doubtful length */
	bool unread;
	/* enum pl_verdict of the report's contents; its length is right all the same */
	uint8_t verdict;
	uint64_t notes; /* PL_NOTE_BIT set */
};

/* v2.0: whether the reports from here on, by their lengths, end with the datagram. */
struct pl_report_chain {
	uint32_t left; /* bytes of the datagram from here on; 0: not followed yet */
	bool closes;
};

/* Walks the individual reports of one datagram. */
struct pl_report_iter {
	struct pl_cursor c;
	uint8_t version;
	uint8_t hw_id;
	uint32_t seq;
	uint32_t node;
	uint64_t notes; /* of the datagram and of skipped reports, for the next report */
	bool cut;       /* a capture cut the datagram: lengths past its end may be right */
	bool doubtful;  /* v2.0: only a length shows that the next report begins here */
	bool numbered;  /* seq, node and hw_id are those of the datagram (v2.0) */
	bool done;
	/* Result found last; [1]: the reports also look like reports. So no length is followed
	 * a second time, however many reports of a datagram are doubtful. */
	struct pl_report_chain chain[2];
	uint32_t ahead; /* reports whose length was followed ahead of reading them */
};

/* Begins a datagram; reads the group header of v2.0. pin: version to assume instead of the nibble,
 * -1: none. cut: the datagram was longer on the wire. */
enum pl_verdict pl_report_begin(
	struct pl_report_iter *it, struct pl_cursor datagram, int pin, bool cut);

/* Reads the next report. Returns true with it in *ret; false at the end, with *ret_verdict OK or
 * the error. On REPORT_PROTO *ret holds what was read before: the report arrived and has its
 * number. */
bool pl_report_next(struct pl_report_iter *it, struct pl_report *ret, enum pl_verdict *ret_verdict);

/* ---- writing ---- */

struct pl_report_head {
	enum pl_report_version version;
	uint8_t hw_id;
	bool dropped, congested, tracked, intermediate;
	uint32_t seq;
	uint32_t node;       /* v0.5: only in drop and local headers */
	uint32_t ingress_ts; /* v0.5, v1.0 */
	/* v1.0: 6-bit RepMdBits (bit 0 = 0x20); v2.0: 16-bit RepMdBits, 0 = inner only */
	uint16_t md_bits;
	bool drop_header;  /* v0.5: NProto 1 */
	bool local_header; /* v0.5: NProto 2 */
	uint8_t drop_reason, drop_queue;
	uint16_t ds_id; /* v2.0 */
	/* PL_LINK_ETHERNET, PL_LINK_RAW_IP (of inner_ip_version) or UNKNOWN = none */
	enum pl_link inner_link;
	uint8_t inner_ip_version; /* 4 or 6, for RAW_IP */
	/* write version_nibble instead of the right one, as some exporters do */
	bool version_nibble_set;
	uint8_t version_nibble;
};

/* Writes the group header of v2.0, once per datagram; nothing in other versions. */
void pl_report_put_group(struct pl_build *b, const struct pl_report_head *h);

/* Writes header and metadata of one report (hop has the metadata); the caller puts the inner packet
 * next. Returns the offset for pl_report_end. */
size_t pl_report_put(
	struct pl_build *b, const struct pl_report_head *h, const struct pl_int_hop *hop);

/* Ends a report behind its inner packet: v2.0 pads to whole words and writes ReportLength (0xff
 * when 255 or more). */
void pl_report_end(struct pl_build *b, const struct pl_report_head *h, size_t at);
