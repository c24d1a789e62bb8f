/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "export/webhook.h"
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
	if (o->form == PL_WEBHOOK_ALERTMANAGER && (path == NULL || path[1] == '\0')) {
		pl_diag_set(diag,
			"the url has no path; an Alertmanager takes alerts at /api/v2/alerts");
		return -EINVAL;
	}
	return 0;
}

static int open_server(struct pl_export **ret, const struct pl_config_output *o, uint64_t now_ns,
	struct pl_diag *diag)
{
	struct pl_webhook_options webhook = {
		.url = o->url,
		.form = o->form,
		.labels = (const char *const *)o->labels.items,
		.n_labels = (uint32_t)o->labels.n,
		.link = o->link,
		.repeat_ns = o->repeat_ns,
		.resolve_ns = o->resolve_ns,
	};
	struct pl_sender_options sender;

	pl_output_sender_options(o, &sender);
	return pl_webhook_open(ret, &webhook, &sender, now_ns, diag);
}

static uint64_t memory(const struct pl_config_output *o)
{
	struct pl_sender_options sender;

	pl_output_sender_options(o, &sender);
	return pl_sender_memory(&sender) + pl_webhook_memory();
}

const struct pl_output_kind pl_output_kind_webhook = {
	.paths = PL_CANNOT,
	.events = PL_TAKES,
	.series = PL_CANNOT,
	.check = check,
	.open = open_server,
	.memory = memory,
};
