/* SPDX-License-Identifier: BSD-2-Clause */
/* Unix sockets with a name in the file system (unix(7)). Negative errno on failure. */
#pragma once

#include <sys/stat.h>

struct pl_diag;

/* Listens on a stream socket at `path` that whoever `mode` lets write may connect to, from the first
 * moment. A socket there that nobody listens on, left over from a process that was killed, is
 * replaced. Returns a descriptor that does not block; else the reason is in diag (NULL allowed):
 * -ENAMETOOLONG, -EEXIST for something that is not a socket, -EADDRINUSE when a process listens
 * there, or what the kernel said. The caller unlinks the path at its end. */
int pl_local_listen(const char *path, mode_t mode, int backlog, struct pl_diag *diag);

/* Connects to `path`. type: SOCK_STREAM or SOCK_SEQPACKET, with SOCK_NONBLOCK if wanted; patience_s:
 * how long connecting and each later call may take; 0: for ever. Returns a descriptor; -ECONNREFUSED
 * or -ENOENT when nobody listens there. */
int pl_local_connect(const char *path, int type, unsigned int patience_s);
