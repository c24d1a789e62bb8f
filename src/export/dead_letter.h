/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a server refused, as lines of JSON, so that nothing is thrown away unread:
 *   {"time":…,"output":"…","kind":"influx","status":400,"answer":"…","entry":"…"}
 * An entry that is not text stands as "entry_base64". time is seconds since the Unix epoch.
 * Bounded: when the file has reached its size, letters are refused. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct pl_dead_letters;

struct pl_dead_letter {
	uint64_t ts_ns; /* now, since the Unix epoch */
	const char *output, *kind, *answer;
	int status;
	const char *entry;
	size_t len;
};

/* Appends to the file, made with mode 0600 when it is not there. -errno with diag. */
int pl_dead_letters_open(
	struct pl_dead_letters **ret, const char *path, uint64_t max_bytes, struct pl_diag *diag);
void pl_dead_letters_close(struct pl_dead_letters *letters);

/* Whether it was written, whole. */
bool pl_dead_letters_put(struct pl_dead_letters *letters, const struct pl_dead_letter *letter);

/* Lets go of the file and opens it by name again; on failure the old one stays. */
int pl_dead_letters_reopen(struct pl_dead_letters *letters, struct pl_diag *diag);
