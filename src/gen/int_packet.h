/* SPDX-License-Identifier: BSD-2-Clause */
/* A packet with INT in the network: int_packet.c writes it, on its own or into a report. */
#pragma once

#include "gen/int_gen.h"

/* Headers of one inner packet whose lengths are not filled in yet, outermost first. */
struct pl_gen_open {
	size_t at[3];
	unsigned int n;
	bool fragment; /* the innermost header becomes that of a later fragment when it is closed */
};

void pl_gen_open_close(struct pl_gen_open *o, struct pl_build *b);
/* Replaces values of the model by those that a device of the dialect writes. */
void pl_gen_speak_dialect(const struct pl_gen_cfg *cfg, struct pl_int_hop *hop);
/* Hops that the hop limit allows behind the first in the stack: a flush does not raise it again. */
unsigned int pl_gen_hop_budget_left(const struct pl_gen_cfg *cfg, const struct pl_gen_item *item);
void pl_gen_put_plain(const struct pl_gen_cfg *cfg, struct pl_build *b, struct pl_gen_open *o,
	const struct pl_gen_item *item, struct pl_gen_damage *d);
/* Writes the packet up to its payload; the caller closes open headers. n_stack < 0: it carries no
 * INT. */
void pl_gen_put_packet(const struct pl_gen_cfg *cfg, struct pl_build *b, struct pl_gen_open *o,
	const struct pl_gen_item *item, int n_stack, struct pl_gen_damage *d);
