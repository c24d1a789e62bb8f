/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of a generator, for gen.c. */
#pragma once

#include "gen/gen.h"

int pl_gen_resolve(struct pl_gen_cfg *cfg, struct pl_diag *diag);
