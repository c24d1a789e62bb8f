/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts that a reload leaves as they were; for reload.c. */
#pragma once

#include "pipeline/config.h"

/* Return the source or output, or NULL. */
const struct pl_config_source *pl_config_find_source(const struct pl_config *c, const char *uri);
const struct pl_config_output *pl_config_find_output(
	const struct pl_config *c, const char *identity);

/* Compares lists of texts. */
bool pl_reload_same_names(const struct pl_conf_list *a, const struct pl_conf_list *b);

/* Renames outputs: those that stay keep their running names; generated names of new ones become
 * unique. Returns -EINVAL with diag when a new one has the name of a running one, -ENOMEM. */
int pl_reload_names(struct pl_config *from, struct pl_config *to, struct pl_diag *diag);
/* Logs keys that stay as they were, and puts running values into the new configuration where the
 * next reload compares them, or workers size their tables by them. */
void pl_reload_keep_fixed(struct pl_config *from, struct pl_config *to);
