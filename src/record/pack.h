/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chosen fields of a record as bytes: keys and values for telemetry memory. Fields have the names of
 * fields.def. Of a hop record a name is first looked for among the fields of the hop, then among
 * those of its path. "flow" stands for source, destination, ports and protocol together.
 *
 *   text     values as all text forms write them, joined by '/': "7/3"; a flow is
 *            "10.0.0.1:5000,10.0.0.2:80/udp" or "[fd00::1]:5000,[fd00::2]:80/tcp", without ports
 *            when the record has none, with the protocol's number unless it is tcp, udp, icmp,
 *            icmp6 or sctp
 *   packed   numbers one behind the other without padding, 1, 2, 4 or 8 bytes wide as in
 *            fields.def, in one byte order; addresses are 16 bytes (IPv4 as ::ffff:a.b.c.d); a
 *            flow is 37 bytes: 16, 16, 2, 2 and 1
 *   number   one field
 *
 * A missing value has no bytes: each function says when the record lacks one of the fields.
 */
#pragma once

#include "base/diag.h"
#include "record/record.h"

#define PL_PACK_FIELDS_MAX 16u
/* Most bytes of the fields of a pack, in either form. */
#define PL_PACK_BYTES_MAX  (PL_PACK_FIELDS_MAX * 104u)

struct pl_pack_field {
	const struct pl_field *field; /* NULL: the flow */
	bool of_path;                 /* hop record: a field of its path */
};

struct pl_pack {
	enum pl_record_kind kind;
	unsigned int n;
	struct pl_pack_field fields[PL_PACK_FIELDS_MAX];
};

/* A record to be packed: a path, a path with one of its hops, or an event. */
struct pl_pack_record {
	const void *record;         /* record of the pack's kind */
	const struct pl_path *path; /* path of a hop */
};

/* Makes a pack of these fields. Returns 0, or -EINVAL with diag for an unknown name, or too
 * many. */
int pl_pack_init(struct pl_pack *ret, enum pl_record_kind kind, const char *const *names, size_t n,
	struct pl_diag *diag);

/* Bytes of the packed form, and most bytes of the text. */
uint32_t pl_pack_bytes(const struct pl_pack *pack);
uint32_t pl_pack_text_max(const struct pl_pack *pack);
/* Returns true when the pack is one field, a number of at most `bits` bits. */
bool pl_pack_is_number(const struct pl_pack *pack, unsigned int bits);
/* True when the pack has the field with the flags of a report, which has no text form here. */
bool pl_pack_has_flags(const struct pl_pack *pack);

/* Writes pl_pack_bytes bytes to ret. False when a value is missing. */
bool pl_pack_put(const struct pl_pack *pack, const struct pl_pack_record *record, bool big_endian,
	uint8_t *ret);
/* Writes at most PL_PACK_BYTES_MAX bytes to ret, not terminated; returns their number, or 0 when a
 * value is missing. */
size_t pl_pack_text(const struct pl_pack *pack, const struct pl_pack_record *record, char *ret);
/* Reads the number of a pack of one field. False when it is missing or negative. */
bool pl_pack_number(const struct pl_pack *pack, const struct pl_pack_record *record, uint64_t *ret);
