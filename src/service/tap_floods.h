/* SPDX-License-Identifier: BSD-2-Clause */
/* Senders that flood a socket of a tap are received on separate sockets (netio/udp_turns.h). */
#pragma once

#include "service/tap.h"

/* Appends the descriptors of senders with separate sockets to the n in the array. Returns the new
 * number. */
unsigned int pl_tap_floods_fds(
	struct pl_tap_service *t, struct pollfd *ret, unsigned int n, unsigned int max);

/* Logs what has changed, from time to time. */
void pl_tap_floods_look(struct pl_tap_service *t, uint64_t now_ns);

/* Adds the member "floods". */
void pl_tap_floods_json(struct pl_tap_service *t, struct pl_json *json);
