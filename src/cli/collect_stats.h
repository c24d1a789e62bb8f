/* SPDX-License-Identifier: BSD-2-Clause */
/* The account of pathline collect, as a JSON object and as a line for people. Keys, queue pairs and packet numbers are not
 * in it. */
#pragma once

#include "base/json.h"
#include "nic/collector.h"

/* Members of an object that is open. */
void pl_collect_stats(
	struct pl_json *json, struct pl_collector *c, const struct pl_collector_options *options);
/* To standard error. */
void pl_collect_tell(struct pl_collector *c);
