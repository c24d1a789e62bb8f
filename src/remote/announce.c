/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends this side's parameters to the controller of a switch. */
#include "remote/announce.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "netio/tcp.h"

/* Waits until the descriptor is ready for `events`, or the time is over. */
static int wait_for(int fd, short events, uint64_t until_ns)
{
	for (;;) {
		const uint64_t now_ns = pl_clock_mono_ns();
		struct pollfd p = { .fd = fd, .events = events };
		int r;

		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		r = poll(&p, 1, (int)((until_ns - now_ns) / 1000000u) + 1);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

static int connected(int fd, uint64_t until_ns)
{
	int r = wait_for(fd, POLLOUT, until_ns), error = 0;
	socklen_t len = sizeof(error);

	if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		r = -errno;
	return r != 0 ? r : -error;
}

static int put(int fd, const uint8_t *bytes, size_t n, uint64_t until_ns)
{
	while (n > 0) {
		ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		int r;

		if (sent > 0) {
			bytes += sent;
			n -= (size_t)sent;
			continue;
		}
		r = errno == EAGAIN || errno == EINTR ? wait_for(fd, POLLOUT, until_ns) : -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

static int get(int fd, uint8_t *bytes, size_t n, uint64_t until_ns)
{
	while (n > 0) {
		ssize_t got = recv(fd, bytes, n, MSG_DONTWAIT);
		int r;

		if (got > 0) {
			bytes += got;
			n -= (size_t)got;
			continue;
		}
		if (got == 0)
			return -ECONNRESET;
		r = errno == EAGAIN || errno == EINTR ? wait_for(fd, POLLIN, until_ns) : -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

static int exchange(int fd, const struct pl_exchange *ours, uint64_t until_ns)
{
	uint8_t out[PL_EXCHANGE_COMPACT_BYTES], in[PL_EXCHANGE_COMPACT_BYTES] = { 0 };
	struct pl_build b = pl_build(out, sizeof(out));
	int r;

	pl_exchange_put_compact(&b, ours);
	r = connected(fd, until_ns);
	if (r == 0)
		r = put(fd, out, sizeof(out), until_ns);
	if (r == 0)
		r = get(fd, in, sizeof(in), until_ns);
	return r == 0 && memcmp(out, in, sizeof(out)) != 0 ? -EBADMSG : r;
}

int pl_announce(const char *controller, const struct pl_exchange *ours, int timeout_ms,
	struct pl_diag *diag)
{
	const uint64_t until_ns = pl_clock_mono_ns() + (uint64_t)timeout_ms * 1000000u;
	struct pl_addr addr;
	uint16_t port;
	int fd, r;

	if (pl_parse_endpoint(controller, &addr, &port) < 0 || pl_addr_is_unspecified(&addr) ||
		port == 0) {
		pl_diag_set(diag, "\"%s\" is not an address and port to connect to", controller);
		return -EINVAL;
	}
	fd = pl_tcp_connect(&addr, port, NULL, diag);
	if (fd < 0)
		return fd;
	r = exchange(fd, ours, until_ns);
	close(fd);
	if (r < 0)
		pl_diag_set(diag, "the controller at %s: %s", controller,
			r == -EBADMSG ? "the controller did not return the announcement unchanged"
			: r == -ECONNRESET
				? "the controller closed the connection without an answer"
				: strerror(-r));
	return r;
}
