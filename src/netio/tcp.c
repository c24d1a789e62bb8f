/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens TCP sockets that do not block. */
#include "netio/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"
#include "netio/sockaddr.h"

/* Without Nagle's algorithm: a short message must not wait for the acknowledgement of the one
 * before. Accepted connections inherit this from the listening socket. */
static int new_socket(bool v4)
{
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int one = 1;

	if (fd >= 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int pl_tcp_listen(const char *where, int backlog, struct pl_addr *ret_addr,
	char ret_text[PL_TCP_TEXT_MAX], struct pl_diag *diag)
{
	const struct pl_addr every_v4 = pl_sockaddr_every_v4();
	char text[PL_ADDR_TEXT_MAX];
	int fd, one = 1, zero = 0, r;
	struct pl_sockaddr place;
	struct pl_addr addr;
	uint16_t port;
	bool v4;

	if (pl_parse_endpoint(where, &addr, &port) < 0) {
		pl_diag_set(diag, "\"%s\" is not an address and port to listen on", where);
		return -EINVAL;
	}
	v4 = pl_addr_is_v4(&addr);
	fd = new_socket(v4);
	/* Without IPv6 in the kernel, "every address" means every IPv4 address. */
	if (fd < 0 && !v4 && pl_addr_is_unspecified(&addr)) {
		v4 = true;
		fd = new_socket(true);
	}
	if (fd < 0)
		goto fail;
	pl_sockaddr_set(&place, v4 != pl_addr_is_v4(&addr) ? &every_v4 : &addr, port);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!v4)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, (const struct sockaddr *)&place.sa, place.len) < 0 ||
		listen(fd, backlog) < 0 ||
		getsockname(fd, (struct sockaddr *)&place.sa, &place.len) < 0)
		goto fail;
	(void)pl_sockaddr_get(&place.sa, &port);
	pl_format_addr(text, &addr);
	if (ret_text != NULL)
		snprintf(ret_text, PL_TCP_TEXT_MAX, v4 ? "%s:%u" : "[%s]:%u",
			pl_addr_is_unspecified(&addr) && v4 ? "0.0.0.0" : text, port);
	if (ret_addr != NULL)
		*ret_addr = addr;
	return fd;
fail:
	r = -errno;
	pl_diag_set(diag, "cannot listen on %s: %s", where, strerror(-r));
	if (fd >= 0)
		close(fd);
	return r;
}

int pl_tcp_accept(int fd, struct pl_addr *ret_peer)
{
	struct pl_sockaddr place = { .len = sizeof(place.sa) };
	int got =
		accept4(fd, (struct sockaddr *)&place.sa, &place.len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	uint16_t port;

	if (got < 0)
		return -errno;
	*ret_peer = pl_sockaddr_get(&place.sa, &port);
	return got;
}

/* Binds the address but no port: the port is chosen in connect, where it must be unique only
 * together with the peer. */
static void bind_to(int fd, const struct pl_addr *from)
{
	struct pl_sockaddr place;
	const int one = 1;

	pl_sockaddr_set(&place, from, 0);
	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	(void)bind(fd, (const struct sockaddr *)&place.sa, place.len);
}

int pl_tcp_connect(
	const struct pl_addr *to, uint16_t port, const struct pl_addr *from, struct pl_diag *diag)
{
	const bool v4 = pl_addr_is_v4(to);
	struct pl_sockaddr place;
	int fd = new_socket(v4), r;

	pl_sockaddr_set(&place, to, port);
	if (fd >= 0 && from != NULL && !pl_addr_is_unspecified(from) && pl_addr_is_v4(from) == v4)
		bind_to(fd, from);
	if (fd >= 0 && (connect(fd, (const struct sockaddr *)&place.sa, place.len) == 0 ||
			       errno == EINPROGRESS))
		return fd;
	r = -errno;
	pl_diag_set(diag, "%s", strerror(-r));
	if (fd >= 0)
		close(fd);
	return r;
}

void pl_tcp_watch(int fd, int seconds)
{
	unsigned int ms = (unsigned int)seconds * 1000;
	int on = 1, step = seconds / 4 > 0 ? seconds / 4 : 1, count = 3;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &step, sizeof(step));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof(step));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}
