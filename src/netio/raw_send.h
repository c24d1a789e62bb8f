/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames out of an AF_PACKET socket, past the queueing discipline, many by one system call. A
 * sending ring (PACKET_TX_RING) takes 0.3 us more for each (docs/benchmarks.md): the kernel copies
 * either way, and a ring's slots cost it more than the messages.
 */
#pragma once

#include <stdint.h>

#include "wire/packet.h"

/* Before the socket is bound. Negative errno. */
int raw_send_prepare(int fd);
/* Sends n frames, waiting for room where there is none, a second at most. How many went; where they
 * are fewer than n, *ret_error is what befell the next one: -EMSGSIZE, -ENETDOWN, -ETIMEDOUT, ...;
 * else 0. */
uint32_t raw_send(int fd, const struct pl_packet *frames, uint32_t n, int *ret_error);
