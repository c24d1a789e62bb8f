/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives up the privileges of a process for good. Call it when everything that needs a privilege is
 * open, and before the first thread is started, because capabilities belong to threads and only
 * later threads inherit the new ones. Afterwards the process has the given user and group; no
 * capability beyond those to keep, in any set, and no way to get one by executing a program
 * (no_new_privs). It cannot be dumped and writes no core files unless requested, because its memory
 * holds user traffic.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

#define PL_PRIVILEGE_NET_ADMIN (UINT64_C(1) << 12)
#define PL_PRIVILEGE_NET_RAW   (UINT64_C(1) << 13)
#define PL_PRIVILEGE_IPC_LOCK  (UINT64_C(1) << 14)
#define PL_PRIVILEGE_BPF       (UINT64_C(1) << 39)

struct pl_privilege_options {
	const char *user;  /* name or number to become; NULL: stay */
	const char *group; /* group to become; NULL: the user's */
	uint64_t keep;     /* capabilities that stay, as bits, if they are there */
	bool core_dumps;
};

/* Drops the privileges. Returns 0, or an error with diag: -ESRCH when there is no such user or
 * group, -EPERM when this process may not become them, -EBUSY when there are threads already. After
 * an error the process may have given up a part, and must end. */
int pl_privilege_drop(const struct pl_privilege_options *options, struct pl_diag *diag);

/* Capabilities in effect, as bits. */
uint64_t pl_privilege_effective(void);

/* True when a user or group of this name or number exists; for checking a configuration. */
bool pl_privilege_user_exists(const char *user);
bool pl_privilege_group_exists(const char *group);
