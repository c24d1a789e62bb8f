/* SPDX-License-Identifier: BSD-2-Clause */
/* The terminal of "pathline top". */
#pragma once

/* Returns NULL when standard input and output are a terminal that can be drawn on, else the
 * reason. */
const char *pl_top_no_terminal(void);
