/* SPDX-License-Identifier: BSD-2-Clause */
/* The list `run` of a lab's file: commands in nodes, in the order in which they start. */
#pragma once

#include "base/conf.h"
#include "base/diag.h"

struct pl_lab_topology;

struct pl_lab_run_conf {
	char *node, *name, *command, *ready, *check;
	bool account;
};

extern const struct pl_conf_row pl_lab_run_rows[];

/* Adds the commands of a node; takes over the strings. -ENOMEM. */
int pl_lab_run_add(
	struct pl_lab_topology *t, unsigned int node, const struct pl_conf_list *commands);
/* Adds the commands of the list; takes over the strings. -EINVAL with diag: *ret_at and *ret_key
 * are the wrong entry and key; -ENOMEM. */
int pl_lab_run_make(struct pl_lab_topology *t, const struct pl_conf_list *conf, size_t *ret_at,
	const char **ret_key, struct pl_diag *diag);
