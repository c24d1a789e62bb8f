/* SPDX-License-Identifier: BSD-2-Clause */
/* The forms in which INT and its reports can be had: defaults, what goes together, and what follows
 * from it. */
#pragma once

#include "gen/gen.h"
#include "wire/int.h"

/* Fills in the defaults that depend on each other, and refuses what cannot be had together: -EINVAL
 * with diag. */
int pl_int_gen_resolve(struct pl_gen_cfg *cfg, struct pl_diag *diag);

/* Of a form with its defaults filled in. */
enum pl_int_version pl_int_form_version(const struct pl_gen_cfg *cfg);
bool pl_int_form_in_tunnel(const struct pl_gen_cfg *cfg);

/* Hops the 8-bit length (5 bits in a Geneve option) has room for. */
unsigned int pl_int_form_hops(const struct pl_gen_cfg *cfg);

/* The most a stack can take in a network of so many nodes. */
unsigned int pl_int_gen_stack_bytes(const struct pl_gen_cfg *cfg, unsigned int nodes);
