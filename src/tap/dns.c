/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes records of DNS messages. */
#include "tap/dns.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

enum { NAME_MAX_BYTES = 255, LABEL_MAX = 63, ANSWERS_MAX = 63, TYPE_A = 1, CLASS_IN = 1 };

#define RESPONSE 0x8000
#define POINTER  0xc0

/* A name as on the wire, in lower case. */
struct name {
	uint8_t bytes[NAME_MAX_BYTES + 1];
	uint32_t len; /* with the root's label */
	uint8_t labels;
	uint32_t domain_at; /* where its last two labels begin */
};

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

/* Reads the first name of a message, without pointers: no earlier name is there to point to. */
static bool read_name(struct pl_cursor *c, struct name *ret)
{
	uint32_t before = 0, last = 0; /* where the two labels before this one begin */

	ret->len = ret->labels = 0;
	for (;;) {
		const uint8_t length = pl_get_u8(c);
		const uint8_t *p = pl_cursor_take(c, length);

		if (c->short_read || p == NULL || length > LABEL_MAX ||
			ret->len + 1u + length > NAME_MAX_BYTES)
			return false;
		if (length > 0) {
			before = last;
			last = ret->len;
			ret->labels++;
		}
		ret->bytes[ret->len++] = length;
		for (uint32_t i = 0; i < length; i++)
			ret->bytes[ret->len++] = lower(p[i]);
		if (length == 0) {
			ret->domain_at = ret->labels > 1 ? before : 0;
			return true;
		}
	}
}

/* Skips a name, which may end with a pointer. */
static bool skip_name(struct pl_cursor *c)
{
	for (uint32_t at = 0; at <= NAME_MAX_BYTES; at++) {
		const uint8_t length = pl_get_u8(c);

		if (c->short_read)
			return false;
		if (length == 0)
			return true;
		if ((length & POINTER) == POINTER) {
			(void)pl_get_u8(c);
			return !c->short_read;
		}
		if (length > LABEL_MAX)
			return false;
		pl_cursor_skip(c, length);
	}
	return false;
}

/* Shannon entropy of the labels' characters, in units of 1/32 bit. */
static uint8_t entropy_of(const struct name *name)
{
	uint32_t count[256] = { 0 }, n = 0;
	double bits = 0;

	for (uint32_t at = 0; at + 1 < name->len; at += name->bytes[at] + 1u) {
		for (uint32_t i = 1; i <= name->bytes[at]; i++, n++)
			count[name->bytes[at + i]]++;
	}
	for (int i = 0; i < 256; i++) {
		if (count[i] > 0)
			bits -= count[i] * log2((double)count[i] / n);
	}
	return n == 0 ? 0 : (uint8_t)lround(bits / n * 32);
}

static uint16_t at_most(uint16_t v, uint16_t most)
{
	return v < most ? v : most;
}

/* Returns the first IPv4 address of the answer section as a number; 0: there is none. */
static uint32_t first_address(struct pl_cursor c, uint16_t answers)
{
	for (uint32_t i = 0; i < answers && i < ANSWERS_MAX; i++) {
		struct pl_cursor data;
		uint16_t type, class;

		if (!skip_name(&c))
			return 0;
		type = pl_get_be16(&c);
		class = pl_get_be16(&c);
		(void)pl_get_be32(&c); /* the time to live */
		data = pl_cursor_split(&c, pl_get_be16(&c));
		if (c.short_read)
			return 0;
		if (type == TYPE_A && class == CLASS_IN && pl_cursor_left(&data) == 4)
			return pl_get_be32(&data);
	}
	return 0;
}

static void set_name(struct pl_dns64 *ret, const struct name *name)
{
	ret->name_hash = (uint32_t)pl_hash(name->bytes, name->len, 0);
	ret->domain_hash =
		(uint32_t)pl_hash(name->bytes + name->domain_at, name->len - name->domain_at, 0);
	ret->name_len = (uint16_t)name->len;
	ret->labels = name->labels;
	ret->entropy = entropy_of(name);
}

bool pl_dns_read(struct pl_dns64 *ret, const struct pl_pkt96 *packet, struct pl_cursor payload)
{
	struct pl_cursor c = payload;
	const uint8_t *p = pl_cursor_take(&c, 12);
	uint16_t questions, answers;
	struct name name;

	if (p == NULL)
		return false;
	questions = pl_be16(p + 4);
	answers = pl_be16(p + 6);
	*ret = (struct pl_dns64){ .ts_ns = packet->ts_ns,
		.id = pl_be16(p),
		.dns_flags = pl_be16(p + 2),
		.counts = (uint16_t)((p[3] & 15) << 12 | at_most(answers, 63) << 6 |
				     at_most(pl_be16(p + 8), 63)) };
	ret->client = (ret->dns_flags & RESPONSE) != 0 ? packet->dst : packet->src;
	ret->server = (ret->dns_flags & RESPONSE) != 0 ? packet->src : packet->dst;
	if (questions > 0) {
		if (!read_name(&c, &name))
			return false;
		set_name(ret, &name);
		ret->qtype = pl_get_be16(&c);
		(void)pl_get_be16(&c); /* the class */
	}
	/* The names of further ones may end with a pointer (RFC 1035 4.1.4). */
	for (uint32_t i = 1; i < questions; i++) {
		if (!skip_name(&c))
			return false;
		pl_cursor_skip(&c, 4);
	}
	if (c.short_read)
		return false;
	ret->answer = first_address(c, answers);
	return true;
}
