/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stamp that the program in front of an AF_XDP tap writes right before each frame (XDP's metadata),
 * and that the port reads there. Numbers are in the machine's order. */
#pragma once

#include <stdint.h>

#define PL_COLLECT_STAMP UINT64_C(0x504c5354414d5031) /* marks frames of ours until they are read */

struct pl_collect_stamp {
	uint64_t magic;
	uint64_t tai_ns; /* CLOCK_TAI at which the frame entered */
};
