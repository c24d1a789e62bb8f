/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of a host and the ports at which it listens: they identify the server of a flow without
 * a SYN. This file holds data only: the owner of the flow cache asks the kernel
 * (netio/listening.h), fills a set and passes it on (pl_flow_cache_set_listening).
 *
 * An unconnected UDP socket may be a client's. So it counts only when its port is outside the range
 * that the kernel gives to clients, the peer's port is 1024 or above, and both ports differ (NTP,
 * DHCP, resolvers and peers of one protocol have equal ports, or are clients of such).
 *
 * The same thread fills and reads a set.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "flow/entry.h"

struct pl_flow_listening;

/* Most addresses of the host, and most sockets that listen at one address. */
#define PL_FLOW_LISTENING_MAX 4096u

/* Makes an empty set, which never takes more memory. Returns 0 or -ENOMEM. */
int pl_flow_listening_new(struct pl_flow_listening **ret);
void pl_flow_listening_free(struct pl_flow_listening *set); /* NULL is fine */

/* Begins to fill the set: first clear, then the entries in any order, then ready. Entries without
 * room are left out and counted. */
void pl_flow_listening_clear(struct pl_flow_listening *set);
/* Adds a range of ports that the kernel gives to clients. */
void pl_flow_listening_clients(struct pl_flow_listening *set, uint16_t from, uint16_t to);
/* Adds an address of the host. 127.0.0.0/8 always is one. */
void pl_flow_listening_local(struct pl_flow_listening *set, const struct pl_addr *addr);
/* Adds a socket of TCP or UDP; other protocols are ignored. A socket at :: takes IPv4 too unless
 * v6only. */
void pl_flow_listening_socket(struct pl_flow_listening *set, uint8_t proto,
	const struct pl_addr *addr, uint16_t port, bool v6only);
void pl_flow_listening_ready(struct pl_flow_listening *set);

uint32_t pl_flow_listening_sockets(const struct pl_flow_listening *set); /* sockets in the set */
uint32_t pl_flow_listening_left_out(const struct pl_flow_listening *set);

/* Role of the flow's source (enum pl_flow_role) by the side that listens; unknown when both sides
 * listen or neither does. */
uint8_t pl_flow_listening_role(
	const struct pl_flow_listening *set, const struct pl_flow_entry *flow);
