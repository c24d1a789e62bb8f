/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pages that every service has: /metrics, /healthz, /readyz (and /-/healthy, /-/ready), with
 * what hands their words in. A daemon with pages of its own adds these to its routes; others have a
 * server with nothing else.
 */
#pragma once

#include "export/exposition.h"
#include "web/http.h"

struct pl_pages_content {
	/* Families, from the server's thread for pages. Negative: there is no consistent page
	 * now. */
	int (*metrics)(void *arg, struct pl_exposition *page);
	/* Whether every promise holds; a JSON object that says so goes to `json` unless it is NULL.
	 * Any thread. */
	bool (*ready)(void *arg, struct pl_buf *json);
	const char *links; /* lines of HTML, more links of the page "/"; may be empty */
	void *arg;
	struct pl_http *_Atomic http; /* once there is one: its counters are on the page */
};

#define PL_PAGES_ROUTES 6

/* Adds PL_PAGES_ROUTES routes; the content stays until the server is closed. */
void pl_pages_routes(struct pl_pages_content *content, struct pl_http_route *routes);

/* Families of the server itself, without samples. */
void pl_pages_describe(struct pl_exposition *page);

struct pl_pages;

/* A server with these pages only, on `address`; without TLS and passwords. Says where. Negative
 * errno with diag. */
int pl_pages_serve(struct pl_pages **ret, const char *address,
	int (*metrics)(void *arg, struct pl_exposition *page),
	bool (*ready)(void *arg, struct pl_buf *json), void *arg, struct pl_diag *diag);
void pl_pages_close(struct pl_pages *pages); /* NULL is fine */
