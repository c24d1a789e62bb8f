/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Confinement of a command that serves: it gives up capabilities and, if configured, its user
 * (base/privilege.h), then system calls and files (base/sandbox.h). All such commands do:
 *
 *   pl_confine_init(&c, &options);
 *   pl_confine_uri(&c, "packet:eth0", false);
 *   pl_confine_begin(&c, &diag);                          first of all: a helper keeps three
 *                                                         rights, where an interface needs them
 *   ... open what takes rights, with pl_confine_rights(&c) ...
 *   pl_confine_path(&c, "/var/lib/x.plr", true);
 *   pl_confine(&c, &diag);                                no thread yet; for good
 *   ... open the rest, receive ...
 *   pl_confine_end(&c);
 */
#pragma once

#include <stdbool.h>

#include "base/diag.h"
#include "base/log.h"
#include "base/privilege.h"
#include "base/sandbox.h"
#include "netio/helper.h"

#define PL_CONFINE_PATHS_MAX 640

struct pl_confine {
	struct pl_privilege_options options;
	struct pl_helper *helper; /* NULL: not needed */
	bool interfaces, packet, afxdp, rdma, done;
	bool programs; /* kernel programs without an interface: maps are read */
	struct pl_sandbox_path paths[PL_CONFINE_PATHS_MAX];
	size_t n_paths;
	struct pl_sandbox_state state;
	char gap[400];
};

/* The options' strings stay until the end. */
void pl_confine_init(struct pl_confine *c, const struct pl_privilege_options *options);
/* Adds a URI that will be opened; `sends`: by the software NIC, which sends through a packet
 * socket. */
void pl_confine_uri(struct pl_confine *c, const char *uri, bool sends);
/* Starts the helper when a URI names an interface. Returns negative errno with diag. */
int pl_confine_begin(struct pl_confine *c, struct pl_diag *diag);
/* Rights for opening interfaces; NULL: this process's own. */
const struct pl_rights *pl_confine_rights(const struct pl_confine *c);
/* Adds a path that will be read, or written, later. NULL is ignored; the string is copied. Returns
 * -ENOMEM, -E2BIG. */
int pl_confine_path(struct pl_confine *c, const char *path, bool write);
/* Gives up the rights; a second call does nothing. A refused system call is reported on standard
 * error, or as a log line (after pl_say_by_log). Returns negative errno with diag: the process must
 * end. */
int pl_confine(struct pl_confine *c, struct pl_diag *diag);
/* Text for the user about a missing confinement; NULL: complete. */
const char *pl_confine_gap(const struct pl_confine *c);
/* Called after pl_confine_init, in any state. */
void pl_confine_end(struct pl_confine *c);
