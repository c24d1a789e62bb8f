/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws pathline top in a terminal, and reads its keys. It uses attributes (bold, reverse), but no
 * colour, so that it reads the same everywhere.
 */
#pragma once

#include "show/top_view.h"

/* Draws until `q` or a signal. Owns the source from then on. Returns an exit code; complains. */
int pl_top_draw(struct pl_top_view *v, const struct pl_top_source *source, uint64_t interval_ns);
