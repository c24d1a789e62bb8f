/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dead letters: entries that a server refused, kept as lines of JSON in a file:
 *   {"time":…,"output":"…","kind":"influx","status":400,"answer":"…","entry":"…"}
 * An entry that is not text stands as "entry_base64". time is in seconds since the Unix epoch. The
 * file has a maximum size; at that size, letters are refused. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct pl_dead_letters;

struct pl_dead_letter {
	uint64_t ts_ns; /* current time, since the Unix epoch */
	const char *output, *kind, *answer;
	int status;
	const char *entry;
	size_t len;
};

/* Opens the file for appending; a new one gets mode 0600. -errno with diag. */
int pl_dead_letters_open(
	struct pl_dead_letters **ret, const char *path, uint64_t max_bytes, struct pl_diag *diag);
void pl_dead_letters_close(struct pl_dead_letters *letters);

/* Returns true when the whole letter was written. */
bool pl_dead_letters_put(struct pl_dead_letters *letters, const struct pl_dead_letter *letter);

/* Closes the file and opens it by name again; on failure the old one stays open. */
int pl_dead_letters_reopen(struct pl_dead_letters *letters, struct pl_diag *diag);
