/* SPDX-License-Identifier: BSD-2-Clause */
/* The terminal of "pathline top". */
#pragma once

/* NULL when standard input and output are a terminal that can be drawn on, else why not. */
const char *pl_top_no_terminal(void);
