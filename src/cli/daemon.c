/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/metrics.h"

/* ---- pages ---- */

static void http_metrics(const struct pl_http *http, struct pl_exposition *page)
{
	const struct pl_http_counters *c = pl_http_counters(http);

	pl_exposition_family(page, "pathline_http_answers", PL_METRIC_COUNTER, NULL,
		"Answers given by this server, by status.");
	for (unsigned int i = 0; i < PL_HTTP_CODE_MAX; i++) {
		char code[8];
		struct pl_label l[] = { { .name = "code", .form = PL_LABEL_TEXT, .text = code } };

		snprintf(code, sizeof(code), "%u", pl_http_code_number(i));
		pl_exposition_u64(page, l, 1, pl_counter_read(&c->answers[i]));
	}
	pl_exposition_family(page, "pathline_http_connections", PL_METRIC_COUNTER, NULL,
		"Connections accepted by this server.");
	pl_exposition_u64(page, NULL, 0, pl_counter_read(&c->connections));
	pl_exposition_family(page, "pathline_http_expired", PL_METRIC_COUNTER, NULL,
		"Connections this server ended because a deadline had passed.");
	pl_exposition_u64(page, NULL, 0, pl_counter_read(&c->expired));
	pl_exposition_family(page, "pathline_http_ended", PL_METRIC_COUNTER, NULL,
		"Connections this server ended for others: idle, or without a whole request, or not reading "
		"their answer.");
	pl_exposition_u64(page, NULL, 0, pl_counter_read(&c->ended));
	pl_exposition_family(page, "pathline_http_refused", PL_METRIC_COUNTER, NULL,
		"Connections this server did not take: too many of their address, or of all.");
	pl_exposition_u64(page, NULL, 0, pl_counter_read(&c->refused));
	pl_exposition_family(page, "pathline_http_streams", PL_METRIC_COUNTER, NULL,
		"Live streams begun by this server.");
	pl_exposition_u64(page, NULL, 0, pl_counter_read(&c->streams));
	pl_exposition_family(page, "pathline_http_auth_failures", PL_METRIC_COUNTER, NULL,
		"Requests with no or wrong credentials.");
	pl_exposition_u64(page, NULL, 0, pl_counter_read(&c->auth_failed));
	pl_exposition_family(page, "pathline_http_auth_limited", PL_METRIC_COUNTER, NULL,
		"Requests with credentials not looked at: too many failures of their address, or too many "
		"checks waiting.");
	pl_exposition_u64(page, NULL, 0, pl_counter_read(&c->auth_limited));
	pl_exposition_family(page, "pathline_http_client_certificates_refused", PL_METRIC_COUNTER,
		NULL, "Requests without the client certificate asked for.");
	pl_exposition_u64(page, NULL, 0, pl_counter_read(&c->cert_refused));
}

static void page_metrics(
	void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	struct pl_daemon *d = arg;
	enum pl_exposition_format format = pl_exposition_negotiate(request->accept);
	struct pl_exposition page;

	pl_exposition_init(&page, &reply->body, format);
	if (pl_metrics_write(d->pipeline, &page) < 0) {
		pl_buf_reset(&reply->body);
		pl_buf_str(
			&reply->body, "A worker does not answer; there is no consistent page.\n");
		reply->status = 503;
		return;
	}
	/* Whoever asks meanwhile is told what was said last. */
	pl_pipeline_ready(d->pipeline, NULL);
	http_metrics(d->http, &page);
	pl_metrics_process(&page);
	pl_exposition_end(&page);
	reply->content_type = pl_exposition_content_type(format);
}

static void page_health(
	void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	(void)arg;
	(void)request;
	pl_buf_str(&reply->body, "ok\n");
}

static void page_ready(
	void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	struct pl_daemon *d = arg;
	char value[8];
	bool verbose = pl_http_query_get(request->query, "verbose", value, sizeof(value)) == 1;
	bool ready = pl_pipeline_ready_now(d->pipeline, verbose ? &reply->body : NULL);

	reply->status = ready ? 200 : 503;
	if (verbose) {
		pl_buf_chr(&reply->body, '\n');
		reply->content_type = "application/json";
	} else {
		pl_buf_str(&reply->body, ready ? "ready\n" : "not ready: see /readyz?verbose\n");
	}
}

static void page_root(void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	(void)arg;
	(void)request;
	reply->content_type = "text/html; charset=utf-8";
	pl_buf_str(&reply->body,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
		"<title>pathline</title></head>\n<body>\n<h1>pathline " PL_VERSION "</h1>\n"
		"<p>Network telemetry from wire to memory to answer.</p>\n<ul>\n"
		"<li><a href=\"/metrics\">/metrics</a>: counters and aggregates for Prometheus</li>\n"
		"<li><a href=\"/api/v1/status\">/api/v1/status</a>: how things stand; <a "
		"href=\"/api/v1/\">/api/v1/</a> lists the tables</li>\n"
		"<li><a href=\"/healthz\">/healthz</a>: the process lives</li>\n"
		"<li><a href=\"/readyz?verbose\">/readyz?verbose</a>: whether every promise holds, and why "
		"not</li>\n"
		"</ul>\n</body>\n</html>\n");
}

/* ---- life ---- */

static bool has_listener(const struct pl_config *config)
{
	return config->web.listen != NULL && strcmp(config->web.listen, "off") != 0;
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

static int open_web(struct pl_daemon *d, const struct pl_config *config, struct pl_diag *diag)
{
	struct pl_http_route routes[32] = {
		{ "/", page_root, d, PL_HTTP_QUICK },
		{ "/metrics", page_metrics, d, PL_HTTP_PAGE },
		{ "/healthz", page_health, d, PL_HTTP_ALWAYS },
		{ "/-/healthy", page_health, d, PL_HTTP_ALWAYS },
		{ "/readyz", page_ready, d, PL_HTTP_ALWAYS },
		{ "/-/ready", page_ready, d, PL_HTTP_ALWAYS },
	};
	struct pl_http_options options;
	int r;

	pl_daemon_api_routes(&d->api, routes, 6, sizeof(routes) / sizeof(routes[0]));
	http_options(config, &options);
	r = pl_daemon_security(config, &options.security, diag);
	if (r < 0)
		return r;
	r = pl_http_open(&d->http, &options, routes, diag);
	if (r == 0)
		pl_daemon_api_serve(&d->api, d->http);
	return r;
}

int pl_daemon_open(struct pl_daemon *ret, struct pl_config *config,
	const struct pl_daemon_hooks *hooks, struct pl_diag *diag)
{
	int r;

	*ret = (struct pl_daemon){ 0 };
	r = pl_pipeline_new(&ret->pipeline, config, hooks->rights, diag);
	if (r < 0)
		return r;
	if (hooks->opened != NULL)
		r = hooks->opened(hooks->arg, pl_pipeline_config(ret->pipeline), diag);
	if (r == 0 && has_web(pl_pipeline_config(ret->pipeline)))
		r = pl_daemon_api_init(&ret->api, ret->pipeline, diag);
	if (r == 0 && hooks->ready != NULL)
		r = hooks->ready(hooks->arg, ret->pipeline, diag);
	/* Pages last: who can reach them may believe them. */
	if (r == 0)
		r = pl_pipeline_start(ret->pipeline, diag);
	if (r == 0 && has_web(pl_pipeline_config(ret->pipeline)))
		r = open_web(ret, pl_pipeline_config(ret->pipeline), diag);
	if (r < 0)
		pl_daemon_done(ret);
	return r;
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
	pl_pipeline_free(d->pipeline);
	d->pipeline = NULL;
}

uint64_t pl_daemon_memory(const struct pl_config *config)
{
	struct pl_http_options options;

	http_options(config, &options);
	return pl_pipeline_memory(config) +
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
		o->delivered, o->filtered, dropped, o->waiting + o->queued);
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
