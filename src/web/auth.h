/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authentication of clients: names with passwords (bcrypt), tokens. bcrypt is slow on purpose, so
 * it runs in a thread of its own with a short queue, good credentials are remembered (as keyed
 * hashes, a bounded number), and an address that fails too often waits: otherwise wrong passwords
 * could stop the server.
 *
 * pl_auth_begin … finish are called by one thread, the server's; `wake` is called by the checking
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/diag.h"
#include "web/webconf.h"

/* Checks a bcrypt hash ($2a$, $2b$, $2y$) of a cost from 4 to 16. Returns -EINVAL with diag. */
int pl_auth_check_hash(const char *hash, struct pl_diag *diag);

/* Takes "Basic BASE64" apart. Returns 0, or -EINVAL (another scheme, broken, longer than 512
 * bytes). `secret` gets the name, terminated, and *ret_password points to the password behind it.
 * Bytes are unchanged: any but NUL. */
#define PL_AUTH_SECRET_MAX 513
int pl_auth_parse_basic(
	const char *header, char secret[PL_AUTH_SECRET_MAX], const char **ret_password);

/* Compares in a time that depends on the length of `b` only. */
bool pl_auth_equal(const char *a, const char *b);

enum pl_auth_result {
	PL_AUTH_GOOD,
	PL_AUTH_NOTHING, /* no credentials */
	PL_AUTH_BAD,
	PL_AUTH_LATER,   /* too many failures of this address, or too many waiting checks */
	PL_AUTH_PENDING, /* being checked: call pl_auth_finish with the job after `wake` */
};

struct pl_auth;
struct pl_auth_job;

int pl_auth_new(struct pl_auth **ret, void (*wake)(void *arg), void *arg);
void pl_auth_free(struct pl_auth *auth);

/* Hash that a name's password is compared with, and whether a user has that name. Pure except for
 * the key. */
const char *pl_auth_hash_for(
	struct pl_auth *auth, const struct pl_webconf *conf, const char *name, bool *ret_known);

/* Checks an Authorization header (NULL = none). PENDING: *ret_job is for pl_auth_finish once it is
 * done. now_ns is monotonic. */
enum pl_auth_result pl_auth_begin(struct pl_auth *auth, const struct pl_webconf *conf,
	const char *header, const struct pl_addr *address, uint64_t now_ns,
	struct pl_auth_job **ret_job);
bool pl_auth_is_done(const struct pl_auth_job *job);
/* Returns GOOD or BAD and frees the job. Also called for jobs whose client has gone, done or
 * not. */
enum pl_auth_result pl_auth_finish(struct pl_auth *auth, struct pl_auth_job *job, uint64_t now_ns);

/* Forgets all good credentials: the file has changed. */
void pl_auth_forget(struct pl_auth *auth);
