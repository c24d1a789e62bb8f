/* SPDX-License-Identifier: BSD-2-Clause */
/* Roles of a flow: which side is client, which is server, and what tells it. Until a record of the
 * flow was given away, better evidence replaces worse; then the role stays, so that all records of
 * a flow agree (cache.h). */
#pragma once

#include "flow/entry.h"
#include "flow/listening.h"

/* Notes a SYN or SYN-ACK of the connection in direction `d`. Other flags with them tell nothing. */
void pl_flow_role_syn(struct pl_flow_entry *flow, unsigned int d, uint8_t tcp_flags);

/* Notes a new flow, whose first packet has these flags: its server may be gone when its record is
 * made. `set` may be NULL. */
void pl_flow_role_start(
	struct pl_flow_entry *flow, const struct pl_flow_listening *set, uint8_t tcp_flags);

struct pl_flow_told {
	uint8_t role, by; /* enum pl_flow_role, enum pl_flow_role_by */
};

/* Role for the record: the one known, else by the side that listens (`set` may be NULL), else by
 * the ports. */
struct pl_flow_told pl_flow_role_of(
	const struct pl_flow_entry *flow, const struct pl_flow_listening *set);
