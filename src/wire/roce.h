/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes RoCE packets: RoCEv1 (Ethertype 0x8915, a global route header; InfiniBand
 * architecture 1.x annex A16) and RoCEv2 (UDP port 4791 over IPv4 or IPv6; annex A17), with the
 * base transport header and all extension headers of reliable connections, unreliable connections
 * and unreliable datagrams (architecture 9.2 and 9.3). Fields here are in host order; on the wire
 * everything is big-endian but the ICRC.
 *
 *   Ethernet [802.1Q] | IPv4 UDP, IPv6 UDP or GRH | BTH [headers by operation] payload pad | ICRC
 *
 * The ICRC (architecture 7.8.1, annex A17.3.3) is CRC-32 over 8 bytes of ones and the packet from
 * its network header through the pad, with ones for the bytes that routers may change: IPv4 type of
 * service, TTL and header checksum, IPv6 traffic class, flow label and hop limit, the UDP checksum,
 * and byte 4 of the BTH (FECN, BECN, reserved). It stands little-endian behind the packet and is
 * always computed, always checked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "wire/build.h"
#include "wire/cursor.h"
#include "wire/packet.h"

enum {
	PL_ROCE_PORT = 4791,
	PL_ROCE_ETHERTYPE = 0x8915,
	PL_ROCE_NEXT_HEADER = 0x1b, /* GRH: the InfiniBand transport */
	PL_ROCE_PKEY = 0xffff,      /* the default partition, full member */
	PL_ROCE_PKEY_FULL = 0x8000, /* the membership bit */
};

#define PL_ROCE_PSN_MASK  0xffffffu /* PSN, QPN and MSN have 24 bits */
#define PL_ROCE_PATH_MTU  4096      /* the largest payload of a packet */
#define PL_ROCE_LEN_MAX   (UINT32_C(1) << 31)
/* Bytes that are not payload, at most: Ethernet with one tag, IPv6, UDP, BTH, the longest headers
 * that go together, ICRC. */
#define PL_ROCE_OVERHEAD  (18 + 40 + 8 + 12 + 28 + 4)
#define PL_ROCE_FRAME_MAX (PL_ROCE_OVERHEAD + PL_ROCE_PATH_MTU)

/* Upper three bits of the opcode. */
enum pl_roce_service {
	PL_ROCE_RC = 0x00,
	PL_ROCE_UC = 0x20,
	PL_ROCE_UD = 0x60,
	PL_ROCE_SERVICE_MASK = 0xe0,
};

/* Congestion notification, a whole opcode: BTH with BECN and 16 reserved bytes (annex A17.9.3). */
#define PL_ROCE_CNP 0x81

/* Lower five bits of the opcode. */
enum pl_roce_op {
#define PL_ROCE_OP(code, id, name, headers, services) PL_ROCE_##id = code,
#include "wire/roce_ops.def"
#undef PL_ROCE_OP
	PL_ROCE_OP_MASK = 0x1f,
};

/* Headers behind the BTH; those of lower bits come first on the wire. */
#define PL_ROCE_H_DETH     0x01 /* qkey, src_qpn */
#define PL_ROCE_H_RETH     0x02 /* va, rkey, length */
#define PL_ROCE_H_ATOMIC   0x04 /* va, rkey, swap_add, compare */
#define PL_ROCE_H_AETH     0x08 /* syndrome, msn */
#define PL_ROCE_H_ORIGINAL 0x10 /* original */
#define PL_ROCE_H_IMM      0x20 /* imm */
#define PL_ROCE_H_IETH     0x40 /* rkey */

/* AETH syndromes (architecture 9.7.5.2.1); RNR NAK carries a timer code in its lower five bits. */
enum {
	PL_ROCE_ACK_UNLIMITED = 0x1f, /* positive, without credit information */
	PL_ROCE_RNR = 0x20,
	PL_ROCE_NAK_SEQUENCE = 0x60,
	PL_ROCE_NAK_INVALID = 0x61,
	PL_ROCE_NAK_ACCESS = 0x62,
	PL_ROCE_NAK_OPERATION = 0x63,
};

enum pl_roce_fault {
#define PL_ROCE_FAULT(id, name, help) PL_ROCE_F_##id,
#include "wire/roce_faults.def"
#undef PL_ROCE_FAULT
	PL_ROCE_F_MAX,
};

/* Addresses and network headers of a packet. The addresses tell IPv4 from IPv6; RoCEv1 has a GRH in
 * either case. */
struct pl_roce_path {
	struct pl_addr src, dst; /* RoCEv1: GIDs */
	uint8_t dmac[6], smac[6];
	bool v1;
	bool tagged;         /* 802.1Q */
	uint16_t tci;        /* the tag's priority and VLAN id */
	uint8_t tos;         /* IPv4 type of service, IPv6 and GRH traffic class */
	uint8_t ttl;         /* or hop limit */
	uint16_t sport;      /* RoCEv2 */
	uint16_t ip_id;      /* IPv4 */
	bool may_fragment;   /* IPv4: DF is not set */
	uint32_t flow_label; /* IPv6 and GRH, 20 bits */
};

/* A packet. Fields of extension headers are valid when `headers` names their header. */
struct pl_roce {
	struct pl_roce_path path;

	uint8_t opcode;
	bool solicited, migrated, ack_req;
	uint8_t pad;      /* 0 to 3; encoding computes it */
	uint8_t notify;   /* byte 4 of the BTH: FECN 0x80, BECN 0x40, 6 reserved bits */
	uint8_t reserved; /* 7 bits behind ack_req */
	uint16_t pkey;
	uint32_t qpn, psn; /* 24 bits */

	uint8_t headers; /* PL_ROCE_H_*; encoding takes them from the opcode */
	uint64_t va;
	uint32_t rkey;
	uint32_t length; /* DMA length */
	uint64_t swap_add, compare;
	uint8_t syndrome;
	uint32_t msn; /* 24 bits */
	uint64_t original;
	uint32_t imm;
	uint32_t qkey, src_qpn;

	struct pl_cursor payload; /* without pad; only set by decoding */
	uint32_t icrc;            /* as in the frame */
};

/* Returns the headers behind the BTH of an opcode; -1 for an opcode that no service has, and for
 * CNP, which is handled apart. */
int pl_roce_headers(uint8_t opcode);

/*
 * Decodes a frame (PL_LINK_ETHERNET, PL_LINK_RAW_IP; any other link is NOT_ROCE) and checks its
 * ICRC. Bytes behind the IP packet are ignored. The payload points into the frame. On a fault *ret
 * holds what was read before, which is not to be trusted: only after OK is the packet whole. CNP:
 * no headers, its 16 bytes are the payload.
 */
enum pl_roce_fault pl_roce_parse(struct pl_roce *ret, struct pl_cursor frame, enum pl_link link);

/*
 * Writes a whole frame: Ethernet header, network headers, transport headers by the opcode, payload,
 * pad, ICRC. A payload above PL_ROCE_PATH_MTU, or an opcode that pl_roce_headers does not know (but
 * CNP), marks b full. UDP checksum 0.
 */
void pl_roce_put(struct pl_build *b, const struct pl_roce *packet, const void *payload, size_t len);

/* Returns the ICRC of n bytes from the network header to the end of the pad; lengths in them
 * already include the ICRC. For code that alters a frame: pl_roce_parse and pl_roce_put compute it
 * themselves. n is at least the headers through the BTH. */
enum pl_roce_net { PL_ROCE_NET_IP4, PL_ROCE_NET_IP6, PL_ROCE_NET_GRH };
uint32_t pl_roce_icrc(const uint8_t *net, size_t n, enum pl_roce_net kind);

/* The same for IPv4 behind an Ethernet header, which must be in memory: up to 12 bytes before `net`
 * are read (and have no effect). Fastest for n up to 256. */
uint32_t pl_roce_icrc_ip4(const uint8_t *net, size_t n);
/* Returns the part of an ICRC that the last 16 bytes before it contribute; the bytes as two words
 * of memory. ICRCs of packets that differ only there differ (XOR) as these parts do. */
uint32_t pl_roce_icrc_tail(uint64_t first, uint64_t second);

/*
 * For callers without the network header: finds the identification and whether fragments were
 * allowed, from the ICRC of an IPv4 packet whose header here has 0 and "don't fragment" there. All
 * else is as in pl_roce_icrc. Returns false when none gives this ICRC; a random ICRC has an
 * explanation once in 2^15.
 */
bool pl_roce_icrc_find_id(
	const uint8_t *net, size_t n, uint32_t icrc, uint16_t *ret_id, bool *ret_fragments);

/* Returns a - b of PSNs, in -2^23 to 2^23 - 1. */
static inline int32_t pl_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t pl_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PL_ROCE_PSN_MASK;
}

/* Returns the packets of a message, at least one. */
static inline uint32_t pl_roce_packets(uint64_t bytes, uint32_t mtu)
{
	return bytes == 0 ? 1 : (uint32_t)((bytes + mtu - 1) / mtu);
}

/* Returns the time of an RNR timer code in ns (architecture 9.7.5.2.8, table). */
uint64_t pl_roce_rnr_ns(uint8_t code);
