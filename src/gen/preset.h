/* SPDX-License-Identifier: BSD-2-Clause */
/* Named configurations: those of known devices and tests. */
#pragma once

#include "gen/gen.h"

struct pl_gen_preset {
	const char *name;
	const char *help;
	struct pl_gen_cfg cfg;
	bool story; /* with the events of pl_gen_story */
};

/* All presets, and their number. */
const struct pl_gen_preset *pl_gen_presets(size_t *ret_n);

/* Copies a preset into *cfg. Returns -EINVAL with diag for an unknown name. */
int pl_gen_preset_set(struct pl_gen_cfg *cfg, const char *name, struct pl_diag *diag);
