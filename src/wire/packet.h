/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet that a port lends, and a batch of them. The bytes belong to the port until the batch is
 * released; nobody writes to them. A packet is either a captured frame (link names how it begins),
 * or the payload of a UDP datagram that the kernel's socket already unwrapped (PL_LINK_UDP), where
 * src, dst and ports come from the socket.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "base/clock_kind.h"

#define PL_BATCH_MAX 256

enum pl_link {
	PL_LINK_ETHERNET,
	PL_LINK_RAW_IP, /* IPv4 or IPv6 by its version nibble */
	PL_LINK_SLL,    /* Linux cooked capture v1 (LINKTYPE_LINUX_SLL, 113) */
	PL_LINK_SLL2,   /* Linux cooked capture v2 (LINKTYPE_LINUX_SLL2, 276) */
	PL_LINK_UDP,    /* bytes after the UDP header; addresses are in the packet's members */
	/* the body of an IOAM trace option, without its packet (netio/ioam6.c) */
	PL_LINK_IOAM_TRACE,
	PL_LINK_UNKNOWN, /* a link type that is not read */
	PL_LINK_MAX,
};

/* The packets on the wire of a frame: one, or several that the host leaves to its NIC to cut (TSO,
 * UDP segmentation offload), or that it joined (LRO, GRO). */
enum pl_gso {
	PL_GSO_UNTOLD, /* not known: the source, such as a capture file, does not tell */
	PL_GSO_NONE,   /* one packet */
	PL_GSO_TCP,    /* segments of TCP */
	PL_GSO_UDP,    /* datagrams of UDP */
	PL_GSO_OTHER,  /* several, whose headers are not known */
};

struct pl_packet {
	const uint8_t *data;
	uint32_t len;      /* bytes of data */
	uint32_t wire_len; /* bytes on the wire; > len when the capture cut it */
	uint64_t ts_ns;    /* arrival, since the Unix epoch */
	uint8_t link;      /* enum pl_link */
	uint8_t out;       /* 1: a tap saw it leave the host */
	uint16_t sport;    /* PL_LINK_UDP; of PL_LINK_UNKNOWN: number of the link type */
	union {
		uint16_t dport; /* PL_LINK_UDP */
		/* PL_GSO_TCP, PL_GSO_UDP: bytes that each packet on the wire carried behind its TCP or
		 * UDP header; the last one may have carried fewer */
		uint16_t gso_size;
	};
	uint8_t clock;           /* enum pl_clock_kind, of ts_ns */
	uint8_t gso;             /* enum pl_gso; frames only */
	struct pl_addr src, dst; /* PL_LINK_UDP only */
};
_Static_assert(sizeof(struct pl_packet) == 64, "a packet of a batch is a cache line");

struct pl_batch {
	uint32_t n;
	struct pl_packet pkts[PL_BATCH_MAX];
};
