/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulations that other commands show. */
#pragma once

#include <stdint.h>

/* The published experiment of alternate marking, docs/examples/marking/congestion.yaml: prints loss
 * and delay by marking beside those of the queue. form: one of pl_out_forms. Returns an exit code;
 * prints errors. */
int pl_simulate_marking(uint64_t duration_ns, uint64_t seed, const char *form);
