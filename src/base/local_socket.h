/* SPDX-License-Identifier: BSD-2-Clause */
/* Unix sockets with a name in the file system (unix(7)). Negative errno on failure. */
#pragma once

#include <sys/stat.h>

struct pl_buf;
struct pl_diag;

/* Listens on a stream socket at `path`; users whom `mode` lets write may connect, from the first
 * moment. A socket there that nobody listens on, left over from a process that was killed, is
 * replaced. Returns a descriptor that does not block, or an error with its reason in diag (NULL
 * allowed): -ENAMETOOLONG, -EEXIST when the path is no socket, -EADDRINUSE when a process listens
 * there, or an error of the kernel. The caller unlinks the path at its end. */
int pl_local_listen(const char *path, mode_t mode, int backlog, struct pl_diag *diag);

/* Connects to `path`. type: SOCK_STREAM or SOCK_SEQPACKET, with SOCK_NONBLOCK if wanted;
 * patience_s: limit for connecting and for each later call; 0: none. Returns a descriptor;
 * -ECONNREFUSED or -ENOENT when nobody listens there. */
int pl_local_connect(const char *path, int type, unsigned int patience_s);

/* Connects to the stream socket at `path`, sends `request` and an end of line, and receives one
 * line into `ret`, whose limit the caller sets; the end of line is left out. patience_s: limit for
 * connecting and for each call. -ETIMEDOUT: no answer in time; -ECONNRESET: the line was not
 * ended; -ENOMEM: it is longer than ret's limit. */
int pl_local_ask(const char *path, const struct pl_buf *request, unsigned int patience_s,
	struct pl_buf *ret);
