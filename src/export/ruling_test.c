/* SPDX-License-Identifier: BSD-2-Clause */
/* Rulings on servers' answers, their texts, and times of retries. sender_test.c tests what follows
 * from a ruling. */
#include "export/ruling.h"

#include "base/test.h"
#include "base/utf8.h"

#define MS UINT64_C(1000000)

static void rule(int status, const char *text, struct pl_ruling *ret)
{
	struct pl_http_answer a = { .status = status };

	a.len = (uint32_t)snprintf(a.body, sizeof(a.body), "%s", text);
	pl_ruling_by_status(&a, ret);
}

static void test_rulings(void)
{
	static const struct {
		int status;
		enum pl_ruling_kind kind;
	} table[] = {
		{ 0, PL_RULING_RETRY },
		{ 100, PL_RULING_RETRY },
		{ 200, PL_RULING_DELIVERED },
		{ 204, PL_RULING_DELIVERED },
		{ 301, PL_RULING_HOLD },
		{ 400, PL_RULING_REFUSED },
		{ 401, PL_RULING_HOLD },
		{ 403, PL_RULING_HOLD },
		{ 404, PL_RULING_HOLD },
		{ 405, PL_RULING_HOLD },
		{ 407, PL_RULING_HOLD },
		{ 408, PL_RULING_RETRY },
		{ 413, PL_RULING_TOO_BIG },
		{ 415, PL_RULING_REFUSED },
		{ 422, PL_RULING_REFUSED },
		{ 425, PL_RULING_RETRY },
		{ 429, PL_RULING_RETRY },
		{ 500, PL_RULING_DOUBTFUL },
		{ 501, PL_RULING_HOLD },
		{ 502, PL_RULING_RETRY },
		{ 503, PL_RULING_RETRY },
		{ 504, PL_RULING_RETRY },
		{ 599, PL_RULING_RETRY },
		{ 999, PL_RULING_RETRY },
		{ -1, PL_RULING_RETRY },
	};
	struct pl_ruling r;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		rule(table[i].status, "", &r);
		eq(r.kind, table[i].kind, "status %d", table[i].status);
	}
}

static void test_words(void)
{
	char words[PL_WORDS_MAX], longer[1000];
	struct pl_ruling r;

	rule(400, "bad\001 \xff value\nmore", &r);
	streq(r.words, "HTTP 400: bad? ? value", "words are one clean line");
	rule(0, "nobody there", &r);
	streq(r.words, "nobody there");
	memset(longer, 'a', sizeof(longer));
	memcpy(longer + PL_WORDS_MAX - 2, "\xc3\xa4", 2);
	pl_words_clean(words, sizeof(words), longer, sizeof(longer));
	eq(strlen(words), PL_WORDS_MAX - 2, "no half character at the end");
	pl_words_clean(words, 4, longer, sizeof(longer));
	streq(words, "aaa", "no more than there is room for");
	pl_words_clean(words, 1, longer, sizeof(longer));
	streq(words, "");
	for (size_t i = 0; i < 4; i++) {
		memset(longer, 'a', sizeof(longer));
		for (size_t k = i; k + 4 < sizeof(longer); k += 4)
			memcpy(longer + k, "\xf0\x9f\x98\x80", 4);
		longer[sizeof(longer) - 1] = '\0';
		rule(503, longer, &r);
		ok(pl_utf8_valid(r.words, strlen(r.words)) && strlen(r.words) > PL_WORDS_MAX - 5,
			"nor behind a status, %zu", i);
	}
	rule(503, "", &r);
	streq(r.words, "HTTP 503");
}

static void test_backoff(void)
{
	struct pl_rng rng;
	bool good = true;

	pl_rng_seed(&rng, 1);
	for (uint32_t n = 1; n < 100; n++) {
		uint64_t top = n < 7 ? 500 * MS << (n - 1) : 30000 * MS, most = 0;

		if (top > 30000 * MS)
			top = 30000 * MS;
		for (unsigned int i = 0; i < 1000; i++) {
			uint64_t w = pl_backoff_ns(n, 500 * MS, 30000 * MS, &rng);

			good = good && w >= 500 * MS / 8 && w <= top;
			most = w > most ? w : most;
		}
		good = good && most > top - top / 8; /* the whole range occurs */
	}
	ok(good, "the wait grows from half a second to 30 s, evenly spread");
	ok(pl_backoff_ns(UINT32_MAX, 1, UINT64_MAX / 4, &rng) <= UINT64_MAX / 4, "no overflow");
}

int main(void)
{
	test_rulings();
	test_words();
	test_backoff();
	return pl_test_done();
}
