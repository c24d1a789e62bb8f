/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets with a name in the file system: their mode, names that are taken, names left over, asking. */
#include "base/local_socket.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/test.h"

static char folder[] = "/tmp/local_socket.XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void test_talk(void)
{
	const char *path = in_folder("s");
	struct pl_diag diag = { 0 };
	struct stat st;
	int fd = pl_local_listen(path, 0620, 4, &diag), to, from;
	char c = 0;

	ok(fd >= 0, "listens");
	ok(stat(path, &st) == 0 && (st.st_mode & 0777) == 0620, "with the mode");
	to = pl_local_connect(path, SOCK_STREAM, 5);
	from = accept(fd, NULL, NULL);
	ok(to >= 0 && from >= 0 && write(to, "x", 1) == 1 && read(from, &c, 1) == 1 && c == 'x',
		"a byte goes through");
	close(to);
	close(from);
	eq(pl_local_connect(path, SOCK_SEQPACKET, 0), -EPROTOTYPE, "another type");
	eq(pl_local_listen(path, 0600, 4, &diag), -EADDRINUSE, "a second one");
	ok(strstr(diag.text, "another process listens there") != NULL, "says so");
	close(fd);
	eq(pl_local_connect(path, SOCK_STREAM, 0), -ECONNREFUSED, "nobody listens");
	fd = pl_local_listen(path, 0600, 4, &diag);
	ok(fd >= 0, "a socket that is left over is replaced");
	ok(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600, "with the new mode");
	close(fd);
	unlink(path);
	eq(pl_local_connect(path, SOCK_STREAM, 0), -ENOENT, "nothing there");
}

/* A queue that is full is somebody's. */
static void test_full(void)
{
	const char *path = in_folder("full");
	int fd = pl_local_listen(path, 0600, 0, NULL), c[16], n = 0;

	while (n < 16 && (c[n] = pl_local_connect(path, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0)
		n++;
	ok(fd >= 0 && n < 16, "full");
	eq(pl_local_listen(path, 0600, 4, NULL), -EADDRINUSE, "is not replaced");
	while (n > 0)
		close(c[--n]);
	close(fd);
	unlink(path);
}

static void test_refused(void)
{
	struct pl_diag diag = { 0 };
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s", in_folder("file"));
	f = fopen(path, "w");
	ok(f != NULL && fclose(f) == 0, "a file");
	eq(pl_local_listen(path, 0600, 4, &diag), -EEXIST, "is not replaced");
	ok(access(path, F_OK) == 0 && strstr(diag.text, "is not a socket") != NULL, "and told");
	unlink(path);
	eq(pl_local_listen(in_folder("no/such"), 0600, 4, &diag), -ENOENT, "no folder");
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	eq(pl_local_listen(path, 0600, 4, &diag), -ENAMETOOLONG, "too long");
	ok(strstr(diag.text, "107 bytes at most") != NULL, "with the limit");
	eq(pl_local_connect(path, SOCK_STREAM, 0), -ENAMETOOLONG, "to connect too");
}

/* Asks a process that gives `answer` in two parts, and then closes the connection. */
static int asked(const char *answer, struct pl_buf *ret)
{
	const size_t half = strlen(answer) / 2;
	struct pl_buf request = { 0 };
	int fd = pl_local_listen(in_folder("ask"), 0600, 4, NULL), r;
	const pid_t child = fork();
	char got[8] = "";

	if (child == 0) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		int c = poll(&ready, 1, -1) == 1 ? accept4(fd, NULL, NULL, 0) : -1;

		if (recv(c, got, 6, MSG_WAITALL) != 6 || memcmp(got, "asked\n", 6) != 0 ||
			send(c, answer, half, MSG_NOSIGNAL) < 0)
			_exit(1);
		usleep(10000);
		(void)send(c, answer + half, strlen(answer) - half, MSG_NOSIGNAL);
		_exit(0);
	}
	pl_buf_str(&request, "asked");
	r = pl_local_ask(in_folder("ask"), &request, 60, ret);
	ok(waitpid(child, NULL, 0) == child, "the other process ends");
	pl_buf_done(&request);
	close(fd);
	unlink(in_folder("ask"));
	return r;
}

static void test_ask(void)
{
	struct pl_buf ret = { .limit = 64 }, none = { 0 };
	char big[200];
	int fd;

	eq(asked("an answer\n", &ret), 0, "asks");
	ok(strcmp(ret.data, "an answer") == 0 && ret.len == 9, "has the line without its end");
	pl_buf_done(&ret);
	eq(asked("half a line", &ret), -ECONNRESET, "a line that is not ended");
	pl_buf_done(&ret);
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	ret.limit = 64;
	eq(asked(big, &ret), -ENOMEM, "a line beyond the limit");
	pl_buf_done(&ret);
	fd = pl_local_listen(in_folder("mute"), 0600, 4, NULL);
	eq(pl_local_ask(in_folder("mute"), &none, 1, &ret), -ETIMEDOUT, "nobody answers");
	pl_buf_done(&ret);
	close(fd);
	eq(pl_local_ask(in_folder("mute"), &none, 1, &ret), -ECONNREFUSED, "nobody listens");
	unlink(in_folder("mute"));
}

int main(void)
{
	ok(mkdtemp(folder) != NULL, "a folder");
	test_talk();
	test_full();
	test_refused();
	test_ask();
	rmdir(folder);
	return pl_test_done();
}
