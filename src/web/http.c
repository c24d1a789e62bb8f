/* SPDX-License-Identifier: BSD-2-Clause */
#include "web/http.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"

enum {
	MAX_CONNECTIONS = 128,
	MAX_PER_ADDRESS = 16,
	MAX_HEADER_BYTES = 8192,
	POOL_BYTES = 3 * 8192, /* per connection: the request's head, parsed, and the answer's */
	MAX_ROUTES = 32,
	MAX_NAMES = 34,
	GZIP_MIN_BYTES = 1400, /* below one segment compression saves nothing */
	TICK_MS = 100,         /* how long a stop or an expired deadline may go unseen */
};

#define MAX_BODY_BYTES  (UINT64_C(16) << 20)
#define BODIES_HELD     2 /* answers of full size that slow clients may keep us holding, together */
#define HEAD_LIMIT_NS   (UINT64_C(5) * 1000000000u)
#define ANSWER_LIMIT_NS (UINT64_C(30) * 1000000000u)
#define IDLE_LIMIT_NS   (UINT64_C(30) * 1000000000u)

struct connection {
	struct pl_http *http;
	struct connection *next, **link;
	uint64_t deadline_ns; /* monotonic; the connection is ended when it passes */
	int fd;
	bool expired;
};

/* One request; the library keeps it between its calls. */
struct request {
	struct pl_http_target target; /* path "" = refused */
	uint64_t held_bytes;
};

struct pl_http {
	struct MHD_Daemon *daemon;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	struct connection *connections;
	struct pl_http_route routes[MAX_ROUTES];
	size_t n_routes;
	struct pl_http_hosts hosts;
	char *names[MAX_NAMES];
	size_t n_names;
	uint64_t max_body_bytes;
	uint64_t held_bytes; /* answers not yet taken by their clients */
	char address[PL_ADDR_TEXT_MAX + 10];
	struct pl_http_counters counters;
};

static const unsigned int code_numbers[PL_HTTP_CODE_MAX] = { 200, 400, 403, 404, 405, 413, 414, 431,
	503 };

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

/* ---- connections and their deadlines; all on the server's thread ---- */

static void connection_note(void *arg, struct MHD_Connection *c, void **context,
	enum MHD_ConnectionNotificationCode what)
{
	struct pl_http *h = arg;
	struct connection *k = *context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

		pl_count(&h->counters.connections, 1);
		k = calloc(1, sizeof(*k));
		*context = k;
		/* Without a record the inactivity time-out of the library still applies. */
		if (k == NULL || info == NULL)
			return;
		k->http = h;
		k->fd = info->connect_fd;
		k->deadline_ns = pl_clock_mono_ns() + HEAD_LIMIT_NS;
		k->next = h->connections;
		k->link = &h->connections;
		if (k->next != NULL)
			k->next->link = &k->next;
		h->connections = k;
	} else if (k != NULL) {
		if (k->link != NULL) {
			*k->link = k->next;
			if (k->next != NULL)
				k->next->link = k->link;
		}
		free(k);
		*context = NULL;
	}
}

static void set_deadline(struct MHD_Connection *c, uint64_t limit_ns)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *k = info != NULL ? info->socket_context : NULL;

	if (k != NULL)
		k->deadline_ns = pl_clock_mono_ns() + limit_ns;
}

/* The library's own time-out counts from the last byte, so a byte a second would keep a connection for
 * ever. The descriptor is still the library's here: it closes it on this thread only. */
static void expire(struct pl_http *h)
{
	uint64_t now = pl_clock_mono_ns();

	for (struct connection *k = h->connections; k != NULL; k = k->next) {
		if (k->expired || now < k->deadline_ns)
			continue;
		k->expired = true;
		pl_count(&h->counters.expired, 1);
		shutdown(k->fd, SHUT_RDWR);
	}
}

/* ---- answers ---- */

/* Compresses body into a fresh block; false leaves everything as it was. */
static bool gzip(const struct pl_buf *body, char **ret_data, size_t *ret_len)
{
	z_stream z = { 0 };
	size_t cap;
	char *out;
	int r;

	/* Level 1: text shrinks to a tenth already, and the thread is soon free. 16 + 15: gzip framing. */
	if (deflateInit2(&z, 1, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
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
	*ret_len = z.total_out;
	deflateEnd(&z);
	if (r != Z_STREAM_END) {
		free(out);
		return false;
	}
	*ret_data = out;
	return true;
}

static enum MHD_Result answer(struct pl_http *h, struct MHD_Connection *c, unsigned int status,
	const char *content_type, const void *data, size_t len, enum MHD_ResponseMemoryMode mode,
	bool compressed)
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
	struct MHD_Response *response = MHD_create_response_from_buffer(len, (void *)data, mode);
	enum MHD_Result r;

	if (response == NULL) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free((void *)data);
		return MHD_NO;
	}
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
	if (compressed)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	r = MHD_queue_response(c, status, response);
	MHD_destroy_response(response);
	count_answer(h, status);
	set_deadline(c, ANSWER_LIMIT_NS);
	return r;
}

static enum MHD_Result answer_text(
	struct pl_http *h, struct MHD_Connection *c, unsigned int status, const char *text)
{
	return answer(h, c, status, "text/plain; charset=utf-8", text, strlen(text),
		MHD_RESPMEM_PERSISTENT, false);
}

static void hold(struct pl_http *h, struct request *req, uint64_t bytes)
{
	req->held_bytes += bytes;
	h->held_bytes += bytes;
}

static struct pl_addr client_address(const struct sockaddr *sa)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	if (sa->sa_family == AF_INET) {
		memcpy(&v4, sa, sizeof(v4));
		return pl_addr_v4(&v4.sin_addr);
	}
	if (sa->sa_family == AF_INET6) {
		memcpy(&v6, sa, sizeof(v6));
		return pl_addr_v6(&v6.sin6_addr);
	}
	return (struct pl_addr){ { 0 } };
}

static enum MHD_Result serve(struct pl_http *h, struct MHD_Connection *c,
	const struct pl_http_route *route, struct request *req)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct pl_http_request request = {
		.path = req->target.path,
		.query = req->target.query,
		.accept = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT),
	};
	struct pl_http_reply reply = { .status = 200, .content_type = "text/plain; charset=utf-8" };
	const char *codings =
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING);
	char *packed;
	size_t packed_len;

	if (h->held_bytes >= BODIES_HELD * h->max_body_bytes)
		return answer_text(h, c, 503, "Too many answers wait for slow clients.\n");
	if (info != NULL)
		request.client = client_address(info->client_addr);
	pl_buf_init(&reply.body);
	reply.body.limit = h->max_body_bytes;
	route->handler(route->arg, &request, &reply);
	if (reply.body.failed) {
		pl_buf_done(&reply.body);
		return answer_text(h, c, 503, "The answer is larger than the configured limit.\n");
	}
	if (reply.body.len == 0) {
		pl_buf_done(&reply.body);
		return answer(h, c, reply.status, reply.content_type, "", 0, MHD_RESPMEM_PERSISTENT,
			false);
	}
	if (reply.body.len >= GZIP_MIN_BYTES && pl_http_wants_gzip(codings) &&
		gzip(&reply.body, &packed, &packed_len)) {
		pl_buf_done(&reply.body);
		hold(h, req, packed_len);
		return answer(h, c, reply.status, reply.content_type, packed, packed_len,
			MHD_RESPMEM_MUST_FREE, true);
	}
	hold(h, req, reply.body.cap);
	/* The library frees the buffer's memory with free(), which is what pl_buf allocates by. */
	return answer(h, c, reply.status, reply.content_type, reply.body.data, reply.body.len,
		MHD_RESPMEM_MUST_FREE, false);
}

static enum MHD_Result add_size(
	void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
	size_t *sum = arg;

	(void)kind;
	*sum += strlen(key) + (value != NULL ? strlen(value) : 0) + 4;
	return MHD_YES;
}

/* The raw target, before the library decodes it: it becomes the request's context. */
static void *on_target(void *arg, const char *uri, struct MHD_Connection *c)
{
	struct request *req = calloc(1, sizeof(*req));

	(void)arg;
	(void)c;
	/* A path left empty is refused by on_request. */
	if (req != NULL)
		pl_http_target_parse(&req->target, uri);
	return req;
}

static void on_done(
	void *arg, struct MHD_Connection *c, void **context, enum MHD_RequestTerminationCode why)
{
	struct pl_http *h = arg;
	struct request *req = *context;

	(void)why;
	if (req != NULL)
		h->held_bytes -= req->held_bytes;
	free(req);
	*context = NULL;
	set_deadline(c, IDLE_LIMIT_NS);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_len,
	void **context)
{
	struct pl_http *h = arg;
	struct request *req = *context;
	const char *host;
	size_t size = strlen(url) + strlen(method) + strlen(version) + 4;

	(void)upload;
	if (req == NULL)
		return MHD_NO;
	MHD_get_connection_values(c, MHD_HEADER_KIND, add_size, &size);
	if (size > MAX_HEADER_BYTES)
		return answer_text(h, c, 431, "The request's head is larger than 8 KiB.\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_text(h, c, 405, "Only GET and HEAD are served.\n");
	if (*upload_len > 0 || MHD_lookup_connection_value(c, MHD_HEADER_KIND,
				       MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL)
		return answer_text(h, c, 413, "A request here has no body.\n");
	host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	/* Only HTTP/1.0 comes without a Host this far; no browser speaks it. */
	if (host != NULL && !pl_http_host_allowed(host, &h->hosts))
		return answer_text(h, c, 403,
			"This server does not answer to that name. Names are added by the key web.names.\n");
	if (req->target.path[0] == '\0')
		return answer_text(
			h, c, 400, "The request's target is not an absolute path, or too long.\n");
	for (size_t i = 0; i < h->n_routes; i++) {
		if (strcmp(req->target.path, h->routes[i].path) == 0)
			return serve(h, c, &h->routes[i], req);
	}
	return answer_text(h, c, 404, "There is nothing here.\n");
}

static void on_log(void *arg, const char *fmt, va_list ap)
{
	char text[256];
	int n = vsnprintf(text, sizeof(text), fmt, ap);

	(void)arg;
	if (n > 0 && n < (int)sizeof(text) && text[n - 1] == '\n')
		text[n - 1] = '\0';
	pl_debug("http", "%s", text);
}

static void *serve_loop(void *arg)
{
	struct pl_http *h = arg;

	/* Pairs with the store in pl_http_close; nothing else is ordered by it. */
	while (!atomic_load_explicit(&h->stop, memory_order_relaxed)) {
		MHD_run_wait(h->daemon, TICK_MS);
		expire(h);
	}
	return NULL;
}

/* ---- opening ---- */

static int bind_socket(struct pl_http *h, const char *listen_text, struct pl_diag *diag)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct pl_addr addr;
	bool is_v4;
	socklen_t len;
	char text[PL_ADDR_TEXT_MAX];
	uint16_t port;
	int fd, one = 1, zero = 0, r;

	if (pl_parse_endpoint(listen_text, &addr, &port) < 0) {
		pl_diag_set(diag, "\"%s\" is not an address and port to listen on", listen_text);
		return -EINVAL;
	}
	is_v4 = pl_addr_is_v4(&addr);
	v4.sin_port = v6.sin6_port = htons(port);
	memcpy(&v4.sin_addr, addr.b + 12, 4);
	memcpy(&v6.sin6_addr, addr.b, 16);
	fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* A kernel without IPv6: every address is every IPv4 address. */
	if (fd < 0 && !is_v4 && pl_addr_is_unspecified(&addr)) {
		is_v4 = true;
		v4.sin_addr.s_addr = htonl(INADDR_ANY);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	}
	if (fd < 0)
		goto fail;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!is_v4)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	len = is_v4 ? sizeof(v4) : sizeof(v6);
	if (bind(fd, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, len) < 0 ||
		listen(fd, 64) < 0)
		goto fail;
	if (getsockname(fd, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, &len) < 0)
		goto fail;
	port = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
	pl_format_addr(text, &addr);
	snprintf(h->address, sizeof(h->address), is_v4 ? "%s:%u" : "[%s]:%u",
		pl_addr_is_unspecified(&addr) && is_v4 ? "0.0.0.0" : text, port);
	h->hosts.listen = addr;
	return fd;
fail:
	r = -errno;
	pl_diag_set(diag, "cannot listen on %s: %s", listen_text, strerror(-r));
	if (fd >= 0)
		close(fd);
	return r;
}

static int copy_names(struct pl_http *h, const struct pl_http_options *options)
{
	char self[256] = "";

	if (gethostname(self, sizeof(self) - 1) == 0 && self[0] != '\0') {
		h->names[h->n_names] = strdup(self);
		if (h->names[h->n_names++] == NULL)
			return -ENOMEM;
	}
	for (size_t i = 0; i < options->n_names; i++) {
		if (h->n_names == MAX_NAMES)
			return -E2BIG;
		h->names[h->n_names] = strdup(options->names[i]);
		if (h->names[h->n_names++] == NULL)
			return -ENOMEM;
	}
	h->hosts.names = (const char *const *)h->names;
	h->hosts.n = h->n_names;
	return 0;
}

int pl_http_open(struct pl_http **ret, const struct pl_http_options *options,
	const struct pl_http_route *routes, struct pl_diag *diag)
{
	struct pl_http *h = calloc(1, sizeof(*h));
	sigset_t all, before;
	int fd = -1, r;

	if (h == NULL)
		return -ENOMEM;
	h->max_body_bytes = options->max_body_bytes > 0 ? options->max_body_bytes : MAX_BODY_BYTES;
	for (; routes->path != NULL; routes++) {
		assert(h->n_routes < MAX_ROUTES);
		h->routes[h->n_routes++] = *routes;
	}
	r = copy_names(h, options);
	if (r < 0) {
		pl_diag_set(diag, "too many host names, or no memory for them");
		goto fail;
	}
	r = fd = bind_socket(h, options->listen, diag);
	if (r < 0)
		goto fail;
	/* The option for the logger must come first: others may use it already. */
	h->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request,
		h, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT,
		options->max_connections > 0 ? options->max_connections
					     : (unsigned int)MAX_CONNECTIONS,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		options->max_per_address > 0 ? options->max_per_address
					     : (unsigned int)MAX_PER_ADDRESS,
		MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)POOL_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK,
		on_target, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_done, h,
		MHD_OPTION_NOTIFY_CONNECTION, connection_note, h, MHD_OPTION_END);
	if (h->daemon == NULL) {
		r = -ENOMEM;
		pl_diag_set(diag, "cannot start the HTTP server");
		goto fail;
	}
	/* Before there is a thread: handlers may look for the server where the caller keeps it. */
	*ret = h;
	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&h->thread, NULL, serve_loop, h);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0) {
		pl_diag_set(diag, "cannot start the HTTP server's thread: %s", strerror(-r));
		*ret = NULL;
		goto fail;
	}
	pthread_setname_np(h->thread, "pl-http");
	h->running = true;
	return 0;
fail:
	pl_http_close(h);
	return r;
}

void pl_http_close(struct pl_http *h)
{
	if (h == NULL)
		return;
	if (h->running) {
		atomic_store_explicit(&h->stop, true, memory_order_relaxed);
		pthread_join(h->thread, NULL);
	}
	if (h->daemon != NULL)
		MHD_stop_daemon(h->daemon);
	for (size_t i = 0; i < h->n_names; i++)
		free(h->names[i]);
	free(h);
}

const char *pl_http_address(const struct pl_http *http)
{
	return http->address;
}

const struct pl_http_counters *pl_http_counters(const struct pl_http *http)
{
	return &http->counters;
}

uint64_t pl_http_memory(const struct pl_http_options *options)
{
	uint64_t connections =
		options->max_connections > 0 ? options->max_connections : MAX_CONNECTIONS;
	uint64_t body = options->max_body_bytes > 0 ? options->max_body_bytes : MAX_BODY_BYTES;

	/* One answer more than the limit on held ones may be in the making, its buffer doubling. */
	return connections * (POOL_BYTES + sizeof(struct connection) + sizeof(struct request)) +
	       (BODIES_HELD + 2) * body;
}
