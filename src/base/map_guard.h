/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that are mapped while others may cut them: where a page vanished, a page of zeros that belongs to
 * this process takes its place, instead of SIGBUS ending the process.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A mapping, its owner's; it stays where it is from enter to leave. */
struct pl_map_guard {
	uint8_t *map;
	size_t bytes, page_bytes;    /* page_bytes: of the file system */
	_Atomic uint64_t lost_pages; /* that were replaced */
};

/* Installs the handler of SIGBUS for the process, once. Faults elsewhere go on to the handler there was. 0
 * or negative errno. */
int pl_map_guard_install(void);

/* The handler knows the mapping from enter to leave, whichever comes first, this or the handler. -ENOSPC
 * when it knows as many as it can. */
int pl_map_guard_enter(struct pl_map_guard *guard);
void pl_map_guard_leave(struct pl_map_guard *guard);
