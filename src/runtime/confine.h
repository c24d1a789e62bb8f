/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a command that serves gives up what it does not need: capabilities and, where asked, its user
 * (base/privilege.h), then system calls and files (base/sandbox.h). The same for all of them:
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
	struct pl_helper *helper; /* NULL: none is needed */
	bool interfaces, packet, afxdp, rdma, done;
	bool programs; /* of the kernel, at no interface: maps are read */
	struct pl_sandbox_path paths[PL_CONFINE_PATHS_MAX];
	size_t n_paths;
	struct pl_sandbox_state state;
	char gap[400];
};

/* The options' strings stay until the end. */
void pl_confine_init(struct pl_confine *c, const struct pl_privilege_options *options);
/* What is going to be opened; `sends`: by the software NIC, which sends through a packet socket. */
void pl_confine_uri(struct pl_confine *c, const char *uri, bool sends);
/* Starts the helper, where a URI names an interface. Negative errno with diag. */
int pl_confine_begin(struct pl_confine *c, struct pl_diag *diag);
/* For what opens an interface; NULL: this process's own. */
const struct pl_rights *pl_confine_rights(const struct pl_confine *c);
/* What may be read, or written, later. NULL is nothing; the string is copied. -ENOMEM, -E2BIG. */
int pl_confine_path(struct pl_confine *c, const char *path, bool write);
/* A second time it does nothing. A refused call is told by standard error, or as a log line
 * (pl_say_by_log, before). Negative errno with diag: the process is to end. */
int pl_confine(struct pl_confine *c, struct pl_diag *diag);
/* For people: what does not hold it that should; NULL: all does. */
const char *pl_confine_gap(const struct pl_confine *c);
/* After pl_confine_init, whatever came after it. */
void pl_confine_end(struct pl_confine *c);
