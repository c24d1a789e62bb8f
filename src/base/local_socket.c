/* SPDX-License-Identifier: BSD-2-Clause */
/* Listens and connects at names in the file system. */
#include "base/local_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/diag.h"

static int addr_of(const char *path, struct sockaddr_un *ret)
{
	const size_t len = strlen(path);

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (len >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	memcpy(ret->sun_path, path, len + 1);
	return 0;
}

int pl_local_connect(const char *path, int type, unsigned int patience_s)
{
	const struct timeval patience = { .tv_sec = (time_t)patience_s };
	struct sockaddr_un sa;
	int fd, r = addr_of(path, &sa);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (patience_s > 0) {
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	}
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

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

int pl_local_ask(
	const char *path, const struct pl_buf *request, unsigned int patience_s, struct pl_buf *ret)
{
	int fd = pl_local_connect(path, SOCK_STREAM, patience_s), r;

	if (fd < 0)
		return fd;
	r = send_all(fd, request->data, request->len);
	if (r == 0)
		r = send_all(fd, "\n", 1);
	if (r == 0)
		r = recv_line(fd, ret);
	close(fd);
	return r;
}

/* Makes room for a socket, if the one in its place belongs to no process. */
static int clear_place(const char *path, struct pl_diag *diag)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		pl_diag_set(diag, "%s is there, and is not a socket", path);
		return -EEXIST;
	}
	fd = pl_local_connect(path, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		close(fd);
	/* A full queue means that a process listens. A socket of another type is in use, too. */
	if (fd >= 0 || fd == -EAGAIN || fd == -EPROTOTYPE) {
		pl_diag_set(diag, "%s: another process listens there", path);
		return -EADDRINUSE;
	}
	return fd == -ECONNREFUSED && unlink(path) == 0 ? 0 : fd;
}

int pl_local_listen(const char *path, mode_t mode, int backlog, struct pl_diag *diag)
{
	struct pl_diag reason = { 0 };
	struct sockaddr_un sa;
	mode_t mask;
	int fd = -1, r = addr_of(path, &sa);

	if (r < 0)
		pl_diag_set(&reason, "%s: a socket's path has %zu bytes at most", path,
			sizeof(sa.sun_path) - 1);
	else
		r = clear_place(path, &reason);
	if (r == 0) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		mask = umask(~mode & 0777);
		r = fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
		umask(mask);
	}
	if (r == 0 && listen(fd, backlog) == 0)
		return fd;
	if (r == 0) {
		r = -errno;
		unlink(path);
	}
	if (reason.text[0] == '\0')
		pl_diag_set(&reason, "cannot listen on %s: %s", path, strerrordesc_np(-r));
	pl_diag_set(diag, "%s", reason.text);
	if (fd >= 0)
		close(fd);
	return r;
}
