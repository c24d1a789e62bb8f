/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs of type webhook, for alerts: keys and driver. */
#include "export/webhook.h"
#include "pipeline/kind.h"

static int check(const struct pl_config_output *o, struct pl_diag *diag)
{
	return pl_output_check_endpoint(o, o->form == PL_WEBHOOK_ALERTMANAGER,
		"an Alertmanager takes alerts at /api/v2/alerts", diag);
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
	return pl_output_sender_memory(o) + pl_webhook_memory();
}

const struct pl_output_kind pl_output_kind_webhook = {
	.paths = PL_CANNOT,
	.events = PL_TAKES,
	.values = PL_CANNOT,
	.series = PL_CANNOT,
	.check = check,
	.open = open_server,
	.memory = memory,
};
