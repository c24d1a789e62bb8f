/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks and reads the keys that several types of outputs have. */
#include "pipeline/kind.h"

#include <errno.h>
#include <string.h>

static int wrong(struct pl_diag *diag, const char *text)
{
	return pl_diag_fail(diag, -EINVAL, "%s", text);
}

int pl_output_check_strays(const struct pl_output_stray *strays, size_t n, struct pl_diag *diag)
{
	for (size_t i = 0; i < n; i++) {
		if (strays[i].value != NULL)
			return pl_diag_fail(
				diag, -EINVAL, "%s does not apply to this type", strays[i].key);
	}
	return 0;
}

/* Refuses keys of servers. */
static int check_no_server(const struct pl_config_output *o, struct pl_diag *diag)
{
	const struct pl_output_stray strays[] = {
		{ o->url, "url" },
		{ o->database, "database" },
		{ o->bucket, "bucket" },
		{ o->token_file, "token_file" },
		{ o->user, "user" },
		{ o->spool_path, "spool.path" },
		{ o->dead_letter_path, "dead_letter.path" },
		{ o->tls.ca, "tls.ca" },
		{ o->tls.cert, "tls.cert" },
	};

	return pl_output_check_strays(strays, sizeof(strays) / sizeof(strays[0]), diag);
}

int pl_output_check_path(
	const struct pl_config_output *o, const char *missing, struct pl_diag *diag)
{
	return o->path == NULL ? wrong(diag, missing) : check_no_server(o, diag);
}

int pl_output_check_to(const struct pl_config_output *o, struct pl_diag *diag)
{
	const struct pl_output_stray path = { o->path, "path" };
	const int r = pl_output_check_strays(&path, 1, diag);

	return r == 0 ? check_no_server(o, diag) : r;
}

int pl_output_check_server(const struct pl_config_output *o, struct pl_diag *diag)
{
	bool tls = o->url != NULL && strncmp(o->url, "https:", 6) == 0;

	if (o->path != NULL)
		return wrong(diag,
			"path does not apply to this type, which writes to a server: use url");
	if (o->url == NULL)
		return wrong(diag, "url is missing");
	if ((o->user != NULL) != (o->password_file != NULL))
		return wrong(diag, "user needs password_file, and password_file needs user");
	if (o->token_file != NULL && o->user != NULL)
		return wrong(diag, "both token_file and user are given; remove one");
	if ((o->tls.cert != NULL) != (o->tls.key != NULL))
		return wrong(diag, "tls.cert needs tls.key, and tls.key needs tls.cert");
	if (!tls && (o->tls.ca != NULL || o->tls.cert != NULL || o->tls.insecure))
		return wrong(diag, "tls keys are given, but the url is not https");
	if (o->tls.ca != NULL && o->tls.insecure)
		return wrong(diag, "tls.insecure and tls.ca exclude each other; remove one");
	if (o->memory_bytes < 4 * o->batch_bytes)
		return wrong(diag, "memory must be at least four times batch.size");
	if (o->spool_path != NULL && o->spool_bytes < 8 * o->batch_bytes)
		return wrong(diag, "spool.size must be at least eight times batch.size");
	return 0;
}

void pl_output_sender_options(const struct pl_config_output *o, struct pl_sender_options *ret)
{
	*ret = (struct pl_sender_options){
		.name = o->name,
		.url = o->url,
		.gzip = o->gzip,
		.user = o->user,
		.password_file = o->password_file,
		.token_file = o->token_file,
		.ca_file = o->tls.ca,
		.cert_file = o->tls.cert,
		.key_file = o->tls.key,
		.insecure = o->tls.insecure,
		.batch_entries = (uint32_t)o->batch_entries,
		.batch_bytes = o->batch_bytes,
		.batch_age_ns = o->batch_age_ns,
		.memory_bytes = o->memory_bytes,
		.timeout_ns = o->timeout_ns,
		.spool_path = o->spool_path,
		.spool_bytes = o->spool_bytes,
		.spool_drop_newest = o->spool_full == 1,
		.spool_within_ns = o->spool_within_ns,
		.dead_letter_path = o->dead_letter_path,
		.dead_letter_bytes = o->dead_letter_bytes,
	};
}

uint64_t pl_output_sender_memory(const struct pl_config_output *o)
{
	struct pl_sender_options sender;

	pl_output_sender_options(o, &sender);
	return pl_sender_memory(&sender);
}

int pl_output_check_endpoint(
	const struct pl_config_output *o, bool needs_path, const char *usual, struct pl_diag *diag)
{
	const struct pl_output_stray strays[] = { { o->database, "database" },
		{ o->retention_policy, "retention_policy" }, { o->org, "org" },
		{ o->bucket, "bucket" } };
	const char *path;
	int r = pl_output_check_server(o, diag);

	if (r == 0)
		r = pl_output_check_strays(strays, sizeof(strays) / sizeof(strays[0]), diag);
	if (r < 0)
		return r;
	path = strstr(o->url, "://");
	path = path != NULL ? strchr(path + 3, '/') : NULL;
	if (needs_path && (path == NULL || path[1] == '\0'))
		return pl_diag_fail(diag, -EINVAL, "the url has no path; %s", usual);
	return 0;
}
