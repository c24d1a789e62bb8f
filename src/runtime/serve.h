/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a service for a command until it has ended, with an exit code. */
#pragma once

#include <stdbool.h>

#include "runtime/runtime.h"

/* 0, or an exit code; complains. */
int pl_serve(const struct pl_runtime_options *options);

/* The exit code for what a service, or its pages, could not be opened for: PL_EXIT_USAGE (-EINVAL),
 * PL_EXIT_PRIVILEGE, PL_EXIT_FAILED for what is damaged or of another kind and for want of memory, else
 * PL_EXIT_UNAVAILABLE. */
int pl_serve_exit(int error);
