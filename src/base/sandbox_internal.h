/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the sandbox that sandbox.c and sandbox_calls.c share. */
#pragma once

#include "base/sandbox.h"

/* Sanitizers need more calls when they report and at the end: they stop the threads by ptrace and
 * read the program. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
	__has_feature(memory_sanitizer)
#define SANDBOX_SANITIZER 1
#endif
#endif
#ifndef SANDBOX_SANITIZER
#define SANDBOX_SANITIZER 0
#endif

/* Filters system calls. Returns 0, or a negative errno; -ENOSYS when the kernel or this build has
 * no filters. */
int sandbox_calls_enter(const struct pl_sandbox_options *options, struct pl_diag *diag);
/* Confines files. Returns the version (> 0) of Landlock, or a negative errno; -ENOSYS, -EOPNOTSUPP
 * when the kernel has none. */
int sandbox_files_enter(const struct pl_sandbox_options *options, struct pl_diag *diag);
