/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers /metrics, /healthz and /readyz. */
#include "runtime/pages.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/account.h"
#include "runtime/say.h"

/* http NULL: families without samples. */
static void http_metrics(const struct pl_http *http, struct pl_exposition *page)
{
	const struct pl_http_counters *c = http != NULL ? pl_http_counters(http) : NULL;
	const struct pl_account a = { .page = page };

	pl_exposition_family(page, "pathline_http_answers", PL_METRIC_COUNTER, NULL,
		"Answers given by this server, by status.");
	for (unsigned int i = 0; c != NULL && i < PL_HTTP_CODE_MAX; i++) {
		char code[8];
		struct pl_label l[] = { { .name = "code", .form = PL_LABEL_TEXT, .text = code } };

		snprintf(code, sizeof(code), "%u", pl_http_code_number(i));
		pl_exposition_u64(page, l, 1, pl_counter_read(&c->answers[i]));
	}
	pl_account_stats(&a, &pl_http_stats_list, c);
}

void pl_pages_describe(struct pl_exposition *page)
{
	http_metrics(NULL, page);
}

static void page_metrics(
	void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	struct pl_pages_content *c = arg;
	enum pl_exposition_format format = pl_exposition_negotiate(request->accept);
	const struct pl_http *http;
	struct pl_exposition page;

	pl_exposition_init(&page, &reply->body, format);
	if (c->metrics(c->arg, &page) < 0) {
		pl_buf_reset(&reply->body);
		pl_buf_str(&reply->body, "The collector does not run: there is no page.\n");
		reply->status = 503;
		return;
	}
	http = atomic_load(&c->http);
	if (http != NULL)
		http_metrics(http, &page);
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
	const struct pl_pages_content *c = arg;
	char value[8];
	bool verbose = pl_http_query_get(request->query, "verbose", value, sizeof(value)) == 1;
	bool ready = c->ready(c->arg, verbose ? &reply->body : NULL);

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
	const struct pl_pages_content *c = arg;

	(void)request;
	reply->content_type = "text/html; charset=utf-8";
	pl_buf_printf(&reply->body,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
		"<title>pathline</title></head>\n<body>\n<h1>pathline " PL_VERSION "</h1>\n"
		"<p>Network telemetry from wire to memory to answer.</p>\n"
		"<ul>\n"
		"<li><a href=\"/metrics\">/metrics</a>: counters and aggregates for Prometheus</li>\n"
		"%s<li><a href=\"/healthz\">/healthz</a>: the process is alive</li>\n"
		"<li><a href=\"/readyz?verbose\">/readyz?verbose</a>: readiness, with every fault</li>\n"
		"</ul>\n"
		"</body>\n"
		"</html>\n",
		c->links);
}

void pl_pages_routes(struct pl_pages_content *c, struct pl_http_route *routes)
{
	const struct pl_http_route own[PL_PAGES_ROUTES] = {
		{ "/", page_root, c, PL_HTTP_QUICK },
		{ "/metrics", page_metrics, c, PL_HTTP_PAGE },
		{ "/healthz", page_health, c, PL_HTTP_ALWAYS },
		{ "/-/healthy", page_health, c, PL_HTTP_ALWAYS },
		{ "/readyz", page_ready, c, PL_HTTP_ALWAYS },
		{ "/-/ready", page_ready, c, PL_HTTP_ALWAYS },
	};

	memcpy(routes, own, sizeof(own));
}

/* ---- a server with nothing else ---- */

struct pl_pages {
	struct pl_pages_content content;
	struct pl_http *http;
};

int pl_pages_serve(struct pl_pages **ret, const char *address,
	int (*metrics)(void *arg, struct pl_exposition *page),
	bool (*ready)(void *arg, struct pl_buf *json), void *arg, struct pl_diag *diag)
{
	const struct pl_http_options options = { .listen = address };
	struct pl_http_route routes[PL_PAGES_ROUTES + 1] = { 0 };
	struct pl_pages *p = calloc(1, sizeof(*p));
	int r;

	if (p == NULL)
		return -ENOMEM;
	p->content.metrics = metrics;
	p->content.ready = ready;
	p->content.links = "";
	p->content.arg = arg;
	pl_pages_routes(&p->content, routes);
	r = pl_http_open(&p->http, &options, routes, diag);
	if (r < 0) {
		free(p);
		return r;
	}
	atomic_store(&p->content.http, p->http);
	pl_say("metrics on http://%s/metrics", pl_http_address(p->http));
	*ret = p;
	return 0;
}

void pl_pages_close(struct pl_pages *p)
{
	if (p == NULL)
		return;
	pl_http_close(p->http);
	free(p);
}
