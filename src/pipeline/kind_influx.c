/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs of type influx: keys and driver. */
#include <errno.h>

#include "export/influx.h"
#include "pipeline/kind.h"

static int check(const struct pl_config_output *o, struct pl_diag *diag)
{
	const struct pl_output_stray of_v2[] = { { o->org, "org" }, { o->bucket, "bucket" } };
	const struct pl_output_stray of_v1[] = { { o->database, "database" },
		{ o->retention_policy, "retention_policy" } };
	int r = pl_output_check_server(o, diag);

	if (r < 0)
		return r;
	if (o->api == 0 && o->database == NULL)
		return pl_diag_fail(diag, -EINVAL, "database is missing (api v1)");
	if (o->api == 1 && o->bucket == NULL)
		return pl_diag_fail(diag, -EINVAL, "bucket is missing (api v2)");
	r = pl_output_check_strays(o->api == 0 ? of_v2 : of_v1, 2, NULL);
	if (r < 0)
		pl_diag_set(diag, o->api == 0 ? "org and bucket need api: v2"
					      : "database and retention_policy need api: v1");
	return r;
}

static int open_server(struct pl_export **ret, const struct pl_config_output *o, uint64_t now_ns,
	struct pl_diag *diag)
{
	struct pl_influx_options influx = {
		.url = o->url,
		.v2 = o->api == 1,
		.database = o->database,
		.retention_policy = o->retention_policy,
		.org = o->org,
		.bucket = o->bucket,
		.max_keys = (uint32_t)o->max_keys,
	};
	struct pl_sender_options sender;

	pl_output_sender_options(o, &sender);
	return pl_influx_open(ret, &influx, &sender, now_ns, diag);
}

static uint64_t memory(const struct pl_config_output *o)
{
	return pl_output_sender_memory(o) + pl_influx_memory((uint32_t)o->max_keys);
}

const struct pl_output_kind pl_output_kind_influx = {
	.paths = PL_MAY,
	.events = PL_TAKES,
	.values = PL_TAKES,
	.series = PL_TAKES,
	.check = check,
	.open = open_server,
	.memory = memory,
};
