/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens non-blocking TCP sockets by address text. All return negative errno with diag. */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "base/diag.h"

#define PL_TCP_TEXT_MAX 64

/* Listens on "host:port", "[v6]:port", or ":port" = every address, v4 and v6 (v4 on a kernel
 * without IPv6). Numeric only. Returns the descriptor. ret_text, which may be NULL: the bound
 * address, "127.0.0.1:8400". */
int pl_tcp_listen(const char *where, int backlog, struct pl_addr *ret_addr,
	char ret_text[PL_TCP_TEXT_MAX], struct pl_diag *diag);

/* Accepts the next connection. Returns its descriptor, -EAGAIN, or another negative errno. */
int pl_tcp_accept(int fd, struct pl_addr *ret_peer);

/* Begins a connection. Returns its descriptor, which is writable once connected or failed (SO_ERROR
 * tells). from: the source address; the kernel chooses one if it is NULL, not an address of this
 * host, or of another family than `to`. */
int pl_tcp_connect(
	const struct pl_addr *to, uint16_t port, const struct pl_addr *from, struct pl_diag *diag);

/* Sets keepalive: a connection whose peer vanished fails after about `seconds` seconds. */
void pl_tcp_watch(int fd, int seconds);
