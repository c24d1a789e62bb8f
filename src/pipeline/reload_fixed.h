/* SPDX-License-Identifier: BSD-2-Clause */
/* What a reload leaves as it was; for reload.c. */
#pragma once

#include "pipeline/config.h"

/* NULL: it has none. */
const struct pl_config_source *pl_config_find_source(const struct pl_config *c, const char *uri);
const struct pl_config_output *pl_config_find_output(
	const struct pl_config *c, const char *identity);

/* Lists of texts. */
bool pl_reload_same_names(const struct pl_conf_list *a, const struct pl_conf_list *b);

/* Outputs that stay go under the names that they run under; made-up names of new ones are such as no
 * other output has. -EINVAL with diag: the name of a new one is that of one that runs. -ENOMEM. */
int pl_reload_names(struct pl_config *from, struct pl_config *to, struct pl_diag *diag);
/* Names in the log what stays as it was, and puts the values in use into the new configuration: the
 * next reload compares with what is, and the workers with their room. */
void pl_reload_keep_fixed(struct pl_config *from, struct pl_config *to);
