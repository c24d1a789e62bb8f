/* SPDX-License-Identifier: BSD-2-Clause */
/* Random packets for a tap: tags, labels, extension headers, fragments, options, and what is wrong
 * with each of them; as many cut short. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct tap_dice {
	uint64_t state;
};

static inline uint32_t roll(struct tap_dice *d, uint32_t sides)
{
	d->state = d->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(d->state >> 33) % sides;
}

struct tap_packet {
	uint8_t bytes[512];
	uint32_t len;
};

static inline void put8(struct tap_packet *p, uint32_t v)
{
	if (p->len < sizeof(p->bytes))
		p->bytes[p->len++] = (uint8_t)v;
}

static inline void put16(struct tap_packet *p, uint32_t v)
{
	put8(p, v >> 8);
	put8(p, v);
}

static inline void put32(struct tap_packet *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p, v);
}

static inline void put_random(struct tap_packet *p, struct tap_dice *d, uint32_t n)
{
	while (n-- > 0)
		put8(p, roll(d, 256));
}

static inline void set16(struct tap_packet *p, uint32_t at, uint32_t v)
{
	if (at + 1 >= sizeof(p->bytes))
		return;
	p->bytes[at] = (uint8_t)(v >> 8);
	p->bytes[at + 1] = (uint8_t)v;
}

/* Mostly right, some of any kind and length. */
static inline void put_options(struct tap_packet *p, struct tap_dice *d, uint32_t bytes)
{
	const uint32_t room = sizeof(p->bytes) - p->len,
		       end = p->len + (bytes < room ? bytes : room);

	while (p->len < end) {
		switch (roll(d, 8)) {
		case 0:
			put8(p, 0);
			break;
		case 1:
			put16(p, 0x0204);
			put16(p, roll(d, 65536));
			break;
		case 2:
			put16(p, 0x080a);
			put_random(p, d, 8);
			break;
		case 3:
			put8(p, roll(d, 256));
			put8(p, roll(d, 12));
			break;
		default:
			put8(p, 1);
		}
	}
	p->len = end;
}

static inline void put_tcp(struct tap_packet *p, struct tap_dice *d)
{
	const uint32_t words = roll(d, 3) != 0   ? 5 + roll(d, 11)
			       : roll(d, 8) != 0 ? 5
						 : roll(d, 16);

	put32(p, roll(d, 2) ? 443 : roll(d, UINT32_MAX));
	put_random(p, d, 8);
	put8(p, words << 4);
	put_random(p, d, 7);
	if (words > 5)
		put_options(p, d, (words - 5) * 4);
	put_random(p, d, roll(d, 40));
}

static inline void put_transport(struct tap_packet *p, struct tap_dice *d, uint32_t proto)
{
	if (proto == 6) {
		put_tcp(p, d);
	} else if (proto == 17) {
		const uint32_t payload = roll(d, 40);

		put_random(p, d, 4);
		put16(p, roll(d, 4) ? 8 + payload : roll(d, 64));
		put16(p, 0);
		put_random(p, d, payload);
	} else {
		put_random(p, d, roll(d, 40));
	}
}

static inline uint32_t any_transport(struct tap_dice *d)
{
	static const uint8_t of[] = { 6, 6, 6, 17, 17, 1, 58, 132, 47, 4, 59 };

	return roll(d, 20) ? of[roll(d, sizeof(of))] : roll(d, 256);
}

static inline uint32_t any_fragment(struct tap_dice *d)
{
	return roll(d, 3) ? 0 : roll(d, 2) ? 1 : roll(d, 65536);
}

static inline void put_ip4(struct tap_packet *p, struct tap_dice *d)
{
	const uint32_t at = p->len, proto = any_transport(d), fragment = any_fragment(d);
	const uint32_t words = roll(d, 4) ? 5 : roll(d, 16);

	put8(p, 0x40 | words);
	put8(p, roll(d, 256));
	put32(p, roll(d, UINT32_MAX));
	put16(p, fragment == 1 ? 0x2000 : fragment);
	put8(p, 64);
	put8(p, proto);
	put_random(p, d, 10);
	if (words > 5)
		put_random(p, d, (words - 5) * 4);
	put_transport(p, d, proto);
	set16(p, at + 2, roll(d, 12) ? p->len - at : roll(d, 3) ? roll(d, 120) : roll(d, 65536));
}

/* A byte, where there is room for it. */
static inline void set8(struct tap_packet *p, uint32_t at, uint32_t value)
{
	if (at < sizeof(p->bytes))
		p->bytes[at] = (uint8_t)value;
}

static inline void put_ip6(struct tap_packet *p, struct tap_dice *d)
{
	static const uint8_t of[] = { 0, 43, 44, 44, 51, 60 };
	uint32_t next_at = p->len + 6, at = p->len, n = roll(d, 3) ? roll(d, 3) : roll(d, 11),
		 proto;

	put16(p, 0x6000 | roll(d, 0x1000));
	put_random(p, d, 4);
	put8(p, 0);
	put8(p, 64);
	put_random(p, d, 32);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t type = of[roll(d, sizeof(of))], size = roll(d, 3)    ? 0
								      : roll(d, 10) ? roll(d, 3)
										    : roll(d, 256);

		set8(p, next_at, (uint8_t)type);
		next_at = p->len;
		put8(p, 59);
		if (type == 44) {
			const uint32_t fragment = any_fragment(d);

			put8(p, 0);
			put16(p, fragment);
			put_random(p, d, 4);
			continue;
		}
		put8(p, size);
		put_random(p, d, type == 51 ? (size + 2) * 4 - 2 : (size + 1) * 8 - 2);
	}
	if (next_at >= sizeof(p->bytes))
		return;
	proto = any_transport(d);
	set8(p, next_at, (uint8_t)proto);
	put_transport(p, d, proto);
	set16(p, at + 4,
		roll(d, 12)  ? p->len - at - 40
		: roll(d, 3) ? roll(d, 120)
		: roll(d, 2) ? 0
			     : 65480 + roll(d, 56));
}

/* raw: without a link header. */
static inline void make_packet(struct tap_packet *p, struct tap_dice *d, int raw)
{
	static const uint16_t tags[] = { 0x8100, 0x8100, 0x88a8, 0x9100 };
	const uint32_t version = roll(d, 2), n_tags = roll(d, 3) ? 0 : roll(d, 6),
		       labels = roll(d, 8) ? 0 : 1 + roll(d, 10);

	p->len = 0;
	if (!raw) {
		put_random(p, d, 12);
		for (uint32_t i = 0; i < n_tags; i++) {
			put16(p, tags[roll(d, 4)]);
			put16(p, roll(d, 65536));
		}
		put16(p, labels != 0    ? 0x8847 + roll(d, 2)
			 : !roll(d, 20) ? roll(d, 65536)
			 : version      ? 0x86dd
					: 0x0800);
		for (uint32_t i = 0; i < labels; i++)
			put32(p, (roll(d, 1 << 20) << 12 & ~0x100u) |
					 (i + 1 == labels && roll(d, 9) ? 0x100 : 0));
	}
	if (version)
		put_ip6(p, d);
	else
		put_ip4(p, d);
	for (uint32_t n = roll(d, 6) ? 0 : roll(d, 4); n > 0; n--)
		p->bytes[roll(d, p->len)] ^= (uint8_t)(1 << roll(d, 8));
	if (!roll(d, 3))
		p->len = roll(d, p->len + 1);
}
