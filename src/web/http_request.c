/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers requests. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <zlib.h>

#include "base/json.h"
#include "web/http_internal.h"

enum {
	GZIP_MIN_BYTES = 1400, /* smaller bodies fit in one segment: compression saves nothing */
};

static const unsigned int code_numbers[PL_HTTP_CODE_MAX] = { 200, 400, 401, 403, 404, 405, 413, 414,
	429, 431, 500, 503 };

unsigned int pl_http_code_number(enum pl_http_code code)
{
	return code_numbers[code];
}

static void count_answer(struct pl_http *h, unsigned int status)
{
	for (size_t i = 0; i < PL_HTTP_CODE_MAX; i++) {
		if (code_numbers[i] == status) {
			pl_count(&h->counters.answers[i], 1);
			return;
		}
	}
	assert(!"a status that is not in the table");
}

static const char *status_title(unsigned int status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 401:
		return "Unauthorized";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 413:
		return "Content Too Large";
	case 429:
		return "Too Many Requests";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	default:
		return "Error";
	}
}

void pl_http_problem(
	struct pl_http_reply *reply, unsigned int status, const char *code, const char *detail)
{
	struct pl_json json;

	pl_buf_reset(&reply->body);
	pl_json_init(&json, &reply->body);
	pl_json_object(&json);
	pl_json_text(&json, "type", "about:blank");
	pl_json_text(&json, "title", status_title(status));
	pl_json_number(&json, "status", status);
	pl_json_text(&json, "code", code);
	pl_json_text(&json, "detail", detail);
	pl_json_object_end(&json);
	pl_buf_chr(&reply->body, '\n');
	reply->status = status;
	reply->content_type = "application/problem+json";
}

/* ---- answers ---- */

/* Uses level 1: text shrinks to a tenth already. */
bool pl_http_pack(struct pl_buf *body)
{
	z_stream z = { 0 };
	size_t cap;
	char *out;
	int r;

	/* 16 + 15: gzip framing. */
	if (body->failed || body->len < GZIP_MIN_BYTES ||
		deflateInit2(&z, 1, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	cap = deflateBound(&z, body->len);
	out = malloc(cap);
	if (out == NULL) {
		deflateEnd(&z);
		return false;
	}
	z.next_in = (Bytef *)body->data;
	z.avail_in = (uInt)body->len;
	z.next_out = (Bytef *)out;
	z.avail_out = (uInt)cap;
	r = deflate(&z, Z_FINISH);
	deflateEnd(&z);
	if (r != Z_STREAM_END) {
		free(out);
		return false;
	}
	pl_buf_done(body);
	body->data = out;
	body->len = z.total_out;
	body->cap = cap;
	return true;
}

static bool is_configured(const struct pl_http_listener *l, const char *name)
{
	for (size_t i = 0; l->security != NULL && i < l->security->n_headers; i++) {
		if (strcasecmp(l->security->headers[i].name, name) == 0)
			return true;
	}
	return false;
}

static void add_headers(const struct pl_http_listener *l, struct MHD_Response *response,
	unsigned int status, const char *content_type)
{
	static const char *const headers[][2] = {
		{ MHD_HTTP_HEADER_CACHE_CONTROL, "no-store" },
		{ "Content-Security-Policy",
			"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Referrer-Policy", "no-referrer" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "DENY" },
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		if (!is_configured(l, headers[i][0]))
			MHD_add_response_header(response, headers[i][0], headers[i][1]);
	}
	for (size_t i = 0; l->security != NULL && i < l->security->n_headers; i++)
		MHD_add_response_header(
			response, l->security->headers[i].name, l->security->headers[i].value);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE || status == MHD_HTTP_TOO_MANY_REQUESTS)
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
}

/* Queues the response, which may be NULL, and releases it. */
static enum MHD_Result send_response(struct pl_http_listener *l, struct MHD_Connection *c,
	unsigned int status, const char *content_type, struct MHD_Response *response)
{
	enum MHD_Result r;

	if (response == NULL)
		return MHD_NO;
	add_headers(l, response, status, content_type);
	r = MHD_queue_response(c, status, response);
	MHD_destroy_response(response);
	count_answer(l->http, status);
	pl_http_set_phase(c, PL_HTTP_ANSWER, PL_HTTP_ANSWER_LIMIT_NS);
	return r;
}

/* Sends a refusal by the server itself: text, or a problem document for paths of the API. */
static enum MHD_Result deny(struct pl_http_listener *l, struct MHD_Connection *c,
	const struct pl_http_context *req, const struct pl_http_refusal *no)
{
	struct pl_http_reply reply = { .status = no->status };
	struct MHD_Response *response;

	pl_buf_init(&reply.body);
	if (strncmp(req->target.path, "/api/", 5) == 0) {
		pl_http_problem(&reply, no->status, no->code, no->text);
	} else {
		pl_buf_printf(&reply.body, "%s\n", no->text);
		reply.content_type = "text/plain; charset=utf-8";
	}
	response = reply.body.failed ? NULL
				     : MHD_create_response_from_buffer(reply.body.len,
					       reply.body.data, MHD_RESPMEM_MUST_COPY);
	pl_buf_done(&reply.body);
	if (response != NULL && no->challenge != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, no->challenge);
	return send_response(l, c, reply.status, reply.content_type, response);
}

static enum MHD_Result refuse(struct pl_http_listener *l, struct MHD_Connection *c,
	const struct pl_http_context *req, unsigned int status, const char *code, const char *text)
{
	const struct pl_http_refusal no = { .status = status, .code = code, .text = text };

	return deny(l, c, req, &no);
}

static enum MHD_Result serve_body(
	struct pl_http_listener *l, struct MHD_Connection *c, struct pl_http_body *b)
{
	struct MHD_Response *response = pl_http_body_begin(l->http, c, b);

	if (response != NULL && b->gzip)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	return send_response(l, c, b->status, b->content_type, response);
}

/* Serves on this thread, now. */
static enum MHD_Result serve_quick(struct pl_http_listener *l, struct MHD_Connection *c,
	const struct pl_http_route *route, struct pl_http_context *req)
{
	struct pl_http_request request = {
		.path = req->target.path,
		.query = req->target.query,
		.accept = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT),
		.client = pl_http_client_address(c),
	};
	struct pl_http_reply reply = { .status = 200, .content_type = "text/plain; charset=utf-8" };

	pl_buf_init(&reply.body);
	reply.body.limit = l->http->max_body_bytes;
	route->handler(route->arg, &request, &reply);
	if (reply.stream_ops != NULL) {
		pl_buf_done(&reply.body);
		return send_response(
			l, c, reply.status, reply.content_type, pl_http_stream_begin(l, c, &reply));
	}
	if (!reply.body.failed)
		req->body = pl_http_body_new(l->http, &reply, false);
	pl_buf_done(&reply.body);
	return req->body != NULL
		       ? serve_body(l, c, req->body)
		       : refuse(l, c, req, 503, "no_memory", "There is no memory for the answer.");
}

static enum MHD_Result serve(struct pl_http_listener *l, struct MHD_Connection *c,
	const struct pl_http_route *route, struct pl_http_context *req)
{
	struct pl_http_connection *k = pl_http_connection_of(c);

	if (k != NULL && route->effort != PL_HTTP_ALWAYS && !pl_http_has_place(k))
		return refuse(l, c, req, 503, "busy", "There are too many connections.");
	if (route->effort != PL_HTTP_PAGE)
		return serve_quick(l, c, route, req);
	if (req->body != NULL)
		return serve_body(l, c, req->body);
	if (req->failed || pl_http_page_ask(l->http, c, req, route) < 0)
		return refuse(l, c, req, 503, "no_memory", "There is no memory for the answer.");
	return MHD_YES;
}

/* Counts over a head. */
struct head {
	size_t fields, bytes; /* bytes: with one blank behind each colon */
	unsigned int hosts, lengths;
	bool blank_name; /* an empty name, or one with a blank: "Host :" */
};

static enum MHD_Result add_field(
	void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct head *h = arg;

	(void)kind;
	h->fields++;
	h->bytes += strlen(key) + (value != NULL ? strlen(value) : 0) + 4;
	h->hosts += strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0;
	h->lengths += strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
	h->blank_name = h->blank_name || key[0] == '\0' || strpbrk(key, " \t") != NULL;
	return MHD_YES;
}

/*
 * Finds what two programs in a row may read differently in one head (RFC 9112: 2.2, 3.2, 5.1, 5.2,
 * 6.3). The library silently joins folded lines, takes a bare LF for an end and stops at a NUL; but
 * it reports the head's size, and no client sends more or fewer bytes than its fields account for.
 */
static const char *ambiguity(
	struct MHD_Connection *c, const struct pl_http_context *req, const struct head *h)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	size_t most = h->bytes + req->target_bytes;

	if (h->hosts > 1)
		return "The request has more than one Host.";
	if (h->lengths > 1)
		return "The request has more than one Content-Length.";
	if (h->blank_name)
		return "A header's name has a blank in it, or is empty.";
	if (info != NULL && info->header_size > 0 &&
		(info->header_size > most || info->header_size < most - h->fields))
		return "The request head is malformed: a NUL, a folded line, a line that does not end in CR LF, or too many blanks.";
	return NULL;
}

/* Takes the raw target, before the library decodes it: it becomes the request's context. */
void *pl_http_on_target(void *arg, const char *uri, struct MHD_Connection *c)
{
	struct pl_http_context *req = calloc(1, sizeof(*req));

	const struct pl_http_connection *k = pl_http_connection_of(c);

	(void)arg;
	/* The time of the first request runs from the begin of the connection. */
	if (k != NULL && k->phase != PL_HTTP_HEAD)
		pl_http_set_phase(c, PL_HTTP_HEAD, PL_HTTP_HEAD_LIMIT_NS);
	/* pl_http_on_request refuses an empty path. */
	if (req != NULL) {
		req->target_bytes = strlen(uri);
		pl_http_target_parse(&req->target, uri);
	}
	return req;
}

void pl_http_on_done(
	void *arg, struct MHD_Connection *c, void **context, enum MHD_RequestTerminationCode why)
{
	struct pl_http *h = ((struct pl_http_listener *)arg)->http;
	struct pl_http_context *req = *context;

	(void)why;
	if (req != NULL) {
		pl_http_access_done(h, req);
		pl_http_page_forget(h, req);
	}
	free(req);
	*context = NULL;
	pl_http_set_phase(c, PL_HTTP_IDLE, PL_HTTP_IDLE_LIMIT_NS);
}

/* Returns a reason to refuse the request for any path; NULL: none. */
static const char *fault(const struct pl_http_listener *l, struct MHD_Connection *c,
	const char *method, size_t head_bytes, size_t upload_len, unsigned int *ret_status,
	const char **ret_code)
{
	const char *host;

	if (head_bytes > PL_HTTP_MAX_HEADER_BYTES) {
		*ret_status = 431;
		*ret_code = "head_too_large";
		return "The request's head is larger than 8 KiB.";
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		*ret_status = 405;
		*ret_code = "read_only";
		return "Only GET and HEAD are served.";
	}
	if (upload_len > 0 || MHD_lookup_connection_value(c, MHD_HEADER_KIND,
				      MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL) {
		*ret_status = 413;
		*ret_code = "no_body";
		return "A request must not have a body.";
	}
	host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	/* Only HTTP/1.0, which no browser uses, may lack a Host here; and it is not checked on a
	 * Unix socket. */
	if (host != NULL && !l->local && !pl_http_host_allowed(host, &l->http->hosts)) {
		*ret_status = 403;
		*ret_code = "foreign_host";
		return "This server does not answer to that host name. Add it to the key web.names.";
	}
	return NULL;
}

enum MHD_Result pl_http_on_request(void *arg, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_len,
	void **context)
{
	struct pl_http_listener *l = arg;
	struct pl_http *h = l->http;
	struct pl_http_context *req = *context;
	struct head head = { .bytes = strlen(method) + strlen(version) + 6 };
	struct pl_http_refusal no = { .status = 401 };
	const char *why, *code;
	unsigned int status;

	(void)upload;
	if (req == NULL)
		return MHD_NO;
	MHD_get_connection_values(c, MHD_HEADER_KIND, add_field, &head);
	why = fault(l, c, method, head.bytes + strlen(url), *upload_len, &status, &code);
	if (why != NULL)
		return refuse(l, c, req, status, code, why);
	if (!req->begun) {
		why = ambiguity(c, req, &head);
		if (why != NULL)
			return refuse(l, c, req, 400, "bad_head", why);
	}
	/* An answer in the first of the library's two calls would also end the connection. */
	if (!req->begun) {
		req->begun = true;
		pl_http_set_phase(c, PL_HTTP_WORK, PL_HTTP_HEAD_LIMIT_NS);
		return MHD_YES;
	}
	switch (pl_http_access(l, c, req, &no)) {
	case PL_HTTP_ACCESS_YES:
		break;
	case PL_HTTP_ACCESS_WAIT:
		return MHD_YES;
	case PL_HTTP_ACCESS_NO:
		return deny(l, c, req, &no);
	}
	if (req->target.path[0] == '\0')
		return refuse(l, c, req, 400, "bad_target",
			"The request's target is not an absolute path, or too long.");
	for (size_t i = 0; i < h->n_routes; i++) {
		if (strcmp(req->target.path, h->routes[i].path) == 0)
			return serve(l, c, &h->routes[i], req);
	}
	return refuse(l, c, req, 404, "not_found", "There is no such page.");
}
