/* SPDX-License-Identifier: BSD-2-Clause */
/* Guard of mapped files that others may cut: a page that vanished is replaced by a page of zeros of
 * this process, and no SIGBUS ends the process. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A guarded mapping. Its owner provides the structure, which must stay at its address from enter to
 * leave. */
struct pl_map_guard {
	uint8_t *map;
	size_t bytes, page_bytes;    /* page_bytes: of the file system */
	_Atomic uint64_t lost_pages; /* pages that were replaced */
};

/* Installs the handler of SIGBUS for the process, once. Other faults go to the previous handler.
 * Returns 0 or a negative errno. */
int pl_map_guard_install(void);

/* Registers the mapping with the handler until leave; the handler may be installed before or after.
 * Returns 0, or -ENOSPC when the table of mappings is full. */
int pl_map_guard_enter(struct pl_map_guard *guard);
void pl_map_guard_leave(struct pl_map_guard *guard);
