/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends frames through an AF_PACKET socket, past the queueing discipline, many in one system call.
 * A transmit ring (PACKET_TX_RING) takes 0.3 us more for each frame (docs/benchmarks.md): the
 * kernel copies in both cases, and handling a ring's slots costs more than the messages.
 */
#pragma once

#include <stdint.h>

#include "wire/packet.h"

/* Sets the socket's options; call it before bind. Negative errno. */
int raw_send_prepare(int fd);
/* Sends n frames; waits for room up to a second without progress. Returns how many were sent. If
 * fewer than n, *ret_error is the error of the next one: -EMSGSIZE, -ENETDOWN, -ETIMEDOUT, ...;
 * else 0. */
uint32_t raw_send(int fd, const struct pl_packet *frames, uint32_t n, int *ret_error);
