/* SPDX-License-Identifier: BSD-2-Clause */
/* Grows, fills and empties a run of bytes. */
#include "base/buf.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_CAP 128

/* The decimal digits of 0 to 99, two characters each. */
static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

void pl_buf_init(struct pl_buf *buf)
{
	*buf = (struct pl_buf){ 0 };
}

void pl_buf_done(struct pl_buf *buf)
{
	free(buf->data);
	pl_buf_init(buf);
}

void pl_buf_reset(struct pl_buf *buf)
{
	buf->len = 0;
	buf->failed = false;
	if (buf->data != NULL)
		buf->data[0] = '\0';
}

char *pl_buf_grow(struct pl_buf *buf, size_t n)
{
	size_t most = buf->limit != 0 ? buf->limit : SIZE_MAX / 4;
	size_t cap;
	char *data;

	if (buf->failed)
		return NULL;
	if (buf->len > most || n > most - buf->len) {
		buf->failed = true;
		return NULL;
	}
	cap = buf->cap < FIRST_CAP ? FIRST_CAP : buf->cap * 2;
	if (cap < buf->len + n + 1)
		cap = buf->len + n + 1;
	if (cap > most + 1)
		cap = most + 1;
	data = realloc(buf->data, cap);
	if (data == NULL) {
		buf->failed = true;
		return NULL;
	}
	buf->data = data;
	buf->cap = cap;
	return data + buf->len;
}

/* Writes the digits of v so that they end before `end`; returns where they begin. */
static char *digits_before(char *end, uint64_t v)
{
	uint32_t w;

	/* Eight digits at a time, so that most divisions are of 32 bits. */
	while (v > UINT32_MAX) {
		uint64_t rest = v / 100000000;

		w = (uint32_t)(v - rest * 100000000);
		for (int i = 0; i < 4; i++, w /= 100) {
			end -= 2;
			memcpy(end, pairs + w % 100 * 2, 2);
		}
		v = rest;
	}
	for (w = (uint32_t)v; w >= 100; w /= 100) {
		end -= 2;
		memcpy(end, pairs + w % 100 * 2, 2);
	}
	if (w >= 10) {
		end -= 2;
		memcpy(end, pairs + w * 2, 2);
	} else {
		*--end = (char)('0' + w);
	}
	return end;
}

void pl_buf_u64(struct pl_buf *buf, uint64_t v)
{
	char digits[20];
	char *end = digits + sizeof(digits);
	char *start = digits_before(end, v);

	pl_buf_add(buf, start, (size_t)(end - start));
}

void pl_buf_i64(struct pl_buf *buf, int64_t v)
{
	char digits[20];
	char *end = digits + sizeof(digits);
	char *start = digits_before(end, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);

	if (v < 0)
		*--start = '-';
	pl_buf_add(buf, start, (size_t)(end - start));
}

void pl_buf_hex64(struct pl_buf *buf, uint64_t v)
{
	char *to = pl_buf_reserve(buf, 16);

	if (to == NULL)
		return;
	for (int i = 15; i >= 0; i--) {
		to[i] = "0123456789abcdef"[v & 15];
		v >>= 4;
	}
	pl_buf_advance(buf, 16);
}

static locale_t c_locale;

static void make_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Numbers of up to six decimals and fifteen digits, which is nearly all of ours. The quotient of
 * two exactly held integers is the double nearest to that decimal, so equality means it reads back;
 * two different decimals of at most fifteen digits never share a double, so it is the shortest one
 * too. */
static bool add_short_double(struct pl_buf *buf, double v)
{
	double scaled = fabs(v) * 1e6;
	uint64_t whole, part, units;
	char text[24];
	char *end = text + sizeof(text), *start;
	int places = 6;

	if (!(scaled < 1e15))
		return false;
	units = (uint64_t)(scaled + 0.5);
	if ((double)units / 1e6 != fabs(v))
		return false;
	whole = units / 1000000;
	part = units % 1000000;
	if (part != 0) {
		for (; part % 10 == 0; part /= 10)
			places--;
		for (; places > 0; places--, part /= 10)
			*--end = (char)('0' + part % 10);
		*--end = '.';
	}
	start = digits_before(end, whole);
	if (signbit(v))
		*--start = '-';
	pl_buf_add(buf, start, (size_t)(text + sizeof(text) - start));
	return true;
}

void pl_buf_double(struct pl_buf *buf, double v)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	locale_t before;
	char text[32];

	if (isnan(v)) {
		pl_buf_str(buf, "NaN");
		return;
	}
	if (isinf(v)) {
		pl_buf_str(buf, v > 0 ? "+Inf" : "-Inf");
		return;
	}
	if (add_short_double(buf, v))
		return;
	/* The thread's own locale, so that no other thread sees the change. */
	pthread_once(&once, make_locale);
	if (c_locale == (locale_t)0) {
		buf->failed = true;
		return;
	}
	before = uselocale(c_locale);
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(text, sizeof(text), "%.*g", precision, v);
		if (strtod(text, NULL) == v)
			break;
	}
	uselocale(before);
	pl_buf_str(buf, text);
}

void pl_buf_printf(struct pl_buf *buf, const char *fmt, ...)
{
	size_t room = buf->cap - buf->len;
	va_list ap;
	int n;

	if (buf->failed)
		return;
	va_start(ap, fmt);
	n = vsnprintf(room > 0 ? buf->data + buf->len : NULL, room, fmt, ap);
	va_end(ap);
	if (n < 0) {
		buf->failed = true;
	} else if ((size_t)n < room) {
		buf->len += (size_t)n;
		return;
	} else if (pl_buf_grow(buf, (size_t)n) != NULL) {
		va_start(ap, fmt);
		vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, ap);
		va_end(ap);
		buf->len += (size_t)n;
		return;
	}
	if (room > 0)
		buf->data[buf->len] = '\0'; /* removes the part that was cut off */
}
