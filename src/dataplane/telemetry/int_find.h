/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where INT stands in a packet of the data plane, as the domain announces it (INT 0.5 4.5, 1.0 4.5,
 * 2.1 5.5 and 5.6). What is found has been parsed and holds together (wire/int.h); a packet that
 * only looks like INT is refused and not touched.
 */
#pragma once

#include "dataplane/edit.h"
#include "dataplane/telemetry/telemetry.h"

/* Offsets in bytes from the packet's data. */
struct pl_dp_int_found {
	struct pl_int in;
	uint8_t by;    /* the PL_DP_BY_* that announced it */
	bool others;   /* destination-type headers stand before it, which stay */
	uint32_t at;   /* the first byte that the source put in: marker, header, or shim */
	uint32_t shim; /* Geneve: the option */
	uint32_t md, stack;
	uint32_t end;    /* behind stack and tail */
	uint32_t keep;   /* behind what a reader needs to find it: Geneve's other options too */
	uint32_t tunnel; /* header of the tunnel; with PL_DP_BY_TUNNEL */
};

/* DONE with *ret; NONE: the packet is not announced as INT. The edit is open. */
enum pl_dp_int_outcome pl_dp_int_find(struct pl_dp_int_found *ret,
	const struct pl_dp_int_domain *domain, const struct pl_dp_edit *e,
	struct pl_int_cache *cache);

/* Bytes of a packet up to behind its INT header and, with NPT 2, the transport header behind that:
 * what a report about the packet must keep to be read. 0: it carries none. */
uint32_t pl_dp_int_keep(const struct pl_dp_int_domain *domain, struct pl_dp_packet *pkt,
	struct pl_int_cache *cache);
uint32_t pl_dp_int_found_keep(const struct pl_dp_int_found *found);

/* What a refusal to open an edit is called among outcomes. */
enum pl_dp_int_outcome pl_dp_int_of_fault(enum pl_dp_edit_fault fault);

/* Of GRE (RFC 2784, 2890): bytes of the header with its optional words; 0: it has a checksum, which
 * would cover what changes, or is of another version. */
uint32_t pl_dp_gre_bytes(const uint8_t gre[4]);
