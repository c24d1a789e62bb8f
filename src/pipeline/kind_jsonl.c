/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs of type jsonl, a file of JSON lines: keys and driver. */
#include "export/jsonl.h"
#include "pipeline/kind.h"

static int check(const struct pl_config_output *o, struct pl_diag *diag)
{
	return pl_output_check_path(o, "path is missing", diag);
}

static int open_file(struct pl_export **ret, const struct pl_config_output *o, uint64_t now_ns,
	struct pl_diag *diag)
{
	struct pl_jsonl_options file = {
		.path = o->path,
		.max_bytes = o->rotate_size_bytes,
		.max_age_ns = o->rotate_age_ns,
		.keep = (unsigned int)o->rotate_keep,
		.buffer_bytes = o->buffer_bytes,
	};

	return pl_jsonl_open(ret, &file, now_ns, diag);
}

static uint64_t memory(const struct pl_config_output *o)
{
	return o->buffer_bytes;
}

const struct pl_output_kind pl_output_kind_jsonl = {
	.paths = PL_TAKES,
	.events = PL_TAKES,
	.values = PL_TAKES,
	.series = PL_CANNOT,
	.check = check,
	.open = open_file,
	.memory = memory,
};
