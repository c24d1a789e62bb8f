/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws pathline top in a terminal, and reads its keys. It uses attributes (bold, reverse), but no
 * colour, so that it reads the same everywhere.
 */
#pragma once

#include "show/top_view.h"

/* A second table below that of the screen, and another end. */
struct pl_top_below {
	const struct pl_top_screen *screen; /* its columns */
	unsigned int lines;                 /* at most, with the titles */
	json_t *(*rows)(void *arg); /* an array, which the caller releases; NULL: no memory */
	bool (*ends)(void *arg);    /* true: drawing ends. Called ten times a second */
	void *arg;
};

/* Draws until `q` or a signal. Owns the source from then on. `below` may be NULL. Returns an exit
 * code; prints errors. */
int pl_top_draw(struct pl_top_view *v, const struct pl_top_source *source, uint64_t interval_ns,
	const struct pl_top_below *below);
