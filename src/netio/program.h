/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers for code that attaches kernel programs to an interface: how frames begin there, and
 * errors for a program that the kernel rejects. */
#pragma once

#include <stdint.h>

#include "base/diag.h"

/* Sets *ret_raw to 1 when frames begin with IP (a tunnel), 0 when with Ethernet. -EINVAL with diag
 * for any other type. */
int pl_program_frames(const char *ifname, uint32_t *ret_raw, struct pl_diag *diag);

/* Describes the error r of loading a program in diag. Returns -EPERM (a capability is missing),
 * -ENOMEM, or -ENOTSUP (the kernel rejects the program). what: the feature, "INT in the kernel";
 * memory: what needs it, "the ring". */
int pl_program_refused(
	int r, const char *ifname, const char *what, const char *memory, struct pl_diag *diag);

/* Silences libbpf's messages. Returns the former setting, for pl_program_talk. */
typedef void *pl_program_voice;
pl_program_voice pl_program_hush(void);
void pl_program_talk(pl_program_voice before);
