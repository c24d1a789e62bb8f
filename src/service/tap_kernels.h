/* SPDX-License-Identifier: BSD-2-Clause */
/* A service's taps in the kernel: their records received. */
#pragma once

#include "service/tap.h"

/* Of those that have news, by what poll(2) says of each, or by the time. Negative errno with diag. */
int pl_tap_kernels_receive(struct pl_tap_service *t, const struct pollfd *polled, uint64_t now_ns,
	struct pl_diag *diag);
/* The earlier of it and the time of the next look. */
uint64_t pl_tap_kernels_due(const struct pl_tap_service *t, uint64_t due_ns);
/* What is in their rings is counted as records; to be called when no more comes. */
void pl_tap_kernels_drain(struct pl_tap_service *t, struct pl_diag *diag);
