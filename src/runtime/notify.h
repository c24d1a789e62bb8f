/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the service manager how this process is: one datagram to $NOTIFY_SOCKET (sd_notify(3)).
 * Without that variable everything here does nothing. */
#pragma once

#include <stdint.h>

/* "READY=1", "STATUS=…", lines apart by newlines. */
void pl_notify(const char *state);

/* RELOADING=1 with the time that newer managers ask for. */
void pl_notify_reloading(void);

/* How often WATCHDOG=1 is expected, 0 = not at all. */
uint64_t pl_notify_watchdog_ns(void);
