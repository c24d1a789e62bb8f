/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns the epochs of a collector's stores. */
#include "chain/collect_epochs.h"

#include <errno.h>

static enum pl_epochs_kind kind(void *arg, uint32_t i)
{
	const struct pl_collect_epochs_arg *a = arg;

	return pl_collector_can_turn(a->collector, i, NULL) == 0 ? PL_EPOCHS_TIMED : PL_EPOCHS_NONE;
}

static const struct pl_region *region(void *arg, uint32_t i)
{
	const struct pl_collect_epochs_arg *a = arg;

	return pl_collector_region(a->collector, i);
}

static const char *name(void *arg, uint32_t i)
{
	const struct pl_collect_epochs_arg *a = arg;

	return a->options->stores[i].name;
}

static const char *path(void *arg, uint32_t i)
{
	const struct pl_collect_epochs_arg *a = arg;

	return a->options->stores[i].path;
}

static int prepare(void *arg, uint32_t i)
{
	const struct pl_collect_epochs_arg *a = arg;

	return pl_collector_prepare_epoch(a->collector, i, NULL);
}

static int next(void *arg, uint32_t i)
{
	const struct pl_collect_epochs_arg *a = arg;

	return pl_collector_next_epoch(a->collector, i, NULL);
}

bool pl_collect_epochs_any(const struct pl_collect_epochs_arg *arg)
{
	for (uint32_t i = 0; i < arg->options->n_stores; i++) {
		if (pl_collector_can_turn(arg->collector, i, NULL) == 0)
			return true;
	}
	return false;
}

int pl_collect_epochs_open(struct pl_epochs **ret, struct pl_collect_epochs_arg *arg,
	uint64_t every_ns, const char *folder, struct pl_diag *diag)
{
	const struct pl_epochs_writer writer = { arg->options->n_stores, kind, region, name, path,
		prepare, next, arg };

	if (!pl_collect_epochs_any(arg))
		return pl_diag_fail(diag, -EINVAL,
			"epochs: no store has epochs: they need a region with two halves, other than lists, on the software NIC");
	return pl_epochs_open(ret, &writer, every_ns, folder, diag);
}
