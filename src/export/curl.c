/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends requests with libcurl. */
#include "export/curl.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "export/ruling.h"

#define RETRY_AFTER_MAX_S 300
#define ANSWER_BYTES_MAX  (1 << 20) /* a longer answer ends the request */
#define SECRET_MAX        4096

struct poster {
	CURL *easy;
	CURLM *multi;
	struct curl_slist *headers, *all_headers;
	char *password_file, *token_file, *token_scheme;
	struct pl_http_answer *answer; /* answer of the current request */
	size_t answer_bytes;
	char error[CURL_ERROR_SIZE];
	_Atomic bool aborted;
};

static pthread_once_t curl_made = PTHREAD_ONCE_INIT;

static void make_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* ---- credentials ---- */

/* Appends text to the list; on failure *list is kept, since curl_slist_append frees nothing. */
static int append(struct curl_slist **list, const char *text)
{
	struct curl_slist *longer = curl_slist_append(*list, text);

	if (longer == NULL)
		return -ENOMEM;
	*list = longer;
	return 0;
}

static void forget_headers(struct poster *h)
{
	for (struct curl_slist *l = h->all_headers; l != NULL; l = l->next)
		explicit_bzero(l->data, strlen(l->data));
	curl_slist_free_all(h->all_headers);
	h->all_headers = NULL;
}

static int use_token(struct poster *h, struct pl_diag *diag)
{
	char *token, line[SECRET_MAX + 64];
	struct curl_slist *all = NULL;
	int r = pl_file_read_secret_line(h->token_file, SECRET_MAX, &token, diag);

	if (r < 0)
		return r;
	snprintf(line, sizeof(line), "Authorization: %s %s", h->token_scheme, token);
	pl_file_forget(token);
	r = append(&all, line);
	explicit_bzero(line, sizeof(line));
	for (struct curl_slist *l = h->headers; r == 0 && l != NULL; l = l->next)
		r = append(&all, l->data);
	if (r == 0) {
		curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, all);
		forget_headers(h);
		h->all_headers = all;
	} else {
		curl_slist_free_all(all);
	}
	return r;
}

static int credentials(void *arg, struct pl_diag *diag)
{
	struct poster *h = arg;
	int r = 0;

	if (h->password_file != NULL) {
		char *password;

		r = pl_file_read_secret_line(h->password_file, SECRET_MAX, &password, diag);
		if (r < 0)
			return r;
		curl_easy_setopt(h->easy, CURLOPT_PASSWORD, password); /* curl copies it */
		pl_file_forget(password);
	}
	return h->token_file != NULL ? use_token(h, diag) : r;
}

/* ---- a request ---- */

static size_t take_answer(char *data, size_t size, size_t n, void *arg)
{
	struct poster *h = arg;
	struct pl_http_answer *a = h->answer;
	size_t len = size * n, take = PL_ANSWER_BODY_MAX - a->len;

	h->answer_bytes += len;
	if (h->answer_bytes > ANSWER_BYTES_MAX)
		return 0;
	if (take > len)
		take = len;
	memcpy(a->body + a->len, data, take);
	a->len += (uint32_t)take;
	return len;
}

static int error_of(CURLcode code)
{
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return -EHOSTUNREACH;
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_PARTIAL_FILE:
		return -ECONNRESET;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return -EPROTO;
	default:
		return -EIO;
	}
}

/* Makes the request; -ECANCELED after abort_post. */
static int perform(struct poster *h, CURLcode *ret_code)
{
	int running = 1, r = 0, left;
	CURLMsg *m;

	if (curl_multi_add_handle(h->multi, h->easy) != CURLM_OK)
		return -ENOMEM;
	while (running > 0) {
		if (curl_multi_perform(h->multi, &running) != CURLM_OK) {
			r = -EIO;
			break;
		}
		if (atomic_load(&h->aborted)) {
			r = -ECANCELED;
			break;
		}
		if (running > 0)
			(void)curl_multi_poll(h->multi, NULL, 0, 1000, NULL);
	}
	*ret_code = CURLE_RECV_ERROR;
	while ((m = curl_multi_info_read(h->multi, &left)) != NULL) {
		if (m->msg == CURLMSG_DONE)
			*ret_code = m->data.result;
	}
	curl_multi_remove_handle(h->multi, h->easy);
	return r;
}

static void post(void *arg, const char *body, size_t len, struct pl_http_answer *ret)
{
	struct poster *h = arg;
	CURLcode code = CURLE_OK;
	long status = 0;
	curl_off_t retry_after = 0;
	int r;

	ret->status = 0;
	ret->error = 0;
	ret->retry_after_ns = 0;
	ret->len = 0;
	h->answer = ret;
	h->answer_bytes = 0;
	h->error[0] = '\0';
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	r = atomic_load(&h->aborted) ? -ECANCELED : perform(h, &code);
	if (r == 0 && code != CURLE_OK && code != CURLE_WRITE_ERROR)
		r = error_of(code);
	if (r == 0)
		curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
	if (r == 0 && status > 0) {
		ret->status = (int)status;
		curl_easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &retry_after);
		if (retry_after > RETRY_AFTER_MAX_S)
			retry_after = RETRY_AFTER_MAX_S;
		if (retry_after > 0)
			ret->retry_after_ns = (uint64_t)retry_after * 1000000000u;
	} else {
		/* Without an answer, the body holds the error's text in place of a server's. */
		ret->error = r != 0 ? r : -EIO;
		ret->len = (uint32_t)snprintf(ret->body, sizeof(ret->body), "%s",
			h->error[0] != '\0' ? h->error
			: code != CURLE_OK  ? curl_easy_strerror(code)
			: r == -ECANCELED   ? "given up"
					    : strerror(-ret->error));
	}
	ret->body[ret->len] = '\0';
	h->answer = NULL;
}

static void abort_post(void *arg)
{
	struct poster *h = arg;

	atomic_store(&h->aborted, true);
	curl_multi_wakeup(h->multi);
}

/* ---- addresses ---- */

static bool has_part(CURLU *u, CURLUPart part)
{
	char *text = NULL;
	bool has = curl_url_get(u, part, &text, 0) == CURLUE_OK && text[0] != '\0';

	curl_free(text);
	return has;
}

static const char *url_fault(CURLU *u, const char *url)
{
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return "begins neither with http:// nor with https://";
	if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK || !has_part(u, CURLUPART_HOST))
		return "is not an address of a server";
	if (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD))
		return "contains credentials; use the keys user and password_file, or token_file";
	if (strpbrk(url, "?#") != NULL)
		return "has a query or a fragment";
	for (const char *c = url; *c != '\0'; c++) {
		if ((unsigned char)*c <= 0x20 || *c == 0x7f)
			return "has a space or a control character in it";
	}
	return NULL;
}

int pl_curl_url_check(const char *url, struct pl_diag *diag)
{
	CURLU *u = curl_url();
	const char *fault;

	if (u == NULL)
		return -ENOMEM;
	fault = url_fault(u, url);
	curl_url_cleanup(u);
	if (fault == NULL)
		return 0;
	/* The text itself is not quoted: it may contain a password. */
	return pl_diag_fail(diag, -EINVAL, "the url %s", fault);
}

/* ---- life ---- */

static void poster_free(void *arg)
{
	struct poster *h = arg;

	if (h == NULL)
		return;
	if (h->easy != NULL)
		curl_easy_cleanup(h->easy);
	if (h->multi != NULL)
		curl_multi_cleanup(h->multi);
	forget_headers(h);
	curl_slist_free_all(h->headers);
	free(h->password_file);
	free(h->token_file);
	free(h->token_scheme);
	free(h);
}

static int copy(char **ret, const char *text)
{
	if (text == NULL)
		return 0;
	*ret = strdup(text);
	return *ret != NULL ? 0 : -ENOMEM;
}

static int set_headers(struct poster *h, const struct pl_sender_options *o)
{
	int r = append(&h->headers, "Expect:"); /* saves the round trip of a 100-continue */

	if (r == 0)
		r = append(&h->headers, "Connection: close");

	for (const char *const *line = o->headers; r == 0 && line != NULL && *line != NULL; line++)
		r = append(&h->headers, *line);
	if (r == 0 && o->gzip)
		r = append(&h->headers, "Content-Encoding: gzip");
	curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, h->headers);
	return r;
}

/* Checks the TLS files, because the errors of libcurl about them come late and are unclear. */
static int check_files(const struct pl_sender_options *o, struct pl_diag *diag)
{
	const char *const paths[] = { o->ca_file, o->cert_file, o->key_file };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char *text;
		size_t len;
		int r = paths[i] != NULL ? pl_file_read_secret(paths[i], 4 << 20, &text, &len)
					 : -ENODATA;

		if (r == -ENODATA)
			continue;
		if (r < 0) {
			pl_diag_set(
				diag, "cannot read %s: %s", paths[i], pl_file_secret_trouble(r));
			return r == -EKEYREJECTED ? -EINVAL : r;
		}
		explicit_bzero(text, len);
		free(text);
	}
	return 0;
}

static int set_options(struct poster *h, const struct pl_sender_options *o, struct pl_diag *diag)
{
	CURL *e = h->easy;
	long timeout_ms = (long)(o->timeout_ns / 1000000u);

	if (curl_easy_setopt(e, CURLOPT_URL, o->url) != CURLE_OK)
		return -ENOMEM;
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_POST, 1L);
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms < 5000 ? timeout_ms : 5000L);
	curl_easy_setopt(e, CURLOPT_USERAGENT, "pathline/" PL_VERSION);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, h->error);
	/* A second answer on a connection would be taken for the next request's. */
	curl_easy_setopt(e, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
	curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (o->ca_file != NULL)
		curl_easy_setopt(e, CURLOPT_CAINFO, o->ca_file);
	if (o->cert_file != NULL)
		curl_easy_setopt(e, CURLOPT_SSLCERT, o->cert_file);
	if (o->key_file != NULL)
		curl_easy_setopt(e, CURLOPT_SSLKEY, o->key_file);
	if (o->insecure) {
		curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (o->user != NULL) {
		curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(e, CURLOPT_USERNAME, o->user);
	}
	return check_files(o, diag);
}

int pl_curl_new(void **ret, const struct pl_sender_options *o, struct pl_diag *diag)
{
	struct poster *h = calloc(1, sizeof(*h));
	int r;

	if (h == NULL)
		return -ENOMEM;
	pthread_once(&curl_made, make_curl);
	h->easy = curl_easy_init();
	h->multi = curl_multi_init();
	r = h->easy != NULL && h->multi != NULL ? 0 : -ENOMEM;
	if (r == 0)
		r = copy(&h->password_file, o->password_file);
	if (r == 0)
		r = copy(&h->token_file, o->token_file);
	if (r == 0)
		r = copy(&h->token_scheme, o->token_scheme != NULL ? o->token_scheme : "Bearer");
	if (r == 0)
		r = set_headers(h, o);
	if (r == 0)
		r = set_options(h, o, diag);
	if (r == 0)
		r = credentials(h, diag);
	if (r < 0) {
		poster_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

const struct pl_transport pl_curl_transport = {
	.post = post,
	.abort = abort_post,
	.credentials = credentials,
	.free = poster_free,
};
