/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of a command that are rows of a configuration, so that both have one name, range, default
 * and help: the row "rdma.peers_each" is --peers-each of the command that has "rdma.". A boolean is a
 * flag, a list of strings an option that may be repeated.
 */
#pragma once

#include "base/conf.h"
#include "base/opt.h"

#define PL_CONF_OPTS_MAX 64

struct pl_conf_opts {
	struct pl_opt table[PL_CONF_OPTS_MAX];
	struct pl_conf_opt {
		const struct pl_conf_row *row;
		char name[32], help[512];
		const char *text;         /* NULL: not given */
		struct pl_opt_list words; /* of PL_CONF_STRINGS */
		bool flag;
	} given[PL_CONF_OPTS_MAX];
	unsigned int n;
};

/* Makes the table of options: the rows whose keys begin with the prefix, in their order, except for
 * keys in `without` (NULL-terminated; the command has them as operands), and behind them the
 * options of `more`. At first none of them is marked as given. The table is part of *o and ends
 * with PL_OPT_END. */
const struct pl_opt *pl_conf_opts(struct pl_conf_opts *o, const struct pl_conf_row *rows,
	const char *prefix, const char *const *without, const struct pl_opt *more);

/* Sets the given options in conf, which has its defaults. Returns 0, -EINVAL with diag, or
 * -ENOMEM. */
int pl_conf_opts_set(const struct pl_conf_opts *o, void *conf, struct pl_diag *diag);
void pl_conf_opts_done(struct pl_conf_opts *o);
