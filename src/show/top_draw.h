/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The screen of pathline top in a terminal, and its keys. Only attributes (bold, reverse), never
 * colour, carry anything, so that it reads the same everywhere.
 */
#pragma once

#include "show/top_view.h"

/* Draws until `q` or a signal. Takes the source over. An exit code; complains. */
int pl_top_draw(struct pl_top_view *v, const struct pl_top_source *source, uint64_t interval_ns);
