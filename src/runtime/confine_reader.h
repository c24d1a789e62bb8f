/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives up the rights of a command that opens no interface, in one step. */
#pragma once

#include <stddef.h>

#include "runtime/confine.h"
#include "web/client.h"

/* Of the paths, which are read, some may be NULL. 0, or an exit code;
 * complains. */
int pl_confine_reader(const char *const *paths, size_t n);

/* Gives up what asking takes no more (runtime/confine.h): afterwards the process reads files of
 * `args`, and `folder` (NULL: none). Before the first thread. 0, or an exit code; complains. */
int pl_client_confine(const struct pl_client_args *args, const char *folder);
/* The same for one that writes what it is told: `files` names files and folders of its output. */
int pl_client_confine_writer(const struct pl_client_args *args,
	int (*files)(void *arg, struct pl_confine *confine), void *arg);
