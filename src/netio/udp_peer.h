/* SPDX-License-Identifier: BSD-2-Clause */
/* A connected UDP socket, for reporters: it sends to one peer and receives from it only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/diag.h"

/* Opens the socket. Returns its descriptor, which is non-blocking and the caller's. address: the
 * peer as text, for diag. Negative errno with diag. */
int pl_udp_peer_open(
	const struct pl_addr *addr, uint16_t port, const char *address, struct pl_diag *diag);

/* Sends a datagram; three attempts, with a wait of up to 1 ms after each for a full socket.
 * Negative errno when it was not sent. */
int pl_udp_peer_send(int fd, const void *bytes, size_t n);
