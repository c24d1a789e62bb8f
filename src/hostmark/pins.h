/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder of a BPF file system in which maps and a program on an interface outlive the process that
 * made them: the names flows, pulses, state, work, and link. */
#pragma once

#include "base/diag.h"

#define PL_PINS_PATH 512

/* Makes the folder, if need be. -EINVAL with diag: it is in no BPF file system; or the system's
 * errno with diag. */
int pl_pins_folder(const char *folder, struct pl_diag *diag);

/* "FOLDER/NAME" into PL_PINS_PATH bytes. -ENAMETOOLONG. */
int pl_pins_path(char *ret, const char *folder, const char *name);

/* The link that is pinned there, with the program in the place of the one that it had: its
 * descriptor. -ENOENT: there is none, or its interface is gone; else negative errno with diag. */
int pl_pins_link(const char *folder, int prog_fd, const char *ifname, struct pl_diag *diag);

/* Pins the link; fd -1: this kernel attached the program without one. Negative errno with diag. */
int pl_pins_keep(const char *folder, int link_fd, struct pl_diag *diag);

/* Takes all of them away, and the folder where rights allow it. */
void pl_pins_remove(const char *folder);
