/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds INT in a packet of the data plane, as the domain announces it (INT 0.5 4.5, 1.0 4.5, 2.1
 * 5.5 and 5.6). INT that is found has been parsed and is consistent (wire/int.h); a packet that
 * only looks like INT is refused and not changed.
 */
#pragma once

#include "dataplane/edit.h"
#include "dataplane/telemetry/telemetry.h"

/* Offsets in bytes from the packet's data. */
struct pl_dp_int_found {
	struct pl_int in;
	uint8_t by;    /* announced by this PL_DP_BY_* */
	bool others;   /* destination-type headers, which stay, precede it */
	uint32_t at;   /* first byte that the source inserted: marker, header, or shim */
	uint32_t shim; /* Geneve: the option */
	uint32_t md, stack;
	uint32_t end;    /* end of stack and tail */
	uint32_t keep;   /* end of the bytes that a reader needs: Geneve's other options too */
	uint32_t tunnel; /* header of the tunnel; with PL_DP_BY_TUNNEL */
};

/* Finds INT in the packet of an open edit. DONE with *ret; NONE: not announced as INT; or an
 * error. */
enum pl_dp_int_outcome pl_dp_int_find(struct pl_dp_int_found *ret,
	const struct pl_dp_int_domain *domain, const struct pl_dp_edit *e,
	struct pl_int_cache *cache);

/* Returns the bytes of a packet up to the end of its INT header and, with NPT 2, of the transport
 * header behind that: a report about the packet must keep them to be readable. 0: it has no INT. */
uint32_t pl_dp_int_keep(const struct pl_dp_int_domain *domain, struct pl_dp_packet *pkt,
	struct pl_int_cache *cache);
uint32_t pl_dp_int_found_keep(const struct pl_dp_int_found *found);

/* Returns the outcome for an error of pl_dp_edit_open. */
enum pl_dp_int_outcome pl_dp_int_of_fault(enum pl_dp_edit_fault fault);

/* Returns the length of a GRE header (RFC 2784, 2890) with optional words; 0: it has a checksum,
 * which would cover changed bytes, or is of another version. */
uint32_t pl_dp_gre_bytes(const uint8_t gre[4]);
