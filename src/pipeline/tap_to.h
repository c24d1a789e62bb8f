/* SPDX-License-Identifier: BSD-2-Clause */
/* Which outputs a tap has, by the beginning of their URIs: the configuration and the tap itself refuse
 * others by the same words. */
#pragma once

#include "base/diag.h"

/* -EINVAL with diag: of no known kind, or without the path that its kind has; -ENOTSUP: not in this
 * build. */
int pl_tap_to_check(const char *uri, struct pl_diag *diag);
