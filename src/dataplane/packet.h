/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet inside the data plane: its bytes with room before and behind them, and metadata of
 * parser, tables and queues. The bytes begin with an Ethernet header. A packet is owned by the
 * holder of the pointer: port, pipeline, queue, link or the receiver of a copy; it returns to its
 * pool exactly once. Nothing here reads a clock: times are arguments, in ns of the clock of the
 * node that the packet is in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of room before a received packet's first byte, for headers that are inserted. */
#define PL_DP_HEADROOM 512

/* Offset of a header that the packet does not have. */
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

/* Bytes of a packet that are saved as received: IP, the longest TCP header and INT's fixed headers.
 * Behind them actions only insert or remove bytes. */
#define PL_DP_CAME_MAX 128

struct pl_dp_packet {
	struct pl_dp_packet *next; /* next in the queue or list that holds it */
	struct pl_dp_pool *pool;
	uint8_t *data;
	uint32_t len;
	uint32_t size; /* bytes of the buffer that begins behind this structure */

	struct pl_dp_headers headers;
	/* Flow hash on arrival (dataplane/parse.h); set only if an entry of the pipeline uses
	 * it. */
	uint32_t flow_hash;

	/* Path through the node. Ports are the numbers in the node's configuration. */
	uint16_t in_port, out_port;
	uint8_t queue;     /* class of the output port, 0 is served last under strict priority */
	uint8_t drop;      /* enum pl_dp_drop, 0: not dropped */
	uint8_t mark;      /* metadata of the tables, for later tables */
	bool own;          /* made by this node, whatever its mark is now */
	uint8_t hops;      /* number of nodes passed, for the truth */
	uint8_t colour;    /* result of a meter: 0 green, 1 yellow, 2 red */
	uint8_t copies;    /* nested mirrors that made it in this node; 0: no copy */
	uint64_t value;    /* metadata of the tables: a number read from a register */
	uint64_t from_mac; /* source MAC if sent to this node's MAC address; else 0 */
	uint8_t from_tags[16];   /* with from_mac and IP: VLAN tags on arrival */
	uint8_t from_tags_bytes; /* bytes in from_tags */
	uint8_t came_saved;      /* with from_mac and IP: bytes saved in `came`, */
	uint32_t came_bytes;     /* bytes that the packet had from the IP header to its end on
				  * arrival */
	uint64_t in_ns;          /* arrival at the node */
	uint64_t out_ns;         /* time when its last bit leaves the queue; set at dequeue */
	uint64_t queued_ns;      /* arrival at its queue, by the queue's clock */
	uint32_t depth_bytes, depth_packets; /* depth of its queue on arrival, without itself */
	uint32_t tx_util; /* of the output port at departure, in 1/65536 of its rate */

	/* Truth of the simulation only; never used for the bytes on the wire. */
	uint64_t born_ns; /* true time when a host sent it */
	uint64_t serial;  /* number of the packet in its flow */
	uint32_t flow;    /* number of the flow in the simulation's accounts; 0: none */
	/* Trace of a simulation (dataplane/sim.h); a clone has the pointer but does not own it. */
	struct pl_dp_trace *trace;

	/* First bytes from the IP header on as received, to be quoted in errors (dataplane/own.h):
	 * only came_saved bytes are set. */
	uint8_t came[PL_DP_CAME_MAX];
};

/* Creates a pool of packets with buffers of `size` bytes each (headroom included), at most `max`
 * alive. It grows as needed and belongs to one thread. -EINVAL, -ENOMEM. */
int pl_dp_pool_new(struct pl_dp_pool **ret, uint32_t size, uint32_t max);
/* Frees the pool; every packet must have been freed before. */
void pl_dp_pool_free(struct pl_dp_pool *p);
uint32_t pl_dp_pool_alive(const struct pl_dp_pool *p);

/* Returns a packet of `len` bytes with PL_DP_HEADROOM before them; metadata is zero, bytes are not
 * set. NULL: `max` are alive, no memory, or len does not fit; the caller counts it. */
struct pl_dp_packet *pl_dp_packet_new(struct pl_dp_pool *p, uint32_t len);
/* Returns a packet with a copy of the bytes; NULL as above. */
struct pl_dp_packet *pl_dp_packet_of(struct pl_dp_pool *p, const void *bytes, uint32_t len);
/* Returns a copy with bytes, headers and metadata; NULL as above. */
struct pl_dp_packet *pl_dp_packet_clone(const struct pl_dp_packet *pkt);
void pl_dp_packet_free(struct pl_dp_packet *pkt);

/*
 * Insert n bytes before offset `at`, or remove n bytes from there: the shorter part of the packet
 * moves where there is room. Header offsets at or behind the place are adjusted. Inserted bytes are
 * not set. The caller updates lengths and checksums. -ENOBUFS: no room, the packet is unchanged.
 * -EINVAL: the place is not inside the packet.
 */
int pl_dp_packet_insert(struct pl_dp_packet *pkt, uint32_t at, uint32_t n);
int pl_dp_packet_remove(struct pl_dp_packet *pkt, uint32_t at, uint32_t n);

/* Reasons for which a node drops a packet. */
enum pl_dp_drop {
	PL_DP_GOES_ON,
#define PL_DP_DROP(id, name, code, text) PL_DP_DROP_##id,
#include "dataplane/drops.def"
#undef PL_DP_DROP
	PL_DP_DROP_MAX,
};

const char *pl_dp_drop_name(enum pl_dp_drop d);
/* Returns the drop reason's number in telemetry reports. */
uint8_t pl_dp_drop_code(enum pl_dp_drop d);
