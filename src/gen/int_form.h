/* SPDX-License-Identifier: BSD-2-Clause */
/* Forms of INT and its reports: defaults, valid combinations, and properties of a form. */
#pragma once

#include "gen/gen.h"
#include "wire/int.h"

/* Fills in the defaults that depend on each other, and refuses invalid combinations: returns
 * -EINVAL with diag. */
int pl_int_gen_resolve(struct pl_gen_cfg *cfg, struct pl_diag *diag);

/* INT version of a form with its defaults filled in. */
enum pl_int_version pl_int_form_version(const struct pl_gen_cfg *cfg);
bool pl_int_form_in_tunnel(const struct pl_gen_cfg *cfg);

/* Number of hops that fit in the 8-bit length (5 bits in a Geneve option). */
unsigned int pl_int_form_hops(const struct pl_gen_cfg *cfg);

/* Largest size of a stack in a network of this many nodes. */
unsigned int pl_int_gen_stack_bytes(const struct pl_gen_cfg *cfg, unsigned int nodes);
