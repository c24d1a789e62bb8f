/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP ports whose packets are received elsewhere, as frames: without a socket the host would answer
 * them by ICMP "port unreachable". */
#pragma once

#include <stdint.h>

/* Takes the port on the interface, where packets to it are dropped before a buffer is used. Another
 * process may have the port on another interface. Returns the descriptor; negative errno, such as
 * -EADDRINUSE when another process has it here: then the host sends no ICMP either. */
int pl_udp_quiet_open(const char *interface, uint16_t port);
