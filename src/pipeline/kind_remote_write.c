/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "export/remote_write.h"
#include "pipeline/kind.h"

static int check(const struct pl_config_output *o, struct pl_diag *diag)
{
	const struct pl_output_stray strays[] = { { o->database, "database" },
		{ o->retention_policy, "retention_policy" }, { o->org, "org" },
		{ o->bucket, "bucket" } };
	const char *path;
	int r = pl_output_check_server(o, diag);

	if (r < 0)
		return r;
	r = pl_output_check_strays(strays, sizeof(strays) / sizeof(strays[0]), diag);
	if (r < 0)
		return r;
	path = strstr(o->url, "://");
	path = path != NULL ? strchr(path + 3, '/') : NULL;
	if (path == NULL || path[1] == '\0') {
		pl_diag_set(diag, "the url has no path; Prometheus and VictoriaMetrics take remote "
				  "write at /api/v1/write");
		return -EINVAL;
	}
	return 0;
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
	struct pl_sender_options sender;

	pl_output_sender_options(o, &sender);
	return pl_sender_memory(&sender) + pl_remote_memory((uint32_t)o->max_series);
}

const struct pl_output_kind pl_output_kind_remote_write = {
	.paths = PL_CANNOT,
	.events = PL_CANNOT,
	.series = PL_TAKES,
	.page = true,
	.check = check,
	.open = open_server,
	.memory = memory,
};
