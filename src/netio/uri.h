/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses the target and query of a port's URI. Nothing is percent-decoded: hosts, port numbers and
 * the values of our keys need none, and file names are taken as they are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

#define PL_URI_TEXT_MAX   4096
#define PL_URI_PARAMS_MAX 16

struct pl_uri {
	char text[PL_URI_TEXT_MAX]; /* split in place into the strings below */
	const char *target;         /* "HOST:PORT", a file name */
	unsigned int nparams;
	struct {
		const char *key, *value;
	} params[PL_URI_PARAMS_MAX];
};

/* Splits "target?key=value&key=value". With keys NULL there is no query and '?' is an ordinary
 * character. -EINVAL with diag: a text or query that is too long, a key that is not in keys (NULL
 * behind the last), given twice, or without a value. */
int pl_uri_split(
	struct pl_uri *uri, const char *target, const char *const *keys, struct pl_diag *diag);

/* Returns the value of a key, or NULL. */
const char *pl_uri_get(const struct pl_uri *uri, const char *key);

/* Parse the value of a key; *ret stays when the key is not given. -EINVAL with diag when the value
 * is malformed or not between min and max. */
int pl_uri_get_size(const struct pl_uri *uri, const char *key, uint64_t min, uint64_t max,
	uint64_t *ret, struct pl_diag *diag);
/* The same for a given value. */
int pl_uri_read_size(const char *key, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
	struct pl_diag *diag);
int pl_uri_get_bool(const struct pl_uri *uri, const char *key, bool *ret, struct pl_diag *diag);
