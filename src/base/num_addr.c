/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, prefixes and endpoints as text, read and written. */
#include "base/num.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* The n bytes at text as an address, without brackets. */
static int parse_addr(const char *text, size_t n, struct pl_addr *ret)
{
	char copy[INET6_ADDRSTRLEN];
	uint8_t bytes[16];

	if (n >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, n);
	copy[n] = '\0';
	if (strlen(copy) != n)
		return -EINVAL;
	if (inet_pton(AF_INET, copy, bytes) == 1)
		*ret = pl_addr_v4(bytes);
	else if (inet_pton(AF_INET6, copy, bytes) == 1)
		*ret = pl_addr_v6(bytes);
	else
		return -EINVAL;
	return 0;
}

/* Parses an address with optional brackets, which only an IPv6 form may have. */
static int parse_addr_brackets(const char *text, size_t n, struct pl_addr *ret)
{
	if (n == 0 || text[0] != '[')
		return parse_addr(text, n, ret);
	if (n < 2 || text[n - 1] != ']' || memchr(text, ':', n) == NULL)
		return -EINVAL;
	return parse_addr(text + 1, n - 2, ret);
}

int pl_parse_addr(const char *text, struct pl_addr *ret)
{
	return parse_addr_brackets(text, strlen(text), ret);
}

/* Digits only, no leading zero but for 0 itself. */
static int parse_small(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t v;
	int error;

	if (text[0] == '0' && text[1] != '\0')
		return -EINVAL;
	error = pl_parse_u64(text, &v);
	if (error < 0)
		return error;
	if (v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int pl_parse_prefix(const char *text, struct pl_addr *ret, unsigned int *ret_bits)
{
	const char *slash = strchr(text, '/');
	struct pl_addr addr;
	uint64_t bits = 128;
	bool v4;
	int error;

	error = parse_addr_brackets(
		text, slash != NULL ? (size_t)(slash - text) : strlen(text), &addr);
	if (error < 0)
		return error;
	/* "::ffff:10.0.0.0/104" is written as IPv6, so its length counts in 128 already. */
	v4 = memchr(text, ':', slash != NULL ? (size_t)(slash - text) : strlen(text)) == NULL;
	if (slash != NULL) {
		error = parse_small(slash + 1, v4 ? 32 : 128, &bits);
		if (error < 0)
			return error;
		if (v4)
			bits += 96;
	}
	*ret = addr;
	*ret_bits = (unsigned int)bits;
	return 0;
}

int pl_parse_endpoint(const char *text, struct pl_addr *ret, uint16_t *ret_port)
{
	const char *colon = strrchr(text, ':');
	struct pl_addr addr = { { 0 } };
	uint64_t port;
	int error;

	if (colon == NULL)
		return -EINVAL;
	/* "*" is no host, but every address, as in ":PORT". */
	if (colon != text && !(text[0] == '*' && colon == text + 1)) {
		/* Without brackets the end of an IPv6 address is ambiguous. */
		if (text[0] != '[' && memchr(text, ':', (size_t)(colon - text)) != NULL)
			return -EINVAL;
		error = parse_addr_brackets(text, (size_t)(colon - text), &addr);
		if (error < 0)
			return error;
	}
	error = parse_small(colon + 1, 65535, &port);
	if (error < 0)
		return error;
	*ret = addr;
	*ret_port = (uint16_t)port;
	return 0;
}

static char *put_byte(char *to, uint8_t v)
{
	if (v >= 100)
		*to++ = (char)('0' + v / 100);
	if (v >= 10)
		*to++ = (char)('0' + v / 10 % 10);
	*to++ = (char)('0' + v % 10);
	return to;
}

static char *put_group(char *to, unsigned int v)
{
	bool begun = false;

	for (int shift = 12; shift >= 0; shift -= 4) {
		begun = begun || (v >> shift) != 0 || shift == 0;
		if (begun)
			*to++ = "0123456789abcdef"[(v >> shift) & 15];
	}
	return to;
}

size_t pl_format_addr(char dst[PL_ADDR_TEXT_MAX], const struct pl_addr *addr)
{
	unsigned int group[8];
	int best = -1, best_len = 1; /* RFC 5952 4.2.2: a single zero group stays */
	char *to = dst;

	if (pl_addr_is_v4(addr)) {
		for (int i = 12; i < 16; i++) {
			if (i > 12)
				*to++ = '.';
			to = put_byte(to, addr->b[i]);
		}
		*to = '\0';
		return (size_t)(to - dst);
	}
	for (int i = 0; i < 8; i++)
		group[i] = (unsigned int)addr->b[2 * i] << 8 | addr->b[2 * i + 1];
	for (int i = 0; i < 8; i++) {
		int len = 0;

		while (i + len < 8 && group[i + len] == 0)
			len++;
		if (len > best_len) { /* 4.2.3: the longest, of equals the first */
			best = i;
			best_len = len;
		}
		i += len;
	}
	for (int i = 0; i < 8; i++) {
		if (i == best) {
			*to++ = ':';
			if (i + best_len == 8)
				*to++ = ':';
			i += best_len - 1;
			continue;
		}
		if (i > 0)
			*to++ = ':';
		to = put_group(to, group[i]);
	}
	*to = '\0';
	return (size_t)(to - dst);
}
