/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a service for a command until it has ended, with an exit code. */
#pragma once

#include <stdbool.h>

#include "runtime/runtime.h"

/* 0, or an exit code; complains. began: set by the service once it is open, because later failures
 * are no matter of its options or of the ports and files that it opens. */
int pl_serve(const struct pl_runtime_options *options, const bool *began);
