/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet inside the data plane: its bytes with room before and behind them, and what parser,
 * tables and queues know of it. The bytes begin with an Ethernet header. A packet belongs to
 * whoever holds the pointer: port, pipeline, queue, link or the receiver of a copy; it goes back to
 * its pool exactly once. Nothing here reads a clock: times are given, in ns of the clock of the node
 * that the packet is in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room before a received packet's first byte, for headers that are put in front or in between. */
#define PL_DP_HEADROOM 512

/* Where a header is that the packet does not have. */
#define PL_DP_NONE     0xffff

/* Set by the parser (dataplane/parse.h); offsets in bytes from `data`. */
struct pl_dp_headers {
	uint16_t vlan;      /* outer 802.1Q or 802.1ad tag, its EtherType field */
	uint16_t l3;        /* IPv4 or IPv6 header */
	uint16_t l4;        /* TCP, UDP, ICMP header; NONE for a fragment behind the first one */
	uint16_t payload;   /* behind the TCP or UDP header with its options */
	uint16_t ethertype; /* behind all tags, host order */
	uint8_t ip_version; /* 4, 6, or 0 */
	uint8_t proto;      /* of the IP header, behind IPv6 extension headers */
	bool fragment;      /* any fragment, the first one too */
};

struct pl_dp_pool;
struct pl_dp_trace;

/* IP, the longest TCP header and INT's fixed headers: actions change nothing behind them but by what
 * they put in or take out. */
#define PL_DP_CAME_MAX 128

struct pl_dp_packet {
	struct pl_dp_packet *next; /* of the queue or list that holds it */
	struct pl_dp_pool *pool;
	uint8_t *data;
	uint32_t len;
	uint32_t size; /* bytes of the buffer that begins behind this structure */

	struct pl_dp_headers headers;
	/* As it came to the node (dataplane/parse.h), where an entry of its pipeline asks for it. */
	uint32_t flow_hash;

	/* Its way through the node. Ports are numbers of the node's configuration. */
	uint16_t in_port, out_port;
	uint8_t queue;     /* class of the output port, 0 is served last under strict priority */
	uint8_t drop;      /* enum pl_dp_drop, 0: it goes on */
	uint8_t mark;      /* metadata of the tables, for later tables */
	uint8_t hops;      /* nodes that it passed, for the truth */
	uint8_t colour;    /* by a meter: 0 green, 1 yellow, 2 red */
	uint8_t copies;    /* mirrors that made it, one of the copy of another, in this node */
	uint64_t value;    /* metadata of the tables: a number that was read from a register */
	uint64_t from_mac; /* who handed it over to this node's MAC address; 0: nobody did */
	uint8_t from_tags[16];   /* with from_mac and IP: the VLAN tags that it came with */
	uint8_t from_tags_bytes; /* of them */
	uint8_t came_saved;      /* with from_mac and IP: so many bytes are in `came`, */
	uint32_t came_bytes;     /* of so many from the IP header to the packet's end */
	uint64_t in_ns;          /* arrival at the node */
	uint64_t out_ns;         /* its last bit leaves the queue; set at dequeue */
	uint64_t queued_ns;      /* it came to its queue, by the clock that the queue is given */
	uint32_t depth_bytes, depth_packets; /* of its queue when it came in, without itself */
	uint32_t tx_util; /* of the output port when it leaves, in units of 1/65536 of its rate */

	/* Known to the data plane's own books only (truth); never read by what is on the wire. */
	uint64_t born_ns; /* true time at which a host sent it */
	uint64_t serial;  /* number of the packet among all that the host sent */
	uint32_t flow;    /* number of the flow in the lab's books; 0: none */
	/* What a simulation knows of it (dataplane/sim.h); a clone's is not its own. */
	struct pl_dp_trace *trace;

	/* From the IP header on, as the packet came, for whoever has to quote it (dataplane/own.h):
	 * not set but for came_saved bytes. */
	uint8_t came[PL_DP_CAME_MAX];
};

/* A pool of packets with buffers of `size` bytes each (headroom included), at most `max` alive. It
 * grows as needed, and belongs to one thread. -EINVAL, -ENOMEM. */
int pl_dp_pool_new(struct pl_dp_pool **ret, uint32_t size, uint32_t max);
/* Every packet must have come back. */
void pl_dp_pool_free(struct pl_dp_pool *p);
uint32_t pl_dp_pool_alive(const struct pl_dp_pool *p);

/* A packet with room for `len` bytes at data and PL_DP_HEADROOM before them, all else zero. NULL:
 * `max` are alive, or no memory, or len does not fit; counted by the caller. */
struct pl_dp_packet *pl_dp_packet_new(struct pl_dp_pool *p, uint32_t len);
/* The same with bytes copied in. */
struct pl_dp_packet *pl_dp_packet_of(struct pl_dp_pool *p, const void *bytes, uint32_t len);
/* Bytes, headers and metadata; NULL as above. */
struct pl_dp_packet *pl_dp_packet_clone(const struct pl_dp_packet *pkt);
void pl_dp_packet_free(struct pl_dp_packet *pkt);

/*
 * Opens a gap of n bytes before offset `at`, or closes one behind it: the shorter side of the packet
 * moves where there is room. Offsets in headers at or behind the place move along. The gap's bytes
 * are not set. Lengths and checksums in headers are the caller's. -ENOBUFS: no room; the packet is
 * as it was. -EINVAL: the place is not inside.
 */
int pl_dp_packet_insert(struct pl_dp_packet *pkt, uint32_t at, uint32_t n);
int pl_dp_packet_remove(struct pl_dp_packet *pkt, uint32_t at, uint32_t n);

/* Why a node did not send a packet on. */
enum pl_dp_drop {
	PL_DP_GOES_ON,
#define PL_DP_DROP(id, name, code, text) PL_DP_DROP_##id,
#include "dataplane/drops.def"
#undef PL_DP_DROP
	PL_DP_DROP_MAX,
};

const char *pl_dp_drop_name(enum pl_dp_drop d);
/* Its number in telemetry reports. */
uint8_t pl_dp_drop_code(enum pl_dp_drop d);
