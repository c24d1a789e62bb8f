/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder of a BPF file system in which maps and a program on an interface outlive their process:
 * the names flows, pulses, state, work, and link. */
#pragma once

#include "base/diag.h"

#define PL_PINS_PATH 512

/* Makes the folder, if it is missing. Returns -EINVAL with diag when it is not in a BPF file
 * system; or an errno of the system with diag. */
int pl_pins_folder(const char *folder, struct pl_diag *diag);

/* Writes "FOLDER/NAME" into PL_PINS_PATH bytes. Returns -ENAMETOOLONG. */
int pl_pins_path(char *ret, const char *folder, const char *name);

/* Opens the pinned link and replaces its program. Returns its descriptor; -ENOENT when there is
 * none, or its interface is gone; else negative errno with diag. */
int pl_pins_link(const char *folder, int prog_fd, const char *ifname, struct pl_diag *diag);

/* Pins the link; fd -1: this kernel attached the program without a link. Returns negative errno
 * with diag. */
int pl_pins_keep(const char *folder, int link_fd, struct pl_diag *diag);

/* Removes all pins, and the folder where rights allow it. */
void pl_pins_remove(const char *folder);
