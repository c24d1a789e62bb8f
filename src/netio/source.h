/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the bytes of a capture from a file, a pipe or memory, and decompresses gzip (RFC 1952, any
 * number of members). Files are read, not mapped: a file that shrinks under us is then a short read
 * and never a SIGBUS.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

struct pl_source {
	int fd; /* -1: memory */
	bool pollable;
	const uint8_t *mem;
	size_t mem_left, mem_chunk;

	enum { PL_SOURCE_FRESH, PL_SOURCE_PLAIN, PL_SOURCE_GZIP, PL_SOURCE_DONE } state;
	bool gzip;  /* the input is gzip, its contents are returned */
	bool ended; /* the input is at its end */
	uint8_t *in;
	size_t in_pos, in_end;
	z_stream z;
	bool z_ready, in_member;
	const char *fault; /* reason of -EBADMSG */
};

/* Takes ownership of the descriptor, which pl_source_done closes. After a failure the caller closes
 * it. */
int pl_source_init_fd(struct pl_source *source, int fd);

/* data must outlive the source. chunk: most bytes that one read returns, 0 = no limit. */
int pl_source_init_memory(struct pl_source *source, const void *data, size_t len, size_t chunk);
void pl_source_done(struct pl_source *source);

/*
 * Reads up to cap bytes. Returns 0 at the end; -EAGAIN when nothing came within timeout_ms (pipes
 * only, -1 = wait); -EINTR; -EBADMSG for damaged gzip data, after all bytes before the damage; any
 * errno of read().
 */
ssize_t pl_source_read(struct pl_source *source, void *dst, size_t cap, int timeout_ms);
