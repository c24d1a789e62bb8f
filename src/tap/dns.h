/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A DNS message (RFC 1035 4) as a record, dns64/1: who asked whom for what, and the first address
 * of the answer. Names become hashes, lengths and an entropy, not texts.
 *
 * The hashes are those of the name's labels as they stand on the wire, letters in lower case, with
 * the root's label: 32 bits of XXH3-64 with seed 0, the same on every machine.
 */
#pragma once

#include <stdbool.h>

#include "record/packet.h"
#include "wire/cursor.h"

#define PL_DNS_PORT 53

/* From the packet's record, and what stands behind its UDP header. False: that is no DNS message,
 * or it ends within its header or its first question. What answers are cut, a record has not. */
bool pl_dns_read(struct pl_dns64 *ret, const struct pl_pkt96 *packet, struct pl_cursor payload);
