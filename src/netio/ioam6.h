/* SPDX-License-Identifier: BSD-2-Clause */
/* Parser of the kernel's IOAM events, for the driver and its test. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Converts a message of the group ioam6_events into the body of a pre-allocated trace option, as
 * pl_ioam_trace_parse reads it. Returns its length, at most cap; -EBADMSG for a message that is
 * damaged or no trace event.
 */
int pl_ioam6_event(uint8_t *dst, size_t cap, const uint8_t *message, size_t len);
