/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline tail --from NAME.seg192: loss and delay of marked traffic as they are written. */
#pragma once

#include <stdbool.h>

#include "ask/tail_history.h"

/* Whether that is what `from` names. */
bool pl_tail_is_segments(const char *from);
/* Complains; an exit code. */
int pl_tail_segments(const struct pl_tail_history *args);
