/* SPDX-License-Identifier: BSD-2-Clause */
/* Results and errors of libpathline, for its functions. */
#pragma once

#include "base/diag.h"
#include <pathline/base.h>

/* Writes the error in words, with its file if there is one; the code alone without a diag. Returns
 * r. */
int lib_result(int r, const struct pl_diag *diag, struct pathline_error *error);
