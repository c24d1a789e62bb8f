/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs of type remote_write, for Prometheus remote write: keys and driver. */
#include <stdio.h>
#include <unistd.h>

#include "export/remote_write.h"
#include "pipeline/kind.h"

static int check(const struct pl_config_output *o, struct pl_diag *diag)
{
	return pl_output_check_endpoint(
		o, true, "Prometheus and VictoriaMetrics take remote write at /api/v1/write", diag);
}

static int open_server(struct pl_export **ret, const struct pl_config_output *o, uint64_t now_ns,
	struct pl_diag *diag)
{
	char host[128], instance[160];
	const char *usual[] = { "job=pathline", instance };
	struct pl_remote_options remote = {
		.url = o->url,
		.labels = o->labels.n > 0 ? (const char *const *)o->labels.items : usual,
		.n_labels = o->labels.n > 0 ? (uint32_t)o->labels.n : 2,
		.max_series = (uint32_t)o->max_series,
	};
	struct pl_sender_options sender;

	if (gethostname(host, sizeof(host)) < 0 || host[0] == '\0')
		snprintf(host, sizeof(host), "localhost");
	host[sizeof(host) - 1] = '\0';
	snprintf(instance, sizeof(instance), "instance=%s", host);
	pl_output_sender_options(o, &sender);
	return pl_remote_open(ret, &remote, &sender, now_ns, diag);
}

static uint64_t memory(const struct pl_config_output *o)
{
	return pl_output_sender_memory(o) + pl_remote_memory((uint32_t)o->max_series);
}

const struct pl_output_kind pl_output_kind_remote_write = {
	.paths = PL_CANNOT,
	.events = PL_CANNOT,
	.values = PL_CANNOT,
	.series = PL_TAKES,
	.page = true,
	.check = check,
	.open = open_server,
	.memory = memory,
};
