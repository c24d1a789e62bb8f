/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the running kernel's drop reasons, from its BTF: numbers differ from release to
 * release. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "bpf/drops_kernel.h"

#define PL_DROPS_WORD 48 /* bytes of a name; the kernel's longest has 24 characters */

struct pl_drops_names {
	char core[PL_DROPS_CORE][PL_DROPS_WORD];            /* "NO_SOCKET"; empty: no such number */
	char subsystem[PL_DROPS_SUBSYSTEMS][PL_DROPS_WORD]; /* of subsystem 1 on, "openvswitch" */
	uint16_t reason[PL_DROPS_CORE];                     /* enum pl_drop_reason */
	uint16_t subsystem_reason[PL_DROPS_SUBSYSTEMS];
	uint32_t consumed; /* as in struct pl_drops_control */
	bool has_rx_sock;
};

/* Reads the names. Returns -ENOTSUP with diag for a kernel without BTF, or without reasons. what:
 * the name that the text begins with. */
int pl_drops_names_read(struct pl_drops_names *ret, const char *what, struct pl_diag *diag);

/* Returns the record's reason (enum pl_drop_reason) for the kernel's. */
uint16_t pl_drops_names_reason(const struct pl_drops_names *names, uint32_t kernel_reason);
