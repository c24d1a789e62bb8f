/* SPDX-License-Identifier: BSD-2-Clause */
/* Explicit flow measurement of QUIC in a capture of one point, for "pathline meter --method quic
 * --read": prints round-trip times and loss of each connection. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "mark/observer.h"
#include "tap/rules.h"

struct pl_mark_observe_options {
	const char *path;
	struct pl_observer_config observer;
	struct pl_tap_rules rules;
	const char *form; /* one of pl_out_forms */
	bool stats;       /* prints counters of packets to standard error */
};

/* Reads the bits of byte 0 of the short header from texts: spin:N, delay:N, square:N, loss:N,
 * reflection:N, trip:N, ecn-echo:N, with N from 3 to 6. Without texts: spin:5. -EINVAL with
 * diag. */
int pl_mark_observe_bits(
	struct pl_efm_config *ret, const char *const *texts, size_t n, struct pl_diag *diag);

/* Reads and prints. Returns an exit code; prints errors. */
int pl_mark_observe(const struct pl_mark_observe_options *options);
