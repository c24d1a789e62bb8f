/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes capture files with nanosecond time stamps: pcap, or pcapng when the name ends in .pcapng.
 * Both are big-endian, so that files are the same on all machines. A pcap file has one link type,
 * that of its first packet; a pcapng file gets an interface for each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

struct pl_capture_writer {
	int fd;
	bool pcapng, live, started;
	int error; /* of the first write that failed; all later calls return it */
	uint32_t snaplen;
	unsigned int ninterfaces;
	uint8_t interface_of[PL_LINK_MAX]; /* number + 1; 0 = none yet */
	uint8_t *buf;
	size_t len;
};

/* Returns false for a name that ends as those of compressed files do, which are not written. */
bool pl_capture_writer_takes(const char *name);

/* Takes ownership of the descriptor. Returns -EINVAL for a name that is not taken. */
int pl_capture_writer_init(
	struct pl_capture_writer *writer, int fd, const char *name, uint32_t snaplen);

/* Writes packets up to the first that the file cannot hold. Returns how many were taken; -EINVAL
 * when the first already has another link type; or the error of a write. */
int pl_capture_writer_add(struct pl_capture_writer *writer, const struct pl_batch *batch);

/* Writes the buffer and closes the file. Returns 0 or the error of any write. */
int pl_capture_writer_done(struct pl_capture_writer *writer);
