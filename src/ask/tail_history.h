/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline tail --from: prints records of a history. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct pl_tail_history {
	const char *from, *since, *where, *form;
	bool events, paths, follow, show_loss;
	uint64_t limit;
	volatile sig_atomic_t *stopped; /* set by a signal */
};

/* Prints the records. Returns an exit code; prints errors. */
int pl_tail_history(const struct pl_tail_history *args);
