/* SPDX-License-Identifier: BSD-2-Clause */
/* Exchanges parameters over TCP, as the side that writes. */
#include "remote/exchange_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"
#include "netio/tcp.h"

#define WATCH_SECONDS 30
#define IN_BYTES      512

struct pl_exchange_client {
	int fd, poll_fd;
	uint64_t until_ns;
	uint32_t out_at, out_bytes, in_bytes;
	int result; /* 0: under way */
	struct pl_exchange theirs;
	struct pl_diag why; /* of a result below zero */
	char server[80];
	uint8_t out[PL_EXCHANGE_STORE_BYTES], in[IN_BYTES];
};

int pl_exchange_client_open(struct pl_exchange_client **ret, const char *server,
	const struct pl_exchange *ours, uint64_t now_ns, uint64_t timeout_ns, struct pl_diag *diag)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT };
	struct pl_exchange_client *c;
	struct pl_addr addr;
	struct pl_build b;
	uint16_t port;
	int r;

	if (pl_parse_endpoint(server, &addr, &port) < 0 || pl_addr_is_unspecified(&addr) ||
		port == 0) {
		pl_diag_set(diag, "\"%s\" is not an address and port to connect to", server);
		return -EINVAL;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	c->poll_fd = -1;
	c->until_ns = now_ns + timeout_ns;
	snprintf(c->server, sizeof(c->server), "%s", server);
	b = pl_build(c->out, sizeof(c->out));
	pl_exchange_put(&b, ours);
	c->out_bytes = (uint32_t)b.len;
	c->fd = r = pl_tcp_connect(&addr, port, &ours->gid, &c->why);
	if (r >= 0) {
		pl_tcp_watch(c->fd, WATCH_SECONDS);
		c->poll_fd = epoll_create1(EPOLL_CLOEXEC);
		r = c->poll_fd < 0 || epoll_ctl(c->poll_fd, EPOLL_CTL_ADD, c->fd, &e) < 0 ? -errno
											  : 0;
		if (r < 0)
			pl_diag_set(&c->why, "%s", strerror(-r));
	}
	if (r < 0) {
		pl_diag_set(diag, "%s: %s", server, c->why.text);
		pl_exchange_client_close(c);
		return r;
	}
	*ret = c;
	return 0;
}

void pl_exchange_client_close(struct pl_exchange_client *c)
{
	if (c == NULL)
		return;
	if (c->fd >= 0)
		close(c->fd);
	if (c->poll_fd >= 0)
		close(c->poll_fd);
	free(c);
}

int pl_exchange_client_fd(const struct pl_exchange_client *c)
{
	return c->poll_fd;
}

static int fail(struct pl_exchange_client *c, int error, const char *text)
{
	c->result = error;
	pl_diag_set(&c->why, "%s: %s", c->server, text);
	return error;
}

/* Sends the rest of the message. Returns 0 also while not connected yet. */
static int put_out(struct pl_exchange_client *c)
{
	struct epoll_event e = { .events = EPOLLIN };
	int error = 0;
	socklen_t len = sizeof(error);

	if (c->out_at == c->out_bytes)
		return 0;
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error != 0)
		return fail(c, -error, strerror(error));
	while (c->out_at < c->out_bytes) {
		ssize_t n = send(c->fd, c->out + c->out_at, c->out_bytes - c->out_at, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN))
			return 0;
		if (n < 0)
			return fail(c, -errno, strerror(errno));
		c->out_at += (uint32_t)n;
	}
	return epoll_ctl(c->poll_fd, EPOLL_CTL_MOD, c->fd, &e) < 0
		       ? fail(c, -errno, strerror(errno))
		       : 0;
}

static int read_answer(struct pl_exchange_client *c)
{
	size_t used;
	int r = pl_exchange_get(&c->theirs, pl_cursor(c->in, c->in_bytes), &used);

	if (r == -EPROTO)
		return fail(c, r, "the peer uses another version of the exchange");
	if (r < 0 || (r == 0 && c->in_bytes == sizeof(c->in)))
		return fail(c, -EBADMSG, "the peer sent a malformed answer");
	if (r == 0)
		return 0;
	if (used < c->in_bytes)
		return fail(c, -EBADMSG, "it says more than it was asked");
	if (c->theirs.refusal != 0)
		return fail(c, -EACCES, pl_exchange_refusal_text(c->theirs.refusal));
	c->result = 1;
	return 1;
}

/* Reads the answer; after a complete answer only the end of the connection matters. */
static int take_in(struct pl_exchange_client *c)
{
	while (c->out_at == c->out_bytes) {
		ssize_t n = recv(c->fd, c->in + c->in_bytes, sizeof(c->in) - c->in_bytes, 0);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			return fail(c, -ECONNRESET, "the peer closed the connection");
		if (c->result == 1)
			return fail(c, -EBADMSG, "it says more than it was asked");
		c->in_bytes += (uint32_t)n;
		r = read_answer(c);
		if (r < 0)
			return r;
	}
	return c->result;
}

int pl_exchange_client_step(struct pl_exchange_client *c, uint64_t now_ns, struct pl_exchange *ret,
	struct pl_diag *diag)
{
	int r = c->result;

	if (r >= 0)
		r = put_out(c);
	if (r >= 0)
		r = take_in(c);
	if (r == 0 && now_ns >= c->until_ns)
		r = fail(c, -ETIMEDOUT, "no answer in time");
	if (r == 1 || r == -EACCES)
		*ret = c->theirs;
	if (r < 0 && diag != NULL)
		*diag = c->why;
	return r;
}
