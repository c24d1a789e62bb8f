/* SPDX-License-Identifier: BSD-2-Clause */
/* The client of a switch's control socket. */
#include "ask/switch_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/local_socket.h"

#define ANSWER_MAX (17u << 20)
#define PATIENCE_S 10

static int send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int recv_line(int fd, struct pl_buf *ret)
{
	char bytes[65536];

	for (;;) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (n == 0)
			return -ECONNRESET;
		pl_buf_add(ret, bytes, (size_t)n);
		if (ret->failed)
			return -ENOMEM;
		if (bytes[n - 1] == '\n')
			break;
	}
	ret->data[--ret->len] = '\0';
	return 0;
}

static int talk(int fd, const struct pl_buf *request, struct pl_buf *ret)
{
	int r = send_all(fd, request->data, request->len);

	if (r == 0)
		r = send_all(fd, "\n", 1);
	return r == 0 ? recv_line(fd, ret) : r;
}

int pl_switch_ask(
	const char *path, const struct pl_buf *request, struct pl_buf *ret, struct pl_diag *diag)
{
	int fd, r;

	if (request->len > PL_SWITCH_ASK_MAX) {
		pl_diag_set(diag,
			"a request has %u bytes at most, this one %zu: make several of its changes",
			PL_SWITCH_ASK_MAX, request->len);
		return -EMSGSIZE;
	}
	fd = r = pl_local_connect(path, SOCK_STREAM, PATIENCE_S);
	ret->limit = ANSWER_MAX;
	if (fd >= 0) {
		r = talk(fd, request, ret);
		close(fd);
	}
	if (r == -ECONNREFUSED || r == -ENOENT)
		pl_diag_set(diag, "no switch listens at %s", path);
	else if (r < 0)
		pl_diag_set(diag, "control socket %s: %s", path, strerror(-r));
	return r;
}
