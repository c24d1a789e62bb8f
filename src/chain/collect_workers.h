/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals of peers, read by workers and printed: a JSON object in a line for each new entry or
 * value. */
#pragma once

#include "base/json.h"
#include "remote/collector.h"
#include "remote/workers.h"
#include "runtime/say.h"

struct pl_collect_workers_arg {
	const struct pl_collector_options *options; /* of the collector */
	struct pl_print print;                      /* called by any worker */
};

/* Starts n workers of an open collector; `arg` stays until they are closed. Returns negative errno
 * with diag. */
int pl_collect_workers_open(struct pl_workers **ret, struct pl_collector *c,
	const struct pl_collect_workers_arg *arg, unsigned int n, struct pl_diag *diag);

/* Adds the member "workers" to an open object. */
void pl_collect_workers_stats(struct pl_json *json, const struct pl_workers_stats *s);
