/* SPDX-License-Identifier: BSD-2-Clause */
/* What peers signal, read by workers and printed: a JSON object in a line for each new entry or
 * value. */
#pragma once

#include "base/json.h"
#include "remote/collector.h"
#include "remote/workers.h"
#include "runtime/say.h"

struct pl_collect_workers_arg {
	const struct pl_collector_options *options; /* of the collector */
	struct pl_print print;                      /* from any worker */
};

/* n workers of an open collector; `arg` stays until they are closed. Negative errno with diag. */
int pl_collect_workers_open(struct pl_workers **ret, struct pl_collector *c,
	const struct pl_collect_workers_arg *arg, unsigned int n, struct pl_diag *diag);

/* Member "workers" of an object that is open. */
void pl_collect_workers_stats(struct pl_json *json, const struct pl_workers_stats *s);
