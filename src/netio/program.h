/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers for code that loads kernel programs: how frames of an interface begin, errors for a
 * program that the kernel rejects, counters of processors. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/* Sets *ret_raw to 1 when frames begin with IP (a tunnel), 0 when with Ethernet. tunnels: also for
 * the kernel's older kinds of tunnels and PPP. -EINVAL with diag for any other type. */
int pl_program_frames(const char *ifname, bool tunnels, uint32_t *ret_raw, struct pl_diag *diag);

/* Describes the error r of loading a program in diag. Returns -EPERM (one of the capabilities `caps`
 * is missing), -ENOMEM, or -ENOTSUP (the kernel rejects the program). what: the feature, "INT in the
 * kernel"; memory: what needs it, "the ring". */
int pl_program_refused(int r, const char *name, uint64_t caps, const char *what, const char *memory,
	struct pl_diag *diag);

/* Silences libbpf's messages. Returns the former setting, for pl_program_talk. */
typedef void *pl_program_voice;
pl_program_voice pl_program_hush(void);
void pl_program_talk(pl_program_voice before);

/* A map with a value of 64-bit counters for each processor. */
struct pl_each {
	int fd, processors;
	uint8_t *values;
	size_t bytes; /* of a processor's value */
};

/* value_size: bytes of the map's value. -ENOMEM; close it in any case. */
int pl_each_open(struct pl_each *each, int fd, uint32_t value_size);
void pl_each_close(struct pl_each *each);
/* Adds n counters of the value at the key, from the one of number `first` on. Negative errno. */
int pl_each_add(struct pl_each *each, uint32_t key, size_t first, void *into, size_t n);
