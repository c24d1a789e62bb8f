/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What listens in the network namespace of this process, from the kernel: addresses of its
 * interfaces, sockets of TCP that listen, sockets of UDP that are bound and take packets of
 * anybody. Netlink's own questions (sock_diag, rtnetlink), which take no rights; sockets are opened
 * once, and asked again in the sandbox. Sockets in other network namespaces (containers) are not
 * seen.
 *
 * A look is taken in steps, one receive each, so that a host with many sockets holds nobody up.
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

/* Ports that the kernel gives to sockets that ask for none (ip_local_port_range). */
struct pl_listening_range {
	uint16_t from, to;
};

/* -ENOMEM, or of the sockets, with diag. */
int pl_listening_open(struct pl_listening **ret, struct pl_diag *diag);
void pl_listening_close(struct pl_listening *l); /* NULL is allowed */

/* A new look, when the one before is complete or has failed. */
void pl_listening_begin(struct pl_listening *l);
/* 1: the look is complete; 0: more steps; negative errno with diag: it failed, and what was found is
 * not all. */
int pl_listening_step(
	struct pl_listening *l, const struct pl_listening_sink *sink, struct pl_diag *diag);

/* As it is now; the kernel's default where it cannot be read. */
struct pl_listening_range pl_listening_clients(const struct pl_listening *l);
