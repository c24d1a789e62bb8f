/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who asks: names with passwords (bcrypt), tokens. bcrypt is slow by purpose, so it runs in a
 * thread of its own with a short queue, what was found good is remembered (as a keyed hash, a
 * bounded number of them), and an address that fails too often waits: otherwise wrong passwords
 * would be a means to stop the server.
 *
 * pl_auth_begin … finish are one thread's, the server's; `wake` is called by the checking thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/diag.h"
#include "web/webconf.h"

/* A bcrypt hash ($2a$, $2b$, $2y$) of a cost from 4 to 16. -EINVAL with diag. */
int pl_auth_check_hash(const char *hash, struct pl_diag *diag);

/* "Basic BASE64" taken apart: 0, or -EINVAL (another scheme, broken, longer than 512 bytes).
 * `secret` holds the name, terminated, and *ret_password points behind it. Bytes are those sent:
 * any but NUL. */
#define PL_AUTH_SECRET_MAX 513
int pl_auth_parse_basic(
	const char *header, char secret[PL_AUTH_SECRET_MAX], const char **ret_password);

/* The time it takes depends on the length of `b` only. */
bool pl_auth_equal(const char *a, const char *b);

enum pl_auth_result {
	PL_AUTH_GOOD,
	PL_AUTH_NOTHING, /* no credentials */
	PL_AUTH_BAD,
	PL_AUTH_LATER,   /* too many failures of this address, or too many checks waiting */
	PL_AUTH_PENDING, /* being checked: ask with the job when woken */
};

struct pl_auth;
struct pl_auth_job;

int pl_auth_new(struct pl_auth **ret, void (*wake)(void *arg), void *arg);
void pl_auth_free(struct pl_auth *auth);

/* Pure but for the key: the hash that a name's password is compared with, and whether somebody has
 * that name. */
const char *pl_auth_hash_for(
	struct pl_auth *auth, const struct pl_webconf *conf, const char *name, bool *ret_known);

/* Looks at an Authorization header (NULL = none). PENDING: *ret_job, to be given to pl_auth_finish
 * once it is done. now_ns is monotonic. */
enum pl_auth_result pl_auth_begin(struct pl_auth *auth, const struct pl_webconf *conf,
	const char *header, const struct pl_addr *address, uint64_t now_ns,
	struct pl_auth_job **ret_job);
bool pl_auth_is_done(const struct pl_auth_job *job);
/* GOOD or BAD; the job is gone. Also to be called for jobs whose asker is gone, done or not. */
enum pl_auth_result pl_auth_finish(struct pl_auth *auth, struct pl_auth_job *job, uint64_t now_ns);

/* Everything good is forgotten: the file has changed. */
void pl_auth_forget(struct pl_auth *auth);
