/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of a tap from a file: a rule in a line (tap/rules.h), empty lines, and lines that begin
 * with '#', which say something to people. */
#pragma once

#include "base/diag.h"
#include "tap/rules.h"

/* Adds the file's rules behind those that are there. Negative errno with diag, which names the
 * line; *rules is then as before. */
int pl_tap_rules_read(struct pl_tap_rules *rules, const char *path, struct pl_diag *diag);
/* The same while something else waits: of a regular file only, as a pipe may have no writer any more. */
int pl_tap_rules_read_again(struct pl_tap_rules *rules, const char *path, struct pl_diag *diag);
/* -EINVAL with diag: they have a direction (dir=), which drops have not. */
int pl_tap_rules_fit_drops(const struct pl_tap_rules *rules, struct pl_diag *diag);
