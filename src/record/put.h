/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing values into memory of measured size: the inner part of the text forms. Each function
 * writes at p and returns the place behind; nothing is terminated. PUT_VALUE_MAX bounds the bytes
 * that one value may touch, quotes included: numbers are written in whole words and so a little
 * beyond their end. For formatters in record/ and export/. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/num.h"
#include "record/record.h"

#define PUT_VALUE_MAX (PL_ADDR_TEXT_MAX + 2)
/* Bound for the forms TEXT and BYTES. */
#define PUT_LONG_MAX  (2 * PL_BYTES_TOLD + 8)

static inline char *put_bytes(char *p, const void *data, size_t n)
{
	memcpy(p, data, n);
	return p + n;
}

static inline char *put_str(char *p, const char *text)
{
	return put_bytes(p, text, strlen(text));
}

/* Makes the eight decimal digits of v < 10^8 as bytes 0 to 9, the first digit in the lowest byte:
 * halves, quarters and digits are divided side by side in the lanes of one word. 10486 / 2^20 and
 * 103 / 2^10 are 1/100 and 1/10, exact for all values of their lanes (forms_test.c tries all). */
static inline uint64_t put_digits8(uint32_t v)
{
	uint64_t x = v / 10000 | (uint64_t)(v % 10000) << 32;
	uint64_t q = (x * 10486 >> 20) & 0x0000007f0000007fu;

	x = q | (x - 100 * q) << 16;
	q = (x * 103 >> 10) & 0x000f000f000f000fu;
	return q | (x - 10 * q) << 8;
}

/* Writes v < 10^8 without leading zeros. Touches eight bytes, whatever the number of digits. */
static inline char *put_u27(char *p, uint32_t v)
{
	uint64_t x = put_digits8(v);
	unsigned int zeros = (unsigned int)__builtin_ctzll(x | UINT64_C(1) << 56) / 8;

	x = (x + 0x3030303030303030u) >> 8 * zeros;
	memcpy(p, &x, 8);
	return p + 8 - zeros;
}

static inline char *put_8_digits(char *p, uint32_t v)
{
	uint64_t x = put_digits8(v) + 0x3030303030303030u;

	memcpy(p, &x, 8);
	return p + 8;
}

static inline char *put_u64(char *p, uint64_t v)
{
	const uint64_t unit = 100000000;

	if (v < unit)
		return put_u27(p, (uint32_t)v);
	if (v < unit * unit) {
		p = put_u27(p, (uint32_t)(v / unit));
	} else {
		p = put_u27(p, (uint32_t)(v / unit / unit));
		p = put_8_digits(p, (uint32_t)(v / unit % unit));
	}
	return put_8_digits(p, (uint32_t)(v % unit));
}

static inline char *put_i64(char *p, int64_t v)
{
	if (v >= 0)
		return put_u64(p, (uint64_t)v);
	*p++ = '-';
	return put_u64(p, -(uint64_t)v);
}

/* Writes eight hexadecimal digits: each nibble goes into a byte of its own, then all become letters
 * at once. */
static inline char *put_hex32(char *p, uint32_t v)
{
	uint64_t x = __builtin_bswap32(v), above_nine;

	x = (x | x << 16) & 0x0000ffff0000ffffu;
	x = (x | x << 8) & 0x00ff00ff00ff00ffu;
	x = (x >> 4 | x << 8) & 0x0f0f0f0f0f0f0f0fu;
	above_nine = (x + 0x0606060606060606u) >> 4 & 0x0101010101010101u;
	x += 0x3030303030303030u + above_nine * ('a' - '0' - 10);
	memcpy(p, &x, 8);
	return p + 8;
}

static inline char *put_hex64(char *p, uint64_t v)
{
	return put_hex32(put_hex32(p, (uint32_t)(v >> 32)), (uint32_t)v);
}

static inline char *put_addr(char *p, const struct pl_addr *addr)
{
	char text[PL_ADDR_TEXT_MAX];

	if (!pl_addr_is_v4(addr)) {
		size_t len = pl_format_addr(text, addr);

		return put_bytes(p, text, len);
	}
	for (int i = 12; i < 16; i++) {
		p = put_u27(p, addr->b[i]);
		*p++ = '.';
	}
	return p - 1;
}

/* Writes two hexadecimal digits for each byte. */
static inline char *put_told(char *p, const struct pl_bytes32 *told)
{
	static const char digits[] = "0123456789abcdef";
	unsigned int n = told->n < PL_BYTES_TOLD ? told->n : PL_BYTES_TOLD;

	for (unsigned int i = 0; i < n; i++) {
		*p++ = digits[told->b[i] >> 4];
		*p++ = digits[told->b[i] & 15];
	}
	return p;
}

/* Reads the value of a field as an unsigned integer, whatever its width; not for addresses. */
static inline uint64_t put_load(const struct pl_field *field, const void *record)
{
	const uint8_t *at = (const uint8_t *)record + field->offset;
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (field->form) {
	case PL_FORM_U16:
	case PL_FORM_FLAGS:
	case PL_FORM_DROP_REASON:
		memcpy(&v16, at, sizeof(v16));
		return v16;
	case PL_FORM_U32:
	case PL_FORM_PRESENT:
		memcpy(&v32, at, sizeof(v32));
		return v32;
	case PL_FORM_U64:
	case PL_FORM_S64:
	case PL_FORM_HEX64:
		memcpy(&v64, at, sizeof(v64));
		return v64;
	default:
		return *at;
	}
}

/* Writes a text of a record, which may come from outside: at most `most` characters, and '?' for
 * each that would need quotes somewhere. */
static inline char *put_plain(char *p, const char *text, unsigned int most)
{
	for (unsigned int i = 0; i < most && text[i] != '\0'; i++)
		*p++ = pl_text_plain(text[i]) ? text[i] : '?';
	return p;
}

/* Writes one value, not of form FLAGS. Words, addresses and hexadecimal are between quotes if
 * `quoted`. */
static inline char *put_value(
	char *p, const struct pl_field *field, const void *record, bool quoted)
{
	const char *word;
	uint64_t v;

	switch (field->form) {
	case PL_FORM_U8:
	case PL_FORM_U16:
	case PL_FORM_U32:
	case PL_FORM_U64:
		return put_u64(p, put_load(field, record));
	case PL_FORM_S64:
		return put_i64(p, (int64_t)put_load(field, record));
	case PL_FORM_ADDR:
		if (quoted)
			*p++ = '"';
		p = put_addr(p, (const struct pl_addr *)((const uint8_t *)record + field->offset));
		break;
	case PL_FORM_HEX64:
		if (quoted)
			*p++ = '"';
		p = put_hex64(p, put_load(field, record));
		break;
	case PL_FORM_TEXT:
		if (quoted)
			*p++ = '"';
		p = put_plain(p, (const char *)record + field->offset,
			field->text_bytes != 0 ? field->text_bytes - 1u : PL_TEXT_TOLD);
		break;
	case PL_FORM_BYTES:
		if (quoted)
			*p++ = '"';
		p = put_told(p, (const void *)((const uint8_t *)record + field->offset));
		break;
	default:
		v = put_load(field, record);
		word = pl_form_word((enum pl_form)field->form, (unsigned int)v);
		if (word == NULL)
			return put_u64(p, v);
		if (quoted)
			*p++ = '"';
		p = put_str(p, word);
		break;
	}
	if (quoted)
		*p++ = '"';
	return p;
}

/* True when the record holds the field. */
static inline bool put_has(const struct pl_field *field, const void *record, uint32_t present)
{
	if (field->present != 0)
		return (present & field->present) != 0;
	return !field->time || put_load(field, record) != 0;
}
