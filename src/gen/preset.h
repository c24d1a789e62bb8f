/* SPDX-License-Identifier: BSD-2-Clause */
/* Configurations with a name: what known devices and tests send. */
#pragma once

#include "gen/gen.h"

struct pl_gen_preset {
	const char *name;
	const char *help;
	struct pl_gen_cfg cfg;
	bool story; /* with the events of pl_gen_story */
};

/* All of them, n. */
const struct pl_gen_preset *pl_gen_presets(size_t *ret_n);

/* Puts a preset into *cfg. -EINVAL with diag for an unknown name. */
int pl_gen_preset_set(struct pl_gen_cfg *cfg, const char *name, struct pl_diag *diag);
