/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a record dns64/1 of a DNS message (RFC 1035 4): client, server, question, and the first
 * address of the answer. Names become hashes, lengths and an entropy, not texts.
 *
 * The hashes are those of the name's labels as on the wire, letters in lower case, with the root's
 * label: 32 bits of XXH3-64 with seed 0, the same on every machine. */
#pragma once

#include <stdbool.h>

#include "record/packet.h"
#include "wire/cursor.h"

#define PL_DNS_PORT 53

/* Makes the record from the packet's record and its UDP payload. Returns false when that is no DNS
 * message, or ends within the header or the questions. Answers that are cut off are left out. */
bool pl_dns_read(struct pl_dns64 *ret, const struct pl_pkt96 *packet, struct pl_cursor payload);
