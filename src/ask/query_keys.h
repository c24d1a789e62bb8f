/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of a history as people write them. Each returns 0 or -EINVAL. */
#pragma once

#include "memory/history.h"

/* Keys as they come, from the command line or, with a single "-", line by line from standard
 * input. */
struct pl_key_source {
	const char *const *keys;
	size_t n, at;
	char *line;
	size_t room;
	bool failed; /* to read standard input; it was told */
};

/* NULL behind the last; until the next call. */
const char *pl_key_source_next(struct pl_key_source *s);
void pl_key_source_done(struct pl_key_source *s);

/* "10.0.0.1:5000,10.0.0.2:80", "[fd00::1]:5000,[fd00::2]:80", with /tcp, /udp, /icmp or a number
 * behind. Both addresses are of one family, ports may be missing, '>' may stand for ','. The
 * protocol is known if `present` has its bit, else to be tried. */
int pl_query_flow(const char *text, struct pl_path *ret);

/* "NODE", "NODE/PORT", "NODE/PORT/QUEUE" and "NODE", "NODE/REASON": up to n numbers; those that are
 * not given are PL_HISTORY_ANY. */
int pl_query_numbers(const char *text, uint64_t *ret, unsigned int n);
