/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists from the kernel the listening sockets in this process's network namespace: TCP sockets that
 * listen, UDP sockets that are bound and not connected, and the addresses of interfaces. It uses
 * netlink (sock_diag, rtnetlink), which needs no privilege; the netlink sockets are opened once and
 * used again in the sandbox. Sockets in other network namespaces (containers) are not seen.
 *
 * A look is taken in steps of one receive each, so that a host with many sockets does not delay the
 * caller's other work.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/diag.h"

struct pl_listening;

struct pl_listening_sink {
	void (*socket)(
		void *arg, uint8_t proto, const struct pl_addr *addr, uint16_t port, bool v6only);
	void (*local)(void *arg, const struct pl_addr *addr);
	void *arg;
};

/* Ports that the kernel assigns to sockets bound to port 0 (ip_local_port_range). */
struct pl_listening_range {
	uint16_t from, to;
};

/* Returns 0, -ENOMEM, or the error of opening a socket with diag. */
int pl_listening_open(struct pl_listening **ret, struct pl_diag *diag);
void pl_listening_close(struct pl_listening *l); /* NULL is allowed */

/* Begins to read the lists again, after the reading before is complete or has failed. */
void pl_listening_begin(struct pl_listening *l);
/* Takes one step of reading the sockets. Returns 1 when the list is complete, 0 when there are more
 * steps, negative errno with diag when it failed. */
int pl_listening_step(
	struct pl_listening *l, const struct pl_listening_sink *sink, struct pl_diag *diag);

/* Returns the current range; the kernel's default where it cannot be read. */
struct pl_listening_range pl_listening_clients(const struct pl_listening *l);
