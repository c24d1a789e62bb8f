/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs of type region, a history: keys and driver. */
#include <errno.h>

#include "base/log.h"
#include "export/region_out.h"
#include "pipeline/kind.h"

static void history_options(const struct pl_config_output *o, struct pl_history_options *ret)
{
	*ret = (struct pl_history_options){ .sync_ns = o->keep.sync_ns };
	if (o->events)
		ret->slots[PL_HISTORY_EVENTS] = o->keep.events;
	if (!o->paths)
		return;
	ret->slots[PL_HISTORY_PATHS] = o->keep.paths;
	ret->slots[PL_HISTORY_HOPS] = o->keep.hops;
	ret->slots[PL_HISTORY_FLOWS] = o->keep.flows;
	ret->slots[PL_HISTORY_QUEUES] = o->keep.queues;
	ret->slots[PL_HISTORY_DROPS] = o->keep.drops;
}

static int check(const struct pl_config_output *o, struct pl_diag *diag)
{
	struct pl_history_options history;
	uint64_t bytes;
	int r = pl_output_check_path(o, "path is missing: the folder of the regions", diag);

	if (r < 0)
		return r;
	history_options(o, &history);
	return pl_history_bytes(&history, &bytes, diag) < 0 ? -EINVAL : 0;
}

static void tell(const char *text)
{
	pl_warn("output", "%s", text);
}

static int open_regions(struct pl_export **ret, const struct pl_config_output *o, uint64_t now_ns,
	struct pl_diag *diag)
{
	struct pl_region_out_options options = { .folder = o->path };
	int r;

	(void)now_ns;
	history_options(o, &options.history);
	options.history.tell = tell;
	/* A file truncated by others gives an error instead of SIGBUS. */
	r = pl_region_guard();
	return r < 0 ? r : pl_region_out_open(ret, &options, diag);
}

/* The regions are files: the kernel reclaims their pages when it needs to. */
static uint64_t memory(const struct pl_config_output *o)
{
	(void)o;
	return 0;
}

const struct pl_output_kind pl_output_kind_region = {
	.paths = PL_TAKES,
	.events = PL_TAKES,
	.values = PL_CANNOT,
	.series = PL_CANNOT,
	.history = true,
	.check = check,
	.open = open_regions,
	.memory = memory,
};
