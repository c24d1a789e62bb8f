/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP client of a daemon, shared by top, tail and status. Over TCP, TLS or the daemon's Unix
 * socket; by password, token or client certificate. Secrets come from files only. One thread.
 *
 * Answers are bounded (16 MiB, 16 levels) and untrusted: their text reaches a terminal only through
 * pl_client_text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/opt.h"

struct pl_client_args {
	const char *url, *ca, *cert, *key, *user, *password_file, *token_file;
};

/* Rows for an option table; a is a struct pl_client_args of static storage, zeroed before
 * parsing. */
#define PL_CLIENT_ARGS(a)                                                                          \
	{ PL_OPT_HEADING, 0, "Which daemon", NULL, NULL, NULL, NULL },                             \
		{ PL_OPT_STRING, 0, "url", &(a).url, "URL",                                        \
			"http://, https:// or unix:PATH (default: $PATHLINE_URL, else "            \
			"http://127.0.0.1:8400)",                                                  \
			NULL },                                                                    \
		{ PL_OPT_STRING, 0, "ca", &(a).ca, "FILE",                                         \
			"trust certificates signed by these instead of the system's", NULL },      \
		{ PL_OPT_STRING, 0, "cert", &(a).cert, "FILE", "client certificate to present",    \
			NULL },                                                                    \
		{ PL_OPT_STRING, 0, "key", &(a).key, "FILE",                                       \
			"private key of the client certificate", NULL },                           \
		{ PL_OPT_STRING, 0, "user", &(a).user, "NAME", "user name, with --password-file",  \
			NULL },                                                                    \
		{ PL_OPT_STRING, 0, "password-file", &(a).password_file, "FILE",                   \
			"file whose first line is the password", NULL },                           \
	{                                                                                          \
		PL_OPT_STRING, 0, "token-file", &(a).token_file, "FILE",                           \
			"file whose first line is the bearer token", NULL                          \
	}

struct pl_client;

/* Makes a client; sends nothing yet. Returns 0, or an exit code with diag. */
int pl_client_new(struct pl_client **ret, const struct pl_client_args *args, struct pl_diag *diag);
void pl_client_free(struct pl_client *client);

/* URL as given, without credentials; for the user. */
const char *pl_client_url(const struct pl_client *client);

/*
 * GETs a document and its object. Returns 0; else an exit code with diag: PL_EXIT_UNAVAILABLE (no
 * answer), PL_EXIT_PRIVILEGE (401, 403), PL_EXIT_USAGE (400: the daemon does not understand the
 * request), PL_EXIT_FAILED. The caller releases *ret.
 */
/* Parses a document with numbers up to 2^64 - 1: numbers beyond the largest json_int_t, and in such
 * a document also those beyond 2^53, are reals. NULL: not JSON. */
json_t *pl_client_json(const char *text, size_t len);

int pl_client_get(struct pl_client *client, const char *path, json_t **ret, struct pl_diag *diag);

/*
 * GETs a stream without end: data is called with the bytes that come, until it returns false, *stop
 * is set (by a signal's handler), or the stream ends. Returns 0 when it ended in order, else as
 * above. *ret_began: bytes came.
 */
int pl_client_stream(struct pl_client *client, const char *path,
	bool (*data)(void *arg, const char *bytes, size_t n), void *arg, const volatile int *stop,
	bool *ret_began, struct pl_diag *diag);

/* Sets a function that is called while waiting for an answer, about once a second or more often. */
void pl_client_set_tick(struct pl_client *client, void (*tick)(void *arg), void *arg);

/* Appends "where=…" and the like, encoded, to dst; the first one begins with "?". Returns false
 * when it does not fit. */
bool pl_client_parameter(char *dst, size_t cap, const char *name, const char *value);

/* Members of an untrusted object: a missing one, or one of another type, is 0, "" or NULL. */
uint64_t pl_json_member_u64(const json_t *object, const char *key);
const char *pl_json_member_text(const json_t *object, const char *key);
bool pl_json_member_bool(const json_t *object, const char *key);

/* Makes untrusted text fit for a terminal: control characters, broken and invisible UTF-8 become
 * "?". Terminated, cut to cap - 1 bytes at a character. Returns dst. */
char *pl_client_text(char *dst, size_t cap, const char *text);
/* As pl_client_text for a line of a stream, whose tabs and end stay. json: such characters become
 * escapes, which mean the same in JSON. */
void pl_client_line(struct pl_buf *dst, const char *line, size_t n, bool json);
