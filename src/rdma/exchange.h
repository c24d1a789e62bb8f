/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters exchanged over a plain TCP connection, for peers that have no connection manager:
 * bytes to structures and back; the caller owns the socket. Two forms:
 *
 * *Versioned* (both ways): parameters of a queue pair and its region. All big-endian.
 *
 *   0  magic "PLRX"      4    48 region bytes            64
 *   4  version (1)       8    56 key                     32
 *   5  service           8    60 queue pair              32 (upper 8 zero)
 *   6  length of this    16   64 first packet number     32 (upper 8 zero), with which the
 *      peer begins
 *   8  GID               128  68 path MTU                16
 *   24 MAC               48   70 READs and atomics       8
 *   30 partition key     16   71 access                  8 (1 read, 2 write, 4 atomic)
 *   32 va                64   72 name of the store, UTF-8, 24 bytes, zeros behind
 *   40 refusal           8    96 CRC-32 of what is before 32
 *   41 reserved          56
 *
 * and, from the side that has a store, 84 bytes more, so that the peer can compute addresses in it:
 *
 *   100 epoch            64   116 parameters of the store, as docs/formats/region.md has them (64
 *                        bytes, little-endian)
 *   108 region's number  64   180 CRC-32 of bytes 100 to 179
 *
 * A longer message of a later minor form is read by its first 100 or 184 bytes; its CRCs stand
 * there all the same.
 *
 * *Compact*, 34 bytes, as the P4-to-RDMA collector of Beltman and Knossen (2020) sends it: va 64,
 * key 32, queue pair 32, LID 16, GID 128, all big-endian. The listener of the peer (port 19876
 * there) sends the same bytes back. The form has neither the region's length nor packet numbers:
 * those are agreed beforehand (bytes, psn and the rest of *ret are left alone).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "memory/store.h"
#include "wire/build.h"
#include "wire/cursor.h"

#define PL_EXCHANGE_BYTES         100
#define PL_EXCHANGE_STORE_BYTES   184 /* with a store's parameters */
#define PL_EXCHANGE_COMPACT_BYTES 34
#define PL_EXCHANGE_NAME_MAX      24

/* Reasons why an answer has no queue pair. */
enum pl_exchange_refusal {
	PL_EXCHANGE_AGREED,
	PL_EXCHANGE_NO_STORE, /* no store of this name */
	PL_EXCHANGE_NO_RIGHT, /* this peer has no right */
	PL_EXCHANGE_NO_ROOM,  /* no more queue pairs */
	PL_EXCHANGE_NO_TERMS, /* impossible terms: service, address */
	PL_EXCHANGE_NO_NIC,   /* the NIC is away for now, or has no address */
	PL_EXCHANGE_NO_WAY,   /* no route from the NIC to the address in the message */
	PL_EXCHANGE_FAILED,   /* the NIC did not make the queue pair */
	PL_EXCHANGE_NO_PROOF, /* the address in the message is not that of the connection */
};

/* Text of a refusal; "refused" for unknown ones of later forms. */
const char *pl_exchange_refusal_text(uint8_t refusal);

struct pl_exchange {
	uint8_t service; /* PL_ROCE_RC, PL_ROCE_UC */
	struct pl_addr gid;
	uint8_t mac[6];
	uint16_t pkey;
	uint64_t va, bytes;
	uint32_t key, qpn, psn;
	uint16_t mtu;
	uint8_t depth;
	uint8_t access;                      /* PL_RDMA_* */
	char name[PL_EXCHANGE_NAME_MAX + 1]; /* name of the store */
	uint8_t refusal;                     /* enum pl_exchange_refusal */
	bool has_store;                      /* the following three are valid */
	uint64_t epoch, region_id;
	struct pl_store_params store; /* checked: they describe a store of `bytes` bytes */
	uint16_t lid;                 /* compact form */
};

void pl_exchange_put(struct pl_build *b, const struct pl_exchange *x);

/*
 * Reads a message from the beginning of a stream. Returns 1 when it is complete, with its length in
 * *ret_used; 0 while bytes are missing; -EBADMSG for something else than a message, or for
 * impossible values (service, MTU, numbers above 24 bits, an end beyond 2^64, a name that is no
 * text, a store whose parameters do not match bytes); -EPROTO for another version, whose number is
 * in *ret_used.
 */
int pl_exchange_get(struct pl_exchange *ret, struct pl_cursor stream, size_t *ret_used);

void pl_exchange_put_compact(struct pl_build *b, const struct pl_exchange *x);
/* Reads a message of the compact form. Returns 1, 0 or -EBADMSG (queue pair above 24 bits),
 * likewise. */
int pl_exchange_get_compact(struct pl_exchange *ret, struct pl_cursor stream);
