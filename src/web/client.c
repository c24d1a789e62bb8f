/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a daemon over HTTP, with curl. */
#include "web/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/buf.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/utf8.h"

#define DEFAULT_URL "http://127.0.0.1:8400"

enum {
	ANSWER_MAX = 16 << 20,
	SECRET_MAX = 4096,
	CONNECT_MS = 5000,
	ANSWER_MS = 15000,
};

struct pl_client {
	CURL *curl;
	char *url;    /* for the user */
	char *base;   /* prefix of paths */
	char *socket; /* NULL = TCP */
	char *secret; /* "NAME:PASSWORD" */
	char *token;
	struct pl_client_args args;
	char error[CURL_ERROR_SIZE];
	struct pl_buf body;
	/* For a stream. */
	bool (*data)(void *arg, const char *bytes, size_t n);
	void *arg;
	const volatile int *stop;
	void (*tick)(void *arg); /* for a stream; NULL: none */
	void *tick_arg;
	bool streaming, began, ended;
};

const char *pl_client_url(const struct pl_client *client)
{
	return client->url;
}

static int read_secret(const char *path, char **ret, struct pl_diag *diag)
{
	return pl_file_read_secret_line(path, SECRET_MAX, ret, diag) < 0 ? PL_EXIT_FAILED : 0;
}

static int read_secrets(struct pl_client *c, struct pl_diag *diag)
{
	const struct pl_client_args *a = &c->args;
	char *password;
	int r;

	if ((a->user != NULL) != (a->password_file != NULL))
		return pl_diag_fail(diag, PL_EXIT_USAGE,
			"--user needs --password-file, and --password-file needs --user");
	if (a->user != NULL) {
		r = read_secret(a->password_file, &password, diag);
		if (r != 0)
			return r;
		if (asprintf(&c->secret, "%s:%s", a->user, password) < 0)
			c->secret = NULL;
		pl_file_forget(password);
		if (c->secret == NULL)
			return PL_EXIT_FAILED;
	}
	return a->token_file != NULL ? read_secret(a->token_file, &c->token, diag) : 0;
}

static int take_url(struct pl_client *c, struct pl_diag *diag)
{
	const char *url = c->args.url;
	size_t n;

	if (url == NULL)
		url = getenv(
			"PATHLINE_URL"); // NOLINT(concurrency-mt-unsafe): nobody here calls setenv
	if (url == NULL || url[0] == '\0')
		url = DEFAULT_URL;
	c->url = strdup(url);
	if (c->url == NULL)
		return PL_EXIT_FAILED;
	if (strncmp(url, "unix:", 5) == 0) {
		c->socket = strdup(url + 5);
		c->base = strdup("http://localhost");
		return c->socket != NULL && c->base != NULL ? 0 : PL_EXIT_FAILED;
	}
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return pl_diag_fail(diag, PL_EXIT_USAGE,
			"\"%s\" does not begin with http://, https:// or unix:", url);
	/* ps and messages would show a password in a URL. */
	if (strchr(url, '@') != NULL)
		return pl_diag_fail(diag, PL_EXIT_USAGE,
			"the URL must not contain credentials: use --user and --password-file");
	c->base = strdup(url);
	if (c->base == NULL)
		return PL_EXIT_FAILED;
	for (n = strlen(c->base); n > 0 && c->base[n - 1] == '/'; n--)
		c->base[n - 1] = '\0';
	return 0;
}

int pl_client_new(struct pl_client **ret, const struct pl_client_args *args, struct pl_diag *diag)
{
	struct pl_client *c = calloc(1, sizeof(*c));
	int r;

	pl_diag_set(diag, "not enough memory");
	if (c == NULL)
		return PL_EXIT_FAILED;
	c->args = *args;
	pl_buf_init(&c->body);
	r = take_url(c, diag);
	if (r == 0)
		r = read_secrets(c, diag);
	if (r == 0) {
		curl_global_init(CURL_GLOBAL_DEFAULT);
		c->curl = curl_easy_init();
		if (c->curl == NULL)
			r = PL_EXIT_FAILED;
	}
	if (r != 0) {
		pl_client_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void pl_client_free(struct pl_client *c)
{
	if (c == NULL)
		return;
	if (c->curl != NULL)
		curl_easy_cleanup(c->curl);
	pl_buf_done(&c->body);
	pl_file_forget(c->secret);
	pl_file_forget(c->token);
	free(c->url);
	free(c->base);
	free(c->socket);
	free(c);
}

/* ---- one request ---- */

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
	struct pl_client *c = arg;
	long status = 0;

	(void)size;
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (c->streaming && status == 200) {
		c->began = true;
		if (c->data(c->arg, data, n))
			return n;
		c->ended = true;
		return 0;
	}
	pl_buf_add(&c->body, data, n);
	return c->body.failed ? 0 : n;
}

static int on_progress(
	void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
	struct pl_client *c = arg;

	(void)total;
	(void)now;
	(void)up_total;
	(void)up_now;
	if (c->tick != NULL)
		c->tick(c->tick_arg);
	return c->stop != NULL && *c->stop != 0;
}

static void set_options(struct pl_client *c, const char *url)
{
	CURL *h = c->curl;

	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, c->error);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, c->streaming ? 0L : (long)ANSWER_MS);
	curl_easy_setopt(h, CURLOPT_USERAGENT, "pathline/" PL_VERSION);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(h, CURLOPT_XFERINFODATA, c);
	/* A daemon that sends nothing, not even "alive", is taken for ended. */
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, 30L);
	curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, c->socket);
	if (c->socket != NULL)
		curl_easy_setopt(h, CURLOPT_PROXY, "");
	if (c->args.ca != NULL) {
		curl_easy_setopt(h, CURLOPT_CAINFO, c->args.ca);
		curl_easy_setopt(h, CURLOPT_CAPATH, NULL);
	}
	curl_easy_setopt(h, CURLOPT_SSLCERT, c->args.cert);
	curl_easy_setopt(h, CURLOPT_SSLKEY, c->args.key);
	if (c->secret != NULL) {
		curl_easy_setopt(h, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		curl_easy_setopt(h, CURLOPT_USERPWD, c->secret);
	} else if (c->token != NULL) {
		curl_easy_setopt(h, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		curl_easy_setopt(h, CURLOPT_XOAUTH2_BEARER, c->token);
	}
}

/* Reports the daemon's own text, when it sent any. */
static void say_refusal(struct pl_client *c, long status, struct pl_diag *diag)
{
	json_t *problem = c->body.len > 0 ? json_loadb(c->body.data, c->body.len, 0, NULL) : NULL;
	const char *detail = problem != NULL ? pl_json_member_text(problem, "detail") : "";
	char text[400];

	if (detail[0] != '\0')
		pl_diag_set(diag, "%s", pl_client_text(text, sizeof(text), detail));
	else
		pl_diag_set(diag, "%s answers with status %ld", c->url, status);
	if (problem != NULL)
		json_decref(problem);
}

static int exit_of_status(long status)
{
	switch (status) {
	case 400:
		return PL_EXIT_USAGE;
	case 401:
	case 403:
		return PL_EXIT_PRIVILEGE;
	case 429:
	case 502: /* from a proxy whose daemon is being restarted, as 504 */
	case 503:
	case 504:
		return PL_EXIT_UNAVAILABLE;
	default:
		return PL_EXIT_FAILED;
	}
}

/* Sends the request. Returns 0 with the answer, else an exit code with diag. */
static int perform(struct pl_client *c, const char *path, struct pl_diag *diag)
{
	char *url;
	CURLcode r;
	long status = 0;

	if (asprintf(&url, "%s%s", c->base, path) < 0)
		return PL_EXIT_FAILED;
	pl_buf_reset(&c->body);
	c->body.limit = ANSWER_MAX;
	c->error[0] = '\0';
	c->began = c->ended = false;
	set_options(c, url);
	r = curl_easy_perform(c->curl);
	free(url);
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (c->ended || (c->stop != NULL && *c->stop != 0))
		return 0;
	if (c->body.failed)
		return pl_diag_fail(diag, PL_EXIT_FAILED, "%s: the answer is larger than %d MiB",
			c->url, ANSWER_MAX >> 20);
	if (r != CURLE_OK) {
		pl_diag_set(diag, "%s: %s", c->url,
			c->error[0] != '\0' ? c->error : curl_easy_strerror(r));
		return r == CURLE_SSL_CERTPROBLEM || r == CURLE_SSL_CACERT_BADFILE
			       ? PL_EXIT_FAILED
			       : PL_EXIT_UNAVAILABLE;
	}
	if (status != 200) {
		say_refusal(c, status, diag);
		return exit_of_status(status);
	}
	return 0;
}

static json_t *integer_of(const json_t *v)
{
	const double real = json_is_real(v) ? json_real_value(v) : 0.5;

	return real > -9.007e15 && real < 9.007e15 && real == (double)(json_int_t)real
		       ? json_integer((json_int_t)real)
		       : NULL;
}

/* Converts reals of JSON_DECODE_INT_AS_REAL back to integers, as far as that is exact. */
static void make_integers(json_t *v)
{
	const char *key;
	json_t *member, *other;
	size_t i;

	json_array_foreach(v, i, member)
	{
		other = integer_of(member);
		if (other != NULL)
			(void)json_array_set_new(v, i, other);
		else
			make_integers(member);
	}
	json_object_foreach(v, key, member)
	{
		other = integer_of(member);
		if (other != NULL)
			(void)json_object_set_new(v, key, other);
		else
			make_integers(member);
	}
}

json_t *pl_client_json(const char *text, size_t len)
{
	json_error_t error;
	json_t *got = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);

	if (got != NULL || json_error_code(&error) != json_error_numeric_overflow)
		return got;
	got = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
	if (got != NULL)
		make_integers(got);
	return got;
}

int pl_client_get(struct pl_client *c, const char *path, json_t **ret, struct pl_diag *diag)
{
	json_t *got;
	int r;

	c->streaming = false;
	c->stop = NULL;
	r = perform(c, path, diag);
	if (r != 0)
		return r;
	got = c->body.len > 0 ? pl_client_json(c->body.data, c->body.len) : NULL;
	if (!json_is_object(got)) {
		if (got != NULL)
			json_decref(got);
		return pl_diag_fail(diag, PL_EXIT_FAILED,
			"%s does not answer like a pathline daemon; is another program listening there?",
			c->url);
	}
	*ret = got;
	return 0;
}

void pl_client_set_tick(struct pl_client *c, void (*tick)(void *arg), void *arg)
{
	c->tick = tick;
	c->tick_arg = arg;
}

int pl_client_stream(struct pl_client *c, const char *path,
	bool (*data)(void *arg, const char *bytes, size_t n), void *arg, const volatile int *stop,
	bool *ret_began, struct pl_diag *diag)
{
	int r;

	c->streaming = true;
	c->data = data;
	c->arg = arg;
	c->stop = stop;
	r = perform(c, path, diag);
	*ret_began = c->began;
	c->streaming = false;
	c->stop = NULL;
	return r;
}

/* ---- texts ---- */

bool pl_client_parameter(char *dst, size_t cap, const char *name, const char *value)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
	size_t n = strlen(dst);
	int r = snprintf(dst + n, cap - n, "%c%s=", strchr(dst, '?') != NULL ? '&' : '?', name);

	if (r < 0 || (size_t)r >= cap - n)
		return false;
	for (n += (size_t)r; *value != '\0'; value++) {
		if (n + 4 > cap)
			return false;
		if (strchr(plain, *value) != NULL)
			dst[n++] = *value;
		else
			n += (size_t)snprintf(dst + n, cap - n, "%%%02X", (unsigned char)*value);
	}
	dst[n] = '\0';
	return true;
}

uint64_t pl_json_member_u64(const json_t *object, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(object, key));

	return v > 0 ? (uint64_t)v : 0;
}

const char *pl_json_member_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

bool pl_json_member_bool(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

/* Returns true for control characters (C0, DEL, C1) and characters that change the direction of
 * text or have no width. */
static bool unfit(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0xad ||
	       (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
	       (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || (cp >= 0xfff9 && cp <= 0xfffb) ||
	       (cp >= 0xe0000 && cp <= 0xe0fff);
}

char *pl_client_text(char *dst, size_t cap, const char *text)
{
	size_t left = strlen(text), n = 0, len;
	uint32_t cp;

	while (left > 0) {
		bool good = pl_utf8_next(text, left, &len, &cp) && !unfit(cp);

		if (n + (good ? len : 1) >= cap)
			break;
		if (good)
			memcpy(dst + n, text, len);
		else
			dst[n] = '?';
		n += good ? len : 1;
		text += len;
		left -= len;
	}
	dst[n] = '\0';
	return dst;
}

static void add_escape(struct pl_buf *dst, uint32_t cp)
{
	if (cp < 0x10000)
		pl_buf_printf(dst, "\\u%04x", (unsigned int)cp);
	else
		pl_buf_printf(dst, "\\u%04x\\u%04x",
			(unsigned int)(0xd800 + ((cp - 0x10000) >> 10)),
			(unsigned int)(0xdc00 + ((cp - 0x10000) & 0x3ff)));
}

void pl_client_line(struct pl_buf *dst, const char *line, size_t n, bool json)
{
	while (n > 0) {
		uint32_t cp = 0xfffd;
		size_t len;
		bool good = pl_utf8_next(line, n, &len, &cp);

		if ((good && !unfit(cp)) || *line == '\t' || *line == '\n')
			pl_buf_add(dst, line, len);
		else if (json)
			add_escape(dst, good ? cp : 0xfffd);
		else
			pl_buf_chr(dst, '?');
		line += len;
		n -= len;
	}
}
