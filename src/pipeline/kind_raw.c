/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs of type raw: packets as they arrived, to a topic of Kafka. */
#include <errno.h>
#include <string.h>

#include "export/raw_out.h"
#include "pipeline/kind.h"

static int check(const struct pl_config_output *o, struct pl_diag *diag)
{
	const struct pl_output_stray strays[] = { { o->path, "path" }, { o->url, "url" },
		{ o->where, "where" }, { o->database, "database" }, { o->bucket, "bucket" },
		{ o->token_file, "token_file" }, { o->user, "user" },
		{ o->dead_letter_path, "dead_letter.path" }, { o->tls.ca, "tls.ca" },
		{ o->tls.cert, "tls.cert" } };

	if (pl_output_check_strays(strays, sizeof(strays) / sizeof(strays[0]), diag) < 0)
		return -EINVAL;
	if (o->to != NULL && strncmp(o->to, "kafka:", 6) == 0)
		return pl_raw_out_check(o->to, diag) < 0 ? -EINVAL : 0;
	return pl_diag_fail(diag, -EINVAL, "to is missing: kafka://HOST[:PORT]/TOPIC");
}

static int open_out(struct pl_export **ret, const struct pl_config_output *o, uint64_t now_ns,
	struct pl_diag *diag)
{
	const struct pl_raw_out_options options = {
		.uri = o->to, .spool_path = o->spool_path, .spool_bytes = o->spool_bytes
	};

	(void)now_ns;
	return pl_raw_out_open(ret, &options, diag);
}

static uint64_t memory(const struct pl_config_output *o)
{
	(void)o;
	return pl_raw_out_memory();
}

const struct pl_output_kind pl_output_kind_raw = {
	.paths = PL_CANNOT,
	.events = PL_CANNOT,
	.values = PL_CANNOT,
	.series = PL_CANNOT,
	.packets = true,
	.to = true,
	.check = check,
	.open = open_out,
	.memory = memory,
};
