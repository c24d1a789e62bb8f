/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the service manager the state of this process: one datagram to $NOTIFY_SOCKET
 * (sd_notify(3)). Without that variable these functions do nothing. */
#pragma once

#include <stdint.h>

/* Sends "READY=1", "STATUS=…", separated by newlines. */
void pl_notify(const char *state);

/* Sends RELOADING=1 with the time that newer managers need. */
void pl_notify_reloading(void);

/* Interval in which WATCHDOG=1 is expected, 0 = not at all. */
uint64_t pl_notify_watchdog_ns(void);
