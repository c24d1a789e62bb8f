/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A frame that stands for several packets on the wire (wire/packet.h: enum pl_gso), and the record
 * of each of them. One source for user space (tap/tap.c) and the kernel program (bpf/tap.bpf.c).
 *
 * Packet i carries `each` bytes from byte i * each of the frame's payload on, the last one the
 * rest. It has the frame's headers, except for lengths and for these changes, made as Linux splits
 * a frame (net/ipv4/tcp_offload.c, udp_offload.c, af_inet.c), which joins only packets that it can
 * split again: the sequence number grows with the payload, IPv4's identification by one for each
 * packet, only the last packet has FIN and PSH, only the first one has CWR.
 */
#pragma once

#include "core/tap_core.h"
#include "wire/tunnel_ports.h"

/* Bytes from the IP header on that no packet on a wire exceeds (the longest are jumbo frames of
 * 9216 bytes): a longer frame stands for several. */
#define PL_TAP_WIRE_MOST 9216u

struct pl_tap_joined {
	uint32_t n;       /* packets on the wire */
	uint32_t each;    /* payload bytes of each */
	uint32_t payload; /* payload bytes of all */
	uint32_t headers; /* bytes from the record's IP header to the payload */
	uint32_t own;     /* bytes of these to the end of the record's transport header */
	/* Values of the frame's record. */
	uint32_t seq;
	uint16_t ip_id, obs, mss;
	uint8_t flags;
	uint8_t tcp, v4; /* the record is of the TCP that was joined; it is IPv4 */
};

/* Returns the number of packets that carried this payload. each: not 0. */
PL_CORE_INLINE uint32_t pl_tap_joined_packets(uint32_t payload, uint32_t each)
{
	return payload > each ? (payload + each - 1) / each : 1;
}

/* Keeps the values of the frame's record r that differ between the packets. */
PL_CORE_INLINE void pl_tap_joined_keep(struct pl_tap_joined *j, const struct pl_pkt96 *r)
{
	j->seq = r->tcp_seq;
	j->ip_id = r->ip_id;
	j->obs = r->obs;
	j->mss = r->mss;
	j->flags = r->tcp_flags;
}

/* Makes the record of packet i in *r, which is the frame's record or that of another of its
 * packets. */
PL_CORE_INLINE void pl_tap_joined_packet(
	const struct pl_tap_joined *j, uint32_t i, struct pl_pkt96 *r)
{
	const uint32_t last = i + 1 == j->n;
	const uint32_t length = j->headers + (last ? j->payload - i * j->each : j->each);

	r->wire_len = pl_tap_saturated(length);
	r->pay_len = pl_tap_saturated(length - j->own);
	/* Rules set these. */
	r->obs = j->obs;
	r->mss = j->mss;
	if (j->v4)
		r->ip_id = (uint16_t)(j->ip_id + i);
	if (!j->tcp)
		return;
	r->tcp_seq = j->seq + i * j->each;
	r->tcp_flags = j->flags;
	if (!last)
		r->tcp_flags &= (uint8_t) ~(PL_TAP_FIN | PL_TAP_PSH);
	if (i > 0)
		r->tcp_flags &= (uint8_t)~PL_TAP_CWR;
}

/* Row of the kernel's ring, for packets that differ in nothing else: the record of the first one,
 * and the steps from each packet to the next. */
struct pl_tap_row {
	struct pl_pkt96 record;
	uint32_t n; /* records */
	uint32_t seq_step, id_step;
	uint32_t reserved;
};

/* Gives the next record of the row, which has one left: n is not 0. */
PL_CORE_INLINE void pl_tap_row_next(struct pl_tap_row *row, struct pl_pkt96 *ret)
{
	*ret = row->record;
	row->record.tcp_seq += row->seq_step;
	row->record.ip_id = (uint16_t)(row->record.ip_id + row->id_step);
	row->n--;
}

/* ---- in the kernel ---- */

/* Splits the walk's frame, whose record is made. True when it is TCP or UDP, so that its packets
 * are known. segs: their number according to the kernel, 0 when it is not given. The kernel does
 * not tell a traffic control program which layer it joined. In UDP with a tunnel's port it was the
 * TCP inside, whose headers are not read here; for other UDP the number must fit. It may fit by
 * chance in a tunnel at a port that the configuration does not name. */
PL_CORE_INLINE int pl_tap_joined_walk(struct pl_tap_joined *j, const struct pl_tap_walk *w,
	uint32_t each, uint32_t segs, const uint64_t vxlan_ports)
{
	const struct pl_pkt96 *r = &w->record;

	if ((w->flags & (PL_TAP_LATER_FRAGMENT | PL_TAP_HEADLESS)) != 0 ||
		(r->obs & PL_OBS_FRAGMENT) != 0 || w->whole < w->headers || each == 0)
		return 0;
	if (r->proto != 6 && (r->proto != 17 || pl_is_tunnel_port(vxlan_ports, r->dport)))
		return 0;
	j->each = each;
	j->headers = j->own = w->headers;
	j->payload = w->whole - w->headers;
	j->n = pl_tap_joined_packets(j->payload, each);
	j->tcp = r->proto == 6;
	j->v4 = w->version == 4;
	return j->tcp || segs == 0 || segs == j->n;
}
