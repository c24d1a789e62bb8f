/* SPDX-License-Identifier: BSD-2-Clause */
/* Which capabilities this process lacks, in words for a person. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PL_CAP_NET_ADMIN (UINT64_C(1) << 12)
#define PL_CAP_NET_RAW   (UINT64_C(1) << 13)
#define PL_CAP_PERFMON   (UINT64_C(1) << 38)
#define PL_CAP_BPF       (UINT64_C(1) << 39)

/* Of those wanted (PL_CAP_*) the ones that are not in effect. Where that cannot be told, none. */
uint64_t pl_caps_missing(uint64_t wanted);

/* "CAP_NET_ADMIN, CAP_BPF"; "" for none. Returns dst. */
const char *pl_caps_text(uint64_t caps, char *dst, size_t cap);
