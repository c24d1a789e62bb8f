/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers, times and sizes as text, read and written; and the word nearest to a wrong one. */
#include "base/num.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct unit {
	const char *name;
	uint64_t factor;
};

/* Largest first: the formatters take the first that divides. */
static const struct unit size_units[] = {
	{ "TiB", 1ull << 40 },
	{ "GiB", 1ull << 30 },
	{ "MiB", 1ull << 20 },
	{ "KiB", 1ull << 10 },
	{ "TB", 1000000000000 },
	{ "GB", 1000000000 },
	{ "MB", 1000000 },
	{ "kB", 1000 },
	{ "B", 1 },
	{ "", 1 },
};

static const struct unit duration_units[] = {
	{ "d", 86400000000000 },
	{ "h", 3600000000000 },
	{ "m", 60000000000 },
	{ "s", 1000000000 },
	{ "ms", 1000000 },
	{ "us", 1000 },
	{ "ns", 1 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int pl_hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int pl_parse_percent(const char *text)
{
	const int high = pl_hex_digit(text[1]);
	const int low = high < 0 ? -1 : pl_hex_digit(text[2]);

	return low < 0 ? -1 : high << 4 | low;
}

int pl_parse_u64(const char *text, uint64_t *ret)
{
	uint64_t base = 10, v = 0;
	bool fits = true;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (*text == '\0')
		return -EINVAL;
	for (; *text != '\0'; text++) {
		int digit = pl_hex_digit(*text);

		if (digit < 0 || (uint64_t)digit >= base)
			return -EINVAL;
		if (__builtin_mul_overflow(v, base, &v) ||
			__builtin_add_overflow(v, (uint64_t)digit, &v))
			fits = false;
	}
	if (!fits)
		return -ERANGE;
	*ret = v;
	return 0;
}

static locale_t c_locale;

static void make_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Reads a decimal number at the start of text; *ret_end is the first byte behind it. */
static int read_double(const char *text, double *ret, const char **ret_end)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *p = text;
	char *end;
	bool digits = false;
	double v;

	/* strtod would also take white space, hexadecimal, infinities and NaN. */
	if (*p == '+' || *p == '-')
		p++;
	for (; is_digit(*p); p++)
		digits = true;
	if (*p == '.') {
		for (p++; is_digit(*p); p++)
			digits = true;
	}
	if (!digits)
		return -EINVAL;
	if (*p == 'e' || *p == 'E') {
		const char *q = p + 1;

		if (*q == '+' || *q == '-')
			q++;
		if (is_digit(*q)) {
			while (is_digit(*q))
				q++;
			p = q;
		}
	}
	pthread_once(&once, make_locale);
	if (c_locale == (locale_t)0)
		return -ENOMEM;
	v = strtod_l(text, &end, c_locale);
	if (end != p)
		return -EINVAL;
	if (!isfinite(v))
		return -ERANGE;
	*ret = v;
	*ret_end = p;
	return 0;
}

int pl_parse_double(const char *text, double *ret)
{
	const char *end;
	double v;
	int error = read_double(text, &v, &end);

	if (error < 0)
		return error;
	if (*end != '\0')
		return -EINVAL;
	*ret = v;
	return 0;
}

/* Parses digits [. digits] unit, exactly. */
static int parse_quantity(const char *text, const struct unit *units, size_t n, uint64_t *ret)
{
	uint64_t whole = 0, part = 0, scale = 1, rest;
	bool fits = true, digits = false, exact = true;
	unsigned __int128 v;

	for (; is_digit(*text); text++) {
		digits = true;
		if (__builtin_mul_overflow(whole, 10u, &whole) ||
			__builtin_add_overflow(whole, (uint64_t)(*text - '0'), &whole))
			fits = false;
	}
	if (!digits)
		return -EINVAL;
	if (*text == '.') {
		if (!is_digit(text[1]))
			return -EINVAL;
		for (text++; is_digit(*text); text++) {
			if (scale <= UINT64_MAX / 100) {
				part = part * 10 + (uint64_t)(*text - '0');
				scale *= 10;
			} else if (*text != '0') {
				exact = false; /* finer than the unit divides */
			}
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		if (!fits)
			return -ERANGE;
		v = (unsigned __int128)part * units[i].factor;
		rest = (uint64_t)(v % scale);
		if (!exact || rest != 0)
			return -EINVAL;
		v = v / scale + (unsigned __int128)whole * units[i].factor;
		if (v > UINT64_MAX)
			return -ERANGE;
		*ret = (uint64_t)v;
		return 0;
	}
	return -EINVAL;
}

int pl_parse_size(const char *text, uint64_t *ret_bytes)
{
	return parse_quantity(text, size_units, COUNT(size_units), ret_bytes);
}

int pl_parse_duration(const char *text, uint64_t *ret_ns)
{
	if (strcmp(text, "0") == 0) {
		*ret_ns = 0;
		return 0;
	}
	return parse_quantity(text, duration_units, COUNT(duration_units), ret_ns);
}

/* ".5" and so on: up to nine digits of a second. */
static int read_fraction(const char **text, uint64_t *ret_ns)
{
	uint64_t scale = 100000000, ns = 0;
	const char *p = *text + 1;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++, scale /= 10)
		ns += scale * (uint64_t)(*p - '0');
	*text = p;
	*ret_ns = ns;
	return 0;
}

int pl_parse_time(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
	struct tm tm = { .tm_year = 0 };
	uint64_t before, ns = 0;
	const char *p;
	time_t s;
	int r = pl_parse_duration(text, &before);

	if (r == 0) {
		*ret_ns = before < now_ns ? now_ns - before : 0;
		return 0;
	}
	p = strptime(text, "%Y-%m-%d", &tm);
	if (r == -ERANGE || p == NULL || !is_digit(text[0]))
		return r;
	if (*p == 'T' || *p == ' ') {
		p = strptime(p + 1, "%H:%M:%S", &tm);
		if (p == NULL || (*p == '.' && read_fraction(&p, &ns) < 0))
			return -EINVAL;
		p += *p == 'Z';
	}
	if (*p != '\0')
		return -EINVAL;
	s = timegm(&tm);
	if (s < 0 || s > (time_t)(INT64_MAX / 1000000000))
		return -ERANGE;
	*ret_ns = (uint64_t)s * 1000000000u + ns;
	return 0;
}

int pl_parse_rate(const char *text, double *ret_per_s)
{
	const char *end;
	double v;
	int error = read_double(text, &v, &end);

	if (error < 0)
		return error;
	if (v < 0)
		return -EINVAL;
	switch (*end) {
	case 'k':
		v *= 1e3;
		end++;
		break;
	case 'M':
		v *= 1e6;
		end++;
		break;
	case 'G':
		v *= 1e9;
		end++;
		break;
	default:
		break;
	}
	if (*end != '\0' && strcmp(end, "/s") != 0)
		return -EINVAL;
	if (!isfinite(v))
		return -ERANGE;
	*ret_per_s = v;
	return 0;
}

int pl_parse_bool(const char *text, bool *ret)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };

	for (size_t i = 0; i < COUNT(words); i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret = i % 2 == 1;
			return 0;
		}
	}
	return -EINVAL;
}

static size_t clipped(int n, size_t cap)
{
	if (n < 0 || cap == 0)
		return 0;
	return (size_t)n < cap ? (size_t)n : cap - 1;
}

/* Formats v thousandths of a unit (cut off, not rounded), v < 1,000,000, in three digits: "1.50",
 * "12.3", "999". */
static int three_digits(char *dst, size_t cap, uint64_t v, const char *unit)
{
	uint64_t h = (v + 5) / 10, t = (v + 50) / 100;

	if (h < 1000)
		return snprintf(dst, cap, "%u.%02u%s", (unsigned int)(h / 100),
			(unsigned int)(h % 100), unit);
	if (t < 1000)
		return snprintf(
			dst, cap, "%u.%u%s", (unsigned int)(t / 10), (unsigned int)(t % 10), unit);
	return snprintf(dst, cap, "%u%s", (unsigned int)((v + 500) / 1000), unit);
}

size_t pl_format_duration(char *dst, size_t cap, uint64_t ns)
{
	uint64_t s = ns / 1000000000 + (ns % 1000000000 >= 500000000);
	uint64_t m = s / 60 + (s % 60 >= 30), h = s / 3600 + (s % 3600 >= 1800);
	int n;

	/* Each bound is the value at which rounding reaches the next unit. */
	if (ns < 1000)
		n = snprintf(dst, cap, ns == 0 ? "0s" : "%uns", (unsigned int)ns);
	else if (ns < 999500)
		n = three_digits(dst, cap, ns, "us");
	else if (ns < 999500000)
		n = three_digits(dst, cap, ns / 1000, "ms");
	else if (ns < 59950000000)
		n = three_digits(dst, cap, ns / 1000000, "s");
	else if (s < 3600)
		n = snprintf(dst, cap, "%um%02us", (unsigned int)(s / 60), (unsigned int)(s % 60));
	else if (m < 1440)
		n = snprintf(dst, cap, "%uh%02um", (unsigned int)(m / 60), (unsigned int)(m % 60));
	else
		n = snprintf(dst, cap, "%ud%02uh", (unsigned int)(h / 24), (unsigned int)(h % 24));
	return clipped(n, cap);
}

size_t pl_format_count(char *dst, size_t cap, double value)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };
	double v = fabs(value);
	size_t unit = 0;
	char digits[16];

	if (!isfinite(value))
		return clipped(snprintf(dst, cap,
				       isnan(value) ? "NaN"
				       : value > 0  ? "+Inf"
						    : "-Inf"),
			cap);
	while (v >= 999.5 && unit + 1 < COUNT(units)) {
		v /= 1000;
		unit++;
	}
	if (v >= 999999)
		return clipped(snprintf(dst, cap, "%.3g", value), cap);
	if (unit == 0 && v == floor(v))
		snprintf(digits, sizeof(digits), "%u", (unsigned int)v);
	else
		three_digits(digits, sizeof(digits), (uint64_t)(v * 1000), units[unit]);
	return clipped(snprintf(dst, cap, "%s%s", value < 0 ? "-" : "", digits), cap);
}

size_t pl_format_size_exact(char dst[PL_EXACT_TEXT_MAX], uint64_t bytes)
{
	for (size_t i = 0; size_units[i].factor % 1024 == 0; i++) {
		if (bytes != 0 && bytes % size_units[i].factor == 0)
			return (size_t)snprintf(dst, PL_EXACT_TEXT_MAX, "%llu%s",
				(unsigned long long)(bytes / size_units[i].factor),
				size_units[i].name);
	}
	return (size_t)snprintf(dst, PL_EXACT_TEXT_MAX, "%llu", (unsigned long long)bytes);
}

size_t pl_format_duration_exact(char dst[PL_EXACT_TEXT_MAX], uint64_t ns)
{
	size_t i = 0;

	if (ns == 0)
		return (size_t)snprintf(dst, PL_EXACT_TEXT_MAX, "0s");
	while (ns % duration_units[i].factor != 0)
		i++;
	return (size_t)snprintf(dst, PL_EXACT_TEXT_MAX, "%llu%s",
		(unsigned long long)(ns / duration_units[i].factor), duration_units[i].name);
}

/* Longer words are not compared, because they are seldom mistyped by only a letter or two. */
#define WORD_MAX 63

static unsigned int lower(char c)
{
	return (unsigned int)(unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
static unsigned int edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned int rows[3][WORD_MAX + 1];
	unsigned int *before = rows[0], *last = rows[1], *now = rows[2], *spare;

	for (size_t j = 0; j <= nb; j++)
		last[j] = (unsigned int)j;
	for (size_t i = 1; i <= na; i++) {
		now[0] = (unsigned int)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned int differ = lower(a[i - 1]) != lower(b[j - 1]);

			now[j] = least(last[j - 1] + differ, least(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
				lower(a[i - 2]) == lower(b[j - 1]))
				now[j] = least(now[j], before[j - 2] + 1);
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[nb];
}

static bool begins(const char *word, const char *text, size_t len)
{
	size_t i = 0;

	while (i < len && lower(word[i]) == lower(text[i]))
		i++;
	return len >= 3 && i == len;
}

const char *pl_nearest(const char *text, const char *const *words, size_t n)
{
	size_t len = strlen(text);
	unsigned int best = UINT_MAX;
	const char *ret = NULL;

	if (len == 0 || len > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t word_len = strlen(words[i]);
		unsigned int d;

		if (word_len > WORD_MAX)
			continue;
		d = edit_distance(text, len, words[i], word_len);
		/* A word of which more than a third differs is not meant, unless it begins
		 * alike. */
		if (d < best && (3 * (size_t)d <= (len > word_len ? len : word_len) ||
					begins(words[i], text, len))) {
			best = d;
			ret = words[i];
		}
	}
	return ret;
}
