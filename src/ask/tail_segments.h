/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline tail --from NAME.seg192: prints loss and delay of marked traffic as they are written. */
#pragma once

#include <stdbool.h>

#include "ask/tail_history.h"

/* Returns true when `from` names such a file. */
bool pl_tail_is_segments(const char *from);
/* Prints the segments. Returns an exit code; prints errors. */
int pl_tail_segments(const struct pl_tail_history *args);
