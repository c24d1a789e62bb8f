/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes keys, values and sets of nodes as text. */
#include "ask/region_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define NODES_MAX 1000000u

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_hex(const char *text, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		dst[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

static int parse_number(const char *text, const char *form, uint8_t *dst)
{
	uint64_t v;
	uint32_t v32;

	if (pl_parse_u64(text, &v) < 0)
		return -EINVAL;
	if (strcmp(form, "u64") == 0) {
		memcpy(dst, &v, sizeof(v));
		return 0;
	}
	if (v > UINT32_MAX)
		return -EINVAL;
	v32 = strcmp(form, "be32") == 0 ? __builtin_bswap32((uint32_t)v) : (uint32_t)v;
	memcpy(dst, &v32, sizeof(v32));
	return 0;
}

int pl_key_parse(const char *text, const char *form, uint8_t **ret_key, size_t *ret_bytes)
{
	bool plain = strcmp(form, "text") == 0, hex = strcmp(form, "hex") == 0;
	size_t len = strlen(text), bytes = plain ? len : hex ? len / 2 : form[1] == '6' ? 8 : 4;
	uint8_t *key;
	int r = 0;

	if (bytes == 0 || (hex && len % 2 != 0))
		return -EINVAL;
	key = malloc(bytes);
	if (key == NULL)
		return -ENOMEM;
	if (plain)
		memcpy(key, text, len);
	else
		r = hex ? parse_hex(text, key, bytes) : parse_number(text, form, key);
	if (r < 0) {
		free(key);
		return r;
	}
	*ret_key = key;
	*ret_bytes = bytes;
	return 0;
}

/* Reads "7" or "1-100". */
static int parse_range(char *item, uint32_t *values, size_t *n)
{
	char *dash = strchr(item, '-');
	uint64_t first, last;

	if (dash != NULL)
		*dash = '\0';
	if (pl_parse_u64(item, &first) < 0 ||
		pl_parse_u64(dash != NULL ? dash + 1 : item, &last) < 0)
		return -EINVAL;
	if (last < first || last >= PL_POSTCARD_BLANK || last - first >= NODES_MAX - *n)
		return -EINVAL;
	while (first <= last)
		values[(*n)++] = (uint32_t)first++;
	return 0;
}

int pl_nodes_parse(const char *text, struct pl_value_set *ret)
{
	char *copy = strdup(text), *rest = copy, *item;
	uint32_t *values = calloc(NODES_MAX, sizeof(*values));
	size_t n = 0;
	int r = copy == NULL || values == NULL ? -ENOMEM : 0;

	while (r == 0 && (item = strsep(&rest, ",")) != NULL)
		r = parse_range(item, values, &n);
	if (r == 0)
		r = pl_value_set_init(ret, values, n);
	free(values);
	free(copy);
	return r;
}

const char *pl_hex_text(char *dst, const uint8_t *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		dst[2 * i] = digits[bytes[i] >> 4];
		dst[2 * i + 1] = digits[bytes[i] & 15];
	}
	dst[2 * n] = '\0';
	return dst;
}
