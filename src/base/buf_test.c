/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/buf.h"

#include <float.h>
#include <locale.h>
#include <math.h>

#include "base/diag.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/test.h"

static const char *u64(struct pl_buf *buf, uint64_t v)
{
	pl_buf_reset(buf);
	pl_buf_u64(buf, v);
	return buf->data;
}

static void test_integers(struct pl_buf *buf)
{
	struct pl_rng rng;
	uint64_t seed = 20260101;
	bool good = true;
	char want[32];

	streq(u64(buf, 0), "0");
	streq(u64(buf, 9), "9");
	streq(u64(buf, 10), "10");
	streq(u64(buf, 99), "99");
	streq(u64(buf, 100), "100");
	streq(u64(buf, 12345), "12345");
	streq(u64(buf, UINT64_MAX), "18446744073709551615");
	pl_buf_reset(buf);
	pl_buf_i64(buf, INT64_MIN);
	pl_buf_chr(buf, ' ');
	pl_buf_i64(buf, INT64_MAX);
	pl_buf_chr(buf, ' ');
	pl_buf_i64(buf, -1);
	streq(buf->data, "-9223372036854775808 9223372036854775807 -1");
	pl_buf_reset(buf);
	pl_buf_hex64(buf, 0x00ab00000000000fu);
	streq(buf->data, "00ab00000000000f");

	pl_rng_seed(&rng, seed);
	for (int i = 0; i < 100000 && good; i++) {
		uint64_t v = pl_rng_u64(&rng) >> pl_rng_below(&rng, 64);

		snprintf(want, sizeof(want), "%" PRIu64, v);
		good = strcmp(u64(buf, v), want) == 0;
		snprintf(want, sizeof(want), "%" PRId64, (int64_t)v);
		pl_buf_reset(buf);
		pl_buf_i64(buf, (int64_t)v);
		good = good && strcmp(buf->data, want) == 0;
	}
	ok(good, "random integers match printf (seed %" PRIu64 ")", seed);
}

static const char *dbl(struct pl_buf *buf, double v)
{
	pl_buf_reset(buf);
	pl_buf_double(buf, v);
	return buf->data;
}

static void test_doubles(struct pl_buf *buf)
{
	static const struct {
		double v;
		const char *text;
	} rows[] = {
		{ 0, "0" },
		{ -0.0, "-0" },
		{ 1, "1" },
		{ -1.5, "-1.5" },
		{ 0.1, "0.1" },
		{ 0.05, "0.05" },
		{ 100.000001, "100.000001" },
		{ 1e-6, "0.000001" },
		{ 1e-7, "1e-07" },
		{ 123456789.25, "123456789.25" },
		{ 1e15, "1e+15" },
		{ 1e300, "1e+300" },
		{ 5e-324, "4.94065645841247e-324" },
		{ DBL_MAX, "1.7976931348623157e+308" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 9007199254740993.0, "9007199254740992" },
		{ INFINITY, "+Inf" },
		{ -INFINITY, "-Inf" },
		{ NAN, "NaN" },
	};
	struct pl_rng rng;
	uint64_t seed = 7, bits;
	double v = 0, back = 0;
	bool good = true, shortest = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		streq(dbl(buf, rows[i].v), rows[i].text);
	pl_rng_seed(&rng, seed);
	for (int i = 0; i < 200000 && good && shortest; i++) {
		char text[400];
		int p = 1;

		switch (i % 4) {
		case 0:
			bits = pl_rng_u64(&rng);
			memcpy(&v, &bits, sizeof(v));
			break;
		case 1:
			v = (double)pl_rng_below(&rng, 1000000) / 1000;
			break;
		case 2:
			v = pl_rng_unit(&rng) * 1e6;
			break;
		default:
			v = (double)(int64_t)pl_rng_u64(&rng) / 1e6;
			break;
		}
		if (!isfinite(v))
			continue;
		back = strtod(dbl(buf, v), NULL);
		/* The bits, not the value: -0 is to come back as -0. */
		// NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
		good = memcmp(&back, &v, sizeof(v)) == 0;
		if (i % 4 != 1)
			continue;
		do {
			snprintf(text, sizeof(text), "%.*g", p++, v);
		} while (strtod(text, NULL) != v);
		shortest = buf->len <= strlen(text);
	}
	ok(good, "random doubles read back (seed %" PRIu64 ", %a, %a)", seed, v, back);
	ok(shortest, "no shorter form reads back (seed %" PRIu64 ", %a)", seed, v);
}

static void test_locale(struct pl_buf *buf)
{
	/* Not every machine has one; the check is as good as the locales installed. */
	if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL)
		printf("# no locale with a decimal comma here\n");
	streq(dbl(buf, 0.30000000000000004), "0.30000000000000004", "no locale's comma, long form");
	streq(dbl(buf, 2.5), "2.5", "no locale's comma, short form");
	setlocale(LC_ALL, "C");
}

static void test_growth(void)
{
	struct pl_buf buf;
	char big[1000];

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	pl_buf_init(&buf);
	pl_buf_add(&buf, NULL, 0);
	ok(buf.len == 0 && !buf.failed, "nothing added");
	for (int i = 0; i < 100; i++)
		pl_buf_add(&buf, big, sizeof(big) - 1);
	ok(buf.len == 99900 && buf.data[buf.len] == '\0' && strlen(buf.data) == buf.len, "grows");
	pl_buf_reset(&buf);
	streq(buf.data, "", "reset empties");
	pl_buf_printf(&buf, "%s-%d", "a", 5);
	pl_buf_printf(&buf, "%s", big);
	eq(buf.len, 3 + sizeof(big) - 1, "printf grows");
	pl_buf_done(&buf);
	ok(buf.data == NULL && buf.cap == 0, "done");

	buf.limit = 10;
	pl_buf_str(&buf, "12345");
	pl_buf_str(&buf, "67890");
	ok(!buf.failed && buf.len == 10, "the limit itself fits");
	pl_buf_chr(&buf, '!');
	ok(buf.failed, "one more does not");
	streq(buf.data, "1234567890", "and what was there stays");
	ok(pl_buf_reserve(&buf, 0) == NULL, "failure is sticky");
	pl_buf_reset(&buf);
	pl_buf_printf(&buf, "%s", "12345678901");
	ok(buf.failed && buf.len == 0 && buf.data[0] == '\0', "printf over the limit adds nothing");
	pl_buf_u64(&buf, 1);
	pl_buf_double(&buf, 1);
	pl_buf_printf(&buf, "x");
	eq(buf.len, 0, "nor does anything after it");
	pl_buf_reset(&buf);
	ok(!buf.failed, "until reset");
	ok(pl_buf_reserve(&buf, SIZE_MAX) == NULL && buf.failed, "absurd length");
	pl_buf_done(&buf);
}

static const char *str(struct pl_buf *buf, const char *s, size_t n)
{
	struct pl_json json;

	pl_buf_reset(buf);
	pl_json_init(&json, buf);
	pl_json_strn(&json, s, n);
	return buf->data;
}

static void test_json(struct pl_buf *buf)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "", "\"\"" },
		{ "plain", "\"plain\"" },
		{ "a\"b\\c/", "\"a\\\"b\\\\c/\"" },
		{ "\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"" },
		{ "\x01\x1f", "\"\\u0001\\u001f\"" },
		{ "\x7f", "\"\x7f\"" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
			"\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "\xe2\x80\xa8", "\"\xe2\x80\xa8\"" },
		/* replaced: lone continuation, overlong, surrogate, beyond U+10FFFF, cut off */
		{ "\x80", "\"\xef\xbf\xbd\"" },
		{ "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xe2\x82", "\"\xef\xbf\xbd\"" },
		{ "\xe2\x82x", "\"\xef\xbf\xbdx\"" },
		{ "\xf0\x9f\x98\"", "\"\xef\xbf\xbd\\\"\"" },
		{ "\xff", "\"\xef\xbf\xbd\"" },
	};
	struct pl_json json;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		streq(str(buf, rows[i].in, strlen(rows[i].in)), rows[i].out, "json string %zu", i);
	streq(str(buf, "a\0b", 3), "\"a\\u0000b\"", "a zero byte");

	pl_buf_reset(buf);
	pl_json_init(&json, buf);
	pl_json_object(&json);
	pl_json_key(&json, "a");
	pl_json_array(&json);
	pl_json_u64(&json, UINT64_MAX);
	pl_json_i64(&json, -5);
	pl_json_array(&json);
	pl_json_array_end(&json);
	pl_json_null(&json);
	pl_json_bool(&json, true);
	pl_json_array_end(&json);
	pl_json_key(&json, "b\n");
	pl_json_object(&json);
	pl_json_key(&json, "x");
	pl_json_double(&json, 0.5);
	pl_json_key(&json, "nan");
	pl_json_double(&json, NAN);
	pl_json_object_end(&json);
	pl_json_object_end(&json);
	streq(buf->data,
		"{\"a\":[18446744073709551615,-5,[],null,true],\"b\\n\":{\"x\":0.5,\"nan\":null}}");
	eq(json.depth, 0);
}

static void test_diag(void)
{
	struct pl_diag diag = { .file = "a.yaml" };
	char text[900], big[600];

	pl_diag_set(NULL, "nobody listens");
	pl_diag_at(&diag, 3, 7, "unknown key \"%s\"", "x\x1b[31m\xff");
	pl_diag_format(&diag, text, sizeof(text));
	streq(text, "a.yaml:3:7: unknown key \"x?[31m?\"");
	pl_diag_set(&diag, "again: %s", diag.text);
	diag.column = 0;
	pl_diag_format(&diag, text, sizeof(text));
	streq(text, "a.yaml:3: again: unknown key \"x?[31m?\"");
	diag.line = 0;
	pl_diag_set(&diag, "gone");
	pl_diag_format(&diag, text, sizeof(text));
	streq(text, "a.yaml: gone");
	diag.file[0] = '\0';
	eq(pl_diag_format(&diag, text, sizeof(text)), 4);
	streq(text, "gone");
	memset(big, 0xc3, sizeof(big));
	for (size_t i = 1; i < sizeof(big); i += 2)
		big[i] = (char)0xa4;
	big[sizeof(big) - 1] = '\0';
	pl_diag_set(&diag, "%s", big);
	eq(strlen(diag.text), 511, "cut to size");
	ok(diag.text[510] == '?', "a letter cut in half is marked");
}

int main(void)
{
	struct pl_buf buf;

	pl_buf_init(&buf);
	test_integers(&buf);
	test_doubles(&buf);
	test_locale(&buf);
	test_json(&buf);
	pl_buf_done(&buf);
	test_growth();
	test_diag();
	ok(pl_hash_seed() == pl_hash_seed() && pl_hash_seed() != 0, "one seed per process");
	return pl_test_done();
}
