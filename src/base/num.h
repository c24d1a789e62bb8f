/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers, quantities and addresses in the forms that people write. Parsers take the whole string
 * or nothing: they return 0, -EINVAL for a wrong form, or -ERANGE for a value that does not fit,
 * and set outputs only on success. They do not depend on the locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

/* Returns the value of a hexadecimal digit, or -1. */
int pl_hex_digit(char c);
/* Returns the byte that %HH at `text` stands for, or -1 when two such digits do not follow. */
int pl_parse_percent(const char *text);

int pl_parse_u64(const char *text, uint64_t *ret);  /* decimal, or 0x hexadecimal */
int pl_parse_double(const char *text, double *ret); /* decimal with optional exponent; finite */

/* Fractions must be exact: 1.5KiB is 1536 bytes, 0.3B is refused. */
int pl_parse_size(const char *text, uint64_t *ret_bytes); /* 4096, 64KiB, 1MiB, 2GiB, 1kB, 1MB */
int pl_parse_duration(
	const char *text, uint64_t *ret_ns); /* 250us, 1.5s, 2m, 1h, 7d, 0; else with unit */
/* Parses a time of the past, since the Unix epoch: a duration before now_ns (10m), or
 * 2026-11-22T01:37:27Z, in UTC with or without the Z, a fraction, the time of day. */
int pl_parse_time(const char *text, uint64_t now_ns, uint64_t *ret_ns);
int pl_parse_rate(const char *text, double *ret_per_s); /* 1000, 10k, 2.5M, 1G, optional "/s" */
int pl_parse_bool(const char *text, bool *ret);         /* true, false, yes, no, on, off */

/* Parses "10.0.0.1", "fd00::1", with optional "[...]". */
int pl_parse_addr(const char *text, struct pl_addr *ret);
/* Parses an address with optional "/len"; without a length it is the whole address. ret_bits counts
 * in 128. Bits behind the length stay as written. */
int pl_parse_prefix(const char *text, struct pl_addr *ret, unsigned int *ret_bits);
/* Parses "host:port", ":port", "[v6]:port"; without a host it is the unspecified address (::).
 * Numeric only. */
int pl_parse_endpoint(const char *text, struct pl_addr *ret, uint16_t *ret_port);

#define PL_ADDR_TEXT_MAX 48
/* Writes "10.0.0.1" or "fd00::1" (RFC 5952), terminated; returns the length. */
size_t pl_format_addr(char dst[PL_ADDR_TEXT_MAX], const struct pl_addr *addr);
/* Format values for people, with three digits: a duration ("999ns", "1.50us", "12.3s", "1m30s",
 * "2h05m", "3d04h") and a count ("842", "48.2k", "3.10M"). Both return the length, at most cap -
 * 1. */
size_t pl_format_duration(char *dst, size_t cap, uint64_t ns);
size_t pl_format_count(char *dst, size_t cap, double value);

#define PL_EXACT_TEXT_MAX 24
/* Format values in the shortest exact form, which the parsers above read back: "64KiB", "1500ms",
 * "0s". */
size_t pl_format_size_exact(char dst[PL_EXACT_TEXT_MAX], uint64_t bytes);
size_t pl_format_duration_exact(char dst[PL_EXACT_TEXT_MAX], uint64_t ns);

/* Entry of `words` (n of them) nearest to `text` by edit distance, or NULL when none is near. */
const char *pl_nearest(const char *text, const char *const *words, size_t n);
