/* SPDX-License-Identifier: BSD-2-Clause */
/* The capabilities that this process lacks, as bits and by name. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PL_CAP_NET_ADMIN (UINT64_C(1) << 12)
#define PL_CAP_NET_RAW   (UINT64_C(1) << 13)
#define PL_CAP_PERFMON   (UINT64_C(1) << 38)
#define PL_CAP_BPF       (UINT64_C(1) << 39)

/* Returns the wanted capabilities (PL_CAP_*) that are not in effect; 0 where /proc does not
 * tell. */
uint64_t pl_caps_missing(uint64_t wanted);

/* Writes names as in "CAP_NET_ADMIN, CAP_BPF", "" for none. Returns dst. */
const char *pl_caps_text(uint64_t caps, char *dst, size_t cap);
