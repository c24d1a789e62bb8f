/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields of packets that tables match and actions write (fields.def): names, values as text, and
 * reading them from a parsed packet. */
#pragma once

#include "base/addr.h"
#include "base/buf.h"
#include "base/diag.h"
#include "dataplane/packet.h"

enum pl_dp_field {
#define PL_DP_FIELD(id, name, bits, kind, help) PL_DP_FIELD_##id,
#include "dataplane/fields.def"
#undef PL_DP_FIELD
	PL_DP_FIELD_MAX,
};

enum pl_dp_field_kind {
	PL_DP_FIELD_NUMBER,
	PL_DP_FIELD_MAC,
	PL_DP_FIELD_ADDR,
	PL_DP_FIELD_NS, /* TIME in fields.def */
};

struct pl_dp_field_info {
	const char *name, *help;
	uint8_t bits;
	uint8_t kind;  /* enum pl_dp_field_kind */
	uint8_t words; /* 64-bit words of a value: 2 of an address, upper half first */
};
extern const struct pl_dp_field_info pl_dp_fields[PL_DP_FIELD_MAX];

/* Finds a field by name; PL_DP_FIELD_MAX with diag, which suggests the nearest one. */
enum pl_dp_field pl_dp_field_find(const char *name, size_t len, struct pl_diag *diag);

/* Parses "02:00:00:00:00:01" into 48 bits. -EINVAL. */
int pl_dp_mac_parse(const char *text, uint64_t *ret);

/* Convert a MAC address in a packet to a number and back. */
uint64_t pl_dp_mac_get(const uint8_t bytes[6]);
void pl_dp_mac_set(uint8_t bytes[6], uint64_t mac);

/* Returns the address that the two words of a value are. */
static inline struct pl_addr pl_dp_addr_of(const uint64_t words[2])
{
	struct pl_addr addr;

	for (unsigned int i = 0; i < 16; i++)
		addr.b[i] = (uint8_t)(words[i / 8] >> (56 - i % 8 * 8));
	return addr;
}

/* Parses a value of the field; a number uses only the first word of ret. -EINVAL with diag. */
int pl_dp_value_parse(
	enum pl_dp_field field, const char *text, uint64_t ret[2], struct pl_diag *diag);
void pl_dp_value_put(enum pl_dp_field field, const uint64_t *value, struct pl_buf *out);

/* Reads the field of a parsed packet into as many words as it has; time_ns is the time of day in
 * the node. */
void pl_dp_field_read(const struct pl_dp_packet *pkt, enum pl_dp_field field, uint64_t time_ns,
	uint64_t *ret_words);
