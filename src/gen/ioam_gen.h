/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 packets with IOAM, in their form on the last link inside the domain: trace (pre-allocated
 * and incremental), edge to edge, proof of transit (RFC 9197), direct export (RFC 9326), flags (RFC
 * 9322), in Hop-by-Hop or Destination Options (RFC 9486). The network and its flows are those of
 * gen/model.h.
 */
#pragma once

#include "gen/int_gen.h"

/* Fills in the defaults, and refuses invalid combinations: returns -EINVAL with diag. */
int pl_ioam_gen_resolve(struct pl_gen_cfg *cfg, struct pl_diag *diag);

/* Writes a packet as a frame, as it leaves item->hop. */
void pl_ioam_gen_packet(const struct pl_gen_cfg *cfg, struct pl_build *b,
	const struct pl_gen_item *item, struct pl_gen_damage *damage, struct pl_gen_truth *truth);
