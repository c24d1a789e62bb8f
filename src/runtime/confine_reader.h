/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives up the rights of a command that opens no interface, in one step. */
#pragma once

#include <stddef.h>

#include "runtime/confine.h"
#include "web/client.h"

/* Keeps the right to read these paths, of which some may be NULL. Returns 0, or an exit code after
 * an error message. */
int pl_confine_reader(const char *const *paths, size_t n);

/* Adds the files in which a terminal's type is looked up, beside the system's files. Returns
 * -ENOMEM, -E2BIG. */
int pl_confine_terminal(struct pl_confine *c);

/* Gives up rights that a client does not need (runtime/confine.h): afterwards the process reads
 * files of `args`, and `folder` (NULL: none). Called before the first thread. Returns 0, or an exit
 * code after an error message. */
int pl_client_confine(const struct pl_client_args *args, const char *folder);
/* As pl_client_confine for a client that writes: `files` names files and folders of its output. */
int pl_client_confine_writer(const struct pl_client_args *args,
	int (*files)(void *arg, struct pl_confine *confine), void *arg);
