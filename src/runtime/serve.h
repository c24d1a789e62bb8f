/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a service for a command until it has ended, with an exit code. */
#pragma once

#include <stdbool.h>

#include "runtime/runtime.h"

/* Returns 0, or an exit code after an error message. */
int pl_serve(const struct pl_runtime_options *options);

/* Exit code for an error of opening a service, or its pages: PL_EXIT_USAGE (-EINVAL),
 * PL_EXIT_PRIVILEGE, PL_EXIT_FAILED for damaged or wrong files and lack of memory, else
 * PL_EXIT_UNAVAILABLE. */
int pl_serve_exit(int error);
