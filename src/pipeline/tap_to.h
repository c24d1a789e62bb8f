/* SPDX-License-Identifier: BSD-2-Clause */
/* Kinds of outputs of a tap, by the scheme of their URIs: the configuration and the tap itself
 * refuse others with the same text. */
#pragma once

#include "base/diag.h"

/* Returns -EINVAL with diag for an unknown kind, or without the path it needs; -ENOTSUP when this
 * build lacks the kind. */
int pl_tap_to_check(const char *uri, struct pl_diag *diag);
