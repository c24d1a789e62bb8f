/* SPDX-License-Identifier: BSD-2-Clause */
/* Taps in the kernel as sources of a tap: their records received. */
#pragma once

#include "service/tap.h"

/* Reads the taps that poll(2) reports, or whose time has come. Returns negative errno with diag. */
int pl_tap_kernels_receive(struct pl_tap_service *t, const struct pollfd *polled, uint64_t now_ns,
	struct pl_diag *diag);
/* Returns the earlier of due_ns and the time of the next check. */
uint64_t pl_tap_kernels_due(const struct pl_tap_service *t, uint64_t due_ns);
/* Takes the records left in the rings; to be called when the taps were stopped. */
void pl_tap_kernels_drain(struct pl_tap_service *t, struct pl_diag *diag);
