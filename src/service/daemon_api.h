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
	struct pl_daemon_stream *streams; /* the latest first; the server's thread */
	struct pl_marks *marks;           /* of /api/v1/segments; NULL: there are none */
	struct pl_taps *taps;             /* of /api/v1/tapped; NULL: there are none */
	struct pl_output *output;         /* through which `live` is fed */
	struct pl_api_parts parts;        /* of the process, for its status */
	_Atomic(struct pl_http *) http;
};

/* Adds the output that feeds streams and remembers events; before the pipeline's start. */
int pl_daemon_api_init(
	struct pl_daemon_api *ret, struct pl_pipeline *pipeline, struct pl_diag *diag);
/* Streams are served by it from now on; NULL: from now on there are none. */
void pl_daemon_api_serve(struct pl_daemon_api *api, struct pl_http *http);

/* Adds the routes behind the n there are, terminated; returns their number. `cap` has room for
 * all. */
size_t pl_daemon_api_routes(
	struct pl_daemon_api *api, struct pl_http_route *routes, size_t n, size_t cap);

/* What streams and remembered events may hold with this configuration. */
uint64_t pl_daemon_api_memory(const struct pl_config *config);
