/* SPDX-License-Identifier: BSD-2-Clause */
/* Roles of a flow: which address is the client, which is the server, and the evidence for that.
 * Better evidence replaces worse until the first record of the flow; then the role stays, so that
 * all records of a flow agree (cache.h). */
#pragma once

#include "flow/entry.h"
#include "flow/listening.h"

/* Takes a SYN or SYN-ACK of the connection in direction `d` as evidence. With further flags it is
 * none. */
void pl_flow_role_syn(struct pl_flow_entry *flow, unsigned int d, uint8_t tcp_flags);

/* Sets the role of a new flow, whose first packet has these flags, at once: its server may be gone
 * when its record is made. `set` may be NULL. */
void pl_flow_role_start(
	struct pl_flow_entry *flow, const struct pl_flow_listening *set, uint8_t tcp_flags);

struct pl_flow_told {
	uint8_t role, by; /* enum pl_flow_role, enum pl_flow_role_by */
};

/* Returns the role for the record: the known one, else by a listening socket (`set` may be NULL),
 * else by the ports. */
struct pl_flow_told pl_flow_role_of(
	const struct pl_flow_entry *flow, const struct pl_flow_listening *set);
