/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts and stops the server: sockets, the thread, connections and their deadlines. */
#include "web/http.h"
#include "base/stats.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/local_socket.h"
#include "base/log.h"
#include "base/thread.h"
#include "web/http_internal.h"

enum {
	MAX_CONNECTIONS = 128,
	MAX_PER_ADDRESS = 16,
	/* per connection: the head of the request, parsed, and of the answer */
	POOL_BYTES = 3 * 8192,
	TICK_MS = 100,     /* longest delay of a stop or an expired deadline */
	LISTENERS_MAX = 8, /* including quiet ones */
	BACKLOG = 1024,    /* a burst of connections waits a tick, not for a repeated SYN */
	/* Ended by us, not closed by the library yet: it accepts up to ten at once. */
	LEAVING_CONNECTIONS = 32,
};

#define MAX_BODY_BYTES (UINT64_C(16) << 20)
#define FAREWELL_NS    (UINT64_C(300) * 1000000u)
#define QUIET_NS       (UINT64_C(30) * 1000000000u)

static void on_log(void *arg, const char *fmt, va_list ap)
{
	char text[256];
	int n = vsnprintf(text, sizeof(text), fmt, ap);

	(void)arg;
	if (n > 0 && n < (int)sizeof(text) && text[n - 1] == '\n')
		text[n - 1] = '\0';
	pl_debug("http", "%s", text);
}

/* Waits for a socket, a wake or a tick. */
static void wait_for_work(const struct pl_http *h)
{
	struct pollfd fds[LISTENERS_MAX + 1] = { { .fd = h->wake_fd, .events = POLLIN } };
	unsigned int n = 1;
	int timeout = TICK_MS;
	uint64_t count;

	for (const struct pl_http_listener *l = h->listeners; l != NULL; l = l->next) {
		const union MHD_DaemonInfo *info =
			MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
		MHD_UNSIGNED_LONG_LONG ms;

		fds[n++] = (struct pollfd){ .fd = info->epoll_fd, .events = POLLIN };
		if (MHD_get_timeout(l->daemon, &ms) == MHD_YES && ms < (unsigned int)timeout)
			timeout = (int)ms;
	}
	if (poll(fds, n, timeout) > 0 && (fds[0].revents & POLLIN) != 0)
		(void)!read(h->wake_fd, &count, sizeof(count));
}

static void free_listener(struct pl_http_listener *l)
{
	if (l->daemon != NULL)
		MHD_stop_daemon(l->daemon);
	pl_webconf_free(l->security);
	free(l);
}

/* Stops replaced listeners whose last connection has ended, or whose time is over. */
static void stop_quiet(struct pl_http *h)
{
	struct pl_http_listener **link = &h->listeners, *l;

	while ((l = *link) != NULL) {
		const union MHD_DaemonInfo *info =
			MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
		bool over = l->quiet_by_ns != 0 && pl_clock_mono_ns() >= l->quiet_by_ns;

		if (l->quiet_by_ns == 0 || (info->num_connections > 0 && !over)) {
			link = &l->next;
			continue;
		}
		/* No request may be suspended when it stops. */
		pl_http_streams_end(h, l);
		pl_http_access_end(h, l);
		pl_http_pages_end(h, l);
		*link = l->next;
		free_listener(l);
	}
}

static void use_security(struct pl_http *h);

static void run_once(struct pl_http *h)
{
	wait_for_work(h);
	use_security(h);
	pl_http_streams_tick(h);
	pl_http_access_tick(h);
	pl_http_pages_tick(h);
	for (struct pl_http_listener *l = h->listeners; l != NULL; l = l->next)
		MHD_run(l->daemon);
	pl_http_expire(h);
	stop_quiet(h);
}

static void *serve_loop(void *arg)
{
	struct pl_http *h = arg;
	uint64_t end;

	/* Pairs with the store in pl_http_close; nothing else is ordered by it. */
	while (!atomic_load_explicit(&h->stop, memory_order_relaxed))
		run_once(h);
	/* Ends a stream properly, so that its client can distinguish the end from a lost
	 * connection. */
	end = pl_clock_mono_ns() + FAREWELL_NS;
	while (h->streams != NULL && pl_clock_mono_ns() < end) {
		pl_http_streams_end(h, NULL);
		run_once(h);
	}
	/* No request may be suspended when the library stops. */
	pl_http_streams_end(h, NULL);
	pl_http_access_end(h, NULL);
	pl_http_pages_end(h, NULL);
	return NULL;
}

void pl_http_wake(struct pl_http *h)
{
	uint64_t one = 1;

	(void)!write(h->wake_fd, &one, sizeof(one));
}

/* ---- opening ---- */

/* Binds a Unix socket for owner and group. */
static int bind_local(struct pl_http *h, const char *path, struct pl_diag *diag)
{
	int fd;

	h->socket_path = strdup(path);
	if (h->socket_path == NULL)
		return -ENOMEM;
	fd = pl_local_listen(path, 0660, BACKLOG, diag);
	if (fd >= 0)
		return fd;
	/* The file there is not ours. */
	free(h->socket_path);
	h->socket_path = NULL;
	return fd;
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
		if (h->n_names == PL_HTTP_MAX_NAMES)
			return -E2BIG;
		h->names[h->n_names] = strdup(options->names[i]);
		if (h->names[h->n_names++] == NULL)
			return -ENOMEM;
	}
	h->hosts.names = (const char *const *)h->names;
	h->hosts.n = h->n_names;
	return 0;
}

/* Adds a listener. Takes socket and security over, also on failure. */
static int add_listener(struct pl_http *h, int fd, struct pl_webconf *security, bool local)
{
	struct pl_http_listener *l = calloc(1, sizeof(*l));
	unsigned int flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME;
	struct MHD_OptionItem tls[5] = { { MHD_OPTION_END, 0, NULL } };
	unsigned int n = 0;

	if (l == NULL) {
		close(fd);
		pl_webconf_free(security);
		return -ENOMEM;
	}
	l->http = h;
	l->local = local;
	l->security = security;
	if (security != NULL && security->tls) {
		flags |= MHD_USE_TLS;
		tls[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0, security->cert };
		tls[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0, security->key };
		tls[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0,
			security->priorities };
		if (security->client_ca != NULL)
			tls[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_TRUST, 0,
				security->client_ca };
		tls[n] = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
	}
	/* The option for the logger must come first: later ones may use it. */
	l->daemon = MHD_start_daemon(flags, 0, NULL, NULL, pl_http_on_request, l,
		MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT,
		h->max_connections + PL_HTTP_EXTRA_CONNECTIONS + LEAVING_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)POOL_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK,
		pl_http_on_target, l, MHD_OPTION_NOTIFY_COMPLETED, pl_http_on_done, l,
		MHD_OPTION_NOTIFY_CONNECTION, pl_http_on_connection, l, MHD_OPTION_ARRAY, tls,
		MHD_OPTION_END);
	if (l->daemon == NULL) {
		close(fd);
		free_listener(l);
		return -EIO;
	}
	l->next = h->listeners;
	h->listeners = l;
	return 0;
}

static int open_listeners(
	struct pl_http *h, const struct pl_http_options *options, struct pl_diag *diag)
{
	struct pl_webconf *security = options->security;
	int r = 0;

	if (options->listen != NULL) {
		r = pl_tcp_listen(options->listen, BACKLOG, &h->hosts.listen, h->address, diag);
		h->secure = security != NULL && security->tls;
		if (r >= 0)
			r = add_listener(h, r, security, false);
		else
			pl_webconf_free(security);
	} else {
		pl_webconf_free(security);
	}
	if (r == 0 && options->socket != NULL) {
		r = bind_local(h, options->socket, diag);
		if (r >= 0)
			r = add_listener(h, r, NULL, true);
	}
	if (r == -EIO)
		pl_diag_set(diag, "cannot start the HTTP server");
	return r;
}

/* ---- another security, while running ---- */

/* Runs on the server's thread. The new listener accepts connections before the old one stops
 * accepting, so none is refused. */
static int change_security(struct pl_http *h, struct pl_webconf *security)
{
	struct pl_http_listener *old = h->listeners;
	unsigned int n = 0;
	int fd, r;

	for (const struct pl_http_listener *l = h->listeners; l != NULL; l = l->next)
		n++;
	while (old != NULL && (old->local || old->quiet_by_ns != 0))
		old = old->next;
	if (old == NULL || n == LISTENERS_MAX) {
		pl_webconf_free(security);
		return old == NULL ? 0 : -EBUSY;
	}
	fd = MHD_get_daemon_info(old->daemon, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		pl_webconf_free(security);
		return -errno;
	}
	r = add_listener(h, fd, security, false);
	if (r < 0)
		return r;
	fd = MHD_quiesce_daemon(old->daemon);
	if (fd >= 0)
		close(fd);
	old->quiet_by_ns = pl_clock_mono_ns() + QUIET_NS;
	pl_auth_forget(h->auth);
	return 0;
}

static void use_security(struct pl_http *h)
{
	pthread_mutex_lock(&h->lock);
	if (h->asked) {
		h->answer = change_security(h, h->wanted);
		h->wanted = NULL;
		h->asked = false;
		pthread_cond_signal(&h->answered);
	}
	pthread_mutex_unlock(&h->lock);
}

/* Warns about a listener beyond this host without protection, which is allowed. */
static void warn_if_open(const struct pl_http *h, const struct pl_webconf *security)
{
	if (h->address[0] == '\0' || pl_http_is_loopback(&h->hosts.listen))
		return;
	if (security == NULL || !pl_webconf_asks(security))
		pl_warn("http",
			"%s can be reached from other hosts without authentication: set web.config_file",
			h->address);
	else if (!security->tls)
		pl_warn("http",
			"%s can be reached from other hosts without TLS: passwords and tokens are sent in clear text",
			h->address);
}

int pl_http_secure(struct pl_http *h, struct pl_webconf *security, struct pl_diag *diag)
{
	bool secure = security != NULL && security->tls;
	bool bare = security == NULL;
	struct pl_webconf asks = { .tls = false };
	int r;

	/* Read here for the warning; later the security belongs to the server. */
	if (!bare) {
		asks.tls = security->tls;
		asks.client_auth = security->client_auth;
		asks.n_users = security->n_users;
		asks.n_tokens = security->n_tokens;
	}
	pthread_mutex_lock(&h->lock);
	h->wanted = security;
	h->asked = true;
	pl_http_wake(h);
	while (h->asked)
		pthread_cond_wait(&h->answered, &h->lock);
	r = h->answer;
	pthread_mutex_unlock(&h->lock);
	if (r < 0)
		return pl_diag_fail(diag, r,
			"the web server keeps its old TLS settings and passwords: %s",
			r == -EBUSY ? "too many changes within half a minute"
				    : strerrordesc_np(-r));
	h->secure = secure;
	warn_if_open(h, bare ? NULL : &asks);
	return 0;
}

static int start_thread(struct pl_http *h, struct pl_diag *diag)
{
	int r = pl_http_pages_start(h);

	if (r == 0)
		r = pl_thread_start(&h->thread, "pl-http", serve_loop, h);
	if (r < 0)
		return pl_diag_fail(
			diag, r, "cannot start the HTTP server's thread: %s", strerrordesc_np(-r));
	h->running = true;
	return 0;
}

static void wake_for_auth(void *arg)
{
	pl_http_wake(arg);
}

int pl_http_open(struct pl_http **ret, const struct pl_http_options *options,
	const struct pl_http_route *routes, struct pl_diag *diag)
{
	struct pl_http *h = calloc(1, sizeof(*h));
	int r;

	if (h == NULL) {
		pl_webconf_free(options->security);
		return -ENOMEM;
	}
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->answered, NULL);
	h->max_body_bytes = options->max_body_bytes > 0 ? options->max_body_bytes : MAX_BODY_BYTES;
	h->max_connections = options->max_connections > 0 ? options->max_connections
							  : (unsigned int)MAX_CONNECTIONS;
	h->max_per_address = options->max_per_address > 0 ? options->max_per_address
							  : (unsigned int)MAX_PER_ADDRESS;
	for (; routes->path != NULL; routes++) {
		assert(h->n_routes < PL_HTTP_MAX_ROUTES);
		h->routes[h->n_routes++] = *routes;
	}
	h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = h->wake_fd < 0 ? -errno : copy_names(h, options);
	if (r == 0)
		r = pl_http_pages_open(h);
	if (r == 0)
		r = pl_auth_new(&h->auth, wake_for_auth, h);
	if (r < 0) {
		pl_webconf_free(options->security);
		pl_diag_set(diag, "too many host names, or no memory or file descriptor for them");
		goto fail;
	}
	r = open_listeners(h, options, diag);
	if (r < 0)
		goto fail;
	if (options->listen != NULL)
		warn_if_open(h, options->security);
	/* Set before there is a thread: handlers may read the caller's pointer. */
	*ret = h;
	r = start_thread(h, diag);
	if (r < 0)
		goto fail;
	return 0;
fail:
	*ret = NULL;
	pl_http_close(h);
	return r;
}

void pl_http_close(struct pl_http *h)
{
	struct pl_http_listener *l;

	if (h == NULL)
		return;
	if (h->running) {
		atomic_store_explicit(&h->stop, true, memory_order_relaxed);
		pl_http_wake(h);
		pthread_join(h->thread, NULL);
	}
	pl_http_pages_stop(h);
	while ((l = h->listeners) != NULL) {
		h->listeners = l->next;
		free_listener(l);
	}
	pl_http_pages_free(h);
	pl_auth_free(h->auth);
	if (h->socket_path != NULL)
		unlink(h->socket_path);
	if (h->wake_fd >= 0)
		close(h->wake_fd);
	for (size_t i = 0; i < h->n_names; i++)
		free(h->names[i]);
	free(h->socket_path);
	pthread_cond_destroy(&h->answered);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

const char *pl_http_scheme(const struct pl_http *http)
{
	return http->secure ? "https" : "http";
}

const char *pl_http_address(const struct pl_http *http)
{
	return http->address;
}

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_http_counters, __VA_ARGS__)
#include "web/http_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_http_stats_list = { stat_rows, sizeof(stat_rows) / sizeof(stat_rows[0]) };

const struct pl_http_counters *pl_http_counters(const struct pl_http *http)
{
	return &http->counters;
}

uint64_t pl_http_memory(const struct pl_http_options *options)
{
	uint64_t connections =
		(options->max_connections > 0 ? options->max_connections : MAX_CONNECTIONS) +
		PL_HTTP_EXTRA_CONNECTIONS;
	uint64_t body = options->max_body_bytes > 0 ? options->max_body_bytes : MAX_BODY_BYTES;

	/* Beyond the limit, one more answer may be in the making, whose buffer doubles. */
	return connections * (POOL_BYTES + PL_HTTP_PIECE_BYTES + sizeof(struct pl_http_connection) +
				     sizeof(struct pl_http_context) + sizeof(struct pl_http_peer)) +
	       (PL_HTTP_BODIES_HELD + 2) * body;
}
