/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what the kernel adds to a received datagram in control messages. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "base/addr.h"

/* Returns the kernel's timestamp and sets *ret_clock to match; without one, `otherwise`. */
uint64_t pl_udp_kernel_time(struct msghdr *m, uint64_t otherwise, uint8_t *ret_clock);

/* Returns the address that a datagram was sent to; unspecified when the kernel did not tell. */
struct pl_addr pl_udp_told_dst(struct msghdr *m);
