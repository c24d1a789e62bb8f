/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals to end. Those that come within a second are one: timeout(1) sends its own to the command and
 * to the command's process group. A later one, while the process ends, ends it at once, and tells the
 * accounts of when its end began.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* None has come, and the process does not end yet. */
void pl_ending_reset(void);
/* Handles an ending signal, the first or a further one; called in a signal handler. It may not
 * return. */
void pl_ending_signal(bool first);
/* The end begins; the accounts stay the callee's. */
void pl_ending_begins(const struct pl_buf *accounts);
