/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values into memory that the caller has measured: the inner part of the text forms. Each function writes
 * at p and returns the place behind; nothing is terminated. PUT_VALUE_MAX bounds what one value takes,
 * quotes included. Private to record/.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/num.h"
#include "record/record.h"

#define PUT_VALUE_MAX (PL_ADDR_TEXT_MAX + 2)

static inline char *put_bytes(char *p, const void *data, size_t n)
{
	memcpy(p, data, n);
	return p + n;
}

static inline char *put_str(char *p, const char *text)
{
	return put_bytes(p, text, strlen(text));
}

static inline char *put_u64(char *p, uint64_t v)
{
	static const char pairs[201] =
		"00010203040506070809101112131415161718192021222324252627282930"
		"31323334353637383940414243444546474849505152535455565758596061"
		"62636465666768697071727374757677787980818283848586878889909192"
		"93949596979899";
	char digits[20];
	unsigned int at = sizeof(digits);

	while (v >= 100) {
		at -= 2;
		memcpy(digits + at, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v >= 10) {
		at -= 2;
		memcpy(digits + at, pairs + v * 2, 2);
	} else {
		digits[--at] = (char)('0' + v);
	}
	return put_bytes(p, digits + at, sizeof(digits) - at);
}

static inline char *put_i64(char *p, int64_t v)
{
	if (v >= 0)
		return put_u64(p, (uint64_t)v);
	*p++ = '-';
	return put_u64(p, -(uint64_t)v);
}

static inline char *put_hex64(char *p, uint64_t v)
{
	for (int shift = 60; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[v >> shift & 15];
	return p;
}

static inline char *put_addr(char *p, const struct pl_addr *addr)
{
	char text[PL_ADDR_TEXT_MAX];

	if (!pl_addr_is_v4(addr))
		return put_bytes(p, text, pl_format_addr(text, addr));
	for (int i = 12; i < 16; i++) {
		p = put_u64(p, addr->b[i]);
		*p++ = '.';
	}
	return p - 1;
}

/* The value of a field as an unsigned integer, whatever its width; not for addresses. */
static inline uint64_t put_load(const struct pl_field *field, const void *record)
{
	const uint8_t *at = (const uint8_t *)record + field->offset;
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (field->form) {
	case PL_FORM_U16:
	case PL_FORM_FLAGS:
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

/* One value, not of form FLAGS. Words, addresses and hexadecimal are between quotes when asked for. */
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

/* Whether the record holds the field. */
static inline bool put_has(const struct pl_field *field, uint32_t present)
{
	return field->present == 0 || (present & field->present) != 0;
}
