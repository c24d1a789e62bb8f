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
	int index; /* when it was asked last */
	uint8_t mac[6];
	bool moved;           /* the MAC address is another than at the beginning */
	uint32_t frame_bytes; /* the longest frame, with Ethernet's header and a tag */
	uint32_t changes;     /* so often it was asked */
};

/* First listens, then asks: what changes in between is told. Negative errno with diag, and it is to
 * be closed all the same. */
int nic_interface_open(struct nic_interface *in, const char *name, struct pl_diag *diag);
void nic_interface_close(struct nic_interface *in); /* one with news_fd -1 is fine */

/* Asks again when something changed on this host. One that is away keeps what it had; it tells when
 * it comes. True: it has another number. */
bool nic_interface_look(struct nic_interface *in);
/* The number of the interface, under the name that it has now; another one of its name, where it is
 * gone. 0: none. */
int nic_interface_find(struct nic_interface *in);

/* Its addresses, to be freed, as pl_nic_addresses. */
int nic_interface_addresses(const struct nic_interface *in, struct pl_addr **ret, uint32_t *ret_n,
	struct pl_diag *diag);
/* Whose interface has the address: the loopback's, when it is none that an interface has by name
 * (127.0.0.2). */
void nic_interface_name(const struct pl_addr *address, char ret[static IF_NAMESIZE]);
