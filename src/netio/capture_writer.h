/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes capture files with nanosecond time stamps: pcap, or pcapng when the name ends in .pcapng.
 * Both in big-endian, so that they are read alike everywhere. A pcap file has one link type, that
 * of its first packet; a pcapng file gets an interface for each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

struct pl_capture_writer {
	int fd;
	bool pcapng, live, started;
	int error; /* the first write that failed; everything after fails with it */
	uint32_t snaplen;
	unsigned int ninterfaces;
	uint8_t interface_of[PL_LINK_MAX]; /* number + 1; 0 = none yet */
	uint8_t *buf;
	size_t len;
};

/* Takes the descriptor over. -EINVAL for a name that promises compression. */
int pl_capture_writer_init(
	struct pl_capture_writer *writer, int fd, const char *name, uint32_t snaplen);

/* How many packets were taken; -EINVAL when the first is of a link type that cannot go there. */
int pl_capture_writer_add(struct pl_capture_writer *writer, const struct pl_batch *batch);

/* Writes what is buffered and closes. The error of any write, or 0. */
int pl_capture_writer_done(struct pl_capture_writer *writer);
