/* SPDX-License-Identifier: BSD-2-Clause */
#include "web/auth.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"
#include "base/test.h"

static void hashes(void)
{
	static const struct {
		const char *hash;
		bool good;
	} rows[] = {
		{ "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi", true },
		{ "$2a$04$abcdefghijklmnopqrstuu5s6RwtlnY4pjl3rITeZjYVw7xGm.SSa", true },
		{ "$2b$16$abcdefghijklmnopqrstuu5s6RwtlnY4pjl3rITeZjYVw7xGm.SSa", true },
		{ "$2b$17$abcdefghijklmnopqrstuu5s6RwtlnY4pjl3rITeZjYVw7xGm.SSa", false },
		{ "$2b$03$abcdefghijklmnopqrstuu5s6RwtlnY4pjl3rITeZjYVw7xGm.SSa", false },
		{ "$2x$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi", false },
		{ "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeS", false },
		{ "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeS!", false },
		{ "$6$abc$def", false },
		{ "password", false },
		{ "", false },
	};
	struct pl_diag diag = { .text = "" };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		eq(pl_auth_check_hash(rows[i].hash, &diag) == 0, rows[i].good, "%s", rows[i].hash);
}

static void headers(void)
{
	static const struct {
		const char *header, *name, *password; /* name NULL: refused */
	} rows[] = {
		{ "Basic cHJvbTpzM2NyZXQ=", "prom", "s3cret" },
		{ "basic  cHJvbTpzM2NyZXQ= ", "prom", "s3cret" },
		{ "Basic cHJvbTo=", "prom", "" },
		{ "Basic OnB3", "", "pw" },
		{ "Basic YTpiOmM=", "a", "b:c" },
		{ "Basic cHJvbQ==", NULL, NULL },         /* no colon */
		{ "Basic cHJvbTpzM2NyZXQ", NULL, NULL },  /* no padding */
		{ "Basic cHJvbTpzM2N=ZXQ=", NULL, NULL }, /* padding within */
		{ "Basic cHJv bTpzM2NyZXQ=", NULL, NULL },
		{ "Basic YToAYg==", NULL, NULL }, /* a NUL */
		{ "Basic =", NULL, NULL },
		{ "Basic ====", NULL, NULL },
		{ "Basic ", NULL, NULL },
		{ "Basic", NULL, NULL },
		{ "Bearer cHJvbTpzM2NyZXQ=", NULL, NULL },
		{ "", NULL, NULL },
	};
	char secret[PL_AUTH_SECRET_MAX], longer[800] = "Basic ";
	const char *password;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int r = pl_auth_parse_basic(rows[i].header, secret, &password);

		eq(r == 0, rows[i].name != NULL, "header %zu", i);
		if (r == 0 && rows[i].name != NULL) {
			streq(secret, rows[i].name);
			streq(password, rows[i].password);
		}
	}
	memset(longer + 6, 'A', 700);
	ok(pl_auth_parse_basic(longer, secret, &password) < 0, "longer than there is room for");
	eq(pl_auth_equal("abc", "abc"), true);
	eq(pl_auth_equal("abc", "abd"), false);
	eq(pl_auth_equal("abcabc", "abc"), false);
	eq(pl_auth_equal("abc", "abcabc"), false);
	eq(pl_auth_equal("", "a"), false);
	eq(pl_auth_equal("", ""), true);
}

static _Atomic unsigned int wakes;

static void wake(void *arg)
{
	(void)arg;
	atomic_fetch_add(&wakes, 1);
}

static void base64(const char *text, char *dst)
{
	static const char abc[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i += 3) {
		unsigned int w = (unsigned int)(unsigned char)text[i] << 16 |
				 (i + 1 < n ? (unsigned int)(unsigned char)text[i + 1] << 8 : 0) |
				 (i + 2 < n ? (unsigned char)text[i + 2] : 0);

		*dst++ = abc[w >> 18 & 63];
		*dst++ = abc[w >> 12 & 63];
		*dst++ = i + 1 < n ? abc[w >> 6 & 63] : '=';
		*dst++ = i + 2 < n ? abc[w & 63] : '=';
	}
	*dst = '\0';
}

static enum pl_auth_result ask(struct pl_auth *a, const struct pl_webconf *conf, const char *pair,
	const char *from, uint64_t now, bool *ret_checked)
{
	char header[256] = "Basic ";
	struct pl_auth_job *job = NULL;
	struct pl_addr addr;
	enum pl_auth_result r;

	eq(pl_parse_addr(from, &addr), 0);
	base64(pair, header + 6);
	r = pl_auth_begin(a, conf, header, &addr, now, &job);
	*ret_checked = r == PL_AUTH_PENDING;
	if (r != PL_AUTH_PENDING)
		return r;
	while (!pl_auth_is_done(job))
		usleep(1000);
	return pl_auth_finish(a, job, now);
}

static void checks(void)
{
	struct pl_web_user users[] = { { (char *)"prom", NULL } };
	struct pl_webconf conf = { .users = users,
		.n_users = 1,
		.tokens = { (char *)"0123456789abcdef" },
		.n_tokens = 1 };
	const uint64_t s = 1000000000u;
	struct pl_diag diag = { .text = "" };
	struct pl_auth_job *jobs[40];
	struct pl_addr addr;
	struct pl_auth *a;
	unsigned int pending = 0, later = 0;
	bool checked;

	/* htpasswd's, of "s3cret". */
	users[0].hash = (char *)"$2b$10$/FtAsghZnS.WTE88iRLKDeJYGMm3qh99gFnkzqhR3zB2Eqfx1jSN.";
	eq(pl_auth_check_hash(users[0].hash, &diag), 0);
	eq(pl_auth_new(&a, wake, NULL), 0);
	eq(pl_parse_addr("10.0.0.9", &addr), 0);
	eq(pl_auth_begin(a, &conf, NULL, &addr, s, &jobs[0]), PL_AUTH_NOTHING);
	eq(ask(a, &conf, "prom:s3cret", "10.0.0.1", s, &checked), PL_AUTH_GOOD);
	eq(checked, true);
	eq(ask(a, &conf, "prom:s3cret", "10.0.0.2", s, &checked), PL_AUTH_GOOD);
	eq(checked, false, "remembered");
	eq(ask(a, &conf, "prom:s3cret", "10.0.0.2", 700 * s, &checked), PL_AUTH_GOOD);
	eq(checked, true, "for ten minutes");
	pl_auth_forget(a);
	eq(ask(a, &conf, "prom:s3cret", "10.0.0.2", 700 * s, &checked), PL_AUTH_GOOD);
	eq(checked, true, "until the file changes");
	ok(atomic_load(&wakes) == 3, "woken for every check");
	eq(ask(a, &conf, "prom:S3cret", "10.0.0.3", 701 * s, &checked), PL_AUTH_BAD);
	eq(ask(a, &conf, "prom:", "10.0.0.3", 701 * s, &checked), PL_AUTH_BAD);
	eq(ask(a, &conf, "nobody:s3cret", "10.0.0.3", 701 * s, &checked), PL_AUTH_BAD);
	eq(checked, true, "an unknown name takes as long");
	eq(ask(a, &conf, "nobody:fakepassword", "10.0.0.3", 701 * s, &checked), PL_AUTH_BAD);
	eq(pl_auth_begin(a, &conf, "Bearer 0123456789abcdef", &addr, s, &jobs[0]), PL_AUTH_GOOD);
	eq(pl_auth_begin(a, &conf, "Bearer 0123456789abcdeg", &addr, s, &jobs[0]), PL_AUTH_BAD);
	eq(pl_auth_begin(a, &conf, "Bearer ", &addr, s, &jobs[0]), PL_AUTH_BAD);
	eq(pl_auth_begin(a, &conf, "Digest x", &addr, s, &jobs[0]), PL_AUTH_BAD);
	/* Ten failures at once, then one a second. */
	for (unsigned int i = 0; i < 7; i++)
		eq(pl_auth_begin(a, &conf, "Basic x", &addr, s, &jobs[0]), PL_AUTH_BAD);
	eq(pl_auth_begin(a, &conf, "Basic x", &addr, s, &jobs[0]), PL_AUTH_LATER);
	eq(pl_auth_begin(a, &conf, "Bearer 0123456789abcdef", &addr, s, &jobs[0]), PL_AUTH_LATER,
		"nor are good ones looked at: that would be a way to try them");
	eq(pl_auth_begin(a, &conf, "Bearer 0123456789abcdef", &addr, 3 * s, &jobs[0]),
		PL_AUTH_GOOD);
	eq(ask(a, &conf, "prom:s3cret", "10.0.0.4", 701 * s, &checked), PL_AUTH_GOOD,
		"another address");
	/* A queue that is full refuses; who goes away is no trouble. */
	for (unsigned int i = 0; i < 40; i++) {
		char header[64] = "Basic ", pair[32];
		enum pl_auth_result r;

		snprintf(pair, sizeof(pair), "prom:x%u", i);
		base64(pair, header + 6);
		eq(pl_parse_addr("10.0.1.1", &addr), 0);
		r = pl_auth_begin(a, &conf, header, &addr, 702 * s, &jobs[pending]);
		pending += r == PL_AUTH_PENDING;
		later += r == PL_AUTH_LATER;
	}
	ok(pending + later == 40 && later > 0 && pending >= 16, "%u wait, %u may not", pending,
		later);
	for (unsigned int i = 0; i < pending; i++)
		eq(pl_auth_finish(a, jobs[i], 702 * s), PL_AUTH_BAD);
	pl_auth_free(a);
}

/* A name that nobody has is compared with a hash that costs what a user's does, the same one each
 * time. */
static void unknown_names(void)
{
	struct pl_web_user users[] = {
		{ (char *)"prom",
			(char *)"$2b$12$/FtAsghZnS.WTE88iRLKDeJYGMm3qh99gFnkzqhR3zB2Eqfx1jSN." },
		{ (char *)"root",
			(char *)"$2b$05$/FtAsghZnS.WTE88iRLKDeJYGMm3qh99gFnkzqhR3zB2Eqfx1jSN." },
	};
	struct pl_webconf conf = { .users = users, .n_users = 2 };
	unsigned int seen[2] = { 0, 0 };
	struct pl_auth *a;
	bool known, good = true;

	eq(pl_auth_new(&a, wake, NULL), 0);
	ok(pl_auth_hash_for(a, &conf, "root", &known) == users[1].hash && known, "a user's own");
	for (unsigned int i = 0; i < 200; i++) {
		const char *hash;
		char name[16];

		snprintf(name, sizeof(name), "nobody%u", i);
		hash = pl_auth_hash_for(a, &conf, name, &known);
		good = good && !known && hash == pl_auth_hash_for(a, &conf, name, &known);
		for (unsigned int k = 0; k < 2; k++)
			seen[k] += hash == users[k].hash;
	}
	ok(good && seen[0] + seen[1] == 200, "nobody's: one of the users', always the same");
	ok(seen[0] > 50 && seen[1] > 50, "each as often (%u, %u)", seen[0], seen[1]);
	pl_auth_free(a);
}

int main(void)
{
	hashes();
	headers();
	checks();
	unknown_names();
	return pl_test_done();
}
