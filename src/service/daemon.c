/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a pipeline with its web pages. */
#include "service/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "marks/marks.h"
#include "pipeline/metrics.h"
#include "runtime/runtime.h"
#include "service/standing_reports.h"

/* ---- pages ---- */

static bool put_conditions(void *pipeline, struct pl_json *json)
{
	struct pl_readiness parts;

	pl_runtime_readiness(pipeline, &parts);
	return pl_readiness_list(&parts, json);
}

static bool write_ready_alone(void *pipeline, struct pl_buf *json)
{
	return pl_pipeline_ready_now(pipeline, json);
}

static bool write_ready(void *pipeline, struct pl_buf *json)
{
	struct pl_readiness parts;
	struct pl_buf own;
	struct pl_json object;
	bool ready;

	pl_runtime_readiness(pipeline, &parts);
	if (json == NULL)
		return pl_pipeline_ready_now(pipeline, NULL) &&
		       pl_readiness_members(&parts, 1, NULL);
	pl_buf_init(&own);
	pl_json_init(&object, json);
	pl_json_object(&object);
	ready = pl_pipeline_ready_now(pipeline, &own);
	if (!own.failed) {
		pl_json_key(&object, "collector");
		pl_json_raw(&object, own.data, own.len);
	}
	pl_buf_done(&own);
	ready &= pl_readiness_members(&parts, 1, &object);
	pl_json_key(&object, "ready");
	pl_json_bool(&object, ready);
	pl_json_object_end(&object);
	return ready;
}

static const char links[] =
	"<li><a href=\"/api/v1/status\">/api/v1/status</a>: how things stand; <a "
	"href=\"/api/v1/\">/api/v1/</a> lists the tables</li>\n";

/* ---- life ---- */

static const char *listen_of(const struct pl_config *config)
{
	return config->web.listen != NULL ? config->web.listen : "off";
}

static bool has_listener(const struct pl_config *config)
{
	return strcmp(listen_of(config), "off") != 0;
}

static bool has_web(const struct pl_config *config)
{
	return has_listener(config) || config->web.socket != NULL;
}

static void http_options(const struct pl_config *config, struct pl_http_options *ret)
{
	*ret = (struct pl_http_options){
		.listen = has_listener(config) ? config->web.listen : NULL,
		.names = config->web.names.items,
		.n_names = config->web.names.n,
		.max_connections = (unsigned int)config->web.max_connections,
		.max_per_address = (unsigned int)config->web.max_per_address,
		.socket = config->web.socket,
	};
}

int pl_daemon_security(
	const struct pl_config *config, struct pl_webconf **ret, struct pl_diag *diag)
{
	*ret = NULL;
	if (config->web.config_file == NULL || !has_listener(config))
		return 0;
	return pl_webconf_load(ret, config->web.config_file, diag);
}

static int open_web(
	struct pl_daemon *d, const struct pl_config *config, bool alone, struct pl_diag *diag)
{
	struct pl_http_route routes[32];
	struct pl_http_options options;
	int r;

	d->pages.metrics = pl_metrics_write;
	d->pages.ready = alone ? write_ready_alone : write_ready;
	d->pages.links = links;
	d->pages.arg = d->pipeline;
	pl_pages_routes(&d->pages, routes);
	pl_daemon_api_routes(&d->api, routes, PL_PAGES_ROUTES, sizeof(routes) / sizeof(routes[0]));
	http_options(config, &options);
	r = pl_daemon_security(config, &options.security, diag);
	if (r < 0)
		return r;
	d->listen = strdup(listen_of(config));
	if (d->listen == NULL) {
		pl_webconf_free(options.security);
		return -ENOMEM;
	}
	r = pl_http_open(&d->http, &options, routes, diag);
	if (r == 0) {
		atomic_store(&d->pages.http, d->http);
		pl_daemon_api_serve(&d->api, d->http);
	}
	return r;
}

int pl_daemon_new(struct pl_daemon *ret, struct pl_config *config, const struct pl_rights *rights,
	struct pl_diag *diag)
{
	*ret = (struct pl_daemon){ .pipeline = NULL };
	return pl_pipeline_new(&ret->pipeline, config, rights, diag);
}

int pl_daemon_open(struct pl_daemon *d, const struct pl_daemon_hooks *hooks, struct pl_diag *diag)
{
	const struct pl_config *config = pl_pipeline_config(d->pipeline);
	int r = 0;

	pl_pipeline_add_families(d->pipeline, pl_runtime_families);
	if (has_web(config))
		r = pl_daemon_api_init(&d->api, d->pipeline, diag);
	d->api.marks = hooks->marks;
	d->api.taps = hooks->taps;
	if (hooks->taps != NULL)
		hooks->taps->watch = d->api.live;
	d->api.parts = (struct pl_api_parts){ put_conditions, pl_runtime_accounts, d->pipeline };
	if (r == 0 && hooks->ready != NULL)
		r = hooks->ready(hooks->arg, d->pipeline, diag);
	/* The pages come last: a client that reaches them may rely on the pipeline running. */
	if (r == 0)
		r = pl_pipeline_start(d->pipeline, diag);
	if (r == 0 && has_web(config))
		r = open_web(d, config, hooks->alone, diag);
	return r;
}

bool pl_daemon_listens_at(const struct pl_daemon *d, const struct pl_config *config)
{
	return d->http != NULL && strcmp(d->listen, listen_of(config)) == 0;
}

uint64_t pl_daemon_stop(struct pl_daemon *d, uint64_t limit_ns)
{
	uint64_t left = pl_pipeline_stop(d->pipeline, limit_ns);

	pl_daemon_api_serve(&d->api, NULL);
	pl_http_close(d->http);
	d->http = NULL;
	return left;
}

void pl_daemon_done(struct pl_daemon *d)
{
	if (d->pipeline != NULL)
		pl_daemon_stop(d, 0);
	if (d->api.taps != NULL)
		d->api.taps->watch = NULL;
	pl_pipeline_free(d->pipeline);
	d->pipeline = NULL;
	free(d->listen);
	d->listen = NULL;
}

uint64_t pl_daemon_memory(const struct pl_config *config)
{
	struct pl_http_options options;

	http_options(config, &options);
	return pl_pipeline_memory(config) + pl_standing_reports_memory(config) +
	       pl_marks_memory(config) +
	       (has_web(config) ? pl_http_memory(&options) + pl_daemon_api_memory(config) : 0);
}

static void account_outputs(const struct pl_output_stats *o, struct pl_buf *out)
{
	uint64_t dropped = 0;

	if (o->offered + o->points + o->recovered == 0)
		return;
	for (unsigned int i = 0; i < PL_EXPORT_DROP_MAX; i++)
		dropped += o->dropped[i];
	pl_buf_printf(out, "; outputs: offered %" PRIu64, o->offered);
	if (o->points > 0)
		pl_buf_printf(out, " + series points %" PRIu64, o->points);
	if (o->recovered > 0)
		pl_buf_printf(out, " + recovered %" PRIu64, o->recovered);
	pl_buf_printf(out,
		" = delivered %" PRIu64 " + filtered %" PRIu64 " + dropped %" PRIu64
		" + undelivered %" PRIu64,
		o->delivered, o->filtered, dropped, o->undelivered);
	if (o->spooled > 0)
		pl_buf_printf(out, " + spooled %" PRIu64, o->spooled);
}

void pl_daemon_account(const struct pl_pipeline_stats *s, struct pl_buf *out)
{
	uint64_t ok = s->totals.verdicts[PL_V_OK];

	pl_buf_printf(out,
		"received %" PRIu64 " = decoded %" PRIu64 " + not decoded %" PRIu64
		"; kernel drops %" PRIu64 "; reports %" PRIu64 ", hops %" PRIu64
		", missing %" PRIu64,
		s->ports.packets + s->totals.settled, ok, s->totals.packets - ok,
		s->ports.kernel_drops, s->totals.stored, s->totals.hops, s->totals.lost);
	account_outputs(&s->outputs, out);
}
