/* SPDX-License-Identifier: BSD-2-Clause */
/* The list `clocks` of a lab's file: switches whose clocks are wrong. */
#pragma once

#include "base/conf.h"
#include "base/diag.h"

struct pl_lab_topology;

struct pl_lab_clock_conf {
	char *node, *offset, *drift;
};

extern const struct pl_conf_row pl_lab_clock_rows[];

/* Sets the clocks of nodes. -EINVAL with diag: *ret_at and *ret_key are the wrong entry and key. */
int pl_lab_clocks_make(struct pl_lab_topology *t, const struct pl_conf_list *conf, size_t *ret_at,
	const char **ret_key, struct pl_diag *diag);
