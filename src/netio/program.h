/* SPDX-License-Identifier: BSD-2-Clause */
/* What owners of kernel programs on an interface share: how its frames begin, and what to say when
 * the kernel does not take a program. */
#pragma once

#include <stdint.h>

#include "base/diag.h"

/* *ret_raw: 1: frames begin with IP (a tunnel), 0: with Ethernet. -EINVAL with diag: with something
 * else. */
int pl_program_frames(const char *ifname, uint32_t *ret_raw, struct pl_diag *diag);

/* What loading gave (a negative errno), in words, with what is to be done: -EPERM, which capability
 * is missing; -ENOMEM; -ENOTSUP, the kernel refuses the program. what: "INT in the kernel"; memory:
 * what takes it: "the ring". */
int pl_program_refused(
	int r, const char *ifname, const char *what, const char *memory, struct pl_diag *diag);

/* libbpf says nothing by itself from now on; what it was set to before goes to pl_program_talk. */
typedef void *pl_program_voice;
pl_program_voice pl_program_hush(void);
void pl_program_talk(pl_program_voice before);
