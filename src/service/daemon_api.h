/* SPDX-License-Identifier: BSD-2-Clause */
/* The pages under /api/v1/: from a request's parameters to pipeline/api.h and export/watch.h. */
#pragma once

#include "export/watch.h"
#include "pipeline/api.h"
#include "pipeline/pipeline.h"
#include "web/http.h"

struct pl_daemon_stream;
struct pl_marks;
struct pl_taps;

struct pl_daemon_api {
	struct pl_pipeline *pipeline;
	struct pl_watch *live;
	struct pl_daemon_stream *streams; /* newest first; only the server's thread uses it */
	struct pl_marks *marks;           /* for /api/v1/segments; NULL: there are none */
	struct pl_taps *taps;             /* for /api/v1/tapped; NULL: there are none */
	struct pl_output *output;         /* the output that feeds `live` */
	struct pl_api_parts parts;        /* the process's parts for its status page */
	_Atomic(struct pl_http *) http;
};

/* Adds the output that feeds streams and remembers events; before the pipeline's start. */
int pl_daemon_api_init(
	struct pl_daemon_api *ret, struct pl_pipeline *pipeline, struct pl_diag *diag);
/* Sets the server that serves streams from now on; NULL: none. */
void pl_daemon_api_serve(struct pl_daemon_api *api, struct pl_http *http);

/* Adds routes behind the first n, and a terminator. Returns the number of routes; `cap` must have
 * room for all. */
size_t pl_daemon_api_routes(
	struct pl_daemon_api *api, struct pl_http_route *routes, size_t n, size_t cap);

/* Upper bound of the memory for streams and remembered events, in bytes. */
uint64_t pl_daemon_api_memory(const struct pl_config *config);
