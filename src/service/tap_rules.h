/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of a tap from a file: one rule a line (tap/rules.h), empty lines, and comments after
 * '#'. */
#pragma once

#include "base/diag.h"
#include "tap/rules.h"

/* Appends the file's rules. Returns negative errno with diag, which names the line; *rules is
 * unchanged then. */
int pl_tap_rules_read(struct pl_tap_rules *rules, const char *path, struct pl_diag *diag);
/* Reads the rules again at a reload: from regular files only, because reading a pipe without a
 * writer would block. */
int pl_tap_rules_read_again(struct pl_tap_rules *rules, const char *path, struct pl_diag *diag);
/* Returns -EINVAL with diag when a rule has a condition that this source of a tap cannot check:
 * dir= for drops, contains= for all that give no frames to user space. */
int pl_tap_rules_fit(const struct pl_tap_rules *rules, const char *source, struct pl_diag *diag);
/* True when a rule has contains=: sockets must copy whole packets. */
bool pl_tap_rules_look_inside(const struct pl_tap_rules *rules);
/* Reads the rules of a tap service again, and applies them. When the file has an error, the present
 * rules stay. */
void pl_tap_rules_reload(void *tap);
