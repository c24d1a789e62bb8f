/* SPDX-License-Identifier: BSD-2-Clause */
/* A UDP socket with one peer. */
#include "netio/udp_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int pl_udp_peer_open(
	const struct pl_addr *addr, uint16_t port, const char *address, struct pl_diag *diag)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd, r, off = 0;

	memcpy(&v6.sin6_addr, addr->b, sizeof(v6.sin6_addr));
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0 ||
		connect(fd, (const struct sockaddr *)&v6, sizeof(v6)) < 0) {
		r = -errno;
		pl_diag_set(diag, "%s: %s", address, strerrordesc_np(-r));
		if (fd >= 0)
			close(fd);
		return r;
	}
	return fd;
}

int pl_udp_peer_send(int fd, const void *bytes, size_t n)
{
	struct pollfd writable = { .fd = fd, .events = POLLOUT };

	/* The first attempt may return the error of an earlier datagram. */
	for (int i = 0; i < 3; i++) {
		if (send(fd, bytes, n, MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno == EAGAIN || errno == ENOBUFS)
			(void)poll(&writable, 1, 1);
		else if (errno != EINTR && errno != ECONNREFUSED)
			break;
	}
	return -errno;
}
