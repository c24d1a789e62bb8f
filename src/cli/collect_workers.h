/* SPDX-License-Identifier: BSD-2-Clause */
/* What peers signal, read by workers and printed: a JSON object in a line of standard output for each new entry or value. */
#pragma once

#include "base/json.h"
#include "nic/collector.h"
#include "nic/workers.h"

/* For `options` of an open collector. Negative errno with diag. */
int pl_collect_workers_open(struct pl_workers **ret, struct pl_collector *c,
	const struct pl_collector_options *options, unsigned int n, struct pl_diag *diag);

/* Member "workers" of an object that is open. */
void pl_collect_workers_stats(struct pl_json *json, const struct pl_workers_stats *s);
