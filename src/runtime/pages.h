/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pages of every service: /metrics, /healthz, /readyz (and /-/healthy, /-/ready), with
 * callbacks for their content. A daemon with pages of its own adds these to its routes; other
 * services have a server with these pages only.
 */
#pragma once

#include "export/exposition.h"
#include "web/http.h"

struct pl_pages_content {
	/* Writes families, on the server's thread for pages. Returns a negative value when no
	 * consistent page is possible now. */
	int (*metrics)(void *arg, struct pl_exposition *page);
	/* Returns true when the process is ready; writes a JSON object about it to `json` unless
	 * NULL. Any thread. */
	bool (*ready)(void *arg, struct pl_buf *json);
	const char *links; /* lines of HTML, further links of the page "/"; may be empty */
	void *arg;
	struct pl_http *_Atomic http; /* set once there is a server: its counters are on the page */
};

#define PL_PAGES_ROUTES 6

/* Adds PL_PAGES_ROUTES routes; the content must stay until the server is closed. */
void pl_pages_routes(struct pl_pages_content *content, struct pl_http_route *routes);

/* Families of the server itself, without samples. */
void pl_pages_describe(struct pl_exposition *page);

struct pl_pages;

/* Starts a server with these pages only, on `address`, without TLS and passwords, and tells its
 * address. Returns negative errno with diag. */
int pl_pages_serve(struct pl_pages **ret, const char *address,
	int (*metrics)(void *arg, struct pl_exposition *page),
	bool (*ready)(void *arg, struct pl_buf *json), void *arg, struct pl_diag *diag);
void pl_pages_close(struct pl_pages *pages); /* NULL is fine */
