/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who of a flow is client and who is server, and what tells it. Until a record of the flow was given
 * away, better evidence takes the place of worse; then the role stays, so that all records of a flow
 * agree (cache.h).
 */
#pragma once

#include "flow/entry.h"
#include "flow/listening.h"

/* A SYN or SYN-ACK of the connection, of direction `d`. Other flags beside them tell nothing. */
void pl_flow_role_syn(struct pl_flow_entry *flow, unsigned int d, uint8_t tcp_flags);

/* A new flow, of whose first packet these are the flags: its server may be gone when its record is
 * made. `set` may be NULL. */
void pl_flow_role_start(
	struct pl_flow_entry *flow, const struct pl_flow_listening *set, uint8_t tcp_flags);

struct pl_flow_told {
	uint8_t role, by; /* enum pl_flow_role, enum pl_flow_role_by */
};

/* As a record says it: where nothing told it so far by who listens (`set` may be NULL), else by the
 * ports. */
struct pl_flow_told pl_flow_role_of(
	const struct pl_flow_entry *flow, const struct pl_flow_listening *set);
