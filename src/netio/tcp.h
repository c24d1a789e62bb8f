/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP sockets that do not block, by addresses as people write them. Negative errno with diag. */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "base/diag.h"

#define PL_TCP_TEXT_MAX 64

/* "host:port", "[v6]:port", ":port" = every address, v4 and v6 (a kernel without IPv6: v4). Numeric
 * only. Returns the listening descriptor; ret_text, which may be NULL, is where it listens:
 * "127.0.0.1:8400". */
int pl_tcp_listen(const char *where, int backlog, struct pl_addr *ret_addr,
	char ret_text[PL_TCP_TEXT_MAX], struct pl_diag *diag);

/* The next connection, or -EAGAIN. */
int pl_tcp_accept(int fd, struct pl_addr *ret_peer);

/* Begins a connection: its descriptor, which is writable when it is there or failed (SO_ERROR
 * says). from: by this address of ours; where the host does not have it, or it is of another kind
 * than `to`, or NULL: by the one that the kernel chooses. */
int pl_tcp_connect(
	const struct pl_addr *to, uint16_t port, const struct pl_addr *from, struct pl_diag *diag);

/* A peer that is gone without a word is found out after about so many seconds. */
void pl_tcp_watch(int fd, int seconds);
