/* SPDX-License-Identifier: BSD-2-Clause */
/* An interface of this host as it is now: its number, name, MAC address, MTU and addresses may
 * change while it is open. */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/diag.h"

struct nic_interface {
	int news_fd; /* netlink: links and addresses of this host change; -1: not open */
	char name[IF_NAMESIZE];
	int index; /* at the last request */
	uint8_t mac[6];
	bool moved;           /* the MAC address has changed since the beginning */
	uint32_t frame_bytes; /* longest frame, with Ethernet's header and a tag */
	uint32_t changes;     /* number of requests */
};

/* Listens first, then reads the state: changes in between are not missed. Returns negative errno
 * with diag; close it in any case. */
int nic_interface_open(struct nic_interface *in, const char *name, struct pl_diag *diag);
void nic_interface_close(struct nic_interface *in); /* one with news_fd -1 is fine */

/* Reads the state again when something changed on this host. An interface that is away keeps its
 * last state. Returns true when its number has changed. */
bool nic_interface_look(struct nic_interface *in);
/* Finds the number of the interface under its present name, or of another one of its first name
 * when it is gone. 0: none. */
int nic_interface_find(struct nic_interface *in);

/* Reads its addresses, which the caller frees, as pl_nic_addresses. */
int nic_interface_addresses(const struct nic_interface *in, struct pl_addr **ret, uint32_t *ret_n,
	struct pl_diag *diag);
/* Name of the interface that has the address; the loopback's for an address that no interface lists
 * (127.0.0.2). */
void nic_interface_name(const struct pl_addr *address, char ret[static IF_NAMESIZE]);
