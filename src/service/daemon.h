/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector with its web pages: what `run` and `demo` share. One thread controls it.
 */
#pragma once

#include "base/json.h"
#include "pipeline/pipeline.h"
#include "runtime/pages.h"
#include "runtime/readiness.h"
#include "service/daemon_api.h"
#include "web/http.h"

struct pl_daemon {
	struct pl_pipeline *pipeline;
	struct pl_http *http; /* NULL when web.listen is off and there is no web.socket */
	char *listen;         /* web.listen at the start; NULL as `http` */
	struct pl_daemon_api api;
	struct pl_pages_content pages;
};

struct pl_marks;
struct pl_taps;

/* Callbacks of pl_daemon_open; each may be NULL. */
struct pl_daemon_hooks {
	/* Called before the pipeline starts: the last chance to add an output. */
	int (*ready)(void *arg, struct pl_pipeline *pipeline, struct pl_diag *diag);
	void *arg;
	struct pl_marks *marks; /* as those of struct pl_daemon_api */
	struct pl_taps *taps;   /* likewise */
	bool alone; /* the collector is the only part: /readyz reports it without a name */
};

/* Opens the sources, which may take rights, as pl_pipeline_new. No thread is started. */
int pl_daemon_new(struct pl_daemon *ret, struct pl_config *config, const struct pl_rights *rights,
	struct pl_diag *diag);
/* Opens and starts everything else in the configuration. -EINVAL, or the errno of what failed to
 * open, with diag; after that the daemon can only be freed (pl_daemon_done). */
int pl_daemon_open(
	struct pl_daemon *daemon, const struct pl_daemon_hooks *hooks, struct pl_diag *diag);

/* As pl_webconf_load of web.config_file; *ret is NULL without that or without a listener. */
int pl_daemon_security(
	const struct pl_config *config, struct pl_webconf **ret, struct pl_diag *diag);

/* Returns true when the pages are open at the configured addresses. */
bool pl_daemon_listens_at(const struct pl_daemon *daemon, const struct pl_config *config);

/* Stops receiving, delivers entries for at most limit_ns while the pages say that it is stopping,
 * then closes the pages. Returns the number of entries left undelivered. */
uint64_t pl_daemon_stop(struct pl_daemon *daemon, uint64_t limit_ns);
void pl_daemon_done(struct pl_daemon *daemon);

/* Upper bound of the memory for this configuration, in bytes, web pages included. */
uint64_t pl_daemon_memory(const struct pl_config *config);

/* Appends "received 1000 = decoded 998 + not decoded 2; kernel drops 0; …": all packets and
 * records. */
void pl_daemon_account(const struct pl_pipeline_stats *stats, struct pl_buf *out);
