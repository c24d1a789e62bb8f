/* SPDX-License-Identifier: BSD-2-Clause */
/* Epochs of a collector's stores (chain/epochs.h). A sketch turns later than the others, as soon as
 * it is complete. */
#pragma once

#include "chain/epochs.h"
#include "remote/collector.h"

struct pl_collect_epochs_arg {
	struct pl_collector *collector;
	const struct pl_collector_options *options;
};

/* Returns true when any store has epochs (pl_collector_can_turn). */
bool pl_collect_epochs_any(const struct pl_collect_epochs_arg *arg);

/* As pl_epochs_open; `arg` stays until they are freed. Returns -EINVAL when no store has epochs. */
int pl_collect_epochs_open(struct pl_epochs **ret, struct pl_collect_epochs_arg *arg,
	uint64_t every_ns, const char *folder, struct pl_diag *diag);
