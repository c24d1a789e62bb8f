/* SPDX-License-Identifier: BSD-2-Clause */
/* Results and errors of libpathline, for its functions. */
#pragma once

#include "base/diag.h"
#include <pathline/base.h>

/* Says in words what failed, with the file where there is one; the code alone where nobody said
 * more. Returns r. */
int lib_result(int r, const struct pl_diag *diag, struct pathline_error *error);
