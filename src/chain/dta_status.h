/* SPDX-License-Identifier: BSD-2-Clause */
/* How the parts of a chain are while it runs: asked by SIGUSR1, answered in their own words, told
 * together. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "chain/dta_process.h"
#include "runtime/say.h"

struct pl_dta_status {
	struct pl_dta_process *parts; /* collectors, the translator, generators */
	unsigned int n_parts, n_collectors;
	uint64_t since_ns;
	uint64_t every_ns; /* 0: only when it is asked for */
	bool json;
	struct pl_print print;
	uint64_t next_ns,
		until_ns; /* when to ask; until when to wait for answers, 0: nobody was asked */
};

/* Begins at now_ns. */
void pl_dta_status_init(struct pl_dta_status *s, uint64_t now_ns);

/* To be called every so often, the parts being pumped meanwhile: asks when it is time, or `asked`,
 * and prints when all have answered, those that do not within two seconds as such. */
void pl_dta_status_step(struct pl_dta_status *s, uint64_t now_ns, bool asked);
