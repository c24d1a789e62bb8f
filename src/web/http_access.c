/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides whether a request may be served: client certificates once per connection, credentials
 * with every request. */
#include <string.h>

#include "base/clock.h"
#include "netio/sockaddr.h"
#include "web/http_internal.h"
#include "web/tls.h"

struct pl_addr pl_http_client_address(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	uint16_t port;

	if (info == NULL || info->client_addr == NULL)
		return (struct pl_addr){ { 0 } };
	return pl_sockaddr_get(info->client_addr, &port);
}

/* Returns NULL, or the error of the connection's certificate. */
static const char *bad_certificate(const struct pl_http_listener *l, struct MHD_Connection *c)
{
	struct pl_http_connection *k = pl_http_connection_of(c);
	const union MHD_ConnectionInfo *info;
	const char *why;

	if (k != NULL && k->cert_good)
		return NULL;
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (info == NULL || info->tls_session == NULL)
		return "This connection does not use TLS.";
	why = pl_tls_refuses(info->tls_session, l->security);
	if (why == NULL && k != NULL)
		k->cert_good = true;
	return why;
}

static void wait_for_check(struct pl_http *h, struct MHD_Connection *c, struct pl_http_context *req)
{
	req->connection = c;
	req->next = h->pending;
	req->link = &h->pending;
	if (req->next != NULL)
		req->next->link = &req->next;
	h->pending = req;
	/* The check itself is bounded; the answer's time begins after it. */
	pl_http_set_phase(c, PL_HTTP_WORK, UINT64_MAX);
	MHD_suspend_connection(c);
}

static void forget(struct pl_http_context *req)
{
	if (req->link == NULL)
		return;
	*req->link = req->next;
	if (req->next != NULL)
		req->next->link = req->link;
	req->link = NULL;
}

static enum pl_http_access refuse(
	struct pl_http_listener *l, enum pl_auth_result result, struct pl_http_refusal *no)
{
	if (result == PL_AUTH_LATER) {
		pl_count(&l->http->counters.auth_limited, 1);
		*no = (struct pl_http_refusal){ .status = 429,
			.code = "too_many_failures",
			.text = "Too many requests with wrong credentials; try again later." };
		return PL_HTTP_ACCESS_NO;
	}
	pl_count(&l->http->counters.auth_failed, 1);
	*no = (struct pl_http_refusal){ .status = 401,
		.code = result == PL_AUTH_NOTHING ? "credentials_needed" : "credentials_wrong",
		.text = result == PL_AUTH_NOTHING ? "Credentials are needed."
						  : "The credentials are wrong.",
		.challenge = l->security->n_users > 0
				     ? "Basic realm=\"pathline\", charset=\"UTF-8\""
				     : "Bearer realm=\"pathline\"" };
	return PL_HTTP_ACCESS_NO;
}

enum pl_http_access pl_http_access(struct pl_http_listener *l, struct MHD_Connection *c,
	struct pl_http_context *req, struct pl_http_refusal *no)
{
	const struct pl_webconf *s = l->security;
	const char *header, *why;
	struct pl_addr address;
	enum pl_auth_result r;

	if (l->local || s == NULL || req->may) {
		req->may = true;
		return PL_HTTP_ACCESS_YES;
	}
	why = s->tls ? bad_certificate(l, c) : NULL;
	if (why != NULL) {
		pl_count(&l->http->counters.cert_refused, 1);
		*no = (struct pl_http_refusal){
			.status = 403, .code = "client_certificate", .text = why
		};
		return PL_HTTP_ACCESS_NO;
	}
	if (s->n_users == 0 && s->n_tokens == 0) {
		req->may = true;
		return PL_HTTP_ACCESS_YES;
	}
	if (req->job != NULL) {
		r = pl_auth_finish(l->http->auth, req->job, pl_clock_mono_ns());
		req->job = NULL;
	} else {
		header = MHD_lookup_connection_value(
			c, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
		address = pl_http_client_address(c);
		r = pl_auth_begin(
			l->http->auth, s, header, &address, pl_clock_mono_ns(), &req->job);
	}
	if (r == PL_AUTH_PENDING) {
		wait_for_check(l->http, c, req);
		return PL_HTTP_ACCESS_WAIT;
	}
	req->may = r == PL_AUTH_GOOD;
	return req->may ? PL_HTTP_ACCESS_YES : refuse(l, r, no);
}

static void go_on(struct pl_http_context *req)
{
	forget(req);
	pl_http_set_phase(req->connection, PL_HTTP_WORK, PL_HTTP_ANSWER_LIMIT_NS);
	MHD_resume_connection(req->connection);
}

void pl_http_access_tick(struct pl_http *h)
{
	struct pl_http_context *next;

	for (struct pl_http_context *req = h->pending; req != NULL; req = next) {
		next = req->next;
		if (pl_auth_is_done(req->job))
			go_on(req);
	}
}

void pl_http_access_end(struct pl_http *h, const struct pl_http_listener *l)
{
	struct pl_http_context *next;

	for (struct pl_http_context *req = h->pending; req != NULL; req = next) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_DAEMON);

		next = req->next;
		if (l == NULL || info->daemon == l->daemon)
			go_on(req);
	}
}

void pl_http_access_done(struct pl_http *h, struct pl_http_context *req)
{
	forget(req);
	if (req->job != NULL)
		pl_auth_finish(h->auth, req->job, pl_clock_mono_ns());
	req->job = NULL;
}
