/* SPDX-License-Identifier: BSD-2-Clause */
/* A packet with INT as it is in the network: int_packet.c writes it, by itself or into a report. */
#pragma once

#include "gen/int_gen.h"

/* Headers of one inner packet whose lengths are still open, outermost first. */
struct pl_gen_open {
	size_t at[3];
	unsigned int n;
	bool fragment; /* the innermost becomes a later fragment when it is closed */
};

void pl_gen_open_close(struct pl_gen_open *o, struct pl_build *b);
/* What a device of the dialect writes where the model has a value. */
void pl_gen_speak_dialect(const struct pl_gen_cfg *cfg, struct pl_int_hop *hop);
/* Hops the budget admits behind the first in the stack: a flush does not give back what was used
 * up. */
unsigned int pl_gen_hop_budget_left(const struct pl_gen_cfg *cfg, const struct pl_gen_item *item);
void pl_gen_put_plain(const struct pl_gen_cfg *cfg, struct pl_build *b, struct pl_gen_open *o,
	const struct pl_gen_item *item, struct pl_gen_damage *d);
/* The packet with everything up to its payload; the caller closes what is open. n_stack < 0: it
 * carries no INT. */
void pl_gen_put_packet(const struct pl_gen_cfg *cfg, struct pl_build *b, struct pl_gen_open *o,
	const struct pl_gen_item *item, int n_stack, struct pl_gen_damage *d);
