/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs of type ipfix: reports and their hops to a collector. */
#include <errno.h>

#include "export/ipfix_out.h"
#include "pipeline/kind.h"

static int check(const struct pl_config_output *o, struct pl_diag *diag)
{
	const int r = pl_output_check_to(o, diag);

	if (r == 0 && o->to != NULL)
		return pl_ipfix_out_check(o->to, diag) < 0 ? -EINVAL : 0;
	if (r == 0)
		pl_diag_set(diag, "to is missing: ipfix://HOST[:PORT]?pen=N");
	return -EINVAL;
}

static int open_out(struct pl_export **ret, const struct pl_config_output *o, uint64_t now_ns,
	struct pl_diag *diag)
{
	return pl_ipfix_out_open(ret, o->to, now_ns, diag);
}

static uint64_t memory(const struct pl_config_output *o)
{
	(void)o;
	return pl_ipfix_out_memory();
}

const struct pl_output_kind pl_output_kind_ipfix = {
	.paths = PL_TAKES,
	.events = PL_CANNOT,
	.values = PL_CANNOT,
	.series = PL_CANNOT,
	.to = true,
	.check = check,
	.open = open_out,
	.memory = memory,
};
