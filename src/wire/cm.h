/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management messages of InfiniBand (architecture 1.x chapter 12.6) as RoCE carries
 * them: a management datagram of 256 bytes in a UD SEND Only to queue pair 1, queue key 0x80010000.
 * Reads and writes them; the alternate path of a REQ is not kept (written as zero). Fields are in
 * host order; codes of time mean 4.096 us * 2^code.
 *
 *   MAD header 24 bytes | message 232 bytes, the end of which is private data
 *
 * An IP connection (RDMA-CM, annex A11) begins its REQ's private data with 36 bytes of addresses:
 * struct pl_cm_ip.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "wire/build.h"
#include "wire/cursor.h"

#define PL_CM_BYTES       256
#define PL_CM_QKEY        0x80010000u
#define PL_CM_QPN         1
#define PL_CM_PRIVATE_MAX 224

/* Attributes of the management datagram. */
enum pl_cm_kind {
	PL_CM_REQ = 0x10,
	PL_CM_MRA = 0x11,
	PL_CM_REJ = 0x12,
	PL_CM_REP = 0x13,
	PL_CM_RTU = 0x14,
	PL_CM_DREQ = 0x15,
	PL_CM_DREP = 0x16,
};

/* Reasons of a REJ (architecture 12.6.7.2). */
enum {
	PL_CM_NO_RESOURCES = 3,
	PL_CM_TIMEOUT = 4,
	PL_CM_INVALID_ID = 6,
	PL_CM_INVALID_SERVICE_ID = 8, /* no listener */
	PL_CM_INVALID_TRANSPORT = 9,
	PL_CM_STALE = 10,
	PL_CM_INVALID_MTU = 26,
	PL_CM_CONSUMER = 28, /* rejected by the application */
};

/* The service id of a TCP port of RDMA-CM. */
#define PL_CM_SERVICE_TCP(port) (UINT64_C(0x01060000) | (port))

/* The message that a REJ or an MRA refers to. */
enum { PL_CM_ABOUT_REQ, PL_CM_ABOUT_REP, PL_CM_ABOUT_OTHER };

struct pl_cm {
	uint8_t kind; /* enum pl_cm_kind */
	uint64_t transaction;
	uint32_t local_id, remote_id; /* of the sender of the message; REQ has no remote_id */

	/* REQ and REP. */
	uint32_t qpn, psn; /* of the sender; the PSN with which the receiver shall begin to send */
	uint64_t ca_guid;
	uint8_t resources, depth; /* READs and atomics: accepted at a time, sent at a time */
	bool flow_control, srq;
	uint8_t rnr_retries;

	/* REQ. */
	uint64_t service_id;
	uint8_t transport;                     /* 0 RC, 1 UC */
	uint8_t remote_timeout, local_timeout; /* codes: longest time of a CM to answer */
	uint8_t retries, cm_retries;
	uint16_t pkey;
	uint8_t mtu; /* code: 1 = 256 to 5 = 4096 */
	uint16_t local_lid, remote_lid;
	struct pl_addr src, dst; /* GIDs */
	uint32_t flow_label;
	uint8_t rate, tclass, hop_limit, sl;
	bool subnet_local;
	uint8_t ack_timeout; /* code */

	/* REP. */
	uint8_t ack_delay; /* code */
	uint8_t failover;

	uint8_t about;   /* REJ, MRA: PL_CM_ABOUT_* */
	uint16_t reason; /* REJ */
	bool has_ari;    /* REJ: it has additional information, of which the first byte is kept */
	uint8_t ari;     /* PL_CM_INVALID_MTU: the code of the largest path MTU, as in a REQ */
	uint8_t timeout; /* MRA: code */

	/* decoding: the private data with the zeros behind it; points into the datagram */
	struct pl_cursor private;
};

/* Bytes of private data of a kind; 0 for an unknown one. */
size_t pl_cm_private_bytes(enum pl_cm_kind kind);
/* Name of a kind, such as "REQ"; NULL for an unknown one. */
const char *pl_cm_kind_name(enum pl_cm_kind kind);

/* Decodes a management datagram. -EBADMSG: not 256 bytes, not a connection management message, or
 * of an unknown kind or version. */
int pl_cm_parse(struct pl_cm *ret, struct pl_cursor mad);

/* Writes the 256 bytes, private data behind the fixed part; too many of them mark b full. */
void pl_cm_put(struct pl_build *b, const struct pl_cm *cm, const void *private, size_t len);

#define PL_CM_IP_BYTES 36

struct pl_cm_ip {
	uint16_t src_port;
	struct pl_addr src, dst;
};

/* Reads the addresses at the beginning of private data. Returns false when it does not begin as an
 * IP connection's. */
bool pl_cm_get_ip(struct pl_cm_ip *ret, struct pl_cursor *private);
void pl_cm_put_ip(struct pl_build *b, const struct pl_cm_ip *ip);
