/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests in a page: each check prints a TAP line, a failing one prints what it got. A test
 * program is a main() that calls checks and ends with `return pl_test_done();`. Messages are
 * printf forms.
 */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Longest wait of a test for a condition. A wait ends as soon as the condition holds; the limit is
 * for a busy machine under a sanitizer. */
#define PL_TEST_PATIENCE_S  120
#define PL_TEST_PATIENCE_NS (PL_TEST_PATIENCE_S * UINT64_C(1000000000))

/* True when the condition comes to hold in that time. It is checked every half a millisecond; the
 * optional statements run between two checks. */
#define eventually(cond, ...)                                                                      \
	({                                                                                         \
		const uint64_t until_ = pl_clock_mono_ns() + PL_TEST_PATIENCE_NS;                  \
		bool so_;                                                                          \
		while (!(so_ = (cond)) && pl_clock_mono_ns() < until_) {                           \
			__VA_ARGS__;                                                               \
			usleep(500);                                                               \
		}                                                                                  \
		so_;                                                                               \
	})

/*
 * Of tests that draw, whose arguments are [SEED|today [ROUNDS]]: the seed, which is printed, and the
 * number of rounds. Today's is the day as a number, such as 20261130: the same for all runs of a
 * check.
 */
static inline uint64_t pl_test_seed(int argc, char **argv, uint64_t usual)
{
	const time_t now = time(NULL);
	uint64_t seed = usual;
	struct tm day;

	gmtime_r(&now, &day);
	if (argc > 1 && strcmp(argv[1], "today") == 0)
		seed = ((uint64_t)day.tm_year + 1900) * 10000 + ((uint64_t)day.tm_mon + 1) * 100 +
		       (uint64_t)day.tm_mday;
	else if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	printf("# seed %" PRIu64 "\n", seed);
	return seed;
}

static inline unsigned int pl_test_rounds(int argc, char **argv, unsigned int usual)
{
	return argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : usual;
}

/* Puts the bytes of hexadecimal digits, among which there may be blanks; returns their number. */
static inline size_t pl_test_hex(uint8_t *dst, size_t cap, const char *text)
{
	size_t n = 0;
	unsigned int v;

	for (int used; sscanf(text, " %2x%n", &v, &used) == 1; text += used) {
		if (n == cap)
			abort();
		dst[n++] = (uint8_t)v;
	}
	return n;
}

static unsigned int pl_test_run;
static unsigned int pl_test_failed;

/* Flushes each line: a program that is killed, or kills itself, has printed its results. */
__attribute__((constructor)) static void pl_test_begin(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

#define ok(cond, ...) pl_test_check((cond), __FILE__, __LINE__, #cond, "" __VA_ARGS__)
#define eq(got, want, ...)                                                                         \
	pl_test_eq((uint64_t)(got), (uint64_t)(want), __FILE__, __LINE__, #got, "" __VA_ARGS__)
#define streq(got, want, ...) pl_test_streq((got), (want), __FILE__, __LINE__, #got, "" __VA_ARGS__)
#define memeq(got, want, len, ...)                                                                 \
	pl_test_memeq((got), (want), (len), __FILE__, __LINE__, #got, "" __VA_ARGS__)

__attribute__((format(printf, 5, 6), unused)) static bool pl_test_check(
	bool good, const char *file, int line, const char *expr, const char *fmt, ...)
{
	char name[256] = "";
	__builtin_va_list ap;

	__builtin_va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	__builtin_va_end(ap);
	pl_test_run++;
	if (!good)
		pl_test_failed++;
	printf("%s %u - %s\n", good ? "ok" : "not ok", pl_test_run, name[0] != '\0' ? name : expr);
	if (!good)
		printf("# %s:%d: %s\n", file, line, expr);
	return good;
}

__attribute__((format(printf, 6, 7), unused)) static bool pl_test_eq(uint64_t got, uint64_t want,
	const char *file, int line, const char *expr, const char *fmt, ...)
{
	char name[256] = "";
	__builtin_va_list ap;

	__builtin_va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	__builtin_va_end(ap);
	if (pl_test_check(got == want, file, line, expr, "%s", name[0] != '\0' ? name : expr))
		return true;
	printf("# got %" PRIu64 " (%#" PRIx64 "), wanted %" PRIu64 " (%#" PRIx64 ")\n", got, got,
		want, want);
	return false;
}

__attribute__((format(printf, 6, 7), unused)) static bool pl_test_streq(const char *got,
	const char *want, const char *file, int line, const char *expr, const char *fmt, ...)
{
	char name[256] = "";
	__builtin_va_list ap;

	__builtin_va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	__builtin_va_end(ap);
	if (pl_test_check(got != NULL && want != NULL && strcmp(got, want) == 0, file, line, expr,
		    "%s", name[0] != '\0' ? name : expr))
		return true;
	printf("# got    \"%s\"\n# wanted \"%s\"\n", got == NULL ? "(null)" : got,
		want == NULL ? "(null)" : want);
	return false;
}

__attribute__((format(printf, 7, 8), unused)) static bool pl_test_memeq(const void *got,
	const void *want, size_t len, const char *file, int line, const char *expr, const char *fmt,
	...)
{
	char name[256] = "";
	__builtin_va_list ap;

	__builtin_va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	__builtin_va_end(ap);
	if (pl_test_check(memcmp(got, want, len) == 0, file, line, expr, "%s",
		    name[0] != '\0' ? name : expr))
		return true;
	for (size_t i = 0; i < len; i++) {
		if (((const uint8_t *)got)[i] != ((const uint8_t *)want)[i]) {
			printf("# first difference at byte %zu: got %02x, wanted %02x\n", i,
				((const uint8_t *)got)[i], ((const uint8_t *)want)[i]);
			break;
		}
	}
	return false;
}

__attribute__((unused)) static int pl_test_skip(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 77;
}

__attribute__((unused)) static int pl_test_done(void)
{
	printf("1..%u\n", pl_test_run);
	return pl_test_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
