/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets with a name in the file system: their mode, names that are taken, names left over. */
#include "base/local_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

int main(void)
{
	ok(mkdtemp(folder) != NULL, "a folder");
	test_talk();
	test_full();
	test_refused();
	rmdir(folder);
	return pl_test_done();
}
