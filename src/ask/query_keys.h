/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads keys of a history from text. Parsers return 0 or -EINVAL. */
#pragma once

#include "memory/history.h"

/* Source of keys: the command line or, with a single "-", lines of standard input. */
struct pl_key_source {
	const char *const *keys;
	size_t n, at;
	char *line;
	size_t room;
	bool failed; /* reading standard input failed, which was reported */
};

/* Returns the next key, valid until the next call; NULL behind the last. */
const char *pl_key_source_next(struct pl_key_source *s);
void pl_key_source_done(struct pl_key_source *s);

/* "10.0.0.1:5000,10.0.0.2:80", "[fd00::1]:5000,[fd00::2]:80", with /tcp, /udp, /icmp or a number
 * behind. Both addresses are of one family, ports may be missing, '>' may stand for ','. The
 * protocol is known if `present` has its bit; else the caller tries several. */
int pl_query_flow(const char *text, struct pl_path *ret);

/* Reads "NODE", "NODE/PORT", "NODE/PORT/QUEUE" or "NODE", "NODE/REASON": up to n numbers; missing
 * ones are PL_HISTORY_ANY. */
int pl_query_numbers(const char *text, uint64_t *ret, unsigned int n);
