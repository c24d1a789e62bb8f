/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where pathline translate sends its operations. A kind of output is one file with one constructor; the command knows no
 * more of it than this.
 */
#pragma once

#include "base/diag.h"
#include "base/json.h"
#include "dta/op.h"
#include "dta/translator.h"

struct pl_translate_out {
	/* For struct pl_op_sink; `arg` is the output's own. */
	void (*ops)(void *arg, const struct pl_op *ops, size_t n);
	/* What an output remembers of lists: before the first report. NULL: nothing. */
	int (*resume)(void *arg, struct pl_translator *t);
	/* Its counters: members of an object that is open. */
	void (*stats)(void *arg, struct pl_json *json);
	/* 0, or the negative errno of what could not be brought to its end. */
	int (*close)(void *arg);
	void *arg;
	/* The stores there are, in their order; the same for each collector. */
	const struct pl_store_params *stores;
	unsigned int n_stores, collectors;
};

/* Region files, written here. `paths` are those of the first collector's stores, then the second's …; n is a multiple of
 * `collectors`. Negative errno with diag. */
int pl_translate_to_regions(struct pl_translate_out *ret, const char *const *paths, size_t n,
	unsigned int collectors, struct pl_diag *diag);
